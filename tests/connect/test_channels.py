"""Channels of one process: numbers, filters at the source, resuming, acknowledging, back-pressure.

Law (channels/protocol.py): a subscription is given, in order, exactly the updates after its start
that its filter lets pass, or is told that some are not kept any more.
"""

import shutil
from pathlib import Path
from random import Random
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.entries import Entry, Retention, read_entry
from axlog.connect.channels.journal import Journal
from axlog.connect.channels.protocol import Channel, Subscription
from axlog.connect.channels.registry import Channels
from axlog.connect.channels.subscription_filters import passes
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ChannelError, HostileError, MalformedError
from axlog.match.filters import Filter
from lab.stress.faulty_disk import FaultyFiles


def order(number: int, client: str = "INRIA", at: float | str | None = None) -> StreamUpdate:
    xml = f"<order><oid>{number}</oid><client>{client}</client></order>"
    return StreamUpdate("orders", "insert", xml, at)


def client(name: str) -> Filter:
    wanted = Filter()
    wanted.add("client", f'match /order[client/"{name}"]')
    return wanted


def sequences(delivery) -> list[int]:
    return [entry.sequence for entry in delivery.entries]


def test_the_channel_of_a_process_is_a_channel() -> None:
    channel = LocalChannel("orders")
    assert isinstance(channel, Channel)
    assert isinstance(channel.subscribe(), Subscription)


def test_a_subscription_is_given_what_comes_after_it() -> None:
    channel = LocalChannel("orders")
    channel.publish(order(1))
    reader = channel.subscribe()
    assert reader.read().entries == []
    assert [channel.publish(order(n)) for n in (2, 3)] == [2, 3]
    assert sequences(reader.read()) == [2, 3]
    assert reader.read().entries == []
    assert sequences(channel.subscribe(after=0).read(limit=2)) == [1, 2]


def test_entries_are_read_back_as_they_were_written() -> None:
    for update in (order(1, at=12.5), StreamUpdate("a", "delete", "match /b"), order(3, at="9")):
        entry = Entry(7, update)
        assert read_entry(entry.text).update == update
        assert read_entry(entry.text).time == entry.time
    assert read_entry(Entry(8, StreamUpdate("a", "end")).text).update.action == "end"


def test_a_filter_runs_at_the_source_and_what_it_drops_moves_time() -> None:
    channel = LocalChannel("orders")
    reader = channel.subscribe(wanted=client("INRIA"))
    for number, name in enumerate(("INRIA", "Dell", "INRIA", "Dell")):
        channel.publish(order(number, name, at=number + 1))
    delivery = reader.read()
    assert sequences(delivery) == [1, 3]
    assert delivery.upto == 4
    assert delivery.clock == 4
    channel.publish(StreamUpdate("orders", "delete", "match /order"))
    channel.publish(StreamUpdate("orders", "end"))
    assert sequences(reader.read()) == [5, 6]


def test_a_message_that_brings_calls_passes_every_filter() -> None:
    call = '<ax:call xmlns:ax="urn:axlog" stream="more"/>'
    assert passes(client("INRIA"), StreamUpdate("orders", "insert", f"<order>{call}</order>"))
    assert not passes(client("INRIA"), StreamUpdate("orders", "insert", "<order/>"))
    assert not passes(Filter(), order(1))
    both = f"<order/>{order(1).content!s}"
    assert passes(client("INRIA"), StreamUpdate("orders", "insert", both))


