"""The trees that messages may hold, by their profiles (`profile_trees.py`).

Elements hold elements, to any depth. So the profiles of all kinds of elements are computed
together, by a fixpoint from the leaves up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from axlog.document.tree import ATTRIBUTE, ELEMENT, TEXT
from axlog.errors import UndecidedError
from axlog.future.profile_trees import (
    Demand,
    Forests,
    FutureTree,
    NodeProfiles,
    Profile,
    check_limit,
)
from axlog.future.search_budget import left, spend


class _Kind(NamedTuple):
    """Elements that a node with this demand may hold, which arrive at this time.

    `with_calls`: parts of them may arrive later.
    """

    demand: Demand
    time: int
    with_calls: bool


Elements = dict[Profile, FutureTree]


class FutureTrees:
    """The profiles of the trees that messages may hold, each with a tree that has it."""

    def __init__(self, nodes: NodeProfiles, times: tuple[int, ...]) -> None:
        """`times`: one for each interval that constraints distinguish, in order."""
        self.nodes, self.times = nodes, times
        self._elements: dict[_Kind, Elements] = {}
        self._sums: dict[tuple[Demand, tuple[int, ...], bool], tuple[list[Forests], int]] = {}

    def sums(self, demand: Demand, times: tuple[int, ...], with_calls: bool) -> list[Forests]:
        """The unions of at most 0, 1, 2, ... trees that arrive at one of some times.

        They are computed once. Asking again costs the same part of the budget, so that a verdict
        does not depend on earlier questions.
        """
        key = (demand, times, with_calls)
        known = self._sums.get(key)
        if known is not None:
            spend(known[1])
            return known[0]
        before = left()
        try:
            trees: dict[Profile, FutureTree | str] = {}
            for time in times:
                for profile, tree in self._found(self._kind(demand, time, with_calls)).items():
                    trees.setdefault(profile, tree._replace(time=time))
            found = self._unions(trees, demand)
        except UndecidedError:
            self._elements.clear()  # some are not complete
            self._sums.clear()
            raise
        self._sums[key] = found, before - left()
        return found

    def _kind(self, demand: Demand, time: int, with_calls: bool) -> _Kind:
        if self.nodes.is_timed(demand):
            return _Kind(demand, time, with_calls)
        return _Kind(demand, self.times[0], False)  # the same at all times

    # Elements hold elements, to any depth: all kinds are computed together.

    def _found(self, kind: _Kind) -> Elements:
        if kind not in self._elements:
            order: dict[_Kind, set[_Kind]] = {}
            self._explore(kind, order)
            users: dict[_Kind, set[_Kind]] = {each: set() for each in order}
            for each, inner in order.items():
                for one in inner & order.keys():
                    users[one].add(each)
            self._elements.update((each, {}) for each in order)
            waiting = dict.fromkeys(order)
            while waiting:
                each = next(iter(waiting))
                del waiting[each]
                if self._grow(each):
                    for user in users[each]:
                        waiting[user] = None
        return self._elements[kind]

    def _explore(self, kind: _Kind, order: dict[_Kind, set[_Kind]]) -> None:
        """Find the kinds of elements that those of a kind may hold, inner ones first."""
        if kind in self._elements or kind in order:
            return
        inner = {each for name in self._names(kind.demand) for each in self._inner(kind, name)}
        order[kind] = inner
        for each in sorted(inner):
            self._explore(each, order)
        order[kind] = order.pop(kind)

    def _inner(self, kind: _Kind, name: str) -> list[_Kind]:
        """The kinds of elements inside an element with a name, by their times."""
        wanted = self.nodes.inside(ELEMENT, name, kind.demand)[1]
        if wanted.is_empty:
            return []
        after = [t for t in self.times if t > kind.time] if kind.with_calls else []
        return list(dict.fromkeys(
            self._kind(wanted, time, kind.with_calls) for time in (kind.time, *after)
        ))  # fmt: skip

    def _names(self, demand: Demand) -> Iterator[str]:
        """The element names that relations ask for, and one other."""
        others = []
        for name in self.nodes.names:
            if self.nodes.inside(ELEMENT, name, demand)[0]:
                yield name
            else:
                others.append(name)
        yield from others[:1]

    def _grow(self, kind: _Kind) -> bool:
        """Add the elements that the known ones of inner kinds allow; whether some are new."""
        found = self._elements[kind]
        known = len(found)
        for name in self._names(kind.demand):
            wanted = self.nodes.inside(ELEMENT, name, kind.demand)[1]
            trees: dict[Profile, FutureTree | str] = {}
            if not wanted.is_empty:
                trees.update(self._texts(wanted, kind.time))
            for inner in self._inner(kind, name):
                later = inner.time if inner.time > kind.time else None
                for profile, tree in self._elements[inner].items():
                    trees.setdefault(profile, tree._replace(time=later))
            self._add(found, kind, name, self._unions(trees, wanted)[-1])
        return len(found) > known

    def _add(self, found: Elements, kind: _Kind, name: str, inside: Forests) -> None:
        """Add the elements of a name with these children."""
        demand, time = kind.demand, kind.time
        attributes = self._attributes(self.nodes.inside(ELEMENT, name, demand)[1], time)
        spend(len(inside) * len(attributes) >> 4)
        for (below, forest), (more, given) in product(inside.items(), attributes.items()):
            whole = Profile(below.here | more, below.anywhere, below.value)
            for profile in self.nodes.of(ELEMENT, name, below.value, whole, time, demand):
                if profile not in found:
                    found[profile] = FutureTree(name, given, forest, time)
                    check_limit(found)

    def _texts(self, demand: Demand, time: int) -> dict[Profile, str]:
        nodes = self.nodes
        found: dict[Profile, str] = {}
        spend(len(nodes.texts) >> 2)
        for text in nodes.texts:
            inside = nodes.nothing(nodes.inside(TEXT, text, demand)[1])
            for profile in nodes.of(TEXT, text, text, inside, time, demand):
                found.setdefault(profile, text)
        return found

    def _attributes(self, demand: Demand, time: int) -> dict[int, tuple[tuple[str, str], ...]]:
        """The relations of the attributes of an element; each name at most once."""
        nodes = self.nodes
        found: dict[int, tuple[tuple[str, str], ...]] = {0: ()}
        for name in nodes.attributes:
            label = f"@{name}"
            relations, wanted = nodes.inside(ATTRIBUTE, label, demand)
            if not relations:
                continue
            known = list(found.items())
            for text in (*nodes.texts, ""):
                inside = nodes.nothing(wanted)
                if text:
                    (inside,) = nodes.of(TEXT, text, text, inside, time, wanted)
                for profile in nodes.of(ATTRIBUTE, label, text, inside, time, demand):
                    for bits, given in known:
                        found.setdefault(bits | profile.here, (*given, (name, text)))
        return found

    def _unions(self, trees: Mapping[Profile, FutureTree | str], demand: Demand) -> list[Forests]:
        """The unions of at most 0, 1, 2, ... trees, up to the fixpoint."""
        nodes, masks = self.nodes, self.nodes.masks(demand)
        nothing = nodes.nothing(demand)
        found: list[Forests] = [{nothing: ()}]
        new = found[0]
        trees = {profile: tree for profile, tree in trees.items() if profile != nothing}
        while new:
            known, more = found[-1], Forests()
            spend(1 + (len(new) * len(trees) >> 5))
            for (before, forest), (profile, tree) in product(new.items(), trees.items()):
                union = nodes.joined(before, profile, masks)
                if union is not None and union not in known and union not in more:
                    more[union] = (*forest, tree)
                    check_limit(more)
            new = more
            if more:
                found.append({**known, **more})
                check_limit(found[-1])
        return found
