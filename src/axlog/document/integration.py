"""Integration: parallel update lists on one version of a document, merged into one list.

Two operations of different lists conflict if the outcome depends on which list is applied first, or
if one undoes the other (Cavalieri, Guerrini and Mesiti, EDBT 2011):

    repeated modification   both rename the node, replace it, or replace its value
    repeated attribute      both give one element an attribute of one name
    insertion order (IO)    both insert at one place
    local override (LO)     one removes the node, the other changes it or inserts into it
    non-local override      one removes a node above the other's target (NLO)

`conflicts` lists them. `integrate` resolves them by the policies of the lists' authors (`Policy`)
and fails if the policies contradict each other. Without policies, insertions follow the order of
the lists, removals override, and of two modifications the first list's stays. The document is not
needed. (Paper 5, section 5.3.2 and figure 15.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from axlog.document.ids import Id
from axlog.document.operations import Attribute
from axlog.document.reduction import joined, reduce
from axlog.document.update_lists import (
    BESIDE,
    INSERTS,
    INSIDE,
    TAKES_AWAY,
    Edit,
    EditKind,
    UpdateList,
)
from axlog.errors import UpdateError

_MODIFIES = frozenset({EditKind.RENAME, EditKind.REPLACE_NODE, EditKind.REPLACE_VALUE})
_KEEPS_ORDER = INSERTS - {EditKind.INSERT_INTO}


class ConflictKind(Enum):
    """The kinds of conflict, with the names of the literature."""

    MODIFICATION = "repeated modification"
    ATTRIBUTE = "repeated attribute insertion"
    INSERTION_ORDER = "IO"
    LOCAL_OVERRIDE = "LO"
    NON_LOCAL_OVERRIDE = "NLO"


@dataclass(frozen=True, slots=True)
class Policy:
    """Requirements of the author of a list.

    `order`: its insertions are next to their targets. `inserted`: the content it inserts stays.
    `removed`: the nodes it removes are removed.
    """

    order: bool = False
    inserted: bool = False
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two operations, each with the number of its list; an overriding one is the first."""

    kind: ConflictKind
    first: tuple[int, Edit]
    second: tuple[int, Edit]


def conflicts(lists: Sequence[UpdateList]) -> list[Conflict]:
    """Every conflict between operations of different lists.

    >>> one = UpdateList((Edit(EditKind.DELETE, Id.parse("1.2")),))
    >>> two = UpdateList((Edit(EditKind.INSERT_LAST, Id.parse("1.2.1"), ("x",)),))
    >>> [conflict.kind.value for conflict in conflicts([one, two])]
    ['NLO']
    """
    numbered = [(number, edit) for number, given in enumerate(lists) for edit in given]
    by_target: dict[Id, list[tuple[int, Edit]]] = {}
    for one in numbered:
        by_target.setdefault(one[1].target, []).append(one)
    found = [
        conflict
        for together in by_target.values()
        for one, other in _of_different_lists(together)
        for conflict in _at_one_target(one, other)
    ]
    found += [
        Conflict(ConflictKind.NON_LOCAL_OVERRIDE, above, below)
        for below in numbered
        for ancestor in below[1].target.ancestors()
        for above in by_target.get(ancestor, ())
        if above[0] != below[0] and _overrides_below(above[1], below[1])
    ]
    return [*found, *_repeated_attributes(numbered)]


def _of_different_lists(
    together: Sequence[tuple[int, Edit]],
) -> Iterator[tuple[tuple[int, Edit], tuple[int, Edit]]]:
    for at, one in enumerate(together):
        for other in together[at + 1 :]:
            if one[0] != other[0]:
                yield one, other


def _at_one_target(one: tuple[int, Edit], other: tuple[int, Edit]) -> Iterator[Conflict]:
    first, second = one[1], other[1]
    if first.kind is second.kind:
        if first.kind in _MODIFIES:
            yield Conflict(ConflictKind.MODIFICATION, one, other)
        elif first.kind in _KEEPS_ORDER and _has_trees(first) and _has_trees(second):
            yield Conflict(ConflictKind.INSERTION_ORDER, one, other)
    elif _overrides(first, second):
        yield Conflict(ConflictKind.LOCAL_OVERRIDE, one, other)
    elif _overrides(second, first):
        yield Conflict(ConflictKind.LOCAL_OVERRIDE, other, one)


def _repeated_attributes(numbered: Sequence[tuple[int, Edit]]) -> Iterator[Conflict]:
    given: dict[tuple[Id | None, str], list[tuple[int, Edit]]] = {}
    for number, edit in numbered:
        if edit.kind in INSERTS:
            owner = edit.target.parent if edit.kind in BESIDE else edit.target
            for name in attribute_names(edit):
                given.setdefault((owner, name), []).append((number, edit))
    for together in given.values():
        for one, other in _of_different_lists(together):
            yield Conflict(ConflictKind.ATTRIBUTE, one, other)


def attribute_names(edit: Edit) -> set[str]:
    """The names of the attributes that an edit inserts."""
    return {piece.name for piece in edit.content if isinstance(piece, Attribute)}


def _has_trees(edit: Edit) -> bool:
    return any(not isinstance(piece, Attribute) for piece in edit.content)


def _overrides(over: Edit, under: Edit) -> bool:
    """O1, O2: whether the first cancels the effect of the second on the same node."""
    if under.kind in BESIDE or under.kind is EditKind.DELETE:
        return False
    if over.kind in TAKES_AWAY:
        return not (over.kind is EditKind.DELETE and under.kind is EditKind.REPLACE_NODE)
    return over.kind is EditKind.REPLACE_VALUE and under.kind in INSIDE and _has_trees(under)


