"""Patches of RFC 5261 (XML patch operations) to lists of updates.

    <diff>
      <add sel="doc/foo[@id='ert4773']" type="@user">Bob</add>
      <replace sel="doc/note/text()">Patched</replace>
      <remove sel="doc/comment()[1]" ws="after"/>
    </diff>

The operations of a patch are applied one after the other, each to the result of those before it,
and each selects exactly one node. So a patch is a sequence of lists. They are computed on a copy,
and the document is unchanged unless the whole patch succeeds. `aggregation.aggregate` merges them
into one list where possible. Prefixes in `sel` are those of the patch, including its default
namespace; other prefixes are those of the document's root.

Not handled, and refused by name: namespace declarations (`namespace::pref`), which are not nodes
here, and `id()`. White space that a document dropped when it was read is not required (`ws`), and
white space beside the elements of an `add` is dropped as in documents. `document.patch_writer`
writes patches.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

from lxml import etree

from axlog.document.operations import (
    Attribute,
    Delete,
    Insert,
    Item,
    Operation,
    ReplaceNode,
    ReplaceValue,
    Where,
)
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits, parse
from axlog.document.tree import (
    ATTRIBUTE,
    DOCUMENT_NODE,
    ELEMENT,
    NONE,
    TEXT,
    NodeKind,
    Tree,
)
from axlog.document.update_lists import UpdateList, record
from axlog.errors import AxlogError, Place, UpdateError
from axlog.evaluate.expressions import Evaluator, Scope
from axlog.evaluate.items import Node
from axlog.query.syntax_tree import Statement
from axlog.query.update_parser import UpdateParser

_POSITIONS = {"before": Where.BEFORE, "after": Where.AFTER, "prepend": Where.FIRST}
_SPACES = " \t\r\n"
_NAMESPACE = re.compile(r"namespace\s*::")


def read_patch(
    tree: Tree,
    patch: str | bytes,
    *,
    limits: Limits = DEFAULT_LIMITS,
    keep_whitespace: bool = False,
) -> list[UpdateList]:
    """The update lists of a patch on a document, one for each of its operations.

    >>> from axlog.document.list_codec import to_json
    >>> from axlog.document.loader import load
    >>> patch = '<diff><replace sel="a/@k">2</replace></diff>'
    >>> [to_json(one) for one in read_patch(load('<a k="1"/>'), patch)]
    ['{"updates": [{"op": "replace-value", "target": "1.@1", "value": "2"}]}']
    """
    copy = deepcopy(tree)
    lists: list[UpdateList] = []
    for element in parse(patch, limits).root.iterchildren("*"):
        operations = _PatchOperation(copy, element, keep_whitespace).operations()
        try:
            _, made = record(copy, operations, limits=limits, keep_whitespace=keep_whitespace)
        except AxlogError as error:
            raise _refused(f"{error.code}: {error.message}", element) from None
        lists.append(made)
    return lists


class _PatchOperation:
    """One operation of a patch on a document."""

    def __init__(self, tree: Tree, element: Element, keeps_space: bool) -> None:
        self.tree = tree
        self.element = element
        self.keeps_space = keeps_space

    def operations(self) -> list[Operation]:
        kind = etree.QName(self.element).localname
        match kind:
            case "add":
                return self._add()
            case "replace":
                return self._replace()
            case "remove":
                return self._remove()
        raise self._refused(f"there is no operation {kind}", "add, replace or remove")

    # The operations -----------------------------------------------------------------------------

    def _add(self) -> list[Operation]:
        target = self._selected()
        added, position = self.element.get("type", ""), self.element.get("pos")
        if added.startswith("@"):
            name = self._expanded(added[1:])
            return [Insert(Where.LAST, target, (Attribute(name, self._text()),))]
        if added:
            raise self._refused(f"cannot add {added}", "an attribute (`@name`) or content")
        if position is not None and position not in _POSITIONS:
            raise self._refused(f"there is no position {position}", "before, after or prepend")
        place = Where.LAST if position is None else _POSITIONS[position]
        return [Insert(place, target, tuple(self._content()))]

    def _replace(self) -> list[Operation]:
        target = self._selected()
        kind = self.tree.kind_column[target]
        if kind == ATTRIBUTE:
            return [ReplaceValue(target, self._text())]
        if kind == TEXT:
            value = self._text()
            return [ReplaceValue(target, value) if value else Delete(target)]
        content = [item for item in self._content() if not _is_space(item)]
        if len(content) != 1 or not self._is_of_kind(content[0], kind):
            raise self._refused("the replacement is not one node of the kind of the replaced node")
        return [ReplaceNode(target, tuple(content))]

    def _is_of_kind(self, item: Item, kind: int) -> bool:
        if isinstance(item, str | Attribute):
            return False
        tag: object = item.tag  # of a comment or an instruction, a function
        if tag is etree.Comment:
            return kind == NodeKind.COMMENT
        return kind == (NodeKind.INSTRUCTION if tag is etree.PI else ELEMENT)

    def _remove(self) -> list[Operation]:
        target = self._selected()
        if target == self.tree.root:
            raise self._refused("XUDY0021: the root element can be replaced, not removed")
        spaces = self.element.get("ws", "")
        if spaces not in ("", "before", "after", "both"):
            raise self._refused(f"there is no ws={spaces!r}", "before, after or both")
        removed = [target]
        if spaces in ("before", "both"):
            removed += self._space(self.tree.previous(target), "before")
        if spaces in ("after", "both"):
            removed += self._space(self.tree.next(target), "after")
        return [Delete(node) for node in removed]

    def _space(self, beside: int, where: str) -> list[int]:
        """The white space beside a removed node; the document may have dropped it when read."""
        if beside != NONE and self.tree.kind_column[beside] == TEXT:
            if not self.tree.text(beside).strip(_SPACES):
                return [beside]
            raise self._refused(f"there is text {where} the node, not white space")
        if self.keeps_space:
            raise self._refused(f"there is no white space {where} the node")
        return []

    # Selector and content -----------------------------------------------------------------------

    def _selected(self) -> int:
        """The one node that `sel` selects."""
        selector = self.element.get("sel")
        if not selector:
            raise self._refused("there is no sel", "a path to one node")
        if _NAMESPACE.search(selector):
            raise self._refused("sel selects a namespace declaration", "a node")
        declared = {**self.tree.namespaces(self.tree.root), **self.element.nsmap}
        namespaces = {prefix or "": str(uri) for prefix, uri in declared.items()}
        try:
            expression = UpdateParser(selector, namespaces).parse()
            statement = Statement(expression, selector, tuple(sorted(namespaces.items())))
            found = Evaluator(self.tree, statement).value(expression, Scope({}))
        except AxlogError as error:
            raise self._refused(f"sel={selector!r}: {error.message}") from None
        if len(found) != 1 or not isinstance(found[0], Node) or found[0] == DOCUMENT_NODE:
            raise self._refused(f"sel={selector!r} selects {len(found)} nodes", "exactly one node")
        return int(found[0])

    def _content(self) -> list[Item]:
        """The nodes inside the operation; white space beside elements as in documents."""
        items: list[Item] = [self.element.text or ""]
        for below in self.element:
            copy = deepcopy(below)
            copy.tail = None
            items += [copy, below.tail or ""]
        items = [item for item in items if item != ""]
        if len(items) > 1 and not self.keeps_space:
            items = [item for item in items if not _is_space(item)]
        return items

    def _text(self) -> str:
        if len(self.element):
            raise self._refused("expected a text, found nodes")
        return self.element.text or ""

    def _expanded(self, name: str) -> str:
        prefix, _, local = name.rpartition(":")
        if not prefix:
            return local
        uri = self.element.nsmap.get(prefix)
        if uri is None:
            raise self._refused(f"the prefix {prefix} is not declared")
        return f"{{{uri}}}{local}"

    def _refused(self, what: str, expected: str | None = None) -> UpdateError:
        return _refused(what, self.element, expected)


def _is_space(item: Item) -> bool:
    return isinstance(item, str) and not item.strip(_SPACES)


def _refused(what: str, element: Element, expected: str | None = None) -> UpdateError:
    line: Any = element.sourceline
    place = Place(line, 1) if line else None
    return UpdateError("AX308", what, place=place, expected=expected)
