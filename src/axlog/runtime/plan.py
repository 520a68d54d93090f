"""The partitioning of a document over buckets: what is sent, by what key, and why.

Each view is maintained separately. If every stream's messages can be read as bindings
(`match/stream_plan.py`), only bindings are sent, keyed by a column that every relation fed by a
stream has: a row of the view with this value then depends on no row with another. Relations without
columns (a branch that only must exist) go to every bucket. The column must be one of the view's
own, or one row could come from two buckets. Where no column is in all relations, two or three of
the view's columns split it (`grid.py`): a relation goes to all buckets of the columns that it
lacks. Without such columns the view has one bucket. A message of a stream that replaces goes to the
bucket of its key if that is the column's value, and otherwise, with its key, to every bucket: the
rows of the message that it replaces may be anywhere.

A view with steps (aggregates, order, computed columns) may be split by any column that the fed
relations share, or by message where messages never meet (`views/counting/linearity.py`). Where a
step then needs rows of several buckets, every bucket runs the steps before it and hands over
partial aggregates, candidates or rows once a batch; the final step on the driver merges them
(`views/step_cut.py`, `final_step.py`).

A family (views that differ in constants) is one unit with one plan, whatever the number of its
members: the bindings of its general pattern are sent, and its parameter table. If all fed relations
have a parameter that must be equal to a text, they are split by it, and a member is in the bucket
of its text only. Otherwise they are split as those of other views, by a column that rows of members
show, and all buckets have all members.

Views that need nodes (contents, values of nodes, streams that delete or end after `most` trees,
enforced keys, types) receive whole messages in one bucket, all such views together. A stream that
deletes or ends concerns only the views that use it: nothing that it brings or deletes can be part
of another view's rows. Views that speak of time follow the document's clock, which a rejected
message does not move, so they stay with the engine that decides what is rejected. If no view needs
whole messages of such a stream, one engine without views decides that. If one definition is
maintained over many documents, whole messages are sent by the document's key.

Law 7 of docs/design.md: the changes are those of the embedded engine, whatever the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from zlib import crc32

from axlog.document.message_key import KeyPath
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view, streams_of
from axlog.live.view import View
from axlog.match.stream_plan import MessagePlan
from axlog.query.compile import Column
from axlog.query.pattern import Axis, Name, PatternNode, Variable
from axlog.query.steps import Compute, Group, Order, Step, clock_of, is_hidden, positions_of
from axlog.query.syntax_tree import Reference
from axlog.runtime.definition import Definition
from axlog.runtime.grid import ALL, LEAST, Dimension, Grid, cells, parts_of
from axlog.runtime.step_partitions import Fed, by_steps, column_of
from axlog.runtime.upstream_filters import tests_time
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.stepped import SteppedCounting
from axlog.views.family import Member
from axlog.views.maintainer import Maintainer
from axlog.views.step_cut import StepCut

BUCKETS = 16
"""Buckets of a view that can be partitioned, unless the pipeline names another number. It does not
depend on the cores that happen to be there: a checkpoint continues on any number of them.
"""


@dataclass(frozen=True)
class Unit:
    """Views that are maintained together, their partitioning, and the reason."""

    name: str
    views: tuple[str, ...]
    kind: str  # bindings, messages, documents
    buckets: int
    reason: str
    grid: Grid = ()
    """The columns that split it, each into some parts; none: by message, by document, or not."""
    replacing: frozenset[str] = frozenset()
    """The streams that replace their messages by the key of the buckets."""
    cut: StepCut | None = None
    """What buckets hand over to the final step; None: they emit the rows of the view."""
    by_message: bool = False
    """Whether every message goes to one bucket, whatever its values."""
    unused: frozenset[str] = frozenset()
    """The streams whose messages cannot be part of its views, and that must be sent whole."""
    judges: frozenset[str] = frozenset()
    """Without views: the streams of which it decides what is rejected."""
    parameter: int | None = None
    """Of a family: the number of the constant that is the key; None: members are everywhere."""

    def takes(self, stream: str) -> bool:
        """Whether messages of a stream are sent to it whole."""
        return self.kind != "bindings" and (not self.judges or stream in self.judges)

    @property
    def key(self) -> str | None:
        """The columns that split it."""
        return ", ".join(each.column for each in self.grid) or None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The same as named in rows; none if the buckets do not emit them."""
        return tuple(each.output for each in self.grid if each.output is not None)

    def owner_of(self, row: Sequence[object]) -> int:
        """The bucket that has a row of the initial document, in a unit with a cut."""
        known = [None if each.own is None else row[each.own] for each in self.grid]
        return cells(self.grid, known)[0]

    def cells(self, values: Sequence[object]) -> list[int]:
        """Return the buckets that may have rows with these values of its columns; None: any."""
        return cells(self.grid, values)

    def bucket_of(self, value: object) -> int:
        """Return the bucket of a key's value; the same on every machine."""
        return crc32(str(value).encode()) % self.buckets

    def __str__(self) -> str:
        what = {
            "bindings": "bindings travel",
            "messages": "whole messages travel",
            "documents": "whole messages travel, by document",
        }[self.kind]
        key = f"key {self.key}" if self.key else "key document" if self.kind == "documents" else ""
        if len(self.grid) > 1:
            key = f"keys {' x '.join(map(str, self.grid))}"
        key = "by message" if self.by_message else key
        if not self.views:
            return f"(no view): one bucket, {what} ({self.reason})"
        spread = f"{self.buckets} buckets" if self.buckets > 1 else "one bucket"
        summary = ", ".join(part for part in (spread, key, what) if part)
        final = "" if self.cut is None else f"; {self.cut}"
        return f"{', '.join(self.views)}: {summary} ({self.reason}{final})"


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
    """The units of a document, in the order of its views."""

    units: tuple[Unit, ...]
    streams: tuple[str, ...]
    state: Lives | None = None  # None before it is decided
    width: int = 1
    """The number of buckets, each with the engines of all units that are in it."""
    late: Mapping[str, str] = field(default_factory=dict)
    """The policy for late messages, by stream."""

    def unit(self, name: str) -> Unit:
        return next(unit for unit in self.units if unit.name == name)

    def has(self, name: str) -> bool:
        return any(unit.name == name for unit in self.units)

    @property
    def engines(self) -> int:
        return sum(unit.buckets for unit in self.units)

    def place(self, unit: Unit, number: int) -> int:
        """Return the bucket that has an engine of a unit. Views with one engine each are spread."""
        return (crc32(unit.name.encode()) + number) % self.width

    def inside(self, bucket: int) -> Iterator[tuple[Unit, int]]:
        """Yield the engines of a bucket: units, and numbers within them."""
        for unit in self.units:
            first = (bucket - crc32(unit.name.encode())) % self.width
            for number in range(first, unit.buckets, self.width):
                yield unit, number

    def __str__(self) -> str:
        lines = ["Spark plan", *(f"  {unit}" for unit in self.units)]
        engines = "one engine" if self.engines == 1 else f"{self.engines} engines"
        buckets = "one bucket" if self.width == 1 else f"{self.width} buckets"
        lines.append(f"  {engines} in {buckets}")
        if self.state is not None:
            lines.append(f"  state lives {self.state}")
        if all(unit.buckets == 1 and unit.key is None for unit in self.units):
            lines.append("  no unit is partitioned: the embedded engine is faster")
        return "\n".join(lines)


