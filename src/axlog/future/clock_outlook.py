"""Truth and possible rows of queries about the clock.

A query about the clock has a row at a future clock T. The clock only advances, so T is at or after
the clock and at or after the times of all data that the row uses. The constraints with `now` bound
T from below and from above by sums of times. A T exists if every lower bound is at most every upper
bound: these comparisons name no clock any more, and with them in place of `now` the query is a
pattern that `Outlook` decides, the shadow of the query:

    now - t >= 2h        no upper bound: every match will hold
    now - t <= 1h        clock <= t + 1h, and later data no later than t + 1h

A row that is there is TRUE. A row of the shadow is POSSIBLE, although it needs no more data: time
brings it. If the shadow can never have the row, it is NEVER.

A `not` about the clock that ends by itself, because its constraints bound the clock from above
("no beat in the last five minutes"), delays a row but does not prevent it, if nothing else bounds
the clock from above. Any other `not` about the clock, `now` with a factor other than 1, and
comparisons of the clock with values are decided only where the query without them is NEVER.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, product
from typing import Any, TypeAlias

from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers
from axlog.future.truth import Outlook, Possible, Wanted, column_of, possible_rows, row_of
from axlog.query.clock_spans import Spans, common_spans, holds_at, spans_of
from axlog.query.clock_steps import split_clock
from axlog.query.compile import compile_pattern
from axlog.query.pattern import Branch, Kind, Not, Or, Output, Pattern, PatternNode, TimeConstraint
from axlog.query.query import Query
from axlog.query.steps import Clock, ClockTest, Compute, clock_of
from axlog.query.syntax_tree import Reference
from axlog.query.truth import Truth
from axlog.query.values import mirrored


@dataclass(frozen=True, slots=True)
class _Bound:
    """A bound of the clock: a sum of times with coefficients, and a number of microseconds."""

    times: tuple[tuple[int, str], ...]
    microseconds: int


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of the clock that a conjunction of conditions gives."""

    lower: tuple[_Bound, ...] = ()
    upper: tuple[_Bound, ...] = ()


_FoundWay: TypeAlias = tuple[tuple[Any, ...], tuple[Wanted, ...], int | None]
"""The values that a way shows, what it needs, and its deadline."""


def shown_outputs(query: Query) -> tuple[Output, ...] | None:
    """The outputs of a query whose only step is about the clock; None if it has other steps."""
    steps = query.steps
    if len(steps) != 2 or not isinstance(steps[0], Clock) or not isinstance(steps[1], Compute):
        return None
    by_column = {output.column: output for output in query.pattern.outputs}
    found: list[Output] = []
    for cell in steps[1].cells:
        if not isinstance(cell.expression, Reference):
            return None
        found.append(replace(by_column[cell.expression.name], alias=cell.name))
    return tuple(found)


def lower_bounds(query: Query) -> tuple[ClockTest, ...] | None:
    """The tests of a query whose matches time brings, and never takes away; None: not such a query.

    Every constraint with `now` bounds it from below.
    """
    clock = clock_of(query.steps)
    if clock is None or clock.unless or shown_outputs(query) is None:
        return None
    for test in clock.tests:
        if test.value is not None or abs(test.factor) != 1:
            return None
        if test.operator == "!=" or _bounds_above(test):
            return None
    return tuple(clock.tests)


def first_moment(tests: Iterable[ClockTest], times: Mapping[str, Any], clock: int) -> int | None:
    """The first moment after the clock at which tests hold; None: they hold, or never will.

    `times`: the values of the columns that the tests name.
    """
    return _since(_spans(tests, times), clock)


def _spans(tests: Iterable[ClockTest], times: Mapping[str, Any]) -> Spans:
    """The clock times at which tests hold."""
    return common_spans(
        spans_of(
            test.factor,
            test.operator,
            test.bound - sum(each * int(times[column]) for each, column in test.terms),
        )
        for test in tests
    )


