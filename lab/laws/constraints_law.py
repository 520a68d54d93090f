"""Truth under constraints over times and values of several streams, against all futures.

    law constraints   `truth`, `possible()`, `status()`, `never` and deadlines of a view over a
                      document that streams change equal the result of all small futures

A case is a join of one to three parts, each fed by a stream, with linear constraints over their
times (any coefficients, up to three times in one) and constraints that fix values. The steps are
messages, the clock and ends of streams. After every step all results of the view are compared; the
status of single rows only after the last step.

The reference tries all futures at once. Nothing here is negated, so a row is possible if it is a
row of the document into which every stream has inserted everything, at every time from the clock
on. All nodes of a message have one time. While a stream may still insert calls, its messages may
contain them, so the descendants of a node may be later than the node. Times end at a horizon; a
verdict that depends on times beyond it is compared again with a later horizon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view
from axlog.live.options import Options
from axlog.live.view import View
from axlog.query.truth import Truth
from axlog.views.change import Change
from lab.laws.constraints_cases import CALLS, ConstraintsCase, Linear, Pin
from lab.laws.questions import QUESTIONS

_VALUES = ("1", "2", "8", "9")
_HORIZON, _FAR = 8, 40
_MOST = 3_000_000  # combinations to try at once
_REFUSED = ("AX307", "AX502", "AX503")

Binding = tuple[tuple[int, ...], str]
"""The times of a part's nodes and its value."""
Shown = tuple[Any, ...]
Flags = NDArray[np.bool_]


# The reference ------------------------------------------------------------------------------------


class TooLarge(Exception):
    """There are too many futures to try."""


@dataclass(frozen=True)
class Futures:
    """Every row that is present or possible, from a clock up to a horizon."""

    case: ConstraintsCase
    present: tuple[tuple[Binding, ...], ...]  # by part
    is_open: tuple[bool, ...]
    may_bring_calls: tuple[bool, ...]  # by part
    clock: int
    horizon: int

    def _bindings(self, number: int) -> list[Binding]:
        """The bindings of a part, present ones first."""
        found = list(self.present[number])
        part = self.case.parts[number]
        if self.is_open[number]:
            times = range(self.clock, self.clock + self.horizon + 1)
            values = _VALUES if part.variable is not None else ("",)
            chosen = [(t, *rest) for t in times for rest in self._inner(number, t, times)]
            found += [(each, value) for each, value in product(chosen, values)]
        return found

    def _inner(self, number: int, time: int, times: range) -> list[tuple[int, ...]]:
        """The times of the descendants of a future node: its own, or with calls a later one."""
        if self.case.parts[number].inner is None:
            return [()]
        may_be_later = self.may_bring_calls[number]
        return [(later,) for later in times if later == time or (may_be_later and later > time)]

    @cached_property
    def _columns(self) -> tuple[dict[str, NDArray[np.int64]], Flags]:
        """Every combination that satisfies all constraints, by column; and which are present."""
        bindings = [self._bindings(number) for number in range(len(self.case.parts))]
        sizes = [len(each) for each in bindings]
        if np.prod(sizes, dtype=np.int64) > _MOST:
            raise TooLarge
        chosen = np.indices(sizes).reshape(len(sizes), -1)
        columns: dict[str, NDArray[np.int64]] = {}
        meets = np.ones(chosen.shape[1], np.bool_)
        is_there = np.ones(chosen.shape[1], np.bool_)
        for number, part in enumerate(self.case.parts):
            is_there &= chosen[number] < len(self.present[number])
            for at, name in enumerate(part.names):
                times = np.array([times[at] for times, _ in bindings[number]], np.int64)
                columns[f"{name}.time"] = times[chosen[number]]
            if part.variable is not None:
                codes = np.array([int(value) for _, value in bindings[number]], np.int64)
                column = codes[chosen[number]]
                known = columns.setdefault(f"${part.variable}", column)
                meets &= known == column
        for constraint in self.case.where:
            meets &= _holds(constraint, columns)
        return {name: column[meets] for name, column in columns.items()}, is_there[meets]

    @cached_property
    def _rows(self) -> tuple[set[Shown], set[Shown]]:
        columns, is_there = self._columns
        shown = [columns[name] for name in self.case.shown]
        if not shown:
            return ({()} if len(is_there) else set()), ({()} if is_there.any() else set())
        table = np.unique(np.column_stack([*shown, is_there]), axis=0)
        every: set[Shown] = set()
        there: set[Shown] = set()
        is_text = [name.startswith("$") for name in self.case.shown]
        for *values, held in table.tolist():
            row = tuple(str(v) if text else v for v, text in zip(values, is_text, strict=True))
            every.add(row)
            if held:
                there.add(row)
        return every, there

    @property
    def there(self) -> set[Shown]:
        """The rows that are present."""
        return self._rows[1]

    @cached_property
    def coming(self) -> set[Shown]:
        """The rows that are absent but possible."""
        return self._rows[0] - self._rows[1]

    def status(self, row: Shown) -> Truth:
        """The status of a row; None as a value stands for any value."""
        if any(_agree(each, row) for each in self.there):
            return Truth.TRUE
        return Truth.POSSIBLE if self.may_come(row) else Truth.NEVER

    def may_come(self, row: Shown) -> bool:
        return any(_agree(each, row) for each in self.coming)

    @property
    def truth(self) -> Truth:
        return self.status((None,) * len(self.case.shown))


