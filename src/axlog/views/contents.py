"""What views show of nodes as `cont`, kept between updates and written anew in pieces.

A materialised view stores its contents (P5 2.2). Here those of one document are kept together, once
for each node whichever views show it. The text of a node is its tags around the texts of its
children, so where an update touches a node, only the children that it touches are written anew: the
others' texts are kept too. Children of a node that is shown are kept from the start, those of other
nodes once an update has touched them: pieces are as fine as the updates are.

Copies of one fragment that a statement brought to many places are written once, and put into what
is kept of their places without looking at the other children.

An update ends what is kept of the nodes that it touches (its places and all above them) as soon as
it is carried out, and what is kept of the nodes that go with the next one, as changes still show
those. Missing an update is noticed by the document's version, and forgets all.

Law: `of(node) == serialise(tree, node)` at every version of the document. Not kept: contents with
namespaces, as these depend on what is declared above, and what goes beyond `MOST` characters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axlog.document.serializer import is_plain, piece, serialise, start_tag
from axlog.document.tree import ELEMENT, NONE, Tree
from axlog.evaluate.columns import NOTHING, Handles

MOST = 1 << 26
SHARE = 2
"""Characters that are kept for one document, and so many more for each byte of its texts."""
DEEPEST = 100
"""So many nested pieces are followed; what is deeper is written whole."""


class Contents:
    """The contents of one document's nodes."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._version = tree.version
        self._kept: dict[int, str] = {}
        self._touched: set[int] = set()  # nodes that are written in pieces
        self._is_known = bytearray()  # by handle, whether it may stand in one of these
        self._gone: Handles = NOTHING
        self._copies: Sequence[Handles] = ()  # that the last update brought
        self._first: memoryview[int] | None = None  # by handle, the same node of the first copy
        self._grown: dict[int, str] = {}  # places of copies, with their texts before
        self._fragment = ""
        self.most = MOST + SHARE * len(tree.text_bytes)
        self.room = self.most
        self.written = 0  # nodes whose text was put together since the start

    def of(self, node: int) -> str:
        """The content of a node."""
        if self._version != self.tree.version:
            self.forget()
        found = self._kept.get(node)
        if found is not None:
            return found
        if self.tree.kind_column[node] != ELEMENT or not is_plain(self.tree):
            return serialise(self.tree, node)
        if node in self._grown:
            return self._keep(node, self._spliced(node))
        first = self._alike(node) if self._copies else node
        text = self.of(first) if first != node else self._in_pieces(node, DEEPEST)
        return self._keep(node, text)

    def _spliced(self, node: int) -> str:
        """The text of a place of copies: as before, with the fragment at its end."""
        before, end = self._grown.pop(node), self.tree.tags_by_name[self.tree.label_column[node]][2]
        return f"{before[: -len(end)]}{self._fragment}{end}"

    def _alike(self, node: int) -> int:
        """The same node of the first copy, if the last update brought it as one of many."""
        if self._first is None:
            first = np.arange(len(self.tree.kind_column), dtype=np.int32)
            for block in self._copies:
                first[block] = block[0]
            self._first = first.data
        return self._first[node]

    def _in_pieces(self, node: int, levels: int) -> str:
        tree, kept, touched = self.tree, self._kept, self._touched
        kinds, following = tree.kind_column, tree.next_column
        tag, below = start_tag(tree, node)
        self.written += 1
        if below == NONE:
            return f"{tag}/>"
        parts = [tag, ">"]
        while below != NONE:
            text = kept.get(below)
            if text is None:
                if kinds[below] != ELEMENT:
                    text = piece(tree, below)
                elif below in self._grown:
                    text = self._keep(below, self._spliced(below))
                elif below in touched and levels:
                    text = self._keep(below, self._in_pieces(below, levels - 1))
                elif self._copies and (first := self._alike(below)) != below:
                    text = self._keep(below, self.of(first))
                else:
                    text = self._keep(below, piece(tree, below))
            parts.append(text)
            below = following[below]
        parts.append(tree.tags_by_name[tree.label_column[node]][2])
        return "".join(parts)

    def _keep(self, node: int, text: str) -> str:
        room = self.room - len(text)
        if room >= 0:
            self.room = room
            self._kept[node] = text
            if node >= len(self._is_known):
                self._is_known.extend(bytes(max(node, len(self.tree.kind_column)) + 1))
            self._is_known[node] = 1
        return text

    def __bool__(self) -> bool:
        """Whether something is kept."""
        return bool(self._kept)

    # Updates --------------------------------------------------------------------------------------

    def settle(self) -> None:
        """An update is about to come: what went with the last one is not shown any more."""
        if self._version != self.tree.version:
            self.forget()
        if self._kept and len(self._gone):
            for node in self._known(self._gone):
                self._end(node)
                self._touched.discard(node)
                self._is_known[node] = 0
        self._gone, self._copies, self._first = NOTHING, (), None
        self._grown.clear()

    def follow(
        self,
        touched: Handles,
        gone: Handles,
        copies: Sequence[Handles] = (),
        last: Sequence[Handles] = (),
    ) -> None:
        """An update was carried out: nodes above it may have other contents, others are gone.

        Some of what came may be copies of fragments, a row of handles for each; `last` are those
        that stand last in their places, where the update did nothing else.
        """
        self._version = self.tree.version
        self._gone, self._copies, self._first = gone, copies, None
        if self._kept and not is_plain(self.tree):
            self.forget()
        if self._kept and len(last) == 1:
            self._grow(last[0])
        for node in self._known(touched) if self._kept else ():
            self._end(node)
            self._touched.add(node)

    def _grow(self, block: Handles) -> None:
        """Note what is kept of places that got a copy, and nothing deeper down."""
        tree, parent, tags = self.tree, self.tree.parent_column, self.tree.tags_by_name
        first = block[0].tolist()
        roots = [node for node in first if parent[node] == parent[first[0]]]
        self._fragment = "".join(piece(tree, root) for root in roots)
        places = [parent[node] for node in block[:, 0].tolist()]
        above: set[int] = set()
        for place in places:
            at = parent[place]
            while at != NONE and at not in above:
                above.add(at)
                at = parent[at]
        for place in places:
            text = "" if place in above else self._kept.get(place, "")
            # A place that had no child is written as one tag: there is nothing to put it into.
            if text.endswith(tags[tree.label_column[place]][2]):
                self._grown[place] = text

    def _known(self, nodes: Handles) -> list[int]:
        """Those of nodes that something is known of."""
        known = np.frombuffer(self._is_known, dtype=np.bool_)
        inside = nodes[nodes < len(known)]
        found: list[int] = inside[known[inside]].tolist()
        return found

    def _end(self, node: int) -> None:
        text = self._kept.pop(node, None)
        if text is not None:
            self.room += len(text)

    def forget(self) -> None:
        """Start over."""
        self._kept.clear()
        self._touched.clear()
        self._is_known = bytearray()
        self._gone, self._copies, self._first = NOTHING, (), None
        self._grown.clear()
        self.room = self.most
        self._version = self.tree.version
