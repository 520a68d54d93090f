"""Rows known by one node: kept without tables of bindings, by walking and by arrays, the same."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axlog.document import bulk_operations
from axlog.document.loader import load
from axlog.document.operations import Delete
from axlog.document.pending import apply
from axlog.query.pattern import Pattern
from axlog.query.query import parse_query
from axlog.views.algebraic import direct, direct_code, labels, propagation
from axlog.views.algebraic.direct import identifying_node
from axlog.views.algebraic.few_insertions import FewInsertions
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.node_rows import NodeRows
from axlog.views.algebraic.relation import Relation
from axlog.views.algebraic.shape import shape_of
from axlog.views.algebraic.tables import Table, node_column
from axlog.views.reevaluate import Reevaluate
from lab.laws import small_cases
from lab.laws.algebra_law import Watcher, accepted, update
from tests.amounts import chunks

_DIRECTLY = direct.moved_directly
_ONE_BY_ONE = FewInsertions.counts


def known_by_one_node(random: Random) -> Pattern:
    while True:
        made = accepted(random)
        if identifying_node(shape_of(made)) is not None:
            return made


@pytest.mark.parametrize("few", [0, 8])
@pytest.mark.parametrize("start", chunks(100, 100))
def test_differential_rows_and_changes_are_those_of_re_evaluation(
    few: int, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 1; with `few` of none all that can be done by arrays is."""
    done: list[bool] = []

    def counted(*given: object) -> object:
        found = _DIRECTLY(*given)  # type: ignore[arg-type]  # what propagation gives
        done.append(found is not None)
        return found

    def one_by_one(self: FewInsertions, *given: Any) -> dict[int, int]:
        done_one_by_one.append(True)
        return _ONE_BY_ONE(self, *given)

    done_one_by_one: list[bool] = []
    monkeypatch.setattr(FewInsertions, "counts", one_by_one)
    monkeypatch.setattr(propagation, "moved_directly", counted)
    monkeypatch.setattr(bulk_operations, "FEWEST", 2)
    monkeypatch.setattr(labels, "FEW", few)
    if not few:
        monkeypatch.setattr(direct, "FEW", 0)
        monkeypatch.setattr(direct, "FEW_PLACES", 0)
        monkeypatch.setattr(direct_code, "LONG", 1)
    else:
        monkeypatch.setattr(direct, "WALKED", 3)  # some walks are given up
    for seed in range(start, start + 100):
        random = Random(f"direct:{seed}")
        pattern = known_by_one_node(random)
        tree = load(small_cases.document(random, random.randint(1, 30)))
        tested, plain = Watcher(Algebraic(tree, pattern)), Watcher(Reevaluate(tree, pattern))
        for _ in range(random.randint(1, 5)):
            update(random, tree, [tested, plain])
            assert tested.rows() == plain.rows(), (seed, str(pattern))
            assert tested.told() == plain.told(), (seed, str(pattern))
    assert sum(done) > 10
    assert len(done_one_by_one) > 4 or not few


K = node_column(1)
MOVES = st.lists(
    st.dictionaries(st.integers(0, 200), st.integers(-2, 3).filter(bool), max_size=6), max_size=12
)


@given(MOVES)
def test_rows_by_handle_are_those_by_key(moves: list[dict[int, int]]) -> None:
    by_handle, by_key = NodeRows(K), Relation((K,), (K,))
    for moved in moves:
        nodes = np.array(list(moved), dtype=np.int64)
        table = Table({K: nodes}, np.array(list(moved.values()), dtype=np.int64))
        for rows in (by_handle, by_key):
            slots, old, new = rows.add(table)
            assert (new - old == table.counts).all()
            assert (rows.values(K, slots) == nodes).all()
            rows.release(slots[new == 0])
        assert len(by_handle) == len(by_key)
        seen = [
            dict(zip(all_.columns[K].tolist(), all_.counts.tolist(), strict=True))
            for all_ in (by_handle.table(), by_key.table())
        ]
        assert seen[0] == seen[1]
        asked = np.arange(0, 201, 7)
        found = [sorted(r.values(K, r.with_value(K, asked)).tolist()) for r in (by_handle, by_key)]
        assert found[0] == found[1]


def test_a_label_that_is_no_more_leaves_no_rows() -> None:
    tree = load("<r><a><b>1</b></a><a><b>2</b></a></r>")
    pattern = parse_query("match /r/a/b#x return x.val").pattern
    kept = Algebraic(tree, pattern)
    view = Watcher(kept)
    assert sorted(values for values, _ in view.rows()) == [("1",), ("2",)]
    apply(tree, [Delete(node) for node in tree.partition("a")], watchers=[view])
    assert not view.rows()
    changes = sorted((change.op, change.row.values_) for change in view.changes)
    assert changes == [("delete", ("1",)), ("delete", ("2",))]
    assert kept.report.reason == "there is no a left"
