"""A document, or a widget, as it is now, to go back to: what a batch whose body raises returns to.

    savepoint = Savepoint(document, widget)
    ...
    savepoint.restore()

Law: after `restore` rows, counts, ids, the document, the clock, the statuses of streams, the values
of keys and all later changes are those of a widget that never saw what came in between.

The document's columns are copied when the savepoint is made: memory and time of some sixty bytes a
node. Where messages are not kept, the rows of the engine are copied too: they are nowhere else. On
the way back the engines, the views' maintainers and all that follows streams are made again from
the document, as when a store is opened (`recovery.py`). Runs that go back to a checkpoint of their
own, such as pipelines, use `Document.told_at_the_end`, which makes no savepoint.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from axlog.document.schema import TypeGuard
from axlog.document.tree import Tree
from axlog.views.choose import make
from axlog.views.maintainer import PutAside

if TYPE_CHECKING:
    from axlog.live.document import Document
    from axlog.live.widget import Widget

_SHARED = frozenset({"names", "name_ids", "tags_by_name", "text_bytes", "facts", "types"})
"""Columns of a tree that only grow, or never change."""


def _copied(column: Any) -> Any:
    if isinstance(column, array | set | list):
        return copy(column)
    if isinstance(column, dict):
        return {key: copy(v) if isinstance(v, array) else v for key, v in column.items()}
    return column


def _columns(tree: Tree) -> dict[str, Any]:
    return {
        name: column if name in _SHARED else _copied(column) for name, column in vars(tree).items()
    }


class Savepoint:
    """What `restore` goes back to; used once, with the document's lock held."""

    def __init__(self, document: Document, widget: Widget | None = None) -> None:
        document.settle()
        self._document = document
        self._widget = widget
        self._tree = _columns(document.tree)
        self._views = dict(document.views)
        self._sequences = {view: (view.sequence, view.never) for view in self._views.values()}
        self._forgotten, self._collected = document.forgotten, document.collected
        self._held = None if document._held is None else len(document._held)
        if widget is None:
            return
        streaming, finisher = widget._streaming, widget._finisher
        self._statuses = {name: replace(one) for name, one in streaming._statuses.items()}
        self._letters = list(widget.dead_letters)
        self._keys = widget._guard.values()
        self._is_tuned = bool(streaming.wants)
        self._closed, self._dropped = dict(finisher.closed), copy(finisher.collected)
        is_whole = not (self._forgotten or self._collected)
        self._state = None if is_whole else streaming.state()

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Go back if the body raises."""
        try:
            yield
        except BaseException:
            self.restore()
            raise

    def restore(self) -> None:
        """Go back; nobody is told of what came in between."""
        document, widget = self._document, self._widget
        for name, column in self._tree.items():
            setattr(document.tree, name, column)
        if document._held is not None:
            del document._held[self._held :]
        self._remake_views(document)
        if widget is not None:
            widget._begin_again()
            if self._state is not None:
                widget._streaming.restore(self._state)
            self._restore_streams(widget)
        document.forgotten, document.collected = self._forgotten, self._collected
        for view, (sequence, never) in self._sequences.items():
            view.sequence, view.never = sequence, never

    def _remake_views(self, document: Document) -> None:
        """Make all that follows the tree anew."""
        for view in document.views.values():
            if not isinstance(view.maintainer, PutAside):
                view.maintainer.close()
        document.views = dict(self._views)
        tree = document.tree
        if tree.types is not None:
            document._type_guard = TypeGuard(tree, tree.types)
        document.make_engines(document.engine.shelf, document.engine.block)
        for view in document.views.values():
            if not isinstance(view.maintainer, PutAside):
                pattern, chosen = view.query.pattern, view.chosen.name
                view.maintainer = make(tree, pattern, chosen, document.engines, view.work)
            view.standing.forget()

    def _restore_streams(self, widget: Widget) -> None:
        widget._streaming._statuses = self._statuses
        widget._guard.restore(self._keys)
        widget.dead_letters[:] = self._letters
        widget._finisher.closed, widget._finisher.collected = self._closed, self._dropped
        if self._is_tuned:  # filters follow from the document and the views
            widget.tuner.tune()
