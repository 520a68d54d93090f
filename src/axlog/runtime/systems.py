"""Systems: documents wired so that a view of one feeds a call of another.

`streams: {NAME: {view: DOCUMENT.VIEW}}` is a wire: the view's changes become updates of the stream
(`connect/channels/row_updates.py`). A batch goes through the documents in the order of the wires;
each document is fed once with everything that reaches it. So the output is net, and independent of
the order of the file.

Documents that feed each other are fed in rounds until nothing changes. This is done without a bound
if it is certain to terminate: nothing on the cycle is deleted (no `not`, no deleting stream), and
views show labels only (`$x`), of which there are finitely many; the result is a least fixpoint. Any
other cycle is refused, unless `settings: {rounds: N}` bounds it: then a batch goes through the
cycle at most N times, and the rest follows with the next batch.

A wired update has the time of the change, or the clock of the receiving document if that is later:
derived updates are never late. (Paper 2, remark 4; paper 3, section 3.6.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from axlog.connect.channels.row_updates import updates_of
from axlog.connect.protocol import Refusal
from axlog.errors import PipelineError
from axlog.future.grounding import has_not
from axlog.live.internals import maintained
from axlog.pipeline.documents import calls_of, document_of
from axlog.pipeline.families import view_query
from axlog.pipeline.model import PipelineModel
from axlog.query.pattern import Branch, Kind, PatternNode, Variable, branches_of
from axlog.runtime.checkpoint import Input, input_row, read_input
from axlog.runtime.engine import net_by_view
from axlog.runtime.instances import Instances
from axlog.views.change import Change

Waiting = dict[str, list[Input]]
_FINITE = (Kind.VARIABLE, Kind.LABEL)


@dataclass(frozen=True, slots=True)
class Wire:
    """A view that feeds a stream."""

    view: str  # its full name
    origin: str  # its document
    document: str
    stream: str

    def __str__(self) -> str:
        return f"{self.view} -> {self.document}/{self.stream}"


def wires_of(model: PipelineModel) -> list[Wire]:
    """Return every wire of a pipeline, in the order of the file."""
    known = {f"{name.document}.{name.view}": name for name in model.view_names()}
    known |= {name.full: name for name in model.view_names()}
    found = []
    for document, written in model.documents.items():
        for stream, one in written.streams.items():
            if one.view is not None:
                if one.view not in known:
                    raise PipelineError(
                        "AX854", f"there is no view {one.view!r}", expected=", ".join(sorted(known))
                    )
                name = known[one.view]
                found.append(Wire(name.full, name.document, document, stream))
    return found


def in_order(names: Sequence[str], wires: Iterable[Wire]) -> list[list[str]]:
    """Return the strongly connected groups of documents, in the order of the wires (Tarjan)."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for wire in wires:
        after[wire.origin].append(wire.document)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in after[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            groups.append(sorted(stack[at:], key=list(names).index))
            del stack[at:]

    for name in names:
        if name not in index:
            visit(name)
    return groups[::-1]


class System:
    """The running documents of a pipeline with their wires."""

    def __init__(self, model: PipelineModel) -> None:
        self.model = model
        self.wires = wires_of(model)
        self.groups = in_order(list(model.documents), self.wires)
        group_of = {name: at for at, group in enumerate(self.groups) for name in group}
        self.cyclic = [
            wire for wire in self.wires if group_of[wire.origin] == group_of[wire.document]
        ]
        self.rounds = model.settings.rounds
        if self.rounds is None:
            for wire in self.cyclic:
                self._check(wire)
        self.closed: set[Wire] = set()
        self._carried: Waiting = {}

    # Whether a cycle ends -------------------------------------------------------------------------

    def _check(self, wire: Wire) -> None:
        """Refuse a wire of a cycle that may retract rows, or produce new rows without end."""
        model = self.model
        written = model.documents[wire.origin]
        view = next(name for name in model.view_names() if name.full == wire.view).view
        given = written.views[view]
        query = view_query(view, given, model.namespaces, model.directory)
        why = None
        if query.steps:
            why = "its query computes values, and may retract rows"
        elif has_not(query.pattern):
            why = "its query has a not, and may retract rows"
        elif any(output.kind not in _FINITE for output in query.pattern.outputs):
            why = "it shows more than labels ($x), and may produce new rows without end"
        elif _binds_values(query.pattern.branches):
            why = "a variable is bound to a string value, and may produce new ones without end"
        elif any(
            call.get("deletes", "no") != "no" or call.get("replace") is not None
            for call in calls_of(document_of(written, model.directory)).values()
        ):
            why = f"a stream of {wire.origin} may delete or replace"
        if why is not None:
            raise PipelineError(
                "AX841",
                f"the view {wire.view} feeds itself through {wire.document}/{wire.stream}: {why}",
                expected="cycles of views without not, over streams that only insert",
                advice="set settings: {rounds: N} to limit the cycle to N rounds per batch",
            )

    # Feeding --------------------------------------------------------------------------------------

    def begin(self, instances: Mapping[str, Instances]) -> None:
        """Propagate the initial rows of the documents through the wires."""
        waiting: Waiting = {}
        for one in instances.values():
            self._route(one.rows(), instances, waiting)
        if any(waiting.values()):
            self.feed(instances, waiting)

    def feed(
        self, instances: Mapping[str, Instances], inputs: Mapping[str, Sequence[Input]]
    ) -> tuple[list[Change], list[Refusal]]:
        """Apply a batch; return the net changes of all views, and the rejected updates."""
        waiting: Waiting = {name: list(mine) for name, mine in self._carried.items()}
        self._carried = {}
        for name, mine in inputs.items():
            waiting.setdefault(name, []).extend(mine)
        changes: list[Change] = []
        refused: list[Refusal] = []
        for group in self.groups:
            made, odd = self._feed_group(group, instances, waiting)
            changes += made
            refused += odd
        return changes, refused

    def _feed_group(
        self, group: list[str], instances: Mapping[str, Instances], waiting: Waiting
    ) -> tuple[list[Change], list[Refusal]]:
        made: list[Change] = []
        refused: list[Refusal] = []
        rounds = 0
        while any(waiting.get(name) for name in group):
            if self.rounds is not None and rounds == self.rounds:
                self._carried |= {name: waiting.pop(name, []) for name in group}
                break
            rounds += 1
            for name in group:
                mine = _in_time(waiting.pop(name, []))
                if mine:
                    changes, odd = instances[name].feed(mine)
                    self._route(changes, instances, waiting)
                    made += changes
                    refused += odd
        return (list(net_by_view(made)) if rounds > 1 else made), refused

    def _route(
        self, changes: Iterable[Change], instances: Mapping[str, Instances], waiting: Waiting
    ) -> None:
        """Convert the changes of views to updates of the streams they feed."""
        by_view: dict[str, list[Wire]] = {}
        for wire in self.wires:
            if wire not in self.closed:
                by_view.setdefault(wire.view, []).append(wire)
        for change in changes:
            for wire in by_view.get(change.view or "", ()):
                waiting.setdefault(wire.document, []).extend(
                    self._inputs(wire, change, instances[wire.document])
                )

    def is_keyed(self, wire: Wire) -> bool:
        """Whether the rows of a wire have keys: not in a cycle that runs until nothing is new."""
        return wire not in self.cyclic or self.rounds is not None

    def _inputs(self, wire: Wire, change: Change, target: Instances) -> Iterator[Input]:
        if not self.is_keyed(wire) and change.op in ("delete", "update"):
            raise PipelineError(
                "AX842",
                f"the view {wire.view} retracted {change.row.to_dict()} on a cycle that only adds",
                advice="set settings: {rounds: N} to limit the cycle to N rounds per batch",
            )
        clocks = (maintained(document).tree.clock for document in target.documents.values())
        at = max(change.microseconds, max(clocks, default=target.clock))
        for update in updates_of(
            replace(change, microseconds=0), wire.stream, is_keyed=self.is_keyed(wire)
        ):
            yield Input("", replace(update, origin=f"{wire.view}:{change.position}"), at)

    # Saving ---------------------------------------------------------------------------------------

    def state(self, instances: Mapping[str, Instances]) -> dict[str, Any]:
        """Return the updates in transit and the dropped views, for JSON."""
        carried = {
            name: [input_row(one) for one in waiting]
            for name, waiting in self._carried.items()
            if waiting
        }
        gone = [
            full
            for one in instances.values()
            for v, full in one.full.items()
            if v not in one.queries
        ]
        return {"closed": [str(wire) for wire in self.closed], "carried": carried, "gone": gone}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from what `state` returned."""
        closed = set(state.get("closed", ()))
        self.closed = {wire for wire in self.wires if str(wire) in closed}
        self._carried = {
            name: [read_input(row[:6]) for row in waiting]
            for name, waiting in state.get("carried", {}).items()
        }

    # Letting go -----------------------------------------------------------------------------------

    def let_go(self, instances: Mapping[str, Instances], needed: set[str]) -> list[str]:
        """Close wires to streams that no view can use, then drop unneeded views; upstream.

        `needed` are the views with sinks and channels. Return the names of what was dropped, in
        order.
        """
        gone: list[str] = []
        for wire in self.wires:
            if wire not in self.closed and _is_unsubscribed(instances[wire.document], wire.stream):
                self.closed.add(wire)
                gone.append(str(wire))
        if gone:
            used = {wire.view for wire in self.wires if wire not in self.closed}
            for wire in self.wires:
                if wire.view not in used | needed and instances[wire.origin].forget(wire.view):
                    gone.append(wire.view)
                    gone += self.let_go(instances, needed)
        return gone


def _in_time(inputs: Sequence[Input]) -> list[Input]:
    """Merge the updates from wires with those of the sources, each source in its order."""
    latest: dict[str, int] = {}
    keyed: list[tuple[int, Input]] = []
    for one in inputs:
        place = one.at if one.placed is None else one.placed
        latest[one.source] = max(latest.get(one.source, 0), place or 0)
        keyed.append((latest[one.source], one))
    return [one for _, one in sorted(keyed, key=lambda each: each[0])]


def _binds_values(branches: Iterable[Branch]) -> bool:
    """Whether a variable is bound to a string value, which can be longer than any label."""
    return any(
        _binds_values(branches_of(branch))
        or (
            isinstance(branch, PatternNode)
            and any(isinstance(each.operand, Variable) for each in branch.comparisons)
        )
        for branch in branches
    )


def _is_unsubscribed(one: Instances, stream: str) -> bool:
    """Whether a stream has been tuned to bring nothing, or has ended, in every document."""
    found = [document.streams().get(stream) for document in one.documents.values()]
    return bool(found) and all(
        status is not None and (status.ended or (status.is_tuned and not status.wanted))
        for status in found
    )
