"""Waiting for what another process or thread does, where no event of it can be awaited."""

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any


def eventually(holds: Callable[[], Any], seconds: float = 60) -> Any:
    """Return the first true answer; fail after these seconds."""
    until = monotonic() + seconds
    while not (found := holds()):
        assert monotonic() < until, "it did not come to hold"
        sleep(0.01)
    return found
