"""The sinks of a pipeline file on Spark: opened for their run, written batch by batch.

A sink of one document's views uses that document's run and batch numbers. A sink of several
documents is opened once, and the batches of all are numbered for it together (`shared_sinks.py`).
Unreachable sinks are retried, and the batch waits for them (`unreachable.py`). Tasks write the
sinks of a view if all of them have parts (`sink_parts.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from axlog.connect.channels.protocol import Channel
from axlog.connect.kinds import ViewShape
from axlog.connect.protocol import Refusal
from axlog.errors import PipelineError
from axlog.pipeline.model import PipelineModel
from axlog.runtime.connections import (
    DEAD_LETTERS,
    OpenSink,
    SinkPlan,
    as_changes,
    open_channel,
    open_sinks,
    sink_plans,
)
from axlog.runtime.shared_sinks import Numbering
from axlog.runtime.sink_parts import BatchParts, PartStage, part_directory, written_by_tasks
from axlog.runtime.unreachable import Patience
from axlog.runtime.wires import Wiring
from axlog.views.change import Change


def is_shared(model: PipelineModel, plan: SinkPlan) -> bool:
    """Whether the queries of several documents write to a sink."""
    owner = {name.full: name.document for name in model.view_names()}
    owners = {owner[view] for view in plan.views if view in owner}
    return len(owners) > 1 or (plan.views == [DEAD_LETTERS.name] and len(model.documents) > 1)


class SharedSinks:
    """The sinks of several documents."""

    def __init__(
        self,
        model: PipelineModel,
        shapes: Mapping[str, ViewShape],
        numbering: Numbering,
        patience: Patience,
    ) -> None:
        self._numbering, self._patience = numbering, patience
        known = {**shapes, DEAD_LETTERS.name: DEAD_LETTERS}
        self.names = {plan.name for plan in sink_plans(model) if is_shared(model, plan)}
        self.sinks = [
            sink
            for plan in sink_plans(model)
            if plan.name in self.names
            for sink in plan.open(model, numbering.run, known)
        ]

    def write(self, writer: str, batch: int, changes: Sequence[Change]) -> None:
        """Write a batch of one document to all of them, once."""
        if not self.sinks:
            return
        with self._numbering.turn(writer, batch) as number:
            if number is None:
                return
            for sink in self.sinks:
                self._patience.write(sink.name, partial(sink.write, number, changes))

    def close(self) -> None:
        for sink in self.sinks:
            sink.sink.close()


class DocumentSinks:
    """All sinks of a document's changes; opened when its run is known."""

    exactly_once = True

    def __init__(
        self,
        model: PipelineModel,
        document: str,
        shapes: Mapping[str, ViewShape],
        shared: SharedSinks,
        wiring: Wiring,
        patience: Patience,
        by_tasks: bool = True,
    ) -> None:
        """`by_tasks`: tasks may write parts of sinks; reports then lack these changes."""
        self._by_tasks = by_tasks
        self._model, self._document, self._shapes = model, document, shapes
        self._shared, self._wiring, self._patience = shared, wiring, patience
        self._names = {
            view: model.full_name(document, view) for view in model.documents[document].views
        }
        self.sinks: list[OpenSink] = []

    def open(self, run: str, first: Sequence[Change]) -> None:
        """Open the sinks for a run and write the initial rows."""
        mine = {*self._names.values(), DEAD_LETTERS.name}
        written = self._model.documents[self._document].views.values()
        named = {view.channel for view in written if view.channel is not None}
        channels: dict[str, Channel] = {name: open_channel(self._model, name) for name in named}
        self.sinks = [
            sink
            for sink in open_sinks(self._model, run, self._shapes.values(), channels, self._is_own)
            if sink.views & mine
        ]
        self.sinks += self._wiring.sinks(self._document, run)
        self.write(0, first)

    def _is_own(self, plan: SinkPlan) -> bool:
        mine = {*self._names.values(), DEAD_LETTERS.name}
        return plan.name not in self._shared.names and bool(mine & set(plan.views))

    def stage(self, engines: int, first: int, place: str) -> PartStage | None:
        """Return what writes parts of the sinks in tasks; None if the driver writes all of them."""
        others = {view for sink in self._shared.sinks for view in sink.views}
        mine = written_by_tasks(self._names.values(), self.sinks, others)
        names = {view: full for view, full in self._names.items() if full in mine}
        if not names or not self._by_tasks:
            return None
        recipes = [sink.recipe for sink in self.sinks if sink.recipe and sink.views & mine]
        return PartStage(names, tuple(recipes), first, engines, part_directory(place))

    def write(self, batch: int, changes: Any) -> None:
        """Write a batch to the sinks."""
        self.write_parts(batch, changes, BatchParts())

    def write_parts(self, batch: int, changes: Any, parts: BatchParts) -> None:
        """Write a batch to the sinks: changes of the driver, and parts that tasks wrote."""
        named = [replace(change, view=self._names[change.view]) for change in changes]
        self._give(self._document, batch, named, parts)

    def refuse(self, batch: int, refused: Sequence[Refusal]) -> None:
        """Write rejected messages."""
        if refused and self._model.settings.on_error == "stop":
            raise PipelineError("AX407", f"{refused[0].origin}: {refused[0].error}")
        self._give(f"{self._document}/letters", batch, as_changes(refused, batch), None)

    def _give(
        self, writer: str, batch: int, changes: list[Change], parts: BatchParts | None
    ) -> None:
        """Write changes of views, with their parts; without parts, dead letters."""
        for sink in self.sinks:
            if (DEAD_LETTERS.name in sink.views) == (parts is None):
                more = () if parts is None else (parts.of(sink.name), parts.counts[sink.name])
                self._patience.write(sink.name, partial(sink.write, batch, changes, *more))
        self._shared.write(writer, batch, changes)

    def close(self) -> None:
        for sink in self.sinks:
            sink.sink.close()
