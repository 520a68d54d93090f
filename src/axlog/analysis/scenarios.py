"""Scenarios: the rows that may still come, each with what it needs (P2 3, 5, 6; P3 3.2, 3.3).

The program of a pattern runs over generalised rows. A value is a string, a time, a node, or unknown
(None): what an open call may still bring. With each row goes what it needs: which sub-patterns
which streams must bring (the provenance of P2 6: every other pattern node is matched here or by
what is brought above it), and the constraints that unknown times and values must meet. At a call,
every sub-pattern that a message can hold counts as a row with all its columns unknown.

    R(n) = own(n) ⋈ (L_1(n) ∪ calls) ⋈ ... ⋈ (L_k(n) ∪ calls)   with unknown joining anything

Rows that need less win: of two needs for one row, one that asks for a subset of the other's
(P2's dominance, columns compared) is kept. Cost: document x pattern for patterns without joins.

Not here, and refused by name: `not` (see `profiles.py`), collected paths, value tests above an open
call (not monotone), orders between two unknown strings, axes that do not go down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from axlog.analysis.bringing import bringable
from axlog.analysis.constraints import TimeSystem, not_before
from axlog.analysis.generalised import (
    NOTHING,
    Need,
    Rows,
    Values,
    add_need,
    constrain,
    gather_need,
    meet,
)
from axlog.datalog.compile import Edge, Program, Relation, compile_pattern
from axlog.document.tree import ATTRIBUTE, CALL, DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.interpreter import Interpreter
from axlog.language.normal import bound_variables
from axlog.language.pattern import Axis, Kind, Output, Pattern, Variable

Sums = dict[Relation, Rows]


@dataclass(slots=True)
class _Below:
    """What has risen to a node: sums over its children and descendants, and the calls below it."""

    children: Sums = field(default_factory=dict)
    descendants: Sums = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)  # of the node itself
    deeper_calls: list[str] = field(default_factory=list)  # anywhere below it


class Scenarios:
    """The generalised rows of a pattern over a document as it is now."""

    def __init__(
        self, tree: Tree, pattern: Pattern, *, together: bool = False, prune: bool = True
    ) -> None:
        """`together`: messages hold no calls, so all nodes of a tree to come have one time.

        Without `prune` the needs of equal rows and constraints are put together instead of
        compared: what each asks for is asked for by some scenario, dominated or not.
        """
        self.tree = tree
        self._add = add_need if prune else gather_need
        self.program = _program(pattern)
        self._interpreter = Interpreter(self.program.relations)
        self._together = together
        self._bringable: dict[tuple[Relation, bool], Rows] = {}
        self.rows = self._evaluate()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.program.root.columns

    # Over the document --------------------------------------------------------------------------

    def _evaluate(self) -> Rows:
        tree = self.tree
        risen: dict[int, _Below] = {}
        nodes = list(tree.subtree(DOCUMENT_NODE))
        for node in reversed(nodes):
            if node == DOCUMENT_NODE:
                break
            below = risen.pop(node) if node in risen else _Below()
            above = risen.setdefault(tree.parent(node), _Below())
            if tree._kind[node] == CALL:
                call = tree.call(node)
                if call.deletes != "only":
                    above.calls.append(call.stream)
                    above.deeper_calls.append(call.stream)
                continue
            here: Sums = {}
            for relation in self._interpreter.candidates(tree, node):
                rows = self._at(node, relation, below, here)
                if rows:
                    here[relation] = rows
            self._rise(node, above, below, here)
        below = risen.get(DOCUMENT_NODE, _Below())
        return self._join(self.program.root, {(): [NOTHING]}, [], below, {})

    def _rise(self, node: int, above: _Below, below: _Below, here: Sums) -> None:
        self._merge(above.children, here)
        if self.tree._kind[node] == ATTRIBUTE:
            return
        self._merge(above.descendants, below.descendants)
        descending = self._interpreter.descending
        self._merge(above.descendants, {r: rows for r, rows in here.items() if r in descending})
        above.deeper_calls += below.deeper_calls

    def _at(self, node: int, relation: Relation, below: _Below, here: Sums) -> Rows:
        """The rows of a relation at a node that passes its test."""
        interpreter, tree = self._interpreter, self.tree
        if interpreter.depends_on_value(relation):
            if below.deeper_calls:
                raise UndecidedError(
                    "AX503",
                    f"{relation.node} compares a value that the stream "
                    f"{below.deeper_calls[0]!r} may still change",
                )
            if not interpreter.passes_values(relation, tree.string_value(node)):
                return {}
        own = interpreter.own_row(tree, node, relation)
        unified = _unify_own(relation, own)
        if unified is None:
            return {}
        columns = list(dict.fromkeys(column for column, _ in relation.own))
        return self._join(relation, {unified: [NOTHING]}, columns, below, here)

    def _add_rows(self, rows: Rows, more: Rows) -> None:
        for values, needs in more.items():
            for need in needs:
                self._add(rows, values, need)

    def _merge(self, into: Sums, more: Sums) -> None:
        for relation, rows in more.items():
            self._add_rows(into.setdefault(relation, {}), rows)

    # Joins --------------------------------------------------------------------------------------

    def _join(
        self, relation: Relation, rows: Rows, layout: list[str], below: _Below, here: Sums
    ) -> Rows:
        if relation.absences:
            raise UndecidedError("AX503", "scenarios of a pattern with `not` are not listed")
        for edge in relation.edges:
            part = self._part(edge, below, here)
            rows, layout = meet(rows, layout, part, edge.relation.columns, self._add)
            if not rows:
                return {}
        for choice in relation.choices:
            merged: Rows = {}
            longer = list(dict.fromkeys([*layout, *choice.columns]))
            for alternative in choice.alternatives:
                part = self._join(alternative, {(): [NOTHING]}, [], below, here)
                met, columns = meet(rows, list(layout), part, alternative.columns, self._add)
                order = [columns.index(column) for column in longer]
                for values, needs in met.items():
                    for need in needs:
                        self._add(merged, tuple(values[i] for i in order), need)
            rows, layout = merged, longer
        return self._finish(relation, rows, layout)

    def _part(self, edge: Edge, below: _Below, here: Sums) -> Rows:
        """What an edge sees: what is here, and what calls may bring."""
        relation, axis = edge.relation, edge.axis
        found: Rows = {}
        calls: Sequence[str] = ()
        if axis in (Axis.CHILD, Axis.ATTRIBUTE):
            self._add_rows(found, below.children.get(relation, {}))
            calls = below.calls if axis is Axis.CHILD else ()
        elif axis is Axis.SELF:
            self._add_rows(found, here.get(relation, {}))
        else:
            self._add_rows(found, below.descendants.get(relation, {}))
            calls = below.deeper_calls
            if axis is Axis.DESCENDANT_OR_SELF:
                self._add_rows(found, here.get(relation, {}))
        is_root = axis is Axis.CHILD
        for stream in calls:
            for values, needs in self._can_bring(relation, is_root).items():
                for need in needs:
                    self._add(found, values, replace(need, brought=frozenset({(relation, stream)})))
        return found

    def _can_bring(self, relation: Relation, is_root: bool) -> Rows:
        key = (relation, is_root)
        if key not in self._bringable:
            self._bringable[key] = bringable(relation, is_root, self._together)
        return self._bringable[key]

    def _finish(self, relation: Relation, rows: Rows, layout: list[str]) -> Rows:
        """Test what can be tested, keep as needs what cannot yet, and project."""
        at = [layout.index(column) for column in relation.columns]
        found: Rows = {}
        for values, needs in rows.items():
            for need in needs:
                for narrowed in constrain(
                    relation.tests, dict(zip(layout, values, strict=True)), need
                ):
                    self._add(found, tuple(values[i] for i in at), narrowed)
        return found


def _unify_own(relation: Relation, own: tuple[str | int, ...]) -> Values | None:
    known: dict[str, str | int] = {}
    for (column, _), value in zip(relation.own, own, strict=True):
        if known.setdefault(column, value) != value:
            return None
    return tuple(known.values())


def _program(pattern: Pattern) -> Program:
    program = compile_pattern(pattern)
    reason = program.refusal
    if program.gathers:
        reason = "it collects a path"
    if reason is not None:
        raise UndecidedError("AX503", f"the analyses do not cover the query: {reason}")
    return program


def with_join_variables(pattern: Pattern) -> Pattern:
    """The pattern with its join variables as outputs too: dominance compares them (P2 6)."""
    counts: Counter[str] = Counter()
    for node in pattern.nodes():
        operands = [node.test, *(comparison.operand for comparison in node.comparisons)]
        counts.update(operand.name for operand in operands if isinstance(operand, Variable))
    shown = {output.of for output in pattern.outputs if output.kind is Kind.VARIABLE}
    bound = bound_variables(pattern.branches)
    joins = sorted(name for name, n in counts.items() if n > 1 and name in bound - shown)
    outputs = (*pattern.outputs, *(Output(Kind.VARIABLE, name) for name in joins))
    return replace(pattern, outputs=outputs)


def can_be_met(tree: Tree, columns: tuple[str, ...], values: Values, need: Need) -> bool:
    """Whether what a row needs does not contradict itself or the clock."""
    if not need.values.is_satisfiable(dict(zip(columns, values, strict=True))):
        return False
    bounds = [not_before(name, tree.clock) for name in need.unknown_times]
    return TimeSystem([*need.times, *bounds]).is_satisfiable
