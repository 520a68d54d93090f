"""Truth, possible rows and statuses of views with steps: groups, filters, computed values.

The rows of a pattern that belong to one group are its members. A row of the view is there if its
group has a member and the condition of `having` holds. Rows without aggregates are groups without a
condition: every column is a key.

    members now         the rows of the pattern, with all nodes that it binds
    members to come     its scenarios (`truth.py`), each with the number of tuples that it can
                        bring (`group_growth.py`)
    aggregates          their bounds, from both (`group_conditions.py`)

What these bounds do not decide is refused (AX503): never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Protocol

from axlog.document.ids import Id
from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers
from axlog.future.generalized_rows import Need, Values
from axlog.future.grounding import has_not
from axlog.future.group_conditions import GroupFuture, Growth, Interval, Reach
from axlog.future.group_growth import Capacity, capacity_of, has_or_that_binds, most_by_types
from axlog.future.group_members import UNKNOWN, Key, MembersByGroup
from axlog.future.group_steps import GroupSteps
from axlog.future.negation import without_not
from axlog.future.scenarios import is_limited
from axlog.future.truth import Outlook, Possible, Wanted, column_of, possible_rows
from axlog.query.aggregate_patterns import counted_once
from axlog.query.columns import refuse_unknown_columns
from axlog.query.compile import compile_pattern
from axlog.query.pattern import Comparison, Kind, Number, Output, TimeConstraint
from axlog.query.row_key import RowKey
from axlog.query.steps import Scalar
from axlog.query.truth import Truth

Row = Mapping[str, Any]


class Coming(Protocol):
    """The scenarios of the pattern, as groups read them."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def can_be_met(self, values: Values, need: Need) -> bool: ...

    def deadline(self, values: Values, need: Need) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Member:
    """One row of the pattern, present or to come, as the group sees it."""

    base: Mapping[str, Any]  # the outputs of the pattern
    key: Key  # UNKNOWN where data to come decides
    values: Mapping[str, Any]  # the columns that the group reads
    passes: bool | None  # the conditions of `where`; None: data to come decides
    columns: tuple[str, ...] = ()  # of the program; none for a present row
    bound: Values = ()
    need: Need | None = None


