"""The state that an engine keeps of keyed orders, each delivered or past its deadline.

The on-time view runs over a long input of the order monitor, several times over the same messages:
with collection; without it; and with it but without the declared keys. Every order ships, one in
ten past its deadline. The benchmark counts the rows, deadlines and key values that the join keeps,
and the bytes of the process. (Rows of the view itself, which were delivered to a sink, are part of
the bytes, not of the counts.) All variants emit the same rows. `never` is emitted with the keys
only, because without them an order may come again.
"""

from __future__ import annotations

import gc
from itertools import islice
from time import perf_counter
from typing import Any

from axlog.live.document import Document
from axlog.live.internals import streams_of
from axlog.live.options import Options
from axlog.samples import orders
from lab.benchmarks.measuring import Plot, Result
from lab.benchmarks.messages import plain
from lab.benchmarks.million import resident

_PIECE = 500
RUNS: dict[str, dict[str, Any]] = {
    "with collection": {"facts": orders.KEYS},
    "with collection, shipped after ordered": {"facts": orders.KEYS, "query": orders.WITHIN},
    "without the keys": {},
    "without collection": {"facts": orders.KEYS, "collect": "off"},
}
Line = list[tuple[float, float]]


def garbage(count: int = 20_000, slices: int = 20) -> Result:
    """Feed `count` orders with their shipments, and record the state after each slice."""
    result = Result("garbage", "what the on-time view keeps of keyed orders")
    result.sizes = {"orders": count, "slices": slices, "window, orders": int(0.02 * 50_000)}
    kept: dict[str, Line] = {}
    memory: dict[str, Line] = {}
    told: dict[str, dict[str, int]] = {}
    for name, options in RUNS.items():
        gc.collect()
        run = _Run(options)
        start = resident()
        messages = orders.messages(2 * count, late_share=0.1, ship_share=1)
        for _ in range(slices):
            run.feed(messages, 2 * count // slices)
            kept.setdefault(name, []).append((run.orders, run.entries))
            memory.setdefault(name, []).append((run.orders, resident() - start))
        told[name] = run.told
        result.figures[f"{name}: entries at the end"] = run.entries
        result.figures[f"{name}: entries at half"] = kept[name][slices // 2 - 1][1]
        result.figures[f"{name}: us a message"] = 1e6 * run.taken / run.messages
        result.figures[f"{name}: MB more at the end"] = max(0.0, memory[name][-1][1])
        for op, number in run.told.items():
            result.figures[f"{name}: {op}"] = number
    title = "the on-time view over keyed orders"
    result.plots = [
        Plot(f"{title}: entries of the join", "orders", "rows, deadlines, key values", kept),
        Plot(f"{title}: memory", "orders", "MB more than at the start", memory),
    ]
    same = len({each.get("insert") for each in told.values()}) == 1
    result.remarks.append("all tell the same rows" if same else "THE ROWS DIFFER")
    return result


class _Run:
    """One document, and its results so far."""

    def __init__(self, options: dict[str, Any]) -> None:
        query = options.get("query", orders.ON_TIME)
        facts = options.get("facts", ())
        others = {name: options[name] for name in options.keys() - {"query", "facts"}}
        self.doc = Document(
            orders.DOCUMENT,
            views={"v": query},
            facts=facts,
            options=Options(keep="needed", **others),
        )
        self.told: dict[str, int] = {}
        self.orders = self.messages = 0
        self.taken = 0.0

    def feed(self, messages: Any, count: int) -> None:
        while count > 0 and (piece := plain(islice(messages, min(count, _PIECE)))):
            count -= len(piece)
            start = perf_counter()
            changes = [self.doc.feed(stream, message, at=at) for stream, message, at in piece]
            self.taken += perf_counter() - start
            self.messages += len(piece)
            self.orders += sum(stream == "orders" for stream, _, _ in piece)
            for change in (change for each in changes for change in each):
                self.told[change.op] = self.told.get(change.op, 0) + 1

    @property
    def entries(self) -> int:
        return sum(sum(w.sizes().values()) for w in streams_of(self.doc).collector.joins)
