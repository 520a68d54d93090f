"""Families of views in a pipeline file: one query, watched for each row of a table.

    views:
      late:
        query: match //order[client/$client]/oid/$x return $x
        for_each: {kind: csv, path: customers.csv}

A family is one view for sinks, channels and the page: its rows are those of all members, each with
the values of its row of the table in front. A member is a view of the document, named with its row
(`late["INRIA"]`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from axlog.connect.kinds import Column, Origin
from axlog.connect.parameter_tables import ParameterRow, ParameterTable, read_row, written_row
from axlog.errors import PipelineError
from axlog.pipeline.model import ViewModel
from axlog.query.columns import ColumnType
from axlog.query.parameters import parameters_of, with_parameters
from axlog.query.query import Query
from axlog.views.family_names import family_of
from axlog.views.view_query import parse_view


class FamilyView:
    """A view of the file that is watched for each row of a table."""

    def __init__(self, name: str, written: ViewModel, directory: Path) -> None:
        assert written.for_each is not None
        self.name = name
        self.written = written
        self.table = ParameterTable(written.for_each, Origin(directory=directory))
        self.columns = self.table.columns
        self._samples = parameters_of(written.query, written.language)
        self.used = [column for column in self.columns if column in self._samples]
        if not self.used:
            raise PipelineError(
                "AX852",
                f"the query of the view {name!r} uses no column of its table",
                expected=" or ".join(f"${column}" for column in self.columns),
            )

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns of the table as sinks see them."""
        return tuple(Column(name, type_) for name, type_ in self.typed_columns)

    @property
    def typed_columns(self) -> list[tuple[str, ColumnType]]:
        """The columns of the table with their types in rows."""
        assert self.written.for_each is not None
        return [(column, self.written.for_each.column_type(column)) for column in self.columns]

    def text(self, row: ParameterRow) -> str:
        """The query of a member."""
        values = dict(zip(self.columns, row, strict=True))
        given = {column: values[column] for column in self.used}
        return with_parameters(self.written.query, given, self.written.language)

    def sample(self, namespaces: Mapping[str, str]) -> Query:
        """The query of some member: its columns are those of all."""
        text, written = self.sample_text(), self.written
        query = parse_view(text, namespaces, written.language, maintainer=written.maintainer)
        taken = [column for column in query.columns if column in self.columns]
        if taken:
            raise PipelineError(
                "AX214",
                f"the view {self.name!r} and its table both have the column {taken[0]!r}",
                advice=f"return it under another name: ... as {taken[0]}_found",
            )
        return query

    def sample_text(self) -> str:
        """The text of the query of some member."""
        assert self.written.for_each is not None
        values = {**dict.fromkeys(self.columns, ""), **self._samples}
        values |= self.written.for_each.samples()
        return self.text(tuple(values[column] for column in self.columns))

    def member(self, row: ParameterRow) -> str:
        """The name of a member."""
        return f"{self.name}{written_row(row)}"


def row_of(member: str) -> ParameterRow:
    """The row of a member."""
    return read_row(member[len(family_of(member)) :])


def view_query(
    name: str, written: ViewModel, namespaces: Mapping[str, str], directory: Path
) -> Query:
    """The query of a view of the file; of a family, that of some member."""
    if written.for_each is not None:
        return FamilyView(name, written, directory).sample(namespaces)
    return parse_view(written.query, namespaces, written.language, maintainer=written.maintainer)
