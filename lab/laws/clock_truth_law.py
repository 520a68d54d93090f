"""Law 4 for queries about the clock: truth, status, possible rows, moments and deadlines.

The futures are those of law `absence`. A query about the clock is evaluated by its definition on
the document of every future, at every clock from then on, as far as its constraints reach.

    shadow      the rows of a query at any clock of a future are rows of its shadows there; over all
                futures, these are the same rows
    status      TRUE: the row is there. NEVER: no future and no clock has it. POSSIBLE: one has it,
                either one of these or the one that the analysis gives as its reason
    possible    every row that can come is listed, no row is listed that never comes; a row that
                waits for time alone appears at its moment, and none comes after its deadline
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from random import Random
from typing import Any

from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import AxlogError, UndecidedError
from axlog.evaluate.definition import row_of, valuations
from axlog.future.clock_outlook import ClockOutlook, shown_outputs
from axlog.future.reasons import FINAL
from axlog.future.truth import Outlook
from axlog.query.clock_terms import NOW, has_clock, reads_clock
from axlog.query.normalize import normalise
from axlog.query.pattern import Kind, Pattern, TimeConstraint
from axlog.query.query import Query, parse_query
from axlog.query.steps import clock_of
from axlog.query.truth import Truth
from axlog.query.values import compare_numbers
from axlog.views.change import Row
from axlog.views.clock_questions import ClockQuestions
from axlog.views.window_questions import WindowQuestions, window_of
from lab.laws.absence_cases import (
    AbsenceCase,
    make_absence_case,
    smaller_absences,
    values_to_ask,
)
from lab.laws.absence_law import Shown, bound_for
from lab.laws.questions import QUESTIONS
from lab.reference import agrees
from lab.reference.futures import reachable

_MOST_FUTURES = 25
_MOST_ROWS = 24
_REACH = 14
"""Microseconds after the last message within which every row that can come has come."""
Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ClockTruthCase:
    """A case of law `absence`, and the text of a query about the clock."""

    case: AbsenceCase
    text: str


def make_clock_truth_case(random: Random) -> ClockTruthCase:
    """A random case; a third of them have no `not`."""
    while True:
        case = replace(make_absence_case(random), types="")
        text = case.query
        if random.random() < 0.33:
            text = _without_nots(text)
        names = [name for name in "tus" if f"#{name}" in text]
        body, found, outputs = text.partition(" return ")
        parts = [_constraint(random, names) for _ in range(random.choice((1, 1, 2)))]
        body += (" and " if " where " in body else " where ") + " and ".join(parts)
        text = body + found + outputs
        try:
            query = parse_query(text)
        except AxlogError:
            continue
        if clock_of(query.steps) is not None and shown_outputs(query) is not None:
            return ClockTruthCase(case, text)


def _without_nots(text: str) -> str:
    """The text without its `not(...)` predicates, and without constraints on names inside."""
    while "[not(" in text:
        start = text.index("[not(")
        depth, end = 0, start
        for end in range(start, len(text)):
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            if not depth:
                break
        text = text[:start] + text[end + 1 :]
    body, found, outputs = text.partition(" return ")
    head, where, tail = body.partition(" where ")
    kept = [each for each in tail.split(" and ") if where and "s" not in each.replace("us", "")]
    return head + (f" where {' and '.join(kept)}" if kept else "") + found + outputs


def _constraint(random: Random, names: list[str]) -> str:
    operator = random.choice(("<=", "<=", ">=", ">=", "<", ">", "=", "!="))
    bound = random.choice((0, 1, 2, 3, 5))
    if not names or random.random() < 0.1:
        return f"now {operator} {bound + 3}us"
    name = random.choice(names)
    left = random.choice((f"now - {name}",) * 4 + (f"2*now - {name}", f"{name} - now"))
    return f"{left} {operator} {bound}us"


def smaller_clock_truth(given: ClockTruthCase) -> Iterator[ClockTruthCase]:
    """Cases with fewer steps and facts."""
    for case in smaller_absences(given.case):
        if case.query == given.case.query:
            yield replace(given, case=case)


def check_clock_truth(given: ClockTruthCase) -> Counter[str]:
    """Compare every verdict on a case; return the number of comparisons by name."""
    seen: Counter[str] = Counter()
    tree, query = given.case.tree(), parse_query(given.text)
    try:
        _Check(tree, query, seen).check()
    except UndecidedError as error:
        seen[f"refused {error.code}"] += 1
    return seen


class _Check:
    def __init__(self, tree: Tree, query: Query, seen: Counter[str]) -> None:
        self.tree, self.query, self.seen = tree, query, seen
        clock, outputs = clock_of(query.steps), shown_outputs(query)
        assert clock is not None
        assert outputs is not None
        self.written = replace(clock.written, outputs=outputs)
        self.known = {tree.id(node) for node in tree.subtree(DOCUMENT_NODE)}
        self.outlook = ClockOutlook(tree, query)
        self.bound = bound_for(tree, self.written)
        self.present = self.rows(tree, self.written)
        self.coming, self.shadowed = set(self.present), set[Values]()
        self._try()

    def rows(self, tree: Tree, pattern: Pattern) -> set[Values]:
        """The rows by definition; the id of a future node is None."""
        found = set()
        for valuation in valuations(tree, pattern):
            found.add(self._shown(row_of(tree, pattern, valuation)[1]))
        return found

    def _shown(self, values: Values) -> Values:
        kinds = [output.kind for output in self.written.outputs]
        return tuple(
            None if kind is Kind.ID and value not in self.known else value
            for kind, value in zip(kinds, values, strict=True)
        )

    def _try(self) -> None:
        """Evaluate the query and its shadows on every future."""
        shadows = list(self.outlook.shadows())
        every = list(islice(reachable(self.tree, self.bound), _MOST_FUTURES + 1))
        self.is_complete = len(every) <= _MOST_FUTURES
        for later in every[:_MOST_FUTURES]:
            rows = self._at_any_clock(later)
            shadowed = {row for pattern in shadows for row in self.rows(later, pattern)}
            if not rows <= shadowed:
                raise AssertionError(f"no shadow has {rows - shadowed}")
            self.coming |= rows
            self.shadowed |= shadowed
            self.seen["futures"] += 1

    def _at_any_clock(self, tree: Tree) -> set[Values]:
        found: set[Values] = set()
        start = tree.clock
        if not any(map(has_clock, normalise(self.written).branches)):
            return self._by_times(tree)
        for clock in range(start, start + _REACH):
            tree.clock = clock
            found |= self.rows(tree, self.written)
        tree.clock = start
        return found

    def _by_times(self, tree: Tree) -> set[Values]:
        """The same where `now` stands in no `not`: matches, and their times beside every clock."""
        now = [c for c in self.written.where if isinstance(c, TimeConstraint) and reads_clock(c)]
        plain = replace(self.written, where=tuple(c for c in self.written.where if c not in now))
        found: set[Values] = set()
        for valuation in valuations(tree, plain):
            for clock in range(tree.clock, tree.clock + _REACH):
                times = {name: tree.time(node) for name, node in valuation.names.items()}
                times[NOW] = clock
                sums = [sum(each * times[name] for each, name in c.terms) for c in now]
                pairs = zip(sums, now, strict=True)
                if all(compare_numbers(total, c.operator, c.bound) for total, c in pairs):
                    found.add(self._shown(row_of(tree, plain, valuation)[1]))
                    break
        return found

    def check(self) -> None:
        if self.is_complete and self.outlook.reason is None and self.shadowed != self.coming:
            raise AssertionError(f"shadows have {self.shadowed}, futures {self.coming}")
        choices = [values_to_ask(self.tree, output.kind) for output in self.written.outputs]
        for values in islice(product(*choices), _MOST_ROWS):
            self._status(values)
        self._ends()
        self._possible()
        self._window(list(islice(product(*choices), _MOST_ROWS)))

    def _ends(self) -> None:
        """What ends a row that is there: at its moment the clock does, or nothing ever does."""
        outputs = self.written.outputs
        texts = [n for n, output in enumerate(outputs) if output.kind is Kind.VARIABLE]
        columns = tuple(output.column for output in outputs)
        if any(output.kind is Kind.ID for output in outputs):
            return
        there = [Row(columns, values) for values in self.present]
        questions = ClockQuestions(self.tree, self.query, there, "seconds")
        for known in sorted({tuple(values[n] for n in texts) for values in self.present})[:2]:
            asked = {columns[n]: value for n, value in zip(texts, known, strict=True)}
            wanted = tuple(asked.get(column) for column in columns)
            try:
                found = questions.why_not(asked).reasons
            except UndecidedError:
                continue
            assert found[0].kind == "holds"
            moments = [each.deadline for each in found if each.deadline is not None]
            for moment in moments:
                self._ends_at(wanted, round(float(str(moment)) * 1_000_000))
            if any(each.text == FINAL for each in found):
                self._is_final(asked, wanted)
            self.seen[f"ends {len(found)}"] += 1
            self.seen[QUESTIONS] += 1

    def _ends_at(self, values: Values, moment: int) -> None:
        later = copy.deepcopy(self.tree)
        for clock, is_there in ((moment - 1, True), (moment, False)):
            later.clock = clock
            if any(agrees(row, values) for row in self.rows(later, self.written)) is not is_there:
                raise AssertionError(f"{values} ends at {moment}: not {is_there} at {clock}")
        self.seen["ends by the clock"] += 1

    def _is_final(self, asked: dict[str, Any], wanted: Values) -> None:
        """No future and no clock is without a row that nothing ends."""
        for later in islice(reachable(self.tree, self.bound), _MOST_FUTURES):
            for clock in range(later.clock, later.clock + _REACH):
                later.clock = clock
                if not any(agrees(row, wanted) for row in self.rows(later, self.written)):
                    raise AssertionError(f"nothing ends {asked}, and it is gone at {clock}")
        self.seen["final"] += 1

    def _window(self, asked: list[Values]) -> None:
        """The groups of the same matches are there, and come, while their keys do."""
        outputs = self.written.outputs
        if not outputs or any(output.kind is Kind.ID for output in outputs):
            return
        grouped = parse_query(f"{self.query.text}, count() as n")
        window = window_of(grouped)
        if window is None:
            self.seen["groups refused by name"] += 1  # several matches may be one
            return
        columns = grouped.columns
        there = [Row(columns, (*row, 1)) for row in self.present]
        questions = WindowQuestions(self.tree, grouped, window, there, "seconds")
        for values in asked:
            if any(agrees(row, values) for row in self.present):
                continue
            row = dict(zip(columns, values, strict=False))
            try:
                found = questions.verdict(row)
            except UndecidedError as error:
                self.seen[f"group refused {error.code}"] += 1
                continue
            self._compare(f"the group {row}", found, values)
            self.seen[f"group {found.value}"] += 1

    def _status(self, values: Values) -> None:
        if any(agrees(row, values) for row in self.present):
            return
        asked = dict(zip(self.written.columns, values, strict=True))
        try:
            found = self.outlook.status(asked)
        except UndecidedError as error:
            self.seen[f"row refused {error.code}"] += 1
            return
        self._compare(f"the row {asked}", found, values)
        self.seen[f"row {found.value}"] += 1

    def _compare(self, what: str, found: Truth, values: Values) -> None:
        """Compare a verdict with the futures; a possible row may need one of the analysis."""
        self.seen[QUESTIONS] += 1
        comes = any(agrees(row, values) for row in self.coming)
        if comes is (found is not Truth.NEVER):
            return
        if comes or not self._is_shown(what, values):
            raise AssertionError(f"{what} is {found}, and comes: {comes}")
        self.seen["shown by its future"] += 1

    def _is_shown(self, what: str, values: Values) -> bool:
        """Whether a future that the analysis of a shadow gives has the row at some clock."""
        asked = dict(zip(self.written.columns, values, strict=True))
        for shadow in self.outlook.shadows():
            outlook = Outlook(self.tree, shadow)
            if outlook.status(asked) is Truth.NEVER:
                continue
            for later in Shown(self.tree, shadow, outlook, self.bound).documents(what, values):
                if any(agrees(row, values) for row in self._at_any_clock(later)):
                    return True
        return False

    def _possible(self) -> None:
        try:
            listed = self.outlook.possible(self.present)
        except UndecidedError as error:
            self.seen[f"possible refused {error.code}"] += 1
            return
        self.seen[QUESTIONS] += 1
        rows = [tuple(one.row.values()) for one in listed]
        for row in self.coming - self.present:
            if not any(agrees(row, one) for one in rows):
                raise AssertionError(f"no possible row covers {row}")
        for one in listed:
            values = tuple(one.row.values())
            try:
                found = self.outlook.status(one.row)
            except UndecidedError:
                continue
            if found is Truth.NEVER:
                raise AssertionError(f"the possible row {one} can never come")
            if one.since is not None:
                self._since(values, int(str(one.since)))
            ways = [each.deadline for each in listed if agrees(values, tuple(each.row.values()))]
            if None not in ways and None not in values:  # an unknown value asks for any row
                self._deadline(values, max(int(str(each)) for each in ways))
        self.seen["possible"] += len(rows)

    def _since(self, values: Values, since: int) -> None:
        later = copy.deepcopy(self.tree)
        for clock, wanted in ((since - 1, False), (since, True)):
            later.clock = clock
            if (values in self.rows(later, self.written)) is not wanted:
                raise AssertionError(f"{values} since {since}: not {wanted} at {clock}")
        self.seen["moments"] += 1

    def _deadline(self, values: Values, until: int) -> None:
        """After its deadline a row can neither come nor be there; until then it can."""
        for clock, may in ((until, True), (until + 1, False)):
            if clock < self.tree.clock:
                continue
            later = copy.deepcopy(self.tree)
            later.clock = clock
            there = any(agrees(row, values) for row in self.rows(later, self.written))
            asked = dict(zip(self.written.columns, values, strict=True))
            found = there or ClockOutlook(later, self.query).status(asked) is not Truth.NEVER
            if found is not may:
                raise AssertionError(f"{values} until {until}: found {found} at {clock}")
        self.seen["deadlines"] += 1
