"""What a stream deletes and can bring again: such a deletion makes no row impossible.

Let a stream delete elements beside its call. If it may bring any number of trees, it can bring
these again: a one-shot call in its one message. Every future from before the deletion is then one
from after it, with these trees brought first: the trees have other ids, later times and another
place among their siblings. What calls inside them would have brought, the trees have from the
beginning. A row that shows no id and no time, of a pattern that has no condition on times, looks
only downward and does not read the values of elements above the call, is possible after the
deletion if it was before.

Not covered: documents with keys, references or limited calls. There the possible rows from before
and after a deletion are compared. Under types, beside streams that replace and for axes that do not
go downward, scenarios are not kept at all (`live/never_evidence.py`), and this module is not used.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.document.tree import ELEMENT, Tree
from axlog.future.message_effects import may_fall_by_message
from axlog.query.pattern import Kind, Pattern

_LASTING = (Kind.VARIABLE, Kind.LABEL)


def can_bring_again(tree: Tree, stream: str, deleted: Iterable[int]) -> bool:
    """Whether a stream can bring again all subtrees that it deletes, unless it is limited."""
    call = tree.call(tree.calls_by_stream[stream])
    return (
        call.deletes == "yes"
        and not tree.references
        and all(tree.kind_column[top] == ELEMENT for top in deleted)
    )


def loses_no_future(tree: Tree, pattern: Pattern) -> bool:
    """Whether no row of a pattern becomes impossible when data goes that can come again.

    Not beside keys and calls with a limit.
    """
    return not (tree.facts or may_fall_by_message(tree, pattern)) and all(
        output.kind in _LASTING for output in pattern.outputs
    )
