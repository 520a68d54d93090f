"""Random cases with `now`: a document with streams, one query about the clock, steps in time.

Times are a few microseconds, so that the definition can be evaluated at every moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from axlog.errors import QueryError
from axlog.query.clock_terms import NOW
from axlog.query.pattern import Branch, Kind, Not, Pattern, PatternNode, TimeConstraint, branches_of
from axlog.query.query import parse_query
from axlog.query.steps import clock_of
from lab.laws import small_cases
from lab.laws.small_cases import Features

Step = tuple[Any, ...]
_SHORT = Features(outputs=(Kind.VARIABLE, Kind.TIME, Kind.LABEL), collects=False, size=2)
_LONG = Features(collects=False, size=2)
_WIDE = Features(collects=False, size=2, siblings=True, reverse=True)
_MAINTAINERS = (None, None, None, "counting", "algebraic", "records", "adaptive", "reevaluate")
_OPERATORS = ("<=", "<=", ">=", ">=", "<", ">", "=", "!=")


@dataclass(frozen=True, slots=True)
class ClockCase:
    """A document, the text of one query about the clock, and steps."""

    document: str
    text: str
    steps: tuple[Step, ...]
    keep: str = "all"
    options: tuple[tuple[str, Any], ...] = ()
    maintainer: str | None = None


def make_clock_case(random: Random) -> ClockCase:
    """A random case; half of them can be kept without nodes."""
    if random.random() < 0.5:
        return _made_case(random)
    streams = random.choice((1, 2, 2))
    text = small_cases.document(random, random.randint(1, 8), streams)
    for number in range(streams):
        said = random.choice(("", "", "", "", ' deletes="yes"', ' replace="@k"', ' late="clock"'))
        if "calls=" in text and "replace" in said:
            said = ""
        text = text.replace(f'stream="s{number}"', f'stream="s{number}"{said}')
    query = clock_query(random, random.choice((_SHORT, _SHORT, _LONG, _WIDE)))
    return _kept(random, text, query, streams, _any_message)


def _kept(
    random: Random, text: str, query: str, streams: int, message: Callable[[Random], str]
) -> ClockCase:
    """A case with random steps, kept in a random way."""
    keep = random.choice(("all", "all", "needed"))
    steps = tuple(_step(random, streams, keep, message) for _ in range(random.randint(3, 10)))
    options = {
        "collect": random.choice(("off", "state", "auto")),
        "never": random.choice(("off", "joins", "kept", "all")),
        "tune": random.choice(("off", "auto")),
    }
    maintainer = random.choice(_MAINTAINERS) if keep == "all" else None
    return ClockCase(text, query, steps, keep, tuple(options.items()), maintainer)


# Queries that join streams ------------------------------------------------------------------------

_PATHS = (
    "o/r#t/k/$x", "o/r/k/$x#t", "o/r#t[k/$x]/v/$y", "p/r#u/k/$x", "o//k/$x#t", "*/r#t[k/$x]",
    "o/r#t[k/$x][not(v#h)]", "o/r#t[k/$x][not(v/$x#h)]",
)  # fmt: skip
_ABSENT = (
    "not(p/r#h/k/$x)", "not(p/r/k/$x#h)", "not(p/r#h)", "not(p/r#h[k/$x][not(v#i)])",
    "not(p/r#h[k/$z][v/$x])", "not(p/r#h/k/$x and p/r#i/v/$x)", "not(p/r#h[k > $x])",
    "not(p/r/k/$x)", "not(o/r#h/v/$x)",
)  # fmt: skip


def _made_case(random: Random) -> ClockCase:
    """Messages with keys on two streams, and a query of the usual form."""
    kinds = ("", "", "", "", ' deletes="yes"', ' replace="k"')
    one, other = random.choice(kinds), random.choice(kinds)
    first = "".join(_order(random) for _ in range(random.choice((0, 0, 1, 2))))
    text = (
        f"<s xmlns:ax='urn:axlog'><o>{first}<ax:call stream='s0'{one}/></o>"
        f"<p><ax:call stream='s1'{other}/></p></s>"
    )
    while True:
        try:
            query = _made_query(random)
            if clock_of(parse_query(query).steps) is not None:
                return _kept(random, text, query, 2, _order)
        except QueryError as error:
            if error.code not in ("AX202", "AX203", "AX204", "AX211"):
                raise


def _made_query(random: Random) -> str:
    parts = [random.choice(_PATHS)]
    parts += [random.choice(_PATHS)] if random.random() < 0.2 else []
    parts += [random.choice(_ABSENT)] if random.random() < 0.6 else []
    match = "match /s" + "".join(f"[{part}]" for part in parts)
    names = sorted({word[1] for word in match.split("#")[1:] for word in [f"#{word}"]})
    where = [_constraint(random, names) for _ in range(random.choice((1, 1, 1, 2)))]
    shown = ["$x"] + (["$y"] if "$y" in match else []) + (["t.time"] if "#t" in match else [])
    keys = random.sample(shown, random.choice((0, 1, 1)))
    returned = random.choice(
        (
            "$x", "$x", ", ".join(shown), ", ".join([*keys, "count() as n"]),
            ", ".join([*keys, "sum($x) as n, max($x) as m"]), "latest($x by $x) as n",
            "$x order by $x descending limit 1", "$x, count() as n having n > 1",
        )
    )  # fmt: skip
    if random.random() < 0.1:
        where.append(f"now {random.choice(_OPERATORS)} $x * 0.000001")
    return f"{match} where {', '.join(where)} return {returned}"


def _constraint(random: Random, names: list[str]) -> str:
    name, other = random.choice(names), random.choice(names)
    bound = random.choice((0, 1, 1, 2, 3, 5))
    more = (f"2*now - {name}", f"now - {name} - {other}", f"now - 2*{name} + {other}", "now")
    left = random.choice((*(f"now - {name}",) * 3, *more))
    if random.random() < 0.1 and name != other:
        left = f"{name} - {other}"
    return f"{left} {random.choice(_OPERATORS)} {bound}us"


def _order(random: Random) -> str:
    value = f"<v>{random.choice('123')}</v>" if random.random() < 0.5 else ""
    return f"<r><k>{random.choice('123')}</k>{value}</r>"


# Queries of any form ------------------------------------------------------------------------------


def clock_query(random: Random, features: Features) -> str:
    """The text of a query with `now` in at least one constraint."""
    while True:
        pattern = small_cases.pattern(random, features)
        pattern = replace(pattern, branches=tuple(_named(random, pattern.branches, iter("uvwxyz"))))
        names = [node.name for node in pattern.nodes() if node.name is not None]
        where = list(pattern.where)
        for _ in range(random.choice((1, 1, 2))):
            chosen = random.sample(names, min(len(names), random.choice((0, 1, 1, 1, 2))))
            terms = [(random.choice((1, 1, 1, 1, -1, 2)), NOW)]
            terms += [(random.choice((-1, -1, -1, -1, 1, -2)), name) for name in chosen]
            bound = random.choice((0, 1, 2, 3, 4, 6))
            where.append(TimeConstraint(tuple(terms), random.choice(_OPERATORS), bound))
        try:
            text = _text(random, replace(pattern, where=tuple(where)))
            if clock_of(parse_query(text).steps) is not None:
                return text
        except QueryError as error:
            if error.code not in ("AX204", "AX211", "AX203", "AX201"):
                raise


def _named(random: Random, branches: tuple[Branch, ...], fresh: Iterator[str]) -> Iterator[Branch]:
    """The branches with more names, inside `not`s too."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            name = branch.name
            if name is None and random.random() < 0.4:
                name = next(fresh, None)
            below = tuple(_named(random, branch.branches, fresh))
            yield replace(branch, name=name, branches=below)
        elif isinstance(branch, Not):
            yield replace(branch, branches=tuple(_named(random, branch.branches, fresh)))
        else:
            yield branch


