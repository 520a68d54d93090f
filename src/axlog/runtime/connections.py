"""The sources and sinks of a pipeline file, opened, with their names and streams or views.

A source is named by its place in the file (`monitor/streams/orders`, `monitor/sources/0`).
Checkpoints store its position under this name. A sink that writes tables is opened once for each of
its views, any other sink once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from axlog.connect.channels.protocol import Channel
from axlog.connect.channels.streams import ChannelSink, ChannelSource
from axlog.connect.kinds import (
    ChannelKind,
    Column,
    Origin,
    Secret,
    SinkKind,
    SourceKind,
    ViewShape,
)
from axlog.connect.protocol import (
    Parted,
    PartNumber,
    PartWriter,
    Refusal,
    Sink,
    SinkPart,
    Source,
)
from axlog.document.stream_update import LISTS
from axlog.errors import AxlogError, PipelineError
from axlog.extras import not_installed
from axlog.pipeline import kinds
from axlog.pipeline.model import PipelineModel, SinkModel, SourceModel
from axlog.runtime.list_source import ListSource
from axlog.views.change import Change, Row

AnyKind = SourceKind[Any] | SinkKind[Any] | ChannelKind[Any]
DEAD_LETTERS = ViewShape(
    "dead_letters", tuple(Column(name, "text") for name in ("stream", "origin", "error", "content"))
)
"""Rejected messages as rows: they go to sinks like those of any view."""
BATCHES_APART = 1 << 32
"""Maximum number of changes in one batch, where a position is a batch and a number."""


def _open(kind: AnyKind, name: str, written: Mapping[str, Any], origin: Origin) -> Any:
    """Create a connector; exceptions of its library become errors of axlog."""
    options = kind.options.model_validate(written)
    try:
        return kind.make(options, origin)
    except (AxlogError, OSError):
        raise  # has a code, or may be available later
    except ImportError as error:
        raise not_installed(error.name or kind.name) from None
    except Exception as error:
        raise PipelineError(
            "AX825",
            f"the {kind.role} {name!r} cannot be opened:"
            f" {type(error).__name__}: {_without_secrets(str(error), options)}",
            advice=f"check the options of the kind {kind.name!r}: axlog check --reference",
        ) from None


def _without_secrets(text: str, options: Any) -> str:
    """Remove the secrets of some options from a foreign text."""
    for given in dict(options).values():
        for secret in given.values() if isinstance(given, dict) else (given,):
            if isinstance(secret, Secret):
                text = text.replace(secret.reveal(), "***")
    return text


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source of the file: its stream, and how to open it."""

    name: str
    document: str
    stream: str | None  # None if its messages name their streams
    written: SourceModel | None = None
    channel: Channel | None = None
    brings_lists: bool = False

    def open(self, model: PipelineModel) -> Source:
        """Open the source; external dependencies may be unavailable."""
        if self.channel is not None and self.stream is not None:
            reader = f"{model.name or 'axlog'}.{self.document}.{self.stream}"
            return ChannelSource(self.channel, self.stream, reader)
        if self.written is None:
            raise PipelineError("AX852", f"{self.name} has no source")
        kind = kinds.source_kind(self.written.kind)
        origin = Origin(
            directory=model.directory,
            stream=LISTS if self.brings_lists else self.stream,
            namespaces=model.namespaces,
            brings_lists=self.brings_lists,
        )
        source: Source = _open(kind, self.name, self.written.written, origin)
        return ListSource(source) if self.brings_lists else source


def open_channels(model: PipelineModel) -> dict[str, Channel]:
    """Open the channels of a pipeline; views and streams share a channel by its name."""
    return {name: open_channel(model, name) for name in model.channels}


def open_channel(model: PipelineModel, name: str) -> Channel:
    """Open one channel of a pipeline."""
    written = model.channels[name]
    kind = kinds.channel_kind(written.kind)
    origin = Origin(directory=model.directory, stream=name, namespaces=model.namespaces)
    channel: Channel = _open(kind, name, written.written, origin)
    return channel


def source_plans(
    model: PipelineModel, channels: Mapping[str, Channel] | None = None
) -> Iterator[SourcePlan]:
    """Return every source of a pipeline, in the order of the file."""
    for document, written in model.documents.items():
        for stream, one in written.streams.items():
            if one.source is not None:
                name = f"{document}/streams/{stream}"
                yield SourcePlan(name, document, stream, one.source)
            elif one.channel is not None and channels is not None:
                name = f"{document}/streams/{stream}"
                yield SourcePlan(name, document, stream, channel=channels[one.channel])
        for at, source in enumerate(written.sources):
            yield SourcePlan(f"{document}/sources/{at}", document, None, source)
        for at, source in enumerate(written.updates):
            name = f"{document}/updates/{at}"
            yield SourcePlan(name, document, None, source, brings_lists=True)


