"""Filter, map and group: examples, exact sums, partial aggregates, and what is refused."""

import gc
from collections import Counter
from decimal import Decimal
from math import inf, isnan, nan
from operator import itemgetter
from random import Random
from typing import Any

import pytest

from axlog import Document
from axlog.errors import StoreError
from axlog.evaluate.joins import Bag
from axlog.query.dates import HOUR, DayTimeDuration, YearMonthDuration
from axlog.views.operators.aggregates import (
    Average,
    Collect,
    Count,
    CountDistinct,
    Max,
    Min,
    StringJoin,
    Sum,
    SumState,
)
from axlog.views.operators.exact_sum import ExactSum
from axlog.views.operators.feed import Stored
from axlog.views.operators.filter import Filter
from axlog.views.operators.group import Group
from axlog.views.operators.map import Map
from axlog.views.operators.measures import Member

CLIENT, TOTAL = itemgetter(0), itemgetter(1)


def orders(*keys: str, always: bool = False) -> tuple[Stored, Group]:
    below = Stored(("client", "total"), {})
    aggregates = [("orders", Count()), ("total", Sum(TOTAL)), ("most", Max(TOTAL))]
    return below, Group(below, keys, aggregates, always=always)


def test_a_group_appears_changes_and_disappears() -> None:
    _, group = orders("client")
    assert group.apply(0, {("ann", 5): 1, ("bob", 1): 2}) == {
        ("ann", 1, 5, 5): 1,
        ("bob", 2, 2, 1): 1,
    }
    assert group.apply(0, {("ann", 7): 1}) == {("ann", 1, 5, 5): -1, ("ann", 2, 12, 7): 1}
    assert group.apply(0, {("ann", 7): -1}) == {("ann", 2, 12, 7): -1, ("ann", 1, 5, 5): 1}
    assert group.apply(0, {("bob", 1): -2}) == {("bob", 2, 2, 1): -1}
    assert group.lookup((), ()) == {("ann", 1, 5, 5): 1}


def test_one_row_always() -> None:
    _, group = orders(always=True)
    empty: Any = (0, 0, None)
    assert group.lookup((), ()) == {empty: 1}
    assert group.apply(0, {("ann", 5): 1}) == {empty: -1, (1, 5, 5): 1}
    assert group.apply(0, {("ann", 5): -1}) == {(1, 5, 5): -1, empty: 1}
    assert group.empty == empty


def test_rows_without_a_value_are_counted_and_skipped() -> None:
    below = Stored(("client", "total"), {})
    group = Group(
        below,
        ("client",),
        [("rows", Count()), ("values", Count(TOTAL)), ("sum", Sum(TOTAL)), ("avg", Average(TOTAL)),
         ("different", CountDistinct(TOTAL)), ("min", Min(TOTAL)), ("all", Collect(TOTAL)),
         ("text", StringJoin(lambda row: row[1] and str(row[1]), "+"))],
    )  # fmt: skip
    none: Any = ("ann", None)
    wanted: Any = ("ann", 2, 0, 0, None, 0, None, (), "")
    assert group.apply(0, {none: 2}) == {wanted: 1}
    group.apply(0, {("ann", 2): 2, ("ann", 1): 1})
    average = Decimal("1.666666666666666666666666666666667")
    wanted = ("ann", 5, 3, 5, average, 2, 1, (1, 2, 2), "1+2+2")
    assert group.lookup(("client",), ("ann",)) == {wanted: 1}


def test_a_change_that_shows_nothing_is_no_change() -> None:
    below = Stored(("client", "total"), {})
    group = Group(below, ("client",), [("most", Max(TOTAL))])
    group.apply(0, {("ann", 5): 1})
    assert group.apply(0, {("ann", 3): 1}) == {}
    assert group.apply(0, {("ann", 3): -1, ("ann", 4): 1}) == {}
    before, after = group.put(("ann", 1), 1)
    assert before is after


def test_lineage_is_read_from_the_input() -> None:
    below, group = orders("client")
    delta: Bag = {("ann", 5): 1, ("bob", 1): 2}
    group.apply(0, below.apply(0, delta))
    assert group.lineage(("bob", 2, 2, 1)) == [(0, ("bob", 1))]


def test_floats_taken_away_leave_no_drift() -> None:
    random = Random(5)
    values = [random.uniform(-1, 1) * 10.0 ** random.randint(-30, 30) for _ in range(500)]
    total = ExactSum()
    total.add(0.1, 1)
    for value in values:
        total.add(value, 1)
    random.shuffle(values)
    for value in values:
        total.add(value, -1)
    assert total.total() == 0.1
    assert total.count == 1


