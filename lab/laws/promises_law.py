"""`explain` promises only what happens: truth that is decided, and `never` that is emitted.

    truth   `decided` gives the truth, and asking for it gives the same; `not decided` names the
            code with which asking is refused
    never   `not reported`: no `never` change is emitted. `reported`: every emitted row was possible
            before and is NEVER now; every row that was possible and is NEVER now is emitted, once

The cases are those of the laws of absence, references, thresholds and the clock, with every option
for `never` and for messages that are kept or not. Joins may emit a `never` at the deadline where
a key rules a row out earlier, and omit a match that only its own moment could complete
(`never_law.py`): of these the first half is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.live.view import View
from axlog.query.truth import Truth
from axlog.views.change import Change
from lab.laws.absence_cases import make_absence_case, make_reference_case
from lab.laws.clock_truth_law import make_clock_truth_case
from lab.laws.thresholds_cases import make_threshold_case

Step = tuple[str, str, int]
Values = tuple[Any, ...]
Update = Callable[[Document], list[Change]]


@dataclass(frozen=True, slots=True)
class PromisesCase:
    """One case; its `str` is enough to run it again."""

    document: str
    query: str
    steps: tuple[Step, ...]
    facts: tuple[str, ...]
    never: str
    keep: str


def make_promises_case(random: Random) -> PromisesCase:
    """A random case of one of the laws of the future."""
    pick = random.random()
    if pick < 0.3:
        absent = make_absence_case(random)
        found = (absent.document, absent.query, absent.steps, absent.facts)
    elif pick < 0.55:
        absent = make_reference_case(random)
        found = (absent.document, absent.query, absent.steps, absent.facts)
    elif pick < 0.8:
        counted = make_threshold_case(random)
        found = (counted.document, counted.text, counted.steps, counted.facts)
    else:
        timed = make_clock_truth_case(random)
        found = (timed.case.document, timed.text, timed.case.steps, timed.case.facts)
    never = random.choice(("kept", "kept", "all", "all", "joins", "off"))
    return PromisesCase(*found, never, random.choice(("all", "all", "needed")))


def smaller_promises(case: PromisesCase) -> Iterator[PromisesCase]:
    """Cases with less of everything."""
    for number in range(len(case.steps)):
        yield replace(case, steps=case.steps[:number] + case.steps[number + 1 :])
    for number in range(len(case.facts)):
        yield replace(case, facts=case.facts[:number] + case.facts[number + 1 :])


@dataclass(frozen=True, slots=True)
class _Said:
    """What a view says at one moment."""

    never: str
    possible: list[Values] | None  # None: refused

    @property
    def is_reported(self) -> bool:
        return not self.never.startswith("not reported")

    @property
    def is_exact(self) -> bool:
        return self.is_reported and "the join's tables" not in self.never


def check_promises(case: PromisesCase) -> Counter[str]:
    """Check the law on one case; return the number of comparisons by name."""
    seen: Counter[str] = Counter()
    options = Options(never=cast(Any, case.never), keep=cast(Any, case.keep))
    try:
        doc = Document(case.document, facts=case.facts, options=options)
        view = doc.watch(case.query, "v")
    except AxlogError as error:
        seen[f"refused {error.code}"] += 1
        return seen
    run = _Run(doc, view, 'deletes="' not in case.document, seen)
    run.note()
    for update in (*map(_fed, case.steps), *(_passed(each) for each in (7, 10))):
        run.step(update)
    for stream in sorted(doc.streams()):
        run.step(_fed((stream, "", 11)))
    return seen


def _fed(step: Step) -> Update:
    stream, content, time = step
    at = time / 1_000_000
    return lambda doc: doc.feed(stream, content, at=at) if content else doc.end(stream, at=at)


def _passed(time: int) -> Update:
    return lambda doc: doc.advance(time / 1_000_000)


class _Run:
    """One document with one view."""

    def __init__(self, doc: Document, view: View, is_final: bool, seen: Counter[str]) -> None:
        """`is_final`: nothing is deleted, so that NEVER stays."""
        self.doc, self.view, self.seen = doc, view, seen
        self._is_final = is_final
        self._fallen: set[Values] = set()

    def note(self) -> None:
        """Check what the view says of truth, and remember what it says of rows."""
        explained = self.view.explain()
        self._check_truth(explained.truth)
        try:
            possible = [tuple(one.row.values()) for one in self.view.possible()]
        except AxlogError:
            self.before = _Said(explained.never or "", None)
        else:
            self.before = _Said(explained.never or "", possible)

    def _check_truth(self, said: str | None) -> None:
        try:
            found = f"decided: {self.view.truth.value}"
        except AxlogError as error:
            found = f"not decided ({error.code}): {error.message}"
        if said is not None and said != found:
            raise AssertionError(f"explain says {said!r}, and the truth is {found!r}")
        self.seen[f"truth {found.split(':')[0]}"] += 1

    def step(self, update: Update) -> None:
        """Apply an update and compare its `never` changes with what was said before it."""
        before = self.before
        try:
            changes = update(self.doc)
        except AxlogError:  # a time that has passed, a limit
            return
        self.note()
        columns = self.view.columns
        rows = [tuple(c.row[name] for name in columns) for c in changes if c.op == "never"]
        if not before.is_reported and not self.before.is_reported and rows:
            raise AssertionError(f"{rows} emitted, and explain says {self.before.never!r}")
        if before.is_reported and before.possible is not None:
            self._check_rows(before, rows)

    def _check_rows(self, before: _Said, rows: list[Values]) -> None:
        if len(set(rows)) < len(rows) or (self._is_final and self._fallen & set(rows)):
            raise AssertionError(f"never emitted twice: {rows}")
        self._fallen |= set(rows)
        for row in rows:
            if self._status(row) not in (Truth.NEVER, None):
                raise AssertionError(f"never {row}, which is {self._status(row)}")
            if before.possible is not None and row not in before.possible:
                raise AssertionError(f"never {row} was not possible: {before.possible}")
        if before.is_exact and self.before.is_exact:
            for row in before.possible or ():
                if self._status(row) is Truth.NEVER and row not in rows:
                    raise AssertionError(f"{row} is lost, and never was not emitted: {rows}")
        self.seen["never"] += len(rows)
        self.seen["steps with never reported"] += 1

    def _status(self, row: Values) -> Truth | None:
        """The truth of a row; None: refused."""
        given = zip(self.view.columns, row, strict=True)
        try:
            return self.view.status({c: v for c, v in given if v is not None})
        except AxlogError:
            return None
