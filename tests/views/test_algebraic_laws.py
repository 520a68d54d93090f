"""Laws 1 and 2 for the algebraic engine (`lab/laws/algebra_law.py`), and the parts it is made of.

Seeds give the bulk, Hypothesis cuts down what fails; `lab fuzz --law algebra` runs more.
"""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axlog.document import bulk_operations, pending
from axlog.document.loader import load
from axlog.document.reduction import reduce
from axlog.document.serializer import serialise
from axlog.document.update_lists import addressed, resolved
from axlog.errors import AxlogError
from axlog.views.algebraic import propagation
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.relation import Relation, SortedIndex
from axlog.views.algebraic.selection import Selections
from axlog.views.algebraic.tables import Table, grouped, joined, node_column, together
from axlog.views.algebraic.terms import ALL, Term, judged
from axlog.views.reevaluate import Reevaluate
from lab.laws import small_cases
from lab.laws.algebra_law import Watcher, accepted, check_algebra, make_algebra_case
from lab.laws.fuzzing import run_case
from tests.accepted_errors import accept
from tests.amounts import cases, chunks

CHUNK = 250


@pytest.fixture(autouse=True)
def _alike_from_two_operations_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_operations, "FEWEST", 2)


@pytest.mark.parametrize("start", chunks(250, CHUNK))
def test_differential_rows_and_changes_are_those_of_re_evaluation(start: int) -> None:
    failures = [f for s in range(start, start + CHUNK) if (f := run_case(s, "algebra")) is not None]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


@settings(max_examples=cases(40))
@given(random=st.randoms(use_true_random=False))
def test_differential_rows_and_changes_for_hypothesis(random: Random) -> None:
    check_algebra(make_algebra_case(random))


def test_a_forgotten_condition_at_the_document_node_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it was once: `or` and `not` at the document node taken to hold."""
    monkeypatch.setattr(Selections, "holds", lambda self, columns: True)
    every = {"algebraic", "ivma", "adaptive"}
    wrong: set[str | None] = set()
    for seed in range(5000):
        if wrong == every:
            break
        made = make_algebra_case(Random(f"algebra:{seed}"))
        if made.case.maintainer not in wrong:
            try:
                check_algebra(made)
            except AssertionError:
                wrong.add(made.case.maintainer)
    assert wrong == every


def test_differential_reduced_lists_give_the_same_view() -> None:
    """Law 2: a list reduced by the rules of P5 5.3 leaves the document and the view as given."""
    compared = 0
    for seed in range(cases(80)):
        random = Random(f"reduced:{seed}")
        pattern = accepted(random)
        text = small_cases.document(random, random.randint(4, 16))
        given, reduced = load(text), load(text)
        operations = small_cases.operations(random, given, 6)
        views = [Watcher(Algebraic(tree, pattern)) for tree in (given, reduced)]
        try:
            pending.apply(given, operations, watchers=[views[0]])
        except AxlogError as error:
            accept(error)
            continue
        fewer = resolved(reduced, reduce(addressed(reduced, operations)))
        pending.apply(reduced, fewer, watchers=[views[1]])
        assert serialise(given) == serialise(reduced), seed
        for view, tree in zip(views, (given, reduced), strict=True):
            assert view.rows() == Watcher(Reevaluate(tree, pattern)).rows(), (seed, str(pattern))
        compared += 1
    assert compared > cases(40)


def test_a_wrong_term_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed proposition 4.3 (leave even terms out) is wrong for counts: it must show."""

    def printed(shape: Any, sign: int, facts: Any) -> Any:
        left = [one for one in judged(shape, sign, facts, ALL) if isinstance(one, Term)]
        return [term for term in left if sign > 0 or len(term.delta) % 2]

    monkeypatch.setattr(propagation, "surviving", printed)
    assert any(run_case(seed, "algebra") for seed in range(400))


# The parts ----------------------------------------------------------------------------------------

A, B = node_column(1), node_column(2)
INTEGERS = st.integers(min_value=0, max_value=4)
PAIRS = st.lists(st.tuples(INTEGERS, INTEGERS), max_size=8)


def table(rows: list[tuple[int, int]], count: int = 1) -> Table:
    both = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
    return Table({A: both[:, 0], B: both[:, 1]}, np.full(len(rows), count, dtype=np.int64))


def bag(made: Table) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    columns = [made.columns[name].tolist() for name in sorted(made.columns)]
    for row, count in zip(zip(*columns, strict=True), made.counts.tolist(), strict=True):
        found[row] += count
    return found


@settings(max_examples=cases(40))
@given(left=PAIRS, right=PAIRS)
def test_a_join_is_every_pair_that_agrees(left: list[Any], right: list[Any]) -> None:
    other = Table(
        {A: table(right).columns[A], node_column(3): table(right).columns[B]}, table(right).counts
    )
    wanted = Counter((a, b, c) for a, b in left for d, c in right if a == d)
    assert bag(joined(table(left), other, A)) == wanted
    assert bag(grouped(table(left))) == Counter(left)
    assert bag(together([table(left), table(left).times(-1)], (A, B))) == Counter()


@settings(max_examples=cases(40))
@given(steps=st.lists(st.tuples(PAIRS, st.integers(min_value=-1, max_value=2)), max_size=12))
def test_a_relation_is_a_bag(steps: list[Any]) -> None:
    relation = Relation((A, B), (A, B))
    model: Counter[tuple[int, int]] = Counter()
    for rows, count in steps:
        distinct = [row for row in dict.fromkeys(rows) if model[row] + count >= 0]
        slots, old, new = relation.add(table(distinct, count or 1))
        assert old.tolist() == [model[row] for row in distinct]
        for row in distinct:
            model[row] += count or 1
        assert new.tolist() == [model[row] for row in distinct]
        relation.release(slots[new == 0])
        model = Counter({row: n for row, n in model.items() if n})
        assert bag(relation.table()) == model
        assert len(relation) == len(model)
        for value in range(5):
            found = relation.with_value(A, np.array([value], dtype=np.int64))
            assert set(bag(relation.table(found))) == {row for row in model if row[0] == value}


def test_an_index_merges_its_runs() -> None:
    index = SortedIndex()
    for number in range(100):
        index.add(np.array([number % 7], dtype=np.int64), np.array([number], dtype=np.int64))
    assert len(index) == 100
    assert len(index._runs) < 8
    assert sorted(index.find(np.array([3], dtype=np.int64))[1].tolist()) == list(range(3, 100, 7))