def _overrides_below(over: Edit, under: Edit) -> bool:
    """O3, O4: whether the first cancels the effect of the second on a node below."""
    if under.kind is EditKind.DELETE:
        return False
    if over.kind in TAKES_AWAY:
        return True
    is_attribute = under.target.components()[over.target.depth][1]
    return over.kind is EditKind.REPLACE_VALUE and not is_attribute


# Resolving ----------------------------------------------------------------------------------------


def integrate(lists: Sequence[UpdateList], policies: Sequence[Policy] = ()) -> UpdateList:
    """Merge lists; resolve conflicts by policies (one for each list, or none)."""
    if policies and len(policies) != len(lists):
        raise UpdateError(
            "AX305", f"{len(lists)} lists have {len(policies)} policies", expected="one for each"
        )
    reduced = [reduce(given) for given in lists]
    resolver = _Resolver(reduced, list(policies) or [Policy()] * len(lists))
    for conflict in sorted(conflicts(reduced), key=resolver.comes_later):
        resolver.resolve(conflict)
    created = tuple(one for given in lists for one in given.created)
    return reduce(UpdateList(resolver.merged(), created))


class _Resolver:
    """The operations of all lists that no conflict has removed."""

    def __init__(self, lists: Sequence[UpdateList], policies: Sequence[Policy]) -> None:
        self.policies = policies
        self.standing: dict[tuple[int, int], Edit] = {
            (number, id(edit)): edit for number, given in enumerate(lists) for edit in given
        }
        self.nearest: dict[
            tuple[EditKind, Id], int
        ] = {}  # place to the list that requires to be nearest

    def comes_later(self, conflict: Conflict) -> bool:
        """Whether to resolve the conflict late: overrides of required content come first."""
        return not self.policies[conflict.second[0]].inserted

    def resolve(self, conflict: Conflict) -> None:
        first, second = conflict.first, conflict.second
        if _key(first) not in self.standing or _key(second) not in self.standing:
            return
        match conflict.kind:
            case ConflictKind.INSERTION_ORDER:
                self._resolve_order(conflict)
            case ConflictKind.MODIFICATION:
                del self.standing[_key(self._dropped_side(conflict))]
            case ConflictKind.ATTRIBUTE:
                self._resolve_attributes(conflict)
            case ConflictKind.LOCAL_OVERRIDE | ConflictKind.NON_LOCAL_OVERRIDE:
                self._resolve_override(conflict)

    def _resolve_order(self, conflict: Conflict) -> None:
        place = (conflict.first[1].kind, conflict.first[1].target)
        insisting = {n for n, _ in (conflict.first, conflict.second) if self.policies[n].order}
        if place in self.nearest:
            insisting.add(self.nearest[place])
        if len(insisting) > 1:
            raise self._irreconcilable(conflict, "require to be next to the node")
        for number in insisting:
            self.nearest[place] = number

    def _resolve_attributes(self, conflict: Conflict) -> None:
        loser = self._dropped_side(conflict)
        winner = conflict.first if loser is conflict.second else conflict.second
        names = attribute_names(self.standing[_key(winner)])
        edit = self.standing[_key(loser)]
        content = tuple(
            piece
            for piece in edit.content
            if not isinstance(piece, Attribute) or piece.name not in names
        )
        self.standing[_key(loser)] = replace(edit, content=content, roots=())

    def _dropped_side(self, conflict: Conflict) -> tuple[int, Edit]:
        """The operation to drop of two that exclude each other."""
        wishes = [self.policies[n].inserted for n, _ in (conflict.first, conflict.second)]
        if all(wishes):
            raise self._irreconcilable(conflict, "require that their own stays")
        return conflict.first if wishes[1] else conflict.second

    def _resolve_override(self, conflict: Conflict) -> None:
        over, under = conflict.first, conflict.second
        is_kept = self.policies[under[0]].inserted
        if is_kept and self.policies[over[0]].removed:
            raise self._irreconcilable(
                conflict, "have a policy: one requires the removal, one the content"
            )
        del self.standing[_key(over if is_kept else under)]

    def _irreconcilable(self, conflict: Conflict, why: str) -> UpdateError:
        first, second = conflict.first, conflict.second
        return UpdateError(
            "AX305",
            f"lists {first[0] + 1} and {second[0] + 1} both {why}:"
            f" {first[1].kind.value} {first[1].target},"
            f" {second[1].kind.value} {second[1].target} ({conflict.kind.value})",
            advice="relax one of the policies, or apply the lists one after the other",
        )

    def merged(self) -> tuple[Edit, ...]:
        """The remaining operations, with the insertions at one place merged."""
        places: dict[tuple[EditKind, Id], list[tuple[int, Edit]]] = {}
        for (number, _), edit in self.standing.items():
            places.setdefault((edit.kind, edit.target), []).append((number, edit))
        return tuple(self._at_one_place(place, edits) for place, edits in places.items())

    def _at_one_place(self, place: tuple[EditKind, Id], numbered: list[tuple[int, Edit]]) -> Edit:
        """Merge in the order of the lists; a list that requires it is next to the target."""
        if place[0] not in INSERTS:
            return numbered[0][1]
        # For `first` and `after`, `joined` puts the later insertion first: reverse the order.
        reads_back = place[0] in (EditKind.INSERT_FIRST, EditKind.INSERT_AFTER)
        ordered = numbered[::-1] if reads_back else numbered
        ordered = sorted(ordered, key=lambda one: one[0] == self.nearest.get(place))
        edit = ordered[0][1]
        for _, more in ordered[1:]:
            edit = joined(edit, more)
        return edit


def _key(side: tuple[int, Edit]) -> tuple[int, int]:
    return side[0], id(side[1])
