"""JSON as XML, and back: the rule by which JSON messages have queries like XML messages.

    {"oid": 17, "client": "INRIA", "lines": [{"sku": "a"}, {"sku": "b"}], "note": null}

    <item>
      <oid type="number">17</oid>
      <client>INRIA</client>
      <lines in="array"><sku>a</sku></lines>
      <lines in="array"><sku>b</sku></lines>
      <note type="null"/>
    </item>

A member is an element of its name, an item of an array an element of the array's name. The
attributes `type` (number, boolean, null, array, object) and `in` keep what the text alone does not
show. A key that is not an XML name has `_` for each character that a name cannot contain, and the
key itself in the attribute `key`. An empty array or object is one element with its `type`; an array
inside an array has items named `item`.

A message is an object, or an array of objects (several trees). Its element has the name that the
caller gives. Without one, an object whose only member is an object is the element of that member
(`{"order": {"oid": 17}}` is `<order>`), and any other object is an `item`.

Law: `to_json(to_xml(x)) == x` for every JSON object x with a given name. Back from any XML: other
attributes are members `@name`, text beside elements is a member `#text`, repeated elements are an
array.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

from axlog.document.parser import Element, parse
from axlog.errors import MalformedError, Place

ITEM = "item"
"""The name of a message without a name, and of the items of an array inside an array."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_PART = re.compile(r"[^A-Za-z0-9_.\-]")
_MARKUP = re.compile("[&<>\r]")
_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_VALUE = str.maketrans({"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;",
                        "\r": "&#13;"})  # fmt: skip
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DEEPEST = 400


class _Number(str):
    """A number as it is written: 1.10 stays 1.10, and no digit is lost."""

    __slots__ = ()


def read_json(text: str | bytes, source: str | None = None) -> Any:
    """Parse JSON, with numbers as they are written. Rejects duplicate keys, NaN and bad UTF-8."""
    try:
        given = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(given, parse_int=_Number, parse_float=_Number, parse_constant=_refuse,
                          object_pairs_hook=_members)  # fmt: skip
    except json.JSONDecodeError as error:
        place = Place(error.lineno, error.colno, None, source)
        raise MalformedError("AX106", f"it is not JSON: {error.msg}", place=place) from None
    except UnicodeDecodeError as error:
        raise MalformedError(
            "AX113", f"the JSON is not UTF-8: invalid byte at offset {error.start + 1}"
        ) from None
    except RecursionError:
        raise MalformedError("AX106", "the JSON is nested too deeply") from None


