"""The groups of a family whose members differ after the group: in `having` or in a limit.

    rows of the plan, by the texts of members -> Group, once for all members with these texts
        -> the members whose `having` the row of the group passes now, or passed before
        -> their own steps after the group

`having` is compared with constants of members, so these are kept in the order of one of them: ten
thousand thresholds cost a binary search and the members that have a change.

Law 9: a member has the rows and changes that it has alone. What `having` compares decides only
which members get a row of the group; each of them computes its own steps, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from axlog.evaluate.joins import Bag, add, add_all
from axlog.evaluate.native_values import kind_and_key
from axlog.query.general_steps import OrderedHaving, after_group, ordered_having
from axlog.query.generalize import Parameter, ParameterValue, StepParameter
from axlog.query.pattern import Number
from axlog.query.values import ValueKind
from axlog.views.change import Change
from axlog.views.counting.stepped import SteppedCounting
from axlog.views.family import FamilyCounting, FamilyEngine
from axlog.views.operators.group import Group
from axlog.views.parameter_index import OrderedMembers, Place
from axlog.views.step_rows import GroupRows, Stepping, StepRows

if TYPE_CHECKING:
    from axlog.views.family import Member

_ANYWHERE: Place = (0,)


class FamilyGroups:
    """The groups of one family, for each combination of its texts."""

    def __init__(self, kept: FamilyCounting, stepping: Stepping) -> None:
        self.kept = kept
        self.stepping = stepping
        self.having = ordered_having(stepping.key.steps, stepping.key.pattern.columns)
        self._by_texts: dict[Any, TextGroups] = {}

    def made_anew(self, kept: FamilyCounting) -> FamilyGroups:
        """The same for another plan, without members."""
        return FamilyGroups(kept, self.stepping)

    def add(self, member: Member) -> None:
        """Add a member."""
        key = self.kept.index.member_key(member.constants)
        found = self._by_texts.get(key)
        if found is None:
            found = self._by_texts[key] = TextGroups(self, member.constants)
        found.members.add(member, self._place(member.constants), ())

    def remove(self, member: Member) -> None:
        """Remove a member; the last one with its texts takes their groups with it."""
        key = self.kept.index.member_key(member.constants)
        found = self._by_texts[key]
        found.members.remove(member, self._place(member.constants))
        if not found.members:
            del self._by_texts[key]

    def _place(self, constants: Sequence[ParameterValue]) -> Place:
        if self.having is None:
            return _ANYWHERE
        steps = sum(isinstance(each, StepParameter) for each in self.kept.parameters)
        constant = constants[len(constants) - steps + self.having.number]
        assert isinstance(constant, Number)
        return 0, constant.value

    def place_of(self, row: Sequence[Any]) -> Place | None:
        """The place of a group among the constants of members; None: it passes for none."""
        if self.having is None:
            return _ANYWHERE
        kind, key = kind_and_key(row[self.having.position])
        return (0, key) if kind is ValueKind.NUMBER else None

    def of(self, constants: tuple[ParameterValue, ...]) -> TextGroups:
        """The groups of a member with these constants."""
        found = self._by_texts.get(self.kept.index.member_key(constants))
        return TextGroups(self, constants) if found is None else found

    def distribute(self, moved: Bag) -> None:
        """Apply a delta of the plan's rows, and hand the groups that moved to the members."""
        kept, show, deltas = self.kept, self.kept.member_show.values, dict[Any, Bag]()
        for row, count in moved.items():
            key = kept.index.text_key(row)
            if key in self._by_texts:
                add(deltas.setdefault(key, {}), show(kept.pick(row)), count)
        for key, delta in deltas.items():
            if delta:
                self._by_texts[key].take(delta)

    def recount(self) -> None:
        """Compute the groups again when they are next needed."""
        for groups in self._by_texts.values():
            groups.forget()


