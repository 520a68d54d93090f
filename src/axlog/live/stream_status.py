"""The counts and the state of one stream of a document."""

from __future__ import annotations

from dataclasses import dataclass

from axlog.document.times import Shown, Times, shown


@dataclass(slots=True)
class StreamStatus:
    """The counts and the state of one stream."""

    stream: str
    messages: int = 0
    refused: int = 0
    ended: bool = False
    microseconds: int | None = None  # time of the last message
    unparsed: int = 0  # messages that were skipped for their raw bytes (validate="wanted")
    unmatched: int = 0  # messages that matched no wanted pattern
    wanted: tuple[str, ...] = ()  # the patterns that views want from the stream
    # Whether possible futures restrict `wanted`, and not only the place of the call.
    is_tuned: bool = False
    nodes: int = 0  # size of the filter's automaton; 0 where patterns are tested one by one
    times: Times = "seconds"

    @property
    def last(self) -> Shown | None:
        """The time of the last message."""
        return None if self.microseconds is None else shown(self.microseconds, self.times)

    @property
    def dropped(self) -> int:
        """Messages that no view wanted. They moved the clock and had no other effect."""
        return self.unparsed + self.unmatched

    @property
    def kept(self) -> int:
        """Messages that some view could use."""
        return self.messages - self.refused - self.dropped

    @property
    def is_unsubscribed(self) -> bool:
        """Whether no message of the stream can matter any more."""
        return self.is_tuned and not self.wanted
