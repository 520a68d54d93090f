"""Rows of views, and the changes that views emit.

A row is a mapping from output names to values, with its derivation count. A change is one row that
was inserted into a view (`insert`), deleted (`delete`) or updated (`update`, with `before`), or a
possible row that can no longer come (`never`). A count that moves between two positive numbers is
not a change.

The envelope of a change is its view, operation, key, row, row before, time, cause, finality and
position (docs/design.md, The change envelope).

Rows hold typed values: strings, integers, decimals, doubles, truths, None, ids, times, tuples of
these, and the dates and durations of computed columns. Internally, `Row.values_` and
`Change.microseconds` hold times as integer microseconds. The columns of a row know which of its
values are times (`query/columns.py`). Access by column, and `Change.time`, return times in the
format of the document (`document/times.py`): a `Row` returns seconds, a `DatedRow` dates.

In JSON (`to_dict`) an id is a text. A decimal is a number if a double has exactly its value as its
shortest text, else a text, so that no reader loses digits. Doubles that JSON does not have (`NaN`,
`INF`) are texts, and so are dates and durations. Tuples are arrays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from axlog.document.times import Shown, Times, plain, shown
from axlog.evaluate.joins import picker
from axlog.query.columns import ColumnType, typed_columns
from axlog.query.row_key import RowKey
from axlog.views.value_codec import plain_value, python_value

Values = tuple[Any, ...]
Op: TypeAlias = Literal["insert", "delete", "update", "never"]


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Row(Mapping[str, Any]):
    """One row: output names to values. Ids are `Id`s, times seconds or dates, numbers are numbers.

    Computed dates and durations are objects of `datetime`.

    Views make rows; `count` is the number of derivations.

    Parameters:
        columns: Names of the outputs; `Columns` if some are times.
        values: Their values, times in microseconds.
        count: Number of derivations.
        key: Values that identify the row; None: all values.

    >>> import axlog
    >>> doc = axlog.parse("<orders><order>17</order></orders>")
    >>> (row,) = doc.watch("match //order/$x return $x")
    >>> row["x"], dict(row), row.count
    ('17', {'x': '17'}, 1)
    """

    __slots__ = ("columns", "count", "key_", "values_")
    times: ClassVar[Times] = "seconds"

    def __init__(
        self,
        columns: tuple[str, ...],
        values: Values,
        count: int = 1,
        key: Values | None = None,
    ) -> None:
        self.columns = columns
        self.values_ = values
        self.count = count
        self.key_ = key  # None: all values

    @property
    def key(self) -> Values:
        """The values that identify the row in its view, in the order of `View.key`.

        >>> Row(("x",), ("17",)).key
        ('17',)
        """
        return tuple(
            [
                _shown(value, self.times) if timed else python_value(value)
                for value, timed in self._key()
            ]
        )

    def _key(self) -> Iterator[tuple[Any, bool]]:
        """The values of the key, each with whether it is a time."""
        columns = typed_columns(self.columns)
        if self.key_ is None:
            key, timed = self.values_, columns.times
        else:
            key, timed = self.key_, columns.key_times
        return ((value, at in timed) for at, value in enumerate(key))

    @property
    def key_text(self) -> str:
        """The key as text, for links and tables: a compact JSON array.

        >>> Row(("x",), ("17",)).key_text
        '["17"]'
        """
        return _COMPACT(self.plain_key())

    def plain_key(self) -> list[Any]:
        """Return the key for JSON: ids as strings, times as seconds or ISO strings.

        >>> Row(("x",), ("17",)).plain_key()
        ['17']
        """
        return [
            _plain_time(value, self.times) if timed else plain_value(value)
            for value, timed in self._key()
        ]

    def __getitem__(self, column: str) -> Any:
        try:
            at = self.columns.index(column)
        except ValueError:
            raise KeyError(column) from None
        value = self.values_[at]
        if type(value) is str:
            return value
        is_time = at in typed_columns(self.columns).times
        return _shown(value, self.times) if is_time else python_value(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.columns, self.values_))

    def __repr__(self) -> str:
        inside = ", ".join(f"{column}={value!r}" for column, value in self.items())
        return f"Row({inside})" if self.count == 1 else f"Row({inside}; count={self.count})"

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON: ids as strings, times as seconds or ISO strings.

        >>> Row(("x",), ("17",)).to_dict()
        {'x': '17'}
        """
        timed, times = typed_columns(self.columns).times, self.times
        values = zip(self.columns, self.values_, strict=True)
        return {
            column: _plain_time(value, times) if at in timed else plain_value(value)
            for at, (column, value) in enumerate(values)
        }


