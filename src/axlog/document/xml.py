"""XML to columns: one walk over lxml elements records what each node is, then links follow.

A whole document's links and partitions are computed by sorting in numpy; a fragment's nodes are
hung one by one. Whitespace-only texts beside elements are dropped unless asked for
(`xml:space="preserve"` is obeyed). Law: `writing.serialise` gives back an equal document, by canonical
XML; the DOCTYPE is not kept, CDATA becomes text.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterable, Iterator

import numpy as np
from lxml import etree

from axlog.document.reading import DEFAULT_LIMITS, Element, Limits, Source, parse, read
from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    CALL_GAP,
    CALL_LABEL,
    DOCUMENT_NODE,
    ELEMENT,
    NONE,
    TEXT,
    TEXT_LABEL,
    Call,
    NodeKind,
    Tree,
)
from axlog.errors import HostileError, InputError, LimitError, MalformedError, StreamError

_COMMENT, _INSTRUCTION = int(NodeKind.COMMENT), int(NodeKind.INSTRUCTION)
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_SPACES = " \t\r\n"
Scope = dict[str | None, str]


def load(
    source: Source, *, limits: Limits = DEFAULT_LIMITS, keep_whitespace: bool = False, time: int = 0
) -> Tree:
    """A tree from XML; every node gets this time."""
    tree = Tree()
    recorder = Recorder(tree, limits, keep_whitespace)
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of fresh objects, none of them garbage
    try:
        root, may_declare = read(source, limits)
        recorder.record(_with_surroundings(root), may_declare)
        _fill(recorder, time)
    finally:
        if collecting:
            gc.enable()
    tree.clock = time
    return tree


def read_forest(message: str | bytes | Element, limits: Limits = DEFAULT_LIMITS) -> list[Element]:
    """The trees of a message: one document, or several trees side by side."""
    if isinstance(message, etree._Element):
        return [message]
    try:
        return _with_surroundings(parse(message, limits)[0])
    except MalformedError as error:
        if isinstance(message, bytes):
            wrapped: str | bytes = b"<_>" + message + b"</_>"
        else:
            wrapped = "<_>" + message + "</_>"
        try:
            forest, _ = parse(wrapped, limits)
        except InputError:
            raise error from None
        if (forest.text or "").strip() or any((tree.tail or "").strip() for tree in forest):
            raise StreamError(
                "AX104", "the message has text outside any element", advice="wrap it in an element"
            ) from None
        return list(forest)


def graft(
    tree: Tree,
    forest: Iterable[Element],
    time: int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    keep_whitespace: bool = False,
) -> list[int]:
    """Make nodes for a forest that hang nowhere yet; the handles of its roots."""
    recorder = Recorder(tree, limits, keep_whitespace)
    recorder.record(forest)
    handles = [DOCUMENT_NODE]
    roots: list[int] = []
    for at in range(1, len(recorder.parents)):
        kind = recorder.kinds[at]
        if kind in (ELEMENT, ATTRIBUTE, CALL):
            node = tree._new(kind, recorder.labels[at], time)
        else:
            node = tree._new_text(kind, recorder.texts[recorder.labels[at]], time)
        handles.append(node)
        above = recorder.parents[at]
        if above == DOCUMENT_NODE:
            roots.append(node)
        else:
            tree._append(handles[above], node)
    recorder.settle(handles)
    return roots


def _with_surroundings(root: Element) -> list[Element]:
    """The root with the comments and instructions beside it, if it is a document's root."""
    if root.getparent() is not None:
        return [root]
    before = list(root.itersiblings(preceding=True))
    return [*reversed(before), root, *root.itersiblings()]