def _holds(constraint: Linear | Pin, columns: dict[str, NDArray[np.int64]]) -> Flags:
    left: NDArray[np.int64] | int
    right: NDArray[np.int64] | int
    if isinstance(constraint, Pin):
        left = columns[f"${constraint.left}"]
        is_variable = constraint.right.startswith("$")
        right = columns[constraint.right] if is_variable else int(constraint.right)
    else:
        left = sum(factor * columns[f"{name}.time"] for factor, name in constraint.terms)
        right = constraint.bound
    found: Flags = {
        "<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater,
        "=": np.equal, "!=": np.not_equal,
    }[constraint.operator](left, right)  # fmt: skip
    return found


def _outward(value: Any) -> Any:
    """A value in the form that views accept: times in seconds."""
    return Fraction(value, 1_000_000) if isinstance(value, int) else value


def _agree(row: Shown, wanted: Shown) -> bool:
    return all(w is None or found == w for found, w in zip(row, wanted, strict=True))


# The law ------------------------------------------------------------------------------------------


def check_constraints(case: ConstraintsCase) -> Counter[str]:
    """Compare all results of a view after every step; return the number of comparisons by name."""
    run = _Run(case)
    if not run.is_reported and dict(case.options).get("keep", "all") == "all":
        raise AssertionError(f"`never` is not reported: {maintained_view(run.view).how_never()}")
    try:
        run.compare("at the start", is_last=not case.steps)
        for number, step in enumerate(case.steps, 1):
            told = run.take(number - 1)
            run.compare(f"after {step}", told, is_last=number == len(case.steps))
    except TooLarge:
        run.seen["too large"] += 1
    return run.seen


