"""How a widget is spread over buckets: what travels, by what key, and why.

Each view is kept for itself. Where every stream's messages can be read as bindings
(`match/stream_plan.py`), only bindings travel, keyed by a column that every relation fed by a
stream has: a row of the view with this value then depends on no row with another. Relations without
columns (a branch that only must be there) go to every bucket. The column must be among the view's
own, or one row could come out of two buckets. Without such a column the view has one bucket.

What needs nodes (contents, values of nodes, streams that delete, end after `most` trees, enforced
keys, types) travels as whole messages to one bucket, all such views together. Where one definition
is kept over many documents, whole messages travel by the document's key.

Law 7 (DESIGN section 8): the changes are the embedded engine's, whatever the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from zlib import crc32

from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.match.stream_plan import MessagePlan
from axlog.query.compile import Column
from axlog.runtime.definition import Definition
from axlog.views.counting.maintainer import Counting

BUCKETS_PER_CORE = 2
ALL = -1
"""In place of a key's position: the relation goes to every bucket."""


@dataclass(frozen=True)
class Unit:
    """Views that are kept together, how they are spread, and the reason."""

    name: str
    views: tuple[str, ...]
    kind: str  # bindings, messages, documents
    buckets: int
    reason: str
    key: Column | None = None
    output: str | None = None  # the key as rows name it
    positions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by stream, of the key

    def bucket_of(self, value: object) -> int:
        """The bucket that a key's value belongs to; the same on every machine."""
        return crc32(str(value).encode()) % self.buckets

    def __str__(self) -> str:
        what = {
            "bindings": "bindings travel",
            "messages": "whole messages travel",
            "documents": "whole messages travel, by document",
        }[self.kind]
        key = f"key {self.key}" if self.key else "key document" if self.kind == "documents" else ""
        spread = f"{self.buckets} buckets" if self.buckets > 1 else "one partition"
        said = ", ".join(part for part in (spread, key, what) if part)
        return f"{', '.join(self.views)}: {said} ({self.reason})"


@dataclass(frozen=True)
class Lives:
    """Where engines and their state live (`state_placement.py`), and why."""

    at: str
    why: str

    def __str__(self) -> str:
        where = "on the driver" if self.at == "driver" else "with the executors"
        return f"{where} ({self.why})"


@dataclass(frozen=True)
class SparkPlan:
    """The units of a widget, in the order of its views."""

    units: tuple[Unit, ...]
    streams: tuple[str, ...]
    state: Lives | None = None  # None before it is decided

    def unit(self, name: str) -> Unit:
        return next(unit for unit in self.units if unit.name == name)

    def has(self, name: str) -> bool:
        return any(unit.name == name for unit in self.units)

    @property
    def buckets(self) -> int:
        return sum(unit.buckets for unit in self.units)

    def __str__(self) -> str:
        lines = ["Spark plan", *(f"  {unit}" for unit in self.units)]
        if self.state is not None:
            lines.append(f"  state lives {self.state}")
        if all(unit.buckets == 1 and unit.key is None for unit in self.units):
            lines.append("  no unit is spread: the embedded engine does the same faster")
        return "\n".join(lines)


def make_plan(
    definition: Definition, cores: int = 2, buckets: int | None = None, documents: bool = False
) -> SparkPlan:
    """The plan of a definition for so many cores."""
    count = buckets or BUCKETS_PER_CORE * cores
    streams = tuple(sorted(definition.widget().streams()))
    units: list[Unit] = []
    for number, group in enumerate(definition.groups or (tuple(definition.views),)):
        made = _of_group(definition, group, streams, count, documents) if group else ()
        # What came later has engines of its own: those that are there go on as they are.
        units += [replace(unit, name=f"{unit.name} +{number}") if number else unit for unit in made]
    return SparkPlan(tuple(units), streams)


def _of_group(
    definition: Definition,
    views: tuple[str, ...],
    streams: tuple[str, ...],
    count: int,
    documents: bool,
) -> list[Unit]:
    """The units of views that came together."""
    if documents:
        return [Unit("documents", views, "documents", count, "each document is an instance")]
    units: list[Unit] = []
    whole: dict[str, str] = {}
    for view in views:
        found = _of_view(definition, view, streams, count)
        if isinstance(found, Unit):
            units.append(found)
        else:
            whole[view] = found
    if whole:
        reason = "; ".join(dict.fromkeys(whole.values()))
        units.append(Unit("messages", tuple(whole), "messages", 1, reason))
    return units