def make_plan(
    definition: Definition,
    buckets: int | None = None,
    documents: bool = False,
    width: int | None = None,
) -> SparkPlan:
    """Return the plan of a definition; it follows from the definition and these numbers alone.

    `width`: the number of buckets of an existing checkpoint.
    """
    count = buckets or BUCKETS
    document = definition.make()
    streams = tuple(sorted(document.streams()))
    tree = maintained(document).tree
    late = {stream: tree.call(node).late for stream, node in tree.calls().items()}
    units: list[Unit] = []
    for number, group in enumerate(definition.groups or (definition.names,)):
        finals = definition.final_steps and not number
        made = _of_group(definition, group, streams, count, documents, finals) if group else ()
        # Added views get their own engines: existing ones continue unchanged.
        units += [replace(unit, name=f"{unit.name} +{number}") if number else unit for unit in made]
    if width is None:
        width = count if any(unit.buckets > 1 for unit in units) else min(count, len(units))
    return SparkPlan(tuple(units), streams, width=max(1, width), late=late)


def _of_group(
    definition: Definition,
    views: tuple[str, ...],
    streams: tuple[str, ...],
    count: int,
    documents: bool,
    finals: bool,
) -> list[Unit]:
    """Return the units of views that were added together."""
    if documents:
        return [Unit("documents", views, "documents", count, "each document is an instance")]
    rejecting = [view for view in views if view in definition.rejecting]
    if rejecting:
        reason = f"{rejecting[0]} rejects messages, for all views or none"
        return [Unit("messages", views, "messages", 1, reason)]
    units: list[Unit] = []
    whole: dict[str, str] = {}
    for view in views:
        found = _of_view(definition, view, streams, count, finals)
        if isinstance(found, Unit):
            units.append(found)
        else:
            whole[view] = found
    judged = frozenset(stream for unit in units for stream in unit.unused)
    if whole:
        reason = "; ".join(dict.fromkeys(whole.values()))
        units.append(Unit("messages", tuple(whole), "messages", 1, reason))
    elif judged:
        reason = f"it decides which messages of {', '.join(sorted(judged))} are rejected"
        units.append(Unit("messages", (), "messages", 1, reason, judges=judged))
    return units


