"""Pending update lists as data: operations whose targets are identifiers, not handles of one tree.

Such a list can be stored, sent and analysed without the document (after Cavalieri, Guerrini and
Mesiti, EDBT 2011). `reduction` makes a list smaller, `integration` merges parallel lists,
`aggregation` merges sequential ones, `list_codec` writes and reads them.

    edits = addressed(tree, operations)          # before the operations are applied
    operations = resolved(tree, edits)           # on the tree, or on a copy of it

Inserted trees are stored as XML text. `record` applies operations and records the ids of the nodes
they inserted. Later lists may have these ids as targets, and aggregation needs them (D6).
Laws: `resolved(tree, addressed(tree, ops))` applied equals `ops` applied, on the tree and on every
copy with the same ids. Not kept: the stream of an insertion, and its time. (Paper 5, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias, TypeVar

from lxml import etree

from axlog.document.delta import Delta
from axlog.document.ids import Component, Id
from axlog.document.operations import (
    Attribute,
    Content,
    Delete,
    Insert,
    Operation,
    Rename,
    ReplaceNode,
    ReplaceValue,
    Where,
)
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits, parse
from axlog.document.pending import Plan
from axlog.document.tree import ATTRIBUTE, CALL, DOCUMENT_NODE, ELEMENT, TEXT, NodeKind, Tree
from axlog.errors import UpdateError


class EditKind(Enum):
    """The kind of an edit, named as in the JSON and XML forms."""

    INSERT_INTO = "insert-into"
    INSERT_FIRST = "insert-first"
    INSERT_LAST = "insert-last"
    INSERT_BEFORE = "insert-before"
    INSERT_AFTER = "insert-after"
    DELETE = "delete"
    RENAME = "rename"
    REPLACE_NODE = "replace-node"
    REPLACE_VALUE = "replace-value"


@dataclass(frozen=True, slots=True)
class Markup:
    """A tree that a list inserts: an element, comment or instruction as XML text."""

    xml: str


Piece: TypeAlias = Markup | str | Attribute


@dataclass(frozen=True, slots=True)
class Edit:
    """One atomic operation. `text` is a new name or value; `roots` are the ids that the pieces of
    the content got where the edit was applied, None for a piece whose id is not known."""

    kind: EditKind
    target: Id
    content: tuple[Piece, ...] = ()
    text: str = ""
    roots: tuple[Id | None, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.roots and len(self.roots) != len(self.content):
            raise UpdateError("AX305", "an edit has ids that do not belong to its content")

    def known_roots(self) -> tuple[Id | None, ...]:
        """One entry for each piece of the content."""
        return self.roots or (None,) * len(self.content)


@dataclass(frozen=True, slots=True)
class UpdateList:
    """Edits that are applied together. `created` are the ids of nodes that are no single piece of
    the content: merged texts."""

    edits: tuple[Edit, ...]
    created: tuple[Id, ...] = field(default=(), compare=False)

    def __iter__(self) -> Iterator[Edit]:
        return iter(self.edits)

    def __len__(self) -> int:
        return len(self.edits)


OTHER = int(NodeKind.COMMENT)  # instructions included
_T = TypeVar("_T")
INSIDE = frozenset({EditKind.INSERT_INTO, EditKind.INSERT_FIRST, EditKind.INSERT_LAST})
BESIDE = frozenset({EditKind.INSERT_BEFORE, EditKind.INSERT_AFTER})
INSERTS = INSIDE | BESIDE
TAKES_AWAY = frozenset({EditKind.DELETE, EditKind.REPLACE_NODE})

_KINDS = {
    Where.INTO: EditKind.INSERT_INTO,
    Where.FIRST: EditKind.INSERT_FIRST,
    Where.LAST: EditKind.INSERT_LAST,
    Where.BEFORE: EditKind.INSERT_BEFORE,
    Where.AFTER: EditKind.INSERT_AFTER,
}
_PLACES = {kind: where for where, kind in _KINDS.items()}


# To ids and back ----------------------------------------------------------------------------------


def addressed(tree: Tree, operations: Iterable[Operation]) -> UpdateList:
    """The operations with ids as targets; call it before they are applied to the tree."""
    return UpdateList(tuple(_edit(tree, operation) for operation in operations))


def _edit(tree: Tree, operation: Operation) -> Edit:
    target = tree.id(operation.target)
    match operation:
        case Insert(where=where, content=content):
            return Edit(_KINDS[where], target, pieces(content))
        case Delete():
            return Edit(EditKind.DELETE, target)
        case Rename(label=label):
            return Edit(EditKind.RENAME, target, text=label)
        case ReplaceNode(content=content):
            return Edit(EditKind.REPLACE_NODE, target, pieces(content))
        case ReplaceValue(value=value):
            return Edit(EditKind.REPLACE_VALUE, target, text=value)


def pieces(content: Content) -> tuple[Piece, ...]:
    """Content with its trees as XML text."""
    return tuple(
        item
        if isinstance(item, str | Attribute)
        else Markup(etree.tostring(item, encoding="unicode", with_tail=False))
        for item in content
    )


def content_of(given: Iterable[Piece], limits: Limits = DEFAULT_LIMITS) -> Content:
    """The content of an operation, from pieces."""
    return tuple(tree_of(piece, limits) if isinstance(piece, Markup) else piece for piece in given)


def tree_of(markup: Markup, limits: Limits = DEFAULT_LIMITS) -> Element:
    """The tree of markup; raises AX306 unless it is exactly one."""
    root = parse(f"<_>{markup.xml}</_>", limits).root
    if len(root) != 1 or root.text or root[0].tail:
        raise UpdateError("AX306", f"{markup.xml[:60]!r} is not one tree")
    return root[0]


def resolved(tree: Tree, edits: Iterable[Edit], limits: Limits = DEFAULT_LIMITS) -> list[Operation]:
    """The operations of edits on a tree; raises AX301 for an unknown target."""
    finder = Finder(tree)
    return [operation_on(finder.find(edit.target), edit, limits) for edit in edits]


def operation_on(target: int, edit: Edit, limits: Limits = DEFAULT_LIMITS) -> Operation:
    match edit.kind:
        case EditKind.DELETE:
            return Delete(target)
        case EditKind.RENAME:
            return Rename(target, edit.text)
        case EditKind.REPLACE_VALUE:
            return ReplaceValue(target, edit.text)
        case EditKind.REPLACE_NODE:
            return ReplaceNode(target, content_of(edit.content, limits))
        case inserted:
            return Insert(_PLACES[inserted], target, content_of(edit.content, limits))


class Finder:
    """Finds many nodes by their ids: each chain is scanned once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._below: dict[int, dict[tuple[Component, bool], int]] = {}

    def find(self, identifier: Id) -> int:
        """The node with this id."""
        node = DOCUMENT_NODE
        for step in identifier.components():
            below = self._below.get(node)
            if below is None:
                below = self._below[node] = self._chain(node)
            if step not in below:
                raise UpdateError(
                    "AX301",
                    f"no node has the identifier {identifier}",
                    advice="the list was made for another version of the document",
                )
            node = below[step]
        return node

    def _chain(self, node: int) -> dict[tuple[Component, bool], int]:
        tree = self._tree
        return {(tree.component(n), tree.kind_column[n] == ATTRIBUTE): n for n in tree.chain(node)}


