"""Order: the ordered index against a sorted list, slices that move, the best row by key."""

from collections.abc import Iterator
from decimal import Decimal
from operator import itemgetter
from random import Random
from typing import Any

import pytest

from axlog.evaluate.joins import Row
from axlog.evaluate.sort_keys import exact_key
from axlog.query.dates import HOUR, Date, DateTime
from axlog.views.operators import ordered_index
from axlog.views.operators.feed import Stored
from axlog.views.operators.order import Descending
from axlog.views.operators.ordered_index import OrderedIndex
from axlog.views.operators.top import Top

VEHICLE = ("vehicle", "time", "place")


@pytest.fixture(params=(2, 5, 512))
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Blocks of several sizes: small ones are split and joined all the time."""
    monkeypatch.setattr(ordered_index, "BLOCK", request.param)
    return int(request.param)


def second_first(row: Row) -> Descending:
    """The order by the second column, the greatest first."""
    return Descending(row[1])


def test_an_ordered_index_is_a_sorted_list(block: int) -> None:
    random = Random(block)
    index, model = OrderedIndex(), dict[int, int]()
    for step in range(3000):
        key = random.randrange(200)
        grows = step < 1200 or (step // 300) % 2
        count = random.choice((1, 2)) if grows else -model.get(key, 0)
        if not count:
            continue
        total = model.get(key, 0) + count
        assert index.add(key, -key, count) == total
        model[key] = total
        if not total:
            del model[key]
        ordered = sorted(model)
        probe = random.randrange(-1, 201)
        assert len(index) == len(ordered)
        assert index.rank(probe) == sum(each < probe for each in ordered)
        assert index.rank(probe, after=True) == sum(each <= probe for each in ordered)
        assert index.get(probe) == (-probe if probe in model else None)
        if ordered:
            at = random.randrange(len(ordered))
            assert index.at(at) == (ordered[at], -ordered[at], model[ordered[at]])
            assert (index.first_item, index.last_key) == (-ordered[0], ordered[-1])
            stop = random.randrange(len(ordered) + 2)
            assert [entry.key for entry in index.entries(at, stop)] == ordered[at:stop]
            assert sum(index.parts(at, stop, sum)) == -sum(ordered[at:stop])
    assert [entry.total for entry in index.entries()] == [model[key] for key in sorted(model)]


def test_cells_of_all_kinds_have_an_order() -> None:
    cells: list[Any] = ["b", 2.5, None, "", ("a", 1), True, float("nan"), ("a",), -1]
    ordered = sorted(cells, key=exact_key)
    assert ordered[0] is None
    assert ordered[1] != ordered[1]
    assert ordered[2:] == [-1, 2.5, "", "b", True, ("a",), ("a", 1)]
    assert sorted([2.5, 7, 3], key=lambda cell: Descending(exact_key(cell))) == [7, 3, 2.5]


def test_equal_cells_have_equal_keys_and_other_cells_have_not() -> None:
    noon, same = DateTime(12 * HOUR, 0), DateTime(13 * HOUR, 60)
    assert noon == same
    assert exact_key(noon) == exact_key(same)
    assert exact_key(Date(0, 0)) != exact_key(DateTime(0, 0))
    assert exact_key(0.5) == exact_key(Decimal("0.5"))
    assert exact_key(0.1) != exact_key(Decimal("0.1"))


def test_the_next_row_enters_when_one_leaves() -> None:
    top = Top(Stored(("name", "score"), {}), second_first, stop=2)
    assert top.apply(0, {("a", 1): 1, ("b", 2): 1}) == {("a", 1): 1, ("b", 2): 1}
    assert top.apply(0, {("c", 3): 1}) == {("a", 1): -1, ("c", 3): 1}
    assert top.apply(0, {("d", 0): 1}) == {}
    assert top.in_order() == [(("c", 3), 1), (("b", 2), 1)]
    assert top.apply(0, {("b", 2): -1}) == {("b", 2): -1, ("a", 1): 1}
    assert top.apply(0, {("c", 3): 2}) == {("c", 3): 2}
    assert top.apply(0, {("b", 1): 1}) == {}  # a tie goes to the row that sorts first
    assert top.apply(0, {("A", 1): 1}) == {("a", 1): -1, ("A", 1): 1}


@pytest.mark.parametrize(
    ("start", "stop", "shown"),
    [(-1, None, [4]), (-2, -1, [3]), (0, -1, [0, 1, 2, 3]), (1, 3, [1, 2]), (9, None, [])],
)
def test_slices_count_from_both_ends(start: int, stop: int | None, shown: list[int]) -> None:
    top = Top(Stored(("n",), {}), itemgetter(0), start, stop)
    for n in (3, 0, 4, 1, 2):
        top.apply(0, {(n,): 1})
    assert top.in_order() == [((n,), 1) for n in shown]


def messages(count: int) -> Iterator[Row]:
    random = Random(3)
    return ((f"v{random.randrange(5)}", at, random.random()) for at in range(count))  # type: ignore[misc]


def test_of_input_that_only_grows_the_shown_rows_are_kept() -> None:
    below = Stored(VEHICLE, {})
    latest = Top(below, second_first, stop=1, per=("vehicle",))
    top = Top(below, second_first, stop=1, per=("vehicle",))
    short = Top(below, second_first, stop=3)
    for number, row in enumerate(messages(400)):
        if number == 100:
            latest.expect_insertions()
            short.expect_insertions()
            assert (latest.size().rows, short.size().rows) == (5, 3)
        assert latest.apply(0, {row: 1}) == top.apply(0, {row: 1})
        short.apply(0, {row: 1})
    assert (latest.size().rows, short.size().rows) == (5, 3)
    assert top.size().rows == 400
    assert latest.lookup(("vehicle",), ("v1",)) == top.lookup(("vehicle",), ("v1",))
