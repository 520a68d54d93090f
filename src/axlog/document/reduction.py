"""Reduction: a pending update list with fewer operations and the same effect.

The rules are those of Cavalieri, Guerrini and Mesiti (EDBT 2011) that our operations allow, with
their numbers from the literature; each is one function. `RULES` lists them in the order of their
stages. They look at ids only: equal, or one an ancestor of the other. Rules that need to know which
siblings are adjacent are left out, because ids do not tell.

Law: `apply(reduce(l)) == apply(l)` on every document that l can be applied to. A list that cannot
be applied (two renames of one node) keeps the reason, unless it is below a removed node. The nodes
that a reduced list inserts may get other ids than those of the original list.
(Paper 5, section 5.3.1.)
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
    """Apply all rules to a list.

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
    """Drop empty insertions; a node replaced by nothing is deleted."""
    kept = []
    for edit in edits:
        if edit.kind is EditKind.REPLACE_NODE and not edit.content:
            edit = Edit(EditKind.DELETE, edit.target)
        if edit.kind not in INSERTS or edit.content:
            kept.append(edit)
    return tuple(kept)


def override_same_target(edits: Edits) -> Edits:
    """O1: drop edits of and in a removed node; keep insertions beside it."""
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
    """O2: drop insertions into an element with replaced content, except attributes."""
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
    """O3: drop edits below a removed node."""
    gone = {edit.target for edit in edits if edit.kind in TAKES_AWAY}
    if not gone:
        return edits
    return tuple(edit for edit in edits if gone.isdisjoint(edit.target.ancestors()))


def override_below_content(edits: Edits) -> Edits:
    """O4: drop edits below an element with replaced content. Keep edits of its attributes, and
    attributes inserted beside its children, which are its own."""
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
                and emptied.isdisjoint(above_content(parent))  # otherwise the parent is removed too
            )
            edit = _only_attributes(edit) if is_own else replace(edit, content=(), roots=())
            if not edit.content:
                continue
        kept.append(edit)
    return tuple(kept)


def join_insertions(edits: Edits) -> Edits:
    """I5: merge insertions at one place. Each goes as near to the target as possible: for `first`
    and `after`, the later insertion's trees come first."""
    places: dict[tuple[EditKind, Id], list[Edit]] = {}
    kept: list[list[Edit]] = []
    for edit in edits:
        if edit.kind not in INSERTS:
            kept.append([edit])
            continue
        mine = places.get((edit.kind, edit.target))
        if mine is None:
            mine = places[edit.kind, edit.target] = []
            kept.append(mine)
        mine.append(edit)
    return tuple(mine[0] if len(mine) == 1 else joined(*mine) for mine in kept)


def join_into_and_last(edits: Edits) -> Edits:
    """I6: merge `into` and `last` of one node; the content of `into` comes first."""
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
    """Insertions beside a removed node join the content that replaces it.

    Attributes inserted beside a node belong to its parent and stay an insertion.
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
            kept[there] = _absorbed(kept[there], edit)
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
"""All rules, in the order in which they are applied."""


# Parts of rules -----------------------------------------------------------------------------------


def joined(*edits: Edit) -> Edit:
    """Merge insertions of one kind at one place, each applied after the one before it."""
    first, parts = edits[0], [_paired(edit) for edit in edits]
    ordered = [pair for part in parts for pair in part if isinstance(pair[0], Attribute)]
    if first.kind in _NEARER_GOES_BEFORE:
        parts.reverse()
    ordered += [pair for part in parts for pair in part if not isinstance(pair[0], Attribute)]
    return _with_pairs(first, ordered)


def _absorbed(going: Edit, beside: Edit) -> Edit:
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
    """The ancestors that have the node in their content; not the owner of an attribute."""
    above = target.ancestors()
    components = target.components()
    return [one for one in above if not components[one.depth][1]]
