"""Parts of batches that tasks write for the sinks of a pipeline on Spark.

A view whose sinks all have parts (`connect/protocol.py`) is written where its engines are: the
changes of an engine become one part of the batch for each sink, and only the parts travel to the
driver, which commits them. A large part is a file beside the checkpoint, which all machines can
reach; a small one travels with the report of its engine. The driver handles no single change.

All changes of any other view travel to the driver, which writes all of its sinks: those with a sink
that has no parts (tables as files, SQL, mail, pages, channels), that several documents share, or
that feeds another document. So do the rows that only the driver can know: those of final steps, and
those that all buckets rule out together. They are one more part of the batch.

Changes are numbered by part: each has a range of positions in the batch.

Law: the changes of all parts of a batch are the changes that the driver would write, each once. A
repeated batch has the same parts, with the same numbers.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from axlog.connect.protocol import PartNumber, PartWriter, SinkPart
from axlog.errors import AxlogError
from axlog.pipeline.model import PipelineModel
from axlog.runtime.change_packets import read_changes, renumbered
from axlog.runtime.connections import (
    BATCHES_APART,
    OpenSink,
    SinkRecipe,
    has_parts,
    received,
    sink_plans,
)
from axlog.runtime.pipeline_definition import plans_of

DIRECTORY = "sink-parts"
"""The directory of large parts, beside the checkpoint."""
SMALL = 64 * 1024
"""Bytes of a part that travels with a report."""


@dataclass(frozen=True)
class PartStage:
    """Writes the changes of engines in tasks."""

    names: Mapping[str, str]  # of the views that are written here: their names at the sinks
    recipes: tuple[SinkRecipe, ...]
    first: int  # the number of the first batch
    parts: int  # how many engines there are
    place: str = ""  # for large parts; '': there is none

    def write(
        self, batch: int, engine: int, changes: Sequence[Sequence[Any]]
    ) -> tuple[list[Sequence[Any]], Any]:
        """Write the changes of an engine in a batch, as in reports; return those that the driver
        has to write, and what it commits.
        """
        mine = [change for change in changes if change[0] in self.names]
        if not mine:
            return list(changes), None
        try:
            writers = [_writer(_Key(recipe)) for recipe in self.recipes]
        except (AxlogError, ImportError, OSError):  # this machine lacks something
            return list(changes), None
        batch += self.first
        apart = BATCHES_APART // (self.parts + 1)
        part = PartNumber(engine + 1, (engine + 1) * apart)
        ordered = renumbered(read_changes(mine), batch * BATCHES_APART + part.first)
        named = [replace(change, view=self.names[change.view or ""]) for change in ordered]
        written = []
        for recipe, writer in zip(self.recipes, writers, strict=True):
            given = received(named, recipe.views, recipe.ops)
            if given:
                body = writer(batch, part, given)
                written.append((recipe.name, len(given), *self._kept(part.number, body)))
        ops = Counter((change[0], change[1]) for change in mine)
        left = [change for change in changes if change[0] not in self.names]
        return left, (written, dict(ops))

    def _kept(self, number: int, body: bytes) -> tuple[int, bytes, str]:
        if len(body) <= SMALL or not self.place:
            return number, body, ""
        path = Path(self.place) / uuid4().hex
        path.write_bytes(body)
        return number, b"", str(path)


class _Key:
    """A recipe as the key of a cache."""

    def __init__(self, recipe: SinkRecipe) -> None:
        self.recipe = recipe
        views = [(view.name, view.columns) for view in recipe.origin.views]
        self._text = repr((recipe.kind, recipe.name, recipe.origin.run, views))
        self._written = dict(recipe.written)

    def __eq__(self, other: object) -> bool:
        is_same = isinstance(other, _Key) and self._text == other._text
        return is_same and self._written == getattr(other, "_written", None)

    def __hash__(self) -> int:
        return hash(self._text)


@lru_cache(maxsize=64)
def _writer(key: _Key) -> PartWriter:
    """Return the writer of a recipe, cached per process."""
    return key.recipe.writer()


@dataclass
class BatchParts:
    """The parts of a batch that tasks have written."""

    parts: dict[str, list[SinkPart]] = field(default_factory=dict)  # by sink
    counts: Counter[str] = field(default_factory=Counter)  # changes, by sink
    ops: Counter[str] = field(default_factory=Counter)  # changes, by operation

    def add(self, told: Any) -> None:
        """Add what `PartStage.write` returned."""
        written, ops = told
        for sink, count, number, body, path in written:
            self.parts.setdefault(sink, []).append(SinkPart(number, body, path))
            self.counts[sink] += count
        for (_, op), count in ops.items():
            self.ops[op] += count

    def of(self, sink: str) -> list[SinkPart]:
        """Return the parts for a sink, in order."""
        return sorted(self.parts.get(sink, ()), key=lambda part: part.number)

    def remove(self) -> None:
        """Remove the files, after the batch is committed."""
        for parts in self.parts.values():
            for part in parts:
                if part.path:
                    Path(part.path).unlink(missing_ok=True)


def part_directory(place: str) -> str:
    """Return the directory for large parts beside a checkpoint, without parts of earlier runs."""
    if not place:
        return ""
    path = Path(place) / DIRECTORY
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True, exist_ok=True)
    return str(path.resolve())


def written_by_tasks(
    views: Iterable[str], sinks: Sequence[OpenSink], elsewhere: Iterable[str]
) -> frozenset[str]:
    """Return the views of which tasks write all sinks; `elsewhere`: views of sinks that several
    documents share.
    """
    others = set(elsewhere)
    for sink in sinks:
        if sink.recipe is None:
            others |= sink.views
    return frozenset(views) - others


def delivery_lines(model: PipelineModel) -> list[str]:
    """Describe which process of Spark writes the sinks of each view, and why."""
    finals = {
        model.full_name(document, view)
        for document, plan in plans_of(model)
        for unit in plan.units
        if unit.cut is not None
        for view in unit.views
    }
    fed = {
        f"{one.view}"
        for document in model.documents.values()
        for one in document.streams.values()
        if one.view is not None
    }
    shared = {
        view
        for plan in sink_plans(model)
        if len({name.document for name in model.view_names() if name.full in plan.views}) > 1
        for view in plan.views
    }
    lines = []
    for document, view, full in model.view_names():
        mine = [plan for plan in sink_plans(model) if full in plan.views]
        kinds = ", ".join(plan.written.kind for plan in mine)
        whole = [plan.written.kind for plan in mine if not has_parts(plan.written)]
        why = ""
        if model.documents[document].views[view].channel is not None:
            why = "a channel takes its changes"
        elif full in fed or f"{document}.{view}" in fed:
            why = "it feeds another document"
        elif full in shared:
            why = "another document has the same sink"
        elif whole:
            why = f"{whole[0]} takes a batch as a whole"
        elif mine and full in finals:
            why = "the final step makes its rows there"
        where = f"on the driver: {why}" if why else "by tasks, if the state is with executors"
        if mine:
            lines.append(f"{full}: sinks {kinds} are written {where}")
        elif why:
            lines.append(f"{full}: its changes go through the driver: {why}")
    return lines
