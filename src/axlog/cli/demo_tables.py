"""The terminal display of the demo: its views as tables, from the data of the live page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.columns import Columns
from rich.console import Group
from rich.table import Table
from rich.text import Text

from axlog.document.times import Time, microseconds, shown
from axlog.reporting import counted

if TYPE_CHECKING:  # comes with the extra `server`
    from axlog.server.summaries import Observed

PARTNERS = ("bank", "supplier", "plant", "shipper")
QUESTIONS = (
    "which orders left within 48 hours",
    "which can still leave on time, and until when",
    "which never will, as soon as that is certain",
    "which partner each late order waited for",
    "which invoices name goods that have not left",
    "which parts are below 20",
    "orders per state, delays per step, lateness per supplier, stock day by day",
)
STATES = ("placed", "paid", "stocked", "built", "sent")
STEPS = ("bank", "warehouse", "plant", "shipper", "total")
_LINES, _CHANGES, _DAYS = 6, 8, 1000
_STYLES = {"insert": "green", "delete": "red", "update": "yellow", "never": "bold red"}


_TIMES = ("placed", "sent")
"""Columns of the demo's views that are times."""


def tables(observed: Observed, activity: str, address: str | None) -> Group:
    """Return everything that the terminal shows."""
    from axlog.server.row_lists import Asked

    state = observed.state(Asked("orders", "on_time", "possible", "", _LINES))
    counts = _counts(state)
    orders = next(one for one in state["documents"] if one["name"] == "orders")
    kept = ", ".join(f"{one['state']:,} {one['unit']}" for one in state["documents"][:1])
    messages = sum(s["messages"] for w in state["documents"] for s in w["streams"])
    head = Text.assemble(
        ("the supply chain", "bold"),
        f"  {_moment(orders['clock'])}  {messages:,} documents, {kept}; {activity}",
    )
    if address:
        head.append("\nlive page: ").append(address, style=f"cyan link {address}")
    possible = None if state["shown"] is None else state["shown"]["counts"]["possible"]
    parts = [
        _orders(counts, possible),
        _waited(counts),
        _possible(state["shown"]),
        _rows(observed, "orders", "invoiced_without_goods", "Invoices without goods"),
        _rows(observed, "stock", "low_parts", "Parts below 20"),
        _states(observed),
        _delays(observed),
        _rows(observed, "statistics", "late_by_supplier", "Late, by supplier of the parts"),
        _stock(observed),
    ]
    letters = _rejected(state["refused"])
    return Group(head, Columns(parts, padding=(0, 2)), _changes(state["changes"]), letters)


def waiting(counts: Mapping[str, int], activity: str, address: str | None) -> Group:
    """Return the display before the engine has started: the waiting documents and the questions."""
    head = Text.assemble(("the supply chain", "bold"), f"  {activity}")
    if address:
        head.append("\nlive page: ").append(address, style=f"cyan link {address}")
    published = Table("published so far", "documents")
    for stream, count in counts.items():
        published.add_row(stream, f"{count:,}")
    asked = Table("questions kept up to date")
    for question in QUESTIONS:
        asked.add_row(question)
    return Group(head, Columns([published, asked], padding=(0, 2)))


def _rejected(number: int) -> str:
    """Name the documents that were rejected; one that several views read counts once."""
    return (
        f"{counted(number, 'document')} {'was' if number == 1 else 'were'} rejected"
        if number
        else ""
    )


