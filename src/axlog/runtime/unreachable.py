"""Unreachable sources and sinks, and their retries, in both engines.

A failing source or sink is retried with growing pauses. The start of the failure and the number of
attempts are recorded (`Troubles`), for progress, health and metrics. A batch waits for its sinks
(`Patience`). A run with `once` gives up after a few attempts, and one that is stopped gives up at
once.

Spark reads a source in a separate process, so its failures are written to a file beside the
checkpoint, where the driver finds them.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from logging import INFO, WARNING, getLogger
from pathlib import Path

from axlog.errors import AxlogError, ConnectorError, PipelineError
from axlog.reporting import report
from axlog.retry import Backoff
from axlog.runtime.progress import Lagging

_events = getLogger("axlog.pipeline")

TRIES = 5
"""Attempts of a run with `once`."""
BACKOFF = Backoff()
"""The pauses between attempts."""


def pause_after(tries: int) -> float:
    """How long to wait after this many failed attempts."""
    return BACKOFF.pause(tries)


def words(error: Exception) -> str:
    """Describe an error."""
    return error.message if isinstance(error, AxlogError) else str(error)


def record_failure(place: str, index: int, error: str, since: float, tries: int) -> None:
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


def clear_failure(place: str, index: int) -> None:
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


@dataclass(slots=True)
class Troubles:
    """The failures of an unreachable connector, and the time of the next attempt."""

    error: str
    since: float
    tries: int = 0
    again: float = 0.0

    def note(self, error: Exception, now: float, what: str) -> None:
        """Record another failed attempt."""
        self.error = words(error)
        self.tries += 1
        code = error.code if isinstance(error, AxlogError) else None
        report(_events, WARNING, "cannot be reached", connector=what, tries=self.tries, code=code,
               error=self.error)  # fmt: skip
        self.again = now + BACKOFF.pause(self.tries)

    def over(self, now: float, what: str) -> None:
        """Record that it works again."""
        report(_events, INFO, "reached again", connector=what, tries=self.tries,
               seconds=round(now - self.since, 3))  # fmt: skip


class Interrupted(PipelineError):
    """A stop was requested while a sink was unreachable: its batch is not delivered."""


class Patience:
    """Writes to sinks that may be unreachable."""

    def __init__(
        self,
        once: bool = False,
        stopping: threading.Event | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> None:
        """`on_wait` is called before every pause."""
        self._once = once
        self._stopping = stopping or threading.Event()
        self._on_wait = on_wait
        self.troubles: dict[str, Troubles] = {}  # of the sinks that cannot be written now
        self.errors: Counter[str] = Counter()  # failed attempts of each sink

    def write(self, name: str, write: Callable[[], None]) -> None:
        """Write until it succeeds, the run is stopped, or (`once`) the attempts are used up."""
        while True:
            try:
                write()
                break
            except (ConnectorError, OSError) as error:
                self._wait(name, error)
        troubles = self.troubles.pop(name, None)
        if troubles is not None:
            troubles.over(time.monotonic(), name)

    def _wait(self, name: str, error: Exception) -> None:
        """Pause before the next attempt, or give up."""
        now = time.monotonic()
        self.errors[name] += 1
        troubles = self.troubles.setdefault(name, Troubles("", now))
        troubles.note(error, now, name)
        if self._once and troubles.tries >= TRIES:
            raise PipelineError(
                "AX859",
                f"{name}: {troubles.error}",
                advice="check that it is available; without --once it is retried",
            ) from error
        if self._on_wait is not None:
            self._on_wait()
        if self._stopping.wait(max(0.0, troubles.again - time.monotonic())):
            message = f"stopped while {name} was lagging: {troubles.error}"
            raise Interrupted("AX859", message) from error

    def lagging(self) -> list[Lagging]:
        """Return the sinks that cannot be written now."""
        return lagging_of(self.troubles)


def lagging_of(troubles: dict[str, Troubles]) -> list[Lagging]:
    """Return unreachable connectors for progress, by name."""
    now = time.monotonic()
    return [
        Lagging(name, each.error, round(now - each.since, 1), each.tries)
        for name, each in list(troubles.items())
    ]