def _text(random: Random, pattern: Pattern) -> str:
    """The text of a pattern, sometimes with aggregates, an order or a comparison with a value."""
    pick = random.random()
    variables = [str(each) for each in pattern.outputs if each.kind is Kind.VARIABLE]
    text = str(replace(pattern, outputs=()))
    if variables and random.random() < 0.15:
        value = random.choice(variables)
        times = f" - {random.choice(list(_outer(pattern.branches)) or ['3us'])}"
        compared = random.choice(("<", "<=", ">", ">=", "=", "!="))
        right = random.choice((value, f"{value} * 0.000001", f"0.000001 * {value} - 0.000001"))
        text += f", {NOW}{random.choice(('', times))} {compared} {right}"
    if pick < 0.4:
        return str(pattern) if text == str(replace(pattern, outputs=())) else text + _plain(pattern)
    shown = list(dict.fromkeys(str(replace(each, alias=None)) for each in pattern.outputs))
    if pick < 0.7 or not shown:
        keys = random.sample(shown, min(len(shown), random.choice((0, 0, 1))))
        counted = random.choice(("count()", *(f"count(distinct {each})" for each in shown)))
        more = [f"sum({each}) as s, max({each}) as m" for each in variables[:1]]
        more = more if random.random() < 0.5 else []
        text += " return " + ", ".join([*keys, f"{counted} as n", *more])
        return text + random.choice(("", "", " having n > 1"))
    text += _plain(pattern)
    if random.random() < 0.6:
        text += f" order by {random.choice(shown)}{random.choice(('', ' descending'))}"
    return text + random.choice(("", " limit 1", " limit 2"))


