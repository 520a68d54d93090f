"""The families of a document: which views share a plan, and what each of them emits.

`Families.join` is asked for every new view. Views of one shape (`query/generalize.py`) stay alone
while they are few. When there are enough, a general view takes their place: one program in the
engine, from which each member gets its rows (`views/family.py`). From then on, watching a view of
this shape inserts a row into the parameter table, and unwatching deletes it; neither touches the
engine, so the next message costs what it cost before.

Law 9: a member has the rows, counts, changes, truth and `never` changes that it has alone.
A view stays alone where this does not hold or does not pay off: with a budget or a maintainer of
its own, with rejected values, with positions, with a `not` about the clock, and where `never`
changes of a member do not follow from those of the general view (`how`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from axlog.errors import QueryError, StoreError
from axlog.live.family_reasons import NEVER, fixed_places, refusal
from axlog.live.family_shapes import Candidate, Family, Shape, candidate_of, digest, note_left
from axlog.live.update_changes import ViewChanges, together
from axlog.live.view_parts import view_of
from axlog.query.general_steps import generalize_query
from axlog.query.generalize import ParameterValue
from axlog.query.query import Query
from axlog.query.query_templates import QueryTemplates, skeleton_of
from axlog.query.steps import clock_of
from axlog.views.change import CLOCK, Change, Row, never_change
from axlog.views.choose import choice_for, make_for
from axlog.views.counting.maintainer import Counting
from axlog.views.family import Emitted, FamilyCounting, Member
from axlog.views.maintainer import PutAside
from axlog.views.member_moments import MemberMoments
from axlog.views.step_rows import Stepping
from axlog.views.view import MaintainedView

if TYPE_CHECKING:
    from axlog.live.maintained import MaintainedTree

SHARE_FROM = 8
"""The number of views of one shape from which on they share a plan."""
HIDDEN = "~"
"""The first character of the name of a general view."""

SavedFamilies: TypeAlias = (
    "tuple[dict[Shape, Family], dict[str, Member], dict[Shape, dict[str, None]],"
    " dict[str, tuple[Shape, ...]], dict[str, Family]]"
)


class Families:
    """The families of one document."""

    def __init__(self, document: MaintainedTree) -> None:
        self._document = document
        self.share_from: int | None = SHARE_FROM  # None: views do not share plans
        self.is_wide = False  # whether durations of any length share a plan
        self.is_requested = False  # whether plans are shared because the user asks for it
        self.must_share = False  # whether no member can be kept alone: they get rows together
        self.by_shape: dict[Shape, Family] = {}
        self.members: dict[str, Member] = {}
        self._alone: dict[Shape, dict[str, None]] = {}  # names of views that may share a plan
        self._shapes: dict[str, tuple[Shape, ...]] = {}  # by the name of such a view
        self._retries: dict[Shape, int] = {}  # how many views of a refused shape are enough
        self._owners: dict[str, Family] = {}  # by the name of a member
        self._templates: dict[str | None, QueryTemplates] = {}  # by language
        self.on_open: list[Callable[[MaintainedView], None]] = []
        """Called with the view of a member when it is made."""
        self.emitted: Emitted = []
        """The changes of members in the current update, which are not numbered yet."""
        self._stopping: list[FamilyCounting] = []
        self.left: dict[str, tuple[int, int]] = {}
        """By family, the changes that members emitted before they left, and the `never` ones."""
        self._make_view = self._open  # one object for all members
        self._saved_plan: str | None = None
        """The name of the general view that a restored view belongs to, whatever pays off now."""

    def __bool__(self) -> bool:
        return bool(self.by_shape)

    # Joining --------------------------------------------------------------------------------------

    def candidate(
        self, query: Query, stepping: Stepping, maintainer: str | None, work: int | None
    ) -> Candidate | None:
        """What a new view shares with others; None: it is kept alone."""
        on_disk = self._document.engine.shelf is not None  # the rows of members would be in memory
        if maintainer is not None or refusal(query, stepping, work, on_disk) is not None:
            return None
        return candidate_of(query, stepping, self.is_wide)

    def join_by_text(self, name: str, text: str, language: str | None) -> Member | None:
        """Add a view whose text differs from that of a member in constants only; None: it may not.

        The text is not parsed.
        """
        templates = self._templates.get(language)
        found = None if templates is None else templates.find(text)
        if found is None:
            return None
        family, constants = found
        if self._saved_plan not in (None, family.general.name):
            return None
        return self._noted(self._admit(family, name, text, constants, language))

    def join(self, name: str, candidate: Candidate, language: str | None) -> Member | None:
        """Add a view to its family, which is made when there are enough views; None: alone."""
        for each in candidate.all():
            member = self._join(name, each, language)
            if member is not None:
                return member
        return None

    def _join(self, name: str, candidate: Candidate, language: str | None) -> Member | None:
        family = self.by_shape.get(candidate.shape)
        if self._saved_plan not in (None, f"{HIDDEN}{digest(candidate.shape)}"):
            return None
        if family is None:
            waiting = self._alone.get(candidate.shape, {})
            enough = max(self.share_from or 0, self._retries.get(candidate.shape, 0))
            if self.share_from is None or len(waiting) + 1 < enough:
                return None
            family = self._make(candidate, list(waiting))
            if family is None:  # to find this out costs as much as a view
                self._retries[candidate.shape] = 2 * len(waiting) + 2
                return None
        parse = partial(self._document.parse, language=language)
        templates = self._templates.setdefault(language, QueryTemplates())
        templates.learn(candidate.query.text, candidate.general, parse, family)
        constants = candidate.general.constants
        return self._noted(self._admit(family, name, candidate.query, constants))

    def note_alone(self, view: MaintainedView, candidate: Candidate) -> None:
        """Remember a view that is kept alone, until there are more of its shape."""
        if view.chosen.name == Counting.name:
            self._shapes[view.name] = tuple(each.shape for each in candidate.all())
            for shape in self._shapes[view.name]:
                self._alone.setdefault(shape, {})[view.name] = None

    def _admit(
        self,
        family: Family,
        name: str,
        query: Query | str,
        constants: tuple[ParameterValue, ...],
        language: str | None = None,
    ) -> Member:
        """Add a member; the text of a query is parsed when its view needs it."""
        member = Member(name, query, language, constants, family.kept, self._make_view)
        family.kept.admit(member)
        self.members[name] = member
        self._owners[name] = family
        return member

    def _noted(self, member: Member) -> Member:
        """A new member, with the moments at which time changes its rows."""
        member.family.note(member)
        return member

    def family_of(self, name: str) -> Family:
        """The family of a member."""
        return self._owners[name]

    def _open(self, member: Member) -> MaintainedView:
        """Make the view of a member."""
        document, family = self._document, self.family_of(member.name)
        find = partial(document.parse, member.query, member.language)
        stepping = family.stepping_of(member)
        kept, form = family.maintainer_of(member), family.form_of(stepping)
        view = view_of(document, member.name, find, kept, family.chosen, stepping, form)
        for opened in self.on_open:
            opened(view)
        return view

    def _make(self, candidate: Candidate, names: list[str]) -> Family | None:
        """Make a family of views that are kept alone; None: they must stay alone."""
        from axlog.future.clock_outlook import lower_bounds  # not for a small command
        from axlog.views.family_groups import shared_groups

        document = self._document
        views = [document.views[name] for name in names]
        if any(not _may_change(view) for view in views):
            return None
        chosen = choice_for(candidate.query, None, document.tree, document.thresholds)
        if chosen.name != Counting.name:
            return None
        pattern = candidate.general.pattern
        query = Query(pattern, str(pattern))
        name = f"{HIDDEN}{digest(candidate.shape)}"
        stepping = Stepping(query.row_key, query.text)
        kept = FamilyCounting(
            document.nodes(),
            query.row_key.pattern,
            candidate.general.parameters,
            candidate.stepping.key.pattern,
            document.engine,
            self.emitted,
        )
        kept.has_steps, kept.stopping = bool(candidate.stepping.key.steps), self._stopping
        kept.awaits_time = lower_bounds(candidate.query) is not None
        general = view_of(document, name, query, kept, chosen, stepping)
        document.views[name] = general
        document.engine.build()
        stepping = candidate.stepping
        stepping = replace(stepping, key=replace(stepping.key, steps=candidate.general.steps))
        family = Family(candidate.shape, general, kept, stepping, chosen)
        kept.groups = shared_groups(kept, stepping)
        if clock_of(stepping.key.steps) is not None:
            kept.moments = MemberMoments(document.tree)
            document.clocked.append(general)
        if views:
            sample = views[0]
        else:
            constants = candidate.general.constants
            first_member = Member("", candidate.query, None, constants, kept, _none)
            alone = family.maintainer_of(first_member)
            sample = view_of(document, "", candidate.query, alone, chosen, candidate.stepping)
        document.hooks.refresh()
        how = document.hooks.how_shared(general, sample) if kept.broken is None else None
        if how is None and self._saved_plan is None and not self.must_share:
            self._drop(general)
            kept.close()
            return None
        family.how, kept.is_settled = how or "off", how == "join"
        self.by_shape[candidate.shape] = family
        for view in views:
            self._convert(family, view, candidate.general.has_durations)
        return family

    def _convert(self, family: Family, view: MaintainedView, durations: bool) -> None:
        """Make a view that was kept alone a member."""
        key, is_wide = view.query.row_key, self.is_wide
        general = generalize_query(key, durations=durations, is_wide=is_wide)
        document = self._document
        del document.views[view.name]
        document.clocked = [each for each in document.clocked if each is not view]
        view.maintainer.close()
        self.forget_alone(view.name)
        member = self._admit(family, view.name, view.query, general.constants)
        member.view = view
        view.maintainer = family.maintainer_of(member)
        family.kept.note(member)

    # Leaving --------------------------------------------------------------------------------------

    def forget_alone(self, name: str) -> None:
        """Forget a view that was kept alone."""
        for shape in self._shapes.pop(name, ()):
            self._alone.get(shape, {}).pop(name, None)

    def leave(self, name: str) -> None:
        """Drop a member; the last one takes the plan with it."""
        family, member = self.family_of(name), self.members.pop(name)
        family.kept.dismiss(member)
        del self._owners[name]
        note_left(self.left, member)
        if not family.kept.members:
            self._end(family)

    def _end(self, family: Family) -> None:
        document = self._document
        document.settle()  # the other views are set up anew from the document
        del self.by_shape[family.shape]
        for templates in self._templates.values():
            templates.forget(family)
        self._drop(family.general)
        family.kept.close()

    def _drop(self, general: MaintainedView) -> None:
        document = self._document
        del document.views[general.name]
        document.clocked = [view for view in document.clocked if view is not general]

    def dissolve(self, family: Family) -> None:
        """Keep the members alone from now on. Their rows, and so their changes, stay the same."""
        members = list(family.kept.members.values())
        for member in members:
            view = member.opened()
            del self.members[member.name], self._owners[member.name]
            family.kept.dismiss(member)
            self._keep_alone(view)
        self._end(family)

    def _keep_alone(self, view: MaintainedView) -> None:
        """Give a view that shared a plan a maintainer of its own, with the same rows."""
        document = self._document
        document.untune()
        view.stepping = replace(view.stepping, key=view.query.row_key)  # not that of another member
        nodes, chosen = document.nodes(), view.chosen.name
        view.maintainer = make_for(nodes, view.query, view.stepping, chosen, document.engines)
        view.maintainer.load()
        document.views[view.name] = view
        document.clocked += [view] if view.reads_clock else []
        document.engine.build()

    def review(self) -> bool:
        """Choose again how members get `never` changes; whether some must be kept alone now."""
        document = self._document
        stale: list[Family] = []
        for family in self.by_shape.values():
            sample = next(iter(family.kept.members.values()), None)
            if sample is None:
                continue
            how = document.hooks.how_shared(family.general, sample.opened())
            is_bound = self.must_share or document.lacks_messages or document.collected
            if how is None and not is_bound:
                stale.append(family)
            family.how = how or "off"
        for family in stale:
            self.dissolve(family)
        return bool(stale)

    # Changes --------------------------------------------------------------------------------------

    def distributed(self, each: ViewChanges) -> ViewChanges:
        """The changes of an update, those of general views as the changes of their members."""
        time = self._document.tree.clock
        came = self.emitted.copy()
        self.emitted.clear()
        found: ViewChanges = []
        never: ViewChanges = []
        for view, changes in each:
            if view.name[:1] != HIDDEN:
                found.append((view, changes))
                continue
            if any(change.op == "never" for change in changes):
                never.append((view, [change for change in changes if change.op == "never"]))
        if not never and not self._stopping and len(dict(came)) == len(came):
            numbered = MaintainedView.taken_of_each(came, time, self._document.current.origin)
            return together(found, numbered)
        moves: dict[MaintainedView, list[Change]] = {}
        for view, moved in came:
            changes = [Change("insert", moved)] if isinstance(moved, Row) else moved
            moves.setdefault(view, []).extend(changes)
        mine = {view: view.taken(changes, time) for view, changes in moves.items()}
        for family in self.by_shape.values():
            kept = family.kept
            if family.how == "join" and (never or kept.stopped or kept.never):
                for opened, ended in self._never(family, never).items():
                    if not opened.is_deferred:
                        opened.add_never(mine.setdefault(opened, []), list(ended.values()), time)
            kept.forget_never()
        self._stopping.clear()
        return together(found, [one for one in mine.items() if one[1]])

    def _never(
        self, family: Family, never: ViewChanges
    ) -> dict[MaintainedView, dict[tuple[object, ...], Change]]:
        """The `never` changes of members, by their values, from those of the general view."""
        found: dict[MaintainedView, dict[tuple[object, ...], Change]] = {}
        for change in (each for view, some in never if view is family.general for each in some):
            for member in family.kept.members_of(change.row):
                view = member.opened()
                row = Row(view.columns, change.row.values_[: len(view.columns)])
                origin = CLOCK if change.origin == CLOCK else None
                made = Change("never", row, microseconds=change.microseconds, origin=origin)
                found.setdefault(view, {})[row.values_] = made
        for member, changes in family.kept.never.items():
            known = found.setdefault(member.opened(), {})
            known.update((change.row.values_, change) for change in changes)
        for member in family.kept.stopped:
            view = member.opened()
            nothing = (None,) * len(view.columns)
            limits = [family.kept.stopped_at]
            found.setdefault(view, {})[nothing] = never_change(Row(view.columns, nothing), limits)
        return found

    def discard(self) -> None:
        """Forget changes of members that are not to be emitted: the update was taken back."""
        self.emitted.clear()
        for kept in self._stopping:
            kept.forget_never()
        self._stopping.clear()

    # Snapshots ------------------------------------------------------------------------------------

    def in_order(self) -> Iterator[tuple[str, MaintainedView, str | None]]:
        """Every view by name, and the plan that it shares, in the order of the programs."""
        for name, view in self._document.views.items():
            if name[:1] != HIDDEN:
                yield name, view, None
                continue
            assert isinstance(view.maintainer, FamilyCounting)
            for member in view.maintainer.members.values():
                yield member.name, member.opened(), name

    def check_saved(self, names: Iterable[str]) -> None:
        """Refuse the saved rows of views that shared other plans."""
        saved = {name for name in names if name[:1] == HIDDEN}
        known = {family.general.name for family in self.by_shape.values()}
        if saved != known:
            raise StoreError(
                "AX872",
                f"the saved state has {len(saved)} shared plans, and the views need {len(known)},"
                f" {len(saved & known)} of them the same",
                advice="run the version that wrote it, or start again without this state",
            )

    @contextmanager
    def restoring(self, is_shared: bool, plan: str | None = None) -> Iterator[None]:
        """Let a view that is watched inside share a plan, or not, as it did in a snapshot.

        `plan`: the one whose rows were saved, although it might not be chosen now.
        """
        usual, self.share_from = self.share_from, 1 if is_shared else None
        self._saved_plan = plan
        try:
            yield
        finally:
            self.share_from, self._saved_plan = usual, None

    # Savepoints -----------------------------------------------------------------------------------

    def saved(self) -> SavedFamilies:
        """The members of every family, for a savepoint."""
        return (
            dict(self.by_shape),
            dict(self.members),
            {shape: dict(names) for shape, names in self._alone.items()},
            dict(self._shapes),
            dict(self._owners),
        )

    def return_to(self, saved: SavedFamilies) -> None:
        """Restore the members; `reload` restores their rows, once there are engines."""
        by_shape, members, alone, shapes, owners = saved
        self.by_shape, self.members, self._alone = dict(by_shape), dict(members), dict(alone)
        self._shapes, self._owners = dict(shapes), dict(owners)
        self._templates.clear()
        self.emitted.clear()

    def reload(self) -> None:
        """Take the rows of all members from the general views, which were made anew."""
        for family in self.by_shape.values():
            kept = family.general.maintainer
            assert isinstance(kept, FamilyCounting)
            family.kept = kept
            if kept.moments is not None:
                self._document.clocked.append(family.general)
        for name, member in self.members.items():
            family = self.family_of(name)
            member.family = family.kept
            family.kept.admit(member)
            if member.view is not None and not isinstance(member.view.maintainer, PutAside):
                member.view.maintainer = family.maintainer_of(member)
                family.kept.note(member)

    # Reading ------------------------------------------------------------------------------------

    def watched(self, name: str) -> MaintainedView | Member | None:
        """The view of this name that a user watches; None: there is none."""
        member = self.members.get(name)
        if member is not None:
            return member
        return None if name[:1] == HIDDEN else self._document.views.get(name)

    def every_view(self) -> Iterator[tuple[str, MaintainedView | Member]]:
        """The views that users watch, by name."""
        for name, view in self._document.views.items():
            if name[:1] != HIDDEN:
                yield name, view
        yield from self.members.items()

    def texts(self) -> Iterator[tuple[str, str | None, str, str | None]]:
        """Every view: its name, a name of its shape (None: it has none), its text and language."""
        for name, view in self.every_view():
            shape, text = next(iter(self._shapes.get(name, ())), None), view.query
            language = None if isinstance(text, str) else text.language
            if isinstance(view, Member):
                shape, language = self.family_of(name).shape, language or view.language
            written = text if isinstance(text, str) else text.text
            yield name, None if shape is None else digest(shape), written, language

    def set_aside(self) -> Iterator[tuple[str, QueryError]]:
        """The views that exceeded a limit, with their errors. No view of a member is made."""
        for name, view in self._document.views.items():
            if name[:1] != HIDDEN and view.broken is not None:
                yield name, view.broken
        for family in self.by_shape.values():
            reason = family.kept.broken
            if reason is not None:
                yield from ((member, reason) for member in family.kept.members)
        for view in self.opened():
            if view.broken is not None:
                yield view.name, view.broken

    def constants_of(self, text: str, language: str | None) -> tuple[ParameterValue, ...]:
        """The constants of a query; its text is parsed only if its template is not known."""
        templates = self._templates.get(language)
        found = None if templates is None else templates.find(text)
        if found is not None:
            return found[1]
        return generalize_query(self._document.parse(text, language).row_key).constants

    def may_have_rows(self, name: str) -> bool:
        """Whether a view may have rows. The view of a member is not made to find out."""
        member = self.members.get(name)
        return member is None or member.may_have_rows()

    def summary_of(self, view: MaintainedView) -> str | None:
        """The plan that a view shares, for `explain`; None: it is kept alone."""
        member = self.members.get(view.name)
        is_member = member is not None and member.view is view
        return self.family_of(view.name).summary() if is_member else None

    def reason_alone(self, view: MaintainedView) -> str | None:
        """Why views with other constants do not share the plan of this one, for `explain`.

        None: they may, or there are none.
        """
        on_disk = self._document.engine.shelf is not None
        reason = refusal(view.query, view.stepping, view.work, on_disk)
        if reason is not None:
            return reason if skeleton_of(view.query.text) != view.query.text else None
        candidate = self.candidate(view.query, view.stepping, None, view.work)
        if candidate is not None and all(one.shape in self._retries for one in candidate.all()):
            return NEVER
        places = fixed_places(generalize_query(view.query.row_key, durations=True))
        return f"constants in {' and '.join(places)} belong to the plan" if places else None

    def opened(self) -> Iterator[MaintainedView]:
        """The views of members that have been needed so far."""
        for member in self.members.values():
            if member.view is not None:
                yield member.view

    def ending(self) -> Iterator[MaintainedView]:
        """The members whose `never` changes are found when a stream ends."""
        for family in self.by_shape.values():
            if family.how == "end":
                for member in family.kept.members.values():
                    yield member.opened()


def _none(member: Member) -> MaintainedView:
    raise AssertionError(f"{member.name!r} has no view")


def _may_change(view: MaintainedView) -> bool:
    """Whether the maintainer of a view can be replaced."""
    return view.broken is None and not view.is_deferred
