"""Where the time of a running document's messages goes, measured on request.

    POST /live/profile        {"document": D, "seconds": N}

The messages of the next seconds are measured (`Document.profile`), and so are the sinks of the
pipeline. The answer has the seconds of each stage, with counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from axlog.errors import QueryError
from axlog.live.document import Document
from axlog.server.summaries import Observed

LONGEST = 60.0
"""Most seconds of one profile."""


class Profiler:
    """Takes profiles of the documents of a server, one at a time."""

    def __init__(self, observer: Observed) -> None:
        self._observer = observer
        self._running = Lock()

    def take(self, name: str, seconds: float) -> dict[str, Any]:
        """Measure a document for some seconds, and return the profile for JSON."""
        document = self._observer.live(name)
        if document is None:
            raise QueryError(
                "AX203",
                f"there is no document {name[:100]!r} in this process",
                advice="axlog explain --profile measures messages of a file",
            )
        if not self._running.acquire(blocking=False):
            raise QueryError("AX211", "another profile is being taken", advice="try again later")
        try:
            return self._taken(document, seconds)
        finally:
            self._running.release()

    def _taken(self, document: Document, seconds: float) -> dict[str, Any]:
        before = _by_name(self._observer.sinks())
        start = time.monotonic()
        with document.profile() as found:
            time.sleep(seconds)
        elapsed = time.monotonic() - start
        sinks = [
            {
                "name": name,
                "changes": after["changes"] - before.get(name, {}).get("changes", 0),
                "seconds": after["seconds"] - before.get(name, {}).get("seconds", 0.0),
            }
            for name, after in _by_name(self._observer.sinks()).items()
        ]
        stages = {**found.seconds, "sinks": sum(sink["seconds"] for sink in sinks)}
        return {**found.to_dict(), "seconds": stages, "elapsed": elapsed, "sinks": sinks}


def _by_name(sinks: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {sink["name"]: sink for sink in sinks}
