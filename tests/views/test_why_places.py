"""Derivations by the nodes that have the row's values, against all valuations of the definition."""

from __future__ import annotations

from random import Random

import pytest

from axlog.document.loader import load, read_forest
from axlog.document.operations import Delete, Insert, Where
from axlog.document.pending import apply
from axlog.document.tree import ELEMENT, Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import AxlogError
from axlog.evaluate.definition import row_of, valuations
from axlog.evaluate.text_search import labelled
from axlog.query.pattern import Kind
from axlog.views.why import derivations
from lab.laws.filters_law import decorate
from lab.laws.small_cases import Features, fragment, pattern
from tests.amounts import chunks

FEATURES = Features(outputs=(Kind.VARIABLE, Kind.LABEL), collects=False)


def edited(random: Random) -> Tree:
    """A document with loaded nodes, inserted nodes and the trace of removed ones."""
    tree = load(decorate(random, fragment(random, random.randint(4, 14))))
    elements = [node for node in tree.subtree(tree.root) if tree.kind_column[node] == ELEMENT]
    more = read_forest(fragment(random, random.randint(1, 6)))
    apply(tree, [Insert(Where.LAST, random.choice(elements), tuple(more))])
    inside = elements[1:]
    if inside and random.random() < 0.5:
        apply(tree, [Delete(random.choice(inside))])
    return tree


@pytest.mark.parametrize("start", chunks(120, 60))
def test_differential_derivations_of_rows_and_all_valuations(start: int) -> None:
    compared = 0
    for seed in range(start, start + 60):
        random = Random(seed)
        tree, asked = edited(random), pattern(random, FEATURES)
        try:
            every = list(valuations(tree, asked, most=20_000))
        except AxlogError:
            continue
        by_row: dict[tuple[object, ...], list[dict[int, int]]] = {}
        for one in every:
            by_row.setdefault(row_of(tree, asked, one)[1], []).append(one.nodes)
        for values, nodes in list(by_row.items())[:5]:
            row = dict(zip(asked.columns, values, strict=True))
            index = ValueIndex(tree) if seed % 2 else None
            found = derivations(tree, asked, row, index=index)
            ids = sorted([str(m.id) for m in each.matched] for each in found)
            expected = sorted([str(tree.id(n)) for _, n in sorted(e.items())] for e in nodes)
            assert ids == expected, f"seed {seed}: {asked} {values}"
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("seed", range(20))
def test_differential_labelled_nodes_and_a_scan(seed: int) -> None:
    tree = edited(Random(seed))
    nodes = [node for node in tree.subtree(tree.root) if node != 0]
    for label in {tree.label(node) for node in nodes}:
        scanned = {node for node in nodes if tree.label(node) == label}
        assert {node for node in labelled(tree, label) if tree.is_alive(node)} >= scanned
