"""Documents that feed each other on Spark, and channels: the connections between queries.

A view that feeds a stream (`streams: {NAME: {view: DOCUMENT.VIEW}}`) writes its changes, as
updates, to a file that the other document's query reads like any source. Each side is repeated
separately after a crash, and nothing is lost or duplicated in between. Derived updates are never
late: the stream's call gets `late="clock"`. Documents may feed each other in a cycle where the
embedded engine allows it (`systems.py`): each batch of a query is one round. A run that ends
restarts the queries of a cycle until its files do not grow, or at most `settings: {rounds: N}`
times. Channels of one process, which other processes cannot read, are refused.

A channel is read by name on the driver, which acknowledges what is in a checkpoint. Tasks read
their parts without a name, with the filter that the driver used.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lxml import etree

from axlog.connect.channels.row_updates import updates_of
from axlog.connect.channels.streams import ChannelSource
from axlog.connect.kinds import Origin
from axlog.connect.protocol import PartNumber, Source
from axlog.connect.sinks.jsonl import JsonLinesOptions, JsonLinesSink
from axlog.connect.sources import jsonl
from axlog.errors import PipelineError
from axlog.pipeline.model import PipelineModel
from axlog.runtime.connections import OpenSink, SourcePlan, open_channel, source_plans
from axlog.runtime.systems import System, Wire
from axlog.runtime.upstream_filters import filter_of
from axlog.views.change import Change

_CALL = "{urn:axlog}call"


class PipelineSource:
    """Creates a source of the file, on the driver or in a task."""

    def __init__(self, model: PipelineModel, plan: SourcePlan) -> None:
        self.name = plan.name
        self._make = partial(plan.open, model)
        self.streams = () if plan.stream is None else (plan.stream,)

    def __call__(self) -> Source:
        return self._make()


class OwnChannelSource(ChannelSource):
    """A source that closes its own channel."""

    def close(self) -> None:
        super().close()
        self.channel.close()


class ChannelFeed:
    """Creates the source of a stream that reads a channel."""

    def __init__(self, model: PipelineModel, document: str, stream: str, channel: str) -> None:
        self.name = f"{document}/streams/{stream}"
        self.streams = (stream,)
        self._model, self._channel = model, channel
        self._reader = f"{model.name or 'axlog'}.{document}.{stream}"

    def __call__(self) -> Source:
        """For the driver: by name."""
        channel = open_channel(self._model, self._channel)
        return OwnChannelSource(channel, *self.streams, self._reader)

    def part(self, wanted: Sequence[str] | None) -> Source:
        """For a task: without a name, with the driver's filter at that time."""
        made = None if wanted is None else filter_of(wanted)
        channel = open_channel(self._model, self._channel)
        return OwnChannelSource(channel, *self.streams, None, made)


class WireSource:
    """Creates the source of a stream that a view feeds."""

    def __init__(self, wire: Wire, path: Path) -> None:
        self.name = f"{wire.document}/streams/{wire.stream}"
        self.streams = (wire.stream,)
        self._path = path

    def __call__(self) -> Source:
        options = jsonl.JsonLinesOptions(path=str(self._path))
        return jsonl.JsonLinesSource(options, Origin())


def wire_sink(wire: Wire, path: Path, run: str, *, is_keyed: bool = True) -> JsonLinesSink:
    """Return a sink that writes the changes of a view as the updates of a stream, one per line."""

    def lines(batch: int, part: PartNumber, changes: Sequence[Change]) -> bytes:
        updates = (
            update
            for change in changes
            for update in updates_of(change, wire.stream, is_keyed=is_keyed)
        )
        return b"".join(
            json.dumps(update.plain(), ensure_ascii=False).encode() + b"\n" for update in updates
        )

    return JsonLinesSink(JsonLinesOptions(path=str(path)), Origin(run=run), lines)


class Wiring:
    """The wires of a pipeline on Spark, and the location of their files."""

    def __init__(self, model: PipelineModel, place: Path) -> None:
        self._model, self._place = model, place
        system = System(model)  # refuses cycles that may not terminate
        self.wires, self.groups, self.cyclic = system.wires, system.groups, system.cyclic
        self._is_keyed = system.is_keyed
        self._refuse_memory()

    def written(self, group: Sequence[str]) -> int:
        """Return the bytes that the cycles of a group of documents have produced so far."""
        paths = [self._path(wire) for wire in self.cyclic if wire.document in group]
        return sum(path.stat().st_size for path in paths if path.exists())

    def _refuse_memory(self) -> None:
        for name, channel in self._model.channels.items():
            if channel.kind == "memory":
                raise PipelineError(
                    "AX841",
                    f"the channel {name!r} belongs to one process, but the engine spark has "
                    f"several",
                    advice="use a channel of kind http, redis or kafka, or feed the stream by"
                    " `view:`; or run it with --engine embedded",
                )

    def _path(self, wire: Wire) -> Path:
        return self._place / "wires" / f"{wire.view}-{wire.document}-{wire.stream}.jsonl"

    def sources(self, document: str) -> list[Any]:
        """Return the sources of a document's messages, in the order of the file."""
        found: list[Any] = []
        for stream, one in self._model.documents[document].streams.items():
            if one.channel is not None:
                found.append(ChannelFeed(self._model, document, stream, one.channel))
        found += [WireSource(w, self._path(w)) for w in self.wires if w.document == document]
        plans = [plan for plan in source_plans(self._model) if plan.document == document]
        return [*(PipelineSource(self._model, plan) for plan in plans), *found]

    def sinks(self, document: str, run: str) -> list[OpenSink]:
        """Return the sinks that take a document's changes to other documents."""
        return [
            OpenSink(str(wire), self._sink(wire, run), frozenset({wire.view}))
            for wire in self.wires
            if wire.origin == document
        ]

    def _sink(self, wire: Wire, run: str) -> JsonLinesSink:
        return wire_sink(wire, self._path(wire), run, is_keyed=self._is_keyed(wire))

    def declared(self, document: str, root: etree._Element) -> etree._Element:
        """Return the root of a document; its wired calls are never late."""
        wired = {wire.stream for wire in self.wires if wire.document == document}
        for call in root.iter(_CALL):
            if call.get("stream") in wired:
                call.set("late", "clock")
        return root