class Recorder:
    """What a walk notes of each node in document order: parent, kind, label or text."""

    def __init__(self, tree: Tree, limits: Limits, keep_whitespace: bool) -> None:
        self.tree = tree
        self.limits = limits
        self.keep = keep_whitespace
        self.parents: list[int] = [NONE]
        self.kinds = bytearray([NodeKind.DOCUMENT])
        self.labels: list[int] = [NONE]
        self.texts: list[str] = []
        self.calls: dict[int, Call] = {}
        self.declared: dict[int, tuple[tuple[str | None, str], ...]] = {}
        self.prefixes: dict[int, str | None] = {}

    def record(self, top: Iterable[Element], may_declare: bool = True) -> None:
        """Walk these elements and everything in them, as children of the document node."""
        top = list(top)
        has_namespaces = may_declare and any(map(_has_namespaces, top))
        parents, kinds, labels, texts = self.parents, self.kinds, self.labels, self.texts
        names, name = self.tree._name_ids, self.tree._name
        deepest = self.limits.depth
        stack: list[tuple[Iterator[Element], int, bool, Scope, Element]] = []
        below: Iterator[Element] = iter(top)
        at, keep, scope = DOCUMENT_NODE, False, {}
        while True:
            element = next(below, None)
            if element is None:
                if not stack:
                    break
                below, at, keep, scope, element = stack.pop()
            else:
                tag = element.tag
                if type(tag) is not str:
                    self._add_other(element, at)
                elif tag == CALL_LABEL:
                    self._add_call(element, at, scope)
                else:
                    node = len(parents)
                    label = names.get(tag)
                    parents.append(at)
                    kinds.append(ELEMENT)
                    labels.append(name(tag) if label is None else label)
                    inner = keep or self.keep
                    attributes = element.attrib
                    if attributes:
                        for key, value in attributes.items():
                            self._add_attribute(node, key, value)
                            if key == _SPACE:
                                inner = value == "preserve" or self.keep
                    inner_scope = self._note_scope(element, node, scope) if has_namespaces else scope
                    text = element.text
                    size = len(element)
                    if text and (not size or inner or text.strip(_SPACES)):
                        parents.append(node)
                        kinds.append(TEXT)
                        labels.append(len(texts))
                        texts.append(text)
                    if size:
                        stack.append((below, at, keep, scope, element))
                        if len(stack) > deepest:
                            raise LimitError(
                                "AX121",
                                f"nested deeper than {deepest} levels",
                                advice="raise it with limits=Limits(depth=...)",
                            )
                        below, at, keep, scope = iter(element), node, inner, inner_scope
                        continue
            tail = element.tail
            if tail and stack and (keep or self.keep or tail.strip(_SPACES)):
                parents.append(at)
                kinds.append(TEXT)
                labels.append(len(texts))
                texts.append(tail)
        self._check_texts()

    def _add_attribute(self, node: int, key: str, value: str) -> None:
        at = len(self.parents)
        self.parents += (node, at)
        self.kinds += _ATTRIBUTE_AND_TEXT
        self.labels += (self.tree._name("@" + key), len(self.texts))
        self.texts.append(value)

    def _add_other(self, element: Element, at: int) -> None:
        """A comment or a processing instruction; an entity reference is refused."""
        if element.tag is etree.Comment:
            kind, text = _COMMENT, element.text or ""
        elif isinstance(element, etree._ProcessingInstruction):
            kind, text = _INSTRUCTION, f"{element.target} {element.text or ''}".rstrip(" ")
        else:
            raise HostileError(
                "AX112", f"the entity {element.text} is not resolved", advice="write what it stands for"
            )
        self.parents.append(at)
        self.kinds.append(kind)
        self.labels.append(len(self.texts))
        self.texts.append(text)

    def _add_call(self, element: Element, at: int, scope: Scope) -> None:
        if len(element) or (element.text or "").strip():
            raise InputError("AX105", "a call has content", expected='<ax:call stream="NAME"/>')
        if at == DOCUMENT_NODE and self.tree.root == NONE:
            raise InputError("AX105", "a call cannot be the root", advice="put it in an element")
        node = len(self.parents)
        self.parents.append(at)
        self.kinds.append(CALL)
        self.labels.append(self.tree._name(CALL_LABEL))
        self.calls[node] = Call.of([(str(k), str(v)) for k, v in element.attrib.items()])
        self._note_scope(element, node, scope)

    def _note_scope(self, element: Element, node: int, scope: Scope) -> Scope:
        """Note what namespaces the element declares; the scope inside it."""
        inside: Scope = {k: v or "" for k, v in element.nsmap.items()}
        if None in scope and None not in inside:
            inside[None] = ""
        if inside != scope:
            declared = tuple((k, v) for k, v in inside.items() if scope.get(k) != v)
            self.declared[node] = tuple(sorted(declared, key=lambda pair: pair[0] or ""))
            scope = inside
        if len(set(scope.values())) < len(scope):
            self._note_prefixes(element, node)
        return scope

    def _note_prefixes(self, element: Element, node: int) -> None:
        """Where one address has several prefixes, note which one each name was written with."""
        self.prefixes[node] = element.prefix
        for position, at in enumerate(range(node + 1, len(self.parents), 2)):
            written = str(element.xpath(f"name(@*[{position + 1}])"))
            if self.kinds[at] == ATTRIBUTE and ":" in written:
                self.prefixes[at] = written.partition(":")[0]

    def _check_texts(self) -> None:
        longest = max(map(len, self.texts), default=0)
        if longest > self.limits.text:
            raise LimitError(
                "AX123",
                f"a text has {longest} characters, more than {self.limits.text}",
                advice="raise it with limits=Limits(text=...)",
            )

    def settle(self, handles: list[int]) -> None:
        """Write the side tables, now that every record has a handle."""
        tree = self.tree
        for table, noted in ((tree._declared, self.declared), (tree._prefix, self.prefixes)):
            for at, value in noted.items():
                table[handles[at]] = value  # type: ignore[assignment]
        for at, call in self.calls.items():
            tree._call_at[handles[at]] = call


