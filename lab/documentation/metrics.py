"""The page of metrics: what a pipeline, a store and a channel say when they are asked.

One of each is run in a temporary directory, and its samples are read as `/metrics` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from axlog.connect.channels.registry import Channels
from axlog.connect.sinks.memory import MemorySink
from axlog.live.metrics import store_samples
from axlog.live.store import open_store
from axlog.pipeline.loader import check_text
from axlog.reporting import Sample
from axlog.runtime.embedded import Runner
from axlog.runtime.health import RunnerReport
from axlog.server.monitoring import channel_samples

_HEAD = """# Metrics

Made by `make docs` from what running parts say. Served as Prometheus' text format at `/metrics` by
`axlog serve`, and by `axlog run` with `--listen`; [operations](operations.md) says what to watch.
"""
_PIPELINE = """
engine: embedded
document: <orders><ax:call xmlns:ax="urn:axlog" stream="orders"/></orders>
sources: [{kind: memory, updates: [{stream: orders, insert: <order/>}]}]
views: {some: {query: "match /orders/order", sinks: [{kind: memory}]}}
"""


def page() -> str:
    """The whole page."""
    with TemporaryDirectory() as made:
        directory = Path(made)
        parts = (
            ("A pipeline", _of_pipeline(directory)),
            ("A store", _of_store(directory / "store")),
            ("Channels", _of_channels()),
        )
    return (
        "\n".join([_HEAD, *(line for title, rows in parts for line in _part(title, rows))]) + "\n"
    )


def _part(title: str, rows: list[str]) -> Iterator[str]:
    yield from (f"## {title}", "", "| name | kind | labels | |", "|---|---|---|---|", *rows, "")


def _rows(samples: Iterable[Sample]) -> list[str]:
    seen: dict[str, str] = {}
    for sample in samples:
        labels = ", ".join(f"`{name}`" for name in sample.labels if name != "le")
        row = f"| `{sample.name}` | {sample.kind.value} | {labels} | {sample.words} |"
        seen.setdefault(sample.name, row)
    return list(seen.values())


def _of_pipeline(directory: Path) -> list[str]:
    model = check_text(_PIPELINE, directory).model
    assert model is not None, "the pipeline of this module is in order"
    runner = Runner(model, once=True)
    try:
        runner.run()
        return _rows(RunnerReport(runner).samples())
    finally:
        runner.close()


def _of_store(directory: Path) -> list[str]:
    with open_store(directory, "<orders/>", views={"some": "match /orders/order"}) as widget:
        widget.publish("some", MemorySink())
        return _rows(store_samples("orders", widget))


def _of_channels() -> list[str]:
    channels = Channels()
    try:
        channels.make("orders")
        return _rows(channel_samples(channels))
    finally:
        channels.close()
