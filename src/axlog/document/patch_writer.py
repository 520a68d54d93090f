"""The difference of two versions as a patch of RFC 5261.

A patch is applied step by step; each `sel` refers to the result of the steps before it. So the
steps go backwards through the document: no step moves the nodes that a later path counts. Texts
that become adjacent are one text. So remaining nodes other than texts are fixed points, and the
nodes between two of them are rewritten as far as they differ (`_between`), in an order that merges
no text that a later path refers to. The patch declares prefixes for names in namespaces.

Laws: applying `patch_of(old, new)` to old gives new by canonical XML (`evaluate.patches` reads
patches). Equal parts are not written, except a text beside an inserted or removed node. Not
detected: the same differences that `diff` does not detect.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from axlog.document.diff import Difference, Pairs
from axlog.document.parser import Element, parse
from axlog.document.serializer import serialise
from axlog.document.tree import (
    CALL,
    CALL_LABEL,
    DOCUMENT_NODE,
    ELEMENT,
    TEXT,
    NodeKind,
    Tree,
)


def patch_of(old: Tree, new: Tree) -> str:
    """A patch that turns the old document into the new one.

    >>> from axlog.document.loader import load
    >>> print(patch_of(load("<r><a/></r>"), load("<r><a k='1'/><b/></r>")))
    <diff>
    <add sel="r/a[1]" pos="after"><b/></add>
    <add sel="r/a[1]" type="@k">1</add>
    </diff>
    """
    return _PatchWriter(old, new).patch()


class _PatchWriter:
    def __init__(self, old: Tree, new: Tree) -> None:
        self.old = old
        self.new = new
        self.difference = Difference(old, new)
        self.prefixes: dict[str, str] = {}

    def patch(self) -> str:
        steps = list(self._document())
        declared = {prefix: uri for uri, prefix in self.prefixes.items()}
        root = etree.Element("diff", nsmap=declared)
        root.text = "\n"
        for step in steps:
            step.tail = "\n"
            root.append(step)
        return etree.tostring(root, encoding="unicode")

    # Steps, the last one in the document first --------------------------------------------------

    def _document(self) -> Iterator[Element]:
        """Steps for the root and for the nodes around it, which are rewritten if they differ."""
        (above, below), (new_above, new_below) = _around(self.old), _around(self.new)
        old, new = self.old.root, self.new.root
        if not self._are_equal(below, new_below):
            yield from (self._removed(node) for node in reversed(below))
            yield from self._added(self._path(old), new_below, "after")
        if self.old.label(old) == self.new.label(new):
            yield from self._pair(old, new)
        else:
            yield self._step("replace", self._path(old), [self._copied(new)])
        if not self._are_equal(above, new_above):
            yield from (self._removed(node) for node in reversed(above))
            yield from self._added(self._named(self.new.label(new)), new_above, "before")

    def _are_equal(self, old: list[int], new: list[int]) -> bool:
        return len(old) == len(new) and all(map(self.difference.is_equal, old, new))

    def _pair(self, old: int, new: int) -> Iterator[Element]:
        """Steps that turn one element into the other, from its last child to its attributes."""
        if self.difference.is_equal(old, new):
            return
        before, after = list(self.old.children(old)), list(self.new.children(new))
        yield from self._children(old, before, after)
        yield from self._attributes(old, new)

    def _children(self, parent: int, before: list[int], after: list[int]) -> Iterator[Element]:
        """Steps for children, from one fixed node to the one before it."""
        i_end, j_end = len(before), len(after)
        for i, j in (*reversed(self._fixed(before, after)), (-1, -1)):
            gone, come = before[i + 1 : i_end], after[j + 1 : j_end]
            if i < 0:
                yield from self._between(self._path(parent), "prepend", gone, come)
                return
            yield from self._between(self._path(before[i]), "after", gone, come)
            yield from self._child(before[i], after[j])
            i_end, j_end = i, j

    def _fixed(self, before: list[int], after: list[int]) -> Pairs:
        """The positions of the remaining nodes, without texts."""
        kinds = self.old.kind_column
        pairs = self.difference.aligned(before, after)
        return [(i, j) for i, j in pairs if kinds[before[i]] != TEXT]

    def _between(
        self, path: str, position: str, gone: list[int], come: list[int]
    ) -> Iterator[Element]:
        """Steps that turn one run of children into another; the run follows the node of a path."""
        while gone and come and self.difference.is_equal(gone[0], come[0]):
            path, position = self._path(gone[0]), "after"
            gone, come = gone[1:], come[1:]
        behind: list[int] = []  # nodes that remain after the run
        while gone and come and self.difference.is_equal(gone[-1], come[-1]):
            behind.append(gone[-1])
            gone, come = gone[:-1], come[:-1]
        kinds, new_kinds = self.old.kind_column, self.new.kind_column
        if len(gone) == len(come) == 1 and _class(kinds[gone[0]]) == _class(new_kinds[come[0]]):
            is_text = kinds[gone[0]] == TEXT
            pieces = [] if is_text else [self._copied(come[0])]
            text = self.new.text(come[0]) if is_text else ""
            yield self._step("replace", self._path(gone[0]), pieces, text)
            return
        if self._merge(gone, come):
            yield from (self._removed(n) for n in reversed(gone) if kinds[n] != TEXT)
            return
        if gone and behind and kinds[behind[-1]] == TEXT:
            # A text of the run would be merged with it once they are adjacent.
            text_node = behind.pop()
            yield self._removed(text_node)
            yield from (self._removed(node) for node in reversed(gone))
            yield from self._added(path, come, position, self.old.text(text_node))
            return
        yield from (self._removed(node) for node in reversed(gone))
        yield from self._added(path, come, position)

    def _merge(self, gone: list[int], come: list[int]) -> bool:
        """Whether a run becomes one text that results from removing its other nodes."""
        if len(come) != 1 or self.new.kind_column[come[0]] != TEXT:
            return False
        texts = [self.old.text(node) for node in gone if self.old.kind_column[node] == TEXT]
        return "".join(texts) == self.new.text(come[0])

    def _child(self, old: int, new: int) -> Iterator[Element]:
        if self.old.kind_column[old] == ELEMENT:
            yield from self._pair(old, new)
        elif not self.difference.is_equal(old, new):
            yield self._step("replace", self._path(old), [self._copied(new)])

    def _attributes(self, old: int, new: int) -> Iterator[Element]:
        path = self._path(old)
        before = {self.old.label(a): self.old.string_value(a) for a in self.old.attributes(old)}
        after = {self.new.label(a): self.new.string_value(a) for a in self.new.attributes(new)}
        for label in sorted(before.keys() | after.keys()):
            name = f"@{self._named(label[1:])}"
            if label not in after:
                yield self._step("remove", f"{path}/{name}", [])
            elif label not in before:
                yield self._step("add", path, [], after[label], type=name)
            elif before[label] != after[label]:
                yield self._step("replace", f"{path}/{name}", [], after[label])

    # One step -----------------------------------------------------------------------------------

    def _removed(self, node: int) -> Element:
        return self._step("remove", self._path(node), [])

    def _added(
        self, path: str, nodes: list[int], position: str, text: str = ""
    ) -> Iterator[Element]:
        """A step that adds new nodes at a place, and a text after them."""
        if not nodes and not text:
            return
        step = self._step("add", path, [], pos=position)
        for node in nodes:
            if self.new.kind_column[node] == TEXT:
                _append_text(step, self.new.text(node))
            else:
                step.append(self._copied(node))
        _append_text(step, text)
        yield step

    def _step(
        self, kind: str, path: str, pieces: list[Element], text: str = "", **more: str
    ) -> Element:
        step = etree.Element(kind, {"sel": path, **more})
        step.text = text or None
        step.extend(pieces)
        return step

    def _copied(self, node: int) -> Element:
        return parse(f"<_>{serialise(self.new, node)}</_>").root[0]

    # Paths --------------------------------------------------------------------------------------

    def _path(self, node: int) -> str:
        """The path of a node of the old document: each step counts the siblings of its kind."""
        steps: list[str] = []
        while node != DOCUMENT_NODE:
            test = self._test(node)
            beside = [n for n in self.old.children(self.old.parent(node)) if self._test(n) == test]
            is_root = node == self.old.root
            steps.append(test if is_root else f"{test}[{beside.index(node) + 1}]")
            node = self.old.parent(node)
        return "/".join(reversed(steps))

    def _test(self, node: int) -> str:
        tree, kind = self.old, self.old.kind_column[node]
        if kind in (ELEMENT, CALL):
            return self._named(CALL_LABEL if kind == CALL else tree.label(node))
        if kind == NodeKind.INSTRUCTION:
            return f"processing-instruction('{tree.text(node).partition(' ')[0]}')"
        return "text()" if kind == TEXT else "comment()"

    def _named(self, label: str) -> str:
        """A name as the patch writes it."""
        address, brace, local = label.rpartition("}")
        if not brace:
            return local
        prefix = self.prefixes.setdefault(address[1:], f"n{len(self.prefixes)}")
        return f"{prefix}:{local}"


def _class(kind: int) -> int:
    """Kinds that replace each other: a call is an element."""
    return ELEMENT if kind == CALL else kind


def _append_text(step: Element, text: str) -> None:
    if not len(step):
        step.text = (step.text or "") + text or None
    else:
        step[-1].tail = (step[-1].tail or "") + text or None


def _around(tree: Tree) -> tuple[list[int], list[int]]:
    """The nodes before and after the root element."""
    top = list(tree.children(DOCUMENT_NODE))
    at = top.index(tree.root)
    return top[:at], top[at + 1 :]
