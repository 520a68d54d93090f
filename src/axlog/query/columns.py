"""The columns of a view: their names, and the types of their values.

Rows hold typed values. Inside, a time is an `int` of microseconds, and so are other integers; the
type of its column tells them apart. `Query.columns` has the types of a view's rows and keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Literal, TypeAlias

from axlog.errors import QueryError

ColumnType: TypeAlias = Literal[
    "text", "id", "time", "integer", "decimal", "double", "truth", "moment", "day", "duration",
    "list", "any",
]  # fmt: skip
"""The type of the values of a column; every column may also have None.

`time` is the time of a node, or a tuple of times. `moment` is a date with a time of day,
`day` a date. `any` has values of several types, or of a type that only the data decides.
"""


class Columns(tuple[str, ...]):
    """The names of columns, with the types of their values and of the values of the row's key.

    It is equal to the tuple of the names.

    >>> columns = Columns(("x", "t.time"), ("text", "time"))
    >>> columns, columns.types, sorted(columns.times)
    (('x', 't.time'), ('text', 'time'), [1])
    """

    types: tuple[ColumnType, ...]
    key_types: tuple[ColumnType, ...]
    collected: frozenset[str]

    def __new__(
        cls,
        names: Iterable[str],
        types: Iterable[ColumnType] | None = None,
        key_types: Iterable[ColumnType] | None = None,
        collected: Iterable[str] = (),
    ) -> Columns:
        """`types`: None: any values. `key_types`: of keys that are not all values of the row.

        `collected`: the columns whose values are tuples, of collected paths.
        """
        made = super().__new__(cls, names)
        unknown: ColumnType = "any"
        made.types = (unknown,) * len(made) if types is None else tuple(types)
        made.key_types = made.types if key_types is None else tuple(key_types)
        made.collected = frozenset(collected)
        return made

    @cached_property
    def times(self) -> frozenset[int]:
        """The positions of times in a row."""
        return frozenset(at for at, each in enumerate(self.types) if each == "time")

    @cached_property
    def key_times(self) -> frozenset[int]:
        """The positions of times in a key."""
        return frozenset(at for at, each in enumerate(self.key_types) if each == "time")

    def headed(self, name: str, type_: ColumnType = "text") -> Columns:
        """The columns with one more in front, which is also the first of the key."""
        return Columns((name, *self), (type_, *self.types), (type_, *self.key_types))

    def __reduce__(self) -> tuple[type[Columns], tuple[tuple[str, ...], ...]]:
        return Columns, (tuple(self), self.types, self.key_types, tuple(sorted(self.collected)))


def typed_columns(names: tuple[str, ...]) -> Columns:
    """The columns of a row; plain names are columns of any values, without times.

    >>> typed_columns(("x",)).types
    ('any',)
    """
    return names if isinstance(names, Columns) else Columns(names)


def refuse_unknown_columns(columns: Collection[str], row: Iterable[str]) -> None:
    """Refuse a row that names a column which the view does not have."""
    unknown = set(row) - set(columns)
    if unknown:
        expected = ", ".join(columns) or "none: the query is Boolean"
        raise QueryError("AX203", f"the view has no column {min(unknown)}", expected=expected)
