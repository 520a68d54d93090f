"""Lists of updates, whose targets are ids, on a document with views: reduce, apply, propagate.

The nodes that a list inserts may get other ids than where it was recorded, because it is reduced
first. Later lists are translated (`update_lists.with_actual_ids`).
"""

from __future__ import annotations

from axlog.document.reduction import reduce
from axlog.document.times import Time, microseconds
from axlog.document.update_lists import (
    Recording,
    UpdateList,
    is_traceable,
    resolved,
    with_actual_ids,
)
from axlog.live.maintained import MaintainedTree
from axlog.views.change import Change


def apply_list(
    document: MaintainedTree, given: UpdateList, at: Time | None = None, *, reduces: bool = True
) -> list[Change]:
    """Apply a list, and return the changes of all views; by default it is reduced first."""
    with document.lock:
        tree = document.nodes()
        edits = with_actual_ids(given, tree.recorded_ids)
        edits = reduce(edits) if reduces and is_traceable(given) else edits
        operations = resolved(tree, edits, document.limits)
        recording = Recording(tree, edits, operations)
        time = None if at is None else microseconds(at)
        return document.announce(document.carry_out(operations, time, note=recording.note))