class DatedRow(Row):
    """A row of a document created with `times="dates"`."""

    __slots__ = ()
    times = "dates"


def timed_row(row: Row, times: Times) -> Row:
    """The row with its times in this format."""
    kind = DatedRow if times == "dates" else Row
    return row if type(row) is kind else kind(row.columns, row.values_, row.count, row.key_)


def headed_row(row: Row, column: str, value: Any, type_: ColumnType = "text") -> Row:
    """The row with one more column in front, which is also the first of its key."""
    key = None if row.key_ is None else (value, *row.key_)
    columns = typed_columns(row.columns).headed(column, type_)
    return type(row)(columns, (value, *row.values_), row.count, key)


def split_row(row: Row, key: RowKey) -> Row:
    """The row of a maintainer with its shown values and its key.

    A row that can never come lacks hidden values. They are None in its key.
    """
    values = row.values_
    known = len(values)
    found: Values = tuple([values[at] if at < known else None for at in key.positions])
    return type(row)(key.columns, values[: len(key.columns)], row.count, found)


def splitter(key: RowKey) -> Callable[[Row], Row]:
    """`split_row` as a function of the row."""
    columns, pick = key.columns, picker(key.positions)
    shown, kept = len(key.columns), len(key.kept)

    def split(row: Row) -> Row:
        values = row.values_
        if len(values) != kept:
            return split_row(row, key)
        return Row(columns, values[:shown], row.count, pick(values))

    return split


def identity(row: Row) -> Values:
    """The values and the key of a row, to look it up by."""
    return row.values_ if row.key_ is None else (row.values_, row.key_)


def _shown(time: Any, times: Times) -> Any:
    """A time, or a tuple of times, as its document returns it; None: unknown."""
    if type(time) is tuple:
        return tuple(_shown(each, times) for each in time)
    return None if time is None else shown(time, times)


def _plain_time(time: Any, times: Times) -> Any:
    if type(time) is tuple:
        return [_plain_time(each, times) for each in time]
    return None if time is None else plain(shown(time, times))


