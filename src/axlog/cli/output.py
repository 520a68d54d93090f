"""Writing answers: JSON lines for programs, tables and colour for people.

Lines have the form that docs/commands.md shows. Each is flushed when its update is done, so that
`axlog maintain` works in a pipe between two slow programs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from axlog.document.parser import Source
from axlog.query.columns import Columns
from axlog.reporting import counted
from axlog.views.change import Change, Row
from axlog.views.outputs import shown_columns

if TYPE_CHECKING:
    from rich.console import Console


_SIGNS = {"insert": ("+", "green"), "delete": ("-", "red"), "update": ("~", "yellow"),
          "never": ("x", "dim")}  # fmt: skip


def is_json(asked: bool | None) -> bool:
    """Whether to write JSON lines: as requested, otherwise if standard output is not a terminal."""
    return not sys.stdout.isatty() if asked is None else asked


def source_of(argument: str) -> Source:
    """Return the source that a document argument names; JSON becomes elements (docs/json.md).

    The items of a JSON array are the children of `<document>`.
    """
    if argument == "-":
        return sys.stdin.buffer
    path = Path(argument) if argument.endswith(".json") else None
    if path is not None and path.is_file():
        return _from_json(path.read_bytes(), argument)
    return _from_json(argument) if argument.lstrip()[:1] in ("{", "[") else argument


def _from_json(text: str | bytes, source: str | None = None) -> str:
    from axlog.document.json_messages import messages_of_text

    messages = messages_of_text(text, source=source)
    return messages[0] if len(messages) == 1 else f"<document>{''.join(messages)}</document>"


class Lines:
    """JSON lines on standard output."""

    def __init__(self, out: IO[str] | None = None) -> None:
        self._out = out or sys.stdout

    def rows(self, columns: Sequence[str], rows: Iterable[Row]) -> None:
        for row in rows:
            self.thing({"row": row.to_dict(), "count": row.count})
        self._out.flush()

    def changes(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self.thing(change.to_dict())
        self._out.flush()

    def thing(self, thing: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(thing, ensure_ascii=False) + "\n")


class Tables:
    """Tables and coloured lines on a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console(highlight=False)

    def rows(self, columns: Sequence[str], rows: Iterable[Row]) -> None:
        from rich.table import Column, Table
        from rich.text import Text

        given = list(rows)
        names = shown_columns(columns, given) if isinstance(columns, Columns) else columns
        heads = [Column(Text(column)) for column in names]
        table = Table(*heads, Column("count", justify="right"))
        for row in given:
            plain = row.to_dict()
            table.add_row(*(Text(shown(plain[name])) for name in names), str(row.count))
        if given:
            self._console.print(table)
        self._console.print(counted(len(given), "row"), style="dim")

    def changes(self, changes: Iterable[Change]) -> None:
        from rich.text import Text

        for change in changes:
            sign, style = _SIGNS[change.op]
            line = Text(f"{sign} {in_words(change.row)}", style=style)
            if change.before is not None:
                line.append(f"  was {in_words(change.before)}", style="dim")
            self._console.print(line, soft_wrap=True)


def in_words(row: Row | Mapping[str, Any]) -> str:
    """Return a row, or its JSON form, on one line: x=17 t.id=1.2."""
    fields = row.to_dict() if isinstance(row, Row) else row
    return " ".join(f"{column}={shown(value)}" for column, value in fields.items()) or "true"


def in_time(time: float | str) -> str:
    """Return a time of the JSON form for people: 12.5 s, or a date."""
    return time if isinstance(time, str) else f"{time} s"


def shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def writer(asked: bool | None) -> Lines | Tables:
    """Return the writer for the answers of this run."""
    return Lines() if is_json(asked) else Tables()
