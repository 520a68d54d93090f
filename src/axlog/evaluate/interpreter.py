"""The evaluation of a program on a document's nodes, bottom-up; generated code is checked by it.

For every node n of a subtree, children first, and every relation p whose test n passes:

    M_p(n) = own(n) joined with L_e(n) for each edge e = (p, c),
    L_e(n) = the sum of M_c over n's children (or descendants, attributes, n itself).

A node passes up M (for its parent's child edges) and D, the sum of M over the node and all nodes
below it (for descendant edges). Nothing is kept for a node once its parent is done, except through
a `keep` callback: at the nodes where the counting maintainer joins deltas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any

import numpy as np

from axlog.document.tree import (
    ATTRIBUTE,
    CALL,
    COMMENT,
    DOCUMENT_NODE,
    ELEMENT,
    INSTRUCTION,
    NONE,
    TEXT,
    Tree,
)
from axlog.errors import QueryError
from axlog.evaluate.gathered import Bags, Gathered, Rising, merge
from axlog.evaluate.joins import FEW, MOST_ROWS, Bag, JoinPlan, Row, Tables, add_all
from axlog.evaluate.products import Products, own_value
from axlog.evaluate.relevant_nodes import LARGE, relevant_nodes
from axlog.evaluate.value_tests import comparison
from axlog.evaluate.work import Meters
from axlog.query.compile import Relation
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Literal,
    Name,
    PatternNode,
    Variable,
    Wildcard,
)

Keep = Callable[[int, Gathered, Bags], None]
"""Called for nodes, children first, with the rows passed up to each node and its own rows."""
_LEAF = (AnyText, AnyComment, AnyInstruction, Literal)
_BY_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)


class Interpreter:
    """Evaluates relations (of one view or of many) on subtrees of a tree."""

    def __init__(self, relations: Iterable[Relation], most_rows: int = MOST_ROWS) -> None:
        self.most_rows = most_rows
        self.plans: dict[Relation, JoinPlan] = {}
        self.descending: set[Relation] = set()
        self._values: dict[Relation, list[Callable[[str], bool]]] = {}
        self._products = Products()
        self.reads_elements = False  # whether a relation depends on the value of an element
        self._by_name: dict[str, list[Relation]] = {}
        self._by_text: dict[str, list[Relation]] = {}
        self._any_element: list[Relation] = []
        self._any_text: list[Relation] = []
        self._any_attribute: list[Relation] = []
        self._any_comment: list[Relation] = []
        self._any_instruction: list[Relation] = []
        self._by_target: dict[str, list[Relation]] = {}
        self._order: dict[Relation, int] = {}
        self._cache: dict[tuple[int, str], list[Relation]] = {}
        self._looked_for_by: dict[Relation, set[Relation | None]] = {}
        self._anywhere: set[Relation] = set()
        self._names: list[str] | None = None
        self._wanted_below: dict[tuple[int, int, int, int], list[Relation]] = {}
        self.visited = 0  # nodes evaluated since the start; tests of idle work read it
        self.meters: Meters | None = None  # set while an update with a budget is evaluated
        self.exploded: dict[Relation, QueryError] | None = None
        """Collects relations whose joins exceed the limit and then have no rows; None: raise."""
        self.add(relations)

    @property
    def relations(self) -> list[Relation]:
        """The relations, in evaluation order."""
        return list(self._order)

    def add(self, relations: Iterable[Relation]) -> None:
        """Add relations after the present ones."""
        new = [relation for relation in dict.fromkeys(relations) if relation not in self._order]
        for relation in new:
            self._order[relation] = len(self._order)
            self.plans[relation] = JoinPlan(relation)
            self.descending.update(e.relation for e in relation.edges if e.axis in _BY_DESCENT)
            self._values[relation] = _comparisons(relation.node)
            self.reads_elements |= self.depends_on_value(relation) and _may_be_element(relation)
            self._products.add(relation, self.plans[relation], bool(self._values[relation]))
            if relation.node is not None:
                self._dispatch(relation, relation.node)
        _note_lookers(new, self._looked_for_by, self._anywhere)
        self._cache, self._wanted_below = {}, {}

    def look_anywhere(self, relations: Iterable[Relation]) -> None:
        """Look for relations at any depth, for a relation above the subtrees that are evaluated."""
        self.descending.update(relations)
        self._anywhere.update(self.descending)
        self._wanted_below = {}

    def _dispatch(self, relation: Relation, node: PatternNode) -> None:
        """Index a relation by the labels or kinds that pass its test."""
        match node.test:
            case Name(label=label):
                key = f"@{label}" if node.axis is Axis.ATTRIBUTE else label
                self._by_name.setdefault(key, []).append(relation)
            case Wildcard():
                is_attribute = node.axis is Axis.ATTRIBUTE
                (self._any_attribute if is_attribute else self._any_element).append(relation)
            case Literal(text=text):
                self._by_text.setdefault(text, []).append(relation)
            case AnyText():
                self._any_text.append(relation)
            case AnyComment():
                self._any_comment.append(relation)
            case AnyInstruction(target=None):
                self._any_instruction.append(relation)
            case AnyInstruction(target=str(target)):
                self._by_target.setdefault(target, []).append(relation)
            case Variable():
                self._any_element.append(relation)
                self._any_text.append(relation)
            case AnyNode():
                kinds = [self._any_element, self._any_text, self._any_comment]
                kinds.append(self._any_instruction)
                kinds += [self._any_attribute] if node.axis is Axis.SELF else []
                for every in kinds:
                    every.append(relation)

    def depends_on_value(self, relation: Relation) -> bool:
        """Whether a change below a node can change the relation's own row at the node."""
        return bool(self._values[relation]) or any(s == "value" for _, s in relation.own)

    def passes_values(self, relation: Relation, value: str) -> bool:
        """Whether a node with this string value passes the relation's comparisons."""
        return all(check(value) for check in self._values[relation])

    def candidates(self, tree: Tree, node: int) -> list[Relation]:
        """The relations whose test the node passes, in evaluation order; ignoring values."""
        kind = tree.kind_column[node]
        if kind == ELEMENT or kind == ATTRIBUTE:
            label = tree.names[tree.label_column[node]]
            known = self._cache.get((kind, label))
            if known is None:
                every = self._any_element if kind == ELEMENT else self._any_attribute
                known = sorted([*self._by_name.get(label, ()), *every], key=self._order.__getitem__)
                self._cache[(kind, label)] = known
            return known
        if kind == TEXT and (self._by_text or self._any_text):
            found = self._by_text.get(tree.text(node)) if self._by_text else None
            if not found:
                return self._any_text
            return sorted([*found, *self._any_text], key=self._order.__getitem__)
        if kind == COMMENT:
            return self._any_comment
        if kind == INSTRUCTION:
            named = self._by_target.get(tree.target(node)) if self._by_target else None
            if not named:
                return self._any_instruction
            return sorted([*named, *self._any_instruction], key=self._order.__getitem__)
        return []

    def evaluate(
        self,
        tree: Tree,
        top: int,
        kept: Set[int] | tuple[()] = (),
        keep: Keep | None = None,
    ) -> Rising:
        """The rows of a subtree; calls `keep` for the nodes in `kept` with the rows passed up.

        Below the top, a relation is evaluated only where its parent's label allows it.
        """
        if not kept and not self._anywhere:
            return self._evaluate_near(tree, top)
        gathered: dict[int, Gathered] = {}
        parent, kinds = tree.parent_column, tree.kind_column
        for node, relations in self._nodes(tree, top, kept):
            below = gathered.pop(node, None)
            is_top = node == top
            if below is None and not relations and not is_top and node not in kept:
                continue
            here = self.at_node(tree, node, relations, below or _NOTHING) if relations else {}
            if keep is not None and node in kept:
                keep(node, below or Gathered(), here)
            everywhere = self._everywhere(here, below)
            if kinds[node] == ATTRIBUTE:  # descent never enters attributes
                everywhere = {}
            if is_top:
                return Rising(here, everywhere)
            if here or everywhere:
                above = gathered.get(parent[node])
                if above is None:
                    above = gathered[parent[node]] = Gathered()
                merge(above.children, here)
                merge(above.descendants, everywhere)
        raise AssertionError("a subtree has a top")

    def _evaluate_near(self, tree: Tree, top: int) -> Rising:
        """`evaluate` if every relation is looked for among children and attributes only."""
        gathered: dict[int, Bags] = {}
        parent = tree.parent_column
        nodes = self._needed(tree, top)
        self.visited += len(nodes)
        for node, relations in reversed(nodes):
            below = gathered.pop(node, _NO_BAGS)
            here = None if self.exploded else self._products.at_node(tree, node, relations, below)
            if here is None:
                here = self.at_node(tree, node, relations, Gathered(below, {}))
            if node == top:
                return Rising(here, {})
            if here:
                above = gathered.get(parent[node])
                if above is None:
                    gathered[parent[node]] = here
                    continue
                for relation, bag in here.items():
                    known = above.setdefault(relation, bag)
                    if known is not bag:
                        add_all(known, bag)
        raise AssertionError("a subtree has a top")

    def _nodes(
        self, tree: Tree, top: int, kept: Set[int] | tuple[()]
    ) -> Iterable[tuple[int, list[Relation]]]:
        """The nodes of a subtree to look at, children before parents, with their relations."""
        if top == DOCUMENT_NODE and len(tree) > LARGE and isinstance(kept, Set):
            nodes = relevant_nodes(tree, lambda node: self._wanted(tree, node), kept)
        else:
            nodes = list(tree.subtree(top))
        self.visited += len(nodes)
        return (
            (
                node,
                self.candidates(tree, node) if node == top else self.candidates_below(tree, node),
            )
            for node in reversed(nodes)
        )

    def _needed(self, tree: Tree, top: int) -> list[tuple[int, list[Relation]]]:
        """The nodes of a subtree that a relation may match, below nodes that one may match.

        They suffice if every relation is looked for among children and attributes only: the rows of
        other nodes are passed to a node that no relation matches.
        """
        first, following = tree.first_column, tree.next_column
        kinds, labels = tree.kind_column, tree.label_column
        if self._names is not tree.names:  # name indexes differ between trees
            self._names, self._wanted_below = tree.names, {}
        found = [(top, self.candidates(tree, top))]
        waiting = [top] if found[0][1] else []
        while waiting:
            above = waiting.pop()
            kind_above, label_above = kinds[above], labels[above]
            node = first[above]
            while node != NONE:
                kind = kinds[node]
                label = labels[node] if kind == ELEMENT or kind == ATTRIBUTE else 0
                wanted = self._wanted_below.get((kind, label, kind_above, label_above))
                if wanted is None:
                    wanted = self._wanted(tree, node)
                if wanted:
                    if (kind == TEXT and self._by_text) or kind == INSTRUCTION:
                        wanted = self.candidates_below(tree, node)
                    if wanted:
                        found.append((node, wanted))
                        if first[node] != NONE:
                            waiting.append(node)
                node = following[node]
        return found

    def sees(self, tree: Tree, top: int, most: int) -> bool:
        """Whether a subtree matters to a relation, or has more nodes than `most` or a call.

        A relation may match one of its nodes, or compare the value of an element around its texts.
        """
        kinds, reads = tree.kind_column, self.reads_elements
        for size, node in enumerate(tree.subtree(top), 1):
            kind = kinds[node]
            if kind == CALL or size > most or self.candidates_below(tree, node):
                return True
            if reads and kind == TEXT and kinds[tree.parent_column[node]] != ATTRIBUTE:
                if self._compares_above(tree, top):
                    return True
                reads = False
        return False

    def may_see(self, tree: Tree, nodes: np.ndarray[Any, Any]) -> bool:
        """Whether a relation may match one of many nodes, by their labels and those above them."""
        kinds = np.frombuffer(tree.kind_column, dtype=np.int8)[nodes].astype(np.int64)
        labels = np.frombuffer(tree.label_column, dtype=np.int32)
        above = labels[np.frombuffer(tree.parent_column, dtype=np.int32)[nodes]]
        own = np.where((kinds == ELEMENT) | (kinds == ATTRIBUTE), labels[nodes], 0)
        keys = (own.astype(np.int64) << 36) + (above.astype(np.int64) << 4) + kinds
        _, places = np.unique(keys, return_index=True)
        return any(self._wanted(tree, node) for node in nodes[places].tolist())

    def _compares_above(self, tree: Tree, node: int) -> bool:
        """Whether a relation may depend on the value of a node above this one."""
        above = tree.parent_column[node]
        while above > DOCUMENT_NODE:
            if any(self.depends_on_value(relation) for relation in self.candidates(tree, above)):
                return True
            above = tree.parent_column[above]
        return False

    def rising(self, tree: Tree, top: int) -> Rising:
        """The rows of a subtree; a subtree that no relation can match is not evaluated."""
        return self.evaluate(tree, top) if self.sees(tree, top, len(tree)) else Rising()

    def gathered(self, tree: Tree, tops: Iterable[int]) -> Gathered:
        """The rows that several subtrees pass up to the node above them."""
        below = Gathered()
        for top in tops:
            risen = self.evaluate(tree, top)
            merge(below.children, risen.here)
            merge(below.descendants, risen.everywhere)
        return below

    def candidates_below(self, tree: Tree, node: int) -> list[Relation]:
        """The candidates at a node that a relation at its parent may need."""
        wanted = self._wanted(tree, node)
        kind = tree.kind_column[node]
        if wanted and ((kind == TEXT and self._by_text) or kind == INSTRUCTION):
            return [relation for relation in self.candidates(tree, node) if relation in wanted]
        return wanted

    def _wanted(self, tree: Tree, node: int) -> list[Relation]:
        """The relations that a node may match, by its label and that of its parent."""
        kind, above = tree.kind_column[node], tree.parent_column[node]
        if kind == TEXT or kind == COMMENT or kind == INSTRUCTION:
            key = (kind, 0, tree.kind_column[above], tree.label_column[above])
        elif kind == ELEMENT or kind == ATTRIBUTE:
            key = (kind, tree.label_column[node], tree.kind_column[above], tree.label_column[above])
        else:
            return []
        if self._names is not tree.names:  # name indexes differ between trees
            self._names, self._wanted_below = tree.names, {}
        wanted = self._wanted_below.get(key)
        if wanted is None:
            wanted = self._wanted_below[key] = self._find_wanted(tree, node)
        return wanted

    def _find_wanted(self, tree: Tree, node: int) -> list[Relation]:
        above = tree.parent_column[node]
        there = (
            set(self.candidates(tree, above))
            if tree.kind_column[above] in (ELEMENT, ATTRIBUTE)
            else ()
        )
        if tree.kind_column[node] == TEXT:
            possible = [r for each in self._by_text.values() for r in each] + self._any_text
            possible = sorted(set(possible), key=self._order.__getitem__)
        elif tree.kind_column[node] == INSTRUCTION:
            possible = [r for each in self._by_target.values() for r in each]
            possible = sorted([*possible, *self._any_instruction], key=self._order.__getitem__)
        else:
            possible = self.candidates(tree, node)
        return [
            relation
            for relation in possible
            if relation in self._anywhere
            or (parents := self._looked_for_by.get(relation)) is None
            or not parents.isdisjoint(there)
            or (above == DOCUMENT_NODE and None in parents)
        ]

    def at_node(
        self, tree: Tree, node: int, relations: Iterable[Relation], below: Gathered
    ) -> Bags:
        """M at one node for these relations, given the rows passed up to it."""
        here: Bags = {}
        for relation in relations:
            assert relation.node is not None
            if relation.edges and not self._may_hold(relation, below, here):
                continue
            value: str | None = None
            checks = self._values[relation]
            if checks:
                value = tree.string_value(node)
                if not all(check(value) for check in checks):
                    continue
            own = self.own_row(tree, node, relation, value)
            bag = self.rows(relation, own, below, here)
            if bag:
                here[relation] = bag
        return here

    def rows(self, relation: Relation, own: Row, below: Gathered, here: Bags) -> Bag:
        """The relation's rows at a node: the join of its parts' bags."""
        if self.exploded and relation in self.exploded:
            return {}
        plan = self.plans[relation]
        if plan.is_product:
            pick = plan.finish.output
            if not relation.edges:
                return {pick(own): 1}
            (edge,) = relation.edges
            bag = below.part(edge.axis, edge.relation, here)
            if len(bag) <= FEW:
                beside: Bag = {}
                for row, count in bag.items():
                    shown = pick(own + row)
                    beside[shown] = beside.get(shown, 0) + count
                return beside
        bags = [below.part(edge.axis, edge.relation, here) for edge in relation.edges]
        if not all(bags):
            return {}
        alternatives = []
        for choice in relation.choices:
            found = [self.rows(a, (), below, here) for a in choice.alternatives]
            alternatives.append(found)
            bags.append(distinct(choice.columns, choice.alternatives, found))
        bodies = [self.rows(absence.body, (), below, here) for absence in relation.absences]
        lookups = Tables(alternatives, bodies)
        meter = None if self.meters is None else self.meters[relation]
        try:
            bag = plan.join(own, bags, lookups, self.most_rows, meter)
            if meter is not None and len(bag) > FEW:
                meter.spend(len(bag))
            return bag
        except QueryError as error:
            if self.exploded is None:
                raise
            self.exploded[relation] = error.kept()
            return {}

    def own_row(self, tree: Tree, node: int, relation: Relation, value: str | None = None) -> Row:
        """The row of the node's own columns."""
        own = relation.own
        if not own:
            return ()
        if len(own) == 1:
            return (own_value(tree, node, own[0][1], value),)
        return tuple(own_value(tree, node, source, value) for _, source in relation.own)

    def _may_hold(self, relation: Relation, below: Gathered, here: Bags) -> bool:
        """Whether no edge is empty."""
        for edge in relation.edges:
            axis, wanted = edge.axis, edge.relation
            if axis is Axis.CHILD or axis is Axis.ATTRIBUTE:
                if wanted not in below.children:
                    return False
            elif axis is Axis.DESCENDANT and wanted not in below.descendants:
                return False
        return True

    def _everywhere(self, here: Bags, below: Gathered | None) -> Bags:
        """D: the sums over the node and all nodes below it."""
        everywhere = below.descendants if below is not None else {}
        for relation, bag in here.items():
            if relation in self.descending:
                everywhere = dict(everywhere) if below is not None else everywhere
                total = dict(everywhere.get(relation, _EMPTY))
                add_all(total, bag)
                everywhere[relation] = total
        return everywhere


