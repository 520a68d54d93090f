"""The order monitor over many messages: time per message and memory, slice by slice.

Time must be flat. Memory is the state that the views need. Without keys every order may ship again,
so memory grows with the orders.
"""

from __future__ import annotations

import resource
from itertools import islice
from pathlib import Path
from time import perf_counter

from axlog.samples import orders
from lab.benchmarks.measuring import Plot, Result
from lab.benchmarks.messages import monitor, plain

_PIECE = 500  # messages generated at a time; generating them is not measured


def million(count: int = 50_000, slices: int = 20) -> Result:
    """Feed `count` messages, and record time and memory for each slice."""
    result = Result("million", "time a message and memory over a long run of the order monitor")
    doc = monitor()()
    drawn = iter(orders.messages(count))
    times: list[float] = []
    memory: list[float] = []
    changes = 0
    for _ in range(slices):
        left, taken = count // slices, 0.0
        while left > 0 and (piece := plain(islice(drawn, min(left, _PIECE)))):
            left -= len(piece)
            start = perf_counter()
            for stream, message, at in piece:
                changes += len(doc.feed(stream, message, at=at))
            taken += perf_counter() - start
        times.append(1e6 * taken / max(1, count // slices))
        memory.append(resident())
    result.sizes = {"messages": count, "slices": slices, "changes": changes}
    step = count // slices
    for name, values in (("us a message", times), ("MB resident", memory)):
        points = [((at + 1.0) * step, value) for at, value in enumerate(values)]
        result.plots.append(Plot(f"the order monitor: {name}", "messages", name, {name: points}))
    half = slices // 2
    result.figures = {
        "us a message, best slice of the first half": min(times[:half]),
        "us a message, best slice of the second half": min(times[half:]),
        "MB resident at the end": memory[-1],
    }
    return result


def resident() -> float:
    """Megabytes of this process: current where the system reports it, else the peak."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / 1e6
