"""Aggregation: update lists applied one after the other, merged into one list.

The second list refers to the document after the first one. Its targets are nodes that the first
list inserted, or nodes of the original document:

    D6      an edit on a node that the first list inserts is applied to the inserted tree;
    A1, A2  insertions at one place become one (`reduction`), the first list's applied first;
    and of two renames or two new values of one node the second stays.

Some lists stay separate: an insertion into an element whose content the first list replaced, or a
target that is not in a piece of the first list's content (a merged text). So the result is a list
of lists, as few as these rules find, and one where the rules suffice. A merged list gives other ids
to its nodes. If a later separate list refers to such a node, the lists before it stay unchanged.
The document is not needed, but a list must know the ids that it gave: `update_lists.record`.

Law: applying the result, one list after the other, equals applying the given lists.
(Paper 5, section 5.3.3.)
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
    """Merge lists that are applied one after the other; as few lists as the rules find."""
    groups: list[tuple[list[UpdateList], _Aggregate]] = []
    for given in lists:
        try:
            if not groups:
                raise _NotMergeable
            groups[-1][1].add(given)
            groups[-1][0].append(given)
        except _NotMergeable:
            groups.append(([given], _Aggregate(given)))
    merged = [group.result() for _, group in groups]
    exact = _last_that_names_new_nodes([given for given, _ in groups], merged)
    as_given = [one for given, _ in groups[:exact] for one in given]
    return [*as_given, *merged[exact:]]


def _last_that_names_new_nodes(
    groups: Sequence[Sequence[UpdateList]], merged: Sequence[UpdateList]
) -> int:
    """The last group that refers to nodes inserted by earlier groups; 0 if none does.

    Those nodes must keep their ids, so the lists before that group stay unchanged.
    """
    last = 0
    brought: set[Id] = set()
    for number, (group, result) in enumerate(zip(groups, merged, strict=True)):
        if any(not brought.isdisjoint((e.target, *e.target.ancestors())) for e in result):
            last = number
        brought |= {root for one in group for e in one for root in e.known_roots() if root}
        brought |= {root for one in group for root in one.created}
    return last


class _NotMergeable(Exception):
    """Two lists cannot be merged into one."""


class _Content:
    """The content of one edit as a tree below a wrapper, so that later edits can change it.

    `roots` maps the ids of pieces in the document to their nodes here. Below a root the components
    here equal those in the document, because both are built the same way. `lost` holds ids whose
    nodes here are not known.
    """

    def __init__(self, edit: Edit) -> None:
        self.tree: Tree = load("<_/>")
        self.wrapper = self.tree.root
        self.roots: dict[Id, int] = {}
        self.lost: set[Id] = set()
        self._apply([Insert(Where.LAST, self.wrapper, content_of(edit.content))], [edit])

    def apply_edits(self, edits: Sequence[Edit]) -> None:
        """D6: apply edits to this content, all at once."""
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
        """The node here with this id in the document, or NONE."""
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
        """The current content, as pieces."""
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
        """Check that parsing the pieces gives the same content: white space may get lost."""
        again = load("<_/>")
        pending.apply(again, [Insert(Where.LAST, again.root, content_of(found))])
        if serialise(again) != serialise(self.tree):
            raise _NotMergeable


class _Aggregate:
    """One list, to which later lists are added while one list can express them all."""

    def __init__(self, first: UpdateList) -> None:
        self.edits: list[Edit] = list(_in_order(first))
        self.created = first.created
        self.contents: dict[int, _Content] = {}  # by index in `edits`

    def add(self, second: UpdateList) -> None:
        """Add a later list, or raise _NotMergeable and leave this list unchanged."""
        inside: dict[int, list[Edit]] = {}
        rest: list[Edit] = []
        for edit in _in_order(second):
            at = self._inserting_edit(edit.target)
            if at is None:
                self._check_original(edit)
                rest.append(edit)
            else:
                inside.setdefault(at, []).append(edit)
        changed = {at: self._edit_with(at, edits) for at, edits in inside.items()}
        for at, edit in changed.items():
            self.edits[at] = edit
        self._append(rest)
        self.created += second.created

    def _inserting_edit(self, target: Id) -> int | None:
        """The index of the edit whose content holds the target; None for an original node."""
        near = {target, *target.ancestors()}
        for at in range(len(self.edits) - 1, -1, -1):
            known = self._roots_at(at)
            if not near.isdisjoint(known):
                if self._content(at).find(target) == NONE:
                    raise _NotMergeable
                return at
        if not near.isdisjoint(self.created):
            raise _NotMergeable
        return None

    def _roots_at(self, at: int) -> set[Id]:
        if at in self.contents:
            return self.contents[at].roots.keys() | self.contents[at].lost
        return {root for root in self.edits[at].known_roots() if root is not None}

    def _content(self, at: int) -> _Content:
        if at not in self.contents:
            self.contents[at] = _Content(self.edits[at])
        return self.contents[at]

    def _edit_with(self, at: int, edits: list[Edit]) -> Edit:
        content = self._content(at)
        try:
            content.apply_edits(edits)
        except AxlogError:
            raise _NotMergeable from None
        pieces = content.pieces()
        before = self.edits[at]
        if before.kind is EditKind.REPLACE_NODE:
            is_attribute = before.target.components()[-1][1]
            if any(isinstance(piece, Attribute) != is_attribute for piece in pieces):
                raise _NotMergeable  # attributes inserted beside a tree belong to its parent
        return replace(before, content=pieces, roots=())

    def _check_original(self, edit: Edit) -> None:
        """Check that the earlier edits keep the target and that the edit can follow them."""
        gone = {e.target for e in self.edits if e.kind in TAKES_AWAY}
        if not gone.isdisjoint((edit.target, *edit.target.ancestors())):
            raise _NotMergeable  # it cannot be applied; applying it reports the error
        emptied = {e.target for e in self.edits if e.kind is EditKind.REPLACE_VALUE}
        brings_trees = any(not isinstance(piece, Attribute) for piece in edit.content)
        if edit.kind in INSIDE and brings_trees and edit.target in emptied:
            raise _NotMergeable
        if not emptied.isdisjoint(above_content(edit.target)):
            raise _NotMergeable

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
        """The list, without the ids inside its content: those were given step by step."""
        forgotten = [root for at in range(len(self.edits)) for root in self._roots_at(at)]
        edits = tuple(replace(edit, roots=()) for edit in self.edits)
        return reduce(UpdateList(edits, (*self.created, *forgotten)))


def _in_order(given: UpdateList) -> list[Edit]:
    """The edits in the order in which they take effect; `into` counts as `last`, first."""
    into = [edit for edit in given if edit.kind is EditKind.INSERT_INTO]
    rest = [edit for edit in given if edit.kind is not EditKind.INSERT_INTO]
    return [*(replace(edit, kind=EditKind.INSERT_LAST) for edit in into), *rest]