def test_what_cannot_be_parsed_gets_no_number() -> None:
    channel = LocalChannel("orders")
    with pytest.raises(MalformedError):
        channel.publish(StreamUpdate("orders", "insert", "<order>"))
    with pytest.raises(HostileError):
        channel.publish(StreamUpdate("o", "insert", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'))
    assert channel.last == 0


def test_a_filter_installed_later_judges_what_was_not_read_yet() -> None:
    channel = LocalChannel("orders")
    reader = channel.subscribe()
    for number, name in enumerate(("INRIA", "Dell")):
        channel.publish(order(number, name))
    reader.install(client("Dell"))
    channel.publish(order(3, "Dell"))
    assert sequences(reader.read()) == [2, 3]
    reader.install(None)
    channel.publish(order(4))
    assert sequences(reader.read()) == [4]


def test_a_named_subscription_goes_on_after_what_it_acknowledged() -> None:
    channel = LocalChannel("orders")
    first = channel.subscribe("peer", wanted=client("INRIA"), after=0)
    for number in range(4):
        channel.publish(order(number))
    assert sequences(first.read()) == [1, 2, 3, 4]
    first.acknowledge(2)
    first.close()
    again = channel.subscribe("peer")
    channel.publish(order(5, "Dell"))
    assert sequences(again.read()) == [3, 4]  # under the filter it had
    again.close(forget=True)
    assert channel.readers == 0
    assert sequences(channel.subscribe("peer").read()) == []
    with pytest.raises(ChannelError, match="AX805"):
        channel.acknowledge("peer", 99)


def test_the_newer_of_two_readers_of_one_name_takes_over() -> None:
    channel = LocalChannel("orders")
    old, new = channel.subscribe("peer"), channel.subscribe("peer")
    channel.publish(order(1))
    assert old.read().is_closed
    assert sequences(new.read()) == [1]
    old.close(forget=True)  # it is not its to forget any more
    assert "peer" in channel.subscriptions()


def test_who_falls_behind_is_told_and_nobody_else_is_slowed() -> None:
    channel = LocalChannel("orders", Retention(messages=5))
    slow, quick = channel.subscribe(), channel.subscribe()
    for number in range(20):
        channel.publish(order(number))
        assert len(quick.read().entries) == 1
    with pytest.raises(ChannelError, match="AX803") as told:
        slow.read()
    assert "1 to 15" in told.value.message
    slow.seek(channel.first - 1)
    assert sequences(slow.read()) == [16, 17, 18, 19, 20]


def test_retention_by_size_keeps_the_newest() -> None:
    channel = LocalChannel("orders", Retention(size=1))
    channel.publish(order(1))
    channel.publish(order(2))
    assert (channel.first, channel.last) == (2, 2)


def test_a_full_channel_refuses_until_the_oldest_is_acknowledged() -> None:
    channel = LocalChannel("orders", Retention(messages=2, when_full="refuse"))
    peer = channel.subscribe("peer")
    channel.publish(order(1))
    channel.publish(order(2))
    with pytest.raises(ChannelError, match="AX802"):
        channel.publish(order(3))
    peer.acknowledge(1)
    assert channel.publish(order(3)) == 3
    assert sequences(peer.read()) == [2, 3]


def test_a_full_channel_waits_for_the_slow() -> None:
    channel = LocalChannel("orders", Retention(messages=3, when_full="wait"))
    peer = channel.subscribe("peer")
    got: list[int] = []

    def work() -> None:
        while len(got) < 50:
            got.extend(sequences(peer.read(limit=2, timeout=60)))
            peer.acknowledge(got[-1])

    reader = Thread(target=work)
    reader.start()
    for number in range(50):
        channel.publish(order(number))
    reader.join()
    assert got == list(range(1, 51))
    assert channel.dropped == 0


def test_a_producer_that_repeats_itself_publishes_once() -> None:
    channel = LocalChannel("orders")
    assert [channel.publish(order(n), ("shop", n)) for n in (1, 2, 2, 1, 3)] == [1, 2, 2, 2, 3]
    assert channel.publish(order(1), ("other", 1)) == 4


def test_a_channel_comes_back_with_its_journal(tmp_path: Path) -> None:
    channels = Channels(tmp_path, Retention(messages=300))
    channel = channels.make("orders")
    peer = channel.subscribe("peer", wanted=client("INRIA"))
    for number in range(400):
        channel.publish(order(number, at=number), ("shop", number))
    peer.acknowledge(250)
    del channels, channel, peer  # nothing is closed, as if the process were killed
    again = Channels(tmp_path, Retention(messages=300))["orders"]
    assert (again.first, again.last) == (101, 400)
    assert sequences(again.subscribe("peer").read()) == list(range(251, 401))
    assert again.publish(order(399), ("shop", 399)) == 400
    assert again.publish(order(400), ("shop", 400)) == 401
    again.unsubscribe("peer")
    again.close()
    assert Channels(tmp_path)["orders"].subscriptions() == {}


def test_what_the_disk_has_no_room_for_is_given_to_nobody(tmp_path: Path) -> None:
    """Who was refused publishes again, and every reader is given it once, also after a restart."""
    is_full = False
    files = FaultyFiles(Random(1), lambda _: "full" if is_full else None)
    channel = LocalChannel("orders", journal=Journal(tmp_path / "orders.channel", files=files))
    reader = channel.subscribe("peer")
    channel.publish(order(1), ("shop", 1))
    is_full = True
    big = StreamUpdate("orders", "insert", f"<order>{'x' * 100_000}</order>", None)
    with pytest.raises(ChannelError, match="AX808"):
        channel.publish(big, ("shop", 2))
    with pytest.raises(ChannelError, match="AX808"):
        channel.publish_all([big], ("view", "7"))
    assert (channel.last, channel.note("view")) == (1, None)
    assert sequences(reader.read()) == [1]
    is_full = False
    assert channel.publish(big, ("shop", 2)) == 2
    kept = Journal(tmp_path / "orders.channel", files=files.killed())
    again = LocalChannel("orders", journal=kept)
    assert [len(entry.text) > 1000 for entry in again.subscribe("peer").read().entries] == [
        False,
        True,
    ]


def test_a_journal_stays_as_large_as_its_entries(tmp_path: Path) -> None:
    """It is compacted, and every restart finds the same."""
    path = tmp_path / "orders.channel"
    for start in range(0, 3000, 1000):
        channel = LocalChannel("orders", Retention(messages=100), Journal(path))
        assert channel.last == start
        for number in range(start, start + 1000):
            text = f"<order>{'x' * 1000}{number}</order>"
            channel.publish(StreamUpdate("orders", "insert", text), ("shop", number))
            if number == 5:
                channel.subscribe("peer", after=3)
            if number > 5:
                channel.acknowledge("peer", number - 3)
        channel.close()
    assert sum(each.stat().st_size for each in path.iterdir()) < 2_000_000
    again = LocalChannel("orders", Retention(messages=100), Journal(path))
    assert (again.first, again.last) == (2901, 3000)
    assert again.subscriptions()["peer"].acknowledged == 2996
    assert again.publish(order(1), ("shop", 2999)) == 3000


def test_an_interrupted_migration_is_finished(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "channel-0.1" / "orders.journal"
    path, made = tmp_path / "orders.journal", tmp_path / "orders.journal.migrating"
    shutil.copy(golden, path)
    Journal(path).close()
    path.rename(made)  # killed before the last rename
    again = Journal(path)
    assert (again.last, [entry.sequence for entry in again.entries()]) == (2, [1, 2])
    again.close()
    shutil.rmtree(path)
    shutil.copy(golden, path)
    made.mkdir()  # killed before it was complete
    (made / "log-0000000000000001.axlog").write_bytes(b"axlog")
    again = Journal(path)
    assert (again.last, [entry.sequence for entry in again.entries()]) == (2, [1, 2])
    assert not made.exists()
    again.close()


def test_an_unread_journal_is_refused_when_it_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "a.channel").write_bytes(b"not a database, only long enough to look at" * 100)
    with pytest.raises(ChannelError, match="AX806"):
        Journal(tmp_path / "a.channel")


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 200])
def test_names_that_no_channel_can_have(name: str) -> None:
    with pytest.raises(ChannelError, match="AX807"):
        Channels().make(name)


