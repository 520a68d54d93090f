"""Long and deep texts of all languages are handled, or refused by code with their place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import axlog
from axlog.errors import AxlogError

VALUES: dict[str, Callable[[int], str]] = {
    "plus": lambda n: "+".join(["1"] * n),
    "times": lambda n: " * ".join(["1"] * n),
    "concat": lambda n: " || ".join(["'x'"] * n),
    "except": lambda n: " except ".join(["//a"] * n),
    "and": lambda n: " and ".join(["//a"] * n),
    "casts": lambda n: "1" + " cast as xs:string" * n,
    "arrows": lambda n: "1" + " => string()" * n,
    "maps": lambda n: "1" + " ! ." * n,
    "parentheses": lambda n: "(" * n + "1" + ")" * n,
    "predicates": lambda n: "//a" + "[a" * n + "]" * n,
    "steps": lambda n: "/r" + "/a" * n,
    "calls": lambda n: "not(" * n + "1" + ")" * n,
    "signs": lambda n: "- " * n + "1",
    "choices": lambda n: "if (1) then 1 else " * n + "1",
    "loops": lambda n: "".join(f"for $v{i} in 1 " for i in range(n)) + "return 1",
    "nested loops": lambda n: "".join(f"for $v{i} in 1 return " for i in range(n)) + "1",
    "lets": lambda n: "".join(f"let $v{i} := 1 " for i in range(n)) + "return 1",
    "quantifiers": lambda n: "some " + ", ".join(f"$x{i} in 1" for i in range(n)) + " satisfies 1",
    "constructors": lambda n: "<a>" * n + "</a>" * n,
    "enclosed": lambda n: "<a>{" * n + "1" + "}</a>" * n,
    "cases": lambda n: "typeswitch (1) " + "case xs:string return 1 " * n + "default return 2",
    "copies": lambda n: "copy $c := <a/> modify () return " * n + "1",
    "doubled paths": lambda n: "let $v0 := //a " + "".join(
        f"let $v{i} := $v{i - 1}/..[$v{i - 1}] " for i in range(1, min(n, 40))
    ) + "return count($v1)",
    "functions": lambda n: "".join(
        f"declare function local:f{i}() {{ {f'local:f{i - 1}()' if i else 1} }}; " for i in range(n)
    ) + f"local:f{n - 1}()",
}  # fmt: skip
PATTERNS: dict[str, Callable[[int], str]] = {
    "plus": lambda n: "match //a/$x return " + "+".join(["$x"] * n) + " as n",
    "and": lambda n: "match //a/$x where " + " and ".join(["$x = 1"] * n) + " return $x",
    "or": lambda n: "match //a/$x where " + " or ".join(["$x = 1"] * n) + " return $x",
    "steps": lambda n: "match " + "/a" * n,
    "branches": lambda n: "match //a" + "[a" * n + "]" * n,
    "parentheses": lambda n: "match //a/$x return " + "(" * n + "$x" + ")" * n + " as n",
    "calls": lambda n: "match //a/$x return " + "abs(" * n + "$x" + ")" * n + " as n",
}
SIZES = (40, 145, 330, 2_000)


def deeper(frames: int, run: Callable[[], None]) -> None:
    """Run with so many frames below, as a caller may have."""
    if frames:
        deeper(frames - 1, run)
    else:
        run()


def handled(run: Callable[[], object]) -> None:
    codes: list[str] = []

    def once() -> None:
        try:
            run()
        except AxlogError as error:
            codes.append(error.code)

    deeper(100, once)
    assert set(codes) <= {"AX211", "AX213", "FORG0006", "XPTY0004"}


@pytest.mark.parametrize("name", VALUES)
def test_statements(name: str) -> None:
    document = axlog.parse("<r><a>1</a></r>")
    for size in SIZES:
        prolog, between, body = VALUES[name](size).rpartition("}; ")
        statement = f"{prolog}{between}replace value of node /r/a with ({body})"
        handled(lambda: document.update(statement))  # noqa: B023
        if len(statement) < 90_000:
            place = _place_of(lambda: document.update(statement))  # noqa: B023
            assert place, (name, size)


def _place_of(run: Callable[[], object]) -> bool:
    """Whether a refusal has a place; True if nothing is refused."""
    try:
        run()
    except AxlogError as error:
        return error.place is not None or not error.code.startswith("AX")
    return True


@pytest.mark.parametrize("name", VALUES)
def test_queries(name: str) -> None:
    document = axlog.parse("<r><a>1</a></r>")
    for size in SIZES[:3]:
        handled(lambda: document.watch(VALUES[name](size), language="xquery"))  # noqa: B023


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name: str) -> None:
    document = axlog.parse("<r><a>1</a></r>")
    for size in SIZES[:3]:
        handled(lambda: document.watch(PATTERNS[name](size)))  # noqa: B023
