"""What an enemy sends to a server and what a server of his answers: nothing but problems come back.

No request makes an error of the server's own (a status of 500), none is kept that is refused, and a
peer or a page that lies is an error of ours here.
"""

import asyncio
import gzip
import json
import socket
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from axlog import Document
from axlog.connect.channels.broker_subscription import read_body
from axlog.connect.channels.entries import Unreadable
from axlog.connect.channels.http import HttpChannel
from axlog.connect.channels.registry import Channels
from axlog.connect.channels.streams import ChannelSource
from axlog.connect.http import LOOPBACK, Allowance, Client
from axlog.errors import AxlogError, ConnectorError
from axlog.server import connections
from axlog.server.application import make_application
from axlog.server.server import running
from lab.laws.mangling import mangled
from tests.server_access import client_of, secured

HERE = Allowance(hosts=LOOPBACK, seconds=10, size=100_000)
DOCUMENT = '<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>'


@pytest.fixture(scope="module")
def channels() -> Channels:
    made = Channels()
    made.make("orders")
    return made


@pytest.fixture(scope="module")
def address(channels: Channels) -> Iterator[str]:
    documents = {"w": Document(DOCUMENT, views={"v": "match //b/$x return $x"})}
    settings = secured(allowance=HERE)
    with running(make_application(channels, settings, documents=documents), settings) as found:
        yield found


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with client_of(address) as made:
        yield made


DEEP = "[" * 100_000
REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a body that nests": ("PUT", "/channels/orders/subscriptions/p", {"content": DEEP}),
    "a number without end": (
        "PUT",
        "/channels/orders/subscriptions/p",
        {"content": '{"after": ' + "9" * 10_000 + "}"},
    ),
    "an infinite retention": ("PUT", "/channels/x", {"content": '{"messages": Infinity}'}),
    "no number": ("PUT", "/channels/x", {"content": '{"messages": NaN}'}),
    "a filter of another type": (
        "PUT",
        "/channels/orders/subscriptions/p",
        {
            "json": {
                "filter": {
                    "axlog-filter": 1,
                    "automaton_from": 1,
                    "most_states": 1,
                    "patterns": [{"keys": 1}],
                }
            }
        },
    ),
    "a filter of many patterns": (
        "PUT",
        "/channels/orders/subscriptions/p",
        {"json": {"filter": {"patterns": [{"keys": []}] * 2000}}},
    ),
    "a filter that explodes": (
        "GET",
        "/channels/orders/updates",
        {"params": {"match": "match //a" + "[b]" * 5000}},
    ),
    "a channel outside": ("PUT", "/channels/..%2f..%2fetc", {"json": {}}),
    "a channel with a NUL": ("PUT", "/channels/a%00b", {"json": {}}),
    "a callback that is none": (
        "PUT",
        "/channels/orders/subscriptions/p",
        {"json": {"callback": "http://[::1"}},
    ),
    "a callback to a file": (
        "PUT",
        "/channels/orders/subscriptions/p",
        {"json": {"callback": "file:///etc/hostname"}},
    ),
    "a callback to the machine's own data": (
        "PUT",
        "/channels/orders/subscriptions/p",
        {"json": {"callback": "http://169.254.169.254/latest"}},
    ),
    "a topic that is none": (
        "POST",
        "/hub",
        {"content": "hub.mode=subscribe&hub.topic=http://[&hub.callback=http://x/"},
    ),
    "a form of many fields": (
        "POST",
        "/hub",
        {"content": "&".join(f"a{i}=1" for i in range(9000))},
    ),
    "a view that explodes": (
        "PUT",
        "/documents/w/views/x",
        {"json": {"query": "match //a" + "[b]" * 5000}},
    ),
    "a view in no language": (
        "PUT",
        "/documents/w/views/x",
        {"json": {"query": "//a", "language": ["x"]}},
    ),
    "half a character": (
        "POST",
        "/channels/orders/updates",
        {
            "content": '{"stream": "s", "insert": "<b>\\ud800</b>"}',
            "headers": {"Content-Type": "application/json"},
        },
    ),
    "half a character in a name": (
        "POST",
        "/channels/orders/updates",
        {
            "content": '{"stream": "\\ud800", "end": true}',
            "headers": {"Content-Type": "application/json"},
        },
    ),
    "a time beyond any": (
        "POST",
        "/channels/orders/updates",
        {
            "content": '{"stream": "s", "insert": "<b/>", "at": 1e300}',
            "headers": {"Content-Type": "application/json"},
        },
    ),
    "a time that is none": (
        "POST",
        "/channels/orders/updates",
        {
            "content": '{"stream": "s", "insert": "<b/>", "at": NaN}',
            "headers": {"Content-Type": "application/json"},
        },
    ),
    "a deletion that explodes": (
        "POST",
        "/channels/orders/updates",
        {"json": {"stream": "s", "delete": "match //a" + "[b]" * 5000}},
    ),
    "another host": ("GET", "/channels", {"headers": {"Host": "evil.example"}}),
    "a host that is none": ("GET", "/channels", {"headers": {"Host": "[::1"}}),
    "another site": (
        "PUT",
        "/channels/x",
        {"json": {}, "headers": {"Origin": "http://evil.example"}},
    ),
    "a site that is none": ("PUT", "/channels/x", {"json": {}, "headers": {"Origin": "http://["}}),
}


