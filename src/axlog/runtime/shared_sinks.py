"""Sinks of several queries: one numbering of batches for all of them.

Each document is a separate query with its own batch numbers, but a sink knows one sequence of
batches and skips what it has. Every batch for a shared sink therefore gets the next number of a
common sequence. The assignment is on disk before the sink sees the batch, so a batch that Spark
repeats keeps its number.

One batch is written at a time. If a run was interrupted inside one, it is unknown whether the sinks
have it; its query repeats it first, and the others wait for that.

Law: the sinks get every batch of every document once, in the order of their numbers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from axlog.connect.sinks.files import replace_file
from axlog.errors import PipelineError

_REMEMBERED = 4
"""Batches of one writer whose numbers are kept: Spark repeats the last one only."""
_LONGEST = 600.0
"""Seconds to wait for a batch that another writer has to repeat."""


class Numbering:
    """The numbers of all batches for shared sinks."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._turn = threading.Condition()
        self._state: dict[str, Any] = {"run": uuid4().hex, "last": -1, "given": {}, "open": None}
        if path is not None and path.exists():
            self._state = json.loads(path.read_text(encoding="utf-8"))
        self.run: str = self._state["run"]
        self._writing: tuple[str, int] | None = None

    @contextmanager
    def turn(self, writer: str, batch: int) -> Iterator[int | None]:
        """Yield the number of a writer's batch under an exclusive lock; None if it was written."""
        with self._turn:
            if not self._turn.wait_for(lambda: self._is_free(writer, batch), _LONGEST):
                raise PipelineError(
                    "AX859",
                    f"{writer} waits for a batch of {self._state['open']} that was interrupted",
                )
            number = self._number(writer, batch)
            self._writing = None if number is None else (writer, batch)
        try:
            yield number
            if number is not None:
                self._note(open=None)
        finally:
            with self._turn:
                if number is not None:
                    self._writing = None
                self._turn.notify_all()

    def _is_free(self, writer: str, batch: int) -> bool:
        """Whether no batch is being written, and no other writer's batch was interrupted."""
        cut = self._state["open"]
        return self._writing is None and (cut is None or cut == [writer, batch])

    def _number(self, writer: str, batch: int) -> int | None:
        given = self._state["given"].setdefault(writer, {})
        known: int | None = given.get(str(batch))
        if known is not None:
            return known if self._state["open"] == [writer, batch] else None
        number = self._state["last"] + 1
        given[str(batch)] = number
        for old in sorted(map(int, given))[:-_REMEMBERED]:
            if old:  # every start repeats the first one
                del given[str(old)]
        self._note(last=number, open=[writer, batch])
        return int(number)

    def _note(self, **known: Any) -> None:
        self._state |= known
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._path, json.dumps(self._state).encode())