class ClockOutlook:
    """Truth, possible rows and statuses of a query about the clock, for a document as it is now."""

    def __init__(self, tree: Tree, query: Query) -> None:
        """Raises AX502 if the query has other steps than the one about the clock."""
        outputs, clock = shown_outputs(query), clock_of(query.steps)
        if outputs is None or clock is None:
            raise UndecidedError(
                "AX502",
                "the future of a view about the clock with aggregates, computed values or an order"
                " is not decided",
                advice="ask the view of the pattern alone",
            )
        self.tree, self._query = tree, query
        self._after: dict[int, list[_FoundWay]] = {}  # how data may bring rows after some moments
        self._outputs = outputs
        split = split_clock(clock.written)
        self._base = split.pattern
        self._tests = tuple(test for test in clock.tests if test.value is None)
        self._has_unless = bool(clock.unless)
        self.reason = self._why_undecided(clock)
        """Why only NEVER is decided; None if everything is."""

    def _why_undecided(self, clock: Clock) -> str | None:
        if len(self._tests) < len(clock.tests):
            return "it compares the clock with values"
        if any(abs(test.factor) != 1 for test in self._tests):
            return "`now` has a factor"
        if not clock.unless:
            return None
        if not all(any(map(_bounds_above, each.clock.tests)) for each in clock.unless):
            return "a `not` about the clock may last"
        if any(map(_bounds_above, self._tests)):
            return "a `not` about the clock may outlast a row"
        return None

    # Verdicts -------------------------------------------------------------------------------------

    @property
    def truth(self) -> Truth:
        """POSSIBLE or NEVER, for a view without rows."""
        return self._verdict(each.truth for each in self._shadows)

    def status(self, row: Mapping[str, Any]) -> Truth:
        """POSSIBLE or NEVER, for a row that is not there. Columns left out may have any value."""
        return self._verdict(each.status(row) for each in self._shadows)

    def _verdict(self, found: Iterable[Truth]) -> Truth:
        if all(each is Truth.NEVER for each in found):
            return Truth.NEVER
        self._refuse()
        return Truth.POSSIBLE

    def _refuse(self) -> None:
        if self.reason is not None:
            raise UndecidedError(
                "AX502",
                f"the future of this view about the clock is not decided: {self.reason}",
                advice="rows are exact; ask the view without this condition",
            )

    def possible(self, there: Iterable[tuple[Any, ...]]) -> list[Possible]:
        """The rows that may still come; `there` are those that hold now.

        A row that waits for the clock alone has no needs, and the moment from which it holds.
        """
        self._refuse()
        if any(map(_bounds_above, self._tests)) and _has_choice(self._base.branches):
            raise UndecidedError(
                "AX502",
                "the deadlines of rows with an `or` and an upper bound of `now` are not decided",
                advice="ask the status of rows",
            )
        known = set(there)
        columns, ways = self._pattern(self._base, ()).columns, self._ways
        waiting = {row: spans for row, spans in self._waiting.items() if row not in known}
        covered = known | waiting.keys()
        found = [
            replace(one, row=dict(one.row))
            for one in possible_rows(columns, ways)
            if tuple(one.row.values()) not in covered
        ]
        listed = [tuple(one.row.values()) for one in found]
        for row, (since, until) in waiting.items():
            named = dict(zip(columns, row, strict=True))
            if until is not None and not any(agrees(row, more) for more in listed):
                until = self._by_data_after(row, until)
            found.append(Possible(named, (), until, since))
        return sorted(found, key=lambda one: repr(tuple(one.row.values())))

    def _by_data_after(self, row: tuple[Any, ...], until: int) -> int | None:
        """The deadline of a row that time brings until a moment, and that data may bring later."""
        if not self.tree.calls():
            return until
        later = self._after.get(until)
        if later is None:
            tree = self.tree.copied()
            tree.clock = until + 1
            later = self._after[until] = ClockOutlook(tree, self._query)._ways
        ends = [end for values, _, end in later if agrees(row, values)]
        return None if None in ends else max([until, *(end for end in ends if end is not None)])

    @cached_property
    def _ways(self) -> list[_FoundWay]:
        """How data may bring rows, and until when."""
        return [
            (
                tuple(one.row.values()),
                one.needs,
                None if one.deadline is None else int(str(one.deadline)),
            )
            for shadow in self._timely
            for one in shadow.possible()
        ]

    # Rows that time alone brings ------------------------------------------------------------------

    @cached_property
    def _waiting(self) -> dict[tuple[Any, ...], tuple[int | None, int | None]]:
        """The matches that will hold: since when, and until when (the last moment; None: open).

        A `not` about the clock leaves the beginning open.
        """
        tree, clock = self.tree, self.tree.clock
        timed = [Output(Kind.TIME, name) for name in _names(self._tests)]
        pattern = replace(self._pattern(self._base, ()), outputs=(*self._outputs, *timed))
        pattern = replace(
            pattern, outputs=tuple(replace(o, alias=f"{n}~") for n, o in enumerate(pattern.outputs))
        )
        columns = compile_pattern(pattern).root.columns
        places = [columns.index(column_of(output)) for output in pattern.outputs]
        shown = self._pattern(self._base, ())
        found: dict[tuple[Any, ...], tuple[int | None, int | None]] = {}
        has_unless = self._has_unless
        for row in answers(tree, pattern):
            values = [row[at] for at in places]
            named = row_of(tree, shown, columns, row)
            times = dict(zip((o.of for o in timed), values[len(self._outputs) :], strict=True))
            spans = _spans(self._tests, {f"{name}.time": int(at) for name, at in times.items()})
            since = None if has_unless else _since(spans, clock)
            if has_unless or since is not None:
                key = tuple(named.values())
                until = None if has_unless or spans[-1][1] is None else int(spans[-1][1]) - 1
                found[key] = _wider(found.get(key), (since, until))
        return found

    # Shadows --------------------------------------------------------------------------------------

    def shadows(self) -> Iterator[Pattern]:
        """The query without `now`: the patterns whose rows can hold at some clock."""
        return self._patterns(self._base)

    @cached_property
    def _shadows(self) -> list[Outlook]:
        """The patterns that the query is a shadow of, one for each side of a `!=`."""
        return [Outlook(self.tree, pattern) for pattern in self._patterns(self._base)]

    @cached_property
    def _timely(self) -> list[Outlook]:
        """The same, where later data must come while the clock is within its upper bounds."""
        base = self._base
        if any(map(_bounds_above, self._tests)):
            base = replace(base, branches=_with_named_leaves(base))
        return [Outlook(self.tree, pattern) for pattern in self._patterns(base)]

    def _patterns(self, base: Pattern) -> Iterator[Pattern]:
        """The query without `now`, as one pattern for each choice of a side of a `!=`."""
        tests = [test for test in self._tests if abs(test.factor) == 1]
        for chosen in product(*(_sides(test) for test in tests)):
            bounds = _bounds_of(chosen)
            names = _plain_names(base.branches) if bounds.upper else []
            lower = [*bounds.lower, _Bound((), self.tree.clock)]
            lower += [_Bound(((1, name),), 0) for name in names]
            made = [_at_most(low, high) for low in lower for high in bounds.upper]
            if False not in made:
                more = [each for each in made if isinstance(each, TimeConstraint)]
                yield self._pattern(base, list(dict.fromkeys(more)))

    def _pattern(self, base: Pattern, more: Sequence[TimeConstraint]) -> Pattern:
        return Pattern(base.branches, (*base.where, *more), self._outputs)


