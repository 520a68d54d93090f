"""`Savepoint`: the state that a batch whose body raises returns to.

    savepoint = Savepoint(document)
    ...
    savepoint.restore()

Law: after `restore`, the rows, counts, ids, document, clock, stream statuses, key values and all
later changes are those of a document that never saw the updates in between.

The document's columns are copied when the savepoint is made. This costs about sixty bytes a node,
and the time to copy them. Where messages are not kept, the engine's rows are copied too, since they
are stored nowhere else. `restore` makes the engines, the views' maintainers and the stream
machinery anew from the document, as when a store is opened (`recovery.py`). Runs that return to a
checkpoint of their own, such as pipelines, use `MaintainedTree.told_at_the_end`, which makes no
savepoint.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from axlog.document.tree import Tree
from axlog.views.choose import make_for
from axlog.views.family import FamilyCounting
from axlog.views.maintainer import PutAside

if TYPE_CHECKING:
    from axlog.live.document import Document
    from axlog.live.maintained import MaintainedTree
    from axlog.live.streams import Streams

_SHARED = frozenset(
    {"names", "name_ids", "tags_by_name", "text_bytes", "facts", "types",
     "shared_texts", "_shared_numbers"}
)  # fmt: skip
"""Columns of a tree that only grow, or never change."""

_NESTED = frozenset({"nodes_by_label", "messages_by_key"})
"""Columns of a tree whose values change in place: one for each label or stream."""


def _copied(name: str, column: Any) -> Any:
    """A column that later updates leave as it is. No Python code runs for each entry."""
    if name in _NESTED:
        return {key: copy(each) for key, each in column.items()}
    if isinstance(column, array | bytearray | set | list | dict):
        return copy(column)
    return column


def _columns(tree: Tree) -> dict[str, Any]:
    return {
        name: column if name in _SHARED else _copied(name, column)
        for name, column in vars(tree).items()
    }


class Savepoint:
    """A state to return to. Used once, with the document's lock held."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._maintained = maintained = document._maintained
        maintained.settle()
        self._tree = _columns(maintained.tree)
        self._views = dict(maintained.views)
        self._families = maintained.families.saved()
        every = [*self._views.values(), *maintained.families.opened()]
        self._positions = {view: (view.position, view.never) for view in every}
        self._statements = maintained.statements
        self._forgotten, self._collected = maintained.forgotten, maintained.collected
        self._held = None if maintained.held is None else len(maintained.held)
        self._streams = streams = document._streams
        if streams is None:
            return
        engine, collector = streams.engine, streams.collector
        self._statuses = engine.copied_statuses()
        self._letters = list(document.dead_letters)
        self._keys = streams.guard.values()
        self._is_tuned = bool(engine.wants)
        self._closed, self._dropped = dict(collector.closed), copy(collector.collected)
        self._ends = collector.tracker.ends()
        is_whole = not (self._forgotten or self._collected)
        self._state = None if is_whole else engine.state()
        self._known_keys = {} if is_whole else collector.known_keys()

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Restore the savepoint if the body raises."""
        try:
            yield
        except BaseException:
            self.restore()
            raise

    def restore(self) -> None:
        """Return to the saved state. Changes in between are not emitted."""
        maintained, streams = self._maintained, self._streams
        for name, column in self._tree.items():
            setattr(maintained.tree, name, column)
        if maintained.held is not None:
            del maintained.held[self._held :]
        self._remake_views(maintained)
        self._restore_counts(maintained)  # joins that are found anew depend on them
        if streams is None:
            self._document._stop_streams()
        else:
            streams.restart()
            if self._state is not None:
                streams.engine.restore(self._state)
                streams.collector.restore_known(self._known_keys)
            streams.collector.restore_ends(self._ends)
            self._restore_streams(streams)
        self._restore_counts(maintained)  # a restored state counts as a message that is not kept
        for view, (position, never) in self._positions.items():
            view.position, view.never = position, never

    def _restore_counts(self, maintained: MaintainedTree) -> None:
        maintained.forgotten, maintained.collected = self._forgotten, self._collected
        maintained.statements = self._statements

    def _remake_views(self, maintained: MaintainedTree) -> None:
        """Make the views' maintainers and the engines anew from the tree."""
        from axlog.document.schema import TypeGuard

        for view in maintained.views.values():
            if not isinstance(view.maintainer, PutAside):
                view.maintainer.close()
        maintained.views = dict(self._views)
        maintained.families.return_to(self._families)
        maintained.clocked = [view for view in self._views.values() if view.reads_clock]
        tree = maintained.tree
        guard = maintained.type_guard
        if guard is not None:
            maintained.type_guard = TypeGuard(tree, guard.schema, guard.on_violation)
        maintained.make_engines(maintained.engine.shelf, maintained.engine.block)
        for view in maintained.views.values():
            if isinstance(view.maintainer, FamilyCounting):
                view.maintainer = view.maintainer.made_anew(maintained.engine)
            elif not isinstance(view.maintainer, PutAside):
                chosen, engines = view.chosen.name, maintained.engines
                view.maintainer = make_for(
                    tree, view.query, view.stepping, chosen, engines, view.work
                )
        maintained.revisions += 1
        maintained.families.reload()

    def _restore_streams(self, streams: Streams) -> None:
        streams.engine.restore_statuses(self._statuses)
        streams.guard.restore(self._keys)
        self._document.dead_letters[:] = self._letters
        collector = streams.collector
        collector.closed, collector.collected = self._closed, self._dropped
        if self._is_tuned:  # filters follow from the document and the views
            streams.tuner.tune()