def _refuse(constant: str) -> Any:
    raise MalformedError("AX106", f"{constant} is not a number of JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for at, key in enumerate(keys) if key in keys[:at])
        raise MalformedError("AX106", f"the key {twice!r} is given twice in one object")
    return made


def xml_of_text(text: str | bytes, element: str | None = None, source: str | None = None) -> str:
    """Return the message of a JSON text as XML.

    >>> xml_of_text('{"order": {"oid": 17}}')
    '<order><oid type="number">17</oid></order>'
    """
    return to_xml(read_json(text, source), element)


def messages_of_text(
    text: str | bytes, element: str | None = None, source: str | None = None
) -> list[str]:
    """Return the messages of a JSON text as XML: one for each item of an array, otherwise one."""
    given = read_json(text, source)
    return [to_xml(one, element) for one in (given if isinstance(given, list) else [given])]


def to_xml(given: Any, element: str | None = None) -> str:
    """Return a message of JSON values (as `json.loads` gives them) as XML.

    >>> to_xml({"oid": "17", "paid": True}, "order")
    '<order><oid>17</oid><paid type="boolean">true</paid></order>'
    """
    written: list[str] = []
    for one in given if isinstance(given, list | tuple) else [given]:
        if not isinstance(one, Mapping):
            raise MalformedError(
                "AX106",
                f"a message is a JSON object, not {_kind(one)}",
                expected='{"oid": 17, ...}, or an array of such objects',
            )
        name = element
        if name is None:
            only = next(iter(one.items())) if len(one) == 1 else None
            named = only is not None and isinstance(only[1], Mapping) and _is_name(only[0])
            name, one = (only[0], only[1]) if named and only is not None else (ITEM, one)
        _write(written, name, one, "", 1)
    if not written:
        raise MalformedError("AX106", "a message is a JSON object, not an empty array")
    return "".join(written)


def _is_name(key: object) -> bool:
    return isinstance(key, str) and _NAME.fullmatch(key) is not None


def _kind(value: Any) -> str:
    if isinstance(value, _Number):
        return "a number"
    named = {dict: "an object", list: "an array", str: "a string", bool: "a Boolean",
             type(None): "null", int: "a number", float: "a number"}  # fmt: skip
    return named.get(type(value), f"a value of type {type(value).__name__}")


def _write(out: list[str], name: str, value: Any, marks: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise MalformedError("AX106", "the JSON is nested too deeply")
    if isinstance(value, Mapping):
        if not value:
            out.append(f'<{name} type="object"{marks}/>' if depth > 1 else f"<{name}{marks}/>")
            return
        out.append(f"<{name}{marks}>")
        for key, member in value.items():
            _write_member(out, key, member, depth)
        out.append(f"</{name}>")
    elif isinstance(value, list | tuple):
        out.append(f'<{name} type="array"{marks}>')
        for item in value:
            _write(out, ITEM, item, ' in="array"', depth + 1)
        out.append(f"</{name}>")
    else:
        kind, text = _scalar(value)
        typed = f' type="{kind}"' if kind else ""
        out.append(f"<{name}{typed}{marks}>{text}</{name}>" if text or kind != "null"
                   else f"<{name}{typed}{marks}/>")  # fmt: skip


def _write_member(out: list[str], key: Any, member: Any, depth: int) -> None:
    if not isinstance(key, str):
        raise MalformedError("AX106", f"a key of an object is a string, not {_kind(key)}")
    name, marks = _name_of(key), ""
    if name != key:
        marks = f' key="{_checked(key).translate(_VALUE)}"'
    if isinstance(member, list | tuple) and member:
        for item in member:
            _write(out, name, item, f' in="array"{marks}', depth + 1)
    else:
        _write(out, name, member, marks, depth + 1)


def _name_of(key: str) -> str:
    """Return the XML name of a key."""
    if _NAME.fullmatch(key) is not None:
        return key
    name = _PART.sub("_", key)
    return name if _NAME.fullmatch(name) is not None else f"_{name}"


def _scalar(value: Any) -> tuple[str, str]:
    """Return the type and the text of a value; strings have no type."""
    if isinstance(value, _Number):
        return "number", str(value)
    if isinstance(value, str):
        text = _checked(value)
        return "", text.translate(_TEXT) if _MARKUP.search(text) else text
    if value is None:
        return "null", ""
    if isinstance(value, bool):
        return "boolean", "true" if value else "false"
    if isinstance(value, int | Decimal) or (isinstance(value, float) and isfinite(value)):
        return "number", str(value)
    raise MalformedError("AX106", f"{_kind(value)} is not JSON")


def _checked(text: str) -> str:
    found = _NOT_IN_XML.search(text)
    if found is not None:
        raise MalformedError(
            "AX106", f"a string contains U+{ord(found.group()):04X}, which XML cannot contain"
        )
    return text


# Back ---------------------------------------------------------------------------------------------


def to_json(element: Element) -> Any:
    """Return the JSON value of an element.

    >>> from lxml import etree
    >>> to_json(etree.fromstring('<o><oid type="number">17</oid><sku>a</sku><sku>b</sku></o>'))
    {'oid': 17, 'sku': ['a', 'b']}
    """
    return _value(element, is_root=True)


def _value(element: Element, *, is_root: bool = False) -> Any:
    kind = element.get("type")
    children = list(element.iterchildren("*"))
    texts = [element.text or "", *(child.tail or "" for child in element)]
    text = "".join(texts)
    if kind == "array" and not text.strip():
        return [_value(child) for child in children]
    scalar = None if children else _typed(kind, text)
    if scalar is not None:
        return scalar[0]
    attributes = {
        f"@{_local(name)}": value
        for name, value in element.attrib.items()
        if not _is_mark(str(name), str(value), str(element.tag))
    }
    if not children and not attributes and not (kind == "object" or (is_root and not text)):
        return text
    return _object(attributes, children, text.strip())


def _object(attributes: dict[str, Any], children: Sequence[Element], text: str) -> dict[str, Any]:
    made: dict[str, Any] = dict(attributes)
    arrays: set[str] = set()
    for child in children:
        key = _key_of(child)
        value = _value(child)
        if key in arrays:
            made[key].append(value)
        elif key in made:
            made[key] = [made[key], value]
            arrays.add(key)
        elif child.get("in") == "array":
            made[key] = [value]
            arrays.add(key)
        else:
            made[key] = value
    if text:
        made["#text"] = text
    return made


def _key_of(element: Element) -> str:
    """Return the key of a member: the one that its name stands for, otherwise its name."""
    key = element.get("key")
    return key if key is not None and _name_of(key) == element.tag else _local(str(element.tag))


def _is_mark(name: str, value: str, tag: str) -> bool:
    """Whether an attribute is one of the rule, and not data."""
    if name == "type":
        return value in ("number", "boolean", "null", "array", "object")
    return (name == "key" and _name_of(value) == tag) or (name == "in" and value == "array")


def _typed(kind: str | None, text: str) -> tuple[Any] | None:
    """Return the value of a text with a type, in a tuple; None if it is not of this type."""
    if kind == "null" and not text:
        return (None,)
    if kind == "boolean" and text in ("true", "false"):
        return (text == "true",)
    if kind == "number":
        try:
            found = json.loads(text)
        except ValueError:
            return None
        return (found,) if type(found) in (int, float) else None
    return None


def _local(name: str | bytes) -> str:
    return str(name).rpartition("}")[2]


def json_text(elements: Iterable[Element]) -> str:
    """Return the JSON text of one element, or of several as an array."""
    made = [to_json(element) for element in elements]
    return json.dumps(made[0] if len(made) == 1 else made, ensure_ascii=False)


def json_of_xml(text: str, element: str | None = None) -> str:
    """Return a message that is XML as JSON text: what `xml_of_text` makes this message from.

    >>> json_of_xml('<order><oid type="number">17</oid></order>')
    '{"order": {"oid": 17}}'
    >>> json_of_xml('<order><oid type="number">17</oid></order>', element="order")
    '{"oid": 17}'
    """
    made = []
    for root in parse(f"<_>{text}</_>").root.iterchildren("*"):
        name = _key_of(root)
        is_named = element is None and name != ITEM
        made.append({name: to_json(root)} if is_named else to_json(root))
    return json.dumps(made[0] if len(made) == 1 else made, ensure_ascii=False)
