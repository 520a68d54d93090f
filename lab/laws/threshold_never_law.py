"""`never` changes of views with groups and computed rows, by their definition.

    never after an update  =  the rows that were possible before it, of which afterwards none is
                              there or possible

The definition is computed by a walk over the whole document before and after
(`future/group_outlook.py`, which law "thresholds" compares with brute force over futures). The
document keeps its groups as data arrives (`future/group_tracker.py`). Cases are those of law
"thresholds", with more messages, deletions by streams, ends, and a clock that advances.

Where the definition is refused, or `explain` says that nothing is reported, nothing must be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from axlog.document.tree import Tree
from axlog.errors import AxlogError, UndecidedError
from axlog.future.group_outlook import GroupOutlook
from axlog.future.keys import is_broken, parse_fact
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.query.query import parse_query
from axlog.query.truth import Truth
from axlog.views.change import Change
from lab.laws.thresholds_cases import KEYS, ThresholdCase, make_threshold_case, smaller_thresholds

Step = tuple[str, str, int]
"""A stream and what it brings, `-` before a pattern that it deletes, empty: it ends; the time."""
Row = tuple[Any, ...]
_JOINS = (
    "/r[p/a#o[@i = $x]][q/d#u[@i = $x]]",
    "/r[p/a#o[@i = $x][k/$y]][q/d#u[k/$y]]",
    "/r[p/a#o[k = $x]][q/d#u[@i = $y]]",
    "/r[p/a#o[@i = $x]][q/d#u[@i = $x][k/$y]]",
)
_TIMES = ("u - o <= 2us", "o - u <= 1us", "u - o <= 3us and o - u <= 1us", "o <= 4us", "u >= o")
_ASKED = (
    "count() >= 2",
    "count() >= 3",
    "count() > 1",
    "count() < 2",
    "count() = 2",
    "count() >= 2 and count() < 4",
    "max(u.time) >= 3",
    "count() >= 2 or count($x) >= 1",
)
_DELETED = ("-match /a", '-match /a[@i/"1"]', "-match /a[w]", "-match /d")


@dataclass(frozen=True, slots=True)
class ThresholdNeverCase:
    """One case; its `str` is enough to run it again."""

    of: ThresholdCase
    steps: tuple[Step, ...]


def make_threshold_never_case(random: Random) -> ThresholdNeverCase:
    """A random case whose declared facts hold."""
    while True:
        of = make_threshold_case(random)
        if of.is_typed:
            continue
        if random.random() < 0.5:
            facts = tuple(key for key in KEYS if random.random() < 0.4)
            of = replace(of, text=_timed_query(random), facts=facts)
        case = ThresholdNeverCase(replace(of, steps=(), clock=0), _steps(random, of))
        if _holds_facts(case):
            return case


def _timed_query(random: Random) -> str:
    """A query over two streams whose matches the clock, keys and limits can make impossible."""
    pattern, time = random.choice(_JOINS), random.choice(_TIMES)
    keys = [
        key for key in ("$x", "$y", "o.time") if key.partition(".")[0] in pattern.replace("#", "")
    ]
    shown = [key for key in keys if random.random() < 0.5]
    made = random.choice(_ASKED)
    text = f"match {pattern} where {time} return {', '.join([*shown, 'count() as n'])}"
    return f"{text} having {made}" if random.random() < 0.8 else text


def _steps(random: Random, of: ThresholdCase) -> tuple[Step, ...]:
    time, found = 0, []
    for _ in range(random.randint(2, 9)):
        time += random.choice((0, 0, 1, 1, 2))
        pick = random.random()
        if pick < 0.1:
            found.append(("", "", time))
        elif pick < 0.2 and "deletes" in of.document:
            found.append((random.choice("fg"), random.choice(_DELETED), time))
        else:
            made = make_threshold_case(random).steps
            sent = [each for each in made if each[1]]
            found += [(stream, content, time) for stream, content, _ in sent[:1]]
    order = random.sample("fg", 2)
    found += [(stream, "", time + random.choice((0, 1, 4))) for stream in order]
    return tuple(found)


def _holds_facts(case: ThresholdNeverCase) -> bool:
    try:
        doc = Document(case.of.document)
        keys = [parse_fact(fact) for fact in case.of.facts]
        for step in case.steps:
            _take(doc, step)
            if any(is_broken(maintained(doc).nodes(), key) for key in keys):
                return False
        parse_query(case.of.text)
    except AxlogError:
        return False
    return True


def _take(doc: Document, step: Step) -> list[Change] | None:
    """Do a step; None: it is refused."""
    stream, content, time = step
    at = time / 1_000_000
    try:
        if not stream:
            return doc.advance(max(at, maintained(doc).tree.clock / 1_000_000))
        if not content:
            return doc.end(stream, at=at)
        if content.startswith("-"):
            return doc.delete(stream, content[1:], at=at)
        return doc.feed(stream, content, at=at)
    except AxlogError:
        return None


def check_threshold_never(case: ThresholdNeverCase) -> Counter[str]:
    """Compare the `never` changes of every step; return the number of comparisons by name."""
    seen: Counter[str] = Counter()
    doc = Document(case.of.document, facts=case.of.facts)
    try:
        view = doc.watch(case.of.text, "v")
    except AxlogError as error:
        seen[f"refused {error.code}"] += 1
        return seen
    definition = _Definition(doc)
    before = definition.possible()
    for number, step in enumerate(case.steps):
        said = str(view.explain().never)
        changes = _take(doc, step)
        found = sorted(
            (change.row.values_ for change in changes or () if change.op == "never"), key=str
        )
        now = definition.possible()
        if before is None or now is None or said.startswith("not reported"):
            if found and said.startswith("not reported"):
                raise AssertionError(f"step {number}: {found}, but {said}")
            seen["refused"] += 1
        else:
            wanted = sorted(definition.fallen(before, now), key=str)
            if found != wanted:
                raise AssertionError(f"step {number}: found {found}, wanted {wanted}; {said}")
            seen["compared"] += 1
            seen["never"] += len(wanted)
            seen[said.partition(";")[0]] += 1
        before = now
    return seen


class _Definition:
    """The possible rows of the view, by a walk over the whole document."""

    def __init__(self, doc: Document) -> None:
        self._document = doc

    def _outlook(self) -> GroupOutlook:
        tree: Tree = maintained(self._document).nodes()
        return GroupOutlook(tree, self._document.view("v").query.row_key)

    def possible(self) -> list[Row] | None:
        """The rows that can come; None: that is not decided."""
        try:
            return list(dict.fromkeys(tuple(e.row.values()) for e in self._outlook().possible()))
        except UndecidedError:
            return None

    def fallen(self, before: list[Row], now: list[Row]) -> Iterator[Row]:
        outlook, columns = self._outlook(), self._document.view("v").query.columns
        for row in before:
            asked = dict(zip(columns, row, strict=True))
            if row not in now and outlook.status(asked) is Truth.NEVER:
                yield row


def smaller_threshold_never(case: ThresholdNeverCase) -> Iterator[ThresholdNeverCase]:
    """Cases with less of everything."""
    for number in range(len(case.steps)):
        smaller = replace(case, steps=case.steps[:number] + case.steps[number + 1 :])
        if _holds_facts(smaller):
            yield smaller
    for of in smaller_thresholds(case.of):
        smaller = replace(case, of=of)
        if _holds_facts(smaller):
            yield smaller
