"""The rows of a view as a table for a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from axlog.views.change import Row


def html_table(columns: Iterable[str], rows: Iterable[Row]) -> str:
    """Return rows and their counts as an HTML table."""
    head = "".join(f"<th>{escape(c)}</th>" for c in (*columns, "count"))
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(_cell(v))}</td>" for v in (*row.values(), row.count))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(_cell, value)) if isinstance(value, tuple) else str(value)
