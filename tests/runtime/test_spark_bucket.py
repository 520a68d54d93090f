"""Buckets without Spark: law 7 on the plain classes, and engines that are made again.

The reference is a document that is fed every update in the order of (time, source, number): each
stream has a source of its own, or all share one, which keeps its order.
"""

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axlog.connect.protocol import Load, Plan, Reading
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, PipelineError
from axlog.live.document import Document
from axlog.live.internals import streams_of
from axlog.pipeline.loader import load
from axlog.runtime import bucket_state as keeping
from axlog.runtime import embedded
from axlog.runtime.bindings import bags_of
from axlog.runtime.bucket import Instance
from axlog.runtime.bucket_engines import Buckets
from axlog.runtime.bucket_state import Keeper, forget_live
from axlog.runtime.bucket_tuner import Tuning, tuned_at
from axlog.runtime.definition import Definition
from axlog.runtime.driver_buckets import DriverBuckets
from axlog.runtime.extraction import ASIDE, Extractor, Message
from axlog.runtime.message_rows import rows_of
from axlog.runtime.order import Order, Packet, lane_of
from axlog.runtime.packet_rows import packed, read_packet
from axlog.runtime.packets import pack, unpack
from axlog.runtime.past import NOTHING
from axlog.runtime.pipeline_definition import plans_of
from axlog.runtime.plan import SparkPlan, make_plan
from axlog.samples import orders
from axlog.spark.batch_result import gather_batch
from axlog.spark.rejections import Rejections
from axlog.spark.sources import Cut
from axlog.views.change import Change
from axlog.views.net_changes import net
from tests.amounts import cases
from tests.runtime.engine_packets import engine_packets

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
SHOP = "<shop><a>{}</a><b>{}</b><static><item><k>k1</k></item></static></shop>".format(
    CALL.format("a", ""), CALL.format("b", "")
)
VIEWS = {
    "join": "match /shop[a/item/k/$x][b/item/k/$x] return $x",
    "path": "match /shop/a/item[k]/v/$y return $y",
    "not": "match /shop[a/item/k/$x][not(b/item/k/$x)] return $x",
    "time": "match /shop[a/item/k/$x#s][b/item/k/$x#t] where t - s <= 5 return $x",
    "cross": "match /shop[a/item/k/$x][b/item/v/$y] return $x, $y",
    "some": "match /shop[a/item/k/$x][b/item/v] return $x",
    "boolean": "match /shop[a/item/k/$x][b/item/k/$x]",
    "content": "match /shop/a/item#i[k] return i.cont",
    "static": "match /shop[static/item/k/$x][b/item/k/$x] return $x",
}


