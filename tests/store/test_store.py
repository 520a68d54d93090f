"""The store on disk, and engines that keep their rows in it (P3 5.3): the same answers, bounded."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import axlog
from axlog.document.stream_update import StreamUpdate
from axlog.errors import QueryError
from axlog.evaluate.joins import Bag
from axlog.live.internals import maintained
from axlog.samples import orders
from axlog.store import keyvalue
from axlog.store.keyvalue import KeyValueStore
from axlog.views.operators.disk_table import Shelf, StoredCounts
from axlog.views.operators.table import Index, put
from lab.laws.fuzz_cases import make_case
from lab.laws.fuzzing import LAWS
from tests.amounts import cases


@pytest.fixture
def store():
    made = KeyValueStore()
    yield made
    made.close()


def test_a_store_keeps_keys_in_order(store):
    for key in (b"b2", b"a1", b"b1", b"c"):
        store.put(key, key.upper())
    store.delete(b"c")
    store.delete(b"never there")
    assert list(store.scan(b"b")) == [(b"b1", b"B1"), (b"b2", b"B2")]
    assert store.get(b"a1") == b"A1"
    assert store.get(b"c") is None
    assert list(store.scan(b"z")) == []


def test_a_store_of_its_own_leaves_nothing_behind():
    store = KeyValueStore()
    path = store.path
    store.put(b"k", b"v")
    assert path.exists()
    store.close()
    store.close()
    assert not path.exists()


def test_a_named_store_starts_empty(tmp_path: Path):
    for _ in range(2):
        store = KeyValueStore(tmp_path / "cache")
        assert store.get(b"k") is None
        store.put(b"k", b"v")
        store._commit()
        store.close()
    assert (tmp_path / "cache").exists()


def test_a_store_grows_past_its_first_size(monkeypatch):
    """Writes of the open transaction are done again; nothing is lost, deletions included."""
    monkeypatch.setattr(keyvalue, "_FIRST_SIZE", 1 << 16)
    store = KeyValueStore()
    expected: dict[bytes, bytes] = {}
    draw = random.Random(1)
    for number in range(3000):
        key = draw.randrange(900).to_bytes(2, "big")
        if draw.random() < 0.2:
            store.delete(key)
            expected.pop(key, None)
        else:
            expected[key] = store_value = bytes(draw.randrange(600)) + number.to_bytes(2, "big")
            store.put(key, store_value)
    assert dict(store.scan(b"")) == expected
    assert store._size > 1 << 16
    store.close()


ROWS = st.tuples(st.sampled_from(("a", "b", "ü\ud800")), st.integers(-1, 2))
MOVES = st.lists(st.tuples(ROWS, st.sampled_from((-2, -1, 1, 2, 3))), max_size=25)


@given(MOVES, st.sampled_from((0, 400, 1 << 20)))
def test_differential_stored_index(moves, memory):
    """A stored index does what a dictionary of buckets does, whatever stays in memory."""
    shelf = Shelf(KeyValueStore(), memory)
    stored = shelf.index()
    plain: Index = {}
    for row, count in moves:
        key = row[:1]
        put(plain, key, row, count)
        stored.put(key, row, count)
        assert stored.get(key) == plain.get(key)
        assert (key in stored) == (key in plain)
    rows: Bag = {}
    for bucket in plain.values():
        rows.update(bucket if isinstance(bucket, dict) else [bucket])
    assert dict(stored.values()) == rows
    assert len(stored) == len(rows)
    assert shelf.held <= memory
    shelf.close()


def test_stored_counts_are_a_bag(store):
    shelf = Shelf(store, 0)
    counts = StoredCounts(shelf)
    counts["x",] = 3
    counts["y",] = 1
    counts["x",] = 5
    assert counts.get(("x",), 0) == counts["x",] == 5
    assert counts.get(("z",), 0) == 0
    del counts["y",]
    assert dict(counts.items()) == {("x",): 5}
    assert len(counts) == 1
    with pytest.raises(KeyError):
        del counts["y",]


def test_rows_of_an_index_that_is_gone_leave_the_store(store):
    shelf = Shelf(store, 0)
    index = shelf.index()
    index.put((), ("a",), 1)
    del index
    shelf.index()
    assert list(store.scan(b"")) == []


def monitor(**options):
    return axlog.parse(
        orders.DOCUMENT,
        views={"late": orders.LATE},
        options=axlog.Options(keep="needed", **options),
    )


def test_a_document_on_disk_says_the_same_within_its_bound(tmp_path: Path):
    disk = monitor(cache="disk", memory=20_000, cache_path=tmp_path)
    plain = monitor()
    most = 0
    for written in orders.messages(400, seed=3, rate=0.001):
        update = StreamUpdate.of(written)
        assert disk.take(update) == plain.take(update)
        shelf = maintained(disk).engine.shelf
        assert shelf is not None
        most = max(most, shelf.held)
    assert disk.view("late").rows() == plain.view("late").rows() != []
    assert len(disk.view("late")) == len(plain.view("late"))
    assert 0 < most <= 20_000
    shelf = maintained(disk).engine.shelf
    assert shelf is not None
    assert shelf.loads > 400  # it does read back


def test_views_that_show_nodes_keep_their_values():
    for cache in ("memory", "disk"):
        doc = axlog.parse(
            '<r><ax:call xmlns:ax="urn:axlog" stream="f"/></r>',
            views={"v": "match /r/a#n[b] return n.id, n.val"},
            options=axlog.Options(cache=cache, memory=0),
        )
        (change,) = doc.feed("f", "<a><b/>text</a>")
        assert change.row["n.val"] == "text"
        assert doc.view("v").rows() == [change.row]


def test_an_unknown_cache_is_refused():
    with pytest.raises(QueryError) as refused:
        monitor(cache="tape")
    assert refused.value.code == "AX211"


def test_fuzzed_cases_use_the_disk():
    """Laws 1 and 2 run with rows on disk too; here some with no memory at all."""
    check = LAWS["1"].check
    for seed in range(cases(50)):
        check(replace(make_case(random.Random(f"disk:{seed}")), memory=0))


def test_streams_of_a_document_without_counted_views_are_listed():
    doc = axlog.parse('<r><ax:call xmlns:ax="urn:axlog" stream="f"/></r>')
    doc.watch("match /r/a", "v", maintainer="reevaluate")
    assert doc.streams()["f"].wanted == ()
