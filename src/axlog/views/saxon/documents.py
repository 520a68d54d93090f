"""The document of a tree as Saxon has it: built once for each version, for all views of the tree.

The tree is written as XML and read by Saxon in its process. Calls of streams are left out: queries
do not see them.
"""

from __future__ import annotations

import weakref
from itertools import count

from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.views.saxon.process import PROCESS, Asked

_names = count(1)


class SaxonDocument:
    """The newest version of one tree in Saxon's process."""

    def __init__(self) -> None:
        self._name = next(_names)
        self._built: tuple[int, int, int] | None = None  # the tree, its version, the worker
        self.builds = 0
        self._release = weakref.finalize(self, PROCESS.release, self._name)

    def run(self, tree: Tree, asked: Asked) -> list[tuple[str, str]]:
        """The items of a query on a tree."""
        with PROCESS.lock:
            if self._built != (id(tree), tree.version, PROCESS.epoch):
                PROCESS.load(self._name, serialise(tree, calls=False))
                self._built = (id(tree), tree.version, PROCESS.epoch)
                self.builds += 1
            return PROCESS.run(asked, self._name)

    def release(self) -> None:
        """Free the memory of the document in Saxon's process; the next query builds it again."""
        self._built = None
        PROCESS.release(self._name)
