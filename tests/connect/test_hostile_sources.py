"""What an enemy writes where alerters look, and what goes out to others: tables, logs, feeds, mail.

One bad row or line is a dead letter or is shown with its bad characters replaced; it holds up no
other. What is sent cannot be read as anything but what it is.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

import axlog
from axlog.connect.channels.registry import Channels
from axlog.connect.kinds import Origin, Secret
from axlog.connect.protocol import Reading
from axlog.connect.sources.access_logs import AccessLog, AccessLogOptions
from axlog.connect.sources.feeds import FEED, FeedOptions
from axlog.connect.sources.tables import TABLE, TableOptions
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError
from axlog.server.application import make_application
from axlog.server.server import running
from tests.accepted_errors import accept
from tests.hostile_attacks import XML_ATTACKS, XML_LURES, Outside, aims
from tests.server_access import BEARER, secured

DOCUMENT = '<a><ax:call xmlns:ax="urn:axlog" stream="s" deletes="yes"/></a>'
VALUES: dict[str, Any] = {
    "a NUL": "x\0y",
    "a control character": "\x01\x1b[2J",
    "markup": "</row><row><evil/></row>",
    "an entity": "&lol;<![CDATA[",
    "half a character": b"\xed\xa0\x80",
    "no UTF-8": b"\xff\xfe\xc0",
    "no character": "\ufffe\uffff",
    "a huge text": "x" * 10_000_001,
    "bytes": b"\x00\x01",
    "nothing": None,
    "a number": 1e308,
}


def taken(reading: Reading) -> list[str]:
    """What a document takes of a reading, as text."""
    doc = axlog.parse(DOCUMENT, views={"v": "match /a/*#t return t.cont"})
    for update in reading.updates:
        try:
            doc.take(StreamUpdate("s", update.action, update.content, 1, update.origin))
        except AxlogError as error:
            accept(error, ("AX123",))  # texts of the length of an attack
            continue
    return [str(row["t.cont"]) for row in doc.view("v").rows()]


@pytest.mark.parametrize("mode", ["append", "all"])
def test_rows_of_a_table(mode: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as base, base:
        base.execute("create table t (id integer primary key, v)")
        base.execute("insert into t values (0, 'first')")
        for number, value in enumerate(VALUES.values(), 1):
            is_text = isinstance(value, bytes) and number != list(VALUES).index("bytes") + 1
            cast = "cast(? as text)" if is_text else "?"
            base.execute(f"insert into t values (?, {cast})", (number, value))
        base.execute("insert into t values (99, 'last')")
    options = TableOptions.model_validate(
        {"database": Secret(f"sqlite:///{tmp_path}/t.db"), "table": "t", "by": "id", "mode": mode,
         "interval": 0}
    )  # fmt: skip
    with closing(TABLE.make(options, Origin(tmp_path, stream="s"))) as source:
        found = taken(source.read(None, 100))
    assert any("first" in row for row in found)
    assert any("last" in row for row in found)
    assert not any("<evil" in row for row in found)
    assert len(found) >= len(VALUES)  # all but what is too large


@pytest.mark.parametrize("column", ["a b", "1", "<x>", "x:y:z", "a\0"])
def test_columns_that_are_no_names(column: str, tmp_path: Path) -> None:
    quoted = column.replace('"', '""').replace("\0", "")
    with closing(sqlite3.connect(tmp_path / "t.db")) as base, base:
        base.execute(f'create table t (id integer primary key, "{quoted}")')
        base.execute("insert into t values (0, 'first')")
    given = {"database": Secret(f"sqlite:///{tmp_path}/t.db"), "table": "t", "by": "id"}
    options = TableOptions.model_validate(given)
    with closing(TABLE.make(options, Origin(tmp_path, stream="s"))) as source:
        if column == "a\0":
            assert len(source.read(None, 10).updates) == 1
        else:
            with pytest.raises(AxlogError, match="AX852"):
                source.read(None, 10)


def test_lines_of_a_log(tmp_path: Path) -> None:
    good = '127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /{} HTTP/1.0" 200 2326\n'
    bad = [
        b"\0" * 1000, b"\xff\xfe\n", b"[" * 200_000, b'"' * 50_000, b"\\x" * 50_000,
        good.format("</call><evil/>").encode(), good.format("&lol;\\x00\\x1b").encode(),
        good.replace("2000", "9" * 50).encode(), b" " * 3_000_000 + b"x",
    ]  # fmt: skip
    content = b"\n".join([good.format("first").encode(), *bad, good.format("last").encode(), b""])
    (tmp_path / "access.log").write_bytes(content)
    options = AccessLogOptions(path="access.log")
    with closing(AccessLog(options, Origin(tmp_path, stream="s"))) as source:
        reading = source.read(None, 1000)
    found = taken(reading)
    assert any("first" in row for row in found)
    assert any("last" in row for row in found)
    assert not any("<evil" in row for row in found)
    assert reading.refused


@pytest.fixture(scope="module")
def feeds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, bytes], Any]]:
    outside = Outside(tmp_path_factory.mktemp("outside"))
    answers: dict[str, bytes] = {}

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answers, outside
    server.shutdown()
    server.server_close()
    outside.close()


def test_feeds_that_are_fetched(
    feeds: tuple[str, dict[str, bytes], Outside], tmp_path: Path
) -> None:
    """Each attack as the answer, and inside of an item of a feed."""
    address, answers, outside = feeds
    rss = b'<rss version="2.0"><channel><item><guid>1</guid>%s</item></channel></rss>'
    for number, (name, content) in enumerate({**XML_ATTACKS, **XML_LURES}.items()):
        for aimed in aims(content, outside):
            for inside in (False, True):
                if inside and (b"<!" in aimed or b"<?" in aimed):
                    continue  # not inside of an element
                answers[f"/{number}"] = rss.replace(b"%s", aimed) if inside else aimed
                options = FeedOptions.model_validate(
                    {"url": f"{address}/{number}", "allow": ["127.0.0.1"], "interval": 0}
                )
                with closing(FEED.make(options, Origin(tmp_path, stream="s"))) as source:
                    reading = source.read(None, 10)
                assert not outside.was_asked(), name
                # Words of an item may be what is left of an attack; nothing is carried out.
                assert name in XML_LURES or reading.refused or inside or not reading.updates, name


def test_what_goes_out_as_events_is_one_event_each() -> None:
    """Line ends in updates cannot become lines of an event stream."""
    channels = Channels()
    orders = channels.make("orders")
    texts = ["a\n\nevent: evil\ndata: x", "a\r\rdata: x", "\u2028id: 7", "id: 9\n\n"]
    for number, text in enumerate(texts, 1):
        escaped = text.replace("\r", "&#13;")
        orders.publish(StreamUpdate("s", "insert", f"<b>{escaped}</b>", number))
    orders.publish(StreamUpdate("s", "end", "", 9))
    settings = secured()
    lines: list[str] = []
    with running(make_application(channels, settings), settings) as address:
        url = f"{address}/channels/orders/events?after=0"
        with httpx.stream("GET", url, headers=BEARER, timeout=60, trust_env=False) as answer:
            body = b""
            for part in answer.iter_bytes():
                body += part
                if body.count(b"data: ") >= len(texts) + 1:
                    break
        lines = [line for line in body.decode().split("\n") if line and not line.startswith(":")]
    assert b"\r" not in body
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [one["sequence"] for one in data] == [1, 2, 3, 4, 5]
    assert not any(line.startswith("event: evil") for line in lines)
    assert sum(line.startswith("id: ") for line in lines) == 5
