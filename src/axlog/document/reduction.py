"""Reduction: a pending update list with fewer operations and the same effect (P5 5.3.1).

The rules of Cavalieri, Guerrini and Mesiti (EDBT 2011) that our operations allow, with the paper's
numbers where P5 prints them, each one function; `RULES` has them in the order of their stages. They
look at ids only: equal, or one an ancestor of the other. Rules that need to know which siblings are
neighbours are left out, as ids do not say it.

Law: `apply(reduce(l)) == apply(l)` on every document that l can be applied to. A list that cannot
be applied (two renames of one node) keeps what makes it so, unless that lies below what goes. What
a reduced list brings may get other ids than what the list itself brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from axlog.document.ids import Id
from axlog.document.operations import Attribute
from axlog.document.update_lists import (
    BESIDE,
    INSERTS,
    INSIDE,
    TAKES_AWAY,
    Edit,
    EditKind,
    Piece,
    UpdateList,
)

Edits = tuple[Edit, ...]
_NEARER_GOES_BEFORE = (EditKind.INSERT_FIRST, EditKind.INSERT_AFTER)


def reduce(given: UpdateList | Iterable[Edit]) -> UpdateList:
    """The list after all rules.

    >>> from axlog.document.update_lists import Markup
    >>> node = Id.parse("1.2")
    >>> inserted = Edit(EditKind.INSERT_LAST, node, (Markup("<b/>"),))
    >>> [edit.kind.value for edit in reduce([inserted, Edit(EditKind.DELETE, node)])]
    ['delete']
    """
    created = given.created if isinstance(given, UpdateList) else ()
    edits = tuple(given)
    for rule in RULES:
        edits = rule(edits)
    return UpdateList(edits, created)


def without_idle(edits: Edits) -> Edits:
    """An insertion of nothing goes; a node replaced by nothing is deleted."""
    kept = []
    for edit in edits:
        if edit.kind is EditKind.REPLACE_NODE and not edit.content:
            edit = Edit(EditKind.DELETE, edit.target)
        if edit.kind not in INSERTS or edit.content:
            kept.append(edit)
    return tuple(kept)


def override_same_target(edits: Edits) -> Edits:
    """O1: what is done to or in a node that goes does not count; beside it, it does."""
    replaced = _targets(edits, EditKind.REPLACE_NODE)
    deleted = _targets(edits, EditKind.DELETE) - replaced
    kept: list[Edit] = []
    seen: set[Id] = set()
    for edit in edits:
        target = edit.target
        if edit.kind is EditKind.DELETE:
            if target in seen or target in replaced:
                continue
            seen.add(target)
        elif edit.kind in BESIDE or edit.kind is EditKind.REPLACE_NODE:
            pass
        elif target in replaced or target in deleted:
            continue
        kept.append(edit)
    return tuple(kept)


def override_content(edits: Edits) -> Edits:
    """O2: what is put into an element whose content is replaced does not count; attributes do."""
    emptied = _targets(edits, EditKind.REPLACE_VALUE)
    kept: list[Edit] = []
    for edit in edits:
        if edit.kind in INSIDE and edit.target in emptied:
            edit = _only_attributes(edit)
            if not edit.content:
                continue
        kept.append(edit)
    return tuple(kept)


def override_below(edits: Edits) -> Edits:
    """O3: what is done below a node that goes does not count."""
    gone = {edit.target for edit in edits if edit.kind in TAKES_AWAY}
    if not gone:
        return edits
    return tuple(edit for edit in edits if gone.isdisjoint(edit.target.ancestors()))


def override_below_content(edits: Edits) -> Edits:
    """O4: what is done below an element whose content is replaced does not count; what is done to
    its attributes does, and attributes inserted beside its children are its own."""
    emptied = _targets(edits, EditKind.REPLACE_VALUE)
    if not emptied:
        return edits
    kept: list[Edit] = []
    for edit in edits:
        parent = edit.target.parent
        if not emptied.isdisjoint(above_content(edit.target)):
            is_own = (
                edit.kind in BESIDE
                and parent is not None
                and parent in emptied
                and emptied.isdisjoint(above_content(parent))  # else the parent goes too
            )
            edit = _only_attributes(edit) if is_own else replace(edit, content=(), roots=())
            if not edit.content:
                continue
        kept.append(edit)
    return tuple(kept)


def join_insertions(edits: Edits) -> Edits:
    """I5: insertions at one place become one. As near to the target as they can: of two at the
    front or behind a node, the later one's trees come first."""
    places: dict[tuple[EditKind, Id], int] = {}
    kept: list[Edit] = []
    for edit in edits:
        place = (edit.kind, edit.target)
        if edit.kind in INSERTS and place in places:
            at = places[place]
            kept[at] = joined(kept[at], edit)
            continue
        places[place] = len(kept)
        kept.append(edit)
    return tuple(kept)