# Applying with a record ---------------------------------------------------------------------------


def record(
    tree: Tree,
    operations: Sequence[Operation],
    time: int | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    keep_whitespace: bool = False,
) -> tuple[Delta, UpdateList]:
    """Apply operations; returns their delta, and the list with the ids it gave."""
    recording = Recording(tree, addressed(tree, operations), operations)
    plan = Plan(tree, operations, time, limits=limits, keep_whitespace=keep_whitespace)
    plan.commit()
    return plan.delta, recording.made(plan.delta)


class Recording:
    """The ids that a list gives to the nodes it inserts. Make it before the list is applied."""

    def __init__(self, tree: Tree, edits: UpdateList, operations: Sequence[Operation]) -> None:
        self._tree = tree
        self._edits = edits
        self._parents = [_parent_of_content(tree, operation) for operation in operations]

    def made(self, delta: Delta) -> UpdateList:
        """The list with the ids that it gave."""
        return _with_roots(self._tree, self._edits, self._parents, delta.added)

    def note(self, delta: Delta) -> None:
        """Remember which of the inserted nodes have other ids than the list says."""
        if not any(edit.roots for edit in self._edits):
            return
        known = self._tree.recorded_ids
        for edit, made in zip(self._edits, self.made(delta), strict=True):
            pairs = zip(edit.known_roots(), made.known_roots(), strict=True)
            for recorded, actual in pairs:
                if recorded is None or actual is None:
                    continue
                known.pop(recorded, None)
                if recorded != actual:
                    known[recorded] = actual


