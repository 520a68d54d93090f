"""`never` changes: the rows that can no longer come, for every view of a document.

    never after an update  =  the rows that were possible before it, of which afterwards no instance
                              holds or is possible

Where joins are the evidence, the clock passes before an update, and every deadline that passes is
an update of its own (`Collector.pass_time`).

One tracker emits them all. It keeps the evidence of each view (`never_evidence.py`), brings it what
updates did, and asks it after each update. It gives evidence up, with the reason, where the
analyses do not decide. Deferred views emit no `never` changes. None are emitted for rows that a
statement makes impossible: the tracker starts anew after it.

The collector (`collector.py`) owns the tracker and calls it after it has dropped rows of joins,
which are evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from axlog.document.delta import Delta, takes_away
from axlog.errors import AxlogError, UndecidedError, UnsupportedError, UpdateError
from axlog.evaluate.joins import Bag
from axlog.future.message_effects import is_in_one_message
from axlog.future.scenarios import may_bring
from axlog.live.family_never import (
    bounds_one_time,
    gives_keys,
    join_of_members,
    may_report,
    reports,
)
from axlog.live.hooks import How
from axlog.live.join_deadlines import Deadlines
from axlog.live.maintained import MaintainedTree
from axlog.live.never_evidence import (
    Choice,
    Evidence,
    JoinEvidence,
    ScenarioEvidence,
    Update,
    changes_of,
)
from axlog.live.update_changes import ViewChanges
from axlog.match.stream_plan import EVERYWHERE
from axlog.query.compile import Relation
from axlog.views.change import Change
from axlog.views.counting.ended_rows import Ended
from axlog.views.counting.join_prospects import AnyProspects, Watch
from axlog.views.counting.join_watch import EndedWay
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.prospects import Prospects
from axlog.views.counting.quick_expiry import Expire, quick_expiry
from axlog.views.counting.stream_inputs import StreamInputs
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.family import FamilyCounting
from axlog.views.family_join import FamilyJoin
from axlog.views.family_watch import FamilyWatch
from axlog.views.member_prospects import MemberProspects
from axlog.views.view import MaintainedView

_NOT_DECIDED = (UndecidedError, UnsupportedError, UpdateError)


class NeverTracker:
    """Finds the `never` changes of one document's views. The collector calls it."""

    def __init__(self, document: MaintainedTree, how: str, keeps: bool = True) -> None:
        """`keeps`: whether all messages become nodes of the document, sooner or later."""
        self.how = how
        self._document = document
        self._choice = Choice(document, how, keeps)
        self._views: list[MaintainedView] = []
        self._evidence: dict[MaintainedView, Evidence] = {}
        self._joined: list[JoinEvidence] = []  # examines every update
        self._by_join: dict[Watch, list[JoinEvidence]] = {}
        self.quick: dict[Watch, tuple[Expire, MaintainedView]] = {}
        """The joins of one view whose deadlines pass in one step, with it."""
        self._update = Update()
        self._is_restorable = False  # whether the update deletes what can be brought again
        self._guests: list[MaintainedView] = []  # members of families, while a stream ends
        self._is_eager = False  # whether some view must examine every message
        self.is_busy = False  # whether some view must examine the current update

    def _look(self) -> None:
        """Compute whether messages and the current update must be examined."""
        self._is_eager = any(evidence.is_eager for evidence in self._evidence.values())
        self.is_busy = self._is_eager or bool(self._update.closed) or self._update.is_stale

    @property
    def is_idle(self) -> bool:
        """Whether no possible rows are kept that an update might change."""
        return not self.is_busy and not any(each.is_kept for each in self._evidence.values())

    def is_untouched(self, is_restorable: bool) -> bool:
        """Whether a deletion concerns no `never` change, and needs no preparation.

        `is_restorable`: it deletes what the stream can bring again.
        """
        return not self.is_busy and all(
            not each.is_kept
            and (
                type(each) is Evidence
                or each.reason is not None
                or each.view.is_deferred
                or (is_restorable and self._loses_nothing(each))
            )
            for each in self._evidence.values()
        )

    def _give_up(self, evidence: Evidence, error: AxlogError) -> None:
        """Emit no more `never` changes of a view: an analysis does not decide."""
        self._evidence[evidence.view] = Evidence(evidence.view, reason=error.message)
        self._look()

    # The choice of evidence -----------------------------------------------------------------------

    def refresh(self, joins: Mapping[Watch, int], inputs: StreamInputs, is_new: bool) -> None:
        """Choose the evidence of every view, before an update.

        `joins` maps the watched joins to their sites; `is_new` says that they were found anew.
        """
        views = [view for view in self._document.views.values() if view.broken is None]
        if is_new or views != self._views:
            known, self._views = self._evidence, views
            self._evidence = {
                view: known[view]
                if view in known and not is_new
                else self._choice.of(view, joins, inputs, known.get(view))
                for view in views
            }
            before, self._by_join = self._by_join, {}
            self._joined = [e for e in self._evidence.values() if isinstance(e, JoinEvidence)]
            for each in self._joined:
                self._by_join.setdefault(each.prospects.waiting, []).append(each)
            self._find_quick({} if is_new else before)
        for view, evidence in self._evidence.items():
            if view.is_deferred and evidence.is_kept and not isinstance(evidence, JoinEvidence):
                self._evidence[view] = self._choice.without_join(view)
            kept = view.maintainer
            if isinstance(kept, FamilyCounting):
                found = evidence.prospects if isinstance(evidence, JoinEvidence) else None
                kept.join = None if found is None else join_of_members(found, kept, self._shares)
                # nothing else reads the changes of a family
                kept.is_followed = found is not None and found.is_partial and kept.join is None
        has_calls = bool(self._document.tree.calls_by_stream)
        for evidence in self._evidence.values():
            if evidence.is_eager and has_calls:
                self._prepare(evidence)
        self._look()

    def _find_quick(self, before: Mapping[Watch, list[JoinEvidence]]) -> None:
        """Find the joins whose deadlines pass in one step (`quick_expiry.py`).

        `before`: the joins that were looked at, with their evidence.
        """
        known, self.quick = self.quick, {}
        for join, asked in self._by_join.items():
            if not isinstance(join, WaitingRows):
                continue
            if before.get(join) == asked:
                if join in known:
                    self.quick[join] = known[join]
                continue
            join.holds_or_waits = None
            (one, *others), only = asked, asked[0].prospects
            if others or self.how == "off" or not isinstance(only, Prospects):
                continue
            expire = quick_expiry(only)
            if expire is not None:
                join.holds_or_waits = only.holds_or_waits
                self.quick[join] = expire, one.view

    def explain(self, view: MaintainedView) -> str:
        """Return how `never` changes of a view are found, or why none are emitted."""
        evidence = self._evidence.get(view) or self._evidence_of_member(view)
        if isinstance(evidence, JoinEvidence) and self.how != "off":
            return evidence.way
        reason: str | None = f'the document has the option never="{self.how}"'
        if self.how not in ("off", "joins"):
            if evidence is None or not self._document.tree.calls_by_stream:
                reason = "no stream is open"
            else:
                reason = "the view is deferred" if view.is_deferred else self._refusal(evidence)
        return f"not reported: {reason}" if reason or evidence is None else evidence.way

    def _evidence_of_member(self, view: MaintainedView) -> Evidence | None:
        """Return what gives the `never` changes of a member of a family; None: it is no member."""
        families = self._document.families
        member = families.members.get(view.name)
        if member is None or member.view is not view:
            return None
        family = families.family_of(view.name)
        if family.how == "join":
            return self._evidence.get(family.general)
        return self._choice.without_join(view)

    def _refusal(self, evidence: Evidence) -> str | None:
        """Return why the possible rows of a view are not decided, before a stream ends.

        Costs a walk over the document where the rows are not kept yet. What `never="all"` would not
        decide either is not offered.
        """
        if evidence.is_kept or (evidence.reason is not None and evidence.instead is None):
            return evidence.reason
        make = evidence.instead or self._choice.without_join
        try:
            make(evidence.view).build()
        except _NOT_DECIDED as error:
            return error.message
        return evidence.reason

    # Families -----------------------------------------------------------------------------------

    def how_shared(self, general: MaintainedView, sample: MaintainedView) -> How | None:
        """Return how the members of a family get `never` changes; None: only alone.

        A join gives them where it can judge rows for each member (`family_never.py`). Where nothing
        but the end of a stream makes rows impossible, members are examined then.
        """
        joined = self._evidence.get(general)
        alone = self._evidence.get(sample)
        if isinstance(alone, JoinEvidence) and alone.prospects.awaits_end:
            return None  # of this instant: the general view is too late for it
        found = joined.prospects if isinstance(joined, JoinEvidence) else None
        if found is not None and self._gives_keys(general):
            found = None
        is_joined = isinstance(alone, JoinEvidence) or (
            found is not None and may_report(found, sample.query)
        )
        if is_joined:
            kept = general.maintainer
            is_reporting = (
                found is not None
                and isinstance(kept, FamilyCounting)
                and reports(found, kept, self._shares)
            )
            if self.how == "off":  # without messages only a join knows the truth of a view
                return "off" if self._choice.keeps else "join" if is_reporting else None
            if is_reporting:
                return "join"
        if alone is None or isinstance(alone, JoinEvidence):
            alone = self._choice.without_join(sample)
        if alone.reason is not None:
            return None if is_joined or self._may_be_joined(general) else "off"
        return None if alone.may_lose_by_message(self._document.tree) else "end"

    def _may_be_joined(self, general: MaintainedView) -> bool:
        """Whether a join may decide members alone once a stream has ended, and not together.

        Where messages are kept, they are kept alone from then on.
        """
        kept = general.maintainer
        return (
            isinstance(kept, FamilyCounting)
            and not self._choice.keeps
            and bounds_one_time(kept)
            and not is_in_one_message(self._document.tree, general.query.pattern)
        )

    @property
    def _shares(self) -> bool:
        """Whether members share a plan whatever it costs: on request, or as none can be alone."""
        return self._document.families.is_requested or self._document.lacks_messages

    def _gives_keys(self, general: MaintainedView) -> bool:
        kept = general.maintainer
        return isinstance(kept, FamilyCounting) and gives_keys(kept, self._document.tree.facts)

    def _admit_guests(self) -> None:
        """Examine the members of families too, while a stream ends."""
        self._guests = list(self._document.families.ending())
        for view in self._guests:
            self._evidence[view] = self._choice.without_join(view)

    def _dismiss_guests(self) -> None:
        for view in self._guests:
            self._evidence.pop(view, None)
        self._guests = []

    # Questions ------------------------------------------------------------------------------------

    def prospects(self, view: MaintainedView) -> AnyProspects | MemberProspects | None:
        """Return the facts about a view's future rows that need no document. None: none are known.

        Uncertain facts are returned only if messages were not kept, so the document cannot be
        consulted.
        """
        evidence = self._evidence.get(view)
        if not isinstance(evidence, JoinEvidence):
            return self._prospects_of_member(view)
        found = evidence.prospects
        if found.maintainer is not view.maintainer:
            return None  # it was set aside
        return found if found.is_certain or self._document.lacks_messages else None

    def _prospects_of_member(self, view: MaintainedView) -> AnyProspects | MemberProspects | None:
        families = self._document.families
        member = families.members.get(view.name)
        if member is None or member.view is not view:
            return None
        joined, general = member.family.join, families.family_of(view.name).general
        if view.query.steps and not isinstance(joined, FamilyWatch):
            return None
        found = self.prospects(general)
        if found is None or isinstance(found, MemberProspects) or self._gives_keys(general):
            return None
        if isinstance(joined, FamilyJoin | FamilyWatch):
            return joined.prospects(member)
        if not all(parameter.is_text for parameter in member.family.parameters):
            return None
        return MemberProspects(found, member.family, member)

    def may_come(self, view: MaintainedView) -> bool | None:
        """Return whether the view may still gain a row. None: its scenarios are not kept."""
        evidence = self._evidence.get(view)
        if not isinstance(evidence, ScenarioEvidence) or not evidence.is_kept:
            return None
        if evidence.reads_nodes:
            self._document.settle()
        self.catch_up()
        if self._evidence[view] is not evidence:
            return None  # it was given up
        return evidence.scenarios.is_possible

    @property
    def every_prospects(self) -> list[AnyProspects]:
        """The prospects of all views that joins give evidence for."""
        return [each.prospects for each in self._joined]

    def ends(self) -> dict[str, tuple[int, int]]:
        """Return the ends of streams whose instant has to pass yet, by the view that waits for it.

        Each with the part of the view's join that has ended.
        """
        found: dict[str, tuple[int, int]] = {}
        for each in self._joined:
            if isinstance(each.prospects, Prospects) and each.prospects.awaits_end:
                stopped = each.prospects.waiting.stopped
                assert stopped is not None
                found[each.view.name] = stopped
        return found

    def restore_ends(self, ends: Mapping[str, Sequence[int]]) -> None:
        """Let views wait again for what `ends` returned, and no others of their joins."""
        every = [(e.view.name, e.prospects) for e in self._joined]
        for name, found in every:
            if name in ends and isinstance(found, Prospects):
                part, time = ends[name]
                found.waiting.stopped = part, time
        for name, found in every:
            if isinstance(found, Prospects) and found.waiting.stopped is not None:
                found.is_after_end = name not in ends

    def deadline(self) -> float:
        """Return the clock after which rows may become impossible without a message."""
        soonest = -inf if self._is_eager else inf
        for each in self._joined:
            limit = each.prospects.until
            if limit is not None and limit < soonest:
                soonest = limit
        return soonest

    def next_deadline(self, join: Watch, heap: Deadlines) -> float:
        """Return the clock after which rows may become impossible at a join; inf: none."""
        soonest = heap[0][0] if heap else inf
        for each in self._by_join.get(join, ()):
            limit = each.prospects.until
            if limit is not None and limit < soonest:
                soonest = limit
        return soonest

    # Updates --------------------------------------------------------------------------------------

    def _prepare(self, evidence: Evidence) -> None:
        """Compute the current possible rows, if they are not kept yet."""
        if evidence.is_kept or evidence.reason is not None or evidence.view.is_deferred:
            return
        try:
            evidence.view.around.nodes_left()  # turns messages that were set aside into nodes
            self.catch_up()  # for the other views: this one reads all messages now
            evidence.build()
        except _NOT_DECIDED as error:
            self._give_up(evidence, error)

    def catch_up(self) -> None:
        """Let all views read the messages since the last call.

        Without the end of a stream, no scenario of a view that waits for one becomes impossible.
        """
        read = Update(self._update.added, self._update.aside)
        self._update.added, self._update.aside = [], []
        for evidence in self._evidence.values():
            try:
                if evidence.is_kept:
                    evidence.read(read)
            except _NOT_DECIDED as error:
                self._give_up(evidence, error)

    def detach(self) -> None:
        """Forget the joins, which the collector no longer watches."""
        every = self._evidence.items()
        self._evidence = {v: e for v, e in every if not isinstance(e, JoinEvidence)}
        self._joined, self._by_join, self.quick = [], {}, {}

    def forget(self) -> None:
        """Start anew, after an update that does not come from a stream."""
        self._update = Update()
        for view, evidence in self._evidence.items():
            if not isinstance(evidence, JoinEvidence):
                self._evidence[view] = self._choice.without_join(view)
        self._look()

    def arrival(
        self, place: int, here: tuple[Relation, ...], everywhere: tuple[Relation, ...]
    ) -> Callable[[Mapping[int, Bag]], None] | None:
        """Return a function that processes the rows of messages set aside. None: none is needed."""
        every = self._evidence.values() if self._is_eager else ()
        if not any(each.is_eager and not each.reads_nodes for each in every):
            return None

        def arrive(found: Mapping[int, Bag]) -> None:
            children = {here[n]: bag for n, bag in found.items() if n < EVERYWHERE}
            descendants = {
                everywhere[n - EVERYWHERE]: bag for n, bag in found.items() if n >= EVERYWHERE
            }
            for evidence in self._evidence.values():
                try:
                    evidence.arrive(place, children, descendants)
                except _NOT_DECIDED as error:
                    self._give_up(evidence, error)

        return arrive

    def note(self, delta: Delta, stream: str | None, was_aside: bool = False) -> None:
        """Record an update that was applied. `stream` is None if it did not come from a stream."""
        if stream is None:
            self.forget()
            return
        if delta.opened or delta.closed or _uses_up_trees(delta, stream):
            for view, evidence in self._evidence.items():
                if not evidence.is_kept:
                    self._evidence[view] = self._choice.without_join(view)  # may be decided now
            self._look()
        if self._is_restorable and takes_away(delta):
            for view, evidence in self._evidence.items():
                if evidence.is_kept and self._loses_nothing(evidence):
                    self._evidence[view] = self._choice.without_join(view)  # made anew when needed
        every = self._evidence.values()
        if not any(e.reads_messages and e.is_kept for e in every):
            return
        update = self._update
        if was_aside:
            update.aside += delta.added
            return
        update.added += delta.added
        update.closed += delta.closed
        if takes_away(delta) or _opens_limits(delta) or _uses_up_calls(delta, stream):
            update.is_stale = True
        self._look()

    def before(self, stream: str, is_insertion: bool, is_restorable: bool = False) -> None:
        """Prepare for an update of a stream. Messages that were set aside are nodes by now.

        `is_restorable`: it deletes what the stream can bring again. Most views need no preparation
        for that.
        """
        self._is_restorable = is_restorable
        tree = self._document.tree
        node = tree.calls_by_stream.get(stream)
        if is_insertion and node is not None:
            call = tree.call(node)
            if call.mode == "stream" and call.most is None:
                return
        self._admit_guests()
        for evidence in list(self._evidence.values()):
            if not (is_restorable and self._loses_nothing(evidence)):
                self._prepare(evidence)
        self.catch_up()
        self._update.shown = {v: e.shown() for v, e in self._evidence.items() if e.is_kept}

    def _loses_nothing(self, evidence: Evidence) -> bool:
        """Return whether no row of a view becomes impossible by what can be brought again."""
        # The engine of counting knows which values above the call are read.
        tree = self._document.tree
        return isinstance(evidence.view.maintainer, Counting) and evidence.loses_no_future(tree)

    def abandon(self) -> None:
        """Discard the preparations for an update that was rejected."""
        self._dismiss_guests()
        self._update.shown = {}

    def report(self, emitted: ViewChanges, time: int, join: Watch) -> None:
        """Do the same as `after` for what ended at one join, if no view must examine the update."""
        ended = join.take_ended()
        for evidence in self._by_join.get(join, ()):
            try:
                never = evidence.judged(ended)
            except _NOT_DECIDED as error:
                self._give_up(evidence, error)
                continue
            if never and self.how != "off":
                append_never(emitted, evidence.view, never, time)

    def follow(self, emitted: ViewChanges, time: int, joins: Iterable[Watch]) -> None:
        """Do the same as `after`, if no view must examine the update.

        Views that follow their rows see their changes. `joins`: those where something ended.
        """
        examined = dict.fromkeys(joins)
        for view, changes in emitted:
            evidence = self._evidence.get(view)
            if isinstance(evidence, JoinEvidence) and evidence.prospects.is_partial:
                evidence.prospects.take(changes)
                examined[evidence.prospects.waiting] = None
        for join in examined:
            ended = join.take_ended()
            for evidence in self._by_join.get(join, ()):
                try:
                    never = evidence.judged(ended)
                except _NOT_DECIDED as error:
                    self._give_up(evidence, error)
                    continue
                if never and self.how != "off":
                    append_never(emitted, evidence.view, never, time)

    def after(
        self, emitted: ViewChanges, time: int, ended: Mapping[Watch, Sequence[Ended | EndedWay]]
    ) -> ViewChanges:
        """Append the rows that an update made impossible to the changes of their views.

        `ended`: what ended at each watched join.
        """
        update = self._update
        asked: Sequence[Evidence] = self._joined
        if self.is_busy:
            asked = [each for each in self._evidence.values() if each.is_kept]
            if any(each.is_eager and each.reads_nodes for each in asked):
                self._document.settle()
            self._update = Update()
        update.emitted, update.ended = emitted, ended
        for evidence in asked:
            try:
                never = evidence.never(update)
            except _NOT_DECIDED as error:
                self._give_up(evidence, error)
                continue
            if never and self.how != "off":
                append_never(emitted, evidence.view, never, time)
        self._dismiss_guests()
        if self.is_busy:
            self._look()
        return emitted


def append_never(
    emitted: ViewChanges, view: MaintainedView, never: list[Change], time: int
) -> None:
    """Append `never` changes to those of their view."""
    changes = changes_of(view, emitted)
    if changes is None:
        changes = []
        emitted.append((view, changes))
    view.add_never(changes, never, time)


def _opens_limits(delta: Delta) -> bool:
    """Return whether an update opens calls with limits of their own."""
    tree = delta.tree
    calls = [tree.call(tree.calls_by_stream[s]) for s in delta.opened if s in tree.calls_by_stream]
    return any(c.most is not None or c.mode != "stream" or c.deletes != "no" for c in calls)


def _uses_up_calls(delta: Delta, stream: str) -> bool:
    """Return whether a message brings the last calls of its stream.

    Later trees of the stream then have one time.
    """
    tree = delta.tree
    return (
        bool(delta.opened) and stream in tree.calls_by_stream and not tree.may_bring_calls(stream)
    )


def _uses_up_trees(delta: Delta, stream: str) -> bool:
    """Return whether a message brings the last trees of its stream.

    Values above its call may then be final.
    """
    tree = delta.tree
    node = tree.calls_by_stream.get(stream)
    return bool(delta.added) and node is not None and not may_bring(tree, tree.call(node))