def _of_view(
    definition: Definition, view: str, streams: tuple[str, ...], count: int, finals: bool
) -> Unit | str:
    """Return a view's unit, or why its messages are sent whole."""
    document = definition.make([view], keep="needed")
    watched = document.views[definition.watched_name(view)]
    member = maintained(document).families.members.get(watched.name)
    if view in definition.families and member is None:
        return f"the members of {view} cannot share a plan"
    plans: dict[str, MessagePlan] = {}
    unused = _unused(definition, document, watched, streams)
    for stream in streams:
        if stream in unused:
            continue
        plan = streams_of(document).engine.plan(stream)
        if plan is None or may_delete(document, stream):
            why = _why_whole(document, watched, view, stream)
            return why + _why_used(definition, document, watched, view, stream)
        plans[stream] = plan
    fed = Fed(plans, {stream: _noted(document, stream) for stream in plans})
    if member is not None:
        return replace(_of_family(member, watched, view, fed, count), unused=unused)
    maintainer = maintained_view(watched).maintainer
    assert isinstance(maintainer, Counting)
    outputs = _outputs(watched)
    columns = [column for column in maintainer.root.columns if column in outputs]
    found = next((column for column in columns if fed.positions(column) is not None), None)
    if found is not None:
        return replace(_by_column(view, fed, found, outputs[found], count), unused=unused)
    unit = _cut(document, view, fed, count, finals)
    if unit.buckets == 1:
        unit = _by_grid(view, maintainer, fed, {c: outputs[c] for c in columns}, count) or unit
    return replace(unit, unused=unused)


def _by_grid(
    view: str, maintainer: Counting, fed: Fed, outputs: Mapping[Column, str], count: int
) -> Unit | None:
    """Return the unit of a view that several columns split; None if they do not."""
    if isinstance(maintainer, SteppedCounting) and positions_of(maintainer.stepping.key.steps):
        return None
    parts = parts_of(list(outputs), fed.relations(), count)
    if not parts:
        return None
    grid = tuple(
        Dimension(column, number, fed.places(column), outputs[column])
        for column, number in parts.items()
    )
    return _split(view, fed, grid)


def _why_no_grid(fed: Fed, maintainer: Maintainer, count: int) -> str:
    """Return why no columns of a view split it."""
    shown = set(map(column_of, maintainer.pattern.outputs))
    hidden = [
        repr(stream)
        for stream, relations in fed.by_stream().items()
        if any(shown.isdisjoint(each) for each in relations)
    ]
    if hidden:
        return f"it shows no column of what {', '.join(hidden)} brings"
    return f"a grid needs {LEAST} buckets" if count < LEAST else "no grid of its columns fits"


def _in_grid(fed: Fed, parts: Mapping[Column, int]) -> str:
    """Return why a view is in a grid, with the number of buckets that rows of streams go to."""
    copies = {
        stream: max(prod(n for c, n in parts.items() if c not in each) for each in relations)
        for stream, relations in fed.by_stream().items()
        if relations
    }
    said = [f"those of {s!r} go to {n} buckets each" for s, n in copies.items() if n > 1]
    return "; ".join(["no column is in all relations: rows meet in a grid", *said])


def _by_column(view: str, fed: Fed, key: Column, output: str | None, count: int) -> Unit:
    """Return the unit of a view that is split by a column."""
    positions = fed.positions(key)
    assert positions is not None
    return _split(view, fed, (Dimension(key, count, positions, output),))