def test_sums_of_decimals_have_all_their_digits() -> None:
    total = ExactSum()
    total.add(Decimal("1e-50"), 1)
    total.add(10**50, 1)
    assert total.total() == Decimal("1" + 50 * "0" + "." + 49 * "0" + "1")
    total.add(0.5, 1)
    assert total.total() == 1e50
    total.add(0.5, -1)
    total.add(10**50, -1)
    assert total.total() == Decimal("1e-50")
    assert total.average() == Decimal("1e-50")


def test_special_floats_can_be_taken_away() -> None:
    total = ExactSum()
    for value, wanted in ((1e308, 1e308), (1e308, inf), (-inf, -inf)):
        total.add(value, 1)
        assert total.total() == wanted
    total.add(inf, 1)
    assert isnan(total.total())
    total.add(inf, -1)
    total.add(nan, 1)
    assert isnan(total.average())
    total.add(nan, -1)
    total.add(-inf, -1)
    assert total.average() == 1e308


def test_durations_add_up_among_themselves() -> None:
    total, other = ExactSum(), ExactSum()
    total.add(DayTimeDuration(0, 3 * HOUR), 2)
    total.add(DayTimeDuration(0, 6 * HOUR), 1)
    assert total.total() == DayTimeDuration(0, 12 * HOUR)
    for row, count in total.rows():
        other.load(row, count)
    assert other.average() == DayTimeDuration(0, 4 * HOUR)
    for value in (1, 0.5, YearMonthDuration(1), "text", True):
        other.add(value, 1)
        assert other.total() is None
        other.add(value, -1)
    other.add(DayTimeDuration(0, 6 * HOUR), -1)
    assert other.total() == DayTimeDuration(0, 6 * HOUR)
    other.add(YearMonthDuration(1), 1)
    other.add(DayTimeDuration(0, 3 * HOUR), -2)
    assert other.average() == YearMonthDuration(1)


def test_a_sum_with_too_many_digits_is_none_until_it_has_fewer() -> None:
    total = ExactSum()
    total.add(Decimal("1e5000"), 1)
    total.add(Decimal("1e-5000"), 1)
    assert total.total() is None
    assert total.average() == Decimal("5e4999")
    total.add(Decimal("1e5000"), -1)
    assert total.total() == Decimal("1e-5000")


def test_texts_of_digits_add_up_as_other_numbers_do() -> None:
    def read(row: Any) -> Any:
        return Decimal(row[1]) if isinstance(row[1], str) else row[1]

    def made() -> Group:
        return Group(Stored(("client", "total"), {}), ("client",), [("s", Sum(read, 1))])

    fast, slow = made(), made()
    huge = "1" + 3999 * "0"
    given: list[Any] = ["1.50", "0.25", huge, "0.5", 7, "2", 0.5, "1"]
    steps = [(value, 1) for value in given] + [(value, -1) for value in given[2:]]
    shown: list[Any] = []
    for value, count in steps:
        delta: Bag = {("ann", value): count}
        merged = slow.merge(slow.partial(delta))
        assert fast.apply(0, delta) == merged
        shown.append(next(fast.rows())[1])
    assert fast.snapshot()[1][0] == slow.snapshot()[1][0]
    assert shown[:4] == [Decimal("1.5"), Decimal("1.75"), None, None]
    assert shown[-1] == Decimal("1.75")


_TOTAL = ("total", Sum(lambda row: Decimal(row[1]) if isinstance(row[1], str) else row[1], 1))
_COST = ("cost", Sum(lambda row: Decimal(row[2]) if isinstance(row[2], str) else row[2], 2))


