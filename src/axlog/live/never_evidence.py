"""Evidence for `never` changes: its kinds, and the choice between them.

    never after an update  =  the rows that were possible before it, of which afterwards no instance
                              holds or is possible

Law: whatever the evidence, the rows are those of this definition. `Choice.of` chooses, and
`Evidence.way` and `Evidence.reason` say why:

    `JoinEvidence`       rows that a two-way join of streams has dropped, or ways that ended at a
                         join of more parts or with `not`s (`views/counting/prospects.py`,
                         `join_prospects.py`). It needs no nodes. For views whose rows such a join
                         makes, where its state decides exactly.
    `ScenarioEvidence`   scenarios kept as data arrives (`future/scenario_tracker.py`): those that
                         become impossible are examined. Where only the end of a stream can make a
                         scenario impossible, messages cost nothing until a stream ends, and the
                         messages that arrived before are then read once. Where the clock, a key or
                         the number of trees can, each message is read as it arrives.
    `WalkEvidence`       possible rows computed anew after every update, which costs a walk over the
                         document each time. For views with `not` or under types, with `never="all"`
    `GroupEvidence`      groups kept as data arrives (`future/group_tracker.py`), for views with
                         computed values, groups and conditions on them. Read like scenarios; an
                         update examines the groups that it concerns
    `StepEvidence`       possible rows computed anew for other views with steps: beside `not` and
                         types, about the clock, other conditions. With `never="all"`
    `Evidence`           none, for a reason: the option `never`, or messages that were not kept
                         (`keep="needed"`)

Rows also differ by the nodes that they show. Evidence from joins does not report a partial match
that only a row of the same instant could have completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.evaluate.gathered import Bags
from axlog.future.clock_outlook import lower_bounds
from axlog.future.generalized_rows import Values
from axlog.future.grounding import has_not
from axlog.future.group_tracker import GroupTracker, may_lose_groups, why_not_followed
from axlog.future.message_effects import may_fall_by_message
from axlog.future.references import referred
from axlog.future.restoration import loses_no_future
from axlog.future.scenario_tracker import Scenario, ScenarioTracker
from axlog.future.scenarios import is_limited
from axlog.future.truth import Outlook, column_of, row_of
from axlog.live.maintained import MaintainedTree
from axlog.live.replacements import replacing_streams
from axlog.live.update_changes import ViewChanges
from axlog.query.compile import Relation
from axlog.query.pattern import Kind
from axlog.query.truth import Truth
from axlog.views.change import Change, Row
from axlog.views.clock_questions import ClockQuestions
from axlog.views.counting.clock_prospects import clock_prospects
from axlog.views.counting.ended_rows import Ended
from axlog.views.counting.join_prospects import AnyProspects, JoinProspects, Watch
from axlog.views.counting.join_watch import EndedWay, JoinWatch
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.prospects import Prospects, Starts, shows_only_strings_and_times
from axlog.views.counting.stepped import SteppedCounting
from axlog.views.counting.stream_inputs import StreamInputs, roots_above
from axlog.views.family import FamilyCounting
from axlog.views.step_outlook import StepOutlook
from axlog.views.view import MaintainedView
from axlog.views.window_questions import WindowQuestions

Shown = tuple[Any, ...]

_NODES = (Kind.ID, Kind.VAL, Kind.CONT)


@dataclass(slots=True)
class Update:
    """What updates did since evidence was last asked, as far as it depends on that."""

    added: list[int] = field(default_factory=list)  # subtrees that were not read yet
    aside: list[int] = field(default_factory=list)
    """The same, for messages that were set aside: some views have read their rows."""
    closed: list[str] = field(default_factory=list)  # streams
    is_stale: bool = False  # whether scenarios cannot follow, and must be computed anew
    shown: dict[MaintainedView, dict[Values, Shown]] = field(default_factory=dict)
    """Possible rows with nodes, as the views showed them before the update."""
    emitted: ViewChanges = field(default_factory=list)
    ended: Mapping[Watch, Sequence[Ended | EndedWay]] = field(default_factory=dict)
    """What ended at each join: rows that it dropped, or ways."""


class Evidence:
    """How the tracker finds the `never` changes of one view. This class itself finds none."""

    is_kept = False  # whether the possible rows are known now
    reads_nodes = True  # whether it needs messages as nodes
    reads_messages = False  # whether it needs every message, sooner or later

    def __init__(
        self,
        view: MaintainedView,
        way: str = "",
        reason: str | None = None,
        is_eager: bool = False,
        instead: Callable[[MaintainedView], Evidence] | None = None,
    ) -> None:
        self.view = view
        self.instead = instead  # what `never="all"` would choose
        self.way = way  # how `never` changes are found, for `explain`
        self.reason = reason  # why no `never` changes are emitted
        self.is_eager = is_eager  # whether it must examine every update

    def build(self) -> None:
        """Compute the current possible rows."""

    def read(self, update: Update) -> None:
        """Read messages that make no row impossible."""

    def arrive(self, place: int, children: Bags, descendants: Bags) -> None:
        """Read the rows of a message that was set aside."""

    def shown(self) -> dict[Values, Shown]:
        """Return the possible rows with nodes, before an update that may remove these."""
        return {}

    def never(self, update: Update) -> list[Change]:
        """Return the changes for the rows that an update made impossible."""
        return []

    def may_lose_by_message(self, tree: Tree) -> bool:
        """Return whether a single message can make a row impossible."""
        return True

    def loses_no_future(self, tree: Tree) -> bool:
        """Return whether no row becomes impossible by what can be brought again."""
        return False

    def changes(self, rows: Iterable[Shown]) -> list[Change]:
        return [Change("never", Row(self.view.columns, row)) for row in rows]


class JoinEvidence(Evidence):
    """The rows that wait in the one two-way join of a view."""

    def __init__(
        self, view: MaintainedView, prospects: AnyProspects, is_emitted: bool = True
    ) -> None:
        """`is_emitted`: whether the document emits `never` changes; else questions are asked."""
        is_late = isinstance(prospects, Prospects) and prospects.waiting.is_late
        late = "; what a key rules out later, at its deadline" if is_late else ""
        what = "tables" if isinstance(prospects, Prospects) else "state"
        super().__init__(view, f"reported by the join's {what} as messages arrive{late}")
        self.prospects, self.is_kept, self._is_emitted = prospects, True, is_emitted

    def never(self, update: Update) -> list[Change]:
        prospects = self.prospects
        if prospects.is_partial:
            changes = changes_of(self.view, update.emitted)
            if changes is not None:
                prospects.take(changes)
        return self.judged(update.ended[prospects.waiting])

    def judged(self, ended: Sequence[Any]) -> list[Change]:
        """Return the changes for what ended at the join."""
        prospects, kept = self.prospects, self.view.maintainer
        is_of_members = isinstance(kept, FamilyCounting) and kept.join is not None
        found = prospects.never(() if is_of_members else ended)
        if isinstance(kept, FamilyCounting):
            if is_of_members and ended and self._is_emitted:
                kept.end(ended)
            if isinstance(prospects, Prospects) and self._is_emitted:
                stop_members(kept, prospects)
            nothing = [None] * len(kept.parameters)
            found = [c for c in found if list(c.row.values_[-len(nothing) :]) != nothing]
        return found


def stop_members(kept: FamilyCounting, prospects: Prospects) -> None:
    """Say which members of a family can get no row any more, as far as the last update decides."""
    waiting, waits = prospects.waiting, prospects.waits_an_instant
    part = None if waiting.stopped is None else waiting.stopped[0]
    if prospects.starts is Starts.GONE:
        kept.stop_after(part, waits, prospects.gone_after)
    elif prospects.starts is Starts.ENDED:
        is_left = any(waiting.open)
        kept.stop(waiting_values(prospects), part if is_left else None, waits and is_left)


def waiting_values(prospects: Prospects) -> Iterator[dict[str, Any]]:
    """Return the values of the rows that still wait in a join, by column."""
    for side, table in zip(prospects.waiting.pair.sides, prospects.waiting.live, strict=True):
        for row in table.rows():
            yield dict(zip(side.columns, row, strict=True))


class ScenarioEvidence(Evidence):
    """The scenarios of a view, kept as data arrives."""

    reads_messages = True
    scenarios: ScenarioTracker

    def __init__(self, view: MaintainedView, tree: Tree) -> None:
        super().__init__(view)
        # The root of the program whose rows are read instead of nodes, where these suffice.
        self.root: Relation | None = None
        if isinstance(view.maintainer, Counting) and not (tree.facts or is_limited(tree)):
            self.root = view.maintainer.root
        self._choose_schedule(tree)

    def _choose_schedule(self, tree: Tree) -> None:
        self.is_eager = may_fall_by_message(tree, self.view.pattern)
        self.root = self.root if self.is_eager else None
        self.reads_nodes = self.root is None
        self.way = "reported by possible rows; messages are read when a stream ends"
        if self.is_eager:
            how = ", each read as nodes" if self.reads_nodes else ""
            self.way = f"reported by possible rows, kept as messages arrive{how}"

    def build(self) -> None:
        tree = self.view.around.nodes_left()
        self._choose_schedule(tree)  # messages may have opened calls with limits
        self.scenarios = ScenarioTracker(tree, self.view.pattern, self.root)
        self.is_kept = True

    def read(self, update: Update) -> None:
        self.scenarios.grow(self._new(update))

    def arrive(self, place: int, children: Bags, descendants: Bags) -> None:
        if self.root is not None and self.is_kept:
            self.scenarios.arrive(place, children, descendants)

    def _new(self, update: Update) -> list[int]:
        """Return the subtrees to read: rows of messages that were set aside have arrived."""
        return update.added if self.root is not None else update.aside + update.added

    def may_lose_by_message(self, tree: Tree) -> bool:
        return may_fall_by_message(tree, self.view.pattern)

    def loses_no_future(self, tree: Tree) -> bool:
        return loses_no_future(tree, self.view.pattern)

    def shown(self) -> dict[Values, Shown]:
        if not any(output.kind in _NODES for output in self.view.pattern.outputs):
            return {}
        return {values: self._shown(self.scenarios, values) for values, _ in self._open()}

    def _open(self) -> list[Scenario]:
        """Return the scenarios that still need data."""
        every = self.scenarios.found.rows.items()
        return [(values, need) for values, needs in every for need in needs if need.brought]

    def _fallen(self, update: Update) -> list[Scenario]:
        """Return the scenarios that became impossible."""
        scenarios = self.scenarios
        if update.is_stale:
            fallen = self._open()
            self.build()
            return fallen
        fallen = scenarios.grow(self._new(update))
        for stream in update.closed:
            fallen += scenarios.close(stream)
        return fallen + scenarios.expire()

    def never(self, update: Update) -> list[Change]:
        before, fallen, now = self.scenarios, self._fallen(update), self.scenarios
        known_before = update.shown.get(self.view, {})
        shown = [column_of(output) for output in self.view.pattern.outputs]
        old = [before.columns.index(column) for column in shown]
        new = [now.columns.index(column) for column in shown]
        found: dict[Values, Shown] = {}
        judged: set[Values] = set()
        for values, _ in fallen:
            row = tuple(values[i] for i in old)
            if row in judged:
                continue
            judged.add(row)
            known = {at: value for at, value in zip(new, row, strict=True) if value is not None}
            at = tuple(sorted(known))
            if now.agrees(at, tuple(known[i] for i in at)) or self._holds(row):
                continue
            found[row] = known_before.get(values) or self._shown(before, values)
        return self.changes(found.values())

    def _holds(self, row: Values) -> bool:
        """Return whether a row exists whose nodes were collected."""
        if self.view.around.is_whole():
            return False
        return any(
            all(
                value is None or value == known
                for value, known in zip(row, each.values_, strict=True)
            )
            for each in self.view.rows()
        )

    def _shown(self, scenarios: ScenarioTracker, values: Values) -> Shown:
        columns = scenarios.columns
        return tuple(row_of(scenarios.tree, self.view.pattern, columns, values).values())


class WalkEvidence(Evidence):
    """The possible rows of a view, found by a walk over the document after every update."""

    def __init__(self, view: MaintainedView) -> None:
        way = "reported by possible rows, worked out anew after every update"
        super().__init__(view, way, is_eager=True)
        self._rows: dict[Values, Shown] = {}

    def build(self) -> None:
        self._walk()

    def _walk(self) -> Outlook:
        outlook = Outlook(self.view.around.nodes_left(), self.view.pattern)
        self._rows = {binding: tuple(row.values()) for binding, row in outlook.bindings().items()}
        self.is_kept = True
        return outlook

    def never(self, update: Update) -> list[Change]:
        before, outlook = self._rows, self._walk()
        return self.changes(
            shown
            for binding, shown in before.items()
            if binding not in self._rows and outlook.truth_of(binding) is Truth.NEVER
        )


class GroupEvidence(Evidence):
    """The groups of a view, kept as data arrives."""

    reads_messages = True
    groups: GroupTracker

    def __init__(self, view: MaintainedView, tree: Tree) -> None:
        super().__init__(view, is_eager=may_lose_groups(tree, view.query.row_key))
        self.way = "reported by the groups that can still come; messages are read "
        self.way += "as they arrive" if self.is_eager else "when a stream ends"

    def build(self) -> None:
        self.groups = GroupTracker(self.view.around.nodes_left(), self.view.query.row_key)
        self.is_kept = True

    def may_lose_by_message(self, tree: Tree) -> bool:
        return may_lose_groups(tree, self.view.query.row_key)

    def loses_no_future(self, tree: Tree) -> bool:
        pattern = self.view.query.row_key.pattern
        return not self.may_lose_by_message(tree) and loses_no_future(tree, pattern)

    def read(self, update: Update) -> None:
        self.groups.grow(update.aside + update.added)

    def never(self, update: Update) -> list[Change]:
        if not update.is_stale:
            return self.changes(self.groups.grow(update.aside + update.added, update.closed))
        before = self.groups.possible_rows()
        self.build()
        now = set(self.groups.possible_rows())
        return self.changes(row for row in before if row not in now and self.groups.is_over(row))


class StepEvidence(Evidence):
    """The possible rows of a view with steps, found by a walk after every update."""

    def __init__(self, view: MaintainedView) -> None:
        way = "reported by possible rows, worked out anew after every update"
        super().__init__(view, way, is_eager=True)
        self._rows: dict[Shown, dict[str, Any]] = {}  # once each, whatever brings them

    def build(self) -> None:
        self._walk()

    def _walk(self) -> StepOutlook | ClockQuestions | WindowQuestions:
        outlook = self.view.step_outlook()
        self._rows = {tuple(one.row.values()): dict(one.row) for one in outlook.to_come()}
        self.is_kept = True
        return outlook

    def never(self, update: Update) -> list[Change]:
        before, outlook = self._rows, self._walk()
        return self.changes(
            shown
            for shown, row in before.items()
            if shown not in self._rows and outlook.verdict(row) is Truth.NEVER
        )


# The choice ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """Chooses the evidence of views."""

    document: MaintainedTree
    how: str  # the option `never`
    keeps: bool  # whether all messages become nodes of the document, sooner or later

    def of(
        self,
        view: MaintainedView,
        joins: Mapping[Watch, int],
        inputs: StreamInputs,
        known: Evidence | None,
    ) -> Evidence:
        """Return the evidence of a view; `known` is what it had.

        `joins` maps the watched joins to their sites.
        """
        prospects = self._prospects_of(view, joins, inputs)
        if prospects is not None:
            if isinstance(prospects, Prospects):
                before = known.prospects if isinstance(known, JoinEvidence) else None
                if isinstance(before, Prospects):
                    prospects.is_after_end = before.is_after_end
            return JoinEvidence(view, prospects, self.how != "off")
        if isinstance(view.maintainer, FamilyCounting):
            return Evidence(view, reason="its members are examined")
        may_lose = bool(replacing_streams(self.document, view))
        if known is None or isinstance(known, JoinEvidence) or may_lose:
            return self.without_join(view)
        return known

    def without_join(self, view: MaintainedView) -> Evidence:
        """Return the evidence of a view that no join gives."""
        tree, pattern = self.document.tree, view.query.pattern
        if self.how in ("off", "joins"):
            return Evidence(view, reason=f'the document has the option never="{self.how}"')
        if not self.keeps:
            return Evidence(view, reason="messages are not kept")
        if view.query.has_items:
            return Evidence(view, reason="the query is more than a pattern")
        for stream in replacing_streams(self.document, view):
            reason = f"the stream {stream!r} replaces its messages: rows may go and come again"
            return Evidence(view, reason=reason)
        is_referring = self._is_referring(view)
        if view.query.steps:
            what = "types" if tree.types else "references" if is_referring else None
            what = what or why_not_followed(view.query.row_key)
            if what is None:
                return GroupEvidence(view, tree)
            if self.how == "all":
                return StepEvidence(view)
            reason = f'{what}: possible rows are worked out anew; never="all" does'
            return Evidence(view, reason=reason, instead=StepEvidence)
        if has_not(pattern) or tree.types is not None or is_referring:
            if self.how == "all":
                return WalkEvidence(view)
            what = "`not`" if has_not(pattern) else "types" if tree.types else "references"
            reason = f'{what}: possible rows are worked out anew; never="all" does'
            return Evidence(view, reason=reason, instead=WalkEvidence)
        return ScenarioEvidence(view, tree)

    def _is_referring(self, view: MaintainedView) -> bool:
        """Return whether declared references rule out rows that the joins do not know of."""
        try:
            return referred(self.document.tree, view.query.pattern) != view.query.pattern
        except UndecidedError:
            return True

    def _prospects_of(
        self, view: MaintainedView, joins: Mapping[Watch, int], inputs: StreamInputs
    ) -> AnyProspects | None:
        """Return the prospects of a view whose rows one join makes, exactly."""
        maintainer = view.maintainer
        tests = lower_bounds(view.query) if view.query.steps else ()
        if tests is None or self._is_referring(view):
            return None
        if not isinstance(maintainer, Counting) or not shows_only_strings_and_times(
            maintainer.pattern
        ):
            return None
        engine, tree = self.document.engine, self.document.tree
        mine = set(maintainer.root.walk())
        if any(map(_joins, mine & engine.left)):
            return None  # several joins, one of which was collected
        joining = [
            state
            for relation in mine
            if _joins(relation)
            for node, state in engine.index.states_of(relation)
            if not state.is_dead
            if roots_above(engine, node, state) != set()  # `/*` has states at other elements too
        ]
        # A join that is no longer watched (a value above it may change now) is released after this.
        waiting = joining[0].join.waiting if len(joining) == 1 else None
        if waiting is None or waiting not in joins or maintainer.gathers:
            return None
        if isinstance(waiting, JoinWatch):
            roots = roots_above(engine, joins[waiting], waiting.state)
            brought = waiting.state.relation in inputs.brought
            if roots is None or maintainer.root not in roots or brought:
                return None
            if not tests:
                return JoinProspects(maintainer, waiting)
            if not isinstance(maintainer, SteppedCounting):
                return None
            return clock_prospects(maintainer, waiting, view.query)
        if tests or not waiting.pair.is_exact:
            return None
        if not waiting.pair.bounds_times(map(column_of, maintainer.pattern.outputs)):
            return None
        roots = roots_above(engine, joins[waiting], waiting.state)
        streams = {stream for each in waiting.open for stream in each}
        calls = [tree.call(tree.calls()[stream]) for stream in streams]
        is_exact = (
            roots is not None
            and maintainer.root in roots
            and tree.types is None
            and waiting.state.relation not in inputs.brought
            and waiting.state not in inputs.narrowed
            and all(call.mode == "stream" and call.most is None for call in calls)
        )
        return Prospects(maintainer, waiting) if is_exact else None


def changes_of(view: MaintainedView, emitted: ViewChanges) -> list[Change] | None:
    """Return the changes of a view; None: it has none."""
    for known, changes in emitted:  # runs once per message: a loop is faster than a generator
        if known is view:
            return changes
    return None


def _joins(relation: Relation) -> bool:
    """Return whether a relation combines several parts at its node."""
    return len(relation.edges) > 1 or bool(relation.choices) or bool(relation.absences)
