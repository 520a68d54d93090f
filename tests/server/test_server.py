"""The server on loopback: channels as web services, events, webhooks, tokens and quotas.

Real parts throughout: a uvicorn server, HTTP clients, and a second server that receives webhooks.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import parse_qs, urlsplit

import feedparser  # type: ignore[import-untyped]  # it has no types
import httpx
import pytest

from axlog.connect.channels.entries import Retention
from axlog.connect.channels.registry import Channels
from axlog.connect.http import LOOPBACK, Allowance
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ChannelError
from axlog.live.document import Document
from axlog.match.filters import Filter
from axlog.server.access import Access
from axlog.server.application import Settings, make_application
from axlog.server.roles import written_hash
from axlog.server.server import running
from axlog.server.webhooks import is_signed
from tests.server_access import BEARER, TOKEN, client_of, principal, secured, token_of
from tests.waiting import eventually

HERE = Allowance(hosts=LOOPBACK, seconds=60)
PEER = "administrator/peer"


@pytest.fixture
def channels() -> Channels:
    made = Channels(retention=Retention(messages=100))
    made.make("orders")
    return made


@pytest.fixture
def server(channels: Channels) -> Iterator[str]:
    settings = secured(allowance=HERE, longest_pause=0.05)
    with running(make_application(channels, settings), settings) as address:
        yield address


@pytest.fixture
def client(server: str) -> Iterator[httpx.Client]:
    with client_of(server) as made:
        yield made


def published(n: int) -> StreamUpdate:
    return StreamUpdate("orders", "insert", f"<order><oid>{n}</oid></order>", n)


def filter_of(pattern: str) -> dict[str, Any]:
    wanted = Filter()
    wanted.add("it", pattern)
    made: dict[str, Any] = json.loads(wanted.to_json())
    return made


class Events:
    """A reader of server-sent events over a plain socket."""

    def __init__(self, server: str, path: str, **headers: str) -> None:
        parts = urlsplit(server)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=60)
        said = "".join(f"{name}: {value}\r\n" for name, value in {**BEARER, **headers}.items())
        self.socket.sendall(f"GET {path} HTTP/1.0\r\nHost: {parts.netloc}\r\n{said}\r\n".encode())
        self.file = self.socket.makefile("r", encoding="utf-8", newline="\n")
        self.head = list(iter(lambda: self.file.readline().strip(), ""))

    def next(self) -> dict[str, str]:
        fields: dict[str, str] = {}
        for line in iter(self.file.readline, ""):
            name, _, value = line.rstrip("\n").partition(": ")
            if not name and fields.keys() - {"retry"}:
                return fields
            fields |= {name: value} if name else {}
        return fields

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def test_publish_and_read_in_each_form(client: httpx.Client) -> None:
    said = client.post("/channels/orders/updates", json=published(1).plain()).json()
    assert said == {"sequence": 1, "published": 1}
    lines = "\n".join(json.dumps(published(n).plain()) for n in (2, 3)) + "\n"
    kind = {"Content-Type": "application/x-ndjson"}
    assert client.post("/channels/orders/updates", content=lines, headers=kind).status_code == 200
    xml = {"Content-Type": "application/xml"}
    client.post("/channels/orders/updates?at=4", content="<order/>", headers=xml)
    got = client.get("/channels/orders/updates?after=0&limit=3").json()
    assert [entry["sequence"] for entry in got["entries"]] == [1, 2, 3]
    assert got["upto"] == 3
    assert got["clock"] == 3
    last = client.get("/channels/orders/updates?after=3").json()["entries"]
    assert last == [{"sequence": 4, "stream": "orders", "insert": "<order/>", "at": "4"}]


def test_a_reader_waits_for_what_its_filter_lets_pass(
    client: httpx.Client, channels: Channels
) -> None:
    def publish() -> None:
        for number in range(20):
            channels["orders"].publish(published(number))
            sleep(0.01)  # the reader must find the channel without anything for it

    thread = Thread(target=publish)
    thread.start()
    asked = {"after": "0", "wait": "10", "match": 'match /order[oid/"17"]'}
    got = client.get("/channels/orders/updates", params=asked).json()
    thread.join()
    assert [entry["sequence"] for entry in got["entries"]] == [18]
    assert got["clock"] >= 17


def test_a_producer_that_repeats_itself_publishes_once(client: httpx.Client) -> None:
    headers = {
        "Axlog-Producer": "shop",
        "Axlog-Number": "7",
        "Content-Type": "application/x-ndjson",
    }
    lines = "\n".join(json.dumps(published(n).plain()) for n in (1, 2))
    for _ in range(3):
        said = client.post("/channels/orders/updates", content=lines, headers=headers).json()
        assert said["sequence"] == 2


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        ("<order>", "application/xml", 422, "AX101"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "application/xml", 422, "AX111"),
        ('{"stream": "a"}', "application/json", 422, "AX410"),
        ("<order/>", "text/plain", 400, "AX813"),
        (b"\xff\xfe", "application/json", 400, "AX813"),
    ],
)
def test_what_is_no_update_is_refused(
    client: httpx.Client, content: str, kind: str, status: int, code: str
) -> None:
    answer = client.post(
        "/channels/orders/updates", content=content, headers={"Content-Type": kind}
    )
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/channels/none", 404, "AX801"),
        ("/channels/orders/updates?after=x", 400, "AX813"),
        ("/channels/orders/updates?after=0&limit=0", 400, "AX813"),
        ("/channels/orders/updates?wait=1e9", 400, "AX813"),
        ("/channels/orders/updates?match=match%20(", 422, "AX201"),
        ("/channels/orders/updates?filter=%7B%7D", 422, "AX411"),
        ("/channels/orders/updates?subscription=nobody", 404, "AX805"),
    ],
)
def test_what_cannot_be_asked(client: httpx.Client, path: str, status: int, code: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_what_is_not_kept_any_more_is_gone(client: httpx.Client, channels: Channels) -> None:
    for number in range(150):
        channels["orders"].publish(published(number))
    answer = client.get("/channels/orders/updates?after=0")
    assert (answer.status_code, answer.json()["code"]) == (410, "AX803")


def test_events_resume_after_the_last_one_seen(server: str, channels: Channels) -> None:
    channel = channels["orders"]
    for number in range(3):
        channel.publish(published(number))
    with closing(Events(server, "/channels/orders/events?after=1")) as first:
        assert "text/event-stream" in " ".join(first.head)
        assert [first.next()["id"] for _ in range(2)] == ["2", "3"]
    channel.publish(published(4))
    with closing(Events(server, "/channels/orders/events", **{"Last-Event-ID": "3"})) as again:
        event = again.next()
        assert json.loads(event["data"]) == {"sequence": 4, **published(4).plain()}
        channel.publish(published(5))
        assert again.next()["id"] == "5"
    eventually(lambda: _is_left(channel))


def _is_left(channel: Any) -> bool:
    channel.publish(published(0))
    sleep(0.05)
    return bool(channel.readers == 0)


def test_events_have_the_time_of_dropped_messages(server: str, channels: Channels) -> None:
    path = "/channels/orders/events?match=match%20/order%5Blate%5D"
    with closing(Events(server, path)) as events:
        eventually(lambda: channels["orders"].readers)
        channels["orders"].publish(published(9))
        said = events.next()
        assert said["event"] == "clock"
        assert json.loads(said["data"]) == {"upto": 1, "clock": 9}


def test_an_event_stream_says_when_there_is_a_gap(server: str, channels: Channels) -> None:
    for number in range(150):
        channels["orders"].publish(published(number))
    with closing(Events(server, "/channels/orders/events?after=3")) as events:
        said = events.next()
        assert said["event"] == "gap"
        assert json.loads(said["data"])["code"] == "AX803"


def test_a_named_subscription_keeps_its_filter_and_its_place(
    client: httpx.Client, channels: Channels
) -> None:
    path = "/channels/orders/subscriptions/peer"
    said = client.put(path, json={"filter": filter_of("match /order[oid]"), "after": 0}).json()
    assert said["filter"]["patterns"][0]["text"] == "match /order[oid]"
    for xml in ("<order/>", "<order><oid/></order>", "<order><oid>1</oid></order>"):
        channels["orders"].publish(StreamUpdate("orders", "insert", xml))
    reading = "/channels/orders/updates?subscription=peer"
    for _ in range(2):  # not acknowledged: it comes again
        got = client.get(reading).json()
        assert [entry["sequence"] for entry in got["entries"]] == [2, 3]
    assert client.post(f"{path}/acknowledge", json={"sequence": 2}).json() == {"acknowledged": 2}
    assert [e["sequence"] for e in client.get(reading).json()["entries"]] == [3]
    assert client.post(f"{path}/acknowledge", json={"sequence": 9}).status_code == 404
    assert client.delete(path).status_code == 204
    assert client.get(reading).status_code == 404
    assert channels["orders"].subscriptions() == {}
    client.put(path, json={"after": 0})  # it starts anew
    assert [e["sequence"] for e in client.get(reading).json()["entries"]] == [1, 2, 3]


def test_the_description_names_every_route(client: httpx.Client) -> None:
    said = client.get("/openapi.json").json()
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert all(f"<code>{path}</code>" in page.text for path in said["paths"])
    assert "<script" not in page.text
    assert said["openapi"] == "3.1.0"
    assert set(said["paths"]["/channels/{channel}/updates"]) == {"get", "post"}
    assert said["paths"]["/channels/{channel}"]["put"]["security"] == [
        {"token": []},
        {"session": []},
    ]
    assert said["paths"]["/channels/{channel}"]["put"]["x-axlog-grant"] == "administer"
    ids = [op["operationId"] for path in said["paths"].values() for op in path.values()]
    assert len(ids) == len(set(ids))
    made = client.put("/channels/new", json={"messages": 5, "when_full": "refuse"})
    assert made.status_code == 201
    assert client.put("/channels/bad%20name", json={}).status_code == 422
    assert client.put("/channels/new2", json={"messages": 0}).status_code == 422
    assert [c["name"] for c in client.get("/channels").json()["channels"]] == ["new", "orders"]


# Webhooks -----------------------------------------------------------------------------------------


class Receiver:
    """A web service that takes webhooks; `plan` says what to answer, 200 when it is empty."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.plan: list[int] = []
        self.asked: list[dict[str, list[str]]] = []
        self.confirms = True
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                receiver.asked.append(query)
                said = query["hub.challenge"][0] if receiver.confirms else "no"
                self.reply(200, said.encode())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.plan.pop(0) if receiver.plan else 200
                if status == 200:
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    receiver.got.append((headers, body))
                self.reply(status, b"")

            def reply(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/hook?a=1"
        self.thread = Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def sequences(self) -> list[int]:
        return [e["sequence"] for _, body in self.got for e in json.loads(body)["entries"]]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def test_a_webhook_is_verified_signed_and_retried(
    client: httpx.Client, channels: Channels, receiver: Receiver
) -> None:
    given = {
        "callback": receiver.address,
        "secret": "a secret of the peer",
        "filter": filter_of("match /order[oid]"),
        "after": 0,
    }
    assert client.put("/channels/orders/subscriptions/peer", json=given).status_code == 200
    assert receiver.asked[0]["a"] == ["1"]
    assert receiver.asked[0]["hub.mode"] == ["subscribe"]
    receiver.plan = [500, 503]
    for number in range(5):
        channels["orders"].publish(published(number))
    channels["orders"].publish(StreamUpdate("orders", "insert", "<other/>", 77))
    eventually(lambda: receiver.sequences() == [1, 2, 3, 4, 5])
    for headers, body in receiver.got:
        assert is_signed("a secret of the peer", body, headers["x-hub-signature"])
        assert not is_signed("another", body, headers["x-hub-signature"])
        assert 'rel="hub"' in headers["link"]
    eventually(lambda: channels["orders"].subscriptions()[PEER].acknowledged == 6)
    receiver.plan = [410]
    channels["orders"].publish(published(6))
    eventually(lambda: channels["orders"].subscriptions() == {})


def test_an_address_that_does_not_confirm_is_not_subscribed(
    client: httpx.Client, channels: Channels, receiver: Receiver
) -> None:
    receiver.confirms = False
    given = {"callback": receiver.address}
    answer = client.put("/channels/orders/subscriptions/peer", json=given)
    assert (answer.status_code, answer.json()["code"]) == (502, "AX824")
    assert channels["orders"].subscriptions() == {}


def test_the_hub_speaks_websub(
    server: str, client: httpx.Client, channels: Channels, receiver: Receiver
) -> None:
    form = {
        "hub.mode": "subscribe",
        "hub.topic": f"{server}/channels/orders",
        "hub.callback": receiver.address,
        "hub.secret": "shared",
    }
    assert client.post("/hub", data=form).status_code == 202
    channels["orders"].publish(published(1))
    eventually(lambda: receiver.sequences() == [1])
    headers, body = receiver.got[0]
    assert is_signed("shared", body, headers["x-hub-signature"])
    assert client.post("/hub", data={**form, "hub.mode": "unsubscribe"}).status_code == 202
    assert receiver.asked[-1]["hub.mode"] == ["unsubscribe"]
    assert channels["orders"].subscriptions() == {}
    assert client.post("/hub", data={"hub.mode": "subscribe"}).status_code == 400


def test_a_slow_address_slows_no_other(
    client: httpx.Client, channels: Channels, receiver: Receiver
) -> None:
    broken = Receiver()
    broken.plan = [500] * 10_000
    for name, each in (("slow", broken), ("quick", receiver)):
        client.put(f"/channels/orders/subscriptions/{name}", json={"callback": each.address})
    for number in range(20):
        channels["orders"].publish(published(number))
    eventually(lambda: len(receiver.sequences()) == 20)

    def told() -> Any:
        known = client.get("/channels/orders").json()["subscriptions"]["slow"]
        return known["failures"] and known["error"]

    assert eventually(told) == "status 500"
    broken.plan = []
    eventually(lambda: broken.sequences() == list(range(1, 21)))
    broken.close()


def test_webhooks_go_on_after_a_restart(tmp_path: Path, receiver: Receiver) -> None:
    settings = secured(allowance=HERE, longest_pause=0.05)
    channels = Channels(tmp_path)
    channels.make("orders")
    with running(make_application(channels, settings), settings) as server:
        given = {"callback": receiver.address, "after": 0}
        with client_of(server) as client:
            client.put("/channels/orders/subscriptions/peer", json=given)
        channels["orders"].publish(published(1))
        eventually(lambda: receiver.sequences() == [1])
    channels["orders"].publish(published(2))  # while nobody serves
    channels.close()
    again = Channels(tmp_path)
    with running(make_application(again, settings), settings):
        eventually(lambda: receiver.sequences()[-1] == 2)
    again.close()


def test_private_addresses_are_refused(channels: Channels, receiver: Receiver) -> None:
    settings = secured()
    with running(make_application(channels, settings), settings) as server, client_of(server) as it:
        given = {"callback": receiver.address}
        answer = it.put("/channels/orders/subscriptions/peer", json=given)
    assert (answer.status_code, answer.json()["code"]) == (502, "AX821")
    assert receiver.asked == []


# Access -------------------------------------------------------------------------------------------


def test_a_server_for_others_needs_principals(channels: Channels) -> None:
    with pytest.raises(ChannelError, match="AX807"):
        make_application(channels, Settings(host="0.0.0.0"))
    make_application(channels, Settings(host="0.0.0.0", access=Access.of_token(TOKEN)))
    with pytest.raises(ChannelError, match="AX807"):
        Access.of_token("short")


def test_principals_and_their_limits(channels: Channels) -> None:
    shop = principal("shop", "publish", "subscribe", rate=0.001, size=2000, subscriptions=1)
    settings = secured(shop)
    with running(make_application(channels, settings), settings) as server:
        client = client_of(server, None)
        path, update = "/channels/orders/updates", published(1).plain()
        assert client.post(path, json=update).status_code == 401
        assert client.post(path, json=update).headers["www-authenticate"] == "Bearer"
        wrong = {"Authorization": "Bearer not the token"}
        assert client.post(path, json=update, headers=wrong).status_code == 401
        assert client.get("/channels/orders").status_code == 401  # reading, too
        client.headers["Authorization"] = f"Bearer {token_of('shop')}"
        assert [client.post(path, json=update).status_code for _ in range(2)] == [200, 429]
        large = {"stream": "orders", "insert": f"<a>{'x' * 3000}</a>"}
        assert client.post(path, json=large).status_code == 429
        first, second = (f"/channels/orders/subscriptions/{name}" for name in "ab")
        assert client.put(first, json={}).status_code == 200
        assert client.put(second, json={}).status_code == 429
        client.delete(first)
        assert client.put(second, json={}).status_code == 200
        assert client.put("/channels/more", json={}).status_code == 403
        client.close()


def test_pages_of_other_sites_are_kept_out(client: httpx.Client) -> None:
    update = published(1).plain()
    path = "/channels/orders/updates"
    foreign = {"Origin": "https://example.org"}
    assert client.post(path, json=update, headers=foreign).json()["code"] == "AX815"
    assert client.get("/channels", headers={"Host": "rebound.example"}).json()["code"] == "AX815"
    assert client.post(path, json=update, headers={"Origin": str(client.base_url)}).is_success


def test_the_command_serves_a_pipeline_and_its_channels(tmp_path: Path) -> None:
    """`axlog serve PIPELINE`: what a view publishes can be read; a token is needed to write."""
    (tmp_path / "in.jsonl").write_text('{"insert": "<b>17</b>", "at": 1}\n')
    (tmp_path / "p.yaml").write_text(
        """
engine: embedded
document: <a><ax:call xmlns:ax="urn:axlog" stream="in"/></a>
streams: {in: {source: {kind: jsonl, path: in.jsonl}}}
views: {v: {query: "match /a/b/$x return $x", channel: rows}}
channels: {rows: {kind: memory}}
"""
    )
    grants = "[{may: read}, {may: publish, channels: more}]"
    entry = f'{{hash: "{written_hash(TOKEN)}", grants: {grants}}}'
    (tmp_path / "roles.yaml").write_text(f"principals: {{ann: {entry}}}\n")
    command = [sys.executable, "-c", "from axlog.cli import main; main()", "serve"]
    options = ["--port", "0", "--channel", "more", "--roles", str(tmp_path / "roles.yaml")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, str(tmp_path / "p.yaml"), *options],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline().split()
            assert said[:3] == ["serving", "2", "channels"]
            with client_of(said[-1]) as client:
                got = client.get("/channels/rows/updates?after=0&wait=15").json()
                assert "<x>17</x>" in got["entries"][0]["insert"]
                rows = client.get("/documents/document/views/v").json()["rows"]
                assert rows == [{"key": ["17"], "row": {"x": "17"}, "count": 1}]
                assert "text/html" in client.get("/").headers["content-type"]
                update = published(1).plain()
                assert client.post("/channels/more/updates", json=update).status_code == 200
                assert client.post("/channels/rows/updates", json=update).status_code == 403
                del client.headers["Authorization"]
                assert client.post("/channels/more/updates", json=update).status_code == 401
            process.terminate()
            assert process.wait(60) in (0, -15)
        finally:
            process.kill()


def test_the_command_refuses_to_let_anybody_write(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from axlog.cli import main; main()", "serve"]
    done = subprocess.run(
        [*command, "--host", "0.0.0.0", "--port", "0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "AX807" in done.stderr


# Views and feeds ----------------------------------------------------------------------------------


def test_a_view_is_followed_from_a_snapshot_and_from_a_position() -> None:
    document = Document(streams=["s"], views={"v": "match //s/a/$x return $x"})
    document.feed("s", "<a>1</a>")
    settings = secured(principal("ann", "watch"))
    bearer = {"Authorization": f"Bearer {token_of('ann')}"}
    path = "/documents/w/views/v/changes"

    def told(event: dict[str, str]) -> tuple[str | None, str | None, Any]:
        said = json.loads(event["data"])
        kept = said if "event" in event else (said["op"], said["key"], said["position"])
        return event.get("event"), event.get("id"), kept

    with running(
        make_application(Channels(), settings, documents={"w": document}), settings
    ) as server:
        with closing(Events(server, path, **bearer)) as events:
            assert [told(events.next()) for _ in range(3)] == [
                ("snapshot", None, {"position": 1, "count": 1}),
                (None, None, ("insert", ["1"], 1)),
                ("position", "1", {"position": 1}),
            ]
            for number in (2, 3):
                document.feed("s", f"<a>{number}</a>")
                assert told(events.next()) == (
                    None, str(number), ("insert", [str(number)], number)
                )  # fmt: skip
        with closing(Events(server, path, **bearer, **{"Last-Event-ID": "1"})) as events:
            assert [told(events.next())[1] for _ in range(2)] == ["2", "3"]
        with closing(Events(server, f"{path}?since=2", **bearer)) as events:
            assert told(events.next())[1] == "3"
        with closing(Events(server, path, **bearer, **{"Last-Event-ID": "0"})) as events:
            assert [told(events.next())[0] for _ in range(2)] == ["gap", "snapshot"]
        with client_of(server, token_of("ann")) as client:
            gone = client.get(f"{path}?since=0")
            assert (gone.status_code, gone.json()["code"]) == (410, "AX803")
            assert client.get(f"{path}?since=x").json()["code"] == "AX813"


def test_views_over_http_and_their_quota() -> None:
    doc = Document("<a><b>1</b><b>2</b></a>", views={"own": "match /a/b/$x return $x"})
    settings = secured(principal("ann", "watch", views=1), principal("bob", "watch"))
    with running(make_application(Channels(), settings, documents={"w": doc}), settings) as server:
        client = client_of(server, None)
        query = {"query": 'match /a[b/"2"]'}
        assert client.get("/documents/w/views/own").status_code == 401
        assert client.put("/documents/w/views/new", json=query).status_code == 401
        client.headers["Authorization"] = f"Bearer {token_of('ann')}"
        own = client.get("/documents/w/views/own").json()
        assert [row["row"] for row in own["rows"]] == [{"x": "1"}, {"x": "2"}]
        assert own["truth"] == "true"
        assert client.put("/documents/w/views/bad", json={"query": "match ("}).status_code == 422
        assert client.put("/documents/w/views/new", json=query).status_code == 201
        assert client.get("/documents/w/views/new").json()["count"] == 1
        assert client.put("/documents/w/views/more", json=query).status_code == 429
        assert client.put("/documents/w/views/own", json=query).status_code == 409
        assert client.delete("/documents/w/views/own").status_code == 403
        with client_of(server, token_of("bob")) as other:
            assert other.get("/documents/w/views/new").status_code == 200
            assert other.delete("/documents/w/views/new").status_code == 403
            assert other.put("/documents/w/views/new", json=query).status_code == 409
        assert client.delete("/documents/w/views/new").status_code == 204
        assert client.get("/documents/w/views/new").status_code == 404
        assert client.get("/documents/none/views/v").status_code == 404
        assert client.get("/documents").json() == {"w": {"views": ["own"], "streams": []}}
        client.close()


def test_the_routes_of_version_0_1_work_and_say_what_replaces_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doc = Document("<a><b>1</b></a>", views={"own": "match /a/b/$x return $x"})
    settings = secured(principal("ann", "watch"))
    app = make_application(Channels(), settings, documents={"w": doc})
    with (
        running(app, settings) as server,
        client_of(server, token_of("ann")) as client,
        caplog.at_level("WARNING", logger="axlog.server"),
    ):
        for path in ("", "/w/views/own", "/w/views/own"):
            old, new = client.get(f"/widgets{path}"), client.get(f"/documents{path}")
            assert old.json() == new.json()
            assert old.headers["deprecation"] == "true"
            assert old.headers["link"] == '</documents>; rel="successor-version"'
            assert "deprecation" not in new.headers
        query = {"query": "match /a/b"}
        assert client.put("/widgets/w/views/new", json=query).status_code == 201
        assert client.delete("/widgets/w/views/new").status_code == 204
        described = client.get("/openapi.json").json()["paths"]
        assert described["/widgets"]["get"]["deprecated"] is True
        assert "deprecated" not in described["/documents"]["get"]
    logged = [record.getMessage() for record in caplog.records if record.name == "axlog.server"]
    assert logged == ["a client uses a deprecated route"] * 4  # once for each operation


def test_a_channel_is_a_feed_too(client: httpx.Client, channels: Channels) -> None:
    for number in range(60):
        channels["orders"].publish(published(number))
    for form, kind in (("rss", "application/rss+xml"), ("atom", "application/atom+xml")):
        answer = client.get(f"/channels/orders/feed?format={form}")
        assert answer.headers["content-type"].startswith(kind)
        found = feedparser.parse(BytesIO(answer.content))
        assert len(found.entries) == 50
        assert found.entries[0].title == "orders 60: insert"
    assert len(client.get("/channels/orders/feed?format=json").json()["items"]) == 50
    assert client.get("/channels/orders/feed?format=x").status_code == 400
