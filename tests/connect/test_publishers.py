"""Publishers with real parts: feeds read by feedparser, mail to a real server, webhooks, databases.

Law: a batch that is written again changes nothing, and what is published is the view.
"""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import feedparser  # type: ignore[import-untyped]  # it has no types
import pytest
from aiosmtpd.controller import Controller
from lxml import etree, html

from axlog.connect.kinds import Origin, Secret, ViewShape
from axlog.connect.protocol import Sink
from axlog.connect.sinks.envelopes import ENVELOPES
from axlog.errors import ConnectorError
from axlog.live.document import Document
from axlog.pipeline import kinds
from axlog.server.webhooks import is_signed
from axlog.views.change import Change

DOCUMENT = '<a><ax:call xmlns:ax="urn:axlog" stream="orders" deletes="yes"/></a>'
QUERY = "match /a/order[oid/$x][client/$c] return $x, $c"


class Orders:
    """A document whose view's changes are written to a sink, each batch twice."""

    def __init__(self) -> None:
        self.doc = Document(DOCUMENT, views={"late": QUERY})
        self.batch = 0

    def origin(self, directory: Path, run: str = "r1") -> Origin:
        shape = ViewShape.of("late", self.doc.view("late").query)
        return Origin(directory, run=run, views=[shape])

    def add(self, oid: int, client: str = "INRIA") -> list[Change]:
        xml = f"<order><oid>{oid}</oid><client><![CDATA[{client}]]></client></order>"
        return self.doc.feed("orders", xml)

    def remove(self, oid: int) -> list[Change]:
        return self.doc.delete("orders", f'match /order[oid/"{oid}"]')

    def rows(self) -> list[tuple[str, str]]:
        return [(row["x"], row["c"]) for row in self.doc.view("late").rows()]


def make(kind: str, orders: Orders, directory: Path, run: str = "r1", **options: Any) -> Sink:
    found = kinds.sink_kind(kind)
    return found.make(found.options.model_validate(options), orders.origin(directory, run))


STEPS: list[Callable[[Orders], list[Change]]] = [
    lambda orders: orders.add(1) + orders.add(2, "<b>Dell & Co</b>"),
    lambda orders: orders.add(3) + orders.remove(1),
    lambda orders: orders.add(1, "Axa"),
]


def play(sink: Sink, orders: Orders, reopen: Callable[[], Sink], check: Callable[[], None]) -> Sink:
    """Write every batch twice, the second time after a restart; look after each."""
    for batch, step in enumerate(STEPS):
        changes = step(orders)
        sink.write(batch, changes)
        check()
        sink.close()
        sink = reopen()
        sink.write(batch, changes)
        check()
    return sink


def test_a_page_shows_the_rows_and_nothing_but_text(tmp_path: Path) -> None:
    orders = Orders()

    def reopen() -> Sink:
        return make("page", orders, tmp_path, path="{view}.html", title="<i>", refresh=5)

    def check() -> None:
        page = html.fromstring((tmp_path / "late.html").read_bytes())
        rows = [tuple(cell.text for cell in row) for row in page.iter("tr")][1:]
        assert rows == orders.rows()
        assert page.find(".//td/b") is None
        assert page.findtext(".//h1") == "<i>"

    play(reopen(), orders, reopen, check).close()


def test_an_xml_file_holds_the_rows(tmp_path: Path) -> None:
    orders = Orders()

    def reopen() -> Sink:
        return make("xml", orders, tmp_path, path="out/late.xml", row="order")

    def check() -> None:
        tree = etree.fromstring((tmp_path / "out/late.xml").read_bytes())
        assert [(r.findtext("x"), r.findtext("c")) for r in tree.iter("order")] == orders.rows()

    play(reopen(), orders, reopen, check).close()


@pytest.mark.parametrize("form", ["rss", "atom"])
def test_feeds_that_feedparser_reads(tmp_path: Path, form: str) -> None:
    orders = Orders()
    link = "https://shop.example/{x}?c={c}"

    def reopen() -> Sink:
        return make(
            "feed", orders, tmp_path, path="f.xml", format=form, title="late: {x} {c}", link=link
        )

    written: list[int] = []

    def check() -> None:
        found = feedparser.parse(BytesIO((tmp_path / "f.xml").read_bytes()))
        assert not found.bozo
        assert found.version == {"rss": "rss20", "atom": "atom10"}[form]
        assert len({entry.id for entry in found.entries}) == len(found.entries)
        written.append(len(found.entries))

    play(reopen(), orders, reopen, check).close()
    assert written == [2, 2, 4, 4, 5, 5]  # deletions too: the runner filters by `ops`
    found = feedparser.parse(BytesIO((tmp_path / "f.xml").read_bytes()))
    assert [entry.link for entry in found.entries][:1] == ["https://shop.example/1?c=Axa"]
    assert found.entries[3].link.endswith("c=%3Cb%3EDell%20%26%20Co%3C%2Fb%3E")
    raw = etree.fromstring((tmp_path / "f.xml").read_bytes())
    assert "late: 2 <b>Dell & Co</b>" in [e.text for e in raw.iter("{*}title")]


