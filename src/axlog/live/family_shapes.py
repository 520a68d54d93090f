"""The shapes of views: what those that differ in constants have in common, and their plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

from axlog.live.hooks import How
from axlog.query.general_steps import bound_steps, generalize_query
from axlog.query.generalize import General, StepParameter
from axlog.query.query import Query
from axlog.views.choose import Chosen
from axlog.views.counting.maintainer import Counting
from axlog.views.family import FamilyCounting, FamilyEngine, Member
from axlog.views.family_names import GENERATION, shown_with
from axlog.views.key_form import KeyForm
from axlog.views.maintainer import Maintainer
from axlog.views.step_rows import Stepping
from axlog.views.view import MaintainedView

Shape = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Family:
    """Views of one shape that share a plan."""

    shape: Shape
    general: MaintainedView
    kept: FamilyCounting
    stepping: Stepping
    chosen: Chosen
    how: How = "off"
    _form: KeyForm | None = None  # of the member that was opened last

    def stepping_of(self, member: Member) -> Stepping:
        """The steps of a member, with its constants."""
        if not any(isinstance(each, StepParameter) for each in self.kept.parameters):
            return self.stepping
        steps = bound_steps(self.stepping.key.steps, member.constants)
        return replace(self.stepping, key=replace(self.stepping.key, steps=steps))

    def maintainer_of(self, member: Member) -> Maintainer:
        """A maintainer of a member's rows, over those of the plan."""
        from axlog.views.counting.stepped import SteppedCounting
        from axlog.views.family_groups import GroupMember

        kept, stepping = self.kept, self.stepping_of(member)
        engine = FamilyEngine(kept, member.constants)
        if kept.groups is not None:
            return GroupMember(kept.tree, stepping, engine)
        if stepping.key.steps:
            return SteppedCounting(kept.tree, stepping, engine)
        return Counting(kept.tree, stepping.key.pattern, engine)

    def form_of(self, stepping: Stepping) -> KeyForm:
        """The form of a member's key; most members have the same."""
        if self._form is None or self._form.key is not stepping.key:
            self._form = KeyForm(stepping.key)
        return self._form

    def summary(self) -> str:
        """The plan, its parameters and the number of views that use it, for `explain`."""
        count, parameters = len(self.kept.members), ", ".join(map(str, self.kept.parameters))
        groups = "" if self.kept.groups is None else "; its groups are kept once"
        plan = self.general.query.text
        return f"one plan for {count} views: {plan}{groups}; parameters: {parameters}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A new view that may join a family.

    `instead`: the same with its durations, where views that differ in them cannot share a plan.
    """

    shape: Shape
    general: General
    query: Query
    stepping: Stepping
    instead: Candidate | None = None

    def all(self) -> Iterator[Candidate]:
        """The view as a candidate for each family that it may join, the largest first."""
        yield self
        if self.instead is not None:
            yield from self.instead.all()


def candidate_of(query: Query, stepping: Stepping, is_wide: bool) -> Candidate | None:
    """What a view shares with others; None: it has no constants.

    `is_wide`: durations of any length share a plan.
    """
    key = query.row_key
    found: Candidate | None = None
    for durations in (False, True):
        general = generalize_query(key, durations=durations, is_wide=is_wide)
        if general.parameters and general.has_durations == durations:
            parts = general.pattern, general.parameters, general.steps
            shape = (*parts, stepping.on_value_error)
            found = Candidate(shape, general, query, stepping, found)
    return found


def digest(shape: Shape) -> str:
    """A name of a shape that is the same in every run: snapshots have it."""
    return sha256(repr(shape).encode()).hexdigest()[:16]


def note_left(left: dict[str, tuple[int, int]], member: Member) -> None:
    """Add what a member has emitted, and its `never` changes, to what left with its family."""
    family, view = shown_with(member.name), member.view
    if view is not None and family != member.name:
        changes, never = left.get(family, (0, 0))
        left[family] = changes + view.position % GENERATION, never + view.never
