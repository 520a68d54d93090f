"""Aggregation: lists carried out one after the other made into one (P5 5.3.3).

The second list speaks of the document that the first one left. Its targets are nodes that the first
list brought, or nodes of the original:

    D6      an operation on a node that the first list brings is carried out on the tree it brings;
    A1, A2  insertions at one place become one (`reduction`), the first list's carried out first;
    and of two renames or two new values of one node the second stays.

What cannot be said in one list stays two: putting something into an element whose content the first
list replaced, or a target that no piece of the first list's content is (a merged text). So the
result is a list of lists, the fewest that this finds, which is one where the rules suffice. Merged
lists give other ids to what they bring; where a later list that stays apart speaks of such a node,
the lists before it stay as they are. No access to the document is needed, but a list must know the
ids that it gave: `lists.record`.

Law: carrying out the result, one list after the other, equals carrying out the given ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from axlog.document import pending
from axlog.document.ids import Component, Id
from axlog.document.loader import load
from axlog.document.operations import Attribute, Insert, Operation, Where
from axlog.document.reduction import above_content, reduce
from axlog.document.serializer import serialise
from axlog.document.tree import ATTRIBUTE, NONE, TEXT, Tree
from axlog.document.update_lists import (
    INSIDE,
    TAKES_AWAY,
    Edit,
    EditKind,
    Markup,
    Piece,
    UpdateList,
    content_of,
    operation_on,
    record,
)
from axlog.errors import AxlogError

_LAST_ONE_STAYS = frozenset({EditKind.RENAME, EditKind.REPLACE_VALUE})


def aggregate(lists: Sequence[UpdateList]) -> list[UpdateList]:
    """The fewest lists found that do what these do one after the other."""
    groups: list[tuple[list[UpdateList], _Aggregate]] = []
    for given in lists:
        try:
            if not groups:
                raise _Apart
            groups[-1][1].take(given)
            groups[-1][0].append(given)
        except _Apart:
            groups.append(([given], _Aggregate(given)))
    merged = [group.result() for _, group in groups]
    exact = _last_that_names_new_nodes([given for given, _ in groups], merged)
    as_given = [one for given, _ in groups[:exact] for one in given]
    return [*as_given, *merged[exact:]]


def _last_that_names_new_nodes(
    groups: Sequence[Sequence[UpdateList]], merged: Sequence[UpdateList]
) -> int:
    """The last group that speaks of nodes which groups before it brought; 0 if none does.

    Those nodes must get the ids that they got, so what comes before it is left as it was.
    """
    last = 0
    brought: set[Id] = set()
    for number, (group, result) in enumerate(zip(groups, merged, strict=True)):
        if any(not brought.isdisjoint((e.target, *e.target.ancestors())) for e in result):
            last = number
        brought |= {root for one in group for e in one for root in e.known_roots() if root}
        brought |= {root for one in group for root in one.created}
    return last


class _Apart(Exception):
    """Two lists cannot be said in one."""


class _Content:
    """What one edit brings, as a tree of its own below a wrapper, so that edits can go on in it.

    `roots` maps the ids that pieces got in the document to their nodes here. Below a root the
    components here are those in the document: both come from the same way of building. `lost` are
    ids whose nodes here are not known.
    """

    def __init__(self, edit: Edit) -> None:
        self.tree: Tree = load("<_/>")
        self.wrapper = self.tree.root
        self.roots: dict[Id, int] = {}
        self.lost: set[Id] = set()
        self._apply([Insert(Where.LAST, self.wrapper, content_of(edit.content))], [edit])

    def carry_out(self, edits: Sequence[Edit]) -> None:
        """D6: the edits on what stands here, all at once."""
        self._apply([operation_on(self.find(edit.target), edit) for edit in edits], edits)

    def _apply(self, operations: Sequence[Operation], edits: Sequence[Edit]) -> None:
        _, recorded = record(self.tree, operations)
        self.roots = {root: node for root, node in self.roots.items() if self.tree.is_alive(node)}
        for here, there in zip(recorded, edits, strict=True):
            for known, root in zip(here.known_roots(), there.known_roots(), strict=True):
                if root is not None and known is not None:
                    self.roots[root] = self.tree.find(known)
                elif root is not None:
                    self.lost.add(root)

    def find(self, target: Id) -> int:
        """The node here that has this id in the document, or NONE."""
        for identifier in (target, *reversed(target.ancestors())):
            node = self.roots.get(identifier, NONE)
            if node != NONE:
                return self._below(node, target.components()[identifier.depth :])
        return NONE

    def _below(self, node: int, steps: Iterable[tuple[Component, bool]]) -> int:
        for step in steps:
            for below in self.tree.chain(node):
                if (self.tree.component(below), self.tree.kind_column[below] == ATTRIBUTE) == step:
                    node = below
                    break
            else:
                return NONE
        return node

    def pieces(self) -> tuple[Piece, ...]:
        """What stands here now, as content."""
        tree = self.tree
        found: list[Piece] = []
        for node in tree.chain(self.wrapper):
            kind = tree.kind_column[node]
            if kind == ATTRIBUTE:
                found.append(Attribute(tree.label(node)[1:], tree.string_value(node)))
            elif kind == TEXT:
                found.append(tree.text(node))
            else:
                found.append(Markup(serialise(tree, node)))
        self._check(found)
        return tuple(found)

    def _check(self, found: list[Piece]) -> None:
        """Reading the pieces again must give what stands here: white space may not survive it."""
        again = load("<_/>")
        pending.apply(again, [Insert(Where.LAST, again.root, content_of(found))])
        if serialise(again) != serialise(self.tree):
            raise _Apart


class _Aggregate:
    """One list, to which later ones are added as long as one list can say it all."""

    def __init__(self, first: UpdateList) -> None:
        self.edits: list[Edit] = list(_in_order(first))
        self.created = first.created
        self.contents: dict[int, _Content] = {}  # by place in `edits`

    def take(self, second: UpdateList) -> None:
        """Add a later list, or raise _Apart and change nothing that counts."""
        inside: dict[int, list[Edit]] = {}
        rest: list[Edit] = []
        for edit in _in_order(second):
            at = self._bringing(edit.target)
            if at is None:
                self._check_original(edit)
                rest.append(edit)
            else:
                inside.setdefault(at, []).append(edit)
        changed = {at: self._carried_out(at, edits) for at, edits in inside.items()}
        for at, edit in changed.items():
            self.edits[at] = edit
        self._append(rest)
        self.created += second.created

    def _bringing(self, target: Id) -> int | None:
        """The place of the edit whose content the target is; None for a node of the original."""
        near = {target, *target.ancestors()}
        for at in range(len(self.edits) - 1, -1, -1):
            known = self._roots_at(at)
            if not near.isdisjoint(known):
                if self._content(at).find(target) == NONE:
                    raise _Apart
                return at
        if not near.isdisjoint(self.created):
            raise _Apart
        return None

    def _roots_at(self, at: int) -> set[Id]:
        if at in self.contents:
            return self.contents[at].roots.keys() | self.contents[at].lost
        return {root for root in self.edits[at].known_roots() if root is not None}

    def _content(self, at: int) -> _Content:
        if at not in self.contents:
            self.contents[at] = _Content(self.edits[at])
        return self.contents[at]

    def _carried_out(self, at: int, edits: list[Edit]) -> Edit:
        content = self._content(at)
        try:
            content.carry_out(edits)
        except AxlogError:
            raise _Apart from None
        pieces = content.pieces()
        before = self.edits[at]
        if before.kind is EditKind.REPLACE_NODE:
            is_attribute = before.target.components()[-1][1]
            if any(isinstance(piece, Attribute) != is_attribute for piece in pieces):
                raise _Apart  # attributes put beside a tree are its parent's
        return replace(before, content=pieces, roots=())

    def _check_original(self, edit: Edit) -> None:
        """Whether what came before leaves the target, and lets the edit come after it."""
        gone = {e.target for e in self.edits if e.kind in TAKES_AWAY}
        if not gone.isdisjoint((edit.target, *edit.target.ancestors())):
            raise _Apart  # it cannot be carried out; let that be said where it is tried
        emptied = {e.target for e in self.edits if e.kind is EditKind.REPLACE_VALUE}
        brings_trees = any(not isinstance(piece, Attribute) for piece in edit.content)
        if edit.kind in INSIDE and brings_trees and edit.target in emptied:
            raise _Apart
        if not emptied.isdisjoint(above_content(edit.target)):
            raise _Apart

    def _append(self, rest: list[Edit]) -> None:
        later = {(edit.kind, edit.target) for edit in rest if edit.kind in _LAST_ONE_STAYS}
        kept = [
            (at, edit)
            for at, edit in enumerate(self.edits)
            if (edit.kind, edit.target) not in later
        ]
        self.contents = {
            new: self.contents[old] for new, (old, _) in enumerate(kept) if old in self.contents
        }
        self.edits = [edit for _, edit in kept] + rest

    def result(self) -> UpdateList:
        """The list. Ids inside its content are not told any more: they were given step by step."""
        forgotten = [root for at in range(len(self.edits)) for root in self._roots_at(at)]
        edits = tuple(replace(edit, roots=()) for edit in self.edits)
        return reduce(UpdateList(edits, (*self.created, *forgotten)))


def _in_order(given: UpdateList) -> list[Edit]:
    """The edits as they take effect: what goes anywhere into a node goes last into it, first."""
    into = [edit for edit in given if edit.kind is EditKind.INSERT_INTO]
    rest = [edit for edit in given if edit.kind is not EditKind.INSERT_INTO]
    return [*(replace(edit, kind=EditKind.INSERT_LAST) for edit in into), *rest]
