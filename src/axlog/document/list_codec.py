"""Lists of updates as text: one JSON object, or one XML element.

    {"updates": [{"op": "insert-last", "target": "1.2", "content": [{"tree": "<b/>"}]},
                 {"op": "replace-value", "target": "1.3", "value": "x"}]}

    <ax:updates xmlns:ax="urn:axlog">
    <ax:insert-last target="1.2"><b/></ax:insert-last>
    <ax:replace-value target="1.3" value="x"/>
    </ax:updates>

Pieces of content are trees, texts (`{"text": "t"}`, `<ax:text>t</ax:text>`) and attributes
(`{"attribute": "k", "value": "v"}`, `<ax:attribute name="k" value="v"/>`). `ids` are the ids that
the pieces got where the list was recorded, `created` those of merged texts. Several lists are JSON
lines, or elements in `<ax:lists>`.

Law: reading a written list gives an equal list, ids included. Other input is rejected with AX306
and the reason. RFC 5261 patches, which need the document, are in `evaluate.patches`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from lxml import etree

from axlog.document.ids import Id
from axlog.document.operations import Attribute
from axlog.document.parser import DEFAULT_LIMITS, Limits, parse
from axlog.document.tree import CALL_NAMESPACE
from axlog.document.update_lists import INSERTS, Edit, EditKind, Markup, Piece, UpdateList, tree_of
from axlog.errors import InputError, UpdateError

_AX = f"{{{CALL_NAMESPACE}}}"
_WITH_CONTENT = INSERTS | {EditKind.REPLACE_NODE}
_TEXT_FIELDS = {EditKind.RENAME: "name", EditKind.REPLACE_VALUE: "value"}


def read_lists(text: str, limits: Limits = DEFAULT_LIMITS) -> list[UpdateList]:
    """The lists of a text in either form."""
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        return from_xml(text, limits)
    return [from_json(line) for line in text.splitlines() if line.strip()]


# JSON ---------------------------------------------------------------------------------------------


def to_json(given: UpdateList) -> str:
    """A list as one line of JSON.

    >>> to_json(UpdateList((Edit(EditKind.DELETE, Id.parse("1.2")),)))
    '{"updates": [{"op": "delete", "target": "1.2"}]}'
    """
    written: dict[str, object] = {"updates": [_edit_to_json(edit) for edit in given]}
    if given.created:
        written["created"] = [str(one) for one in given.created]
    return json.dumps(written, ensure_ascii=False)


def _edit_to_json(edit: Edit) -> dict[str, object]:
    written: dict[str, object] = {"op": edit.kind.value, "target": str(edit.target)}
    if edit.kind in _WITH_CONTENT:
        written["content"] = [_piece_to_json(piece) for piece in edit.content]
    if edit.kind in _TEXT_FIELDS:
        written[_TEXT_FIELDS[edit.kind]] = edit.text
    if any(edit.roots):
        written["ids"] = [None if root is None else str(root) for root in edit.roots]
    return written


def _piece_to_json(piece: Piece) -> dict[str, str]:
    match piece:
        case Markup(xml=xml):
            return {"tree": xml}
        case Attribute(name=name, value=value):
            return {"attribute": name, "value": value}
        case str():
            return {"text": piece}


def from_json(text: str) -> UpdateList:
    """A list from JSON."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(f"the JSON cannot be read: {error}") from None
    updates = _field(given, "updates", list, "the list")
    created = _field(given, "created", list, "the list", [])
    return UpdateList(
        tuple(_edit_from_json(one, f"update {n}") for n, one in enumerate(updates, 1)),
        tuple(_id(one, "created") for one in created),
    )


def _edit_from_json(given: Any, where: str) -> Edit:
    kind = _kind(_field(given, "op", str, where), where)
    target = _id(_field(given, "target", str, where), where)
    content: tuple[Piece, ...] = ()
    if kind in _WITH_CONTENT:
        pieces = _field(given, "content", list, where)
        content = tuple(_piece_from_json(piece, where) for piece in pieces)
    text = _field(given, _TEXT_FIELDS[kind], str, where) if kind in _TEXT_FIELDS else ""
    ids = _field(given, "ids", list, where, [])
    roots = tuple(None if one is None else _id(one, where) for one in ids)
    return Edit(kind, target, content, text, roots)


def _piece_from_json(given: Any, where: str) -> Piece:
    if isinstance(given, dict) and "tree" in given:
        return _markup(_field(given, "tree", str, where), where)
    if isinstance(given, dict) and "attribute" in given:
        name, value = (_field(given, key, str, where) for key in ("attribute", "value"))
        return Attribute(name, value)
    return str(_field(given, "text", str, where))


def _markup(xml: str, where: str) -> Markup:
    """A tree that parses, so that a bad list is rejected when it is read."""
    found = Markup(xml)
    try:
        tree_of(found)
    except InputError as error:
        raise _refused(f"{where}: a tree is not well-formed: {error.message}") from None
    return found


_MISSING = object()


def _field(given: Any, key: str, kind: type, where: str, default: Any = _MISSING) -> Any:
    if not isinstance(given, Mapping):
        raise _refused(f"{where} is not an object")
    value = given.get(key, default)
    if value is _MISSING:
        raise _refused(f"{where} has no {key!r}")
    if not isinstance(value, kind):
        raise _refused(f"{where}: {key!r} is not a {'string' if kind is str else 'list'}")
    return value


