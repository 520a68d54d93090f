"""Where the time of a document's messages goes: parse, match, join, group, emit, nodes.

While a profile is taken, the generated functions of the streams (`feed_writer.py`) read the clock
between their stages; otherwise they contain no code for it. A message that becomes nodes is one
stage, `nodes`, because its stages are not separate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from axlog.reporting import counted

STAGES = ("check", "parse", "match", "join", "group", "emit", "nodes")
"""The stages of a message, in their order.

check: its bytes and time; parse: or the check of its form, if it is matched on its bytes; match:
its bindings for the views' patterns; join: with the rows of other messages; group: the rows,
aggregates and order of the views; emit: subscribers and sinks;
nodes: messages that become nodes, as a whole."""


@dataclass(slots=True)
class Profile:
    """The elapsed seconds, by stage, and the counts of the messages since the profile began.

    >>> import axlog
    >>> doc = axlog.Document(streams=["s"], views={"all": "match //a/$x return $x"})
    >>> with doc.profile() as found:
    ...     _ = doc.feed_many("s", ["<a>1</a>", "<b/>"])
    >>> found.messages, found.matched, found.changes
    (2, 1, 1)
    """

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    messages: int = 0
    unread: int = 0  # not parsed: no view wants them, by their bytes
    matched: int = 0  # with bindings for some view
    rows: int = 0  # bindings
    changes: int = 0
    nodes: int = 0  # messages that became nodes, or took the general path

    def to_dict(self) -> dict[str, object]:
        """The profile for JSON."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __str__(self) -> str:
        total = sum(self.seconds.values()) or 1.0
        lines = [
            f"{counted(self.messages, 'message')}, {self.unread} not parsed, {self.matched} matched"
            f" with {counted(self.rows, 'row')}, {self.nodes} made into nodes;"
            f" {counted(self.changes, 'change')}"
        ]
        for stage, seconds in self.seconds.items():
            each = 1e6 * seconds / max(self.messages, 1)
            lines.append(f"  {stage:<6} {100 * seconds / total:5.1f} %  {each:8.2f} us a message")
        return "\n".join(lines)