def _split(view: str, fed: Fed, grid: Grid, cut: StepCut | None = None) -> Unit:
    """Return the unit of a view that is split by the columns of a grid."""
    replaced = {stream for stream, plan in fed.plans.items() if plan.replace is not None}
    replacing: frozenset[str] = frozenset()
    if len(grid) == 1:
        (only,) = grid
        reason = "every relation that a stream feeds has the key"
        replacing = frozenset(
            s for s in replaced if _is_replaced_by(fed.plans[s], only.positions[s], only.column)
        )
    else:
        reason = _in_grid(fed, {each.column: each.parts for each in grid})
    if replaced - replacing:
        reason += f"; keys of {min(replaced - replacing)!r} go to all buckets"
    buckets = prod(each.parts for each in grid)
    return Unit(f"view {view}", (view,), "bindings", buckets, reason, grid, replacing, cut)


def _of_family(member: Member, watched: View, view: str, fed: Fed, count: int) -> Unit:
    """Return the unit of a family: split by a parameter, or by a column that members show."""
    kept = member.family
    shared = f"one plan for all members: {kept.pattern}"
    for number, parameter in enumerate(kept.parameters):
        key = f"${parameter.variable}"
        if parameter.is_text and count > 1 and fed.positions(key) is not None:
            unit = _by_column(view, fed, key, None, count)
            reason = f"{unit.reason}; {shared}; each is in the bucket of its parameter"
            return replace(unit, reason=reason, parameter=number)
    outputs = _outputs(watched)
    shown = [column for column in kept.root.columns if column in outputs]
    key = next((column for column in shown if fed.positions(column) is not None), "")
    if not key or count == 1:
        reason = "one bucket is configured" if count == 1 else "no key splits it"
        return Unit(f"view {view}", (view,), "bindings", 1, f"{reason}; {shared}")
    unit = _by_column(view, fed, key, outputs[key], count)
    reason = f"{unit.reason}; {shared}; the parameter table is in every bucket"
    return replace(unit, reason=reason)


def _unused(
    definition: Definition, document: Document, view: View, streams: tuple[str, ...]
) -> frozenset[str]:
    """Return the streams that need whole messages and that a view does not use.

    A stream deletes among the siblings of its call, where its own messages are inserted: what no
    message there can match, no deletion there can concern.
    """
    if _why_all(definition, view):
        return frozenset()
    engine = streams_of(document).engine
    return frozenset(
        stream
        for stream in streams
        if (engine.plan(stream) is None or may_delete(document, stream))
        and not engine.patterns(stream)
    )


def _why_all(definition: Definition, view: View) -> str:
    """Return why streams that a view does not use concern it; empty if they do not."""
    if definition.types:
        return "types concern all streams"
    if any("refers" in fact for fact in definition.facts):
        return "references concern all streams"
    if tests_time(view.query):
        return "it tests times, and a message that its document rejects moves no clock"
    return ""


def _why_used(
    definition: Definition, document: Document, view: View, name: str, stream: str
) -> str:
    """Return why a stream that brings nothing that a view matches concerns it all the same."""
    why = _why_all(definition, view)
    is_used = bool(streams_of(document).engine.patterns(stream))
    return f", which {name} does not use, but {why}" if why and not is_used else ""


def _cut(document: Document, view: str, fed: Fed, count: int, finals: bool) -> Unit:
    """Return the unit of a view that no column of its own splits."""
    name, reason = f"view {view}", "no column is in all relations that streams feed"
    maintainer = maintained_view(document.views[view]).maintainer
    if not isinstance(maintainer, SteppedCounting):
        if fed.columns():
            reason = "rows of several buckets could be equal: no column that splits it is shown"
        else:
            reason += f", and {_why_no_grid(fed, maintainer, count)}"
        return Unit(name, (view,), "bindings", 1, f"{reason}, so it cannot be partitioned")
    if count == 1:
        return Unit(name, (view,), "bindings", 1, "one bucket is configured")
    if not finals:
        reason = "its final step has no place: the view was added, or the checkpoint is not local"
        return Unit(name, (view,), "bindings", 1, reason)
    if clock_of(maintainer.stepping.key.steps) is not None:
        reason = "its rows follow the clock, and moments are emitted one by one"
        return Unit(name, (view,), "bindings", 1, reason)
    if positions_of(maintainer.stepping.key.steps) is not None:
        reason = "its rows depend on positions among siblings, which several messages bring"
        return Unit(name, (view,), "bindings", 1, reason)
    found = by_steps(maintainer, maintained(document).tree, fed, count)
    if found is None:
        reason += f", its messages meet in joins, and {_why_no_grid(fed, maintainer, count)}"
        return Unit(name, (view,), "bindings", 1, reason)
    if not found.grid:
        replaced = {s for s, plan in fed.plans.items() if plan.replace is not None}
        reason = "messages never meet before the final step"
        return Unit(
            name, (view,), "bindings", count, reason, replacing=frozenset(replaced), cut=found.cut,
            by_message=True,
        )  # fmt: skip
    return _split(view, fed, found.grid, found.cut)