def _note_lookers(
    relations: Iterable[Relation],
    found: dict[Relation, set[Relation | None]],
    anywhere: set[Relation],
) -> None:
    """Record for each relation the relations that need it among their node's children.

    None stands for the document node. A relation needed at any depth, or at the node itself, is
    `anywhere`: every node may need it.
    """

    def look(owner: Relation | None, relation: Relation) -> None:
        for edge in relation.edges:
            if edge.axis in (Axis.CHILD, Axis.ATTRIBUTE):
                found.setdefault(edge.relation, set()).add(owner)
            else:
                anywhere.add(edge.relation)
        for choice in relation.choices:
            for alternative in choice.alternatives:
                look(owner, alternative)
        for absence in relation.absences:
            look(owner, absence.body)

    for relation in relations:
        # A conjunction may be a view's root, at the document node, and be part of another one too.
        look(relation if relation.node is not None else None, relation)


def distinct(
    columns: tuple[str, ...], alternatives: Iterable[Relation], bags: Iterable[Bag]
) -> Bag:
    """The bindings of a choice: each row once, however many alternatives give it."""
    found: Bag = {}
    for alternative, bag in zip(alternatives, bags, strict=True):
        at = [alternative.columns.index(column) for column in columns]
        for row in bag:
            found[tuple(row[i] for i in at)] = 1
    return found


def _may_be_element(relation: Relation) -> bool:
    node = relation.node
    return node is not None and node.axis is not Axis.ATTRIBUTE and not isinstance(node.test, _LEAF)


def _comparisons(node: PatternNode | None) -> list[Callable[[str], bool]]:
    if node is None:
        return []
    return [
        comparison(c.operator, c.operand)
        for c in node.comparisons
        if not isinstance(c.operand, Variable)
    ]


_EMPTY: Bag = {}
_NO_BAGS: Bags = {}
_NOTHING = Gathered()
