"""The parameter tables of a document as a source: the members of its families as they come and go.

    {"family": "late", "add": {"late[\"INRIA\"]": "match ..."}, "remove": []}

The driver looks at the tables and appends every change to a journal beside the checkpoint, before
it offers it; tasks read the journal only. So a repeated batch has the same members. The position of
the source is a number of lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from axlog.connect.parameter_tables import ParameterRow
from axlog.connect.protocol import Position, Reading
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError
from axlog.pipeline.families import FamilyView
from axlog.runtime.family_members import PARAMETERS

FILE = "tables.jsonl"
"""The journal, beside the checkpoint."""
Members: TypeAlias = "Mapping[str, str | dict[str, str]]"
"""The members of a family by name: their queries; of rows without a query, `{"error": ...}`."""
Look: TypeAlias = "Callable[[], Mapping[str, Members]]"
"""Returns the members of the families whose tables may have changed."""


class TableFeed:
    """Creates the source of the tables of a document."""

    name = "parameter tables"
    streams = ("\0tables",)  # no stream: others do not wait for it

    def __init__(self, place: str | Path, look: Look | None) -> None:
        """`place` is the checkpoint. Without `look` the members stay as they are."""
        self._path, self._look = Path(place) / FILE, look

    @classmethod
    def of(cls, place: str | Path, members: Mapping[str, Members]) -> TableFeed:
        """The source of families whose members are views of their own, as they are now.

        The rows that they have at first are not emitted, nor the end of those that go.
        """
        feed = cls(place, None)
        TableSource(feed._path, lambda: members, is_quiet=True).read(None, 0)
        return feed

    def __call__(self) -> TableSource:
        """For the driver."""
        return TableSource(self._path, self._look)

    def part(self, wanted: Sequence[str] | None) -> TableSource:
        """For a task: what the driver has seen."""
        return TableSource(self._path, None)


class TableSource:
    """Brings the changes of parameter tables."""

    def __init__(self, path: Path, look: Look | None, *, is_quiet: bool = False) -> None:
        self._path, self._look, self._is_quiet = path, look, is_quiet
        self._lines = _lines(path)
        self._members: dict[str, dict[str, str | dict[str, str]]] = {}  # by family, after all lines
        for said in self._lines:
            known = self._members.setdefault(said["family"], {})
            for name in said.get("remove", ()):
                known.pop(name, None)
            known |= said.get("add", {})

    def read(self, position: Position, limit: int) -> Reading:
        """Return the changes after a position; the driver looks at the tables first."""
        if self._look is not None:
            self._note(self._look())
        start = position or 0
        found = enumerate(self._lines[start : start + limit], start + 1)
        updates = [_update(number, said) for number, said in found]
        end = start + len(updates)
        return Reading(updates, end, more=end < len(self._lines))

    def _note(self, now: Mapping[str, Members]) -> None:
        """Append the difference between the journal and the tables."""
        is_first = not self._members
        for family, members in now.items():
            known = self._members.setdefault(family, {})
            added = {name: text for name, text in members.items() if known.get(name) != text}
            removed = [name for name, text in known.items() if members.get(name) != text]
            for said in self._changes(added, removed, is_first):
                self._append({"family": family, **said})
            for name in removed:
                del known[name]
            known |= added

    def _changes(
        self, added: Members, removed: list[str], is_first: bool
    ) -> Iterator[dict[str, Any]]:
        if not self._is_quiet:
            if added or removed:
                yield {"remove": removed, "add": added}
            return
        if removed:
            yield {"remove": removed, "quiet": True}
        if added:
            yield {"add": added, "quiet": is_first}

    def _append(self, said: dict[str, Any]) -> None:
        self._lines.append(said)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.truncate(_complete(self._path))
            file.write(json.dumps(said, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Nothing is open between two calls."""


def _lines(path: Path) -> list[dict[str, Any]]:
    """The changes that a journal has; the last line may be torn."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes()[: _complete(path)].splitlines()]


def _complete(path: Path) -> int:
    """The bytes of a journal's complete lines: a crash may have left the beginning of another."""
    return path.read_bytes().rfind(b"\n") + 1


def _update(number: int, said: Mapping[str, Any]) -> StreamUpdate:
    rest = {key: value for key, value in said.items() if key != "family"}
    written, origin = json.dumps(rest, ensure_ascii=False), f"parameter tables, change {number}"
    return StreamUpdate(said["family"], PARAMETERS, written, None, origin)


def has_tables(place: str | Path) -> bool:
    """Whether a checkpoint has the members of families."""
    return (Path(place) / FILE).exists()


class PolledTables:
    """Looks at the tables of a pipeline's families, each as often as its `poll` says."""

    def __init__(self, families: Sequence[FamilyView]) -> None:
        self._families = list(families)
        self._again: dict[str, float] = {}

    def __call__(self) -> dict[str, Members]:
        found: dict[str, Members] = {}
        for family in self._families:
            now = monotonic()
            if now < self._again.get(family.name, 0.0):
                continue
            self._again[family.name] = now + family.table.options.poll
            rows = family.table.changed_rows()
            if rows is not None:
                found[family.name] = {family.member(row): _text(family, row) for row in rows}
        return found


def _text(family: FamilyView, row: ParameterRow) -> str | dict[str, str]:
    """The query of a member; why a row has none."""
    try:
        return family.text(row)
    except AxlogError as error:
        return {"error": error.describe()}