class Memory(dict[str, bytes]):
    """A store of bytes."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        del self[key]


def updates(random: Random, count: int, documents: int = 1) -> list[Message]:
    """Messages of both streams in order of time, some malformed, perhaps an end."""
    found = []
    time = 0
    for number in range(count):
        time += random.choice((0, 0, 1, 2)) * 1_000_000
        stream = random.choice("ab")
        key = f"<k>k{random.randrange(5)}</k>" if random.random() < 0.9 else ""
        value = f"<v>v{random.randrange(3)}</v>" if random.random() < 0.5 else ""
        content = f"<item>{key}{value}</item>" if random.random() < 0.95 else "<item>"
        document = f"d{random.randrange(documents)}" if documents > 1 else None
        found.append(
            Message(
                ord(stream),
                stream,
                "insert",
                content.encode(),
                time,
                number,
                f"m{number}",
                document,
            )
        )
    return found


def cut(random: Random, messages: Sequence[Message], batches: int) -> Iterator[list[list[Message]]]:
    """Batches of partitions, each partition in the order of its messages."""
    places = sorted(random.randrange(len(messages) + 1) for _ in range(batches - 1))
    for start, end in zip([0, *places], [*places, len(messages)], strict=True):
        batch = list(messages[start:end])
        middle = random.randrange(len(batch) + 1)
        yield [part for part in (batch[:middle], batch[middle:]) if part]


def run(
    definition: Definition,
    plan: SparkPlan,
    batches: Sequence[Sequence[Sequence[Message]]],
    hold: int | None = 0,
    key: str | None = None,
    forgets: Random | None = None,
    place: str | None = None,
    kept: list[int] | None = None,
    driver: Path | None = None,
    moves: Random | None = None,
) -> tuple[list[list[Change]], list[str]]:
    """What a plan makes of batches, without Spark; tuned with a place for that.

    With `moves`, a bucket may be in another process with the next batch.

    With a place for the `driver`, its buckets take them; one that `forgets` is started again there,
    and hears some batches twice.
    """
    start = partial(started, definition, plan, hold, driver or Path(), place is not None)
    local = None if driver is None else start()
    extractor = Extractor(definition, plan, key)
    tuning = None if place is None else Tuning(plan, place)
    stores: dict[str, Memory] = {}
    buckets = Buckets(definition, plan, hold, "run", tunes=tuning is not None)
    processes = [replace(buckets, live=OrderedDict()) for _ in range(3)] if moves else [buckets]
    told: list[list[Change]] = []
    refused: list[str] = []
    for number, batch in enumerate(batches):
        if place is not None:
            extractor.tune(tuned_at(place, number))
        inbox: dict[str, list[bytes]] = {}
        for partition in batch:
            for bucket, body in packed(extractor.extract(partition), plan):
                if bucket == ASIDE:
                    refused += [one[2] for one in unpack(body)["refused"]]
                    if kept is not None:
                        kept.append(unpack(body)["kept"])
                else:
                    inbox.setdefault(f"{bucket}/0", []).append(body)
        rows: list[tuple[str, bytes]] = []
        if local is not None:
            sent = [(key, body) for key, bodies in inbox.items() for body in bodies]
            local, rows = by_driver(local, start, number, sent, forgets)
        for key_, bodies in inbox.items() if local is None else ():
            process = moves.choice(processes) if moves else buckets
            rows += process.take(key_, stores.setdefault(key_, Memory()), bodies).rows
        report = gather_batch(len(told), rows)
        if tuning is not None:
            tuning.receive(number, report.claims)
        refused += [one.origin for one in report.refused]
        told.append(report.changes)
        if forgets is not None and forgets.random() < 0.5:
            forget_live()
    forget_live()
    if local is not None:
        local.close()
    return told, refused


Rows = list[tuple[str, bytes]]


def by_driver(
    local: DriverBuckets,
    start: Callable[[], DriverBuckets],
    number: int,
    sent: Rows,
    forgets: Random | None,
) -> tuple[DriverBuckets, Rows]:
    """What the driver's buckets say of a batch; perhaps they are started again, at any moment."""
    local.begin(number, sent)
    rows = local.apply(sent)
    is_told = forgets is None or forgets.random() < 0.6
    if is_told:
        local.end()
    while forgets is not None and (not is_told or forgets.random() < 0.5):
        local.close()
        local = start()
        again: Rows | None = sent
        if forgets.random() < 0.6:  # it was shot before Spark had noted the batch as done
            local.begin(number, sent)
        else:
            found = local.unfinished()
            assert found in (None, (number, sent))
            again = None if found is None else sent
        if again is not None:
            changes = gather_batch(0, local.apply(again)).changes
            assert plain(changes) == plain(gather_batch(0, rows).changes)
            is_told = forgets.random() < 0.6
            if is_told:
                local.end()
    return local, rows


def started(
    definition: Definition, plan: SparkPlan, hold: int | None, place: Path, tunes: bool
) -> DriverBuckets:
    """The driver's buckets, as a process has them that starts now."""
    buckets = Buckets(definition, plan, hold, "run", tunes=tunes, live=OrderedDict())
    return DriverBuckets(buckets, str(place))


def by_document(definition: Definition, batches: Sequence[Sequence[Sequence[Message]]]) -> Any:
    """What a document says that is fed the batches one after the other, each sorted; net."""
    doc = definition.make(on_error="dead-letter")
    told = []
    for batch in batches:
        messages = sorted(
            (m for part in batch for m in part), key=lambda m: (m.time, m.source, m.number)
        )
        changes: list[Change] = []
        for message in messages:
            changes += doc.feed(message.stream, message.content, at=(message.time or 0) / 1e6)
        told.append(
            [c for view in definition.views for c in net(x for x in changes if x.view == view)]
        )
    return told


def plain(changes: Sequence[Change]) -> Counter[str]:
    return Counter(json.dumps(_without_numbers(c), sort_keys=True) for c in changes)


def _without_numbers(change: Change) -> dict[str, Any]:
    """The envelope without positions and numbers of messages, which buckets count by themselves."""
    said = change.to_dict()
    del said["position"]
    if said["cause"] is not None:
        said["cause"].pop("number", None)
    return said


