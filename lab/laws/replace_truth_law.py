"""Law 4 where a stream replaces its messages: truth and statuses by brute force over all futures.

A tiny document has a stream `s` that replaces, at `p`, and mostly a stream `t` that only inserts,
at `q`. The messages of both come from pools that have every form which the patterns ask for. Where
the analysis decides, its truth is that of the futures, and so is the status of every row over the
values of the pools. Where it does not, nothing is compared: `check_replace_truth` counts both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from random import Random
from typing import Any

from axlog.errors import AxlogError, UndecidedError
from axlog.evaluate.answers import answers
from axlog.future.truth import Outlook
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.query.query import parse_query
from axlog.query.truth import Truth
from lab.reference.fragments import Alphabet, Fragment, as_element, attribute, element, text
from lab.reference.futures import Bound, reachable

_KEYS = ("1", "2", "9")
_PATHS = ("@k", "k", ".")
_CONDITIONS = (
    "[@k = $x]", "[@k/$x]", "[k/$x]", "[k/$x]", "[k = $x]", '[k/"1"]', '[k/"2"]', '[@k = "1"]',
    "[b/$y]", "[b/$y]", '[b/"1"]', "[k/b]", '[*/"1"]',
)  # fmt: skip
_OF_S = ("p/a", "p/a", "p/*", "p//a", "//a")
_OF_T = ("q/c[@k = $x]", "q/c/@k/$x", "q/c", "q/c/$y", "q/*[@k = $x]")


@dataclass(frozen=True, slots=True)
class ReplaceTruthCase:
    """A document, a query, and the messages so far."""

    path: str
    declared: str
    query: str
    messages: tuple[tuple[str, str], ...]
    trees: int

    @property
    def document(self) -> str:
        """The document before the messages."""
        s = f'<ax:call stream="s" replace="{self.path}"{self.declared}/>'
        return f'<r xmlns:ax="urn:axlog"><p>{s}</p><q><ax:call stream="t"/></q></r>'


def make_replace_truth_case(random: Random) -> ReplaceTruthCase:
    """A random case."""
    path = random.choice(_PATHS)
    branches = [random.choice(_OF_T)] if random.random() < 0.5 else []
    for _ in range(random.choice((1, 1, 1, 2))):
        wanted = random.sample(_CONDITIONS, random.choice((0, 1, 1, 2, 2)))
        branches.append(random.choice(_OF_S) + "".join(wanted))
    inside = "".join(f"[{branch}]" for branch in branches)
    bound = [name for name in "xy" if f"${name}" in inside]
    shown = [f"${name}" for name in bound if random.random() < 0.6]
    returned = f" return {', '.join(shown)}" if shown else ""
    messages = [
        (stream, _xml(random.choice(pool(path, stream))))
        for stream in random.choices("sst", k=random.randrange(4))
    ]
    declared = random.choice(("", "", "", ' most="2"'))
    trees = 2 if path == "." and random.random() < 0.5 else 1
    return ReplaceTruthCase(path, declared, f"match /r{inside}{returned}", tuple(messages), trees)


def pool(path: str, stream: str) -> list[Fragment]:
    """The messages that a stream may bring, one of every form that patterns distinguish."""
    if stream == "t":
        return [element("c", *ks, *ts) for ks in _attributes() for ts in ((), (text("1"),))]
    if path == ".":
        return [element("a", *ks, text(key)) for key in _KEYS for ks in _attributes()]
    inner = [
        element("a", *ks, *every, *bs)
        for ks in _attributes()
        for every in _children()
        for bs in ((), (element("b", text("1")),))
    ]
    if path == "@k":
        wrapped = [element("z", attribute("k", "9"), each) for each in inner]
    else:
        wrapped = [element("z", element("k", text("9")), each) for each in inner]
    return inner + wrapped


def _attributes() -> list[tuple[Fragment, ...]]:
    return [(), *((attribute("k", key),) for key in _KEYS)]


def _children() -> Iterator[tuple[Fragment, ...]]:
    """Elements `k`: none, one or two, of which one may hold an element."""
    each = [*(element("k", text(key)) for key in _KEYS), element("k", element("b", text("1")))]
    return chain.from_iterable(combinations(each, count) for count in range(3))


def _xml(fragment: Fragment) -> str:
    from lxml import etree

    return etree.tostring(as_element(fragment), encoding="unicode")


def check_replace_truth(case: ReplaceTruthCase) -> Counter[str]:
    """Compare the verdicts on one case; return the number of comparisons by name."""
    doc = Document(case.document)
    for stream, message in case.messages:
        try:
            doc.feed(stream, message)
        except AxlogError:
            continue
    tree = maintained(doc).nodes()
    pattern = parse_query(case.query).pattern
    try:
        outlook = Outlook(tree, pattern)
    except UndecidedError:
        return Counter(undecided=1)
    pools = {stream: tuple(pool(case.path, stream)) for stream in "st"}
    bound = Bound(Alphabet(()), case.trees, 9, pools=pools)
    now = {tuple(row) for row in answers(tree, pattern)}
    later: set[tuple[Any, ...]] = set()
    for grown in reachable(tree, bound):
        later |= {tuple(row) for row in answers(grown, pattern)}
    wanted = Truth.TRUE if now else Truth.POSSIBLE if later else Truth.NEVER
    if outlook.truth is not wanted:
        raise AssertionError(f"{case.query}: found {outlook.truth}, wanted {wanted}")
    seen = Counter({wanted.name: 1})
    columns = pattern.columns
    for values in product(_KEYS, repeat=len(columns)):
        if any(
            value != "1" for column, value in zip(columns, values, strict=True) if column == "y"
        ):
            continue  # the pools have one value for it
        status = outlook.status(dict(zip(columns, values, strict=True)))
        expected = Truth.NEVER
        if values in now or values in later:
            expected = Truth.TRUE if values in now else Truth.POSSIBLE
        if status is not expected:
            raise AssertionError(f"{case.query}: {values} is {status}, wanted {expected}")
        seen["statuses"] += 1
    return seen


def smaller_replace_truth(case: ReplaceTruthCase) -> Iterator[ReplaceTruthCase]:
    """Cases with fewer messages."""
    for number in range(len(case.messages)):
        yield replace(case, messages=case.messages[:number] + case.messages[number + 1 :])
