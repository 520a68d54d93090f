"""A member of a family on a channel: its rows, then its changes, each once, also after a restart.

The journal of the channel notes every row that was published, by its key with a digest of its
values, in one write with the row. A member that is published again therefore brings the
difference: rows that are gone are deleted, other values replace the old ones, and rows that came
meanwhile are inserted.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.row_updates import KEY, ROW, key_of, row_xml, seconds
from axlog.document.stream_update import StreamUpdate
from axlog.live.view import View
from axlog.views.change import Change, Row


class MemberChannel:
    """The rows of one member on a channel, while that is allowed."""

    def __init__(
        self,
        view: View,
        channel: LocalChannel,
        stream: str,
        member: str,
        is_allowed: Callable[[], bool],
    ) -> None:
        """`stream` names the updates, `member` the notes of the channel.

        The caller holds the lock of the document until `start` has returned.
        """
        self._view, self._channel, self._stream = view, channel, stream
        self._prefix = _prefix(member)
        self._is_allowed = is_allowed
        self._has_missed = False  # whether changes were not published

    def start(self) -> None:
        """Publish the difference to the rows that were published before, then every change."""
        self._publish_difference()
        self._view.subscribe(self._take)

    def _take(self, change: Change) -> None:
        if not self._is_allowed():
            self._has_missed = True
        elif self._has_missed:
            self._has_missed = False
            self._publish_difference()
        else:
            at = seconds(change.microseconds) if change.microseconds else None
            if change.op == "delete":
                self._delete(key_of(change.row), at)
            elif change.op == "update" and change.before is not None:
                self._delete(key_of(change.before), at)
                self._insert(change.row, at)
            elif change.op == "insert":
                self._insert(change.row, at)

    def _publish_difference(self) -> None:
        rows = {key_of(row): row for row in self._view.rows()}
        for name, known in self._channel.notes(self._prefix).items():
            row = rows.get(name.removeprefix(self._prefix))
            if row is None or _digest(row) != known:
                self._delete(name.removeprefix(self._prefix), None)
        for row in rows.values():
            self._insert(row, None)

    def _insert(self, row: Row, at: int | str | None) -> None:
        """Publish a row, unless it is there already."""
        name = self._prefix + key_of(row)
        if self._channel.note(name) is None:
            update = StreamUpdate(self._stream, "insert", row_xml(row), at)
            self._channel.publish_all([update], (name, _digest(row)))

    def _delete(self, key: str, at: int | str | None) -> None:
        """Publish the deletion of a row, if it is there."""
        name = self._prefix + key
        if self._channel.note(name) is not None:
            pattern = f'match /{ROW}[@{KEY} = "{key}"]'
            self._channel.publish_all(
                [StreamUpdate(self._stream, "delete", pattern, at)], (name, "")
            )


def forget_member(channel: LocalChannel, member: str) -> None:
    """Drop the notes of a member that was removed. Its rows stay on the channel."""
    for name in channel.notes(_prefix(member)):
        channel.publish_all([], (name, ""))


def _prefix(member: str) -> str:
    return f"member {member} "


def _digest(row: Row) -> str:
    return blake2b(row_xml(row).encode(), digest_size=16).hexdigest()
