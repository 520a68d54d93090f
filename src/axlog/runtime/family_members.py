"""The members of the families of a document: which rows of their tables are watched.

A row of a table that comes or goes is an input like a message: it is in a batch, and a restarted
run applies it at the same place again.

    {"add": [["INRIA"]], "remove": [["ENS"]]}

The name of a member holds its row, so a snapshot of the document has the members.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from axlog.connect.parameter_tables import ParameterRow, read_row, written_row
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.pipeline.families import FamilyView, row_of
from axlog.query.columns import ColumnType
from axlog.query.dates import Date, time_value_of
from axlog.runtime.engine import DocumentEngine
from axlog.views.change import Change, Row, headed_row
from axlog.views.family_names import PILOT, family_of

PARAMETERS = "parameters"
"""The action of an input that adds and removes rows of the table of a family."""


def parameter_update(
    view: str, then: Mapping[ParameterRow, None], now: Mapping[ParameterRow, None], origin: str
) -> StreamUpdate | None:
    """The update from some rows of a table to others; None: they are the same."""
    added = [row for row in now if row not in then]
    removed = [row for row in then if row not in now]
    if not added and not removed:
        return None
    said = {
        name: [json.loads(written_row(row)) for row in rows]
        for name, rows in (("remove", removed), ("add", added))
        if rows
    }
    return StreamUpdate(view, PARAMETERS, json.dumps(said, ensure_ascii=False), None, origin)


class FamilyMembers:
    """The members of the families of one entry under `documents:`."""

    def __init__(self, families: Mapping[str, FamilyView], namespaces: Mapping[str, str]) -> None:
        self.families = dict(families)
        self.queries = {name: one.sample(namespaces) for name, one in families.items()}
        self.rows: dict[str, dict[ParameterRow, None]] = {name: {} for name in families}

    def __bool__(self) -> bool:
        return bool(self.families)

    def restore(self, members: Iterable[str]) -> None:
        """Take the rows from the names of members."""
        for member in members:
            family = family_of(member)
            if family in self.rows:
                self.rows[family][row_of(member)] = None

    def names(self) -> list[str]:
        """The names of all members."""
        return [self.families[name].member(row) for name, rows in self.rows.items() for row in rows]

    def update(self, update: StreamUpdate, engines: Sequence[DocumentEngine]) -> list[AxlogError]:
        """Add and remove members in every document; the errors of rows that cannot be members."""
        family, rows = self.families[update.stream], self.rows[update.stream]
        said = json.loads(update.content)
        refused: list[AxlogError] = []
        for written in said.get("remove", ()):
            row = read_row(json.dumps(written))
            if rows.pop(row, 0) is None:
                for engine in engines:
                    engine.forget_member(family.member(row))
        for written in said.get("add", ()):
            row = read_row(json.dumps(written))
            if row in rows:
                continue
            try:
                for engine in engines:
                    self._watch(family, row, engine)
            except AxlogError as error:
                refused.append(error)
            rows[row] = None
        return refused

    def watch_pilots(self, document: Document) -> None:
        """Have a plan for each family before its first member.

        A document that keeps only what views need would lack the rows of a member that comes later.
        """
        for name, family in self.families.items():
            pilot = f"{name}{PILOT}"
            if pilot not in document.views:
                with maintained(document).families.restoring(is_shared=True):
                    document.watch(family.sample_text(), pilot, language=family.written.language)

    def watch_all(self, engine: DocumentEngine) -> None:
        """Watch all members in a document that is made later."""
        for name, rows in self.rows.items():
            for row in rows:
                self._watch(self.families[name], row, engine)

    def _watch(self, family: FamilyView, row: ParameterRow, engine: DocumentEngine) -> None:
        written = family.written
        engine.add_member(
            family.member(row),
            family.text(row),
            language=written.language,
            maintainer=written.maintainer,
            work=written.work,
            on_value_error=written.on_value_error,
        )

    def headed(self, change: Change) -> Change:
        """The change of a member as one of its family, with the values of its row in front."""
        return headed_change(change, self.families[family_of(change.view or "")].typed_columns)


def headed_change(change: Change, columns: Sequence[tuple[str, ColumnType]]) -> Change:
    """The change of a member as one of its family, with the values of its row in front.

    `columns` are those of the table, with their types.
    """
    member = change.view or ""
    heads = list(zip(columns, row_of(member), strict=True))[::-1]

    def head(row: Row) -> Row:
        for (column, type_), value in heads:
            row = headed_row(row, column, _shown(value, type_), type_)
        return row

    before = None if change.before is None else head(change.before)
    return replace(change, view=family_of(member), row=head(change.row), before=before)


def _shown(value: Any, type_: str) -> Any:
    """A value of the table as a value of a row."""
    if type_ == "day" and isinstance(value, date) and not isinstance(value, datetime):
        return time_value_of(value.isoformat(), Date)
    if type_ == "decimal":
        return value
    return value.isoformat() if isinstance(value, date) else str(value)
