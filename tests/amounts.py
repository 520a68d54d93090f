"""How many random cases a test draws: a small seeded number, or a multiple of it.

`make test` runs the small number. `AXLOG_CASES=N` multiplies it, as `make stress` does: a test that
is fast enough for every change is then also a long search for the same law.
"""

import os

FACTOR = max(1, int(os.environ.get("AXLOG_CASES", "1")))


def cases(count: int) -> int:
    """The number of cases to draw where `count` are enough for every change."""
    return count * FACTOR


def chunks(count: int, size: int) -> range:
    """The first seeds of chunks of `size` seeds, so that workers can share `count` of them."""
    return range(0, cases(count), size)