def _plain(pattern: Pattern) -> str:
    shown = list(dict.fromkeys(str(replace(each, alias=None)) for each in pattern.outputs))
    return f" return {', '.join(shown)}" if shown else ""


def _outer(branches: tuple[Branch, ...]) -> Iterator[str]:
    for branch in branches:
        if isinstance(branch, PatternNode):
            yield from [branch.name] if branch.name else []
            yield from _outer(tuple(branches_of(branch)))


def _step(random: Random, streams: int, keep: str, message: Callable[[Random], str]) -> Step:
    pick = random.random()
    stream = f"s{random.randrange(streams)}"
    if pick < 0.2:
        return ("advance", random.choice((0, 1, 2, 3, 8)))
    if pick < 0.22:
        return ("tune",)
    if pick < 0.24:
        return ("collect",)
    if pick < 0.30:
        return ("restart",)
    if pick < 0.32 and keep == "all":
        return ("end", stream)
    if pick < 0.36 and keep == "all":
        return ("delete", stream, random.choice(_TARGETS))
    if pick < 0.38 and keep == "all":
        return ("read",)
    if pick < 0.44 and keep == "all":
        return ("update", random.choice(_STATEMENTS).format(random.choice(_TARGETS)),
                random.choice((0, 0, 1, 3)))  # fmt: skip
    if pick < 0.52:
        inside = [_message(random, stream, message) for _ in range(random.randint(1, 3))]
        inside.insert(random.randrange(len(inside) + 1), ("advance", random.choice((1, 3))))
        return ("batch", random.random() < 0.3, tuple(inside))
    return _message(random, stream, message)


_TARGETS = (*small_cases.LABELS, "r", "k", "v")
_STATEMENTS = (
    "insert node <b>2</b> as last into /*/{}[1]",
    "delete node //{}[1]",
    "rename node /*/{}[1] as 'c'",
    "replace value of node (//{})[1] with '1'",
)


def _message(random: Random, stream: str, message: Callable[[Random], str]) -> Step:
    return ("feed", stream, message(random), random.choice((0, 0, 1, 1, 2, 4, -1)))


def _any_message(random: Random) -> str:
    return small_cases.fragment(random, random.randint(1, 4))


def smaller_clock(case: ClockCase) -> Iterator[ClockCase]:
    """Cases with fewer steps, or in the usual way of keeping them."""
    for number in range(len(case.steps)):
        yield replace(case, steps=case.steps[:number] + case.steps[number + 1 :])
    if case.maintainer is not None:
        yield replace(case, maintainer=None)
    for name, usual in (("collect", "off"), ("never", "off"), ("tune", "off")):
        if dict(case.options).get(name) != usual:
            yield replace(case, options=tuple({**dict(case.options), name: usual}.items()))
