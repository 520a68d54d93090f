"""The rows of a view as an Arrow table, with types that fit the columns.

| column | Arrow type |
|---|---|
| text, id, duration, time of day | string |
| time | double of seconds, or timestamp in UTC where times are dates |
| integer | int64, or decimal if a value does not fit |
| decimal | decimal of as many digits as the values have; string beyond 76 digits |
| double, truth | double, bool |
| date, date with a time of day | date32, timestamp in UTC; string if a value does not fit |
| list | list |
| values that only the data decides | the type of all values if they have one, else string |
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from axlog.document.times import Times
from axlog.errors import SetupError
from axlog.query.columns import Columns, ColumnType
from axlog.query.dates import Date, DateTime
from axlog.views.change import Row
from axlog.views.value_codec import day_of, decimal_text, plain_value, python_value, utc_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_OF_KINDS: dict[type, ColumnType] = {
    bool: "truth", float: "double", DateTime: "moment", Date: "day"
}  # fmt: skip
_DIGITS = 76  # the most digits of an Arrow decimal


def arrow_table(rows: Sequence[Row], columns: Columns, times: Times) -> pyarrow.Table:
    """The rows and their counts."""
    try:
        import pyarrow
    except ImportError:
        raise SetupError(
            "AX901", "pyarrow is not installed", advice="pip install 'axlog[arrow]'"
        ) from None
    data: dict[str, Any] = {}
    for at, (name, type_) in enumerate(zip(columns, columns.types, strict=True)):
        if type_ == "time":
            data[name] = _times(pyarrow, [row[name] for row in rows], times)
        else:
            data[name] = _array(pyarrow, type_, [row.values_[at] for row in rows])
    return pyarrow.table({**data, "count": pyarrow.array([r.count for r in rows], pyarrow.int64())})


def _times(arrow: Any, shown: list[Any], times: Times) -> Any:
    kind = arrow.timestamp("us", "UTC") if times == "dates" else arrow.float64()
    if any(isinstance(value, tuple) for value in shown):
        return arrow.array([plain_value(value) for value in shown])
    if times != "dates":
        shown = [None if value is None else float(value) for value in shown]
    return arrow.array(shown, kind)


def _array(arrow: Any, type_: ColumnType, values: list[Any]) -> Any:
    if type_ in ("any", "decimal"):  # a product of a text may be a duration
        type_ = _type_of(values, type_)
    if type_ == "integer" and all(v is None or -(1 << 63) <= v < 1 << 63 for v in values):
        return arrow.array(values, arrow.int64())
    if type_ in ("integer", "decimal"):
        return _decimals(arrow, [None if v is None else Decimal(v) for v in values])
    if type_ == "double":
        return arrow.array(values, arrow.float64())
    if type_ == "truth":
        return arrow.array(values, arrow.bool_())
    if type_ in ("moment", "day"):
        read = utc_of if type_ == "moment" else day_of
        found = [None if value is None else read(python_value(value)) for value in values]
        if all(v is None or each is not None for v, each in zip(values, found, strict=True)):
            kind = arrow.timestamp("us", "UTC") if type_ == "moment" else arrow.date32()
            return arrow.array(found, kind)
    plain = [plain_value(value) for value in values]
    if any(isinstance(value, list) for value in plain):
        return arrow.array([None if v is None else list(map(_text, v)) for v in plain])
    return arrow.array([_text(value) for value in plain], arrow.string())


def pandas_frame(table: Any) -> pandas.DataFrame:
    """An Arrow table as a pandas data frame; AX901 without pandas."""
    try:
        import pandas  # noqa: F401  # so that its absence is reported by code
    except ImportError:
        raise SetupError(
            "AX901", "pandas is not installed", advice="pip install pandas 'axlog[arrow]'"
        ) from None
    found: pandas.DataFrame = table.to_pandas()
    return found


def polars_frame(table: Any) -> polars.DataFrame:
    """An Arrow table as a Polars data frame; AX901 without Polars."""
    try:
        import polars
    except ImportError:
        raise SetupError(
            "AX901", "polars is not installed", advice="pip install polars 'axlog[arrow]'"
        ) from None
    found = polars.from_arrow(table)
    return found if isinstance(found, polars.DataFrame) else found.to_frame()


def _text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else str(value)


def _type_of(values: list[Any], static: ColumnType) -> ColumnType:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, Decimal} and (kinds or static == "decimal"):
        return "decimal"
    if len(kinds) == 1:
        return _OF_KINDS.get(kinds.pop(), "text")
    return "text"


def _decimals(arrow: Any, values: list[Decimal | None]) -> Any:
    whole = fraction = 1
    for value in values:
        if value is not None:
            exponent = int(value.as_tuple().exponent)
            whole = max(whole, value.adjusted() + 1)
            fraction = max(fraction, -exponent)
    if whole + fraction > _DIGITS:
        return arrow.array([None if v is None else decimal_text(v) for v in values])
    digits = whole + fraction
    kind = arrow.decimal128(max(digits, 38), fraction) if digits <= 38 else None
    return arrow.array(values, kind or arrow.decimal256(_DIGITS, fraction))
