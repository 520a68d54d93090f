"""Families: views that differ in constants, kept by one plan (docs/design.md, Shared plans).

    general pattern -> rows with the values of the parameters -> parameter index -> members

The general view is an ordinary counting view: its program has one place in the engine, one matcher
and one set of joins, whatever the number of members. `FamilyCounting` hands each delta of its root
relation to the members that it concerns, as deltas of their own root relations. From there on a
member is an ordinary maintainer, with its own counts and steps, over a `FamilyEngine` in place of
the counting engine.

A member without rows is one small object. Its view is made when it gets a row or is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.errors import QueryError
from axlog.evaluate.joins import Bag, Row, add, picker
from axlog.query.compile import Program, Relation, compile_pattern
from axlog.query.generalize import AnyParameter, Parameter, ParameterValue
from axlog.query.pattern import Pattern
from axlog.query.query import Query
from axlog.views.change import Change
from axlog.views.change import Row as ShownRow
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.maintainer import Counting, Showing
from axlog.views.member_moments import MemberMoments
from axlog.views.parameter_index import ParameterIndex

if TYPE_CHECKING:
    from axlog.evaluate.work import Member as MeteredMember
    from axlog.views.family_groups import FamilyGroups
    from axlog.views.operators.group import Group
    from axlog.views.view import MaintainedView

Load = Callable[[Bag], None]
Emitted: TypeAlias = "list[tuple[MaintainedView, list[Change] | ShownRow]]"
"""Views of members with the changes of an update that are not numbered yet; a row: it came."""


class Member:
    """One view of a family: a row of its parameter table."""

    __slots__ = ("constants", "family", "language", "make", "name", "query", "view")

    def __init__(
        self,
        name: str,
        query: Query | str,
        language: str | None,
        constants: tuple[ParameterValue, ...],
        family: FamilyCounting,
        make: Callable[[Member], MaintainedView],
    ) -> None:
        self.name = name
        self.query = query  # a text is parsed when the view needs it
        self.language = language
        self.constants = constants
        self.family = family
        self.make = make
        self.view: MaintainedView | None = None

    def opened(self) -> MaintainedView:
        """The view itself, made when it is first needed."""
        if self.view is None:
            self.view = self.make(self)
        return self.view

    def may_have_rows(self) -> bool:
        """Whether it may have rows. Its view is not made to find out."""
        return self.view is not None or self.family.may_have_rows(self.constants)


class JoinOfMembers(Protocol):
    """The join of a family, which judges rows for each member (`family_join.py`)."""

    def admit(self, member: Member) -> None:
        """Add a member."""

    def dismiss(self, member: Member) -> None:
        """Remove a member."""

    def has_stopped(self, member: Member, part: int | None, is_after: bool) -> bool:
        """Whether a member that could get rows has no match that has begun.

        `part`: the part that no stream feeds any more. `is_after`: whether the instant of its end
        has passed, which is of interest where rows may have waited for it.
        """

    def never(self, ended: Iterable[Any]) -> Mapping[Member, list[Change]]:
        """The `never` changes of members, for what ended at the join."""


class FamilyCounting(Counting):
    """Keeps the rows of a general pattern, and hands them to the members of the family."""

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        parameters: tuple[AnyParameter, ...],
        member_pattern: Pattern,
        engine: CountingEngine,
        emitted: Emitted,
    ) -> None:
        """`member_pattern`: the pattern of some member; the outputs of all are the same.

        `emitted` gets the changes of members, which their views number later.
        """
        self.parameters = parameters
        self.has_steps = False  # whether members compute their rows from those of the plan
        self.awaits_time = False  # whether time brings rows to members, and takes none away
        self.is_followed = True  # whether the changes of the general view are read
        self.is_settled = False  # whether its join was chosen to give `never` changes: it pays off
        self.member_pattern = member_pattern
        self.member_program = compile_pattern(member_pattern)
        self.member_show = Showing(tree, self.member_program)  # one for all members
        self._groups: dict[Any, dict[Row, None]] = {}  # rows by the texts of their parameters
        self._deltas: dict[Member, Bag] = {}  # of the current update, where rows show nodes
        self._rereads = False  # whether `reread` follows, and hands these deltas to the members
        self.emitted = emitted
        self.stopped: list[Member] = []  # members that the current update left without a future
        self.stopped_at: int | None = None  # the instant that had to pass for this
        self._began_before: dict[Member, None] | None = None
        """The members while matches could begin; None: not known, all of them."""
        self.stopping: list[FamilyCounting] = []  # the families of the document with such members
        self.members: dict[str, Member] = {}
        self.join: JoinOfMembers | None = None  # where it gives `never` changes member by member
        self.never: dict[Member, list[Change]] = {}  # of the current update, by this join
        self.moments: MemberMoments | None = None  # where rows of members depend on the clock
        self.groups: FamilyGroups | None = None  # where members differ after their group only
        columns = compile_pattern(pattern).root.columns
        self.index: ParameterIndex[Member] = ParameterIndex(parameters, columns)
        super().__init__(tree, pattern, engine)
        self.pick = picker([columns.index(c) for c in self.member_program.root.columns])

    def made_anew(self, engine: CountingEngine) -> FamilyCounting:
        """The same for another engine over the same tree, without members."""
        pattern, parameters = self.pattern, self.parameters
        made = FamilyCounting(
            self.tree, pattern, parameters, self.member_pattern, engine, self.emitted
        )
        made.has_steps, made.stopping = self.has_steps, self.stopping
        made.awaits_time, made.is_settled = self.awaits_time, self.is_settled
        made.groups = None if self.groups is None else self.groups.made_anew(made)
        made.moments = None if self.moments is None else MemberMoments(self.tree)
        return made

    # The parameter table --------------------------------------------------------------------------

    def admit(self, member: Member) -> None:
        """Insert the row of a member; `rows_of` are its first rows."""
        self.engine.build(self.root)
        self.members[member.name] = member
        self.index.add(member, member.constants)
        if self.groups is not None:
            self.groups.add(member)
        if self.join is not None:
            self.join.admit(member)

    def note(self, member: Member) -> None:
        """Note when time changes rows of a member that has a view or may have rows.

        Rows that show nodes are read now: an update may change the nodes, or delete them.
        """
        is_read = self.moments is not None or self._keeps_values
        if is_read and member.view is None and self.rows_of(member.constants):
            member.opened()
        if self.moments is not None and member.view is not None:
            self.moments.note(member)

    def dismiss(self, member: Member) -> None:
        """Delete the row of a member."""
        del self.members[member.name]
        self.index.remove(member, member.constants)
        if self.groups is not None:
            self.groups.remove(member)
        if self.join is not None:
            self.join.dismiss(member)
        if self.moments is not None:
            self.moments.forget(member)

    def rows_of(self, constants: tuple[ParameterValue, ...]) -> Bag:
        """The root relation of a member with these constants, read off the rows of all."""
        self.engine.build(self.root)
        found: Bag = {}
        for row in self._groups.get(self.index.member_key(constants), ()):
            if self.index.passes(constants, row):
                add(found, self.pick(row), self._counts[row])
        return found

    def first_rows(self, constants: tuple[ParameterValue, ...]) -> Bag:
        """The first rows of a member with these constants: of the plan, or of its groups."""
        if self.groups is not None:
            return self.groups.of(constants).rows()
        return self.rows_of(constants)

    def may_have_rows(self, constants: tuple[ParameterValue, ...]) -> bool:
        """Whether a member with these constants may have rows: an aggregate of nothing is one."""
        if self.has_steps or self.broken is not None:
            return True
        self.engine.build(self.root)
        group = self._groups.get(self.index.member_key(constants), ())
        return any(self.index.passes(constants, row) for row in group)

    # Rows -----------------------------------------------------------------------------------------

    def _enter(self, binding: Row) -> tuple[Any, ...]:
        self._groups.setdefault(self.index.text_key(binding), {})[binding] = None
        return super()._enter(binding) if self.is_followed or self._keeps_values else ()

    def _leave(self, binding: Row) -> tuple[Any, ...]:
        key = self.index.text_key(binding)
        group = self._groups[key]
        del group[binding]
        if not group:
            del self._groups[key]
        return super()._leave(binding)

    def take(self, moved: Bag) -> list[Change]:
        self._distribute(moved)  # first: a view that is made now starts with the rows before
        if self.is_followed:
            return super().take(moved)
        counts = self._counts
        for row, count in moved.items():
            old = counts.get(row, 0)
            new = old + count
            if new:
                counts[row] = new
            if not old:
                self._enter(row)
            elif not new:
                del counts[row]
                self._leave(row)
        self.version += 1
        return []

    def _distribute(self, moved: Bag) -> None:
        if self.groups is not None:
            self.groups.distribute(moved)
            return
        find, pick = self.index.find, self.pick
        if len(moved) == 1 and not self._show.reads:
            ((row, count),) = moved.items()
            members = find(row)
            if members:
                self._hand_row(members, pick(row), count)
            return
        deltas: dict[Member, Bag] = {}
        self._deltas = deltas
        for row, count in moved.items():
            for member in find(row):
                add(deltas.setdefault(member, {}), pick(row), count)
        for member, delta in deltas.items():
            if self._rereads:
                member.opened()
            elif delta:
                self.hand(member, delta)

    def _hand_row(self, members: Iterable[Member], binding: Row, count: int) -> None:
        """Hand one row to members."""
        emit, like, is_plain = self.emitted.append, None, not self._keeps_values
        for member in members:
            view = member.view
            if view is None:
                view = member.opened()
            kept = view.maintainer
            if type(kept) is not Counting:  # it has steps, or was set aside
                self.hand(member, {binding: count})
                continue
            if like is not None and binding not in kept._counts and is_plain:
                kept._counts[binding] = count  # runs for every member that a row concerns
                kept.version += 1
                emit((view, like))
                continue
            moved = kept.take_row(binding, count)
            if moved is None:
                continue
            if isinstance(moved, Change):
                emit((view, [moved]))
            else:
                like = moved
                emit((view, moved))

    def hand(self, member: Member, delta: Bag, touched: set[int] | None = None) -> None:
        """Hand a member the delta of its first rows, and the nodes whose value may have changed."""
        view, moments = member.opened(), self.moments
        if isinstance(view.maintainer, Counting):  # else it was set aside
            if moments is not None:
                view.maintainer.pass_time(moments.clock)
            kept = view.maintainer
            changes = kept.take(delta) if touched is None else kept.take_read(delta, touched)
            if changes:
                self.emitted.append((view, changes))
            if moments is not None:
                moments.note(member)

    def reread(self, touched: Iterable[int], moved: Bag) -> list[Change]:
        touched = set(touched)
        bindings = {b for node in touched for b in self._shown_by.get(node, ())}
        found = (member for binding in bindings for member in self.index.find(binding))
        for member in dict.fromkeys([*self._deltas, *found]):
            self.hand(member, self._deltas.get(member, {}), touched)
        return super().reread(touched, moved)

    def before(self, delta: Delta) -> None:
        if self._has_stale_ids:
            for maintainer in self._opened():
                maintainer.relabel()
        super().before(delta)

    def after(self, delta: Delta) -> list[Change]:
        self._deltas, self._rereads = {}, self._show.reads
        changes = super().after(delta)
        self._rereads = False
        if self._has_stale_ids:
            for maintainer in self._opened():
                maintainer.expect_new_ids()
        return changes

    def _opened(self) -> Iterator[Counting]:
        """The maintainers of the members that have been needed so far."""
        for member in self.members.values():
            if member.view is not None and isinstance(member.view.maintainer, Counting):
                yield member.view.maintainer

    def recount(self, whole: Bag) -> None:
        super().recount(whole)
        if self.groups is not None:
            self.groups.recount()
        for member in self.members.values():
            if member.view is not None and isinstance(member.view.maintainer, Counting):
                member.view.maintainer.recount(self.first_rows(member.constants))

    def next_moment(self) -> int | None:
        return None if self.moments is None else self.moments.next()

    def forget_never(self) -> None:
        """Forget the `never` changes of the update: they were emitted, or the update taken back."""
        self.stopped, self.stopped_at, self.never = [], None, {}

    def stop(self, waiting: Iterable[Mapping[str, Any]], part: int | None, waits: bool) -> None:
        """Note that no new match can begin; `waiting` are the values of those that have begun.

        Members without a row and without a match that has begun can get none any more. `part`: that
        which no stream feeds any more. `waits`: whether its rows may wait for this instant.
        """
        self.stopping.append(self)
        self._began_before = dict.fromkeys(self.members.values())
        if self.join is not None:
            self._note_stopped(part, is_after=False)
            return
        if waits:
            return
        texts = [each for each in self.parameters if isinstance(each, Parameter)]
        if len(texts) < len(self.parameters):
            return  # the join does not give their `never` changes
        columns = [f"${parameter.variable}" for parameter in texts]
        begun = set[Any]()
        for row in waiting:
            if not row.keys() >= set(columns):
                return  # a row of the other part, of this instant: it may be completed for any
            begun.add(self.index.member_key([row[column] for column in columns]))
        self.stopped = [
            member
            for member in self.members.values()
            if (key := self.index.member_key(member.constants)) not in begun
            and key not in self._groups
        ]

    def stop_after(self, part: int | None, waits: bool, instant: int | None) -> None:
        """Note that the instant of this end has passed: matches that could wait for it are gone.

        `instant`: None if all streams have ended in it.
        """
        self.stopping.append(self)
        self.stopped_at = instant
        if self.join is not None:
            self._note_stopped(part, is_after=True)
        elif waits:
            self.stopped = [m for m in self.members.values() if self._has_stopped(m)]
        self.emitted += [(m.opened(), []) for m in self.stopped]  # so that the update is emitted

    def _note_stopped(self, part: int | None, *, is_after: bool) -> None:
        join = self.join
        assert join is not None
        self.stopped = [
            member
            for member in self.members.values()
            if self._has_stopped(member) and join.has_stopped(member, part, is_after)
        ]

    def _has_stopped(self, member: Member) -> bool:
        """Whether a member was there when matches could begin, and has no row."""
        began = self._began_before
        return (began is None or member in began) and not self.rows_of(member.constants)

    def end(self, ended: Iterable[Any]) -> None:
        """Judge what ended at the join, for its members."""
        assert self.join is not None
        for member, changes in self.join.never(ended).items():
            if not self.never:
                self.stopping.append(self)
            self.never.setdefault(member, []).extend(changes)
            self.emitted.append((member.opened(), []))  # so that the update is emitted

    def members_of(self, values: Mapping[str, Any]) -> Sequence[Member]:
        """The members that rows with these values of variables concern."""
        row: tuple[Any, ...] = tuple(
            values.get(column.removeprefix("$")) for column in self.root.columns
        )
        return self.index.find(row)

    def close(self) -> None:
        self.members = {}
        super().close()


class FamilyEngine(CountingEngine):
    """Stands for the counting engine in the maintainer of one member."""

    def __init__(self, family: FamilyCounting, constants: tuple[ParameterValue, ...]) -> None:
        self._family = family
        self._constants = constants
        self.show = family.member_show
        self.shelf = None
        self.arrangements = None

    def compiled(self, pattern: Pattern) -> Program:
        return self._family.member_program

    def group(self) -> Group:
        """The groups that the member has in common with others."""
        assert self._family.groups is not None
        return self._family.groups.of(self._constants).group

    def add(self, program: Program, load: Load, member: MeteredMember | None = None) -> Relation:
        first = self._family.first_rows(self._constants)
        if first:
            load(first)
        return program.root

    def plan_of(self, root: Relation) -> tuple[CountingEngine, Relation]:
        return self._family.engine, self._family.root

    def build(self, root: Relation | None = None) -> None:
        if root is not None:
            self._family.engine.build(self._family.root)

    def refusal(self, root: Relation) -> QueryError | None:
        return self._family.broken

    def drop(self, root: Relation, member: MeteredMember | None = None) -> None:
        pass