class Cause(NamedTuple):
    """The update that caused a change.

    `kind` is `message` (with its stream, and its number in the stream), `statement` (with its
    number in the document) or `clock`. A number is None where messages are not counted.
    """

    kind: Literal["message", "statement", "clock"]
    stream: str | None = None
    number: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The cause for JSON, without the fields that it does not have."""
        return {name: value for name, value in self._asdict().items() if value is not None}


CLOCK: Literal["clock"] = "clock"
"""The origin of changes that the passing of time causes."""

From = tuple[str, int | None] | int | Literal["clock"] | None
"""The origin of a change: stream and number of a message, number of a statement, the clock; None:
unknown. A plain value, because one is made for every message; `Change.cause` names its parts.
"""


class Current:
    """The update that a document is applying; all its views read it."""

    __slots__ = ("is_deletion", "origin")

    def __init__(self) -> None:
        self.origin: From = None
        self.is_deletion = False  # whether a stream deletes


@dataclass(slots=True, unsafe_hash=True)  # frozen dataclasses take much longer to create
class Change:
    """A row inserted, deleted or updated in a view, or that can never come, with its envelope.

    Do not modify a change: all subscribers receive the same object. Changes are equal if view,
    position, time, operation and rows are.

    Parameters:
        op: `insert`, `delete`, `update` or `never`.
        row: The row. Of `never`, unknown values are None.
        before: The row before an `update`.
        view: Name of the view.
        microseconds: The document's clock when it changed; `time` is the same in seconds or dates.
        position: The change's place among the view's changes.
        origin: The update that caused it; `cause` names its parts.
        final: Whether this row can never return.

    >>> import axlog
    >>> doc = axlog.Document(streams=["orders"], views={"all": "match //order/$x return $x"})
    >>> (change,) = doc.feed("orders", "<order>17</order>", at=12.5)
    >>> change.op, change.row, change.time, change.position
    ('insert', Row(x='17'), 12.5, 1)
    """

    op: Op
    row: Row
    before: Row | None = None
    view: str | None = None
    microseconds: int = 0
    position: int = 0
    origin: From = field(default=None, compare=False)
    final: bool = field(default=False, compare=False)

    @property
    def time(self) -> Shown:
        """The document's clock when it changed: seconds, or a date if the row has dates.

        >>> Change("insert", Row(("x",), ("17",)), microseconds=2_500_000).time
        2.5
        """
        return shown(self.microseconds, self.row.times)

    @property
    def key(self) -> Values:
        """The values that identify the row in its view, in the order of `View.key`.

        >>> Change("insert", Row(("x",), ("17",))).key
        ('17',)
        """
        return self.row.key

    @property
    def key_text(self) -> str:
        """The key as text, for links and tables: a compact JSON array.

        >>> Change("insert", Row(("x",), ("17",))).key_text
        '["17"]'
        """
        return self.row.key_text

    @property
    def cause(self) -> Cause | None:
        """The update that caused it; None for a row of the initial document or a deferred view.

        >>> Change("insert", Row(("x",), ("17",)), origin=("orders", 1)).cause
        Cause(kind='message', stream='orders', number=1)
        """
        origin = self.origin
        if origin is None:
            return None
        if isinstance(origin, tuple):
            return Cause("message", *origin)
        return Cause("clock") if origin == CLOCK else Cause("statement", None, int(origin))

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope for JSON.

        Every format that axlog writes by itself has these names: `view`, `op`, `key`, `row`,
        `before` (of an update), `time`, `cause`, `final` and `position`.

        >>> found = Change("insert", Row(("x",), ("17",)), view="all", position=1).to_dict()
        >>> found["op"], found["row"], found["position"]
        ('insert', {'x': '17'}, 1)
        """
        cause = self.cause
        envelope: dict[str, Any] = {
            "view": self.view,
            "op": self.op,
            "key": self.row.plain_key(),
            "row": self.row.to_dict(),
        }
        if self.before is not None:
            envelope["before"] = self.before.to_dict()
        envelope["time"] = plain(self.time)
        envelope["cause"] = None if cause is None else cause.to_dict()
        envelope["final"] = self.final
        envelope["position"] = self.position
        return envelope

    def _repr_html_(self) -> str:
        """The change in a notebook: its operation, and its values before and after."""
        head = "".join(f"<th>{escape(str(name))}</th>" for name in ("", *self.row.columns))
        shown: list[tuple[str, Row]] = [(self.op, self.row)]
        if self.before is not None:
            shown.insert(0, ("was", self.before))
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(str(v))}</td>" for v in (op, *row.to_dict().values()))
            + "</tr>"
            for op, row in shown
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        was = f", before={self.before!r}" if self.before is not None else ""
        return f"Change({self.op!r}, {self.row!r}{was})"


def timed_change(change: Change, times: Times) -> Change:
    """The change with its times in this format."""
    before = None if change.before is None else timed_row(change.before, times)
    return replace(change, row=timed_row(change.row, times), before=before)


def never_change(row: Row, limits: Sequence[int | None]) -> Change:
    """A `never` change. `limits`: the deadlines that passed; None: another reason."""
    passed = [limit for limit in limits if limit is not None]
    if len(passed) < len(limits):
        return Change("never", row)
    return Change("never", row, microseconds=max(passed) + 1, origin=CLOCK)
