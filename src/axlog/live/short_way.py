"""`ShortWay`: how the messages of one stream are processed without storing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from axlog.evaluate.joins import Bag
from axlog.live.replacements import Deliveries
from axlog.live.stream_status import StreamStatus
from axlog.match.layout_reader import LayoutReader
from axlog.match.stream_plan import MessagePlan
from axlog.views.counting.routes import Route

if TYPE_CHECKING:
    from axlog.live.feed_writer import Apply

Reader: TypeAlias = Callable[[bytes, int], "tuple[Bag, ...] | None"]
Read: TypeAlias = tuple[str, tuple[Bag, ...], int] | tuple[str, tuple[Bag, ...], int, str | None]
"""A message as a plan read it: stream, bags and time, and the key of a message that replaces."""


@dataclass(slots=True)
class ShortWay:
    """How the messages of one stream are processed without storing them."""

    plan: MessagePlan
    status: StreamStatus
    route: Route = field(repr=False)
    read: Reader = field(repr=False)
    """The bags of a message; None: it must take the long path."""
    unread: tuple[Bag, ...] | None = field(repr=False)
    """The result of `read` for a message that it did not parse; None: it parses all."""
    needs_nodes: bool = False
    """Whether some view needs nodes: wanted messages take the long path, the others need none."""
    arrive: Callable[[Mapping[int, Bag]], None] | None = field(repr=False, default=None)
    """Passes the matches on to the possible rows that are kept from them."""
    rejects: bool = False
    """Whether a view may refuse a message for its values, after it was matched."""
    delivered: Deliveries | None = field(repr=False, default=None)
    """The rows of the current messages, by key, of a stream that replaces."""
    source: str = field(repr=False, default="")
    """The generated function of the stream."""
    layouts: LayoutReader | None = field(repr=False, default=None)
    """Reads messages without parsing them, in the generated function."""
    needs_after: bool = False
    """Whether the generated function gives every message with rows to the collector."""
    keeps: bool = True
    """Whether messages are set aside to become nodes."""
    apply: Apply | None = field(repr=False, default=None)
    """Applies bags that were read elsewhere; generated when the first arrive."""
    has_apply: bool = False
    """Whether it was attempted to generate it."""

    def is_alike(self, old: ShortWay) -> bool:
        """Whether the generated function of a stream serves it after views were added.

        Relations that were added to its plan and its route concern the function only if it has the
        code of each relation in it.
        """
        plan, was = self.plan, old.plan
        return (
            self.route is old.route
            and plan.shared is not None
            and plan.shared is was.shared
            and (plan.wanted, plan.sees_markup) == (None, was.sees_markup)
            and was.wanted is None
            and self.arrive is None
            and old.arrive is None
            and self.keeps == old.keeps
            and old.needs_after
            and self.needs_after
        )
