"""The scenarios of a pattern as clauses, for a solver (`sat.py`).

A scenario chooses a target for each pattern node: a present node, or a call that delivers it. Each
target is a literal, and the clauses are:

    a pattern node at a document node needs a target for each of its branches, below that node
    a pattern node has one target, and has one only if its parent is matched in the document
    two targets that fix different values of a column exclude each other

Their number is document x pattern. Numbers of which one is chosen are written in bits, so that
excluding each other costs the logarithm. Everything else that a scenario needs is not in the
clauses: `scenario_search.py` checks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, count

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.future.generalized_rows import NOTHING, Need, Rows
from axlog.future.sat import Solver, best_solver
from axlog.future.scenarios import CollectedRows, Scenarios, check_clear, own_columns
from axlog.future.search_budget import spend
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import Axis, Pattern


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A choice for one pattern node: a present node, or one row that a call may deliver for it."""

    literal: int
    relation: Relation
    node: int | None
    stream: str | None
    known: Mapping[str, str | int | None]
    need: Need


@dataclass(slots=True)
class _Places:
    """The literals of the targets at the children of a node, and below them."""

    children: dict[Relation, list[int]] = field(default_factory=dict)
    deeper: dict[Relation, list[int]] = field(default_factory=dict)


class ScenarioClauses(Scenarios):
    """The clauses of a pattern over a document as it is now."""

    _needs_all = True

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        *,
        together: bool = False,
        solver: Solver | None = None,
    ) -> None:
        """Prepare the search; `solver`: the one to use, instead of the best that is installed."""
        self.targets: dict[int, Target] = {}
        self.of: dict[Relation, list[int]] = {}
        """The literals of the targets of each pattern node."""
        self.solver = solver or best_solver()
        self._numbers = count(1)
        self._places: dict[int, _Places] = {}
        self._calls: dict[tuple[Relation, str], int | None] = {}
        self._matched: dict[Relation, int] = {}
        self._columns_known: dict[str, list[tuple[int, str | int]]] = {}
        super().__init__(tree, pattern, together=together)

    # Clauses --------------------------------------------------------------------------------------

    def _evaluate(self) -> Rows:
        below = self._collect(self.tree.children(DOCUMENT_NODE))
        root = self._match(self.program.root, DOCUMENT_NODE, {}, below, {})
        self.solver.add([] if root is None else [root])
        self._add_structure()
        return {}

    def new(self) -> int:
        """A new literal."""
        return next(self._numbers)

    def add(self, clause: Iterable[int]) -> None:
        """Add a clause."""
        self.solver.add(list(clause))

    def _visit_node(self, node: int, above: CollectedRows, below: CollectedRows) -> None:
        tree = self.tree
        here: dict[Relation, int] = {}
        for relation in self._interpreter.candidates_below(tree, node):
            own = self._own(node, relation, below)
            if own is not None:
                known = dict(zip(own_columns(relation), own, strict=True))
                literal = self._match(relation, node, known, below, here)
                if literal is not None:
                    here[relation] = literal
        mine = self._places.pop(node, None) or _Places()
        up = self._places.setdefault(tree.parent(node), _Places())
        for relation, literal in here.items():
            up.children.setdefault(relation, []).append(literal)
        if tree.kind_column[node] == ATTRIBUTE:
            return
        for relation in self._interpreter.descending:
            reached = self._deeper(relation, mine, below)
            if relation in here:
                reached = [here[relation], *reached]
            if reached:
                up.deeper.setdefault(relation, []).append(self._some(reached))
        self._pass_up_calls(above, below)

    def _some(self, literals: list[int]) -> int:
        """A literal that holds only if one of some does."""
        if len(literals) == 1:
            return literals[0]
        found = self.new()
        self.add([-found, *literals])
        return found

    def _deeper(self, relation: Relation, mine: _Places, below: CollectedRows) -> list[int]:
        calls = (self._delivery(relation, stream) for stream in below.calls)
        return [*mine.deeper.get(relation, ()), *(each for each in calls if each is not None)]

    def _match(
        self,
        relation: Relation,
        node: int,
        known: Mapping[str, str | int | None],
        below: CollectedRows,
        here: Mapping[Relation, int],
    ) -> int | None:
        """The literal of a relation at a document node; None if it cannot hold there."""
        if relation.absences:
            raise UndecidedError("AX503", "scenarios of a pattern with `not` are not enumerated")
        mine = self._places.get(node) or _Places()
        needed: list[list[int]] = []
        for edge in relation.edges:
            check_clear(edge, below)
            needed.append(self._reached(edge, mine, below, here))
        for choice in relation.choices:
            ways = [self._match(a, node, {}, below, here) for a in choice.alternatives]
            needed.append([way for way in ways if way is not None])
        spend(1 + len(needed))
        if not all(needed):
            return None
        literal = self._target(relation, node, None, known, self._present_need(node))
        for literals in needed:
            self.add([-literal, *literals])
        return literal

    def _reached(
        self, edge: Edge, mine: _Places, below: CollectedRows, here: Mapping[Relation, int]
    ) -> list[int]:
        relation, axis = edge.relation, edge.axis
        own = [here[relation]] if relation in here else []
        if axis is Axis.SELF:
            return own
        if axis in (Axis.CHILD, Axis.ATTRIBUTE):
            found = list(mine.children.get(relation, ()))
            calls = below.calls if axis is Axis.CHILD else ()
            brought = (self._delivery(relation, stream) for stream in calls)
            return [*found, *(each for each in brought if each is not None)]
        found = self._deeper(relation, mine, below)
        return [*own, *found] if axis is Axis.DESCENDANT_OR_SELF else found

    def _present_need(self, node: int) -> Need:
        if not self._deletable:
            return NOTHING
        above = (node, *self.tree.ancestors(node))
        return replace(NOTHING, kept=frozenset(n for n in above if n in self._deletable))

    def _delivery(self, relation: Relation, stream: str) -> int | None:
        """The literal of a delivery of a call; None if no message holds such data."""
        key = (relation, stream)
        if key not in self._calls:
            axis = self._axes[relation]
            rows = list(self._brought_by(stream, relation, axis))
            columns = self._shown(relation)
            spend(1 + len(rows))
            ways = [
                self._target(relation, None, stream, dict(zip(columns, values, strict=True)), need)
                for values, need in rows
            ]
            self._calls[key] = self._some(ways) if ways else None
        return self._calls[key]

    @cached_property
    def _axes(self) -> dict[Relation, Axis]:
        return {e.relation: e.axis for relation in self.program.relations for e in relation.edges}

    def _target(
        self,
        relation: Relation,
        node: int | None,
        stream: str | None,
        known: Mapping[str, str | int | None],
        need: Need,
    ) -> int:
        literal = self.new()
        self.targets[literal] = Target(literal, relation, node, stream, known, need)
        self.of.setdefault(relation, []).append(literal)
        if stream is None:
            for column, value in known.items():
                assert value is not None
                self._columns_known.setdefault(column, []).append((literal, value))
        return literal

    def _add_structure(self) -> None:
        """One target for a pattern node, and only below a matched one; one value for a column."""
        for relation, literals in self.of.items():
            self._exclude({literal: number for number, literal in enumerate(literals)})
            present = [each for each in literals if self.targets[each].node is not None]
            matched = self._matched[relation] = self.new()
            self.add([-matched, *present])
            for literal in present:
                self.add([-literal, matched])
        for relation in self.program.relations:
            above = self._matched.get(relation)
            for below in relation.below():
                for literal in self.of.get(below, ()):
                    self.add([-literal] if above is None else [-literal, above])
            for choice in relation.choices:
                ways = [self._matched[a] for a in choice.alternatives if a in self._matched]
                for one, other in combinations(ways, 2):
                    self.add([-one, -other])
        for pairs in self._columns_known.values():
            numbers = {
                value: number
                for number, value in enumerate(dict.fromkeys(value for _, value in pairs))
            }
            self._exclude({literal: numbers[value] for literal, value in pairs})

    def _exclude(self, numbers: Mapping[int, int]) -> None:
        """Literals with different numbers exclude each other: each fixes the bits of its number."""
        size = max(numbers.values(), default=0).bit_length()
        bits = [self.new() for _ in range(size)]
        for literal, number in numbers.items():
            for at, bit in enumerate(bits):
                self.add([-literal, bit if number >> at & 1 else -bit])