@pytest.mark.parametrize("what", REQUESTS)
def test_requests_that_are_refused(what, client, channels):
    method, path, given = REQUESTS[what]
    before = channels["orders"].last, len(channels), sorted(channels["orders"].subscriptions())
    answer = client.request(method, path, **given)
    assert 400 <= answer.status_code < 500 or answer.status_code == 502, answer.text
    if answer.headers["content-type"] == "application/problem+json":
        assert answer.json()["code"].startswith("AX")
    after = channels["orders"].last, len(channels), sorted(channels["orders"].subscriptions())
    assert before == after


def test_mangled_requests(client, channels):
    """Whatever the body is, the answer is one of ours, and the channel can still be read."""
    random = Random(12)
    samples = [
        b'{"stream": "s", "insert": "<b>1</b>", "at": 1.5}',
        b'{"filter": null, "after": 3, "secret": "x"}',
        b'{"messages": 5, "size": 100, "when_full": "drop"}',
        b'{"query": "match //b", "language": "pattern"}',
    ]
    targets = [
        ("POST", "/channels/orders/updates"), ("PUT", "/channels/orders/subscriptions/q"),
        ("PUT", "/channels/made"), ("PUT", "/documents/w/views/y"),
        ("POST", "/channels/orders/subscriptions/q/acknowledge"), ("POST", "/hub"),
    ]  # fmt: skip
    for _ in range(300):
        method, path = random.choice(targets)
        kind = random.choice(["application/json", "application/xml", "application/x-ndjson"])
        answer = client.request(
            method, path, content=mangled(random, samples), headers={"Content-Type": kind}
        )
        assert answer.status_code < 500 or answer.status_code == 502, answer.text
    assert client.get("/channels/orders/updates?after=0&limit=10000").status_code == 200
    for form in ("rss", "atom", "json"):
        assert client.get(f"/channels/orders/feed?format={form}").status_code == 200


def test_heads_that_never_end(address, monkeypatch):
    monkeypatch.setitem(connections.SECONDS, "head", 0.2)
    host, _, port = address.removeprefix("http://").partition(":")
    for begun in (b"", b"GET /channels HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "):
        with socket.create_connection((host, int(port)), timeout=60) as slow:
            slow.sendall(begun)
            assert slow.recv(1000) == b""  # closed by the other side


def test_heads_that_are_too_large(address):
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as rude:
        rude.sendall(b"GET /channels HTTP/1.1\r\nX: " + b"x" * 200_000)
        assert b"400" in rude.recv(1000)


# Servers of his -----------------------------------------------------------------------------------

