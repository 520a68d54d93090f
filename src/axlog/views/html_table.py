"""The rows of a view as a table for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from axlog.query.columns import Columns
from axlog.views.change import Row
from axlog.views.outputs import shown_columns


def html_table(columns: Columns, rows: Sequence[Row]) -> str:
    """Return rows and their counts as an HTML table."""
    shown = shown_columns(columns, rows)
    head = "".join(f"<th>{escape(c)}</th>" for c in (*shown, "count"))
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(_cell(v))}</td>" for v in (*(row[c] for c in shown), row.count))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(_cell, value)) if isinstance(value, tuple) else str(value)
