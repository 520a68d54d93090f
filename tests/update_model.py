"""What a pending update list means, written a second time: the oracle of `document/pending.py`.

Every node of a document (elements, attributes, texts, comments, instructions, calls) becomes an
lxml element of its own, so that lxml's own `addnext`, `insert` and `remove` are the edits and an
edit is by identity. The phases are those of upd:applyUpdates (XQuery Update Facility 3.2.2); texts
are merged at the end. Nothing of `axlog.document` is used but the operations' types.

`Model.apply` returns every code that the list could be refused with; without one it is done.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from lxml import etree

from axlog.document.operations import (
    Attribute,
    Delete,
    Insert,
    Rename,
    ReplaceNode,
    ReplaceValue,
    Where,
)
from tests.strategies.documents import Edit, choose

CALL = "{urn:axlog}call"
INSIDE = (Where.INTO, Where.FIRST, Where.LAST)
NAMED = ("element", "attribute", "instruction")
Structure = tuple
Node: TypeAlias = Any
"""An lxml element; its stubs ask for a None check at every step."""


def node(kind: str, name: str = "", value: str = "") -> Node:
    return etree.Element(kind, name=name, value=value)


def freeze(source: Node) -> Node:
    """An lxml node with all below it, every node an element."""
    if source.tag is etree.Comment:
        return node("comment", value=source.text or "")
    if source.tag is etree.PI:
        return node("instruction", source.target, source.text or "")
    frozen = node("call" if source.tag == CALL else "element", str(source.tag))
    for name, value in source.attrib.items():
        if frozen.tag == "call":
            frozen.set(f"a-{name}", str(value))
        else:
            frozen.append(freeze_attribute(str(name), str(value)))
    for text, below in _content(source):
        if text:
            frozen.append(node("text", value=text))
        if below is not None:
            frozen.append(freeze(below))
    return frozen


def freeze_attribute(name: str, value: str) -> Node:
    attribute = node("attribute", name)
    attribute.append(node("text", value=value))
    return attribute


def _content(source: Node) -> Iterator[tuple[str | None, Node | None]]:
    yield source.text, None
    for below in source:
        yield None, below
        yield below.tail, None


def structure(frozen: Node) -> Structure:
    """What the document is, whatever its prefixes: attributes sorted, texts merged."""
    kind = frozen.tag
    own = (kind, frozen.get("name"), frozen.get("value"))
    if kind == "call":
        return (*own, tuple(sorted(frozen.attrib.items())))
    attributes = sorted(
        (a.get("name"), "".join(t.get("value") for t in a)) for a in frozen if a.tag == "attribute"
    )
    children: list[Structure] = []
    for below in frozen:
        if below.tag == "attribute" or (below.tag == "text" and not below.get("value")):
            continue
        if below.tag == "text" and children and children[-1][0] == "text":
            children[-1] = ("text", "", children[-1][2] + below.get("value"))
        else:
            children.append(structure(below) if below.tag != "text" else text_of(below))
    return (*own, tuple(attributes), tuple(children))


def text_of(frozen: Node) -> Structure:
    return ("text", "", frozen.get("value"))


def read_back(xml: str) -> Structure:
    """The structure of a document's text, all that stands beside the root included."""
    root = etree.fromstring(f"<document>{xml}</document>")
    return structure(freeze(root))