def join_into_and_last(edits: Edits) -> Edits:
    """I6: what goes anywhere into a node goes before what goes last into it: one insertion."""
    last = {e.target: at for at, e in enumerate(edits) if e.kind is EditKind.INSERT_LAST}
    kept = list(edits)
    gone = set()
    for at, edit in enumerate(edits):
        if edit.kind is EditKind.INSERT_INTO and edit.target in last:
            behind = last[edit.target]
            kept[behind] = joined(replace(edit, kind=EditKind.INSERT_LAST), kept[behind])
            gone.add(at)
    return tuple(edit for at, edit in enumerate(kept) if at not in gone)


def join_beside_and_replaced(edits: Edits) -> Edits:
    """What is put beside a node that goes takes, with what replaces it, the node's place.

    Attributes inserted beside a node are its parent's and stay an insertion.
    """
    going = {e.target: at for at, e in enumerate(edits) if e.kind is EditKind.DELETE}
    going |= {e.target: at for at, e in enumerate(edits) if e.kind is EditKind.REPLACE_NODE}
    kept = list(edits)
    gone = set()
    for at, edit in enumerate(edits):
        if edit.kind in BESIDE and edit.target in going:
            if any(isinstance(piece, Attribute) for piece in edit.content):
                continue
            there = going[edit.target]
            kept[there] = _taking_in(kept[there], edit)
            gone.add(at)
    return tuple(edit for at, edit in enumerate(kept) if at not in gone)


RULES: tuple[Callable[[Edits], Edits], ...] = (
    without_idle,
    override_same_target,
    override_below,
    override_content,
    override_below_content,
    join_insertions,
    join_into_and_last,
    join_beside_and_replaced,
)
"""Every rule, in the order in which they are applied."""


# Parts of rules -----------------------------------------------------------------------------------


def joined(first: Edit, second: Edit) -> Edit:
    """One insertion for two of one kind at one place, the second carried out after the first."""
    pairs = [*_paired(first), *_paired(second)]
    if first.kind in _NEARER_GOES_BEFORE:
        pairs = [*_paired(second), *_paired(first)]
    attributes = [*_paired(first), *_paired(second)]
    ordered = [pair for pair in attributes if isinstance(pair[0], Attribute)]
    ordered += [pair for pair in pairs if not isinstance(pair[0], Attribute)]
    return _with_pairs(first, ordered)


def _taking_in(going: Edit, beside: Edit) -> Edit:
    pairs = [*_paired(going)]
    more = _paired(beside)
    pairs = [*more, *pairs] if beside.kind is EditKind.INSERT_BEFORE else [*pairs, *more]
    return _with_pairs(replace(going, kind=EditKind.REPLACE_NODE, content=(), roots=()), pairs)


def _paired(edit: Edit) -> list[tuple[Piece, Id | None]]:
    return list(zip(edit.content, edit.known_roots(), strict=True))


def _with_pairs(edit: Edit, pairs: Iterable[tuple[Piece, Id | None]]) -> Edit:
    pairs = list(pairs)
    roots = tuple(root for _, root in pairs)
    content = tuple(piece for piece, _ in pairs)
    return replace(edit, content=content, roots=roots if any(roots) else ())


def _only_attributes(edit: Edit) -> Edit:
    return _with_pairs(edit, (p for p in _paired(edit) if isinstance(p[0], Attribute)))


def _targets(edits: Edits, kind: EditKind) -> set[Id]:
    return {edit.target for edit in edits if edit.kind is kind}


def above_content(target: Id) -> list[Id]:
    """The ancestors of which the node is content: not the element whose attribute it is."""
    above = target.ancestors()
    components = target.components()
    return [one for one in above if not components[one.depth][1]]
