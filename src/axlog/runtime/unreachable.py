"""Unreachable sources and sinks: sources report it by small files, sinks by waiting.

Spark reads a source in a separate process, so its failures are written to a file beside the
checkpoint, where the driver finds them. A failing sink is retried with growing pauses, and the
batch waits for it. A run with `once` gives up after a few attempts, and so does one that is
stopped.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from axlog.errors import AxlogError, ConnectorError, PipelineError
from axlog.retry import Backoff
from axlog.runtime.progress import Lagging

TRIES = 5
BACKOFF = Backoff()
"""The pauses between attempts."""


def pause_after(tries: int) -> float:
    """How long to wait after this many failed attempts."""
    return BACKOFF.pause(tries)


def words(error: Exception) -> str:
    """Describe an error."""
    return error.message if isinstance(error, AxlogError) else str(error)


def tell(place: str, index: int, error: str, since: float, tries: int) -> None:
    """Record that a source cannot be read, since when (wall clock) and after how many attempts.

    Best effort: display only, so write errors are ignored.
    """
    directory = Path(place) / "lagging"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        aside = directory / f"{index}.part"
        aside.write_text(json.dumps([error, since, tries]), encoding="utf-8")
        aside.replace(directory / f"{index}.json")
    except OSError:
        return


def tell_no_more(place: str, index: int) -> None:
    """Record that a source can be read again."""
    (Path(place) / "lagging" / f"{index}.json").unlink(missing_ok=True)


def lagging(place: str, names: Sequence[str]) -> list[Lagging]:
    """Return the unreadable sources; none if there is no place to record them."""
    found: list[Lagging] = []
    if not place:
        return found
    for index, name in enumerate(names):
        try:
            text = (Path(place) / "lagging" / f"{index}.json").read_text(encoding="utf-8")
        except OSError:
            continue
        error, since, tries = json.loads(text)
        found.append(Lagging(name, error, round(max(0.0, time.time() - since), 1), tries))
    return found


class Patience:
    """Writes to sinks that may be unreachable."""

    def __init__(self, once: bool = False, stopping: threading.Event | None = None) -> None:
        self._once = once
        self._stopping = stopping or threading.Event()
        self._troubles: dict[str, tuple[str, float, int]] = {}

    def write(self, name: str, write: Callable[[], None]) -> None:
        """Write until it succeeds, the run is stopped, or (`once`) the attempts are used up."""
        while True:
            try:
                write()
            except (ConnectorError, OSError) as error:
                _, since, tries = self._troubles.get(name, ("", time.time(), 0))
                self._troubles[name] = (words(error), since, tries + 1)
                if self._once and tries + 1 >= TRIES:
                    raise PipelineError("AX859", f"{name}: {words(error)}") from error
                if self._stopping.wait(pause_after(tries + 1)):
                    message = f"stopped while {name} was lagging: {words(error)}"
                    raise PipelineError("AX859", message) from error
                continue
            self._troubles.pop(name, None)
            return

    def lagging(self) -> list[Lagging]:
        """Return the sinks that cannot be written now."""
        now = time.time()
        return [
            Lagging(name, error, round(now - since, 1), tries)
            for name, (error, since, tries) in list(self._troubles.items())
        ]
