"""Poison in a channel: it goes to the dead letters, and the reading goes on behind it.

A broker keeps whatever anybody writes; here that is every line that is no update, messages whose
XML no document takes, and bytes that are no text, with good updates between them. A peer and a
channel of this process refuse such a message before it has a number.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.http import HttpChannel
from axlog.connect.channels.journal import Journal
from axlog.connect.channels.redis import RedisChannel
from axlog.connect.channels.registry import Channels
from axlog.connect.http import LOOPBACK, Allowance
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, ChannelError
from axlog.match.filters import Filter
from axlog.pipeline.model import PipelineModel
from axlog.runtime.embedded import Runner
from axlog.server.application import make_application
from axlog.server.server import running
from axlog.store.files import DiskFiles
from axlog.store.log import Log
from tests.hostile_attacks import LINE_ATTACKS, XML_ATTACKS, is_text
from tests.server_access import TOKEN, secured

SMALL = {
    name: content.decode()
    for name, content in XML_ATTACKS.items()
    if is_text(content) and len(content) < 200_000 and "encoding" not in name
}
"""Attacks that fit into a broker's message."""
STREAMLESS = {"another stream"}  # as a channel's message it is for the stream that reads it


def good(number: int) -> bytes:
    return json.dumps({"stream": "s", "insert": f"<b><c>{number}</c></b>", "at": number}).encode()


def messages() -> Iterator[bytes]:
    """Poison between good updates."""
    yield good(0)
    for name, line in LINE_ATTACKS.items():
        if name not in STREAMLESS:
            yield line.replace('{"', '{"stream": "s", "', 1).encode()
    yield good(1)
    for content in SMALL.values():
        yield json.dumps({"stream": "s", "insert": content, "at": 1}).encode()
    yield from (b"", b"\xff\xfe\x00", good(2))


def run(place: Path, source: dict[str, Any], channels: dict[str, Any]) -> Runner:
    """A pipeline that takes what is there."""
    written = {
        "engine": "embedded",
        "documents": {
            "w": {
                "document": '<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>',
                "streams": {"s": source},
                "views": {
                    "v": {"query": "match /a/b/c/$x return $x", "sinks": [{"kind": "memory"}]}
                },
            }
        },
        "channels": channels,
        "dead_letters": {"kind": "jsonl", "path": "dead.jsonl"},
        "settings": {"checkpoint": "state", "hold": 0},
    }
    runner = Runner(PipelineModel.model_validate(written).located(place), once=True)
    try:
        runner.run()
    finally:
        runner.close()
    return runner


def rows(runner: Runner) -> list[object]:
    return [row["x"] for row in runner.instances["w"].documents[""].view("v").rows()]


def letters(place: Path) -> list[dict[str, Any]]:
    lines = (place / "dead.jsonl").read_text().splitlines()
    return [json.loads(line)["row"] for line in lines]