def definition_of(*views: str, document: str = SHOP, facts: tuple[str, ...] = ()) -> Definition:
    return Definition(document, {view: (VIEWS[view], None) for view in views}, facts)


def test_the_plan_says_what_travels_and_why() -> None:
    plan = make_plan(definition_of(*VIEWS))
    said = {view: unit for unit in plan.units for view in unit.views}
    assert [said[v].key for v in ("join", "path", "not", "time", "some")] == [
        "$x",
        "$y",
        "$x",
        "$x",
        "$x",
    ]
    assert said["join"].buckets == 16
    assert (said["cross"].buckets, said["cross"].key) == (16, "$x, $y")
    assert said["boolean"].buckets == 1
    assert "cannot be partitioned" in said["boolean"].reason
    assert said["content"].kind == "messages"
    text = str(plan)
    assert "join: 16 buckets, key $x, bindings travel" in text
    assert "cross: 16 buckets, keys $x (4 parts) x $y (4 parts), bindings travel" in text
    assert "content: one bucket, whole messages travel (content shows cont of nodes)" in text


@pytest.mark.parametrize("how", ['deletes="yes"', 'most="9"'])
def test_a_stream_that_deletes_concerns_only_the_views_that_use_it(how: str) -> None:
    """The others stay spread; one engine without views decides what is rejected."""
    document = SHOP.replace('stream="b"', f'stream="b" {how}')
    definition = definition_of("path", "join", document=document)
    spread, whole = make_plan(definition).units
    assert (spread.views, spread.buckets, spread.unused) == (("path",), 16, frozenset("b"))
    assert (whole.views, whole.kind) == (("join",), "messages")
    alone = definition_of("path", document=document)
    plan = make_plan(alone, buckets=3)
    judge = plan.units[1]
    assert (judge.views, judge.judges) == ((), frozenset("b"))
    assert "(no view): one bucket" in str(plan)
    random = Random(8)
    messages = [m._replace(source=0) for m in updates(random, 60)]
    if "deletes" in how:
        messages[30] = messages[30]._replace(stream="b", action="delete", content=b"item[k]")
        messages[40] = messages[40]._replace(stream="a", action="delete", content=b"item[k]")
    parts = list(cut(random, messages, 4))
    told, refused = run(alone, plan, parts, forgets=random)
    doc = alone.make()
    expected: list[Change] = []
    lost: list[str] = []
    for message in messages:
        at = (message.time or 0) / 1e6
        try:
            if message.action == "delete":
                expected += doc.delete(message.stream, message.content.decode(), at=at)
            else:
                expected += doc.feed(message.stream, message.content, at=at)
        except AxlogError:
            lost.append(message.origin)
    assert sum((plain(one) for one in told), Counter()) == plain(list(net(expected))) != Counter()
    assert sorted(refused) == sorted(lost)
    assert lost


def test_what_may_delete_or_become_nodes_travels_whole() -> None:
    deleting = SHOP.replace('stream="b"', 'stream="b" deletes="yes"')
    (unit,) = make_plan(definition_of("join", document=deleting)).units
    assert (unit.kind, unit.buckets) == ("messages", 1)
    assert "may delete" in unit.reason
    timed = "match /shop[a/item/k/$x#s] where now - s >= 5 return $x"
    (unit,) = make_plan(Definition(deleting, {"old": (timed, None)})).units
    assert "which old does not use, but it tests times" in unit.reason
    spread = make_plan(definition_of("join", document=deleting), documents=True)
    assert spread.units[0].kind == "documents"


@settings(max_examples=cases(15))
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 8))
def test_law_7_buckets_say_what_the_document_says(seed: int, batches: int, buckets: int) -> None:
    random = Random(seed)
    definition = definition_of(*random.sample(list(VIEWS), 3))
    parts = list(cut(random, updates(random, 30), batches))
    plan = make_plan(definition, buckets=buckets)
    told, refused = run(definition, plan, parts, forgets=random)
    expected = by_document(definition, parts)
    assert [plain(one) for one in told] == [plain(one) for one in expected]
    malformed = {
        m.origin for batch in parts for part in batch for m in part if m.content == b"<item>"
    }
    assert set(refused) == malformed