class GroupOutlook:
    """Truth, possible rows and the status of single rows, for a document as it is now."""

    def __init__(self, tree: Tree, key: RowKey) -> None:
        self.tree = tree
        self._columns = key.columns
        self._steps = GroupSteps(key)
        pattern = key.pattern
        self._has_not = has_not(pattern)
        self._pattern = counted_once(pattern)
        self._plain = pattern
        program = compile_pattern(self._pattern)
        if program.refusal is not None:
            raise UndecidedError("AX503", f"the analyses do not cover the query: {program.refusal}")
        if program.gathers:
            raise UndecidedError("AX503", "a collected path beside computed values is not covered")

    # Members --------------------------------------------------------------------------------------

    @cached_property
    def _found_members(self) -> MembersByGroup[Member]:
        found: MembersByGroup[Member] = MembersByGroup(self._steps.aggregates)
        for member in self._present:
            if member.passes is True:
                found.add(member.key, member.values)
        for member in self._coming:
            if member.passes is not False:
                found.add_coming(member)
        return found

    @property
    def members(self) -> MembersByGroup[Member]:
        """The members of all groups, present and to come."""
        return self._found_members

    @property
    def _scenarios(self) -> Coming:
        return self._outlook

    @cached_property
    def _present(self) -> list[Member]:
        columns = compile_pattern(self._pattern).root.columns
        return [
            self._member(columns, row, None, is_present=True)
            for row in answers(self.tree, self._pattern)
        ]

    @cached_property
    def _coming(self) -> list[Member]:
        columns = self._outlook.columns
        return [
            self._member(columns, values, need, is_present=False)
            for values, need in self._outlook.met()
            if self._identity(columns, values) not in self._identities
        ]

    @cached_property
    def _identities(self) -> set[Values | None]:
        """The tuples that are there."""
        if self._has_not:  # a row that something excludes now may come by a deletion
            columns = compile_pattern(self._pattern).root.columns
            return {self._identity(columns, row) for row in answers(self.tree, self._pattern)}
        outlook = self._outlook
        return {
            self._identity(outlook.columns, values)
            for values, need in outlook.met()
            if not need.brought
        }

    def _identity(self, columns: Sequence[str], values: Sequence[Any]) -> Values | None:
        """The bound nodes and values of a tuple; None if some are to come."""
        known = dict(zip(columns, values, strict=True))
        found = tuple(known[column_of(output)] for output in self._pattern.outputs)
        return None if None in found else found

    def _member(
        self, columns: Sequence[str], values: Sequence[Any], need: Need | None, *, is_present: bool
    ) -> Member:
        known = dict(zip(columns, values, strict=True))
        if need is not None:
            known |= {c: v for c, v in need.values.pins().items() if known.get(c) is None}
        base = {o.column: self._read(o, known, is_present) for o in self._plain.outputs}
        passes, found = self._steps.before(base)
        key = tuple(found[name] for name in self._steps.keys)
        return Member(base, key, found, passes, tuple(columns), tuple(values), need)

    def _read(self, output: Output, known: Row, is_present: bool) -> Any:
        value = known.get(column_of(output))
        if value is None:
            return UNKNOWN
        if output.kind is Kind.ID:
            return self.tree.id(int(value))
        if output.kind not in (Kind.VAL, Kind.CONT):
            return value
        if int(value) in self._changing:
            raise UndecidedError(
                "AX503", f"{output.column} belongs to a node that a stream may still change"
            )
        node = int(value)
        is_value = output.kind is Kind.VAL
        return self.tree.string_value(node) if is_value else serialise(self.tree, node)

    @cached_property
    def _changing(self) -> set[int]:
        tree = self.tree
        return {n for call in tree.calls().values() for n in tree.ancestors(call)}

    # Groups ---------------------------------------------------------------------------------------

    @cached_property
    def _there(self) -> set[tuple[Any, ...]]:
        """The rows of the view now."""
        names = [output.column for output in self._plain.outputs]
        return self._steps.rows([tuple(m.base[name] for name in names) for m in self._present])

    def _groups(self) -> Iterator[Key]:
        """The keys of the groups that have members, or may get some; UNKNOWN: a new value."""
        yield from self.members.keys()
        if not self._steps.keys and not self.members.has(()):
            yield ()

    def _future(self, key: Key) -> GroupFuture:
        growths = (self._growth(member, key) for member in self.members.coming(key))
        return self._future_with(key, [each for each in growths if each is not None])

    def _future_with(self, key: Key, growths: Sequence[Growth]) -> GroupFuture:
        """The future of a group in which some scenarios come about."""
        tree = self.tree
        calls = [tree.call(node) for node in tree.calls().values()]
        is_wild = self._has_not or any(call.replace is not None for call in calls)
        may_delete = any(call.deletes != "no" for call in calls)
        is_timed = any(isinstance(each, TimeConstraint) for each in self._pattern.where)
        is_free = not (
            is_limited(tree)
            or tree.facts
            or tree.types is not None
            or (is_timed and any(call.mode == "one-shot" for call in calls))
        )
        return GroupFuture(
            self._steps.aggregates, self.members.there(key), growths,
            may_delete=may_delete, is_wild=is_wild, is_free=is_free,
            limit=most_by_types(tree.types, self._pattern), single=self._single,
        )  # fmt: skip

    @cached_property
    def _single(self) -> frozenset[str]:
        """The arguments of aggregates that show a key, so that a group has one value of each."""
        steps = self._steps
        keys = {self._column_of(name) for name in steps.keys} - {None}
        return frozenset(
            each for each in steps.arguments if each in steps.keys or self._column_of(each) in keys
        )

    @cached_property
    def _node_keys(self) -> frozenset[str]:
        """The keys that are ids of nodes."""
        ids = {output.column for output in self._plain.outputs if output.kind is Kind.ID}
        return frozenset(name for name in self._steps.keys if self._steps.plain.get(name) in ids)

    def _growth(self, member: Member, key: Key) -> Growth | None:
        """What a scenario can add to a group; None: nothing."""
        if member.passes is False or member.need is None:
            return None
        pins = {}
        is_sure = member.passes is True and not self._has_not
        known = dict(zip(member.columns, member.bound, strict=True))
        for name, mine, asked in zip(self._steps.keys, member.key, key, strict=True):
            if mine is not UNKNOWN:
                if mine != asked:
                    return None
                continue
            column = self._column_of(name)
            if name in self._node_keys:
                if asked is not UNKNOWN:
                    return None  # a node to come is not the one that is there
            elif column is None:  # a computed key
                is_sure = False
            elif asked is UNKNOWN:
                known[column] = UNKNOWN  # a value of its own
            else:
                pins[column] = known[column] = asked
        if pins:
            values = tuple(known[c] if c in pins else v for c, v in
                           zip(member.columns, member.bound, strict=True))  # fmt: skip
            if not self._scenarios.can_be_met(values, member.need):
                return None
            identity = self._identity(member.columns, values)
            if identity is not None and identity in self._identities:
                return None  # an `or` brings this tuple once
        columns = map(self._column_of, self._steps.arguments)
        arguments = frozenset(column for column in columns if column is not None)
        capacity = capacity_of(self.tree, member.need, known, arguments)
        if has_or_that_binds(self._pattern):
            capacity = Capacity(inf, 1, 0, False)
        names = frozenset(
            each
            for each in self._steps.arguments
            if self._column_of(each) in member.need.values.names
        )
        bound = zip(member.columns, member.bound, strict=True)
        present = tuple(value for column, value in bound if column.endswith(".node"))
        return Growth(
            is_sure, capacity, member.need.brought, present,
            self._arguments(member, pins), self._ranges(member), names,
        )  # fmt: skip

    @cached_property
    def _outlook(self) -> Outlook:
        return Outlook(self.tree, without_not(self._pattern) if self._has_not else self._pattern)

    def _column_of(self, name: str) -> str | None:
        """The column of the program that a key or an argument shows as it is."""
        base = self._steps.plain.get(name)
        output = next((o for o in self._plain.outputs if o.column == base), None)
        if output is None or output.kind in (Kind.VAL, Kind.CONT, Kind.ID):
            return None
        return column_of(output)

    def _arguments(self, member: Member, pins: Row) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in self._steps.arguments:
            value = member.values[each]
            column = self._column_of(each)
            is_given = value is UNKNOWN and column is not None and column in pins
            found[each] = pins[column or ""] if is_given else value
        return found

    def _ranges(self, member: Member) -> dict[str, Interval]:
        """The numbers that unknown arguments may have, where these are plain variables."""
        assert member.need is not None
        needs = member.need.values
        found: dict[str, Interval] = {}
        for each in self._steps.arguments:
            column = self._column_of(each)
            if column is None or not column.startswith("$") or column in needs.names:
                continue
            compared = [c for name, c in needs.compared if name == column]
            if any(not _is_number_test(c) for c in compared):
                continue
            if any(column in pair for pair in needs.same):
                continue
            found[each] = Interval.of(compared)
        return found

    # Verdicts -------------------------------------------------------------------------------------

    @property
    def truth(self) -> Truth:
        """Whether some row exists, can appear, or can never appear."""
        return self.status({})

    def status(self, row: Row) -> Truth:
        """The truth of one row. Columns left out may have any value."""
        refuse_unknown_columns(self._columns, row)
        asked = {self._columns.index(name): value for name, value in row.items()
                 if value is not None}  # fmt: skip
        if any(all(_same(each[at], v) for at, v in asked.items()) for each in self._there):
            return Truth.TRUE
        return self._coming_status({self._columns[at]: value for at, value in asked.items()})

    @property
    def condition(self) -> str:
        """The condition of `having`, in words."""
        return self._steps.said

    def status_without_having(self, row: Row) -> Truth:
        """The truth of a row if groups needed to meet no condition."""
        given = self._steps.asked(row)[1]
        return self._verdict(given, [])

    def _coming_status(self, row: Row) -> Truth:
        conditions, given = self._steps.asked(row)
        return self._verdict(given, [*self._steps.having, *conditions])

    def _verdict(self, given: Row, conditions: Sequence[Scalar]) -> Truth:
        """Whether a group with these key values can come to meet conditions."""
        problem: UndecidedError | None = None
        for key in self._asked_groups(given):
            try:
                found = self._reach(key, conditions)
            except UndecidedError as error:
                problem = error
                continue
            if found is Reach.YES:
                return Truth.POSSIBLE
            if found is Reach.UNSURE:
                problem = self._undecided()
        if problem is not None:
            raise problem
        return Truth.NEVER

    def _asked_groups(self, given: Row) -> Iterator[Key]:
        """The groups that agree with some values of their keys."""
        names = self._steps.keys
        found: dict[Key, None] = {}
        for key in self._groups():
            asked = [given.get(name, UNKNOWN) for name in names]
            if all(
                a is UNKNOWN or k is UNKNOWN or _same(k, a) for a, k in zip(asked, key, strict=True)
            ):
                filled = (a if k is UNKNOWN else k for a, k in zip(asked, key, strict=True))
                found[tuple(filled)] = None
        yield from found

    def _reach(self, key: Key, every: Sequence[Scalar]) -> Reach:
        future = self._future(key)
        found = future.can_hold(every, needs_member=bool(self._steps.keys))
        if found is not Reach.UNSURE or every or not self._has_not:
            return found
        return self._reach_beside_not(key)

    def _reach_beside_not(self, key: Key) -> Reach:
        """Whether a group of a query with `not` can get a member."""
        pins: dict[str, Any] = {}
        outlook = Outlook(self.tree, self._plain)
        for name, value in zip(self._steps.keys, key, strict=True):
            base = self._steps.plain.get(name)
            if base is None:
                return Reach.UNSURE
            if value is not UNKNOWN:
                pins[base] = value
        if self._steps.has_conditions:
            return Reach.UNSURE
        return Reach.NO if outlook.status(pins) is Truth.NEVER else Reach.YES

    def _undecided(self) -> UndecidedError:
        what = self._steps.said
        return UndecidedError(
            "AX503",
            f"whether {what} can come to hold is not decided: it depends on how many rows come, or"
            " on their values",
            advice="ask a view with a condition that only data can make true, such as count() >= 2",
        )

    def possible(self) -> list[Possible]:
        """The rows of groups that are not there and can appear, each with its needs."""
        names = list(self._columns)
        shown = {name: self._steps.shown_key(name) for name in names}
        there = {tuple(row[names.index(n)] for n in names if shown[n] is not None)
                 for row in self._there}  # fmt: skip
        ways: list[tuple[tuple[Any, ...], Iterable[Wanted], int | None]] = []
        for key in self._groups():
            values = dict(zip(self._steps.keys, key, strict=True))
            row = tuple(_known(values[k]) if (k := shown[n]) is not None else None for n in names)
            if tuple(v for n, v in zip(names, row, strict=True) if shown[n] is not None) in there:
                continue
            found = self._reach(key, self._steps.having)
            if found is Reach.UNSURE:
                raise self._undecided()
            if found is Reach.YES:
                ways += [(row, *way) for way in self._ways(key)]
        return possible_rows(self._columns, ways)

    def ways(self, row: Row) -> list[Possible]:
        """The scenarios that add to the groups of a row with these values."""
        conditions, given = self._steps.asked(row)
        shown = {self._steps.shown_key(name): name for name in self._columns}
        ways: list[tuple[tuple[Any, ...], Iterable[Wanted], int | None]] = []
        for key in self._asked_groups(given):
            if self._reach(key, [*self._steps.having, *conditions]) is Reach.YES:
                values = {shown.get(k): v for k, v in zip(self._steps.keys, key, strict=True)}
                one = tuple(_known(values.get(name, UNKNOWN)) for name in self._columns)
                ways += [(one, *way) for way in self._ways(key)]
        return possible_rows(self._columns, ways)

    def _ways(self, key: Key) -> Iterator[tuple[list[Wanted], int | None]]:
        """The needs and deadlines of the scenarios that add to a group; none: by a deletion."""
        is_some = False
        for member in self.members.coming(key):
            if self._growth(member, key) is not None:
                assert member.need is not None
                needs = [Wanted(s, str(relation.node)) for relation, s in member.need.brought]
                is_some = True
                yield needs, self._scenarios.deadline(member.bound, member.need)
        if not is_some:
            yield [], None


def _is_number_test(each: Comparison) -> bool:
    return isinstance(each.operand, Number) or each.operator == "!="


def _known(value: Any) -> Any:
    return None if value is UNKNOWN else value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Id) or isinstance(other, Id):
        return str(one) == str(other)
    return bool(one == other)