def test_a_json_feed_keeps_the_newest(tmp_path: Path) -> None:
    orders = Orders()
    sink = make("feed", orders, tmp_path, path="f.json", format="json", items=2)
    for batch in range(5):
        sink.write(batch, orders.add(batch))
    said = json.loads((tmp_path / "f.json").read_text())
    assert said["version"].startswith("https://jsonfeed.org/")
    assert [item["id"] for item in said["items"]] == ["r1-4-0", "r1-3-0"]
    sink.close()


def test_another_run_begins_anew(tmp_path: Path) -> None:
    orders = Orders()
    sink = make("feed", orders, tmp_path, path="f.json", format="json")
    sink.write(3, orders.add(1))
    again = make("feed", orders, tmp_path, run="r2", path="f.json", format="json")
    again.write(0, orders.add(2))
    assert len(json.loads((tmp_path / "f.json").read_text())["items"]) == 1


def test_a_state_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.json.state").write_text("[]")
    with pytest.raises(ConnectorError, match="AX859"):
        make("feed", Orders(), tmp_path, path="f.json")


# Envelopes ----------------------------------------------------------------------------------------


def changes_of_every_kind() -> Sequence[Change]:
    doc = Document("<a><b>1</b></a>", views={"v": "match /a/b#t return t.val"})
    (row,) = doc.view("v").rows()
    updated = doc.update('replace value of node /a/b with "2"')
    assert [change.op for change in updated] == ["update"]
    deleted = doc.update("delete nodes /a/b")
    return [Change("insert", row, view="v"), *updated, *deleted, Change("never", row, view="v")]


def test_the_envelopes() -> None:
    changes = changes_of_every_kind()
    written = {name: list(envelope("r", 7, changes)) for name, envelope in ENVELOPES.items()}
    assert [one["op"] for one in written["native"]] == ["insert", "update", "delete", "never"]
    assert [one["id"] for one in written["native"]] == ["r-7-0", "r-7-1", "r-7-2", "r-7-3"]
    column = "t.val"
    said = [(e["op"], e["before"], e["after"]) for e in written["debezium"]]
    assert said == [
        ("c", None, {column: "1"}),
        ("u", {column: "1"}, {column: "2"}),
        ("d", {column: "2"}, None),
    ]
    assert written["feldera"] == [
        {"insert": {column: "1"}},
        {"delete": {column: "1"}},
        {"insert": {column: "2"}},
        {"delete": {column: "2"}},
    ]
    assert [one.get("mz_diff") for one in written["subscribe"]] == [1, -1, 1, -1, None]
    assert written["subscribe"][-1] == {"mz_timestamp": 8, "mz_progressed": True}
    event = written["cloudevents"][0]
    assert (event["specversion"], event["type"]) == ("1.0", "axlog.change.insert")
    assert event["data"]["row"] == {column: "1"}


def test_summing_an_envelope_gives_the_view(tmp_path: Path) -> None:
    """By the definition: rows are what was inserted and not deleted."""
    orders = Orders()
    sinks = {
        name: make("jsonl", orders, tmp_path, path=f"{name}.jsonl", envelope=name)
        for name in ("debezium", "feldera", "subscribe")
    }
    for batch, step in enumerate(STEPS):
        changes = step(orders)
        for sink in sinks.values():
            sink.write(batch, changes)
            sink.write(batch, changes)
    for sink in sinks.values():
        sink.close()

    def lines(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]

    totals: dict[str, dict[tuple[str, str], int]] = {name: {} for name in sinks}

    def move(name: str, row: dict[str, str] | None, by: int) -> None:
        if row is not None:
            key = (row["x"], row["c"])
            totals[name][key] = totals[name].get(key, 0) + by

    for one in lines("debezium"):
        move("debezium", one["before"], -1)
        move("debezium", one["after"], 1)
    for one in lines("feldera"):
        move("feldera", one.get("delete"), -1)
        move("feldera", one.get("insert"), 1)
    for one in lines("subscribe"):
        if not one["mz_progressed"]:
            move("subscribe", one, one["mz_diff"])
    for total in totals.values():
        assert sorted(key for key, number in total.items() if number) == orders.rows()
        assert set(total.values()) <= {0, 1}


# Webhooks -----------------------------------------------------------------------------------------


