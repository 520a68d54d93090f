"""Tables kept equal to a view, from its changes.

A database merges by key (`merged`): a row of the table has the digest of the row's key, so that an
`update` changes it in place. A file that is written as a whole needs no key: it is a bag of rows,
to which changes add and from which they remove (`difference`). Two rows of a view can show the same
values; they differ in a node id that is not shown.

`never` changes no table. A Boolean view is a table with the one column `holds`. A time is a number
of seconds (double precision, exact to the microsecond until 2242) or, with `times: dates`, a
timestamp in UTC. Integers, decimals, doubles, truths and dates have the type of their column; a
date with a time of day is a timestamp in UTC. A decimal has 38 digits, 12 of them after the point,
and is rounded to that. A value that its type cannot hold is null. Durations, lists, and values of
columns whose type only the data decides, are texts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from hashlib import blake2b
from typing import Any

from axlog.connect.kinds import Column, Origin, ViewShape
from axlog.errors import PipelineError
from axlog.query.columns import ColumnType, typed_columns
from axlog.views.change import Change, Row
from axlog.views.value_codec import day_of, utc_of

Values = tuple[Any, ...]
HOLDS = Column("holds", "truth")


def view_of(origin: Origin) -> ViewShape:
    """Return the one view of a table."""
    if len(origin.views) != 1:
        raise PipelineError("AX852", "a table sink needs exactly one view")
    return origin.views[0]


def columns_of(view: ViewShape) -> tuple[Column, ...]:
    """Return the columns of a view's table."""
    return view.columns or (HOLDS,)


def check_columns(view: ViewShape, taken: Sequence[str] = ()) -> None:
    """Refuse a view with a column name that its table cannot have.

    Databases compare names without case, and so does this check.
    """
    seen = set(taken)
    for column in columns_of(view):
        name = column.name.lower()
        if name in taken:
            raise reserved(f"the column {column.name!r} of the view {view.name!r}", taken)
        if name in seen:
            raise PipelineError(
                "AX827",
                f"the view {view.name!r} has two columns {column.name!r}",
                advice="give one of them another name in the query",
            )
        seen.add(name)


def reserved(what: str, taken: Sequence[str]) -> PipelineError:
    """Return the error for a name that axlog's own columns and tables use."""
    return PipelineError(
        "AX827",
        f"{what} has a name that is reserved for axlog",
        expected=f"any name but {', '.join(taken)}",
        advice="give it another name in the pipeline file",
    )


DECIMAL = (38, 12)
"""Digits of a decimal in a table, and how many of them are after the point."""
_SMALLEST = Decimal(1).scaleb(-DECIMAL[1])
_LARGEST = Decimal(1).scaleb(DECIMAL[0] - DECIMAL[1])
_ROUNDING = Context(prec=1000, rounding=ROUND_HALF_EVEN)
_INTEGERS = range(-(1 << 63), 1 << 63)


_TYPED: frozenset[ColumnType] = frozenset({"time", "decimal", "integer", "double", "moment", "day"})
"""Types of columns in whose tables a text is not stored as it is."""


def values_of(row: Row) -> Values:
    """Return a row as stored in its table: typed values, times as seconds or timestamps, texts."""
    types = typed_columns(row.columns).types
    if _TYPED.isdisjoint(types) and all(type(value) is str for value in row.values_):
        return row.values_ or (True,)
    plain = row.to_dict().values()
    cells = zip(types, row.values(), plain, strict=True)
    return tuple(_cell(type_, shown, value) for type_, shown, value in cells) or (True,)


def _cell(type_: ColumnType, shown: Any, plain: Any) -> Any:
    if shown is None:
        return None
    if type_ == "time" and not isinstance(shown, tuple):
        return shown if isinstance(shown, datetime) else float(shown)
    if type_ == "decimal":
        return _decimal(Decimal(shown)) if isinstance(shown, int | Decimal) else None
    if type_ == "integer":
        return int(shown) if shown in _INTEGERS else None
    if type_ == "double":
        return float(shown)
    if type_ in ("moment", "day"):
        return utc_of(shown) if type_ == "moment" else day_of(shown)
    if type_ == "truth" or isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False)


def _decimal(value: Decimal) -> Decimal | None:
    """A decimal that fits its column; None if it is too large."""
    if not abs(value) < _LARGEST:
        return None
    rounded = value.quantize(_SMALLEST, context=_ROUNDING)
    return rounded if abs(rounded) < _LARGEST else None


def difference(changes: Iterable[Change]) -> Counter[Values]:
    """Return how many copies of each row changes add or remove, without zeros."""
    moved: Counter[Values] = Counter()
    for change in changes:
        if change.op in ("insert", "update"):
            moved[values_of(change.row)] += 1
        if change.op in ("delete", "update"):
            gone = change.row if change.before is None else change.before
            moved[values_of(gone)] -= 1
    return Counter({values: number for values, number in moved.items() if number})


def merged(changes: Iterable[Change]) -> dict[str, Values | None]:
    """Return the last row of each key that changes touch; None: it was deleted."""
    found: dict[str, Values | None] = {}
    for change in changes:
        if change.op != "never":
            is_gone = change.op == "delete"
            found[digest(change.row)] = None if is_gone else values_of(change.row)
    return found


def digest(row: Row) -> str:
    """Return a short form of a row's key, the same on every machine."""
    text = row.key_text.encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=16).hexdigest()