class Model:
    """A document to which edits are done with lxml alone."""

    def __init__(self, xml: str) -> None:
        self.document = freeze(etree.fromstring(f"<document>{xml}</document>"))
        self.document.tag = "document"

    def structure(self) -> Structure:
        _, _, value, attributes, children = structure(self.document)
        return ("element", "document", value, attributes, children)

    def nodes(self) -> list[Node]:
        """All nodes in document order, the document first."""
        return list(self.document.iter())

    def apply(self, edits: Sequence[Edit]) -> set[str]:
        """Do the edits, unless there are reasons not to; those are returned."""
        nodes = self.nodes()
        parents = [node.getparent() for node in nodes]
        places = [
            (node.tag, "" if parent is None else parent.tag)
            for node, parent in zip(nodes, parents, strict=True)
        ]
        chosen = choose(edits, places)
        known = [node for node in nodes if node.tag == "element"]
        targets = [(edit, nodes[at]) for edit, at in zip(edits, chosen, strict=True)]
        codes = self._static_errors(targets)
        if not codes:
            self._phases(targets)
            self._tidy()
            codes = self._result_errors(known)
        return codes

    # What is refused ------------------------------------------------------------------------------

    def _static_errors(self, targets: list[tuple[Edit, Node]]) -> set[str]:
        codes = set()
        twice = {Rename: "XUDY0015", ReplaceNode: "XUDY0016", ReplaceValue: "XUDY0017"}
        seen: list[tuple[type, Node]] = []
        for edit, target in targets:
            if edit.kind in twice:
                owner = target
                parent = target.getparent()
                if parent is not None and parent.tag == "attribute":
                    owner = parent
                if any(kind is edit.kind and other is owner for kind, other in seen):
                    codes.add(twice[edit.kind])
                seen.append((edit.kind, owner))
            codes |= set(self._errors_of(edit, target))
        return codes

    def _errors_of(self, edit: Edit, target: Node) -> Iterator[str]:
        kind, parent = target.tag, target.getparent()
        is_inside = edit.kind is Insert and edit.where in INSIDE
        has_attributes = any(isinstance(item, Attribute) for item in edit.content)
        has_others = any(not isinstance(item, Attribute) and item != "" for item in edit.content)
        if parent is not None and parent.tag == "attribute" and edit.kind is not ReplaceValue:
            yield "AX302"
        if kind == "document" and not is_inside:
            yield "AX302"
            return
        if edit.kind is Insert:
            if (is_inside and kind not in ("element", "document")) or (
                not is_inside and kind == "attribute"
            ):
                yield "AX302"
            into = target if is_inside else parent
            if has_attributes and into.tag == "document":
                yield "AX303"
        elif edit.kind is Rename:
            if kind not in NAMED:
                yield "AX302"
            if kind == "instruction" and edit.word.startswith("{"):
                yield "AX303"
        elif edit.kind is ReplaceValue:
            if kind == "call":
                yield "AX302"
            if kind == "instruction" and edit.word[:1].isspace():
                yield "AX303"
            if kind in ("comment", "instruction") and "\r" in edit.word:
                yield "AX303"
        elif edit.kind is ReplaceNode and (
            (kind == "attribute" and has_others) or (kind != "attribute" and has_attributes)
        ):
            yield "AX303"

    def _result_errors(self, known: list[Node]) -> set[str]:
        """What is wrong with the result; elements that are gone are trees of their own."""
        codes = set()
        kinds = [below.tag for below in self.document]
        if kinds and (kinds.count("element") != 1 or "text" in kinds or "call" in kinds):
            codes.add("XUDY0021")
        for element in (*known, *self.document.iter("element")):
            names = [below.get("name") for below in element if below.tag == "attribute"]
            if len(set(names)) < len(names):
                codes.add("XUDY0021")
        streams = [call.get("a-stream") for call in self.document.iter("call")]
        if len(set(streams)) < len(streams):
            codes.add("AX403")
        return codes

    # What is done ---------------------------------------------------------------------------------

    def _phases(self, targets: list[tuple[Edit, Node]]) -> None:
        parents = {id(target): target.getparent() for _, target in targets}
        early: list[tuple[Edit, Node]] = []
        late: list[tuple[Edit, Node]] = []
        contents: list[tuple[Edit, Node]] = []
        for edit, target in targets:
            if edit.kind is Insert:
                (early if edit.where is Where.INTO else late).append((edit, target))
            elif edit.kind is Rename or (edit.kind is ReplaceValue and target.tag != "element"):
                early.append((edit, target))
            elif edit.kind is ReplaceValue:
                contents.append((edit, target))
        for edit, target in (*early, *late):
            self._change(edit, target, parents[id(target)])
        for edit, target in targets:
            if edit.kind is ReplaceNode:
                for item in self._made(edit):
                    target.addprevious(item)
                target.getparent().remove(target)
        for edit, target in contents:
            for below in list(target):
                if below.tag != "attribute":
                    target.remove(below)
            target.append(node("text", value=edit.word))
        for edit, target in targets:
            if edit.kind is Delete and target.getparent() is not None:
                target.getparent().remove(target)

    def _made(self, edit: Edit) -> list[Node]:
        made = []
        for item in edit.content:
            if isinstance(item, Attribute):
                made.append(freeze_attribute(item.name, item.value))
            elif isinstance(item, str):
                made.append(node("text", value=item))
            else:
                made.append(freeze(item))
        return made

    def _change(self, edit: Edit, target: Node, parent: Node) -> None:
        if edit.kind is Rename:
            target.set("name", edit.word)
        elif edit.kind is ReplaceValue:
            (target[0] if target.tag == "attribute" else target).set("value", edit.word)
        else:
            self._insert(edit, target, target if edit.where in INSIDE else parent)

    def _insert(self, edit: Edit, target: Node, into: Node) -> None:
        made = self._made(edit)
        attributes = sum(below.tag == "attribute" for below in into)
        for item in made:
            if item.tag == "attribute":
                into.insert(attributes, item)
                attributes += 1
        others = [item for item in made if item.tag != "attribute"]
        if edit.where in (Where.INTO, Where.LAST):
            into.extend(others)
        elif edit.where is Where.FIRST:
            into[attributes:attributes] = others
        elif edit.where is Where.BEFORE:
            for item in others:
                target.addprevious(item)
        else:
            for item in reversed(others):
                target.addnext(item)

    def _tidy(self) -> None:
        """Merge texts, drop empty ones: nodes are counted as the tree counts them."""
        for text in list(self.document.iter("text")):
            if text.getparent().tag == "attribute":
                continue
            before = text.getprevious()
            if not text.get("value"):
                text.getparent().remove(text)
            elif before is not None and before.tag == "text":
                text.set("value", before.get("value") + text.get("value"))
                before.getparent().remove(before)
