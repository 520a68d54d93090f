"""Tables kept equal to a view, from its changes.

A database merges by key (`merged`): a row of the table has the digest of the row's key, so that an
`update` changes it in place. A file that is written as a whole needs no key: it is a bag of rows,
to which changes add and from which they remove (`difference`). Two rows of a view can show the same
values; they differ in a node id that is not shown.

`never` changes no table. A Boolean view is a table with the one column `holds`. A time is a number
of seconds (double precision, exact to the microsecond until 2242) or, with `times: dates`, a
timestamp in UTC.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from axlog.connect.kinds import Column, Origin, ViewShape
from axlog.errors import PipelineError
from axlog.views.change import Change, Row

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


def values_of(row: Row) -> Values:
    """Return a row as stored in its table: texts, times as seconds or timestamps, lists as JSON."""
    plain = row.to_dict().values()
    return tuple(_cell(shown, value) for shown, value in zip(row.values(), plain, strict=True)) or (
        True,
    )


def _cell(shown: Any, plain: Any) -> Any:
    if isinstance(shown, int | float | Fraction):
        return float(shown)
    if shown is None or isinstance(shown, datetime) or isinstance(plain, str):
        return shown if isinstance(shown, datetime) else plain
    return json.dumps(plain, ensure_ascii=False)


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
