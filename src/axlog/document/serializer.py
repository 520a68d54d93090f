"""Columns to XML: the text of a document or of one subtree, with correct namespaces.

Prefixes are those of the declarations in scope. If the scope of a node lacks its namespace (a
fragment below another default namespace), a declaration is written. Law: parsing the result gives
an equal document by canonical XML.

If no name has a namespace (`is_plain`), the text of a subtree does not depend on its position. It
is written by a faster method, from tags made once for each name, and its pieces may be cached.
"""

from __future__ import annotations

import re

from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    DOCUMENT_NODE,
    ELEMENT,
    NONE,
    TEXT,
    NodeKind,
    Tree,
)

_XML = "http://www.w3.org/XML/1998/namespace"
_TEXT_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_VALUE_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
_IN_TEXT = re.compile("[&<>\r]")
_IN_VALUE = re.compile('[&<"\t\n\r]')
Scope = dict[str | None, str]


def serialise(tree: Tree, node: int = DOCUMENT_NODE, *, calls: bool = True) -> str:
    """A subtree as XML text, by default the document; for attributes and texts their string.

    Without `calls` the text has none of the streams' calls: it is what queries see.
    """
    kind = tree.kind(node)
    calls = calls or not tree.calls_by_node
    if kind is NodeKind.DOCUMENT:
        parts: list[str] = []
        for below in tree.children(node):
            if calls or tree.kind_column[below] != CALL:
                _write(tree, below, {}, parts, calls=calls)
        return "".join(parts)
    if kind in (NodeKind.TEXT, NodeKind.ATTRIBUTE):
        return tree.string_value(node)
    if kind is NodeKind.ELEMENT and calls and is_plain(tree):
        return piece(tree, node)
    parts = []
    _write(tree, node, {}, parts, tree.namespaces(node), calls=calls)
    return "".join(parts)


def is_plain(tree: Tree) -> bool:
    """Whether no name has a namespace except XML's own, so that scopes do not matter."""
    tags = tree.tags_by_name
    for label in tree.names[len(tags) :]:
        is_attribute = label[0] == "@"
        address, local = _split(label[is_attribute:])
        if address and address != _XML:
            return False
        name = f"xml:{local}" if address else local
        tags.append(_tags(name, is_attribute))
    return not tree.namespaces_by_node


def _tags(name: str, is_attribute: bool) -> tuple[str, str, str]:
    """The open start tag, the whole start tag and the end tag of a name."""
    return (f' {name}="', "", "") if is_attribute else (f"<{name}", f"<{name}>", f"</{name}>")


def start_tag(tree: Tree, node: int) -> tuple[str, int]:
    """The start tag of an element of a plain tree, without its `>`, and the first child."""
    kinds, labels, following, tags = (
        tree.kind_column,
        tree.label_column,
        tree.next_column,
        tree.tags_by_name,
    )
    tag = tags[labels[node]][0]
    at = tree.first_column[node]
    while at != NONE and kinds[at] == ATTRIBUTE:
        value = tree.text(tree.first_column[at])
        if _IN_VALUE.search(value):
            value = value.translate(_VALUE_ESCAPES)
        tag = f'{tag}{tags[labels[at]][0]}{value}"'
        at = following[at]
    return tag, at


def piece(tree: Tree, top: int) -> str:
    """The text of one node of a plain tree, which does not depend on its position."""
    kinds, first, following, parent = (
        tree.kind_column,
        tree.first_column,
        tree.next_column,
        tree.parent_column,
    )
    labels, data, spans = tree.label_column, tree.text_bytes, tree.text_starts
    tags, read = tree.tags_by_name, tree.text
    parts: list[str] = []
    put = parts.append
    node = top
    while True:
        kind = kinds[node]
        if kind == TEXT:
            span = labels[node]
            text = data[spans[span] : spans[span + 1]].decode() if span >= 0 else read(node)
            # Four searches for one character take a quarter of the time of one for a class.
            if "&" in text or "<" in text or ">" in text or "\r" in text:
                text = text.translate(_TEXT_ESCAPES)
            put(text)
        elif kind == ELEMENT:
            below = first[node]
            if below != NONE and kinds[below] != ATTRIBUTE:
                put(tags[labels[node]][1])
                node = below
                continue
            tag, below = start_tag(tree, node)
            put(tag)
            if below != NONE:
                put(">")
                node = below
                continue
            put("/>")
        else:
            _write(tree, node, {}, parts)
        onward = following[node]
        while onward == NONE and node != top:
            node = parent[node]
            put(tags[labels[node]][2])
            onward = following[node]
        if node == top:
            return "".join(parts)
        node = onward