@settings(max_examples=cases(12))
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_batching_does_not_matter_when_messages_are_held_back(seed: int, batches: int) -> None:
    random = Random(seed)
    definition = definition_of("join", "time", "not")
    messages = updates(random, 30)
    random.shuffle(messages)
    lanes = {s: sorted(m.number for m in messages if m.stream == s) for s in "ab"}
    whole = sorted(messages, key=lambda m: m.number)
    skewed: list[Message] = []
    while any(lanes.values()):  # each stream in order, one far ahead of the other
        stream = random.choice([s for s in "ab" if lanes[s]])
        some = random.randrange(1, 8)
        skewed += [whole[number] for number in lanes[stream][:some]]
        del lanes[stream][:some]
    ends = [Message(ord(s), s, "end", b"", whole[-1].time, len(whole), f"end {s}") for s in "ab"]
    parts = list(cut(random, [*skewed, *ends], batches))
    told, _ = run(definition, make_plan(definition, buckets=2), parts, hold=None, forgets=random)
    doc = definition.make(keep="needed", on_error="dead-letter")
    fed: list[Change] = []
    for message in sorted([*whole, *ends], key=lambda m: (m.time, m.stream, m.number)):
        at = (message.time or 0) / 1e6
        if message.action == "end":
            fed += doc.end(message.stream, at=at)
        else:
            fed += doc.feed(message.stream, message.content, at=at)
    expected = [c for v in definition.views for c in net(x for x in fed if x.view == v)]
    all_told = [c for batch in told for c in batch]
    found = [c for v in definition.views for c in net(x for x in all_told if x.view == v)]
    assert plain(found) == plain(expected)


@settings(max_examples=cases(10))
@given(st.integers(0, 10_000))
def test_documents_are_independent(seed: int) -> None:
    random = Random(seed)
    definition = definition_of("join", "content")
    messages = updates(random, 40, documents=6)
    parts = list(cut(random, messages, 3))
    plan = make_plan(definition, documents=True)
    told, _ = run(definition, plan, parts, key="k", forgets=random)
    for key in {m.document for m in messages}:
        mine = [[[m for m in p if m.document == key] for p in batch] for batch in parts]
        expected = [plain(one) for one in by_document(definition, mine)]
        found = []
        for batch in told:
            own = [c for c in batch if c.row["document"] == key]
            found.append(Counter(_without_document(c) for c in own))
        assert found == expected


def _without_document(change: Change) -> str:
    said = _without_numbers(change)
    said["row"].pop("document")
    del said["key"][0]
    return json.dumps(said, sort_keys=True)


def as_row(message: Any) -> tuple[str, str, bytes, int]:
    return message["stream"], "insert", message["insert"].encode(), round(message["at"] * 1e6)


def test_the_order_monitor_with_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "SMALLEST_LOG", 500)
    monkeypatch.setattr(keeping, "CHUNK", 300)
    definition = Definition(orders.DOCUMENT, {"late": (orders.LATE, None)}, orders.KEYS)
    messages = [
        Message(0, *as_row(m), n, f"m{n}")
        for n, m in enumerate(orders.messages(600, seed=3, rate=0.002))
    ]
    random = Random(1)
    parts = list(cut(random, messages, 12))
    plan = make_plan(definition, buckets=3)
    told, refused = run(definition, plan, parts, forgets=random)
    assert [plain(one) for one in told] == [plain(one) for one in by_document(definition, parts)]
    assert sum(map(len, told)) > 20
    assert not refused


@pytest.mark.parametrize("longest", [0, 1, 3])
@settings(max_examples=cases(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000))
def test_an_engine_gets_the_state_of_a_snapshot_that_another_process_wrote(
    monkeypatch: pytest.MonkeyPatch, longest: int, seed: int
) -> None:
    """Its own rows, deadlines, key values and ended streams of earlier batches are replaced."""
    random = Random(seed)
    views = random.sample(["join", "path", "not", "time", "cross", "some", "static"], 2)
    facts = random.choice([(), ("key a/item by k trusted", "key b/item by k trusted")])
    definition = replace(definition_of(*views), facts=facts)
    messages = [m for m in updates(random, 80) if m.content.endswith(b"</item>")]
    if random.random() < 0.5:
        at = random.randrange(40, len(messages))
        end = messages[at]._replace(action="end", content=b"")
        rest = [m for m in messages[at + 1 :] if m.stream != end.stream]
        messages = [*messages[:at], end, *rest]
    parts = list(cut(random, messages, 14))
    plan = make_plan(definition, buckets=random.choice([1, 3]))
    with TemporaryDirectory() as place:
        expected = run(definition, plan, parts, place=f"{place}")
    may_restore, restored = Instance.may_restore, list[bool]()

    def noted(self: Instance, state: Any) -> bool:
        restored.append(may_restore(self, state))
        return restored[-1]

    with monkeypatch.context() as patched, TemporaryDirectory() as place:
        patched.setattr(keeping, "LONGEST_LOG", longest)
        patched.setattr(Instance, "may_restore", noted)
        found = run(definition, plan, parts, place=place, moves=random)
    assert [plain(one) for one in found[0]] == [plain(one) for one in expected[0]]
    assert found[1] == expected[1]
    if longest < 3:
        assert any(restored)


