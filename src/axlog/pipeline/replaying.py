"""Why a row is there, where the engine that shows it keeps no documents: the input read again.

Sources are read by position (`connectors/protocol.py`), and what was read once can be read again
from the beginning. So a widget of the pipeline is fed anew in this process, without sinks, up to
what there is now, and asked. It stays for the next question, which then costs what came since.

Not handled: sources that have let go of their beginning or keep a log that one process writes; more
messages than `MOST`. Both are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from axlog.errors import AxlogError, PipelineError
from axlog.pipeline.embedded import Runner
from axlog.pipeline.model import PipelineModel, Settings
from axlog.views.why import Derivation

MOST = 200_000
"""Messages that are read again."""
AGAIN = frozenset({"directory", "jsonl", "kafka"})
"""Kinds of sources that anybody can read again from their beginning."""


class Replay:
    """A pipeline's input, read again for questions."""

    def __init__(self, model: PipelineModel, most: int = MOST) -> None:
        self._model = model
        self._most = most
        self._lock = Lock()
        self._runners: dict[str, Runner] = {}

    def why(self, widget: str, view: str, row: Mapping[str, Any]) -> list[Derivation]:
        """The row's derivations; with many documents its first column says which one."""
        with self._lock:
            runner = self._runner(widget)
            while runner.round() or not runner.is_done:
                if runner.progress.messages > self._most:
                    raise PipelineError(
                        "AX869", f"this would read more than {self._most:,} messages again"
                    )
            given = dict(row)
            key = str(given.pop("document", "")) if self._is_many(widget) else ""
            return runner.instances[widget].widgets[key].view(view).why(given)

    def plain(self, widget: str, view: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """The derivations for JSON, or the reason why there are none."""
        try:
            found = self.why(widget, view, row)
        except (AxlogError, KeyError) as error:
            return {"reason": error.message if isinstance(error, AxlogError) else str(error)}
        return {
            "derivations": [
                [{"pattern": m.pattern, "path": m.path, "time": m.time, "origin": m.origin}
                 for m in one.matched]
                for one in found[:5]
            ]
        }  # fmt: skip

    def close(self) -> None:
        """Let go of the widgets."""
        for runner in self._runners.values():
            runner.close()
        self._runners.clear()

    def _is_many(self, widget: str) -> bool:
        return self._model.widgets[widget].documents is not None

    def _runner(self, widget: str) -> Runner:
        if widget not in self._runners:
            self._runners[widget] = Runner(_alone(self._model, widget), once=True)
        return self._runners[widget]


def _alone(model: PipelineModel, name: str) -> PipelineModel:
    """One widget of a pipeline without sinks and checkpoint, keeping all that comes."""
    widget = model.widgets[name]
    streams = widget.streams.values()
    written = [one.source for one in streams if one.source is not None] + widget.sources
    odd = sorted({source.kind for source in written} - AGAIN)
    odd += ["a view" for one in streams if one.view] + [
        "a channel" for one in streams if one.channel
    ]
    if odd:
        raise PipelineError("AX869", f"what came from {odd[0]} cannot be read again here")
    views = {
        view: one.model_copy(update={"sinks": [], "channel": None})
        for view, one in widget.views.items()
    }
    settings = Settings(batch=model.settings.batch, tune="off", collect="off")
    return model.model_copy(
        update={
            "widgets": {name: widget.model_copy(update={"views": views, "settings": None})},
            "sinks": {},
            "channels": {},
            "dead_letters": None,
            "settings": settings,
        }
    )