# XML ----------------------------------------------------------------------------------------------


def to_xml(lists: UpdateList | Iterable[UpdateList]) -> str:
    """A list as XML, or several.

    >>> print(to_xml(UpdateList((Edit(EditKind.RENAME, Id.parse("1"), text="r"),))))
    <ax:updates xmlns:ax="urn:axlog">
    <ax:rename target="1" name="r"/>
    </ax:updates>
    """
    if isinstance(lists, UpdateList):
        return etree.tostring(_list_to_xml(lists), encoding="unicode")
    root = etree.Element(f"{_AX}lists", nsmap={"ax": CALL_NAMESPACE})
    root.text = "\n"
    for given in lists:
        element = _list_to_xml(given)
        element.tail = "\n"
        root.append(element)
    return etree.tostring(root, encoding="unicode")


def _list_to_xml(given: UpdateList) -> etree._Element:
    root = etree.Element(f"{_AX}updates", nsmap={"ax": CALL_NAMESPACE})
    root.text = "\n"
    if given.created:
        root.set("created", " ".join(str(one) for one in given.created))
    for edit in given:
        element = etree.SubElement(root, f"{_AX}{edit.kind.value}", target=str(edit.target))
        element.tail = "\n"
        if edit.kind in _TEXT_FIELDS:
            element.set(_TEXT_FIELDS[edit.kind], _writable(edit.text))
        if any(edit.roots):
            element.set("ids", " ".join("-" if r is None else str(r) for r in edit.roots))
        for piece in edit.content:
            element.append(_piece_to_xml(piece))
    return root


def _piece_to_xml(piece: Piece) -> etree._Element:
    if isinstance(piece, Attribute):
        given = {"name": piece.name, "value": _writable(piece.value)}
        return etree.Element(f"{_AX}attribute", given, nsmap={"ax": CALL_NAMESPACE})
    if isinstance(piece, str):
        element = etree.Element(f"{_AX}text", nsmap={"ax": CALL_NAMESPACE})
        element.text = _writable(piece)
        return element
    return deepcopy(tree_of(piece))


def _writable(text: str) -> str:
    try:
        etree.Element("_").text = text
    except ValueError:
        raise _refused("a text has characters that XML does not allow") from None
    return text


def from_xml(text: str, limits: Limits = DEFAULT_LIMITS) -> list[UpdateList]:
    """The lists of an XML text."""
    root = parse(text, limits).root
    if root.tag == f"{_AX}updates":
        return [_list_from_xml(root)]
    if root.tag != f"{_AX}lists":
        raise _refused(f"the root is {root.tag}", "ax:updates or ax:lists")
    return [_list_from_xml(element) for element in root.iterchildren(f"{_AX}updates")]


def _list_from_xml(root: etree._Element) -> UpdateList:
    created = (root.get("created") or "").split()
    edits = tuple(
        _edit_from_xml(element, f"update {n}")
        for n, element in enumerate(root.iterchildren("*"), 1)
    )
    return UpdateList(edits, tuple(_id(one, "created") for one in created))


def _edit_from_xml(element: etree._Element, where: str) -> Edit:
    kind = _kind(str(element.tag).removeprefix(_AX), where)
    target = _id(_attribute(element, "target", where), where)
    content: tuple[Piece, ...] = ()
    if kind in _WITH_CONTENT:
        content = tuple(_piece_from_xml(item, where) for item in element)
        loose = [element.text, *(item.tail for item in element)]
        if any(text and text.strip() for text in loose):
            raise _refused(f"{where}: there is text outside of ax:text")
    text = _attribute(element, _TEXT_FIELDS[kind], where) if kind in _TEXT_FIELDS else ""
    ids = (element.get("ids") or "").split()
    roots = tuple(None if one == "-" else _id(one, where) for one in ids)
    return Edit(kind, target, content, text, roots)


def _piece_from_xml(item: etree._Element, where: str) -> Piece:
    if item.tag == f"{_AX}text":
        return item.text or ""
    if item.tag == f"{_AX}attribute":
        return Attribute(_attribute(item, "name", where), _attribute(item, "value", where))
    # A copy drops namespaces that are declared above it and not used in it.
    return Markup(etree.tostring(deepcopy(item), encoding="unicode", with_tail=False))


def _attribute(element: etree._Element, name: str, where: str) -> str:
    value = element.get(name)
    if value is None:
        raise _refused(f"{where} has no {name}")
    return value


# Both ---------------------------------------------------------------------------------------------


def _kind(name: str, where: str) -> EditKind:
    try:
        return EditKind(name)
    except ValueError:
        expected = ", ".join(kind.value for kind in EditKind)
        raise _refused(f"{where}: there is no operation {name!r}", expected) from None


def _id(text: Any, where: str) -> Id:
    try:
        return Id.parse(text)
    except (UpdateError, TypeError):
        raise _refused(
            f"{where}: {text!r} is not an identifier", "components such as 1.2.7"
        ) from None


def _refused(what: str, expected: str | None = None) -> UpdateError:
    return UpdateError("AX306", what, expected=expected)