DELETING = SHOP.replace('stream="b"', 'stream="b" deletes="yes"')


@pytest.mark.parametrize("spread", [False, True])
@settings(max_examples=cases(4), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000))
def test_engines_that_keep_nodes_go_on_from_snapshots(
    monkeypatch: pytest.MonkeyPatch, spread: bool, seed: int
) -> None:
    """With a snapshot after every batch and no live engine, the changes are those without."""
    random = Random(seed)
    views = random.sample(["join", "path", "not", "content", "cross"], 3)
    definition = definition_of(*views, document=random.choice([SHOP, DELETING]))
    messages = updates(random, 40, documents=3 if spread else 1)
    if "deletes" in definition.document:
        messages = [
            m._replace(action="delete", content=b'match /item[k/"k1"]') if not n % 9 else m
            for n, m in enumerate(messages)
            if n % 9 or m.stream == "b"
        ]
    parts = list(cut(random, messages, 6))
    plan = make_plan(definition, documents=spread)
    key = "k" if spread else None
    expected = run(definition, plan, parts, key=key)
    saved: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(keeping, "SMALLEST_LOG", 1)
        patched.setattr(keeping, "LONGEST_LOG", 0)
        state = Instance.state

        def noted(self: Instance) -> Any:
            saved.append(state(self))
            return saved[-1]

        patched.setattr(Instance, "state", noted)
        found = run(definition, plan, parts, key=key, forgets=Random(seed))
    assert [plain(one) for one in found[0]] == [plain(one) for one in expected[0]]
    assert found[1] == expected[1]
    if "content" in views:
        assert any(one and "parts" in one for one in saved)
        assert None not in saved


