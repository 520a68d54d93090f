"""The derivation counts of the rows of a question, computed on request.

Records hold whether a node is selected, but not in how many ways. The number of ways is a sum of
products (docs/meaning.md), the same for every axis: W_q(n) = test(n) · Π over q's steps of the sum
of W along the way of the step. `or` and `not` count one or zero. The computation makes one pass
over the document for each step. Law: the counts equal those of the definition.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.document.tree import DOCUMENT_NODE, ELEMENT, NONE, Tree
from axlog.views.records.facts import Facts
from axlog.views.records.question import Conjunction, Either, Letters, Neither, Question, Way

Weights = list[int]


class NodeOrder:
    """The nodes of a document in order, with the links that the ways between them need."""

    def __init__(self, tree: Tree) -> None:
        self.nodes = [DOCUMENT_NODE, *tree.descendants(DOCUMENT_NODE)]
        numbers = {node: number for number, node in enumerate(self.nodes)}
        count = len(self.nodes)
        self.parent = [NONE] * count
        self.next = [NONE] * count
        self.previous = [NONE] * count
        self.is_element = [tree.kind_column[node] == ELEMENT for node in self.nodes]
        for number, node in enumerate(self.nodes[1:], 1):
            self.parent[number] = numbers[tree.parent_column[node]]
            following = tree.next_column[node]
            if following != NONE:
                self.next[number] = numbers[following]
                self.previous[numbers[following]] = number

    def along(self, way: Way, weights: Weights) -> Weights:
        """For every node, the sum of the weights of the nodes that a way leads to."""
        match way:
            case Way.SELF | Way.HERE:
                return weights
            case Way.CHILD | Way.DESCENDANT:
                return self._below(weights, way is Way.DESCENDANT)
            case Way.DESCENDANT_OR_SELF:
                return _plus(weights, self._below(weights, True))
            case Way.PARENT | Way.ANCESTOR:
                return self._above(weights, way is Way.ANCESTOR)
            case Way.ANCESTOR_OR_SELF:
                return _plus(weights, self._above(weights, True))
        onward = way in (Way.NEXT, Way.FOLLOWING, Way.NEXT_RUN)
        order = range(len(weights) - 1, -1, -1) if onward else range(len(weights))
        return self._beside(weights, self.next if onward else self.previous, order, way)

    def _below(self, weights: Weights, is_deep: bool) -> Weights:
        found = [0] * len(weights)
        for number in range(len(weights) - 1, 0, -1):
            found[self.parent[number]] += weights[number] + (found[number] if is_deep else 0)
        return found

    def _above(self, weights: Weights, is_deep: bool) -> Weights:
        found = [0] * len(weights)
        for number in range(1, len(weights)):
            above = self.parent[number]
            found[number] = weights[above] + (found[above] if is_deep else 0)
        return found

    def _beside(
        self, weights: Weights, neighbours: list[int], order: Iterable[int], way: Way
    ) -> Weights:
        found = [0] * len(weights)
        single = way in (Way.NEXT, Way.PREVIOUS)
        every = way in (Way.FOLLOWING, Way.PRECEDING)
        for number in order:
            beside = neighbours[number]
            if beside == NONE:
                continue
            is_element = self.is_element[beside]
            counts = is_element or not single
            goes_on = every or not is_element
            found[number] = (weights[beside] if counts else 0) + (found[beside] if goes_on else 0)
        return found


def _plus(one: Weights, other: Weights) -> Weights:
    return [a + b for a, b in zip(one, other, strict=True)]


def derivation_counts(tree: Tree, question: Question, facts: Facts) -> dict[int, int]:
    """The derivation count of every node at which the question holds."""
    weighing = NodeOrder(tree)
    letters = Letters(question)
    passed = [letters.of(tree, node) for node in weighing.nodes]
    counts = {fact.step: fact.counts for fact in facts.each}
    along: list[Weights] = []
    weights: Weights = []
    for number, step in enumerate(question.steps):
        if number in counts:
            held = counts[number]
            weights = [held.get(node, 0) for node in weighing.nodes]
        else:
            weights = [
                _product(step.items, along, at) if letter >> number & 1 else 0
                for at, letter in enumerate(passed)
            ]
        along.append(weighing.along(step.way, weights))
    return {
        node: 1 if question.distinct else weight
        for node, weight in zip(weighing.nodes, weights, strict=True)
        if weight
    }


def _product(items: Conjunction, along: list[Weights], at: int) -> int:
    product = 1
    for item in items:
        if isinstance(item, Either):
            product *= any(_product(inside, along, at) for inside in item.alternatives)
        elif isinstance(item, Neither):
            product *= not _product(item.inside, along, at)
        else:
            product *= along[item][at]
        if not product:
            return 0
    return product