class TextGroups:
    """The groups of the members with the same texts, which are made when they are needed."""

    __slots__ = ("_all", "_constants", "_group", "_moving", "_path", "members")

    def __init__(self, groups: FamilyGroups, constants: tuple[ParameterValue, ...]) -> None:
        having: OrderedHaving | None = groups.having
        self._all = groups
        self._constants = constants
        self._group: Group | None = None
        self._path: Sequence[Any] = ()
        self._moving: Bag = {}  # the delta that is handed to the members
        self.members: OrderedMembers[Member] = OrderedMembers(
            "=" if having is None else having.symbol
        )

    def forget(self) -> None:
        """Compute the groups again when they are next needed."""
        self._group, self._path = None, ()

    @property
    def group(self) -> Group:
        """The groups, of the rows that the plan had before the current update."""
        if self._group is None:
            kept, stepping = self._all.kept, self._all.stepping
            chain = stepping.chain(stepping.key.pattern.columns, kept.tree.clock)
            at = next(n for n, each in enumerate(chain.operators) if isinstance(each, Group))
            self._path = chain.operators[: at + 1]
            group = chain.operators[at]
            assert isinstance(group, Group)
            self._group = group
            first: Bag = {}
            for row, count in kept.rows_of(self._constants).items():
                add(first, kept.member_show.values(row), count)
            self._apply(first)
        return self._group

    def _apply(self, delta: Bag) -> Bag:
        for operator in self._path:
            if not delta:
                return delta
            delta = operator.apply(0, delta)
        return delta

    def rows(self) -> Bag:
        """The rows of the groups before the current update."""
        found: Bag = dict.fromkeys(self.group.rows(), 1)
        add_all(found, self._moving, -1)
        return found

    def take(self, delta: Bag) -> None:
        """Apply a delta; hand what moved to the members that it concerns."""
        _ = self.group  # with the rows before
        moved, find, place_of = self._apply(delta), self.members.find, self._all.place_of
        self._moving = moved
        handed: dict[Member, Bag] = {}
        for row, count in moved.items():
            for member in find(place_of(row), ()):
                handed.setdefault(member, {})[row] = count
        for member, bag in handed.items():
            self._all.kept.hand(member, bag)
        self._moving = {}


class GroupMember(SteppedCounting):
    """The steps of one member after the group that the family keeps."""

    def _start(self, clock: int) -> None:
        super()._start(clock)
        is_grouped = self._groups is not None
        self.kept = (GroupRows if is_grouped else StepRows)(self.stepping.key, {})
        self._path = self._groups = None  # rows of the group are taken, not those of the pattern

    def _first(self) -> Bag:
        return {}  # a group without keys has its row from the start

    def _load(self, first: Bag) -> None:
        self.kept.take(self.chain.after_group(first))

    def take(self, moved: Bag) -> list[Change]:
        return self.kept.take(self.chain.after_group(moved))

    def operators(self) -> tuple[str, ...]:
        engine = self.engine
        if self.broken is None and isinstance(engine, FamilyEngine):
            self.chain.replace_group(lambda own: engine.group())
        return super().operators()

    def recount(self, whole: Bag) -> None:
        before = self.kept.counts
        self._start(self.chain.clock)
        self._load(whole)
        if self.kept.counts != before:
            raise AssertionError("filters have changed the rows of a view")  # law 5


def shared_groups(kept: FamilyCounting, stepping: Stepping) -> FamilyGroups | None:
    """The groups that the members of a family share; None: each needs its own.

    They share them if all that they differ in is texts, and what stands after the group.
    """
    parameters = kept.parameters
    is_same = all(
        isinstance(each, StepParameter) or (isinstance(each, Parameter) and each.is_text)
        for each in parameters
    )
    if not is_same or not any(isinstance(each, StepParameter) for each in parameters):
        return None
    if not after_group(stepping.key.steps) or kept.member_show.needs_nodes:
        return None
    chain = stepping.chain(stepping.key.pattern.columns, kept.tree.clock)
    return None if chain.steps_to_group() is None else FamilyGroups(kept, stepping)