def _is_replaced_by(plan: MessagePlan, positions: tuple[int, ...], key: Column) -> bool:
    """Whether all rows of a message have its own key as their value of a column."""
    assert plan.replace is not None
    if plan.everywhere or ALL in positions:
        return False
    nodes = [relation.node for relation in plan.here]
    return all(node is not None and _binds(node, plan.replace, key) for node in nodes)


def _binds(node: PatternNode, path: KeyPath, column: Column) -> bool:
    """Whether a pattern node of messages binds a variable to the value at a path, always."""
    found = [node]
    for step in path.steps:
        found = [each for at in found for each in _children(at, Axis.CHILD, step)]
    if path.attribute is not None:
        found = [each for at in found for each in _children(at, Axis.ATTRIBUTE, path.attribute)]
    wanted = Variable(column.removeprefix("$"))
    return any(
        any(test.operator == "=" and test.operand == wanted for test in at.comparisons)
        or any(
            isinstance(below, PatternNode) and below.axis is Axis.CHILD and below.test == wanted
            for below in at.branches
        )
        for at in found
    )


def _children(node: PatternNode, axis: Axis, name: str) -> list[PatternNode]:
    below = [branch for branch in node.branches if isinstance(branch, PatternNode)]
    return [each for each in below if each.axis is axis and each.test == Name(name)]


def may_delete(document: Document, stream: str) -> bool:
    tree = maintained(document).tree
    return tree.call(tree.calls()[stream]).deletes != "no"


def _why_whole(document: Document, kept: View, view: str, stream: str) -> str:
    """Return why a stream's messages cannot be read as bindings."""
    if may_delete(document, stream):
        return f"the stream {stream!r} may delete"
    if not isinstance(maintained_view(kept).maintainer, Counting):
        return f"{view} is kept by {maintained_view(kept).chosen.name}, over the document"
    kinds = sorted({o.kind.value for o in kept.query.pattern.outputs} & {"id", "val", "cont"})
    if kinds:
        return f"{view} shows {', '.join(kinds)} of nodes"
    return f"the stream {stream!r} brings what must become nodes"


def _outputs(view: View) -> dict[Column, str]:
    """Return the columns of the program that rows show, with their names in rows.

    Rows that steps compute can be split by a column that they show and are grouped by, if no limit
    counts them.
    """
    query = view.query
    shown = _shown_as_they_are(query.row_key.steps)
    found: dict[Column, str] = {}
    for output in query.pattern.outputs:
        column = column_of(output)
        if not query.steps:
            found[column] = output.column
        elif output.column in shown:
            found[column] = shown[output.column]
    return found


def _shown_as_they_are(steps: tuple[Step, ...]) -> dict[str, str]:
    """Return the columns of the pattern that computed rows show unchanged, with their names."""
    names: dict[str, str] | None = None
    for step in steps:
        if isinstance(step, Order) and step.limit is not None:
            return {}
        if isinstance(step, Group):
            names = {of: name for of, name in (names or {}).items() if name in step.keys}
        if isinstance(step, Compute):
            copied = {
                cell.expression.name: cell.name
                for cell in reversed(step.cells)
                if isinstance(cell.expression, Reference)
            }
            known = {of: of for of in copied} if names is None else names
            names = {of: copied[name] for of, name in known.items() if name in copied}
    return {of: name for of, name in (names or {}).items() if not is_hidden(name)}


def _noted(document: Document, stream: str) -> list[Column]:
    """Return the columns whose declared keys a stream's messages are also matched with, in order.

    Their relations are the last of those at the message's root.
    """
    found: list[Column] = []
    for _, _, column, key in streams_of(document).collector.keys_of(stream):
        found += [column] * len(key.patterns)
    return found