def test_messages_of_a_snapshot_can_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that may be deleted become nodes late: they are in a snapshot, too."""
    monkeypatch.setattr(keeping, "LONGEST_LOG", 0)
    query = "match /shop/b/item/k/$x return $x"
    definition = Definition(DELETING, {"v": (query, None)})
    messages = [
        Message(0, "b", "insert", b"<item><k>k1</k></item>", 1, 0, "m0"),
        Message(0, "b", "insert", b"<item><k>k2</k></item>", 2, 1, "m1"),
        Message(0, "b", "delete", b'match /item[k/"k1"]', 3, 2, "m2"),
    ]
    parts = [[messages[:2]], [messages[2:]]]
    found, refused = run(definition, make_plan(definition), parts, forgets=Random(1))
    assert [(c.op, c.row["x"]) for told in found for c in told] == [
        ("insert", "k1"), ("insert", "k2"), ("delete", "k1"),
    ]  # fmt: skip
    assert not refused


@pytest.mark.parametrize("ends", [False, True])
def test_on_time_orders_turn_never_and_their_state_goes(
    monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    monkeypatch.setattr(keeping, "SMALLEST_LOG", 500)
    views = {"on-time": (orders.ON_TIME, None), "late": (orders.LATE, None)}
    definition = Definition(orders.DOCUMENT, views, orders.KEYS)
    messages = [
        Message(0, *as_row(m), n, f"m{n}")
        for n, m in enumerate(orders.messages(500, seed=2, rate=0.002))
    ]
    if ends:
        last = messages[300]
        end = last._replace(stream="orders", action="end", content=b"", number=10_000)
        rest = [m for m in messages[301:] if m.stream != "orders"]
        messages = [*messages[:301], end, *rest]
    random = Random(4)
    parts = list(cut(random, messages, 9))
    told, _ = run(definition, make_plan(definition, buckets=3), parts, forgets=random)
    doc = definition.make(keep="needed")
    expected = []
    for batch in parts:
        changes: list[Change] = []
        for message in (m for part in batch for m in part):
            at = (message.time or 0) / 1e6
            if message.action == "end":
                changes += doc.end(message.stream, at=at)
            else:
                changes += doc.feed(message.stream, message.content, at=at)
        expected.append([c for v in views for c in net(x for x in changes if x.view == v)])
    assert [plain(one) for one in told] == [plain(one) for one in expected]
    assert sum(c.op == "never" for batch in told for c in batch) > 20


@pytest.mark.parametrize("query", [orders.WITHIN, orders.ON_TIME])
def test_a_bucket_drops_final_rows_that_it_emitted(query: str) -> None:
    definition = Definition(orders.DOCUMENT, {"v": (query, None)}, orders.KEYS)
    plan = make_plan(definition, buckets=1)
    instance = Instance(definition, plan.units[0], 0)
    extractor = Extractor(definition, plan)
    sizes, rows = [], 0
    messages = orders.messages(3000, seed=5, rate=0.002)
    for start in range(0, 3000, 500):
        some = islice(messages, 500)
        parts = [Message(0, *as_row(m), start + n, "") for n, m in enumerate(some)]
        body = next(b for _, _, b in engine_packets(extractor.extract(parts), plan))
        outcome = instance.batch([read_packet(body)])
        rows += sum(change.op == "insert" for change in outcome.changes)
        sizes.append(len(pack(instance.state())))
        again = Instance(definition, plan.units[0], 0)
        again.restore(unpack(pack(instance.state())))
        assert again.rows == instance.rows == rows
    assert rows > 300
    assert len(instance.doc.views["v"]) == 1
    if query == orders.WITHIN:  # nothing need be remembered of what is past
        assert sizes[-1] < 1.3 * sizes[0]
    without = Definition(orders.DOCUMENT, {"v": (query, None)})
    loose = make_plan(without, buckets=1)
    other = Instance(without, loose.units[0], 0)
    extracted = Extractor(without, loose).extract(parts)
    other.batch([read_packet(next(b for _, _, b in engine_packets(extracted, loose)))])
    assert len(other.doc.views["v"]) > 1  # an order may come again


def test_an_engine_of_an_attempt_that_failed_is_not_trusted() -> None:
    definition = definition_of("join")
    plan = make_plan(definition, buckets=1)
    store = Memory()
    keeper = Keeper(store, "run", lambda name: Instance(definition, plan.units[0], 0))

    def body(stream: str, number: int) -> bytes:
        message = Message(0, stream, "insert", b"<item><k>k2</k></item>", number, number, "m")
        extracted = Extractor(definition, plan).extract([message])
        return next(b for unit, _, b in engine_packets(extracted, plan) if unit != ASIDE)

    keeper.batch("", [body("a", 1)])
    before = Memory(store)
    first, _ = keeper.batch("", [body("b", 2)])
    store.clear()
    store.update(before)  # the attempt came to nothing; the live engine has it
    second, _ = keeper.batch("", [body("b", 2)])
    assert plain(first.changes) == plain(second.changes) != Counter()
    forget_live()


def test_a_live_engine_that_is_behind_catches_up() -> None:
    definition = definition_of("join")
    plan = make_plan(definition, buckets=1)
    store, made = Memory(), []

    def make(name: str) -> Instance:
        made.append(name)
        return Instance(definition, plan.units[0], 0)

    def body(stream: str, number: int) -> bytes:
        message = Message(0, stream, "insert", b"<item><k>k2</k></item>", number, number, "m")
        return next(engine_packets(Extractor(definition, plan).extract([message]), plan))[2]

    here, there = Keeper(store, "here", make), Keeper(store, "there", make)
    here.batch("", [body("a", 1)])
    there.batch("", [body("a", 2)])
    outcome, _ = here.batch("", [body("b", 3)])
    assert len(made) == 2
    assert [change.op for change in outcome.changes] == ["insert"]
    assert outcome.changes[0].row.count == 2
    forget_live()


def test_a_view_keyed_by_a_time_loses_no_row() -> None:
    definition = Definition(SHOP, {"times": ("match /shop/a/item#i[k] return i.time", None)})
    plan = make_plan(definition, buckets=5)
    assert plan.units[0].key == "i.time"
    messages = [
        Message(0, "a", "insert", b"<item><k>k</k></item>", n * 1_000_000, n, f"m{n}")
        for n in range(20)
    ]
    told, _ = run(definition, plan, [[messages]])
    assert [plain(one) for one in told] == [
        plain(one) for one in by_document(definition, [[messages]])
    ]
    assert len(told[0]) == 20


def test_late_is_judged_within_a_lane_and_by_policy() -> None:
    def messages(*times: int) -> list[Message]:
        return [
            Message(0, "a", "insert", b"<item><k>k</k></item>", t, n, f"m{n}")
            for n, t in enumerate(times)
        ]

    definition = definition_of("path")
    batches = [[messages(5, 9, 7)], [messages(8, 12)]]
    _, refused = run(definition, make_plan(definition, buckets=1), batches)
    assert refused == ["m2", "m0"]  # though nothing of it is wanted: it has no v
    wanted = definition_of("join")
    _, refused = run(wanted, make_plan(wanted, buckets=1), batches)
    assert refused == ["m2", "m0"]
    order = Order(("a",), {"a": "clock"})
    item = [7, "a", 2, "bindings", [], 9, lane_of(0, "a"), "m2", 2, None, "a"]
    released, late = order.take([Packet([item], {})])
    assert (released[0][0], late) == (9, [])


@pytest.mark.parametrize("batches", [1, 3])
def test_a_message_without_a_time_gets_that_of_a_rejected_one_before_it(
    batches: int,
) -> None:
    definition = Definition(SHOP, {"whole": ("match /shop/a/item#i return i.id, i.time", None)})
    plan = make_plan(definition, buckets=1)
    assert plan.units[0].kind == "messages"
    messages = [
        Message(0, "b", "insert", b"<item/>", 4, 0, "accepted"),
        Message(0, "a", "insert", b"<item>", 10, 1, "malformed"),
        Message(0, "a", "insert", b"<item/>", None, 2, "untimed"),
    ]
    parts = [[messages]] if batches == 1 else [[[message]] for message in messages]
    told, refused = run(definition, plan, parts)
    (change,) = [change for batch in told for change in batch]
    assert (change.microseconds, refused) == (10, ["malformed"])


def test_messages_that_matchers_decline_are_read_the_long_way() -> None:
    definition = definition_of("join")
    plan = streams_of(definition.make(keep="needed")).engine.plan("a")
    assert plan is not None
    item = b"<item><k>k1</k></item>"
    once = bags_of(plan, item, 1)
    assert bags_of(plan, b'<?xml version="1.0"?>' + item, 1) == once
    twice = bags_of(plan, item + item, 1)
    assert [list(bag.values()) for bag in twice] == [[2]]
    extractor = Extractor(definition, make_plan(definition))
    for content in (b"<item><k>", f"<item>{CALL.format('c', '')}</item>".encode(), b"text"):
        out = extractor.extract([Message(0, "a", "insert", content, 1, 1, "here")])
        assert [one.origin for one in out.refused] == ["here"]


def test_a_document_that_was_fed_is_refused() -> None:
    doc = Document(SHOP, views={"join": VIEWS["join"]})
    definition = Definition.of(doc)
    assert Definition.read(json.loads(json.dumps(definition.plain()))) == definition
    doc.feed("a", "<item/>", at=1)
    with pytest.raises(PipelineError):
        Definition.of(doc)


class Again:
    """A source of known messages, by parts."""

    def __init__(self, parts: Sequence[Sequence[StreamUpdate]]) -> None:
        self._parts = parts

    def read(self, position: Any, limit: int) -> Reading:
        raise AssertionError("it is planned")

    def plan(self, position: Any, load: Load, until: Any = None) -> Plan:
        raise AssertionError("it was planned")

    def fetch(self, work: Any) -> Reading:
        return Reading(self._parts[work], None)

    def close(self) -> None:
        """There is nothing to close."""


@pytest.mark.parametrize("count", [1, 2])
def test_messages_after_the_end_of_their_stream_in_another_part(count: int) -> None:
    """No view needs them, and they are rejected as those of one part are."""
    definition = definition_of("path")
    plan = make_plan(definition, buckets=2)

    def update(at: int, action: str = "insert") -> StreamUpdate:
        content = "" if action == "end" else f"<other>{at}</other>"
        return StreamUpdate("b", action, content, at, f"m{at}")

    parts = [[update(1), update(3, "end")], [update(4), update(5)]]
    if count == 2:  # of two sources, by time
        parts = [[update(1), update(3, "end")], [update(2), update(5)]]
    follows = count == 1
    cuts = [Cut(0, 2, 0, now=0), Cut(1, 2, 2 if follows else 0, follows=follows)]
    rows: list[tuple[str, bytes]] = []
    buckets, stores = Buckets(definition, plan, 0, f"ended {count}"), dict[str, Memory]()
    inbox: dict[str, list[bytes]] = {}
    for at, updates_ in enumerate(parts):
        index, cut_ = at if count == 2 else 0, cuts[at]
        first, work = cut_.number, json.dumps(cut_.plain())
        after = 0 if cut_.follows else None
        part = (index, "", "part", b"", after, first, work, None, None, None, None)
        read = rows_of(Reading(updates_, None), index, first, None)
        extractor = Extractor(definition, plan)
        extractor.past = NOTHING
        for bucket, body in packed(extractor.extract([part, *read]), plan):
            if bucket == ASIDE:
                rows.append((ASIDE, body))
            else:
                inbox.setdefault(f"{bucket}/0", []).append(body)
    for key, bodies in inbox.items():
        rows += buckets.take(key, stores.setdefault(key, Memory()), bodies).rows
    makes = [partial(Again, parts)] * count
    found = gather_batch(1, rows, rejections=Rejections(makes, plan.late)).refused
    late = [4, 5] if count == 1 else [5]
    assert [(one.origin, one.content) for one in found] == [
        (f"m{at}", f"<other>{at}</other>") for at in late
    ]
    assert all("has ended" in one.error for one in found)


CHAIN = """
documents:
  pairs:
    document: <r xmlns:ax="urn:axlog"><a><ax:call stream="a"/></a><b><ax:call stream="b"/></b></r>
    sources: [{kind: jsonl, path: in.jsonl}]
    views: {ab: {query: "match /r[a/i/p/$p]/b/i[p/$p]/k/$k return $p, $k"}}
  chain:
    document: |
      <r xmlns:ax="urn:axlog"><ab><ax:call stream="ab"/></ab><c><ax:call stream="c"/></c></r>
    streams: {ab: {view: pairs.ab}}
    sources: [{kind: jsonl, path: c.jsonl}]
    views:
      abc:
        query: "match /r[ab/row[k/$k]/p/$p]/c/i/k/$k return $p, $k"
        sinks: [{kind: jsonl, path: out.jsonl}]
