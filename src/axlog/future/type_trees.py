"""Whether the type of a service has a tree that satisfies given conditions, and which tree.

A `Place` is a label under a service's type, with the conditions on the node (`Wants`). It can be
filled if the conditions can be distributed over children, and numbers of children exist that
satisfy both the service's type and the document's. Children are places again. A place cannot depend
on itself, so the fillable places are a least fixpoint, and each has a recipe made of places found
before it.

Trees that hold calls are covered: data that a call inside a new tree delivers later has the type of
its own service, and its numbers are subject to the document's type alone (`type_steps`).

The result is exact, up to a limit (AX502): the number of distributions is exponential in the
conditions, which are parts of the pattern; the problem is NP-hard even for a fixed type. (Paper 2,
section 4, theorems 3 and 4, remark 5.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from axlog.document.cardinality import TEXT, Constraint, solutions
from axlog.document.schema import LAYOUT, OTHER, Schema, service_kind
from axlog.document.tree import NodeKind, Tree
from axlog.errors import UndecidedError
from axlog.future.disjuncts import is_name, is_text
from axlog.future.requirements import NOTHING, Group, NodeMatcher, Slot, Subject, Wants, share_out
from axlog.future.type_steps import Caller, Goal, Step, reach
from axlog.query.pattern import Axis, PatternNode


@dataclass(frozen=True)
class Place:
    """A future element under a service's type, with the conditions on it."""

    service: str
    label: str
    wants: Wants = NOTHING


def may_hold_calls(tree: Tree, schema: Schema) -> bool:
    """Whether future trees may hold calls; if not, all nodes of a tree have one time.

    Rejected if some streams may deliver the calls that their types allow and others may not: a
    place belongs to a service, not to a stream.
    """
    allowed = {
        tree.may_bring_calls(stream)
        for stream, call in tree.calls().items()
        if _allows_calls(tree, schema, call)
    }
    if len(allowed) > 1:
        raise UndecidedError(
            "AX503",
            "the types of several streams allow calls, but only some of these declare `calls`",
            advice='declare calls="yes" on all of these streams, or on none',
        )
    return True in allowed


def _allows_calls(tree: Tree, schema: Schema, call: int) -> bool:
    """Whether the type of a call's service allows calls inside its trees."""
    type_ = schema.service(service_kind(tree, call)[1:])
    waiting = list(type_.roots)
    for label in waiting:  # grows while it is iterated
        kinds = type_.constraint(label).allowed & schema.document.constraint(label).allowed
        if any(kind.startswith("?") for kind in kinds):
            return True
        waiting += [k for k in sorted(kinds) if k in type_.table and k not in waiting]
    return False


@dataclass(slots=True)
class Recipe:
    """How to fill a place: attributes, children, numbers of each kind, later deliveries."""

    attributes: dict[str, str]
    groups: list[Group]
    numbers: dict[str, int]
    steps: list[Step] = field(default_factory=list)


