"""The content of statements: constructors to nodes, and sequences to content.

A direct constructor becomes an lxml element. Enclosed values are copied into it, attributes first.
Computed constructors also make attributes, texts, comments, instructions and documents. `content`
turns a sequence into the content of an operation: nodes of the document are copied, and adjacent
values become one text, separated by spaces (XQuery Update 2.4.1, XQuery 3.9.1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from lxml import etree

from axlog.document.blocks import FixedContent
from axlog.document.operations import Attribute, Content
from axlog.document.operations import Item as Piece
from axlog.document.parser import Element, parse
from axlog.document.tree import Tree
from axlog.errors import ValueProblem
from axlog.evaluate.atoms import Named
from axlog.evaluate.items import Item, Items, New, Node, copied, joined, text
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Call, Constructor, Enclosed, Expression, Written
from axlog.query.tokenizer import NCNAME, XML_NAMESPACE, compiled

_XML_ID = f"{{{XML_NAMESPACE}}}id"
Value = Callable[[Expression], Items]
Namespaces = Mapping[str, str]


def content(tree: Tree, items: Iterable[Item]) -> Content:
    """A sequence as the content of an operation."""
    if type(items) is list and len(items) == 1 and isinstance(items[0], New):
        fixed = items[0].pieces
        if type(fixed) is FixedContent:
            return fixed
    found: list[Piece] = []
    values: list[Item] = []
    for item in items:
        if not isinstance(item, Node | New):
            values.append(item)
            continue
        _flush(tree, values, found)
        pieces = item.pieces if isinstance(item, New) else copied(tree, item)
        found += [piece for piece in pieces if piece != ""]  # an empty text is no content
    _flush(tree, values, found)
    return tuple(found)


def _flush(tree: Tree, values: list[Item], found: list[Piece]) -> None:
    if values:
        together = joined(tree, values)
        if together:
            found.append(together)
        values.clear()


class Builder:
    """Makes the nodes of one statement's constructors; `value` evaluates enclosed expressions."""

    def __init__(self, tree: Tree, written: str, namespaces: Namespaces, value: Value) -> None:
        self.tree = tree
        self.written = written
        self.namespaces = namespaces
        self.value = value

    # Direct constructors ------------------------------------------------------------------------

    def element(self, given: Constructor, around: Namespaces | None = None) -> Element:
        """The element of a direct constructor `<tag ...>...</tag>`."""
        scope = {**(self.namespaces if around is None else around), **dict(given.declared)}
        nsmap: Any = {prefix or None: uri for prefix, uri in given.declared if uri}
        tag = self._expanded(given.tag, scope, True, given.at)
        try:
            made = etree.Element(tag, nsmap=nsmap)
        except ValueError as error:  # a namespace that XML does not allow
            raise self._refused("AX303", str(error), given.at) from None
        for name, parts in given.attributes:
            whole = "".join(self._part(part) for part in parts)
            self._set(made, self._expanded(name, scope, False, given.at), whole, given.at)
        for inside in given.content:
            if isinstance(inside, Constructor):
                made.append(self.element(inside, scope))
            elif isinstance(inside, Written) and inside.is_markup:
                made.append(parse(f"<_>{inside.text}</_>").root[0])
            elif isinstance(inside, Written):
                self._append(made, (inside.text,), given.at)
            else:
                self._append(made, content(self.tree, self.value(inside.inside)), given.at)
        return made

    def _part(self, part: Written | Enclosed) -> str:
        if isinstance(part, Written):
            return part.text
        return joined(self.tree, self.value(part.inside))

    def _append(self, made: Element, pieces: Content, at: int) -> None:
        for piece in pieces:
            if isinstance(piece, Attribute):
                if len(made) or made.text:
                    raise self._refused("XQTY0024", "an attribute comes after other content", at)
                self._set(made, piece.name, piece.value, at)
            elif isinstance(piece, str):
                try:
                    _add_text(made, piece)
                except ValueError:
                    raise self._forbidden(at) from None
            else:
                made.append(_detached(piece))

    def _set(self, made: Element, name: str, value: str, at: int) -> None:
        if name in made.attrib:
            raise self._refused("XQDY0025", f"there are two attributes {name}", at)
        try:
            made.set(name, _identifier(name, value))
        except ValueError:
            raise self._forbidden(at) from None

    # Computed constructors ----------------------------------------------------------------------

    def computed(self, given: Call) -> New | None:
        """The node of a computed constructor such as `attribute name {...}`.

        None for a text of the empty sequence.
        """
        kind = given.name.removeprefix("new-")
        value = self.value(given.arguments[-1])
        match kind:
            case "text":
                if not value:
                    return None
                return New("text", (joined(self.tree, value),))
            case "comment":
                return New("comment", (self._comment(joined(self.tree, value), given.at),))
            case "document":
                pieces = content(self.tree, value)
                if any(isinstance(piece, Attribute) for piece in pieces):
                    raise self._refused("XPTY0004", "a document has no attributes", given.at)
                return New("document", pieces)
            case "attribute":
                name = self.name(self.value(given.arguments[0]), False, given.at)
                prefix = self.prefix(self.value(given.arguments[0]))
                written = _identifier(name, joined(self.tree, value))
                return New("attribute", (Attribute(name, written, prefix),))
            case "processing-instruction":
                target = self.target(self.value(given.arguments[0]), given.at)
                data = joined(self.tree, value).lstrip()
                return New("instruction", (self._instruction(target, data, given.at),))
        name = self.name(self.value(given.arguments[0]), True, given.at)
        made = etree.Element(name)
        self._append(made, content(self.tree, value), given.at)
        return New("element", (made,))

    def name(self, items: Items, is_element: bool, at: int) -> str:
        """The expanded name of a value."""
        if len(items) != 1 or not isinstance(items[0], Node | New | str | Named):
            raise self._refused("XPTY0004", "this is not one name", at)
        if isinstance(items[0], Named):
            return items[0].label
        return self._expanded(text(self.tree, items[0]).strip(), self.namespaces, is_element, at)

    def target(self, items: Items, at: int) -> str:
        """The target of an instruction: a name without a namespace."""
        if len(items) != 1 or not isinstance(items[0], Node | New | str):
            raise self._refused("XPTY0004", "this is not the name of an instruction", at)
        name = text(self.tree, items[0]).strip()
        if compiled(NCNAME).fullmatch(name) is None:
            raise self._refused("XQDY0041", f"{name!r} is not the name of an instruction", at)
        if name.lower() == "xml":
            raise self._refused("XQDY0064", "an instruction cannot be called xml", at)
        return name

    def prefix(self, items: Items) -> str:
        """The prefix of a name, as written."""
        if isinstance(items[0], Named):
            return items[0].prefix
        return text(self.tree, items[0]).strip().rpartition(":")[0]

    def _comment(self, value: str, at: int) -> Element:
        if "--" in value or value.endswith("-"):
            raise self._refused("XQDY0072", "a comment cannot hold `--` or end with `-`", at)
        return etree.Comment(self._allowed(value, at))

    def _instruction(self, target: str, data: str, at: int) -> Element:
        if "?>" in data:
            raise self._refused("XQDY0026", "an instruction cannot hold `?>`", at)
        return etree.PI(target, self._allowed(data, at))

    # Names and characters -----------------------------------------------------------------------

    def _expanded(self, name: str, scope: Namespaces, is_element: bool, at: int) -> str:
        prefix, _, local = name.rpartition(":")
        uri = scope.get(prefix, "") if prefix or is_element else ""
        if prefix and not uri:
            raise self._refused("XQDY0074", f"the prefix {prefix} is not declared", at)
        try:
            return _name_of(uri or None, local)
        except ValueError:
            raise self._refused("XQDY0074", f"{name!r} is not a name", at) from None

    def _allowed(self, value: str, at: int) -> str:
        try:
            etree.Element("_").text = value
        except ValueError:
            raise self._forbidden(at) from None
        return value

    def _forbidden(self, at: int) -> ValueProblem:
        return self._refused("AX303", "a text contains characters that XML does not allow", at)

    def _refused(self, code: str, message: str, at: int) -> ValueProblem:
        return ValueProblem(code, message, place=place_at(self.written, at))


@lru_cache(maxsize=1024)
def _name_of(uri: str | None, local: str) -> str:
    """An expanded name; raises ValueError if it is not one."""
    return str(etree.QName(uri, local))


def _detached(piece: Element) -> Element:
    """A copy without its tail, because appending an element moves its tail too."""
    copy = deepcopy(piece)
    copy.tail = None
    return copy


def _identifier(name: str, value: str) -> str:
    """The value of an attribute; that of xml:id is normalised as an identifier."""
    return " ".join(value.split()) if name == _XML_ID else value


def _add_text(made: Element, more: str) -> None:
    if len(made):
        made[-1].tail = (made[-1].tail or "") + more
    else:
        made.text = (made.text or "") + more
