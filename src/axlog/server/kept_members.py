"""The members that subscribers added to families, kept across restarts of the server.

With a directory, every member is a record of a state log (`store/state_log.py`): its document and
family, its owner, its parameters, and the channel that follows it. A server that starts again
watches them again. A member whose family is not published, or whose owner has lost a right, stays
in the log and is not watched: a server that starts with both has it again. Without a directory
members end with the server, as channels do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from axlog.errors import ChannelError, StoreError
from axlog.store.files import DiskFiles
from axlog.store.state_log import StateLog

DIRECTORY = "members.families"
"""The directory of the log, beside the journals of channels."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class KeptMember:
    """One member, as it was added."""

    document: str
    family: str
    owner: str
    name: str
    parameters: dict[str, Any]
    channel: str | None = None


class KeptMembers:
    """The members of all subscribers, by document, family, owner and name."""

    def __init__(self, directory: Path | None = None) -> None:
        self._members: dict[tuple[str, str, str, str], KeptMember] = {}
        self._log: StateLog | None = None
        self._lock = Lock()
        self.generation = 0
        """The number of restarts."""
        if directory is None:
            return
        place = directory / DIRECTORY
        try:
            self._log = StateLog(DiskFiles(place, private=True), "members", VERSION)
        except OSError as error:
            reason = error.strerror or error
            raise ChannelError("AX808", f"{str(place)!r} cannot be opened: {reason}") from None
        try:
            self._read(self._log)
        except (KeyError, RecursionError, TypeError, ValueError, StoreError) as error:
            self._log.close()
            raise ChannelError("AX806", f"{str(place)!r} has invalid members: {error}") from None

    def _read(self, log: StateLog) -> None:
        if log.is_new:
            log.replace([self._head()])
            return
        for records in log.changes():
            for record in records:
                self._apply(json.loads(record))
        self.generation += 1
        log.append([self._head()])

    def _head(self) -> bytes:
        return _record({"generation": self.generation})

    def _apply(self, record: dict[str, Any]) -> None:
        if "generation" in record:
            self.generation = int(record["generation"])
            return
        op, member = record["op"], KeptMember(**record["member"])
        if op == "add":
            self._members[_key(member)] = member
        else:
            self._members.pop(_key(member), None)

    def __iter__(self) -> Iterator[KeptMember]:
        return iter(list(self._members.values()))

    def add(self, member: KeptMember) -> None:
        """Keep a member; nothing has changed on an error."""
        self._write({"op": "add", "member": asdict(member)})

    def remove(self, member: KeptMember) -> None:
        """Forget a member."""
        self._write({"op": "remove", "member": asdict(member)})

    def _write(self, record: dict[str, Any]) -> None:
        with self._lock:
            if self._log is not None:
                try:
                    self._log.append([_record(record)])
                    if self._log.is_long:
                        every = [{"op": "add", "member": asdict(each)} for each in self]
                        self._log.replace([self._head(), *map(_record, [*every, record])])
                except StoreError as error:
                    raise ChannelError(
                        "AX808", f"the members cannot be written: {error.message}"
                    ) from error
            self._apply(record)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()


def _key(member: KeptMember) -> tuple[str, str, str, str]:
    return member.document, member.family, member.owner, member.name


def _record(written: dict[str, Any]) -> bytes:
    return json.dumps(written, ensure_ascii=False).encode()
