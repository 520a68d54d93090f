"""The other side of paper 5, section 6.5: the same updates with lxml, and views re-evaluated.

There are two results to compute, and both are measured:

    nodes   the XPath alone: a list of nodes, without knowledge of the new ones
    rows    the information for a subscriber of the view: every row with its node's identity and
            its values and contents, and the difference to the rows before: inserted, deleted,
            updated

The document is updated in place, so that elements keep their identity, and restored afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from time import thread_time
from typing import Any

from lxml import etree

from axlog.document.parser import make_parser
from lab.generators.appendix import AppendixUpdate
from lab.generators.appendix_views import VIEWS

Rows = dict[Any, Any]
"""What identifies a row, to what it shows."""


def seconds(work: Callable[[], object]) -> float:
    """The processor time of a function."""
    start = thread_time()
    work()
    return thread_time() - start


def least(work: Callable[[], object], times: int = 3) -> float:
    """The least time of a few runs, in milliseconds."""
    return 1e3 * min(seconds(work) for _ in range(times))


class LxmlDocument:
    """A document in lxml, with the appendix views over it."""

    def __init__(self, text: str) -> None:
        self.root: Any = etree.fromstring(text.encode(), make_parser())
        self._paths = {name: etree.XPath(view.xpath) for name, view in VIEWS.items()}
        self.find = self.apply = 0.0

    @contextmanager
    def updated(self, update: AppendixUpdate, kind: str) -> Iterator[None]:
        """The document with an update applied; `find` and `apply` hold the times of these steps."""
        path = etree.XPath(update.meant)
        start = thread_time()
        targets: Any = path(self.root)
        self.find = 1e3 * (thread_time() - start)
        parents = {id(t.getparent()): t.getparent() for t in targets}
        children = [(parent, list(parent)) for parent in parents.values()]
        fragment = _fragment(update.content)
        start = thread_time()
        made = _inserted(targets, fragment) if kind == "insert" else _deleted(targets)
        self.apply = 1e3 * (thread_time() - start)
        try:
            yield
        finally:
            if kind == "insert":
                _deleted(made)
            else:
                for parent, before in children:
                    parent[:] = before

    def nodes(self, view: str) -> Any:
        """The nodes of a view's rows."""
        return self._paths[view](self.root)

    def rows(self, view: str) -> Rows:
        """Every row: its identity, values and contents."""
        found = self.nodes(view)
        if view == "Q13":
            return {item: _shown(item) for item in found}
        if found and not isinstance(found[0], str):
            return {node: etree.tostring(node, with_tail=False) for node in found}
        return {(text.getparent(), text.is_tail): str(text) for text in found}

    def timed(self, view: str, before: Rows) -> tuple[tuple[float, int], tuple[float, int]]:
        """Milliseconds and number: of the nodes evaluated again, and of the rows that changed."""
        start = thread_time()
        nodes = self.nodes(view)
        middle = thread_time()
        parts = self.difference(view, before)
        end = thread_time()
        return (1e3 * (middle - start), len(nodes)), (1e3 * (end - middle), sum(map(len, parts)))

    def difference(self, view: str, before: Rows) -> tuple[list[Any], list[Any], list[Any]]:
        """The rows re-evaluated, and those inserted, deleted or updated."""
        now = self.rows(view)
        gained = [(key, shown) for key, shown in now.items() if key not in before]
        lost = [(key, shown) for key, shown in before.items() if key not in now]
        other = [(key, now[key]) for key in now.keys() & before.keys() if now[key] != before[key]]
        return gained, lost, other


def _shown(item: Any) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    texts = tuple(str(text) for text in item.xpath("name/text()"))
    contents = (etree.tostring(one, with_tail=False) for one in item.findall("description"))
    return texts, tuple(contents)


def _fragment(content: str) -> Any:
    """The content that an update inserts, without the whitespace that is not kept."""
    fragment = etree.fromstring(content, make_parser())
    for element in fragment.iter():
        if element.tail is not None and not element.tail.strip():
            element.tail = None
        if len(element) and element.text is not None and not element.text.strip():
            element.text = None
    return fragment


def _inserted(targets: Any, fragment: Any) -> list[Any]:
    made = []
    for target in targets:
        copied = deepcopy(fragment)
        target.append(copied)
        made.append(copied)
    return made


def _deleted(targets: Any) -> list[Any]:
    for target in targets:
        target.getparent().remove(target)
    return []
