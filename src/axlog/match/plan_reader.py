"""Reads the messages of a stream by their layouts, or else as the stream's plan does.

    reader = PlanReader(plan)          where messages arrive; it learns
    bags = reader.bags(message, time)

Law: the bags are those of the plan (`stream_plan.py`).
"""

from __future__ import annotations

from lxml.etree import XMLSyntaxError, fromstring

from axlog.document.parser import Element
from axlog.evaluate.joins import Bag
from axlog.match.layout_reader import LayoutReader
from axlog.match.stream_plan import MessagePlan


class PlanReader:
    """A plan with what it has learned of the layouts of messages."""

    __slots__ = ("_counts", "_layouts", "_messages", "_plan")

    def __init__(self, plan: MessagePlan) -> None:
        self._plan = plan
        relations = (*plan.here, *plan.everywhere)
        self._counts = tuple(at for at, one in enumerate(relations) if not one.columns)
        self._messages = 0
        self._layouts: LayoutReader | None = None
        if plan.shared is None and plan.wanted is None:
            self._layouts = LayoutReader(plan.here, plan.everywhere, plan.limits)

    @property
    def knows_layouts(self) -> bool:
        """Whether most messages need no parse."""
        return self._layouts is not None and self._layouts.match is not None

    def bags(
        self, message: bytes, time: int, root: Element | None = None
    ) -> tuple[Bag, ...] | None:
        """The bags of a message; None if it must go through the document.

        `root` is the message's root, if it was parsed with others.
        """
        layouts = self._layouts
        if layouts is None:
            return self._plan.bags(message, time, root)
        self._messages += 1
        if root is None and layouts.match is not None and len(message) <= layouts.longest:
            try:
                found = layouts.match(message.decode())
            except UnicodeDecodeError:
                found = None
            if found is not None:
                leaf = layouts.leaves[found.lastindex or 0]
                assert leaf is not None
                return self._as_bags(leaf(found, time, message))
        if self._plan.declines(message):
            return None
        if root is None:
            try:
                root = fromstring(message, self._plan.parser)
            except XMLSyntaxError:
                return None  # the document reports the error
        layouts.left -= 1
        if not layouts.left:
            layouts.note(message, root, self._messages)
        return self._plan.match(root, time, message)

    def _as_bags(self, found: tuple[Bag | int, ...]) -> tuple[Bag, ...]:
        """Replace the counts of relations without columns by bags."""
        if not self._counts:
            return found  # type: ignore[return-value]
        bags = list(found)
        for at in self._counts:
            count = bags[at]
            bags[at] = {(): count} if count else {}  # type: ignore[dict-item]
        return tuple(bags)  # type: ignore[arg-type]
