"""The saved state of the short paths: the clock, the joins, the views, the values of keys."""

from __future__ import annotations

from typing import TypeAlias

from axlog.live.collector import Collector, SavedKeys
from axlog.live.maintained import MaintainedTree
from axlog.live.replacements import (
    Deliveries,
    SavedMessages,
    restored_messages,
    saved_messages,
)
from axlog.live.saved_views import SavedViews, check_saved, restore_views, saved_views
from axlog.views.counting.state_codec import SavedTables, restore_tables, saved_tables

SavedState: TypeAlias = tuple[
    int,
    SavedTables,
    SavedViews,
    SavedKeys,
    SavedMessages,
]
"""The saved state of the engine.

The clock; the rows of every table; for each view its name, position and bindings; for
each join the key values that it remembers; for each stream that replaces the rows of its messages.
States of 0.2 lack the last part.
"""


def saved_state(
    document: MaintainedTree, collector: Collector, delivered: dict[str, Deliveries]
) -> SavedState:
    """Return the state of the joins and the views, as plain tuples."""
    views = saved_views(document)
    keys, messages = collector.saved_keys(), saved_messages(delivered)
    return document.tree.clock, saved_tables(document.engine), views, keys, messages


def checked_messages(
    document: MaintainedTree, saved: SavedState, keeps: bool
) -> dict[str, Deliveries]:
    """Check that a state is of the same views; return the rows of messages of replacing streams."""
    _, _, views, _, *messages = saved
    check_saved(document, views)
    return restored_messages(messages[0] if messages else (), document, keeps)


def restore_state(document: MaintainedTree, collector: Collector, saved: SavedState) -> None:
    """Restore the joins, the views, the clock and the values of keys."""
    clock, tables, views, keys, *_ = saved
    restore_tables(document.engine, tables)
    restore_views(document, views)
    document.tree.clock = clock
    document.forgotten += 1
    collector.restore(keys)
