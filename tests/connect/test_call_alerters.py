"""Alerters of web calls, with real servers on this machine: middleware, proxy, filters, secrets."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import httpx
import pytest
import uvicorn
from lxml import etree
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from axlog.connect.alerters import asgi, wsgi
from axlog.connect.alerters.calls import Body, Call, CallOptions, call_xml
from axlog.connect.alerters.proxy import ForwardingApplication
from axlog.connect.alerters.publisher import CallPublisher
from axlog.connect.alerters.secrets import Masks
from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.http import HttpChannel
from axlog.connect.channels.registry import Channels
from axlog.connect.http import LOOPBACK, Allowance
from axlog.errors import ConnectorError
from axlog.live.document import Document
from axlog.match.filters import Filter
from axlog.server.application import make_application
from axlog.server.server import running
from tests.server_access import principal, secured, token_of
from tests.waiting import eventually

KEY = "k-7731-do-not-tell"


async def _orders(request: Request) -> Response:
    body = await request.body()
    if request.query_params.get("fail"):
        raise RuntimeError("no")
    headers = {"x-shop": "north", "set-cookie": KEY}
    return Response(body, 201, headers, request.headers.get("content-type"))


async def _stream(request: Request) -> Response:
    async def parts() -> Any:
        for number in range(3):
            yield f"part {number}\n"

    return StreamingResponse(parts(), media_type="text/plain")


async def _packed(request: Request) -> Response:
    packed = gzip.compress(b"<a><b>1</b></a>")
    return Response(packed, 200, {"content-encoding": "gzip"}, "application/xml")


async def _gone(request: Request) -> Response:
    return PlainTextResponse("gone", 410)


def shop() -> Starlette:
    return Starlette(
        routes=[
            Route("/orders", _orders, methods=["POST", "GET"]),
            Route("/stream", _stream),
            Route("/packed", _packed),
            Route("/gone", _gone),
        ]
    )


@contextmanager
def served(app: Any) -> Iterator[str]:
    """An ASGI application on a port of this machine."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    thread = Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    eventually(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(15)
        bound.close()


class Told:
    """The calls on a channel."""

    def __init__(self, **options: Any) -> None:
        self.channel = LocalChannel("calls")
        self.reader = self.channel.subscribe()
        self.publisher = CallPublisher(self.channel, options=CallOptions(**options))

    def calls(self) -> list[etree._Element]:
        self.publisher.flush()
        return [etree.fromstring(update.content) for update in self.reader.read().updates]


def texts(call: etree._Element, *names: str) -> list[str | None]:
    return [call.findtext(name) for name in names]


def test_middleware_of_asgi_tells_calls_with_bodies() -> None:
    told = Told(headers=("X-Shop", "Authorization", "set-cookie"))
    sent = {"id": 17, "items": [{"part": "case"}, {"part": "fan"}], "password": KEY, "a b": 1}
    with served(asgi.CallMiddleware(shop(), told.publisher)) as address, httpx.Client() as client:
        given = {"authorization": f"Bearer {KEY}"}
        answer = client.post(f"{address}/orders?dry=1&api_key={KEY}", json=sent, headers=given)
        assert (answer.status_code, answer.json()) == (201, sent)
        assert client.get(f"{address}/gone").text == "gone"
        assert client.get(f"{address}/stream").text == "part 0\npart 1\npart 2\n"
        assert client.get(f"{address}/packed").text == "<a><b>1</b></a>"
        assert client.get(f"{address}/orders?fail=1").status_code == 500
        first, gone, stream, packed, failed = told.calls()
    assert first.tag == "in-call"
    fields = texts(first, "caller", "method", "path", "query", "status")
    assert fields == ["127.0.0.1", "POST", "/orders", "dry=1&api_key=***", "201"]
    assert [(h.tag, h.get("name"), h.text) for h in first if "header" in str(h.tag)] == [
        ("header", "authorization", "***"),
        ("answer-header", "x-shop", "north"),
        ("answer-header", "set-cookie", "***"),
    ]
    for side in ("request", "response"):
        body = first.find(f"{side}/body")
        assert body is not None
        members = texts(body, "id", "items/item[2]/part", "password", "member[@name='a b']")
        assert members == ["17", "fan", "***", "1"]
    assert KEY not in etree.tostring(first, encoding="unicode")
    assert texts(gone, "status", "response") == ["410", "gone"]
    assert stream.findtext("response") == "part 0\npart 1\npart 2\n"
    assert packed.findtext("response/a/b") == "1"
    assert texts(failed, "status") == ["500"]


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _echo(environ: dict[str, Any], start: Any) -> list[bytes]:
    size = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(size)
    start("200 OK", [("Content-Type", environ.get("CONTENT_TYPE") or "text/plain")])
    return [body[:3], body[3:]]


def test_middleware_of_wsgi_tells_calls_with_bodies() -> None:
    told = Told(headers=("cookie",))
    app = wsgi.CallMiddleware(_echo, told.publisher)
    server: WSGIServer = make_server("127.0.0.1", 0, app, handler_class=_Quiet)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}") as client:
            xml = f"<o n='1'><id>17</id><token>{KEY}<x/></token></o>"
            kind = {"content-type": "application/xml", "cookie": KEY}
            assert client.post("/a/b?x=1", content=xml, headers=kind).text == xml
            assert "ann" in client.post("/f", data={"name": "ann", "pwd": KEY}).text
            eventually(lambda: told.publisher.published == 2)
        first, second = told.calls()
    finally:
        server.shutdown()
        server.server_close()
    fields = texts(first, "method", "path", "query", "status", "request/o/id")
    assert fields == ["POST", "/a/b", "x=1", "200", "17"]
    assert first.findtext("response/o/token") == "***"
    assert first.findtext("header[@name='cookie']") == "***"
    assert texts(second, "request/body/name", "request/body/pwd") == ["ann", "***"]
    assert KEY not in etree.tostring(first, encoding="unicode")


