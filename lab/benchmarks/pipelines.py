"""The overhead of the embedded runner per message: reading, ordering, checkpoint, delivery.

The order monitor reads a growing file of JSON lines. Three variants are measured: the document
alone (each line parsed and fed); the runner without a checkpoint; and the runner with a checkpoint,
where every batch is on disk before it is applied. Then a restart replays the whole input from the
checkpoint.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from axlog.document.stream_update import read_line
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.samples import orders
from lab.benchmarks.measuring import Result, Side, interleave

BATCH = 1000


def pipelines(count: int = 20_000, rounds: int = 3) -> Result:
    """Measure `count` messages, a batch at a time."""
    result = Result("pipeline", "the embedded runner beside the document alone")
    result.sizes = {"messages": count, "rounds": rounds, "batch": BATCH}
    if find_spec("pydantic") is None or find_spec("yaml") is None:
        result.skipped = "the extra `pipeline` is not installed"
        return result
    lines = [json.dumps(message) for message in orders.messages(count)]
    with ExitStack() as opened, tempfile.TemporaryDirectory() as directory:
        sides: dict[str, Callable[[], Side[str]]] = {
            "document": _document,
            "runner": lambda: _runner(Path(directory), None, opened),
            "runner with checkpoint": lambda: _runner(Path(directory), "state", opened),
        }
        costs = interleave(sides, lines, BATCH, rounds)
        opened.close()
        for side in ("runner", "runner with checkpoint"):
            result.compare("a message", costs, side, "document")
        result.figures["a message: restart, us"] = _restart(Path(directory))
    return result


def _document() -> Side[str]:
    doc = Document(orders.DOCUMENT, views={"late": orders.LATE}, options=Options(keep="needed"))

    def take(lines: Sequence[str]) -> None:
        with doc.batch():
            for line in lines:
                doc.take(read_line(line))

    return take


def _model(directory: Path, path: str, checkpoint: str | None) -> Any:
    from axlog.pipeline.model import PipelineModel

    settings = {"batch": BATCH, "keep": "needed", "tune": "off", "checkpoint": checkpoint}
    written = {
        "engine": "embedded",
        "document": orders.DOCUMENT,
        "sources": {"kind": "jsonl", "path": path},
        "views": {"late": {"query": orders.LATE, "sinks": [{"kind": "memory"}]}},
        "settings": settings,
    }
    return PipelineModel.model_validate(written).located(directory)


def _runner(directory: Path, checkpoint: str | None, opened: ExitStack) -> Side[str]:
    from axlog.runtime.embedded import Runner

    number = len(list(directory.iterdir()))
    path = directory / f"in-{number}.jsonl"
    path.touch()
    state = None if checkpoint is None else f"{checkpoint}-{number}"
    runner = Runner(_model(directory, path.name, state), once=True)
    opened.callback(runner.close)

    def take(lines: Sequence[str]) -> None:
        with path.open("a") as file:
            file.write("\n".join(lines) + "\n")
        while runner.round():
            pass

    return take


def _restart(directory: Path) -> float:
    """The cost of a replayed message, in microseconds."""
    from axlog.runtime.embedded import Runner

    state = max(directory.glob("state-*"), key=lambda path: int(path.name.split("-")[1]))
    path = f"in-{state.name.split('-')[1]}.jsonl"
    started = perf_counter()
    runner = Runner(_model(directory, path, state.name), once=True)
    taken = perf_counter() - started
    fed = runner.progress.messages
    runner.close()
    return taken / max(fed, 1) * 1e6