@dataclass
class OpenSink:
    """An open sink, and the views whose changes it receives."""

    name: str
    sink: Sink
    views: frozenset[str]
    ops: frozenset[str] | None = None  # the changes that it receives; None: all
    recipe: SinkRecipe | None = None  # to write parts of it in tasks; None: it has no parts
    written: int = 0  # changes
    seconds: float = 0.0  # that it took to write them
    _writer: PartWriter | None = None

    def write(
        self, batch: int, changes: Sequence[Change], parts: Sequence[SinkPart] = (), more: int = 0
    ) -> None:
        """Write the changes of its views that it receives, and the parts of the batch that tasks
        have written, with `more` changes in them.
        """
        mine = received(changes, self.views, self.ops)
        start = perf_counter()
        try:
            if parts and self.recipe is not None and isinstance(self.sink, Parted):
                self._writer = self._writer or self.recipe.writer()
                own = [SinkPart(0, self._writer(batch, PartNumber(), mine))] if mine else []
                self.sink.commit(batch, [*own, *parts])
            else:
                self.sink.write(batch, mine)
            self.written += len(mine) + more
        finally:
            self.seconds += perf_counter() - start


def received(
    changes: Iterable[Change], views: Collection[str], ops: Collection[str] | None
) -> list[Change]:
    """Return the changes that a sink receives."""
    return [c for c in changes if c.view in views and (ops is None or c.op in ops)]


@dataclass(frozen=True)
class SinkRecipe:
    """How to write parts of a sink in any process."""

    name: str
    kind: str
    written: Mapping[str, Any]
    origin: Origin
    views: frozenset[str]
    ops: frozenset[str] | None

    def writer(self) -> PartWriter:
        """Make what writes the parts."""
        kind = kinds.sink_kind(self.kind)
        assert kind.parts is not None
        made: PartWriter = kind.parts(kind.options.model_validate(self.written), self.origin)
        return made


def has_parts(written: SinkModel) -> bool:
    """Whether a sink can be written in parts."""
    kind = kinds.sink_kind(written.kind)
    options = kind.options.model_validate(written.written)
    return kind.parts is not None and kind.has_parts(options)


@dataclass(frozen=True)
class SinkPlan:
    """A sink of the file, and its views."""

    name: str
    written: SinkModel
    views: list[str] = field(default_factory=list)

    def open(self, model: PipelineModel, run: str, shapes: dict[str, ViewShape]) -> list[OpenSink]:
        """Open the sink; one for each view if it writes tables."""
        kind = kinds.sink_kind(self.written.kind)
        groups = (
            [[view] for view in self.views] if _is_per_view(kind, self.written) else [self.views]
        )
        opened = []
        for group in groups:
            origin = Origin(
                directory=model.directory,
                run=run,
                views=[shapes[view] for view in group],
                namespaces=model.namespaces,
            )
            sink: Sink = _open(kind, self.name, self.written.written, origin)
            name = self.name if len(groups) == 1 else f"{self.name}/{group[0]}"
            views, ops = frozenset(group), self._ops(kind)
            recipe = None
            if has_parts(self.written):
                options = self.written.written
                recipe = SinkRecipe(name, self.written.kind, options, origin, views, ops)
            opened.append(OpenSink(name, sink, views, ops, recipe))
        return opened

    def _ops(self, kind: SinkKind[Any]) -> frozenset[str] | None:
        return kind.ops if self.written.ops is None else frozenset(self.written.ops)


def _is_per_view(kind: SinkKind[SinkModel], written: SinkModel) -> bool:
    values = written.written.values()
    return kind.is_table or any(isinstance(value, str) and "{view}" in value for value in values)


def sink_plans(model: PipelineModel) -> list[SinkPlan]:
    """Return every sink of a pipeline that some view names."""
    plans: dict[str, SinkPlan] = {}
    for document, view, full in model.view_names():
        for at, written in enumerate(model.documents[document].views[view].sinks):
            if isinstance(written, str):
                if written not in model.sinks:
                    raise PipelineError("AX854", f"there is no sink {written!r}")
                plan = plans.setdefault(written, SinkPlan(written, model.sinks[written]))
            else:
                plan = plans.setdefault(f"{full}/sinks/{at}", SinkPlan(f"{full}/{at}", written))
            plan.views.append(full)
    if model.dead_letters is not None:
        dead = SinkPlan("dead_letters", model.dead_letters, [DEAD_LETTERS.name])
        plans["dead_letters"] = dead
    return list(plans.values())


def open_sinks(
    model: PipelineModel,
    run: str,
    shapes: Iterable[ViewShape],
    channels: Mapping[str, Channel] | None = None,
    which: Callable[[SinkPlan], bool] = lambda plan: True,
) -> list[OpenSink]:
    """Open the sinks of a pipeline for a run, including the channels of views."""
    known = {shape.name: shape for shape in (*shapes, DEAD_LETTERS)}
    plans = [plan for plan in sink_plans(model) if which(plan)]
    opened = [opened for plan in plans for opened in plan.open(model, run, known)]
    for document, view, full in model.view_names():
        name = model.documents[document].views[view].channel
        if channels is not None and name is not None and name in channels:
            sink = ChannelSink(channels[name], view, f"{run}/{full}")
            opened.append(OpenSink(f"{full}/channel", sink, frozenset({full})))
    return opened


def as_changes(refused: Iterable[Refusal], batch: int) -> list[Change]:
    """Return the rejected messages of a batch as changes of `dead_letters`.

    The key of a row is its position: equal messages may be rejected more than once.
    """
    columns = tuple(column.name for column in DEAD_LETTERS.columns)
    made = []
    for number, one in enumerate(refused, start=batch * BATCHES_APART + 1):
        content = one.content
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
        row = Row(columns, (one.stream, one.origin, one.error, text), key=(str(number),))
        made.append(Change("insert", row, view=DEAD_LETTERS.name, position=number))
    return made
