"""The tables of the demo in the terminal."""

from rich.console import Console

from axlog.cli import demo_tables


def test_changes_show_numbers_as_numbers_and_times_as_dates() -> None:
    row = {
        "orders": 17,
        "mean": "1.2260823302639",
        "t.time": "2026-03-05T02:56:00Z",
        "oid": None,
        "sent": 1772726030.23,
    }
    change = {"op": "update", "view": "v", "row": row, "time": "2026-03-05T02:57:00Z"}
    console = Console(width=140, record=True)
    console.print(demo_tables._changes([change]))
    text = console.export_text()
    assert "orders 17, mean 1.23, t.time Thu 05 Mar 02:56, oid ?, sent Thu 05 Mar 15:53" in text
    assert "Thu 05 Mar 02:57" in text