def test_a_closed_channel_is_read_to_its_end() -> None:
    channel = LocalChannel("orders")
    reader = channel.subscribe()
    channel.publish(order(1))
    channel.close()
    assert sequences(reader.read()) == [1]
    assert reader.read().is_closed
    with pytest.raises(ChannelError, match="AX804"):
        channel.publish(order(2))


NAMES = st.sampled_from(["INRIA", "Dell", "Axa"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), NAMES),
        st.tuples(st.just("read"), st.integers(0, 2)),
        st.tuples(st.just("return"), st.integers(0, 2)),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(STEPS, st.booleans())
def test_every_subscription_is_given_exactly_what_its_filter_lets_pass(steps, many) -> None:
    """By the definition: the published list, cut at the starting point, filtered one by one."""
    channel = LocalChannel("orders")
    wanted = [None, client("INRIA"), client("Dell")]
    readers = [channel.subscribe(f"p{at}", wanted=each, after=0) for at, each in enumerate(wanted)]
    if many:  # enough patterns for the automaton
        for at in range(30):
            channel.subscribe(wanted=client(f"c{at}"))
    published: list[StreamUpdate] = []
    got: list[list[str | bytes]] = [[], [], []]
    for step, value in steps:
        if step == "publish":
            published.append(order(len(published), value))
            channel.publish(published[-1])
        elif step == "read":
            delivery = readers[value].read()
            got[value] += [entry.update.content for entry in delivery.entries]
            readers[value].acknowledge(delivery.upto)
        else:
            readers[value].close()
            readers[value] = channel.subscribe(f"p{value}")
    for at, reader in enumerate(readers):
        got[at] += [entry.update.content for entry in reader.read().entries]
        clients = [None, "INRIA", "Dell"]
        assert got[at] == [
            update.content
            for update in published
            if at == 0 or str(clients[at]) in str(update.content)
        ]