class Trees:
    """The fillable places of one schema, for one set of bindings."""

    def __init__(self, schema: Schema, matcher: NodeMatcher, holds_calls: bool = True) -> None:
        """`holds_calls`: future trees may hold calls where their types allow them."""
        self.schema = schema
        self._holds_calls = holds_calls
        self.matcher = matcher
        self.recipes: dict[Place, Recipe] = {}
        self._unfillable: set[Place] = set()  # places proved unfillable
        self._examined: dict[Place, None] = {}
        self._constraints: dict[tuple[str, str | None], Constraint] = {}

    @cached_property
    def universe(self) -> frozenset[str]:
        """Every label that some type of the schema has a rule for."""
        labels = set(self.schema.document.table)
        for _, given in self.schema.services:
            labels |= given.table.keys()
        return frozenset(labels)

    def constraint(self, label: str, service: str | None = None) -> Constraint:
        """The content constraint of a label in the document's type, or in a service's."""
        key = (label, service)
        if key not in self._constraints:
            type_ = self.schema.document if service is None else self.schema.service(service)
            self._constraints[key] = type_.constraint(label, sorted(self.universe))
        return self._constraints[key]

    def can_fill(self, place: Place) -> bool:
        """Whether a place has a tree; if so, `recipes` holds it."""
        if place in self.recipes or place in self._unfillable:
            return place in self.recipes
        self._examined = {place: None}
        before = -1
        while before != len(self.recipes) + len(self._examined):
            before = len(self.recipes) + len(self._examined)
            for waiting in [p for p in self._examined if p not in self.recipes]:
                recipe = self._fill(waiting)
                if recipe is not None:
                    self.recipes[waiting] = recipe
        self._unfillable |= self._examined.keys() - self.recipes.keys()
        return place in self.recipes

    def _is_known(self, place: Place) -> bool:
        """Whether a place is known to be fillable; otherwise schedule it for examination."""
        if place not in self.recipes and place not in self._unfillable:
            self._examined.setdefault(place)
        return place in self.recipes

    def roots(self, service: str) -> tuple[str, ...]:
        """The root labels for which a service has a tree."""
        labels = self.schema.service(service).roots
        return tuple(label for label in labels if self.can_fill(Place(service, label)))

    # One place

    def _fill(self, place: Place) -> Recipe | None:
        subject = Subject(NodeKind.ELEMENT, place.label)
        slots = list(self._slots(place))
        for below, wanted in self.matcher.settled(place.wants, subject):
            attributes = self.matcher.attributes(wanted)
            if attributes is None:
                continue
            for groups in share_out(below, slots, self.ways, self.matcher.count):
                if all(self._meets(place, group) for group in groups):
                    recipe = self._recipe(place, attributes, groups)
                    if recipe is not None:
                        return recipe
        return None

    def ways(self, want: PatternNode, slot: Slot) -> Iterator[Wants]:
        """Conditions on a future child: the rest of the branch here, or the branch further down."""
        if self.matcher.passes(want, slot.subject):
            yield frozenset(want.branches)
        if want.axis is Axis.DESCENDANT and slot.subject.label in self.universe:
            yield frozenset({want})

    def _slots(self, place: Place) -> Iterator[Slot]:
        """The children that a place may have, and those that its calls may deliver."""
        by_document = self.constraint(place.label).allowed
        allowed = by_document & self.constraint(place.label, place.service).allowed
        for label in sorted(allowed & self.universe):
            yield Slot(Subject(NodeKind.ELEMENT, label))
        for string in self.matcher.strings:
            if TEXT in allowed and string and is_text(string):
                yield Slot(Subject(NodeKind.TEXT, string))
            if OTHER in allowed and string not in self.universe and is_name(string):
                yield Slot(Subject(NodeKind.ELEMENT, string))
        for kind in sorted(allowed) if self._holds_calls else ():
            if kind.startswith("?"):
                for label in self.schema.service(kind[1:]).roots:
                    if label in by_document:
                        yield Slot(Subject(NodeKind.ELEMENT, label), kind[1:])

    def _meets(self, place: Place, group: Group) -> bool:
        subject, service = group.slot.subject, group.slot.service or place.service
        if subject.kind is NodeKind.ELEMENT and subject.label in self.universe:
            return self._is_known(Place(service, subject.label, group.wants))
        return self.leaf_attributes(group) is not None

    def leaf_attributes(self, group: Group) -> dict[str, str] | None:
        """Attributes with which a text, or an element without a rule, meets its conditions."""
        is_element = group.slot.subject.kind is NodeKind.ELEMENT
        for below, wanted in self.matcher.settled(group.wants, group.slot.subject):
            if not below and (is_element or not wanted):
                attributes = self.matcher.attributes(wanted)
                if attributes is not None:
                    return attributes
        return None

    # Numbers

    def _recipe(
        self, place: Place, attributes: dict[str, str], groups: list[Group]
    ) -> Recipe | None:
        constraints = [self.constraint(place.label, place.service), self.constraint(place.label)]
        least: Counter[str] = Counter(f"@{name}" for name in attributes)
        goal: Counter[tuple[str, str]] = Counter()
        for slot, _ in groups:
            if slot.service is None:
                least[self.kind(slot.subject)] += 1
            else:
                goal[slot.service, slot.subject.label] += 1
                least[f"?{slot.service}"] = 1
        most = self._most(place, constraints, attributes)
        if goal and not self._is_goal_allowed(constraints[1], least, goal):
            return None
        for numbers in solutions(constraints, least, most):
            self.matcher.count()
            steps = self._later_steps(place.label, numbers, goal) if goal else []
            if steps is not None:
                return Recipe(attributes, groups, numbers, steps)
        return None

    def kind(self, subject: Subject) -> str:
        if subject.kind is NodeKind.TEXT:
            return TEXT
        return subject.label if subject.label in self.universe else OTHER

    def _most(
        self, place: Place, constraints: list[Constraint], attributes: Mapping[str, str]
    ) -> dict[str, int | None]:
        """The kinds of children that can occur at all, with their largest numbers."""
        most: dict[str, int | None] = {}
        for kind in sorted(constraints[0].allowed & constraints[1].allowed - {LAYOUT}):
            if kind.startswith("?") and not self._holds_calls:
                continue
            if kind not in self.universe or self._is_known(Place(place.service, kind)):
                most[kind] = None
        mentioned = {s for c in constraints for s in c.kinds if s.startswith("@")}
        most |= dict.fromkeys(sorted(mentioned | {f"@{name}" for name in attributes}), 1)
        return most

    def _is_goal_allowed(self, constraint: Constraint, least: Counter[str], goal: Goal) -> bool:
        """Whether the document's type allows the wanted numbers at all."""
        wanted = Counter({kind: number for kind, number in least.items() if kind[0] != "?"})
        wanted.update({label: number for (_, label), number in goal.items()})
        anything = dict.fromkeys(constraint.allowed | wanted.keys())
        return next(solutions([constraint], wanted, anything), None) is not None

    def _later_steps(self, label: str, numbers: Mapping[str, int], goal: Goal) -> list[Step] | None:
        """The steps by which the calls of a new node meet the goal; None if they cannot."""
        callers: list[Caller] = []
        for kind, number in numbers.items():
            if kind.startswith("?"):
                service = kind[1:]
                labels = self.schema.service(service).roots
                known = tuple(r for r in labels if self._is_known(Place(service, r)))
                # one call for each wanted tree is enough
                for _ in range(min(number, sum(goal.values()))):
                    name = f"{service}.{len(callers)}"
                    callers.append(Caller(name, service, known, (False, True)))
        return reach(self.constraint(label), numbers, callers, goal)