def _write(
    tree: Tree,
    top: int,
    scope: Scope,
    parts: list[str],
    declare: Scope | None = None,
    *,
    calls: bool = True,
) -> None:
    """Write one subtree without recursion: open tags on the way down, close them on the way up."""
    kinds, first, following, parent = (
        tree.kind_column,
        tree.first_column,
        tree.next_column,
        tree.parent_column,
    )
    open_elements: list[tuple[str, Scope]] = []
    node = top
    while True:
        kind = kinds[node]
        if kind == TEXT:
            text = tree.text(node)
            parts.append(escape_text(text))
        elif kind == ELEMENT or (kind == CALL and calls):
            tag, inner = _open(tree, node, scope, parts, declare if node == top else None)
            below = first[node]
            while below != NONE and kinds[below] == ATTRIBUTE:
                below = following[below]
            if below != NONE:
                parts.append(">")
                open_elements.append((tag, scope))
                node, scope = below, inner
                continue
            parts.append("/>")
        elif kind == NodeKind.COMMENT:
            parts.append(f"<!--{tree.text(node)}-->")
        elif kind == NodeKind.INSTRUCTION:
            parts.append(f"<?{tree.text(node)}?>")
        while node != top and following[node] == NONE:
            node = parent[node]
            tag, scope = open_elements.pop()
            parts.append(f"</{tag}>")
        if node == top:
            return
        node = following[node]


def _open(
    tree: Tree, node: int, scope: Scope, parts: list[str], declare: Scope | None
) -> tuple[str, Scope]:
    """Write a start tag without its `>`; the tag and the scope inside it."""
    label = tree.names[tree.label_column[node]]
    if not scope and not declare and label[0] != "{" and node not in tree.namespaces_by_node:
        plain = _open_plainly(tree, node, label)
        if plain is not None:
            parts.append(plain)
            return label, scope
    wanted = dict(tree.namespaces_by_node.get(node, ())) if declare is None else declare
    written = {prefix: uri for prefix, uri in wanted.items() if scope.get(prefix, "") != uri}
    inner = {**scope, **written}
    tag = _qualify(label, tree.prefixes_by_node.get(node), True, inner, written)
    attributes = _attributes(tree, node, inner, written)
    parts.append(f"<{tag}")
    for prefix, address in sorted(written.items(), key=lambda pair: pair[0] or ""):
        name = "xmlns" if prefix is None else f"xmlns:{prefix}"
        parts.append(f' {name}="{escape_value(address)}"')
    parts.extend(attributes)
    return tag, inner if written else scope


def _open_plainly(tree: Tree, node: int, label: str) -> str | None:
    """The start tag if no name has a namespace, the usual case; else None."""
    tag = f"<{label}"
    at = tree.first_column[node]
    while at != NONE and tree.kind_column[at] == ATTRIBUTE:
        name = tree.names[tree.label_column[at]]
        if name[1] == "{":
            return None
        tag += f' {name[1:]}="{escape_value(tree.text(tree.first_column[at]))}"'
        at = tree.next_column[at]
    return tag


def _attributes(tree: Tree, node: int, inner: Scope, written: Scope) -> list[str]:
    pairs: list[tuple[str, str, str | None]]
    if tree.kind_column[node] == CALL:
        pairs = [(name, value, None) for name, value in tree.call(node).attributes]
    else:
        pairs = [
            (tree.label(a)[1:], tree.string_value(a), tree.prefixes_by_node.get(a))
            for a in tree.attributes(node)
        ]
    return [
        f' {_qualify(name, prefix, False, inner, written)}="{escape_value(value)}"'
        for name, value, prefix in pairs
    ]


def escape_text(text: str) -> str:
    """A text as it is written between tags."""
    return text.translate(_TEXT_ESCAPES) if _IN_TEXT.search(text) else text


def escape_value(value: str) -> str:
    """The value of an attribute as it is written in double quotes."""
    return value.translate(_VALUE_ESCAPES) if _IN_VALUE.search(value) else value


def _qualify(label: str, noted: str | None, is_element: bool, inner: Scope, written: Scope) -> str:
    """The name as written in this scope; adds a missing declaration."""
    address, local = _split(label)
    if not address:
        if is_element and inner.get(None):
            inner[None] = written[None] = ""
        return local
    if address == _XML:
        return f"xml:{local}"
    prefix = noted if inner.get(noted) == address and (is_element or noted) else None
    if prefix is None and not (is_element and inner.get(None) == address):
        prefix = _prefix_for(address, inner, written)
    return local if prefix is None else f"{prefix}:{local}"


def _prefix_for(address: str, inner: Scope, written: Scope) -> str:
    for prefix, bound in inner.items():
        if bound == address and prefix is not None:
            return prefix
    number = 0
    while f"ns{number}" in inner:
        number += 1
    inner[f"ns{number}"] = written[f"ns{number}"] = address
    return f"ns{number}"


def _split(label: str) -> tuple[str, str]:
    if label.startswith("{"):
        address, _, local = label[1:].partition("}")
        return address, local
    return "", label
