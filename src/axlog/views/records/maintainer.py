"""The records maintainer: the nodes that a path selects, or the truth of a Boolean pattern.

The question of a view alone determines the algorithm that keeps it (`plan`), and `explain` shows
it. Law: the rows are those of the definition. The algorithms record that a row holds, but not in
how many ways. `rows` therefore computes the derivation counts (`derivation_counts.py`), at the cost
of the document, and the row of a change has the count 1.

If the automaton of a pattern exceeds its bound while the document changes, the view continues by
re-evaluation, and `declined` holds the reason. Its rows stay exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from axlog.document.delta import Delta, renames
from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, NONE, Tree
from axlog.errors import QueryError
from axlog.query.pattern import Kind, Pattern
from axlog.views.change import Change, Row, Values
from axlog.views.counting.engine import CountingEngine
from axlog.views.maintainer import Maintainer
from axlog.views.outputs import shown_of
from axlog.views.records.automaton import MOST_STATES, Automaton
from axlog.views.records.decision_diagrams import TooMany
from axlog.views.records.derivation_counts import derivation_counts
from axlog.views.records.downward import DownwardRecords
from axlog.views.records.facts import Facts
from axlog.views.records.forest import Forest
from axlog.views.records.forward import ForwardAlgebra
from axlog.views.records.plan import plan
from axlog.views.records.question import Letters, Question, facts_of, question_of
from axlog.views.records.selected_nodes import SelectedNodes
from axlog.views.records.sibling_order import SiblingOrder

_READ = (Kind.VAL, Kind.CONT)
Key = tuple[object, ...]


class Records(Maintainer):
    """Keeps the selected nodes, or the truth, of a pattern with sibling and reverse axes."""

    name = "records"

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        engine: CountingEngine | None = None,
        most_states: int = MOST_STATES,
    ) -> None:
        super().__init__(tree, pattern)
        question = question_of(pattern)
        assert isinstance(question, Question), question
        self.question = question
        self.declined: str | None = None  # why the automaton was abandoned
        engine = engine if engine is not None else CountingEngine(tree)
        self._facts = Facts(list(facts_of(question)), engine)
        self._letters = Letters(question)
        self._rows: dict[int, tuple[Key, Values]] = {}
        self._has_stale_ids = False  # after a rename: ids contain labels
        self._former_parents: list[tuple[int, int]] = []
        self._read = any(output.kind in _READ for output in pattern.outputs)
        self._most = most_states
        self.plan = plan(question)
        self.forest: Forest | None = None
        self.downward: DownwardRecords | None = None
        self.automaton: Automaton | None = None
        self._selection: SelectedNodes | None = None
        self._start()
        for node in self._present():
            self._rows[node] = self._row(node)

    @staticmethod
    def refusal(pattern: Pattern) -> str | None:
        """Why neither records nor counting with an order of siblings can keep a pattern."""
        declined = _declined(pattern)
        if declined is None:
            return None
        beside = SiblingOrder.refusal(pattern)
        return None if beside is None else f"{declined}, and {beside}"

    @staticmethod
    def reason(pattern: Pattern) -> str:
        """The algorithm that keeps a pattern, and its cost."""
        declined = _declined(pattern)
        if declined is not None:
            return f"counting keeps the joins, records the order of siblings: {declined}"
        question = question_of(pattern)
        assert isinstance(question, Question), question
        return str(plan(question))

    def _start(self) -> None:
        """Build the state of the planned algorithm; a downward pattern needs no sibling order."""
        question, tree = self.question, self.tree
        if self.plan.algorithm == "downward":
            self.downward = DownwardRecords(tree, question, self._letter)
            return
        if self.plan.algorithm == "forward":
            self.forward = ForwardAlgebra(question)
            self.forest = Forest(tree, self.forward, self._letter)
            return
        self.automaton = Automaton(question, self._most)
        try:
            selects = not question.is_boolean
            self.forest = Forest(tree, self.automaton, self._letter, is_seen=selects)
            if selects:
                self._selection = SelectedNodes(self.forest, self.automaton)
        except TooMany:
            self._decline()

    def _decline(self) -> None:
        self.declined = f"its automaton has more than {self._most} states"

    @property
    def steps(self) -> int:
        """Records and summaries computed, and parts visited, since the start."""
        steps = self.downward.steps if self.downward is not None else 0
        steps += self.forest.steps if self.forest is not None else 0
        return steps + (self._selection.entered if self._selection is not None else 0)

    def _letter(self, node: int) -> int:
        return self._letters.of(self.tree, node) | self._facts.bits(node)

    def _present(self) -> set[int]:
        """The nodes that are rows; for a Boolean pattern, the document node."""
        if self.declined is not None:
            return set(derivation_counts(self.tree, self.question, self._facts))
        if self._selection is not None:
            return self._selection.nodes
        return {DOCUMENT_NODE} if self._answer() else set()

    def _answer(self) -> bool:
        if self.downward is not None:
            return self.downward.answer()
        assert self.forest is not None, "the plan builds one of them"
        if self.automaton is not None:
            return self.automaton.answer(self.forest.whole)
        return self.forward.answer(self.forest.whole)

    # Rows -----------------------------------------------------------------------------------------

    def size(self) -> int:
        return len(self._rows)

    def _relabel(self) -> None:
        """Recompute ids after a rename: they contain the labels of their path."""
        if self._has_stale_ids:
            self._has_stale_ids = False
            self._rows = {node: self._row(node) for node in self._rows}

    def rows(self) -> Iterable[Row]:
        self._relabel()
        if not self._rows:
            return []
        counts = derivation_counts(self.tree, self.question, self._facts)
        columns = self.pattern.columns
        return [Row(columns, values, counts[node]) for node, (_, values) in self._rows.items()]

    def _row(self, node: int) -> tuple[Key, Values]:
        """The key and the values of the row of a node."""
        values = tuple(shown_of(self.tree, output.kind, node) for output in self.pattern.outputs)
        if not self._read:
            return values, values
        own, pairs = self.tree.id(node), zip(self.pattern.outputs, values, strict=True)
        return tuple(own if output.kind in _READ else value for output, value in pairs), values

    # An update ------------------------------------------------------------------------------------

    def before(self, delta: Delta) -> None:
        self._relabel()
        self._facts.before(delta)
        self._former_parents = [(root, self.tree.parent(root)) for root in delta.removed]

    def after(self, delta: Delta) -> list[Change]:
        turned = self._facts.after(delta)
        gone = {node for root in delta.removed for node in self.tree.subtree(root)}
        came, went = self._follow(delta, turned - gone, gone)
        self._has_stale_ids = not self.question.is_boolean and renames(delta)
        return self._changes(came, went, self._touched(delta))

    def _changes(self, came: set[int], went: set[int], touched: set[int]) -> list[Change]:
        """The changes, by row key: a new node may have the id of a deleted one."""
        again = (touched & self._rows.keys()) - went
        old = dict(self._rows.pop(node) for node in went)
        old |= dict(self._rows[node] for node in again)
        for node in came | again:
            self._rows[node] = self._row(node)
        new = dict(self._rows[node] for node in came | again)
        columns = self.pattern.columns
        changes = [Change("delete", Row(columns, old[key])) for key in old if key not in new]
        for key, values in new.items():
            row = Row(columns, values)
            if key not in old:
                changes.append(Change("insert", row))
            elif old[key] != values:
                changes.append(Change("update", row, Row(columns, old[key])))
        return changes

    def _follow(self, delta: Delta, turned: set[int], gone: set[int]) -> tuple[set[int], set[int]]:
        """The nodes that became rows, and the nodes that ceased to be rows."""
        old = self._rows.keys()
        if self.declined is None:
            try:
                return self._step(delta, turned, gone)
            except TooMany:
                self._decline()
        present = self._present()
        return (present - old) | (present & gone), (old - present) | (old & gone)

    def _step(self, delta: Delta, turned: set[int], gone: set[int]) -> tuple[set[int], set[int]]:
        tree = self.tree
        changed = {c.node for c in delta.changed if _is_counted(tree, c.node)} | turned
        added = set(delta.added)
        kept = self.downward if self.downward is not None else self.forest
        assert kept is not None, "the plan builds one of them"
        kept.update(self._former_parents, delta.added, changed - gone - added)
        if self._selection is None:
            old, present = self._rows.keys(), self._present()
            return present - old, old - present
        lost = self._selection.nodes & gone
        self._selection.nodes -= lost
        came, went = self._selection.refresh()
        return came, went | lost

    def _touched(self, delta: Delta) -> set[int]:
        """The nodes whose shown values may have changed."""
        if self.question.is_boolean:
            return set()
        touched = {change.node for change in delta.changed}
        return (
            touched.union(_above(self.tree, delta, self._former_parents)) if self._read else touched
        )

    @property
    def broken(self) -> QueryError | None:
        return self._facts.broken

    def close(self) -> None:
        self._facts.close()


def _declined(pattern: Pattern) -> str | None:
    question = question_of(pattern)
    return question if isinstance(question, str) else plan(question).refusal


def keep_records(tree: Tree, pattern: Pattern, engine: CountingEngine) -> Maintainer:
    """The maintainer named records for a pattern: `Records`, or `SiblingOrder` for joins."""
    if _declined(pattern) is None:
        return Records(tree, pattern, engine)
    return SiblingOrder(tree, pattern, engine)


def _is_counted(tree: Tree, node: int) -> bool:
    """Whether tests apply to a changed node; attributes are facts of their element."""
    return tree.kind_column[node] != ATTRIBUTE and tree.kind_column[tree.parent(node)] != ATTRIBUTE


def _above(tree: Tree, delta: Delta, former_parents: list[tuple[int, int]]) -> Iterator[int]:
    """The nodes whose value or content the update may change."""
    places = [parent for _, parent in former_parents] + [tree.parent(root) for root in delta.added]
    places += [change.node for change in delta.changed]
    seen: set[int] = set()
    for node in places:
        while node != NONE and node not in seen:
            seen.add(node)
            yield node
            node = tree.parent(node)
