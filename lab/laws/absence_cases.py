"""Cases for the law of absence: orders without shipments, in every variant, with declared facts.

A document has orders (`p/a`), shipments (`q/d`) and a log (`e/c`), each with a call. Messages have
arrived at several times, and streams may have ended. Patterns have one to three branches and one
or two `not`s over these elements, which share variables and times. Calls are one-shot, limited or
deleting, elements have keys or types, and elements hold calls of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from axlog.document.schema import is_valid
from axlog.document.schema_parser import parse_schema
from axlog.document.tree import DOCUMENT_NODE, ELEMENT, Tree
from axlog.errors import AxlogError
from axlog.future.keys import is_broken
from axlog.future.references import declare, parse_declared, refers_to_nothing
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.query.compile import compile_pattern
from axlog.query.native import parse_pattern
from axlog.query.pattern import Kind, Pattern

KEYS = ("key p/a by k trusted", "key q/d by k trusted")
REFERENCES = (
    "every q/d by k refers p/a by k trusted",
    "every e/c by k refers p/a by k trusted",
    "every e/c by k refers q/d by k trusted",
)
VALUES = ("1", "2")
TYPES = tuple(
    "root: r  r -> |p| = 1 & |q| = 1 & |e| <= 1  p -> |a| <= 2 & |f| >= 0"
    "  q -> |d| <= 2 & |g| >= 0  e -> |c| <= 1 & |h| >= 0"
    + "".join(f"  {label} -> {inside} & |v| <= 1 & |w| <= 1 & |z| <= 1" for label in "adc")
    + "  k -> |text()| <= 1  v -> |text()| <= 1  z -> |text()| <= 1  w ->"
    "  call f root: a  call g root: d  call h root: c"
    for inside in ("|k| <= 1", "|k| = 1")
)
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
_FACTS = ("",) * 6 + (' mode="one-shot"', ' most="1"', ' most="2"', ' calls="yes"')
_DELETING = (' deletes="yes"', ' deletes="only"')
Step = tuple[str, str, int]
"""A stream, what it brings (empty: it ends), and the time in microseconds."""

_POSITIVE = (
    "p/a#t/k/$x", "p/a#t/k/$x", "p/a#t[k/$x][w]", "p/a#t[k = $x]", "p/a#t[@i = $x]", "p/a#t/@i/$x",
    "p/a[k/$x#t]", "p/a[k/$x][not(w)]", "p/a#t[k/$x][not(z/$y)]", "p//a#t[k/$x]", "p/a#t[k/$x]/$y",
    "p/a#t", "p/a#t[k > 1]", "p/a#t[k/$x][v > 5]", "p[a/k/$x or e/$x]", "p/a#t[k/$x or @i = $x]",
)  # fmt: skip
_SECOND = (
    "q/d#u/k/$x", "q/d#u[k/$x][w]", "q/d#u/k/$y", "e/c/k/$x", "e/c#u", "q/d#u[k/$x][not(v)]",
    "q/d#u[@i = $x]", "q/d#u[@i/$x]", "e/c[@i/$y]",
)  # fmt: skip
_NEGATIVE = (
    "q/d/k/$x", "q/d/k/$x", "q/d#s/k/$x", "q/d#s[k/$x]", "q/d#s", "q/d[k/$x][w]",
    "q/d[k/$x][not(w)]", "q/d[k = $x]", "q/d[@i = $x]", "q//$x", "q/d[w]", "e/c/k/$x", "e/c#s",
    "p/a[k/$x][w]", "q/d[v > 5]", "q/d[k/$x][v > 5]", "q/d/k/$z", "q/*/k/$x", "q/d/k/$x or e/c",
    "q/d#s[k/$x][w]", "q/d#s[not(k/$x)]", "q/d/@i/$x", "q/d#s[@i/$x]", "q/d[@i > 1]",
)  # fmt: skip
_TIED = (
    "s - t <= 2", "s - t >= 2", "s <= 4", "s >= t", "t - s <= 1", "s - t < 1", "s = t", "s != t",
)  # fmt: skip
_POSITIVE_TIMES = ("t <= 4", "t >= 3", "u - t <= 2", "u - t >= 1", "t = u", "t + u <= 7", "u > t")


@dataclass(frozen=True, slots=True)
class AbsenceCase:
    """One case; its `str` is enough to run it again."""

    document: str
    query: str
    steps: tuple[Step, ...] = ()
    facts: tuple[str, ...] = ()
    clock: int = 0
    types: str = ""

    @property
    def pattern(self) -> Pattern:
        return parse_pattern(self.query)

    def tree(self) -> Tree:
        """The document after its messages."""
        doc = Document(self.document)
        for stream, content, time in self.steps:
            try:
                if content:
                    doc.feed(stream, content, at=time / 1_000_000)
                else:
                    doc.end(stream, at=time / 1_000_000)
            except AxlogError:  # a limit, or a reduced case that has lost the stream
                continue
        doc.advance(max(self.clock, maintained(doc).tree.clock) / 1_000_000)
        tree = maintained(doc).nodes()
        declare(tree, map(parse_declared, self.facts))
        tree.types = parse_schema(self.types) if self.types else None
        return tree


def make_absence_case(random: Random) -> AbsenceCase:
    """A random case with a valid query whose keys hold."""
    while True:
        types = random.choice(TYPES) if random.random() < 0.12 else ""
        case = AbsenceCase(
            _document(random, is_typed=bool(types)), _query(random), _steps(random),
            () if types else _keys(random), random.randint(0, 6), types,
        )  # fmt: skip
        try:
            tree, pattern = case.tree(), case.pattern
        except AxlogError:
            continue
        if compile_pattern(pattern).refusal is None and not (
            any(is_broken(tree, key) for key in tree.facts)
            or any(refers_to_nothing(tree, each) for each in tree.references)
            or (tree.types is not None and not is_valid(tree, tree.types))
        ):
            return case


def _keys(random: Random) -> tuple[str, ...]:
    if random.random() < 0.5:
        return ()
    return tuple(key for key in KEYS if random.random() < 0.7)


def make_reference_case(random: Random) -> AbsenceCase:
    """A random case with references, with a `not` or without."""
    while True:
        case = make_absence_case(random)
        query = case.query
        if random.random() < 0.6:
            query = _without_not(query)
        chosen = tuple(each for each in REFERENCES if random.random() < 0.5) or REFERENCES[:1]
        case = replace(case, query=query, facts=(*case.facts, *chosen), types="")
        try:
            _ = case.pattern
            if refers(case):
                return case
        except AxlogError:
            continue


def refers(case: AbsenceCase) -> bool:
    """Whether every message referred to what had arrived before it, or with it."""
    for number in range(len(case.steps) + 1):
        tree = replace(case, steps=case.steps[:number]).tree()
        if any(refers_to_nothing(tree, each) for each in tree.references):
            return False
    return True


def _without_not(query: str) -> str:
    kept = [each for each in _predicates(query) if not each.startswith("[not(")]
    body, _, outputs = query.partition(" return ")
    _, _, where = body.partition(" where ")
    text = "".join(kept)
    tests = [each for each in where.split(" and ") if each
             if all(f"#{n}" in text for n in "stu" if f"{n} " in f"{each} ")]  # fmt: skip
    shown = [each for each in outputs.split(", ") if _is_shown(each, text)]
    said = f"match /r{text}" + (f" where {' and '.join(tests)}" if tests else "")
    return said + (f" return {', '.join(shown)}" if shown else "")


def _is_shown(output: str, text: str) -> bool:
    """Whether an output is of a node or variable of the query."""
    return bool(output) and (output if output[0] == "$" else f"#{output.split('.')[0]}") in text


def _document(random: Random, *, is_typed: bool = False) -> str:
    facts = {stream: random.choice(_FACTS) for stream in "fgh"}
    if is_typed:
        facts = {stream: random.choice(_FACTS[:-1]) for stream in "fgh"}
    if random.random() < 0.15:
        facts[random.choice("fg")] += random.choice(_DELETING)
    f, g, h = (_CALL.format(stream, facts[stream]) for stream in "fgh")
    more = _CALL.format("i", "") if not is_typed and random.random() < 0.15 else ""
    inside = _tree(random, "a").replace("</a>", f"{more}</a>") if more else ""
    e = f"<e>{h}</e>" if random.random() < 0.4 else ""
    return f"<r><p>{inside}{f}</p><q>{g}</q>{e}</r>"


def _content(random: Random) -> str:
    key = f"<k>{random.choice(VALUES)}</k>" if random.random() < 0.8 else ""
    return key + "".join(f"<{label}/>" for label in "w" if random.random() < 0.3)


def _tree(random: Random, label: str) -> str:
    attribute = f' i="{random.choice(VALUES)}"' if random.random() < 0.15 else ""
    value = f"<v>{random.choice('47')}</v>" if random.random() < 0.2 else ""
    return f"<{label}{attribute}>{_content(random)}{value}</{label}>"


def _steps(random: Random) -> tuple[Step, ...]:
    time, steps = 0, []
    for _ in range(random.choice((0, 1, 1, 2, 2, 3))):
        time += random.choice((0, 1, 1, 2))
        stream = random.choice("ffggh")
        label = {"f": "a", "g": "d", "h": "c"}[stream]
        steps.append((stream, _tree(random, label), time))
    if random.random() < 0.25:
        steps.append((random.choice("fgh"), "", time))
    return tuple(steps)


def _query(random: Random) -> str:
    branches = [random.choice(_POSITIVE)]
    if random.random() < 0.4:
        branches.append(random.choice(_SECOND))
    negative = [random.choice(_NEGATIVE)]
    if random.random() < 0.2:
        negative.append(random.choice(_NEGATIVE).replace("#s", ""))
    branches += [f"not({each})" for each in negative]
    text = "".join(f"[{each}]" for each in branches)
    where = []
    if "#s" in text and random.random() < 0.8:
        where.append(random.choice(_TIED))
    if random.random() < 0.3:
        where.append(random.choice(_POSITIVE_TIMES))
    if "$y" in text and random.random() < 0.3:
        where.append("$x != $y")
    where = [each for each in where if all(f"#{n}" in text for n in "stu" if n in each)]
    outputs = [each for each in ("$x", "$y") if each in text and random.random() < 0.8]
    outputs += [f"{n}.time" for n in "tu" if f"#{n}" in text and random.random() < 0.25]
    outputs += ["t.id"] if "#t" in text and random.random() < 0.1 else []
    said = f"match /r{text}"
    said += f" where {' and '.join(_in_microseconds(each) for each in where)}" if where else ""
    return said + (f" return {', '.join(outputs)}" if outputs else "")


def _in_microseconds(constraint: str) -> str:
    *terms, bound = constraint.split(" ")
    return " ".join([*terms, f"{bound}us" if bound.isdigit() else bound])


# Reduction ----------------------------------------------------------------------------------------


def smaller_absences(case: AbsenceCase) -> Iterator[AbsenceCase]:
    """Cases with less of everything, in which references hold."""
    return filter(refers, _smaller(case))


def _smaller(case: AbsenceCase) -> Iterator[AbsenceCase]:
    for number in range(len(case.steps)):
        yield replace(case, steps=_without(case.steps, number))
    for number in range(len(case.facts)):
        yield replace(case, facts=_without(case.facts, number))
    for query in _smaller_queries(case.query):
        try:
            parse_pattern(query)
        except AxlogError:
            continue
        yield replace(case, query=query)
    if case.clock:
        yield replace(case, clock=case.clock - 1)


def _without(items: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    return items[:number] + items[number + 1 :]


def _smaller_queries(query: str) -> Iterator[str]:
    body, _, outputs = query.partition(" return ")
    shown = outputs.split(", ") if outputs else []
    for number in range(len(shown)):
        left = _without(tuple(shown), number)
        yield body + (f" return {', '.join(left)}" if left else "")
    ending = f" return {outputs}" if outputs else ""
    body, _, where = body.partition(" where ")
    tests = where.split(" and ") if where else []
    for number in range(len(tests)):
        left = _without(tuple(tests), number)
        yield body + (f" where {' and '.join(left)}" if left else "") + ending
    after = f" where {where}" if where else ""
    parts = list(_predicates(body))
    for number in range(len(parts)):
        yield "match /r" + "".join(_without(tuple(parts), number)) + after + ending


def _predicates(body: str) -> Iterable[str]:
    """The predicates of the root, with their brackets."""
    depth, start = 0, 0
    for at, character in enumerate(body):
        if character == "[":
            start = at if depth == 0 else start
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                yield body[start : at + 1]


def values_to_ask(tree: Tree, kind: Kind) -> list[Any]:
    """The values of an output that questions about rows name; None names no value."""
    nodes = [n for n in tree.subtree(DOCUMENT_NODE) if tree.kind_column[n] == ELEMENT]
    if kind is Kind.ID:
        if any(tree.call(call).deletes != "no" for call in tree.calls().values()):
            return [None]  # a later node, which is not meant, may have the id of a deleted one
        return [None, *(tree.id(n) for n in nodes if tree.label(n) == "a")]
    if kind is Kind.TIME:
        return [None, *sorted({tree.clock, tree.clock + 2, *map(tree.time, nodes)})]
    return [None, *VALUES, "3"]