# Bounds -------------------------------------------------------------------------------------------


def _bounds_above(test: ClockTest) -> bool:
    """Whether a test bounds the clock from above."""
    operator = test.operator if test.factor > 0 else mirrored(test.operator)
    return operator in ("<", "<=", "=")


def _sides(test: ClockTest) -> list[ClockTest]:
    if test.operator != "!=":
        return [test]
    return [replace(test, operator="<"), replace(test, operator=">")]


def _bounds_of(tests: Iterable[ClockTest]) -> _Bounds:
    """The bounds of the clock, whose factor is 1 or -1 in every test."""
    lower: list[_Bound] = []
    upper: list[_Bound] = []
    for test in tests:
        sign = test.factor
        operator = test.operator if sign > 0 else mirrored(test.operator)
        times = tuple((-sign * each, column.removesuffix(".time")) for each, column in test.terms)
        amount = sign * test.bound
        if operator in (">", ">=", "="):
            lower.append(_Bound(times, amount + (operator == ">")))
        if operator in ("<", "<=", "="):
            upper.append(_Bound(times, amount - (operator == "<")))
    return _Bounds(tuple(lower), tuple(upper))


def _at_most(low: _Bound, high: _Bound) -> TimeConstraint | bool:
    """`low <= high` as a constraint; a truth value if it names no time."""
    terms: dict[str, int] = {}
    for sign, bound in ((1, high), (-1, low)):
        for each, name in bound.times:
            terms[name] = terms.get(name, 0) + sign * each
    amount = low.microseconds - high.microseconds
    kept = tuple((each, name) for name, each in terms.items() if each)
    return TimeConstraint(kept, ">=", amount) if kept else amount <= 0


def _since(spans: Spans, clock: int) -> int | None:
    """The first moment after the clock at which spans contain it, if they do not contain it now."""
    if holds_at(spans, clock):
        return None
    return next((start for start, _ in spans if start is not None and start > clock), None)


def _wider(
    known: tuple[int | None, int | None] | None, more: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """The earliest beginning and the latest end of two."""
    if known is None:
        return more
    starts = [each for each in (known[0], more[0]) if each is not None]
    ends = (known[1], more[1])
    until = None if None in ends else max(each for each in ends if each is not None)
    return min(starts, default=None), until


def agrees(row: tuple[Any, ...], more: tuple[Any, ...]) -> bool:
    """Whether a row is among those that another one, with unknown values, stands for."""
    return all(known is None or known == value for value, known in zip(row, more, strict=True))


# Names --------------------------------------------------------------------------------------------


def _names(tests: Iterable[ClockTest]) -> list[str]:
    found = {column.removesuffix(".time"): None for test in tests for _, column in test.terms}
    return list(found)


def _plain_names(branches: Iterable[Branch]) -> list[str]:
    """The names of nodes outside of `or`, `not` and `collect`."""
    found: list[str] = []
    for branch in branches:
        if isinstance(branch, PatternNode):
            found += [] if branch.name is None else [branch.name]
            found += _plain_names(branch.branches)
    return found


def _has_choice(branches: Iterable[Branch]) -> bool:
    """Whether a pattern has an `or` outside of its `not`s."""
    return any(
        isinstance(each, Or) or (isinstance(each, PatternNode) and _has_choice(each.branches))
        for each in branches
    )


def _with_named_leaves(pattern: Pattern) -> tuple[Branch, ...]:
    """The branches with a name for the last node of every path: no node of it is later."""
    taken = {node.name for node in pattern.nodes()}
    fresh = (name for n in count(1) if (name := f"leaf~{n}") not in taken)

    def named(branch: Branch) -> Branch:
        if not isinstance(branch, PatternNode):
            return branch
        below = tuple(map(named, branch.branches))
        is_leaf = all(isinstance(each, Not) for each in below)
        name = next(fresh) if is_leaf and branch.name is None else branch.name
        return replace(branch, name=name, branches=below)

    return tuple(map(named, pattern.branches))