@pytest.mark.parametrize(
    "aggregates",
    [[_TOTAL], [("n", Count()), _TOTAL], [_COST, ("n", Count()), _TOTAL], [("n", Count()), _TOTAL,
     ("most", Max(lambda row: str(row[1])))]],
    ids=["sum", "number and sum", "two sums and a number", "with a state"],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_groups_of_texts_are_those_of_all_their_rows(aggregates: Any, seed: int) -> None:
    """Whatever is kept of a group, its row and its snapshot are those of its input."""
    random = Random(seed)
    schema = ("client", "total", "cost")
    group = Group(Stored(schema, {}), ("client",), aggregates)
    values: list[Any] = ["1.50", "0.25", "7", "00.1", "1" + 3999 * "0", 7, 0.5, None]
    known: Bag = {}
    for number in range(120):
        plain = values[: 4 if number < 40 else 8]
        row: Any = (random.choice("abc"), random.choice(plain), random.choice(plain))
        if known and random.random() < 0.3:
            row = random.choice(list(known))
            delta: Bag = {row: -known.pop(row)}
        else:
            known[row] = known.get(row, 0) + 1
            delta = {row: 1}
        if number % 3:
            group.put(row, delta[row])
        else:
            group.apply(0, delta | {("z", "1", "1"): 1, ("z", "2", "2"): 1})
            group.apply(0, {("z", "1", "1"): -1, ("z", "2", "2"): -1})
        defined = Group(Stored(schema, {}), ("client",), aggregates)
        defined.merge(defined.partial(known))
        assert Counter(group.rows()) == Counter(defined.rows())
        assert [*map(Counter, group.snapshot()[1])] == [*map(Counter, defined.snapshot()[1])]
        restored = Group(Stored(schema, {}), ("client",), aggregates)
        restored.restore(group.snapshot())
        assert Counter(restored.rows()) == Counter(group.rows())


def test_a_zero_does_not_change_a_sum() -> None:
    """Only the sum is shown: a row that leaves it as it is makes no change, and can leave again."""
    call = '<ax:call xmlns:ax="urn:axlog" stream="s" deletes="yes"/>'
    doc = Document(f"<r>{call}</r>", views={"v": "match /r/o[k/$k]/v/$v return $k, sum($v) as t"})
    assert len(doc.feed("s", "<o><k>a</k><v>1.5</v></o>")) == 1
    assert doc.feed("s", "<o><k>a</k><v>0.0</v></o>") == []
    assert doc.delete("s", 'match /o[v/"0.0"]') == []
    (change,) = doc.delete("s", 'match /o[v/"1.5"]')
    assert change.op == "delete"


@pytest.mark.parametrize("aggregates", [[_TOTAL], [("n", Count()), _TOTAL]])
def test_the_garbage_collector_does_not_visit_groups_of_texts(aggregates: Any) -> None:
    """Else each full collection visits all groups: at a million it was a third of the cost."""
    group = Group(Stored(("client", "total"), {}), ("client",), aggregates)
    group.apply(0, {(f"c{number}", "1.5"): 1 for number in range(500)})
    for number in range(1000):
        group.put((f"c{number}", "2.25"), 1)
    gc.collect()  # no longer visits the rows
    gc.collect()  # nor what has them
    states = (SumState, Member, tuple)
    kept = [each for each in gc.get_referents(group._groups) if gc.is_tracked(each)]
    assert not [each for each in kept if isinstance(each, states)]


def test_partial_aggregates_of_a_delta_merge_in_any_order() -> None:
    _, whole = orders("client")
    _, parts = orders("client")
    _, elsewhere = orders("client")
    first: Bag = {("ann", 5): 1, ("bob", 1): 2}
    second: Bag = {("ann", 5): -1, ("ann", 9): 1, ("bob", 1): -2}
    whole.apply(0, first)
    parts.merge(elsewhere.partial(first))
    assert parts.merge(elsewhere.partial(second)) == whole.apply(0, second)
    assert parts.snapshot() == whole.snapshot()
    assert elsewhere.size().rows == 0


def test_a_snapshot_of_other_aggregates_is_refused() -> None:
    _, group = orders("client")
    other = Group(Stored(("client", "total"), {}), ("client",), [("orders", Count())])
    with pytest.raises(StoreError) as raised:
        other.restore(group.snapshot())
    assert raised.value.code == "AX872"


def test_of_rows_that_only_come_the_greatest_is_all_that_is_kept() -> None:
    below = Stored(("client", "total"), {})
    group = Group(below, ("client",), [("most", Max(TOTAL))])
    for value in range(1000):
        group.put(("ann", value % 777), 1)
        if value == 500:
            assert group.size().rows == 502
            group.expect_insertions()
    assert group.size().rows == 2
    assert group.lookup((), ()) == {("ann", 776): 1}


def test_a_filter_and_a_map_pass_deltas_on() -> None:
    below = Stored(("client", "total"), {("ann", 5): 1, ("bob", 1): 1})
    large = Filter(below, lambda row: int(row[1]) > 2)
    shown = Map.computed(large, [("double", lambda row: row[1] * 2), ("client", "client")])
    assert shown.lookup(("double",), (10,)) == {(10, "ann"): 1}
    assert shown.lineage((10, "ann")) == [(0, ("ann", 5))]
    assert shown.apply(0, large.apply(0, {("ann", 3): -1, ("cid", 1): 1})) == {(6, "ann"): -1}
