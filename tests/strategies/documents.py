"""Random small documents and random updates of them, for Hypothesis.

`documents()` draws the text of a document with everything that XML has and axlog takes: attributes,
mixed content, comments, instructions, namespaces (declared, redeclared, undone, two prefixes for
one address) and calls. `updates()` draws operations without a document: a target is a number that
is taken modulo the number of nodes that can take the operation, so that any list fits any document
and shrinks on its own. Now and then an operation goes anywhere, to see it refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from lxml import etree

from axlog.document.operations import (
    Attribute,
    Delete,
    Insert,
    Operation,
    Rename,
    ReplaceNode,
    ReplaceValue,
    Where,
)
from axlog.document.parser import Element
from axlog.document.tree import CALL_NAMESPACE, DOCUMENT_NODE, Tree

Scope = dict[str | None, str]

NAMES = ("a", "b", "c", "é")
ADDRESSES = ("urn:u", "urn:v")
PREFIXES = (None, "p", "q")
LABELS = (*NAMES, "{urn:u}a", "{urn:v}b", "{urn:w}c")

TEXTS = st.sampled_from(
    ["x", "17", " ", "\n  ", "a b", "<&>\"'", "]]>", "é\u2028", "\t", "\r", "x "]
)
COMMENTS = st.sampled_from(["", "c", " a - b ", "<x>", "é"])
DATA = st.sampled_from(["", "d", "a  b ", "<x>&", "é "])


@dataclass(frozen=True)
class Features:
    """What a drawn document may hold besides elements, attributes and texts."""

    namespaces: bool = True
    others: bool = True  # comments and instructions
    calls: bool = True
    names: Sequence[str] = NAMES


@st.composite
def documents(draw: DrawFn, features: Features | None = None, most: int = 12) -> str:
    """The text of a document of at most `most` elements."""
    writer = _Writer(draw, features or Features(), most)
    before = writer.others()
    root = writer.element({}, 0)
    return f"{before}{root}{writer.others()}"


@st.composite
def fragments(draw: DrawFn, features: Features | None = None, most: int = 4) -> Element:
    """An lxml element to insert; it may be a comment or an instruction."""
    features = features or Features(calls=False)
    if features.others and draw(st.integers(0, 5)) == 0:
        text = draw(DATA)
        return draw(st.sampled_from([etree.Comment(f"c{text.strip()}"), etree.PI("pi", text)]))
    return etree.fromstring(_Writer(draw, features, most).element({}, 0))


class _Writer:
    """Writes elements while drawing them, so that prefixes are those in scope."""

    def __init__(self, draw: DrawFn, features: Features, most: int) -> None:
        self.draw = draw
        self.features = features
        self.left = most
        self.streams: Iterator[int] = iter(range(1000))

    def one_in(self, many: int) -> bool:
        return self.draw(st.integers(0, many - 1)) == 0

    def element(self, scope: Scope, depth: int) -> str:
        self.left -= 1
        declared = self._declare() if self.features.namespaces and self.one_in(3) else {}
        scope = {**scope, **declared}
        tag = self._tag(scope)
        head = tag + "".join(f" {_xmlns(prefix)}={_quoted(to)}" for prefix, to in declared.items())
        head += "".join(f" {name}={_quoted(value)}" for name, value in self._attributes(scope))
        content = "".join(self._content(scope, depth))
        return f"<{head}>{content}</{tag}>" if content else f"<{head}/>"

    def others(self) -> str:
        """Comments and instructions."""
        if not self.features.others or not self.one_in(4):
            return ""
        if self.one_in(2):
            return f"<!--{self.draw(COMMENTS)}-->"
        return f"<?pi {self.draw(DATA)}?>"

    def _declare(self) -> Scope:
        prefixes = self.draw(st.lists(st.sampled_from(PREFIXES), unique=True, max_size=3))
        declared = {prefix: self.draw(st.sampled_from(ADDRESSES)) for prefix in prefixes}
        if None not in declared and self.one_in(4):
            declared[None] = ""
        return declared

    def _tag(self, scope: Scope) -> str:
        name = self.draw(st.sampled_from(self.features.names))
        prefix = self.draw(st.sampled_from([None, *filter(None, scope)])) if scope else None
        return name if prefix is None else f"{prefix}:{name}"

    def _attributes(self, scope: Scope) -> list[tuple[str, str]]:
        prefixes = [None, *(prefix for prefix in scope if prefix)]
        drawn = self.draw(
            st.lists(
                st.tuples(st.sampled_from(prefixes), st.sampled_from(self.features.names), TEXTS),
                max_size=2,
                unique_by=lambda item: (scope.get(item[0], "") if item[0] else "", item[1]),
            )
        )
        return [(f"{prefix}:{name}" if prefix else name, value) for prefix, name, value in drawn]

    def _content(self, scope: Scope, depth: int) -> Iterator[str]:
        if depth == 5:
            return
        for _ in range(self.draw(st.integers(0, 4))):
            if self.one_in(3):
                yield self._text()
            yield self.others()
            if self.features.calls and self.one_in(12):
                stream = f"s{next(self.streams)}"
                yield f'<ax:call xmlns:ax="{CALL_NAMESPACE}" stream="{stream}"/>'
            elif self.left > 0:
                yield self.element(scope, depth + 1)

    def _text(self) -> str:
        text = self.draw(TEXTS)
        if self.one_in(4):
            return f"<![CDATA[{text.replace(']]>', '')}]]>"
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return escaped.replace("\r", "&#13;")


def _xmlns(prefix: str | None) -> str:
    return f"xmlns:{prefix}" if prefix else "xmlns"


def _quoted(value: str) -> str:
    escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return '"' + "".join(f"&#{ord(c)};" if c in "\t\n\r" else c for c in escaped) + '"'


# Updates -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """An operation whose target is a number, to be taken modulo the number of nodes for it."""

    kind: type[Operation]
    target: int
    where: Where = Where.INTO
    content: tuple[Element | str | Attribute, ...] = ()
    word: str = ""
    anywhere: bool = False

    def fits(self, kind: str, parent: str) -> bool:
        """Whether a node of this kind below one of that kind can take it, by itself."""
        if parent == "attribute" or kind == "document":
            return self.kind is ReplaceValue and kind != "document"
        has_attributes = any(isinstance(item, Attribute) for item in self.content)
        has_others = any(not isinstance(item, Attribute) for item in self.content)
        if self.kind is Insert:
            if self.where in (Where.BEFORE, Where.AFTER):
                return kind != "attribute" and parent != "document"
            return kind == "element"
        if self.kind is ReplaceNode:
            unfit = has_others if kind == "attribute" else has_attributes
            return parent != "document" and not unfit
        if self.kind is Rename:
            return kind in ("element", "attribute") or (
                kind == "instruction" and not self.word.startswith("{")
            )
        if self.kind is ReplaceValue:
            is_other = kind in ("comment", "instruction")
            return kind != "call" and not (is_other and self.word.strip() != self.word)
        return parent != "document"

    def on(self, target: int) -> Operation:
        """The operation on a node of a tree."""
        if self.kind is Insert:
            return Insert(self.where, target, self.content)
        if self.kind is ReplaceNode:
            return ReplaceNode(target, self.content)
        if self.kind is Rename:
            return Rename(target, self.word)
        return ReplaceValue(target, self.word) if self.kind is ReplaceValue else Delete(target)

    def __repr__(self) -> str:
        content = [
            etree.tostring(item, with_tail=False) if isinstance(item, etree._Element) else item
            for item in self.content
        ]
        where = f"{self.where.value} " if self.kind is Insert else ""
        return f"<{self.kind.__name__} {where}{self.target} {content or self.word!r}>"


def nodes_of(tree: Tree) -> list[int]:
    """All nodes in document order, the document node first."""
    return list(tree.subtree(DOCUMENT_NODE))


def choose(edits: Sequence[Edit], nodes: Sequence[tuple[str, str]]) -> list[int]:
    """Which node each edit goes to; nodes are given by their kind and their parent's.

    Two edits of a kind that no node takes twice go to two nodes.
    """
    chosen: list[int] = []
    taken: set[tuple[type, int]] = set()
    for edit in edits:
        fitting = [
            at
            for at, (kind, parent) in enumerate(nodes)
            if edit.anywhere or (edit.fits(kind, parent) and (edit.kind, at) not in taken)
        ]
        at = fitting[edit.target % len(fitting)] if fitting else edit.target % len(nodes)
        chosen.append(at)
        if edit.kind in (Rename, ReplaceNode, ReplaceValue):
            beside = {at - 1, at, at + 1} if edit.kind is ReplaceValue else {at}  # an attribute's
            taken |= {(edit.kind, near) for near in beside}
    return chosen


def resolve(tree: Tree, edits: Sequence[Edit]) -> list[Operation]:
    """The edits as operations on this tree."""
    nodes = nodes_of(tree)
    names = [tree.kind(node).name.lower() for node in nodes]
    kinds = dict(zip(nodes, names, strict=True))
    places = [(kinds[node], kinds.get(tree.parent(node), "")) for node in nodes]
    return [edit.on(nodes[at]) for edit, at in zip(edits, choose(edits, places), strict=True)]


def contents(features: Features | None = None) -> SearchStrategy[tuple]:
    """What an insertion brings: trees, texts, attributes."""
    nodes = st.one_of(fragments(features), TEXTS, st.just(""))
    attributes = st.builds(Attribute, st.sampled_from(LABELS), TEXTS)
    return st.one_of(
        st.lists(nodes, min_size=1, max_size=3),
        st.lists(attributes, max_size=2, unique_by=lambda attribute: attribute.name),
        st.lists(st.one_of(nodes, attributes), max_size=3),
    ).map(tuple)


def edits(features: Features | None = None) -> SearchStrategy[Edit]:
    """One operation of any kind at any place."""
    target = st.integers(0, 60)
    anywhere = st.integers(0, 29).map(lambda number: number == 29)
    places = st.sampled_from(list(Where))
    content = contents(features)
    labels, texts = st.sampled_from(LABELS), st.one_of(TEXTS, st.just(""))
    return st.one_of(
        st.builds(Edit, st.just(Insert), target, places, content, anywhere=anywhere),
        st.builds(Edit, st.just(Delete), target, anywhere=anywhere),
        st.builds(Edit, st.just(ReplaceNode), target, content=content, anywhere=anywhere),
        st.builds(Edit, st.just(Rename), target, word=labels, anywhere=anywhere),
        st.builds(Edit, st.just(ReplaceValue), target, word=texts, anywhere=anywhere),
    )


def updates(features: Features | None = None, most: int = 5) -> SearchStrategy[list[Edit]]:
    """A pending update list."""
    return st.lists(edits(features), min_size=1, max_size=most)
