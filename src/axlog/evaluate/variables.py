"""Values of variables that the caller of a statement gives: Python values to sequences.

| Python | XQuery |
|---|---|
| `str`, `bool`, `int`, `float`, `Decimal` | a string, boolean, integer, double, decimal |
| `date`, `datetime`, `time`, `timedelta` | xs:date, xs:dateTime, xs:time, xs:dayTimeDuration |
| `Fragment`, an element of lxml or `xml.etree` | its nodes, without a parent |
| an element tree of lxml or `xml.etree`, a `Document` | a document node |
| `Id` | the node of the document with this identifier |
| None; a list or tuple | the empty sequence; a sequence |

A string stays a string: only objects that are XML already become nodes. Nodes are copied when the
statement starts, so later changes of an object have no effect. `written` and `read_back` are the
JSON form, for logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Protocol, TypeAlias, runtime_checkable
from xml.etree import ElementTree as StandardTree

from lxml import etree

from axlog.document.fragment import Fragment
from axlog.document.ids import Id
from axlog.document.loader import with_surroundings
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits, read
from axlog.document.tree import Tree
from axlog.errors import QueryError, StoreError
from axlog.evaluate.items import Items, New, Node
from axlog.query.dates import Date, DateTime, DayTimeDuration, Time, duration_of, time_value_of

Given: TypeAlias = Any
"""A value of a variable; see the module."""
_ATOMS = (bool, int, float, Decimal)


@runtime_checkable
class _Document(Protocol):
    """A document of axlog: `live` is above this layer."""

    def xml(self) -> str: ...


def given_items(
    tree: Tree, variables: Mapping[str, Given] | None, limits: Limits = DEFAULT_LIMITS
) -> dict[str, Items]:
    """The sequences of variables; the identifiers among them are nodes of the tree."""
    return {name: _items(tree, name, value, limits) for name, value in (variables or {}).items()}


def _items(tree: Tree, name: str, value: Given, limits: Limits) -> Items:
    kind = type(value)
    if kind is str or kind in _ATOMS:
        return [value]
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [item for each in value for item in _items(tree, name, each, limits)]
    if isinstance(value, Id):
        return [Node(tree.find(value))]
    if isinstance(value, Fragment):
        return [_node(each) for each in value.trees]
    if isinstance(value, etree._Element):
        return [_node(value)]
    if isinstance(value, StandardTree.Element):
        return [_node(read(value, limits).root)]
    if isinstance(value, etree._ElementTree | StandardTree.ElementTree | _Document):
        source = value.xml() if isinstance(value, _Document) else value
        around = with_surroundings(read(source, limits).root)
        return [New("document", tuple(_alone(each) for each in around))]
    if isinstance(value, str | Date | DateTime | Time | DayTimeDuration):
        return [str(value) if isinstance(value, str) else value]
    return [_moment(name, value)]


def _node(piece: Element) -> New:
    tag: object = piece.tag  # of a comment or an instruction, a function
    kind = {etree.Comment: "comment", etree.PI: "instruction"}.get(tag, "element")  # type: ignore[call-overload]
    return New(kind, (_alone(piece),))


def _alone(piece: Element) -> Element:
    copy = deepcopy(piece)
    copy.tail = None
    return copy


def _moment(name: str, value: object) -> Any:
    found: object = None
    if isinstance(value, datetime):
        found = time_value_of(value.isoformat(), DateTime)
    elif isinstance(value, date):
        found = time_value_of(value.isoformat(), Date)
    elif isinstance(value, time):
        found = time_value_of(value.isoformat(), Time)
    elif isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        sign, size = ("-" if microseconds < 0 else ""), abs(microseconds)
        written = f"{sign}PT{size // 1_000_000}.{size % 1_000_000:06}S"
        found = duration_of(written, DayTimeDuration)
    if found is None:
        raise QueryError(
            "AX218",
            f"the value of ${name} is a {type(value).__name__}",
            expected="a string, number, Boolean, date, time, Id, Fragment, element, or list",
        )
    return found


# JSON ---------------------------------------------------------------------------------------------

_WRITTEN: dict[str, Callable[[str], Given]] = {
    "xml": Fragment,
    "document": lambda text: etree.ElementTree(read(text).root),
    "id": Id.parse,
    "decimal": Decimal,
    "date": lambda text: time_value_of(text, Date),
    "dateTime": lambda text: time_value_of(text, DateTime),
    "time": lambda text: time_value_of(text, Time),
    "duration": lambda text: duration_of(text, DayTimeDuration),
    "double": float,
}


def written(name: str, value: Given) -> Any:
    """A value in JSON: strings, finite numbers and Booleans as they are, others as an object."""
    kind = type(value)
    if value is None or kind in (str, bool, int):
        return value
    if kind is float:
        is_finite = value - value == 0
        return value if is_finite else {"double": str(value)}
    if isinstance(value, list | tuple):
        return [written(name, each) for each in value]
    if isinstance(value, Id):
        return {"id": str(value)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, Fragment):
        return {"xml": str(value)}
    (item,) = _items(Tree(), name, value, DEFAULT_LIMITS)
    if isinstance(item, New):
        xml = "".join(_xml(piece) for piece in item.pieces)
        return {"document" if item.kind == "document" else "xml": xml}
    return {_NAMES[type(item)]: str(item)}


_NAMES: dict[type, str] = {
    Date: "date", DateTime: "dateTime", Time: "time", DayTimeDuration: "duration",
}  # fmt: skip


def _xml(piece: Any) -> str:
    return etree.tostring(piece, encoding="unicode", with_tail=False)


def read_back(value: Any) -> Given:
    """The inverse of `written`."""
    if isinstance(value, list):
        return [read_back(each) for each in value]
    if isinstance(value, dict):
        kind, text = next(iter(value.items()), ("", ""))
        read_one = _WRITTEN.get(kind)
        try:
            found = None if read_one is None or len(value) > 1 else read_one(str(text))
        except (ArithmeticError, TypeError, ValueError):
            found = None
        if found is None:
            raise StoreError("AX871", f"the value of a variable cannot be read: {value}")
        return found
    return value
