"""A walk over lxml elements that records the future nodes in document order.

Both ways into the columns start here: a whole document (`loader.load`) and a fragment that an
update inserts (`loader.graft`). The walk decides which whitespace is kept and which element is a
call, and checks the limits of depth, text and name. It changes only the table of names in the tree.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, cast

from lxml import etree

from axlog.document.calls import Call
from axlog.document.parser import Element, Limits, too_deep
from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    CALL_LABEL,
    DOCUMENT_NODE,
    ELEMENT,
    NONE,
    TEXT,
    NodeKind,
    Tree,
)
from axlog.errors import HostileError, InputError, LimitError, MalformedError, Place

SPACES = " \t\r\n"
"""White space as XML defines it; a no-break space is an ordinary character."""

_COMMENT, _INSTRUCTION = int(NodeKind.COMMENT), int(NodeKind.INSTRUCTION)
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_ATTRIBUTE_AND_TEXT = bytes((ATTRIBUTE, TEXT))
Scope = dict[str | None, str]


class Recorder:
    """The records of a walk, one per node in document order: parent, kind, label or text.

    `above` is the number of elements that will be above the top ones. `labels` holds the index of a
    name, or the index in `texts` for nodes with a text.
    """

    def __init__(
        self, tree: Tree, limits: Limits, keep_whitespace: bool = False, above: int = 0
    ) -> None:
        self.tree = tree
        self.limits = limits
        self.keep = keep_whitespace
        self.above = above
        self.parents = array("i", [NONE])
        self.kinds = bytearray([NodeKind.DOCUMENT])
        self.labels = array("i", [NONE])
        self.texts: list[str] = []
        self._of_attributes: dict[str, int] = {}  # attribute names seen so far, to name indexes
        self.calls: dict[int, Call] = {}
        self.declared: dict[int, tuple[tuple[str | None, str], ...]] = {}
        self.prefixes: dict[int, str | None] = {}

    def record(self, top: Iterable[Element], may_declare: bool = True) -> None:
        """Walk these elements and everything in them, as children of the document node."""
        self.walk(top, may_declare)
        self.check_texts()

    def walk(self, top: Iterable[Element], may_declare: bool = True) -> None:
        """Do the same without the check of the texts' lengths, if more elements follow."""
        top = list(top)
        if self.limits.depth <= self.above:
            raise too_deep(self.limits.depth)
        declaring = _declarations(top) if may_declare else {}
        for root in top:
            self._record(root, declaring)

    def add_template(
        self, kinds: bytes, parents: Sequence[int], labels: Sequence[int], texts: Iterable[str]
    ) -> None:
        """Add the records of a message with one root (`record_templates.py`)."""
        first, text = len(self.parents), len(self.texts)
        self.kinds += kinds
        self.parents.append(DOCUMENT_NODE)
        self.parents.extend([first + parent for parent in parents])
        self.labels.extend([label if label >= 0 else text - label - 1 for label in labels])
        self.texts += texts

    def _record(self, root: Element, declaring: dict[Element, Scope]) -> None:
        """One pass in document order; a count of remaining children tells when an element ends."""
        parents, kinds, labels, texts = self.parents, self.kinds, self.labels, self.texts
        names, of_attributes = self.tree.name_ids, self._of_attributes
        deepest = self.limits.depth - self.above
        stack: list[tuple[int, int, bool, Scope, str | None]] = []
        at, left, keep = DOCUMENT_NODE, 1, self.keep
        scope: Scope = {}
        for element in root.iter():
            tag = element.tag
            tail = element.tail if stack else None
            size = 0
            if type(tag) is not str:
                self._add_other(element, at)
            elif tag == CALL_LABEL:
                self._add_call(element, at, scope, declaring)
            else:
                node = len(parents)
                label = names.get(tag)
                parents.append(at)
                kinds.append(ELEMENT)
                labels.append(self.intern(tag) if label is None else label)
                inner = keep
                pairs: Any = element.items()
                for key, value in pairs:
                    label = of_attributes.get(key)
                    labels.append(self._intern_attribute(key) if label is None else label)
                    labels.append(len(texts))
                    texts.append(value)
                    kinds += _ATTRIBUTE_AND_TEXT
                    parents.append(node)
                    parents.append(len(parents) - 1)
                    if key == _SPACE:
                        inner = value == "preserve" or self.keep
                outer = scope
                if declaring:
                    scope = self._note_scope(element, node, scope, declaring)
                text = element.text
                size = len(element)
                if text and (not size or inner or not text.isspace() or text.strip(SPACES)):
                    parents.append(node)
                    kinds.append(TEXT)
                    labels.append(len(texts))
                    texts.append(text)
                if size:
                    stack.append((at, left, keep, outer, tail))
                    if len(stack) >= deepest:
                        self._check_bottom(element)
                    at, left, keep = node, size, inner
                    continue
                scope = outer
            while True:
                if tail and (keep or not tail.isspace() or tail.strip(SPACES)):
                    parents.append(at)
                    kinds.append(TEXT)
                    labels.append(len(texts))
                    texts.append(tail)
                left -= 1
                if left or not stack:
                    break
                at, left, keep, scope, tail = stack.pop()

    # One node each ------------------------------------------------------------------------------

    def intern(self, label: str) -> int:
        """The name index of a label; a name over the limit is refused before it is stored."""
        address, _, local = label.rpartition("}")
        for what, limit in (
            (local.removeprefix("@"), self.limits.name),
            (address, self.limits.text),
        ):
            if len(what) > limit:
                raise LimitError(
                    "AX124",
                    f"the name {what[:40]}... has {len(what)} characters, more than {limit}",
                    advice="raise it with limits=Limits(name=..., text=...)",
                )
        return self.tree._name(label)

    def _intern_attribute(self, name: str) -> int:
        label = self._of_attributes[name] = self.intern("@" + name)
        return label

    def _add_other(self, element: Any, at: int) -> None:
        """Record a comment or a processing instruction; refuse an entity reference."""
        # An element made by a program may hold text that the parser would read differently.
        text = (element.text or "").replace("\r\n", "\n").replace("\r", "\n")
        if element.tag is etree.Comment:
            kind, ends = _COMMENT, "--"
        elif element.tag is etree.PI:
            kind, ends = _INSTRUCTION, "?>"
            data = text.lstrip(SPACES)
            text = f"{element.target} {data}" if data else element.target
        else:
            raise HostileError(
                "AX112",
                f"the entity {element.text} is not resolved",
                place=_place_of(element),
                advice="replace it with its content",
            )
        if ends in text or (kind == _COMMENT and text.endswith("-")):
            raise MalformedError("AX101", f"{text[:40]!r} cannot be written as XML")
        self.parents.append(at)
        self.kinds.append(kind)
        self.labels.append(len(self.texts))
        self.texts.append(text)

    def _add_call(
        self, element: Element, at: int, scope: Scope, declaring: dict[Element, Scope]
    ) -> None:
        place = _place_of(element)
        if len(element) or (element.text or "").strip(SPACES):
            raise InputError(
                "AX105", "a call has content", place=place, expected='<ax:call stream="NAME"/>'
            )
        if at == DOCUMENT_NODE and self.tree.root == NONE:
            raise InputError(
                "AX105", "a call cannot be the root", place=place, advice="put it in an element"
            )
        attributes = [(str(key), str(value)) for key, value in element.attrib.items()]
        if any(len(value) > self.limits.text for _, value in attributes):
            raise self._too_long("attribute", max(len(value) for _, value in attributes))
        node = len(self.parents)
        self.parents.append(at)
        self.kinds.append(CALL)
        self.labels.append(self.tree._name(CALL_LABEL))
        self.calls[node] = Call.of(attributes)
        self._note_scope(element, node, scope, declaring)

    # Namespaces ---------------------------------------------------------------------------------

    def _note_scope(
        self, element: Element, node: int, scope: Scope, declaring: dict[Element, Scope]
    ) -> Scope:
        """Record the namespaces that the element declares; the scope inside it."""
        given = declaring.get(element)
        if given is not None:
            declared = {key: value for key, value in given.items() if scope.get(key, "") != value}
            if declared:
                self.declared[node] = tuple(
                    sorted(declared.items(), key=lambda pair: pair[0] or "")
                )
                scope = {**scope, **declared}
        if len(set(scope.values())) < len(scope):
            self._note_prefixes(element, node)
        return scope

    def _note_prefixes(self, element: Element, node: int) -> None:
        """Record the prefix that each name was written with, if its address has several."""
        self.prefixes[node] = element.prefix
        for position, at in enumerate(range(node + 1, len(self.parents), 2)):
            written = str(element.xpath(f"name(@*[{position + 1}])"))
            if self.kinds[at] == ATTRIBUTE and ":" in written:
                self.prefixes[at] = written.partition(":")[0]

    # Limits -------------------------------------------------------------------------------------

    def _check_bottom(self, element: Element) -> None:
        """Refuse elements inside an element at the deepest level allowed."""
        if next(element.iterchildren("*"), None) is not None:
            raise too_deep(self.limits.depth, _place_of(element))

    def check_texts(self) -> None:
        """Refuse a text or an attribute that is too long."""
        longest = max(map(len, self.texts), default=0)
        if longest > self.limits.text:
            at = next(i for i, text in enumerate(self.texts) if len(text) == longest)
            node = next(
                node
                for node, label in enumerate(self.labels)
                if label == at and self.kinds[node] not in (ELEMENT, ATTRIBUTE, CALL)
            )
            above = self.parents[node]
            raise self._too_long("attribute" if self.kinds[above] == ATTRIBUTE else "text", longest)

    def _too_long(self, what: str, length: int) -> LimitError:
        return LimitError(
            "AX124" if what == "attribute" else "AX123",
            f"the {what} has {length} characters, more than {self.limits.text}",
            advice="raise it with limits=Limits(text=...)",
        )

    def settle(self, handles: Sequence[int]) -> None:
        """Write the side tables once every record has a handle."""
        tree = self.tree
        for at, declared in self.declared.items():
            tree.namespaces_by_node[handles[at]] = declared
        for at, prefix in self.prefixes.items():
            tree.prefixes_by_node[handles[at]] = prefix
        for at, call in self.calls.items():
            tree.calls_by_node[handles[at]] = call


def _place_of(element: Any) -> Place | None:
    return Place(element.sourceline, 1) if element.sourceline else None


def _declarations(top: list[Any]) -> dict[Element, Scope]:
    """The elements that declare namespaces, with their declarations; for the top, its scope.

    The dictionary keeps the elements alive: lxml returns the same objects for them again.
    """
    found: dict[Element, Scope] = {}
    for root in top:
        if not isinstance(root.tag, str):
            continue
        if next(etree.iterwalk(root, events=("start-ns",)), None) is not None:
            declared: Scope = {}
            for event, what in etree.iterwalk(root, events=("start-ns", "start")):
                if event == "start-ns":
                    prefix, address = cast("tuple[str, str]", what)
                    declared[prefix or None] = address or ""
                elif declared:
                    found[cast(Element, what)] = declared
                    declared = {}
        if root.nsmap:
            found[root] = {prefix: address or "" for prefix, address in root.nsmap.items()}
    return found