def _counts(state: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Rows and nevers by view."""
    return {v["name"]: (v["count"], v["never"]) for w in state["documents"] for v in w["views"]}


def _orders(counts: dict[str, tuple[int, int]], possible: int | None) -> Table:
    table = Table("", "orders", title="Within 48 hours?", title_justify="left")
    table.add_row("left on time", f"{counts['on_time'][0]:,}", style="green")
    # one of them stands for a future order
    still = "?" if possible is None else f"{max(0, possible - 1):,}"
    table.add_row("can still be on time", still, style="yellow")
    table.add_row("never will be", f"{counts['on_time'][1]:,}", style="red")
    table.add_row("left late", f"{counts['late'][0]:,}")
    return table


def _waited(counts: dict[str, tuple[int, int]]) -> Table:
    table = Table("late orders waited for", "orders", title="Why late?", title_justify="left")
    for partner in PARTNERS:
        table.add_row(f"the {partner}", f"{counts[f'waited_for_{partner}'][0]:,}")
    return table


def _possible(shown: dict[str, Any] | None) -> Table:
    table = Table("order", "until", title="Next deadlines", title_justify="left")
    for line in () if shown is None else shown["lines"]:
        if line["truth"] == "possible" and line["row"]["order"] is not None:
            table.add_row(line["row"]["order"], _moment(line.get("deadline")))
    return table


def _rows(observed: Observed, document: str, view: str, title: str) -> Table:
    from axlog.server.row_lists import Asked

    shown = observed.shown(Asked(document, view, "true", "", _LINES))
    columns = [] if shown is None else shown["columns"]
    table = Table(*columns, title=title, title_justify="left")
    for line in () if shown is None else shown["lines"]:
        table.add_row(*(_text(line["row"][column]) for column in columns))
    return table


def _figures(observed: Observed, view: str, most: int = 1) -> list[dict[str, Any]]:
    """The rows of a view of the statistics."""
    from axlog.server.row_lists import Asked

    shown = observed.shown(Asked("statistics", view, "true", "", most))
    return [] if shown is None else [line["row"] for line in shown["lines"]]


def _states(observed: Observed) -> Table:
    table = Table("last step", "orders", title="Orders per state", title_justify="left")
    for state in STATES:
        for row in _figures(observed, f"orders_{state}"):
            table.add_row(state, f"{int(row['orders']):,}")
    return table


def _delays(observed: Observed) -> Table:
    table = Table("step", "mean, h", "longest, h", title="Delay per step", title_justify="left")
    for step in STEPS:
        for row in _figures(observed, f"delay_{step}"):
            table.add_row(step, _rounded(row["mean_hours"]), _rounded(row["longest_hours"]))
    return table


def _stock(observed: Observed) -> Table:
    """The newest day of every part, and the lowest level of all days."""
    table = Table("part", "day", "level", "lowest ever", title="Stock", title_justify="left")
    newest: dict[str, dict[str, Any]] = {}
    lowest: dict[str, float] = {}
    for row in _figures(observed, "stock_by_day", _DAYS):
        part = row["part"]
        lowest[part] = min(lowest.get(part, float("inf")), float(row["lowest"]))
        if part not in newest or row["day"] > newest[part]["day"]:
            newest[part] = row
    for part, row in sorted(newest.items()):
        table.add_row(part, row["day"], str(row["last"]), f"{lowest[part]:.0f}")
    return table


def _text(value: Any) -> str:
    """A value of a row; numbers with many digits are rounded."""
    text = str(value)
    return f"{float(text):.2f}" if "." in text and text.replace(".", "", 1).isdigit() else text


def _rounded(value: Any) -> str:
    return "" if value is None else f"{float(value):.1f}"


def _changes(changes: list[dict[str, Any]]) -> Table:
    table = Table("", "view", "row", "at", title="Newest changes", title_justify="left")
    table.expand, table.columns[2].ratio = True, 1  # a fixed width, so that the table does not jump
    for change in changes[:_CHANGES]:
        fields = ", ".join(f"{name} {_field(name, value)}" for name, value in change["row"].items())
        op = Text(change["op"], style=_STYLES.get(change["op"], ""))
        table.add_row(op, change["view"], fields, _moment(change["time"]))
    return table


def _field(name: str, value: Any) -> str:
    """A value of a changed row: times as dates, numbers as numbers."""
    if value is None:
        return "?"
    return _moment(value) if name in _TIMES or name.endswith(".time") else _text(value)


def _moment(time: Time | None) -> str:
    if not time:
        return ""
    found = shown(microseconds(time), "dates")
    return found.strftime("%a %d %b %H:%M") if isinstance(found, datetime) else str(found)


def summary(observed: Observed) -> str:
    """Summarize the run in one sentence."""
    from axlog.server.row_lists import Asked

    counts = _counts(observed.state(Asked()))
    waited = ", ".join(f"{counts[f'waited_for_{name}'][0]} for the {name}" for name in PARTNERS)
    return (
        f"{counts['on_time'][0]} orders left on time, {counts['late'][0]} late (waited {waited}); "
        f"{counts['on_time'][1]} were reported as never on time, as soon as that was certain; "
        f"invoices without goods: {counts['invoiced_without_goods'][0]}, "
        f"parts below 20: {counts['low_parts'][0]}"
    )
