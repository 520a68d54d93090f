"""The template of an XQuery view: renders the constructor of the view for a row, as XML text.

The constructor of `return <result>{$a/name} {id($p)}</result>` becomes a tree of parts that show
columns of the row. `render` follows the recommendation's rules for content: adjacent values in one
`{...}` are separated by a space, nodes are not; attributes must come first and have different names
(XQTY0024, XQDY0025).

Law: if the contents in a row are well-formed, so is the result, for all strings in the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

from axlog.document.ids import Id
from axlog.errors import QueryError

_XML = "http://www.w3.org/XML/1998/namespace"
_TEXT_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_VALUE_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


class Form(Enum):
    """How the value of a column is written in the result."""

    CONTENT = "the XML of an element"
    TEXT = "a text"
    ATTRIBUTE = "an attribute"
    NODE = "whatever the node is"
    VALUE = "a value"


@dataclass(frozen=True, slots=True)
class Show:
    """A column of the row; `kinds` is the column of ids or labels that gives each node's kind."""

    column: str
    form: Form
    name: str | None = None  # of an attribute, if the query names it
    kinds: str | None = None
    is_distinct: bool = False
    is_one: bool = False  # string(): exactly one value, "" if there is no node


@dataclass(frozen=True, slots=True)
class Atom:
    """A constant in `{...}`."""

    value: str


@dataclass(frozen=True, slots=True)
class Each:
    """The parts, repeated for every item of these columns: `for` inside a constructor."""

    columns: tuple[str, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Text of the constructor."""

    text: str


@dataclass(frozen=True, slots=True)
class Markup:
    """A comment or processing instruction of the constructor."""

    xml: str


@dataclass(frozen=True, slots=True)
class Enclosed:
    """`{...}`."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Element:
    tag: str
    declared: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, tuple[Text | Enclosed, ...]], ...] = ()
    content: tuple[Text | Markup | Enclosed | Element, ...] = ()


Part: TypeAlias = Show | Atom | Each | Element


class PieceKind(Enum):
    """The kinds of items in a result."""

    VALUE = "a value"
    TEXT = "a text"
    XML = "an element"
    ATTRIBUTE = "an attribute"


@dataclass(frozen=True, slots=True)
class Piece:
    """One item of a result: its string, or the XML of an element; `name` for attributes."""

    kind: PieceKind
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """The result of a view. `bindings` are the nodes of the `for` variables, in their order.

    `before` and `after` are the XML around a query that is enclosed in a constructor.
    """

    parts: tuple[Part, ...]
    bindings: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    scope: tuple[tuple[str, str], ...] = ()  # the namespaces that `before` declares

    def render(self, row: Mapping[str, Any]) -> str:
        """The XML text of one row.

        >>> name = Show("name.val", Form.TEXT)
        >>> Template((Element("p", content=(Enclosed((name,)),)),)).render({"name.val": "A & B"})
        '<p>A &amp; B</p>'
        """
        return _joined(self.pieces(row), top=True)

    def pieces(self, row: Mapping[str, Any]) -> list[Piece]:
        """The items for one row."""
        parts = self.parts
        if self.scope:
            parts = tuple(_declaring(part, self.scope) for part in parts)
        return list(_pieces(parts, row, {}))

    def render_all(self, rows: Iterable[Mapping[str, Any]]) -> str:
        """The whole result, with the XML around the query."""
        pieces: list[Piece] = []
        for row in rows:
            pieces += _pieces(self.parts, row, dict(self.scope))
        return self.before + _joined(pieces, top=True) + self.after


def _declaring(part: Part, scope: tuple[tuple[str, str], ...]) -> Part:
    """A part rendered on its own; it declares the namespaces of the XML around the query."""
    if not isinstance(part, Element):
        return part
    return replace(part, declared=tuple({**dict(scope), **dict(part.declared)}.items()))


# Rendering --------------------------------------------------------------------------------------


Scope: TypeAlias = Mapping[str, str]
"""Prefix to namespace, as declared by the enclosing constructors."""


def _pieces(parts: Iterable[Part], row: Mapping[str, Any], scope: Scope) -> Iterator[Piece]:
    for part in parts:
        match part:
            case Atom(value=value):
                yield Piece(PieceKind.VALUE, value)
            case Element():
                yield Piece(PieceKind.XML, _element(part, row, scope))
            case Each(columns=columns, parts=inside):
                for values in zip(*(row[column] for column in columns), strict=True):
                    item = {**row, **dict(zip(columns, values, strict=True))}
                    yield from _pieces(inside, item, scope)
            case Show():
                yield from _shown(part, row, scope)


def _shown(show: Show, row: Mapping[str, Any], scope: Scope) -> Iterator[Piece]:
    value = row[show.column]
    values = value if isinstance(value, tuple) else (value,)
    if show.is_distinct:
        values = tuple(dict.fromkeys(values))
    if show.is_one:
        values = (_one(values),)
    kinds = (None,) * len(values) if show.kinds is None else row[show.kinds]
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    for each, kind in zip(values, kinds, strict=True):
        yield _piece(show, str(each), kind, scope)


def _one(values: tuple[Any, ...]) -> Any:
    if len(values) > 1:
        raise QueryError(
            "XPTY0004",
            f"string() is applied to {len(values)} nodes",
            expected="a path that finds at most one node",
            advice="data(...), which gives the values of all",
        )
    return values[0] if values else ""


