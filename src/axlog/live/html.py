"""A document as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from axlog.live.stream_status import StreamStatus
from axlog.live.view import View
from axlog.reporting import counted

_SHOWN = 2_000
"""Characters of the XML that are shown."""


def document_html(
    title: str, streams: Mapping[str, StreamStatus], views: Mapping[str, View], xml: str
) -> str:
    """Return a summary of a document."""
    parts = [f"<p><b>{escape(title)}</b></p>"]
    if streams or views:
        rows = [("stream", name, counted(one.messages, "message")) for name, one in streams.items()]
        rows += [("view", name, _size(view)) for name, view in views.items()]
        parts.append("<table>" + "".join(map(_row, rows)) + "</table>")
    more = " ..." if len(xml) > _SHOWN else ""
    parts.append(
        f"<details><summary>XML</summary><pre>{escape(xml[:_SHOWN])}{more}</pre></details>"
    )
    return "".join(parts)


def _size(view: View) -> str:
    return counted(len(view), "row") if view.broken is None else f"set aside: {view.broken.code}"


def _row(cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