ANSWERS: dict[str, tuple[str, bytes]] = {
    "/bomb": ("gzip", gzip.compress(b"\0" * 10_000_000)),
    "/twice": ("gzip, gzip", gzip.compress(gzip.compress(b"\0" * 10_000_000))),
    "/other": ("br", b"\0" * 100),
    "/deflate": ("deflate", zlib.compress(b"\0" * 1_000_000)),
    "/cut": ("gzip", gzip.compress(b"x" * 5000)[:-10]),
    "/broken": ("gzip", b"this is not packed"),
    "/channels/c/updates": ("", b'{"entries": 5, "upto": "x"}'),
    "/channels/d/updates": (
        "",
        b'{"entries": [{"sequence": 1, "stream": "s", "insert": "<b/>"}, {"sequence": 2},'
        b' {"sequence": 3, "stream": "s", "insert": "<b/>", "at": 1e999},'
        b' {"sequence": 4, "stream": "s", "insert": "<b>4</b>"}], "upto": 4}',
    ),
    "/channels/e/updates": ("", b'{"code": "AX80<", "detail": []}'),
}


class Enemy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        encoding, body = ANSWERS.get(path, ("gzip", gzip.compress(b"good")))
        self.send_response(400 if path == "/channels/e/updates" else 200)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b'{"acknowledged": 0}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def enemy() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Enemy)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_answers_that_are_packed(enemy):
    client = Client(HERE)
    try:
        assert client.send("GET", f"{enemy}/good").content == b"good"
        for path in ("/bomb", "/twice", "/other", "/deflate", "/cut", "/broken"):
            with pytest.raises(ConnectorError) as raised:
                client.send("GET", enemy + path)
            assert raised.value.code in ("AX823", "AX824"), path
    finally:
        client.close()


@pytest.mark.parametrize("name", ["c", "e"])
def test_peers_that_answer_nonsense(enemy, name):
    channel = HttpChannel(f"{enemy}/channels/{name}", None, HERE)
    try:
        subscription = channel.subscribe("me", after=0)
        with pytest.raises(AxlogError):
            subscription.read(10)
    finally:
        channel.close()


def test_peers_whose_messages_are_no_updates(enemy):
    channel = HttpChannel(f"{enemy}/channels/d", None, HERE)
    try:
        reading = ChannelSource(channel, "s", "me").read(None, 10)
    finally:
        channel.close()
    assert [one.origin for one in reading.refused] == ["d:2", "d:3"]
    assert [update.content for update in reading.updates] == ["<b/>", "<b>4</b>"]
    assert reading.position == 4


@pytest.mark.parametrize(
    "body",
    [None, b"", b"\xff", b"[]", b"5", DEEP.encode(), b'{"stream": 1}', b'{"stream": "\\ud800"}',
     json.dumps({"stream": "s", "insert": 5}).encode()],
)  # fmt: skip
def test_messages_of_brokers_that_are_no_updates(body):
    told = read_body(body, 7)
    assert isinstance(told, Unreadable)
    assert told.sequence == 7
    assert told.error.startswith("AX824")
    assert "message 7 is not an update" in told.error


# The end of a server ------------------------------------------------------------------------------


def test_a_server_that_ends_cuts_requests_off_without_a_trace(caplog):
    """One that waits is told so (503), a stream ends, an answer of a known length is not whole."""
    waiting = Event()

    async def slow(request):
        waiting.set()
        await asyncio.sleep(60)
        return PlainTextResponse("late")

    def streamed(**headers):
        async def ask(request):
            async def parts():
                yield b"x"
                waiting.set()
                await asyncio.sleep(60)

            return StreamingResponse(parts(), headers=headers)

        return ask

    routes = [
        Route("/slow", slow),
        Route("/stream", streamed()),
        Route("/part", streamed(**{"content-length": "100"})),
    ]
    found: dict[str, Any] = {}

    def ask(address, path):
        try:
            found[path] = httpx.get(address + path, timeout=60, trust_env=False).status_code
        except httpx.RemoteProtocolError:
            found[path] = "cut"

    for route in routes:
        waiting.clear()
        with running(Starlette(routes=routes)) as address:
            thread = Thread(target=ask, args=(address, route.path))
            thread.start()
            assert waiting.wait(60)
        thread.join(60)
    assert found == {"/slow": 503, "/stream": 200, "/part": "cut"}
    assert not any(record.exc_info for record in caplog.records)
