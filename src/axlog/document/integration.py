"""Integration: parallel lists on one version of a document merged into one (P5 5.3.2).

Two operations of different lists conflict where the outcome would depend on which list goes first,
or where one undoes the other (Cavalieri, Guerrini and Mesiti, EDBT 2011; P5 figure 15):

    repeated modification   both rename the node, replace it, or replace its value
    repeated attribute      both give one element an attribute of one name
    insertion order (IO)    both insert at one place
    local override (LO)     one takes the node away, the other changes it or puts something into it
    non-local override      one takes away a node above the other's target (NLO)

`conflicts` names them. `integrate` settles them by what the makers of the lists ask for (`Policy`),
and fails where their wishes cannot all be met. Without wishes: insertions stand in the order of the
lists, what takes away overrides, of two modifications the first list's stays. No access to the
document is needed.
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
    """The paper's names."""

    MODIFICATION = "repeated modification"
    ATTRIBUTE = "repeated attribute insertion"
    INSERTION_ORDER = "IO"
    LOCAL_OVERRIDE = "LO"
    NON_LOCAL_OVERRIDE = "NLO"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the maker of a list insists on.

    `order`: its insertions are next to their targets. `inserted`: what it brings stays. `removed`:
    what it takes away goes.
    """

    order: bool = False
    inserted: bool = False
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two operations, each with the number of its list; what overrides stands first."""

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
    """The names of the attributes that an edit brings."""
    return {piece.name for piece in edit.content if isinstance(piece, Attribute)}


def _has_trees(edit: Edit) -> bool:
    return any(not isinstance(piece, Attribute) for piece in edit.content)


def _overrides(over: Edit, under: Edit) -> bool:
    """O1, O2: whether the first takes away what the second does to the same node."""
    if under.kind in BESIDE or under.kind is EditKind.DELETE:
        return False
    if over.kind in TAKES_AWAY:
        return not (over.kind is EditKind.DELETE and under.kind is EditKind.REPLACE_NODE)
    return over.kind is EditKind.REPLACE_VALUE and under.kind in INSIDE and _has_trees(under)


def _overrides_below(over: Edit, under: Edit) -> bool:
    """O3, O4: whether the first takes away what the second does further down."""
    if under.kind is EditKind.DELETE:
        return False
    if over.kind in TAKES_AWAY:
        return True
    is_attribute = under.target.components()[over.target.depth][1]
    return over.kind is EditKind.REPLACE_VALUE and not is_attribute


# Settling -----------------------------------------------------------------------------------------


def integrate(lists: Sequence[UpdateList], policies: Sequence[Policy] = ()) -> UpdateList:
    """One list for all, conflicts settled by the policies (one for each list, or none at all)."""
    if policies and len(policies) != len(lists):
        raise UpdateError(
            "AX305", f"{len(lists)} lists have {len(policies)} policies", expected="one for each"
        )
    reduced = [reduce(given) for given in lists]
    settling = _Settling(reduced, list(policies) or [Policy()] * len(lists))
    for conflict in sorted(conflicts(reduced), key=settling.comes_later):
        settling.settle(conflict)
    created = tuple(one for given in lists for one in given.created)
    return reduce(UpdateList(settling.merged(), created))


class _Settling:
    """The operations of all lists as far as they still stand."""

    def __init__(self, lists: Sequence[UpdateList], policies: Sequence[Policy]) -> None:
        self.policies = policies
        self.standing: dict[tuple[int, int], Edit] = {
            (number, id(edit)): edit for number, given in enumerate(lists) for edit in given
        }
        self.nearest: dict[tuple[EditKind, Id], int] = {}  # place to the list that insists on it

    def comes_later(self, conflict: Conflict) -> bool:
        """Where somebody insists that something stays, what would override it goes first."""
        return not self.policies[conflict.second[0]].inserted

    def settle(self, conflict: Conflict) -> None:
        first, second = conflict.first, conflict.second
        if _key(first) not in self.standing or _key(second) not in self.standing:
            return
        match conflict.kind:
            case ConflictKind.INSERTION_ORDER:
                self._settle_order(conflict)
            case ConflictKind.MODIFICATION:
                del self.standing[_key(self._given_up(conflict))]
            case ConflictKind.ATTRIBUTE:
                self._settle_attributes(conflict)
            case ConflictKind.LOCAL_OVERRIDE | ConflictKind.NON_LOCAL_OVERRIDE:
                self._settle_override(conflict)

    def _settle_order(self, conflict: Conflict) -> None:
        place = (conflict.first[1].kind, conflict.first[1].target)
        insisting = {n for n, _ in (conflict.first, conflict.second) if self.policies[n].order}
        if place in self.nearest:
            insisting.add(self.nearest[place])
        if len(insisting) > 1:
            raise self._irreconcilable(conflict, "want to stand next to the node")
        for number in insisting:
            self.nearest[place] = number

    def _settle_attributes(self, conflict: Conflict) -> None:
        loser = self._given_up(conflict)
        winner = conflict.first if loser is conflict.second else conflict.second
        names = attribute_names(self.standing[_key(winner)])
        edit = self.standing[_key(loser)]
        content = tuple(
            piece
            for piece in edit.content
            if not isinstance(piece, Attribute) or piece.name not in names
        )
        self.standing[_key(loser)] = replace(edit, content=content, roots=())

    def _given_up(self, conflict: Conflict) -> tuple[int, Edit]:
        """Of two that cannot both be, the one that goes."""
        wishes = [self.policies[n].inserted for n, _ in (conflict.first, conflict.second)]
        if all(wishes):
            raise self._irreconcilable(conflict, "want their own to stay")
        return conflict.first if wishes[1] else conflict.second

    def _settle_override(self, conflict: Conflict) -> None:
        over, under = conflict.first, conflict.second
        is_kept = self.policies[under[0]].inserted
        if is_kept and self.policies[over[0]].removed:
            raise self._irreconcilable(conflict, "want a say: one that it goes, one that it stays")
        del self.standing[_key(over if is_kept else under)]

    def _irreconcilable(self, conflict: Conflict, why: str) -> UpdateError:
        first, second = conflict.first, conflict.second
        return UpdateError(
            "AX305",
            f"lists {first[0] + 1} and {second[0] + 1} both {why}:"
            f" {first[1].kind.value} {first[1].target},"
            f" {second[1].kind.value} {second[1].target} ({conflict.kind.value})",
            advice="let one of them give up its policy, or apply the lists one after the other",
        )

    def merged(self) -> tuple[Edit, ...]:
        """What is left, insertions at one place made one."""
        places: dict[tuple[EditKind, Id], list[tuple[int, Edit]]] = {}
        for (number, _), edit in self.standing.items():
            places.setdefault((edit.kind, edit.target), []).append((number, edit))
        return tuple(self._at_one_place(place, edits) for place, edits in places.items())

    def _at_one_place(self, place: tuple[EditKind, Id], numbered: list[tuple[int, Edit]]) -> Edit:
        """In the order of the lists; a list that insists stands next to the target."""
        if place[0] not in INSERTS:
            return numbered[0][1]
        # Of two at the front or behind a node, `joined` puts the later one first: read backwards.
        reads_back = place[0] in (EditKind.INSERT_FIRST, EditKind.INSERT_AFTER)
        ordered = numbered[::-1] if reads_back else numbered
        ordered = sorted(ordered, key=lambda one: one[0] == self.nearest.get(place))
        edit = ordered[0][1]
        for _, more in ordered[1:]:
            edit = joined(edit, more)
        return edit


def _key(side: tuple[int, Edit]) -> tuple[int, int]:
    return side[0], id(side[1])