def is_traceable(given: UpdateList) -> bool:
    """Whether the nodes that a list inserts are known by the ids of its pieces, or by none.

    The ids of merged texts belong to no single piece: if such a list is reduced, later lists cannot
    find these texts.
    """
    is_recorded = bool(given.created) or any(edit.roots for edit in given)
    roots = [root for edit in given for root in edit.known_roots()]
    return not is_recorded or not (given.created or None in roots)


def with_actual_ids(given: UpdateList, recorded: Mapping[Id, Id]) -> UpdateList:
    """The list with the targets that its nodes have in this document.

    A list names nodes that earlier lists inserted by the ids that they got where the lists were
    recorded. If one of these was reduced before it was applied here, they may have others;
    `recorded` has both ids of each inserted root.
    """
    if not recorded:
        return given
    edits = tuple(replace(edit, target=_actual(edit.target, recorded)) for edit in given)
    return replace(given, edits=edits)


def _actual(target: Id, recorded: Mapping[Id, Id]) -> Id:
    for above in (target, *reversed(list(target.ancestors()))):
        if above in recorded:
            return Id(recorded[above].key + target.key[len(above.key) :])
    return target


def _parent_of_content(tree: Tree, operation: Operation) -> int:
    inside = isinstance(operation, ReplaceValue) or (
        isinstance(operation, Insert) and _KINDS[operation.where] in INSIDE
    )
    return operation.target if inside else tree.parent(operation.target)


_Key: TypeAlias = tuple[int, int, str]  # parent, kind, label or text


def _with_roots(
    tree: Tree, made: UpdateList, parents: Sequence[int], added: Sequence[int]
) -> UpdateList:
    """Match the added roots with the pieces of content.

    Both are in the order of building. Equal-looking ones are paired in that order, if none of them
    was lost. If the new texts of a parent differ from the pieces, some were merged and get no id.
    """
    wanted = _grouped(
        (key, (at, number))
        for at, edit in _in_order_of_building(made.edits)
        for number, key in enumerate(_keys(edit, parents[at]))
    )
    came = _grouped((_key(tree, node), node) for node in added)
    merged = {key[0] for key in wanted.keys() ^ came.keys() if key[1] == TEXT}
    merged |= {
        key[0] for key in wanted.keys() & came.keys()
        if key[1] == TEXT and len(wanted[key]) != len(came[key])
    }  # fmt: skip
    found = {
        place: tree.id(node)
        for key, places in wanted.items()
        if len(places) == len(came.get(key, ())) and not (key[1] == TEXT and key[0] in merged)
        for place, node in zip(places, came[key], strict=True)
        if made.edits[place[0]].content
    }
    known = set(found.values())
    edits = tuple(
        replace(edit, roots=tuple(found.get((at, n)) for n in range(len(edit.content))))
        for at, edit in enumerate(made.edits)
    )
    return UpdateList(edits, tuple(i for node in added if (i := tree.id(node)) not in known))


def _grouped(pairs: Iterable[tuple[_Key, _T]]) -> dict[_Key, list[_T]]:
    groups: dict[_Key, list[_T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def _in_order_of_building(edits: Sequence[Edit]) -> list[tuple[int, Edit]]:
    """The phases of `pending` that build nodes, one after the other."""
    phases = (
        {EditKind.INSERT_INTO},
        INSERTS - {EditKind.INSERT_INTO},
        {EditKind.REPLACE_NODE},
        {EditKind.REPLACE_VALUE},
    )
    return [(at, e) for phase in phases for at, e in enumerate(edits) if e.kind in phase]


def _keys(edit: Edit, parent: int) -> Iterator[_Key]:
    """The key of each piece, and that of an element's new value, though it is no piece."""
    if edit.kind is EditKind.REPLACE_VALUE:
        yield parent, TEXT, edit.text
    for piece in edit.content:
        if isinstance(piece, Attribute):
            yield parent, ATTRIBUTE, f"@{piece.name}"
        elif isinstance(piece, str):
            yield parent, TEXT, piece
        else:
            tag: object = tree_of(piece).tag  # of a comment, a function
            is_element = isinstance(tag, str)
            yield parent, ELEMENT if is_element else OTHER, str(tag) if is_element else ""


def _key(tree: Tree, node: int) -> _Key:
    kind = tree.kind_column[node]
    if kind in (ATTRIBUTE, ELEMENT, TEXT, CALL):
        return tree.parent(node), ELEMENT if kind == CALL else kind, tree.label(node)
    return tree.parent(node), OTHER, ""