def in_redis(request: pytest.FixtureRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    server = request.getfixturevalue("redis_server")
    for number, body in enumerate(messages(), 1):
        server.xadd("poisoned", {"update": body}, id=f"{number}-0")
    server.xadd("poisoned", {"other": b"1"}, id=f"{number}-7")  # by somebody without numbers
    server.hset("poisoned:axlog", "last", number)
    channel = {"kind": "redis", "url": f"unix://{server.socket_file}", "stream": "poisoned"}
    return {"channel": "c"}, {"c": channel}


def produced(brokers: str, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": brokers})
    for body in messages():
        producer.produce(topic, body, partition=0)
    producer.produce(topic, None, partition=0)
    producer.flush(60)


def in_kafka(request: pytest.FixtureRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    brokers = request.getfixturevalue("brokers")
    produced(brokers, "poisoned")
    return {"channel": "c"}, {"c": {"kind": "kafka", "brokers": brokers, "topic": "poisoned"}}


def by_kafka(request: pytest.FixtureRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same topic as a source of its own."""
    brokers = request.getfixturevalue("brokers")
    produced(brokers, "lines")
    source = {"kind": "kafka", "brokers": brokers, "topic": "lines", "format": "jsonl"}
    return {"source": {**source, "wait": 5}}, {}


@pytest.mark.parametrize("made", [in_redis, in_kafka, by_kafka])
def test_poison_at_a_broker_goes_to_the_dead_letters(
    made: Callable[[Any], Any], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    runner = run(tmp_path, *made(request))
    assert rows(runner) == ["0", "1", "2"]
    refused = letters(tmp_path)
    expected = len(list(messages())) - 3 + (made is not in_redis)
    assert len(refused) == len({letter["origin"] for letter in refused}) == expected
    assert all(letter["stream"] == "s" and "AX" in letter["error"] for letter in refused)
    again = run(tmp_path, *_same(made, request))  # nothing is read twice
    assert rows(again) == ["0", "1", "2"]
    assert letters(tmp_path) == refused


def _same(made: Callable[[Any], Any], request: pytest.FixtureRequest) -> Any:
    if made is in_redis:
        server = request.getfixturevalue("redis_server")
        channel = {"kind": "redis", "url": f"unix://{server.socket_file}", "stream": "poisoned"}
        return {"channel": "c"}, {"c": channel}
    brokers = request.getfixturevalue("brokers")
    if made is in_kafka:
        return {"channel": "c"}, {"c": {"kind": "kafka", "brokers": brokers, "topic": "poisoned"}}
    source = {"kind": "kafka", "brokers": brokers, "topic": "lines", "format": "jsonl"}
    return {"source": {**source, "wait": 5}}, {}


def test_a_local_filter_reports_messages_that_it_cannot_read(redis_server: Any) -> None:
    channel = RedisChannel(redis_server, "filtered")
    for number, insert in enumerate(("<b><c/></b>", "<b>", "<b/>", "<b><c/></b>"), 1):
        body = json.dumps({"stream": "s", "insert": insert})
        redis_server.xadd("filtered", {"update": body}, id=f"{number}-0")
    wanted = Filter()
    wanted.add("c", "match /b[c]")
    delivery = channel.subscribe(after=0, wanted=wanted).read()
    assert [entry.sequence for entry in delivery.entries] == [1, 4]
    assert [(one.sequence, one.content) for one in delivery.unreadable] == [(2, "<b>")]
    assert "AX101" in delivery.unreadable[0].error
    assert delivery.upto == 4


def test_a_channel_that_looks_gives_poison_no_number(tmp_path: Path) -> None:
    settings = secured()
    with ExitStack() as stack:
        server = running(make_application(Channels(), settings), settings)
        address = stack.enter_context(server)
        http = HttpChannel(f"{address}/channels/c", TOKEN, allowance=Allowance(hosts=LOOPBACK))
        stack.callback(http.close)
        http.make()
        local = LocalChannel("c", journal=Journal(tmp_path / "c.channel"))
        stack.callback(local.close)
        for channel in (http, local):
            for name, content in SMALL.items():
                if channel is local and name == "a huge name":
                    continue  # well-formed: the document that reads it has limits
                with pytest.raises(AxlogError):
                    channel.publish(StreamUpdate("s", "insert", content, 1))
            assert channel.publish(StreamUpdate("s", "insert", "<b/>", 1)) == 1
            assert [e.sequence for e in channel.subscribe(after=0).read().entries] == [1]


@pytest.mark.parametrize(
    "body", ["", "null", "[]", '{"sequence": 1}', "[" * 100_000, '{"sequence": "x", "end": true}']
)
def test_a_journal_that_was_forged_is_refused(tmp_path: Path, body: str) -> None:
    path = tmp_path / "c.channel"
    with closing(LocalChannel("c", journal=Journal(path))) as channel:
        channel.publish(StreamUpdate("s", "insert", "<b/>", 1))
    with closing(Log(DiskFiles(path))) as log:
        log.append([json.dumps(["entry", 1, body]).encode()])
    with closing(Journal(path)) as journal, pytest.raises(ChannelError, match="AX806"):
        LocalChannel("c", journal=journal)
    with closing(Log(DiskFiles(path))) as log:
        log.append([body.encode() or b" "])
    with pytest.raises(ChannelError, match="AX806"):
        Journal(path)