"""


def test_a_chain_of_joins_is_split_by_two_documents(tmp_path: Path) -> None:
    """One document copies rows of a and c; both have the same rows."""
    calls = "".join(f"<{s}>{CALL.format(s, '')}</{s}>" for s in "abc")
    query = "match /r[a/i/p/$p][b/i[p/$p]/k/$k]/c/i/k/$k return $p, $k"
    alone = Definition(f"<r>{calls}</r>", {"abc": (query, None)})
    (unit,) = make_plan(alone, 16).units
    assert (unit.buckets, unit.key) == (16, "$k, $p")
    hidden = Definition(f"<r>{calls}</r>", {"p": (query.replace("$p, $k", "$p"), None)})
    (unit,) = make_plan(hidden, 16).units
    assert (unit.buckets, "it shows no column of what 'c' brings" in unit.reason) == (1, True)
    (tmp_path / "chain.yaml").write_text(CHAIN)
    model = load(str(tmp_path / "chain.yaml"))
    keys = {document: plan.units[0].key for document, plan in plans_of(model)}
    assert keys == {"pairs": "$p", "chain": "$k"}
    random, document = Random(3), alone.make()
    lines: dict[str, list[str]] = {"in": [], "c": []}
    for at in range(80):
        stream = random.choice("abc")
        p, k = (f"<{name}>{random.randrange(6)}</{name}>" for name in "pk")
        content = f"<i>{p if stream != 'c' else ''}{k if stream != 'a' else ''}</i>"
        document.feed(stream, content, at=at)
        update = {"stream": stream, "at": at, "insert": content}
        lines["c" if stream == "c" else "in"].append(json.dumps(update) + "\n")
    for name, written in lines.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(written))
    embedded.run(model, once=True)
    found: Counter[str] = Counter()
    for line in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines()):
        found[json.dumps(line["row"])] += {"insert": 1, "delete": -1}[line["op"]]
    assert +found == Counter(json.dumps(row.to_dict()) for row in document.view("abc").rows())
    assert len(+found) > 10