@pytest.fixture
def posted() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]], list[int]]]:
    got: list[tuple[dict[str, str], bytes]] = []
    plan: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = plan.pop(0) if plan else 200
            got.append(({n.lower(): v for n, v in self.headers.items()}, body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", got, plan
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_webhook_is_signed_and_comes_again(posted, tmp_path: Path) -> None:
    url, got, plan = posted
    orders = Orders()
    sink = make("webhook", orders, tmp_path, url=url, secret="s3cret", allow=["127.0.0.1"])
    plan[:] = [500]
    changes = orders.add(1)
    with pytest.raises(ConnectorError, match="AX824") as failed:
        sink.write(0, changes)
    assert url not in str(failed.value)  # who has the address can post to it
    sink.write(0, changes)
    sink.write(0, changes)
    assert len(got) == 2
    assert got[0][0]["idempotency-key"] == got[1][0]["idempotency-key"]
    headers, body = got[1]
    assert is_signed("s3cret", body, headers["x-hub-signature"])
    assert json.loads(body)[0]["row"] == {"x": "1", "c": "INRIA"}
    sink.close()
    refused = make("webhook", orders, tmp_path, url=url)
    with pytest.raises(ConnectorError, match="AX821") as failed:
        refused.write(0, changes)
    assert url not in str(failed.value)
    gone = make("webhook", orders, tmp_path, url="http://127.0.0.1:1/x", allow=["127.0.0.1"])
    with pytest.raises(ConnectorError, match="AX822: the webhook cannot be reached"):
        gone.write(0, changes)
    gone.close()
    refused.close()
    events = make("cloudevents", orders, tmp_path, url=url, allow=["127.0.0.1"])
    events.write(1, changes)
    assert got[-1][0]["content-type"] == "application/cloudevents-batch+json"
    events.close()


# Mail ---------------------------------------------------------------------------------------------


class Mailbox:
    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.arrived = Event()
        self.refuses = False

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        await asyncio.sleep(0)
        if self.refuses:
            return "451 later"
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        self.arrived.set()
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, dict[str, Any]]]:
    box = Mailbox()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    options = {"server": "127.0.0.1", "port": port, "security": "none"}
    yield box, {**options, "sender": "axlog@shop.example", "to": ["ann@shop.example"]}
    controller.stop()


def test_a_mail_for_each_change(mailbox, tmp_path: Path) -> None:
    box, options = mailbox
    orders = Orders()
    sink = make("mail", orders, tmp_path, **options, subject="late {x} {c}", state="mail.state")
    changes = orders.add(1, "A\nBcc: everybody@shop.example") + orders.add(2)
    box.refuses = True
    with pytest.raises(ConnectorError, match="AX859"):
        sink.write(0, changes)
    box.refuses = False
    sink.write(0, changes)
    sink.close()
    make("mail", orders, tmp_path, **options, state="mail.state").write(0, changes)
    assert [mail["subject"] for mail in box.mails] == [
        "late 1 A Bcc: everybody@shop.example",
        "late 2 INRIA",
    ]
    assert box.mails[0]["bcc"] is None
    assert len({mail["message-id"] for mail in box.mails}) == 2
    assert "late: insert x: 2, c: INRIA" in box.mails[1].get_content()


def test_a_digest_waits_and_survives_a_restart(mailbox, tmp_path: Path) -> None:
    box, options = mailbox
    orders = Orders()
    given = {**options, "every": "1h", "state": "mail.state"}
    sink = make("mail", orders, tmp_path, **given)
    sink.write(0, orders.add(1))
    sink.write(1, orders.add(2))
    assert box.mails == []
    del sink  # killed
    again = make("mail", orders, tmp_path, **given)
    again.write(2, orders.remove(1))
    again.close()
    (mail,) = box.mails
    assert mail["subject"] == "3 changes"
    assert len(mail.get_content().splitlines()) == 3


def test_a_digest_goes_when_it_is_due(mailbox, tmp_path: Path) -> None:
    box, options = mailbox
    orders = Orders()
    sink = make("mail", orders, tmp_path, **options, every=0.1)
    sink.write(0, orders.add(1))
    assert box.arrived.wait(60)
    sink.close()
    assert ["insert" in mail.get_content() for mail in box.mails] == [True]


# Databases ----------------------------------------------------------------------------------------


def sql(orders: Orders, directory: Path, url: str) -> Sink:
    return make("sql", orders, directory, url=Secret(url), table="late_orders")


def test_a_table_of_sqlite_is_the_view(tmp_path: Path) -> None:
    orders = Orders()
    url = "sqlite:///out.db"
    last = sql(orders, tmp_path, url)

    def check() -> None:
        looking: Any = sql(orders, tmp_path, url)
        assert sorted(looking.rows()) == orders.rows()
        looking.close()

    play(last, orders, lambda: sql(orders, tmp_path, url), check).close()


@pytest.fixture
def shared_path() -> Iterator[Path]:
    """A directory that another user may enter: PostgreSQL does not run as root."""
    with TemporaryDirectory() as made:
        Path(made).chmod(0o777)
        yield Path(made)


def test_a_table_of_postgresql_is_the_view(
    shared_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    from pgserver.postgres_server import get_server

    server = get_server(shared_path / "pg", cleanup_mode="stop")
    try:
        url = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        orders = Orders()

        def check() -> None:
            looking: Any = sql(orders, tmp_path, url)
            assert sorted(looking.rows()) == orders.rows()
            looking.close()

        play(sql(orders, tmp_path, url), orders, lambda: sql(orders, tmp_path, url), check).close()
    finally:
        server.cleanup()


def test_every_publisher_is_a_kind_of_sink() -> None:
    for name in ("cloudevents", "feed", "mail", "page", "sql", "webhook", "xml"):
        assert kinds.sink_kind(name).name == name
