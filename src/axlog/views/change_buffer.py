"""The newest changes of a view, retained so that subscribers can resume from a position."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

from axlog.errors import ChannelError
from axlog.views.change import Change


class ChangeBuffer:
    """At most `most` changes of a view, the newest, in the order of their positions."""

    def __init__(self, most: int, position: int) -> None:
        """`position` is the position of the view now: later changes are retained."""
        self.most = most
        self.first = position  # every emitted change after this position is retained
        self._changes: deque[Change] = deque()

    def add(self, changes: Sequence[Change]) -> None:
        """Retain emitted changes, and drop the oldest beyond the limit."""
        kept = self._changes
        kept.extend(changes)
        while len(kept) > self.most:
            self.first = kept.popleft().position

    def after(self, position: int) -> list[Change]:
        """The changes after a position that is still retained."""
        kept = list(self._changes)
        return kept[bisect_right(kept, position, key=_position) :]


def not_retained(view: str, position: int, first: int | None, last: int) -> ChannelError:
    """The error for a position from which a subscriber cannot resume."""
    expected = f"a position from {first} to {last}" if first is not None else f"position {last}"
    return ChannelError(
        "AX803",
        f"the view {view!r} does not retain the changes after position {position}",
        expected=expected,
        advice="start with a snapshot: subscribe(callback, snapshot=True)",
    )


def _position(change: Change) -> int:
    return change.position