def test_the_proxy_passes_on_and_tells_out_calls() -> None:
    told = Told()
    with served(shop()) as behind:
        forwarding = ForwardingApplication(f"{behind}/")
        proxy = asgi.CallMiddleware(forwarding, told.publisher, forwarding.host)
        with served(proxy) as address, httpx.Client(base_url=address) as client:
            assert client.post("/orders?a=1", content=b"x" * 100_000).status_code == 201
            assert client.get("/packed").text == "<a><b>1</b></a>"
            assert client.get("/stream").text.count("part") == 3
    large, packed, stream = told.calls()  # when the server has stopped, all are published
    assert {each.tag for each in (large, packed, stream)} == {"out-call"}
    fields = texts(large, "path", "query", "status", "callee")
    assert fields == ["/orders", "a=1", "201", behind.removeprefix("http://")]
    request = large.find("request")  # longer than what is kept: its size alone
    assert request is not None
    assert (request.get("bytes"), request.text, len(request)) == ("100000", None, 0)
    assert packed.findtext("response/a/b") == "1"


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def test_the_proxy_answers_for_a_server_that_is_gone() -> None:
    told = Told()
    forwarding = ForwardingApplication(f"http://127.0.0.1:{_free_port()}")
    with served(asgi.CallMiddleware(forwarding, told.publisher)) as address:
        assert httpx.get(f"{address}/a").status_code == 502
    assert texts(told.calls()[0], "status") == ["502"]
    with pytest.raises(ConnectorError):
        ForwardingApplication("ftp://x")


def wanting(text: str) -> Filter:
    made = Filter()
    made.add("it", text)
    return made


def test_a_peer_installs_its_filter_at_the_source(tmp_path: Path) -> None:
    """The calls of a shop, on a channel that a peer subscribes to over HTTP."""
    channels = Channels(tmp_path)
    publisher = CallPublisher(channels.make("calls"))
    access = secured(principal("peer", "subscribe"))
    with (
        served(asgi.CallMiddleware(shop(), publisher)) as address,
        running(make_application(channels, access)) as peer,
    ):
        far = HttpChannel(f"{peer}/channels/calls", token_of("peer"), Allowance(hosts=LOOPBACK))
        subscription = far.subscribe("monitor", wanted=wanting('match /in-call/status/"410"'))
        for path in ("/stream", "/gone", "/packed"):
            httpx.get(address + path)
        publisher.flush()
        found = subscription.read(timeout=5)
        far.close()
    assert publisher.published == 3
    assert [entry.sequence for entry in found.entries] == [2]
    query = "match //in-call[status/$s]/path/$p return $s, $p"
    doc = Document(streams=["calls"], views={"v": query})
    for update in found.updates:
        doc.take(update)
    assert [row.to_dict() for row in doc.view("v").rows()] == [{"s": "410", "p": "/gone"}]


def call(status: int = 200, kind: str = "", body: bytes = b"") -> Call:
    given = Body(1000)
    given.add(body)
    asked = [("content-type", kind)] if kind else []
    return Call("in-call", "GET", "/", "", None, None, 0.0, asked, given, Body(9), status)


def test_a_filter_of_the_publisher_and_a_channel_that_fails() -> None:
    class Broken(LocalChannel):
        def publish(self, *_: Any, **__: Any) -> int:
            raise RuntimeError("down")

    one, two = LocalChannel("calls"), Broken("calls")
    reader = one.subscribe()
    fine = CallPublisher(one, wanted=wanting('match /in-call[status/"500"]'))
    broken = CallPublisher(two)
    for status in (200, 500):
        for publisher in (fine, broken):
            publisher.note(call(status))
    fine.close()
    broken.close()
    assert (fine.published, fine.dropped, len(reader.read().updates)) == (1, 0, 1)
    assert (broken.published, broken.dropped) == (0, 2)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{"),
        ("application/json", b'{"a": "\x00\xff"}'),
        ("application/json", b"[" * 900),
        ("application/xml", b"<a><b></a>"),
        ("application/xml", b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'),
        ("application/xml", b'<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>'),
        ("text/plain", b"\x00\x1b"),
        ("image/png", b"\x89PNG"),
    ],
)
def test_a_hostile_body_is_a_message_without_calls(kind: str, body: bytes) -> None:
    message = call_xml(call(kind=kind, body=body), CallOptions())
    root = etree.fromstring(message)
    assert root.find("request") is not None
    assert not root.findall(".//{urn:axlog}call")
    Document(streams=["calls"]).feed("calls", message)


def test_names_decide_what_is_masked() -> None:
    body = json.dumps({"iban": "DE1", "order": {"customer": "ann", "Session": "s"}}).encode()
    options = CallOptions(masks=Masks(shown=["iban"], hidden=["customer"]))
    root = etree.fromstring(call_xml(call(kind="application/json", body=body), options))
    assert [each.text for each in root.iter("iban", "customer", "Session")] == ["DE1", "***", "***"]


def test_axlog_proxy_writes_messages() -> None:
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", "from axlog.cli import main; main()", "proxy"]
    command += ["--port", str(port), "--filter", 'match /in-call/status/"410"', "--to"]
    with (
        served(shop()) as behind,
        subprocess.Popen([*command, behind], stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            eventually(lambda: _answers(f"{address}/stream"))
            httpx.get(f"{address}/gone")
            assert process.stdout is not None
            line = json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.wait(20)
    assert line["stream"] == "calls"
    assert "<path>/gone</path>" in line["insert"]


def _answers(address: str) -> bool:
    try:
        return httpx.get(address).status_code == 200
    except httpx.HTTPError:
        return False