def _of_view(definition: Definition, view: str, streams: tuple[str, ...], count: int) -> Unit | str:
    """A view's unit, or why its messages travel whole."""
    widget = definition.widget([view], keep="needed")
    plans: dict[str, MessagePlan] = {}
    for stream in streams:
        plan = streams_of(widget).engine.plan(stream)
        if plan is None:
            return _why_whole(widget, view, stream)
        if may_delete(widget, stream):
            return f"the stream {stream!r} may delete"
        plans[stream] = plan
    maintainer = widget.views[view].maintainer
    assert isinstance(maintainer, Counting)
    noted = {stream: _noted(widget, stream) for stream in streams}
    found = _key(plans, noted, maintainer.root.columns, _outputs(widget, view))
    if found is None:
        reason = "no column is in all relations that streams feed, so it cannot be spread"
        return Unit(f"view {view}", (view,), "bindings", 1, reason)
    key, output, positions = found
    reason = "every relation that a stream feeds has the key"
    return Unit(f"view {view}", (view,), "bindings", count, reason, key, output, positions)


def may_delete(widget: Document, stream: str) -> bool:
    tree = maintained(widget).tree
    return tree.call(tree.calls()[stream]).deletes != "no"


def _why_whole(widget: Document, view: str, stream: str) -> str:
    """Why a stream's messages cannot be read as bindings."""
    kept = widget.views[view]
    if not isinstance(kept.maintainer, Counting):
        return f"{view} is kept by {kept.chosen.name}, over the document"
    kinds = sorted({o.kind.value for o in kept.query.pattern.outputs} & {"id", "val", "cont"})
    if kinds:
        return f"{view} shows {', '.join(kinds)} of nodes"
    return f"the stream {stream!r} brings what must become nodes"


def _outputs(widget: Document, view: str) -> dict[Column, str]:
    """The columns of the program that rows show, with the names that rows give them."""
    found: dict[Column, str] = {}
    for output in widget.views[view].query.pattern.outputs:
        kind = output.kind.value
        column = f"${output.of}" if kind == "variable" else f"{output.of}.{kind}"
        found[column] = output.column
    return found


def _noted(widget: Document, stream: str) -> list[Column]:
    """The columns whose declared keys a stream's messages are matched with besides, in order.

    Their relations are the last of those at the message's root.
    """
    found: list[Column] = []
    for waiting, part, key in streams_of(widget).collector._keys_of(stream):
        side = waiting.pair.sides[part]
        assert side.key is not None
        found += [side.columns[side.key[0]]] * len(key.patterns)
    return found


def _key(
    plans: Mapping[str, MessagePlan],
    noted: Mapping[str, list[Column]],
    columns: tuple[Column, ...],
    outputs: Mapping[Column, str],
) -> tuple[Column, str, dict[str, tuple[int, ...]]] | None:
    """A column of the view that every fed relation with columns has, and where each has it.

    Values of declared keys go where their column's rows are, or to all buckets.
    """
    for column in columns:
        if column not in outputs:
            continue
        positions = {
            stream: _positions(plan, noted[stream], column) for stream, plan in plans.items()
        }
        known = {stream: at for stream, at in positions.items() if at is not None}
        if len(known) == len(positions) and any(
            at != ALL for each in known.values() for at in each
        ):
            return column, outputs[column], known
    return None


def _positions(plan: MessagePlan, noted: list[Column], column: Column) -> tuple[int, ...] | None:
    """Where each relation of a plan has a column; None if one with columns has it not."""
    own = len(plan.here) - len(noted)
    relations = (*plan.here[:own], *plan.everywhere)
    if any(r.columns and column not in r.columns for r in relations):
        return None
    at = [r.columns.index(column) if r.columns else ALL for r in relations]
    at[own:own] = [0 if of == column else ALL for of in noted]
    return tuple(at)