_ATTRIBUTE_AND_TEXT = bytes((ATTRIBUTE, TEXT))


def _has_namespaces(element: Element) -> bool:
    """Whether any declaration other than that of `xml` is in scope anywhere in the element."""
    return bool(element.xpath("boolean((.|.//*)/namespace::*[name() != 'xml'])"))


def _fill(recorder: Recorder, time: int) -> None:
    """Compute every column of a new tree from the records of its document."""
    tree = recorder.tree
    parents = np.array(recorder.parents, dtype=np.int32)
    kinds = np.frombuffer(bytes(recorder.kinds), dtype=np.int8)
    labels = np.array(recorder.labels, dtype=np.int32)
    count = len(parents)
    first, last, following, previous = (np.full(count, NONE, dtype=np.int32) for _ in range(4))

    by_parent = np.argsort(parents, kind="stable")[1:]  # the document node has no parent
    above = parents[by_parent]
    starts = np.flatnonzero(np.r_[True, above[1:] != above[:-1]])
    beside = np.flatnonzero(above[1:] == above[:-1])
    following[by_parent[beside]] = by_parent[beside + 1]
    previous[by_parent[beside + 1]] = by_parent[beside]
    first[above[starts]] = by_parent[starts]
    ends = np.r_[starts[1:], len(above)] - 1
    last[above[starts]] = by_parent[ends]

    sizes = np.diff(np.r_[starts, len(above)])
    rank = np.arange(len(above)) - np.repeat(starts, sizes) + 1
    order = np.ones(count, dtype=np.int32)
    order[by_parent] = rank + _gaps(kinds[by_parent] == CALL, starts, sizes)

    columns = {
        "_kind": kinds, "_parent": parents, "_first": first, "_last": last,
        "_next": following, "_prev": previous, "_label": labels, "_order": order,
        "_time": np.full(count, time, dtype=np.int64),
        "_place": _partition(tree, kinds, labels),
    }  # fmt: skip
    for name, column in columns.items():
        setattr(tree, name, _column(getattr(tree, name).typecode, column))
    encoded = [text.encode() for text in recorder.texts]
    spans = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=spans[1:])
    tree._spans = _column("q", spans)
    tree._bytes = b"".join(encoded)
    recorder.settle(list(range(count)) if recorder.calls or recorder.declared else [])
    for node, call in tree._call_at.items():
        if call.stream in tree._calls:
            raise StreamError("AX403", f"the stream {call.stream!r} has two calls")
        tree._calls[call.stream] = node


def _gaps(is_call: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Free components before each call, so that what its stream brings gets short identifiers."""
    seen = np.cumsum(is_call)
    in_group = seen - np.repeat(np.r_[0, seen][starts], sizes)
    most = int(in_group.max(initial=0))
    return in_group * min(CALL_GAP, (1 << 30) // max(most, 1))


def _partition(tree: Tree, kinds: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Fill the partitions; each handle's place in its own."""
    named = (kinds == ELEMENT) | (kinds == ATTRIBUTE)
    group = np.where(named, labels, np.where(kinds == TEXT, len(tree.names), NONE))
    by_group = np.argsort(group, kind="stable")
    grouped = group[by_group]
    starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    sizes = np.diff(np.r_[starts, len(grouped)])
    place = np.empty(len(kinds), dtype=np.int32)
    place[by_group] = np.arange(len(grouped)) - np.repeat(starts, sizes)
    for start, size in zip(starts, sizes, strict=True):
        key = int(grouped[start])
        if key != NONE:
            label = tree.names[key] if key < len(tree.names) else TEXT_LABEL
            handles = by_group[start : start + size].astype(np.int32)
            tree._partitions[label] = _column("i", handles)
    return place


def _column(typecode: str, values: np.ndarray) -> array[int]:
    column: array[int] = array(typecode)
    column.frombytes(np.ascontiguousarray(values).tobytes())
    return column
