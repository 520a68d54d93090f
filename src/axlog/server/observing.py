"""What the live page shows of widgets: small summaries, made when asked, never the whole.

An `Observer` listens to the views of widgets and keeps the last changes and a history of sizes,
both bounded. Rows, trees and possible rows are cut to what a person can look at, so a page over a
view with a million rows costs what one with a hundred does. Possible rows and `why` cost the
document (docs/analysis.md), so they are asked for one view at a time, and not at all for large
documents.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from threading import Lock
from time import monotonic
from typing import Any

from axlog.document.tree import CALL, DOCUMENT_NODE, ELEMENT, TEXT, Tree
from axlog.errors import AxlogError, QueryError
from axlog.views.change import Change
from axlog.views.view import View
from axlog.widgets.widget import Widget

ROWS, CHANGES, LETTERS, NODES, POSSIBLE = 200, 200, 50, 400, 100
LARGEST = 20_000
"""Nodes of a document up to which possible rows and truth are worked out for the page."""


class Observer:
    """Watches widgets for a page."""

    def __init__(self, widgets: Mapping[str, Widget]) -> None:
        self.widgets = dict(widgets)
        self._changes: deque[dict[str, Any]] = deque(maxlen=CHANGES)
        self._sizes: dict[str, deque[tuple[float, int]]] = {}
        self._lock = Lock()
        self._count = 0
        self._started = monotonic()
        self._stops: list[Callable[[], None]] = []
        for name, widget in self.widgets.items():
            self._sizes[name] = deque(maxlen=300)
            for view in widget.views.values():
                self._stops.append(view.listen(self._hearing(name)))

    def _hearing(self, widget: str) -> Callable[[Change], None]:
        def hear(change: Change) -> None:
            with self._lock:
                self._count += 1
                self._changes.append(
                    {"number": self._count, "widget": widget, "view": change.view,
                     "time": change.time, **change.plain()}
                )  # fmt: skip

        return hear

    def close(self) -> None:
        """Stop listening."""
        for stop in self._stops:
            stop()

    # What the page asks for -----------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything that the page shows without a click."""
        with self._lock:
            changes, count = list(self._changes), self._count
        return {
            "changes": changes[::-1],
            "changed": count,
            "widgets": [self._widget(name, widget) for name, widget in self.widgets.items()],
        }

    def _widget(self, name: str, widget: Widget) -> dict[str, Any]:
        rows = widget.state_sizes()["joins"]
        sizes = self._sizes[name]
        sizes.append((round(monotonic() - self._started, 1), rows))
        return {
            "name": name,
            "clock": widget.clock,
            "nodes": len(widget.document.tree),
            "streams": [_stream(status) for status in widget.streams().values()],
            "views": [self._view(view) for view in widget.views.values()],
            "letters": [
                {"stream": d.stream, "number": d.sequence, "error": d.error.message,
                 "code": d.error.code}
                for d in widget.dead_letters[-LETTERS:][::-1]
            ],
            "refused": sum(status.refused for status in widget.streams().values()),
            "state": rows,
            "sizes": list(sizes),
        }  # fmt: skip

    def _view(self, view: View) -> dict[str, Any]:
        rows = view.rows()
        return {
            "name": view.name,
            "query": view.query.text,
            "columns": list(view.columns),
            "count": len(rows),
            "rows": [row.plain() for row in rows[:ROWS]],
            "maintainer": view.chosen.name,
        }

    def outlook(self, widget: str, view: str) -> dict[str, Any]:
        """Truth and possible rows of one view, or the reason why they are not said."""
        asked = self._find(widget).view(view)
        if len(self._find(widget).document.tree) > LARGEST:
            return {"reason": f"the document has more than {LARGEST} nodes"}
        try:
            possible = asked.possible()
            said: dict[str, Any] = {"truth": asked.truth.value, "possible": len(possible)}
            said["rows"] = [one.plain() for one in possible[:POSSIBLE]]
        except AxlogError as error:
            return {"reason": error.message}
        return said

    def why(self, widget: str, view: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """The derivations of a row: what matched, when it came, and with which message."""
        asked = self._find(widget).view(view)
        try:
            found = asked.why(row)
        except AxlogError as error:
            return {"reason": error.message}
        return {
            "derivations": [
                [{"pattern": m.pattern, "path": m.path, "time": m.time, "origin": m.origin}
                 for m in derivation.matched]
                for derivation in found[:5]
            ]
        }  # fmt: skip

    def tree(self, widget: str) -> dict[str, Any]:
        """The top of a widget's document, as nested lists."""
        asked = self._find(widget)
        with asked.document._lock:
            tree = asked.document.tree
            left = [NODES]
            return {"root": _node(tree, tree.root, left), "cut": left[0] <= 0}

    def _find(self, widget: str) -> Widget:
        try:
            return self.widgets[widget]
        except KeyError:
            raise QueryError(
                "AX203", f"there is no widget {widget!r}", expected=", ".join(self.widgets)
            ) from None


def _stream(status: Any) -> dict[str, Any]:
    state = "ended" if status.ended else "unsubscribed" if status.is_unsubscribed else "open"
    return {
        "name": status.stream, "state": state, "messages": status.messages,
        "kept": status.kept, "dropped": status.dropped, "refused": status.refused,
        "wanted": list(status.wanted), "tuned": status.is_tuned, "last": status.last,
    }  # fmt: skip


def _node(tree: Tree, node: int, left: list[int]) -> dict[str, Any] | None:
    """A node with as much below it as is left; large elements show their first children."""
    if node == DOCUMENT_NODE or node < 0 or left[0] <= 0:
        return None
    left[0] -= 1
    kind = tree._kind[node]
    if kind == TEXT:
        return {"text": tree.text(node)[:200]}
    if kind == CALL:
        return {"call": tree.call(node).stream}
    if kind != ELEMENT:
        return None
    children = list(islice(tree.children(node), 40))
    below = [each for child in children if (each := _node(tree, child, left)) is not None]
    calls = [child for child in tree.calls().values() if tree.parent(child) == node]
    below += [{"call": tree.call(call).stream} for call in calls if call not in children]
    return {
        "name": tree.label(node).rpartition("}")[2],
        "attributes": [
            [tree.label(a).lstrip("@").rpartition("}")[2], tree.string_value(a)[:100]]
            for a in tree.attributes(node)
        ],
        "below": below,
        "more": sum(1 for _ in islice(tree.children(node), 41)) > 40,
    }