class _Run:
    def __init__(self, case: ConstraintsCase) -> None:
        self.case = case
        self.seen: Counter[str] = Counter()
        options: dict[str, Any] = dict(case.options)
        self.doc = Document(case.document, views={"v": case.query}, options=Options(**options))
        self.view: View = self.doc.view("v")
        self.present: list[list[Binding]] = [[] for _ in case.parts]
        self.is_open = [True for _ in case.parts]
        self.called: Counter[str] = Counter()  # calls that streams have inserted
        self.before: dict[Shown, bool] | None = None  # whether each row could be completed later
        self.is_reported = (
            maintained_view(self.view).how_never().startswith("reported")
        )  # as `explain` says

    def take(self, number: int) -> list[Change]:
        """Apply one step."""
        step = self.case.steps[number]
        at = step.at / 1_000_000
        if step.part is None:
            return self.doc.advance(at)
        part, stream = self.case.parts[step.part], self.case.stream(step.part)
        if step.value is None:
            self.is_open = [o and self.case.stream(n) != stream for n, o in enumerate(self.is_open)]
            return self.doc.end(stream, at=at)
        if step.value == CALLS:
            self.called[stream] += 1
        else:
            times = tuple(step.at for _ in part.names)
            value = step.value if part.variable is not None else ""
            self.present[step.part].append((times, value))
        return self.doc.feed(stream, self.case.message(number), at=at)

    def futures(self, clock: int | None = None, horizon: int = _HORIZON) -> Futures:
        clock = maintained(self.doc).tree.clock if clock is None else clock
        present = tuple(map(tuple, self.present))
        streams = [self.case.stream(part) for part in range(len(present))]
        calls = tuple(self.case.calls(stream) > self.called[stream] for stream in streams)
        return Futures(self.case, present, tuple(self.is_open), calls, clock, horizon)

    # Comparing

    def compare(self, when: str, told: Sequence[Change] = (), *, is_last: bool) -> None:
        futures = self.futures()
        if {row.values_ for row in self.view.rows()} != futures.there:
            raise AssertionError(f"the rows {when}: {self.view.rows()}, wanted {futures.there}")
        self._compare_never(when, told, futures)
        try:
            self._compare_truth(when, futures)
            if is_last:  # every row costs a walk
                self._compare_status(when, futures)
        except AxlogError as error:
            if error.code not in _REFUSED:
                raise
            self.seen[f"refused {error.code}"] += 1
            self.before = None
            if self.is_reported and error.code != "AX307":
                raise AssertionError(f"{when}: `never` is said to be reported; {error}") from None
        self.seen["explained"] += self.is_reported

    def _compare_truth(self, when: str, futures: Futures) -> None:
        found = self.view.truth
        self._same(f"the truth {when}", found, (None,) * len(self.case.shown), futures)
        self.seen[f"truth {found.name}"] += 1
        self.before = self._compare_possible(when, futures)

    def _compare_status(self, when: str, futures: Futures) -> None:
        for row in self._asked(futures):
            asked = dict(zip(self.view.columns, map(_outward, row), strict=True))
            try:
                status = self.view.status(asked)
            except AxlogError as error:
                if error.code != "AX307":
                    raise
                break
            self._same(f"the status of {asked} {when}", status, row, futures)
            self.seen["rows"] += 1

    def _same(self, what: str, found: Truth, row: Shown, futures: Futures) -> None:
        self.seen[QUESTIONS] += 1
        wanted = futures.status(row)
        if found is Truth.POSSIBLE and wanted is Truth.NEVER:  # beyond the horizon?
            wanted = self._further(futures).status(row)
        if found is not wanted:
            raise AssertionError(f"{what}: found {found}, wanted {wanted}; {self.case.query}")

    def _further(self, futures: Futures) -> Futures:
        return replace(futures, horizon=_FAR)

    def _asked(self, futures: Futures) -> list[Shown]:
        """Some rows, invented or possible, to ask the view for."""
        random = Random(str(self.case.steps) + str(futures.clock))
        times = [futures.clock + step for step in range(-1, 4)]
        choices = [
            (None, *_VALUES) if name.startswith("$") else (None, *times) for name in self.case.shown
        ]
        known = [*sorted(futures.coming)[:1], *sorted(futures.there)[:1]]
        made = tuple(map(random.choice, choices))
        return list(dict.fromkeys([made, *random.sample(known, min(1, len(known)))]))

    def _compare_possible(self, when: str, futures: Futures) -> dict[Shown, bool]:
        """The listed rows cover every possible row, and every listed row is possible."""
        listed = maintained_view(self.view)._possible()  # with times in microseconds
        rows = {tuple(one.row.values()) for one in listed}
        for row in futures.coming:
            if not any(_agree(row, each) for each in rows):
                raise AssertionError(f"{row} is not among the possible rows {when}: {rows}")
        for each in rows:
            if not futures.may_come(each) and not self._further(futures).may_come(each):
                raise AssertionError(f"the possible row {each} {when} cannot come")
        self.seen["listed"] += len(rows)
        self.seen[QUESTIONS] += 1
        deadlines = [one.deadline for one in listed]
        limits = [limit for limit in deadlines if isinstance(limit, int)]
        if listed and len(limits) == len(listed):
            last = max(limits)
            if not self._is_possible_at(last) or self.futures(last + 1).coming:
                raise AssertionError(f"the deadline {last} {when}: {listed}")
            self.seen["deadlines"] += 1
        elif listed and not self._is_possible_at(futures.clock + 1):
            raise AssertionError(f"without a deadline {when}: {listed}")
        clock = futures.clock
        return {
            row: any(
                one.deadline is None or one.deadline > clock
                for one in listed
                if tuple(one.row.values()) == row
            )
            for row in rows
        }

    def _is_possible_at(self, clock: int) -> bool:
        return any(self.futures(clock, horizon).coming for horizon in (_HORIZON, _FAR))

    def _compare_never(self, when: str, told: Sequence[Change], futures: Futures) -> None:
        """`never` is emitted for rows that were possible and are now impossible in any form."""
        found = {change.row.values_ for change in told if change.op == "never"}
        if self.before is None or not self.is_reported:
            return
        if any(futures.status(row) is not Truth.NEVER for row in found):
            raise AssertionError(f"never {when}: {found}, but they may come")
        wanted = {row for row in self.before if futures.status(row) is Truth.NEVER}
        wanted = {r for r in wanted if self._further(futures).status(r) is Truth.NEVER}
        # joins do not report a row that could only be completed at the moment at which it began
        if not found <= wanted or {row for row in wanted - found if self.before[row]}:
            raise AssertionError(f"never {when}: found {found}, wanted {wanted}")
        self.seen["never"] += len(found)