def _piece(show: Show, value: str, kind: Id | str | None, scope: Scope) -> Piece:
    match show.form:
        case Form.VALUE:
            return Piece(PieceKind.VALUE, value)
        case Form.TEXT:
            return Piece(PieceKind.TEXT, value)
        case Form.ATTRIBUTE:
            return Piece(PieceKind.ATTRIBUTE, value, show.name or str(kind)[1:])
        case Form.NODE:
            label = kind.labels[-1] if isinstance(kind, Id) and kind.labels else ""
            if label.startswith("@"):
                return Piece(PieceKind.ATTRIBUTE, value, label[1:])
            if label == "#text":
                return Piece(PieceKind.TEXT, value)
            if label.startswith("#"):
                return Piece(PieceKind.XML, value)
    return Piece(PieceKind.XML, _in_scope(value, scope))


def _in_scope(xml: str, scope: Scope) -> str:
    """The XML of an element inside constructors that may declare a default namespace."""
    end = next((at for at, character in enumerate(xml) if character in " \t\n\r/>" and at), 0)
    if not scope.get("") or " xmlns=" in xml[: xml.find(">")]:
        return xml
    return f'{xml[:end]} xmlns=""{xml[end:]}'


def _element(element: Element, row: Mapping[str, Any], scope: Scope) -> str:
    inner = {**scope, **dict(element.declared)}
    attributes: dict[str, str] = {}
    for name, value in element.attributes:
        attributes[name] = "".join(_value(part, row) for part in value)
    content: list[str] = []
    declared = dict(element.declared)
    for below in element.content:
        match below:
            case Text(text=text):
                content.append(text.translate(_TEXT_ESCAPES))
            case Markup(xml=xml):
                content.append(xml)
            case Element():
                content.append(_element(below, row, inner))
            case Enclosed(parts=parts):
                pieces = list(_pieces(parts, row, inner))
                rest = _take_attributes(pieces, attributes, declared, inner, any(content))
                content.append(_joined(rest))
    return _written(element.tag, declared, attributes, "".join(content))


def _value(part: Text | Enclosed, row: Mapping[str, Any]) -> str:
    if isinstance(part, Text):
        return part.text
    return " ".join(piece.text for piece in _pieces(part.parts, row, {}))


def _take_attributes(
    pieces: list[Piece],
    attributes: dict[str, str],
    declared: dict[str, str],
    scope: dict[str, str],
    has_content: bool,
) -> list[Piece]:
    """Move the attributes among the pieces to the element, and return the rest, its content."""
    rest: list[Piece] = []
    for piece in pieces:
        if piece.kind is not PieceKind.ATTRIBUTE:
            rest.append(piece)
            continue
        name = _qualify(piece.name, declared, scope)
        if rest or has_content:
            raise QueryError(
                "XQTY0024",
                f"the attribute {name} comes after other content",
                advice="show attributes first in the element",
            )
        if name in attributes:
            raise QueryError("XQDY0025", f"the element has two attributes {name}")
        attributes[name] = piece.text
    return rest


def _qualify(label: str, declared: dict[str, str], scope: dict[str, str]) -> str:
    """The name of an attribute with a prefix; a missing namespace is declared."""
    if not label.startswith("{"):
        return label
    uri, _, local = label[1:].partition("}")
    if uri == _XML:
        return f"xml:{local}"
    for prefix, bound in scope.items():
        if bound == uri and prefix:
            return f"{prefix}:{local}"
    number = 0
    while f"ns{number}" in scope:
        number += 1
    declared[f"ns{number}"] = scope[f"ns{number}"] = uri
    return f"ns{number}:{local}"


def _written(tag: str, declared: dict[str, str], attributes: dict[str, str], content: str) -> str:
    opening = tag
    for prefix, uri in declared.items():
        opening += f' xmlns{":" if prefix else ""}{prefix}="{uri.translate(_VALUE_ESCAPES)}"'
    for name, value in attributes.items():
        opening += f' {name}="{value.translate(_VALUE_ESCAPES)}"'
    return f"<{opening}>{content}</{tag}>" if content else f"<{opening}/>"


def _joined(pieces: list[Piece], top: bool = False) -> str:
    """The text of adjacent pieces, with a space between two values."""
    parts: list[str] = []
    before: PieceKind | None = None
    for piece in pieces:
        if piece.kind is PieceKind.VALUE and before is PieceKind.VALUE:
            parts.append(" ")
        before = piece.kind
        match piece.kind:
            case PieceKind.XML:
                parts.append(piece.text)
            case PieceKind.ATTRIBUTE if top:
                name = _qualify(piece.name, {}, {})
                parts.append(f'{name}="{piece.text.translate(_VALUE_ESCAPES)}"')
            case _:
                parts.append(piece.text.translate(_TEXT_ESCAPES))
    return "".join(parts)


def rendered(template: Template | None, row: Mapping[str, Any], view: str) -> str:
    """A row as XML, in the form of the constructor of its view; AX211 if it has none."""
    if template is None:
        raise QueryError(
            "AX211",
            f"the view {view!r} has no constructor",
            advice="write the view in XQuery with `return <element>...</element>`",
        )
    return template.render(row)
