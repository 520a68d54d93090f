"""Alerters with real parts: a feed that changes behind an HTTP server, a log that rotates, tables.

The conformance feeds are replayed poll by poll: what is published is what is expected.
"""

import copy
import gzip
import json
import os
import sqlite3
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import feedparser  # type: ignore[import-untyped]  # it has no types
import pytest
from lxml import etree

from axlog.connect.kinds import Origin, Secret
from axlog.connect.protocol import Reading, Source
from axlog.connect.sources.access_logs import AccessLog, AccessLogOptions, read_call
from axlog.connect.sources.documents import DOCUMENT, DocumentOptions
from axlog.connect.sources.feeds import FEED, Feed, FeedOptions, read_feed
from axlog.connect.sources.folders import FOLDER, FolderOptions
from axlog.connect.sources.poller import Alerter, digest
from axlog.connect.sources.tables import TABLE, TableOptions
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, ConnectorError
from axlog.live.document import Document
from axlog.pipeline import kinds
from lab.laws.feeds_law import HEADS, random_item


def origin(directory: Path, stream: str = "news") -> Origin:
    return Origin(directory, stream=stream)


def told(reading: Reading) -> list[tuple[str, str]]:
    """Each update as its action and the id of its thing, or the key that is deleted."""
    found = []
    for update in reading.updates:
        if update.action == "insert":
            found.append(("insert", str(etree.fromstring(update.content).get("id"))))
        else:
            found.append(("delete", str(update.content).split('"')[1]))
    return found


def rss(*items: tuple[str, str]) -> bytes:
    inside = "".join(f"<item><guid>{i}</guid><title>{t}</title></item>" for i, t in items)
    return f'<rss version="2.0"><channel><title>t</title>{inside}</channel></rss>'.encode()


# Feeds --------------------------------------------------------------------------------------------


class FeedServer:
    """A server of one feed that knows what a reader has."""

    def __init__(self) -> None:
        self.content = b""
        self.answers: list[int] = []
        feed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                tag = f'"{digest(feed.content.decode())}"'
                status = 304 if self.headers.get("If-None-Match") == tag else 200
                feed.answers.append(status)
                self.send_response(status)
                self.send_header("ETag", tag)
                body = feed.content if status == 200 else b""
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/feed.xml"
        self.thread = Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[FeedServer]:
    made = FeedServer()
    yield made
    made.close()


def feed(server: FeedServer, tmp_path: Path, **options: Any) -> Source:
    given = {"url": server.url, "interval": 0, "allow": ["127.0.0.1"], **options}
    return FEED.make(FeedOptions(**given), origin(tmp_path))


def test_a_feed_that_changes_is_followed_into_a_document(
    server: FeedServer, tmp_path: Path
) -> None:
    source = feed(server, tmp_path)
    doc = Document(
        '<news><ax:call xmlns:ax="urn:axlog" stream="news" deletes="yes"/></news>',
        views={"titles": "match /news/item/title/$t return $t"},
    )
    position: Any = None
    seen = []
    for items in (
        [("1", "one"), ("2", "two")],
        [("1", "one"), ("2", "two")],
        [("2", "TWO"), ("3", "three")],
        [("3", "three")],
    ):
        server.content = rss(*items)
        reading = source.read(position, 100)
        position = reading.position
        for update in reading.updates:
            doc.take(update)
        assert [row["t"] for row in doc.view("titles").rows()] == sorted(t for _, t in items)
        seen.append(len(reading.updates))
    assert seen == [2, 0, 4, 1]
    assert server.answers == [200, 304, 200, 200]
    source.close()


def test_reading_again_gives_the_same_updates_and_a_log_outlives_the_process(
    server: FeedServer, tmp_path: Path
) -> None:
    server.content = rss(("1", "one"), ("2", "two"))
    source = feed(server, tmp_path, log="feed.log")
    first = source.read(None, 1)
    assert (told(first), first.more) == ([("insert", "1")], True)
    assert told(source.read(first.position, 5)) == [("insert", "2")]
    server.content = rss(("2", "two"))
    assert told(source.read(None, 5)) == [("insert", "1"), ("insert", "2")]  # as it was
    del source  # killed
    again = feed(server, tmp_path, log="feed.log")
    assert told(again.read(1, 5)) == [("insert", "2")]
    assert told(again.read(2, 5)) == [("delete", digest("1"))]
    again.close()
    fresh = feed(server, tmp_path)
    with pytest.raises(ConnectorError, match="AX858"):
        fresh.read(3, 5)
    fresh.close()


def test_additions_only(server: FeedServer, tmp_path: Path) -> None:
    source = feed(server, tmp_path, only="additions")
    server.content = rss(("1", "one"))
    position = source.read(None, 9).position
    for items, expected in (
        ([("1", "ONE"), ("2", "two")], [("insert", "2")]),
        ([("2", "two")], []),
        ([("1", "one")], []),
    ):
        server.content = rss(*items)
        reading = source.read(position, 9)
        position = reading.position
        assert told(reading) == expected
    source.close()


@pytest.mark.parametrize(
    "content",
    [
        b"<rss><channel><item></channel></rss>",
        b'<!DOCTYPE rss [<!ENTITY x "y">]><rss version="2.0"><channel>&x;</channel></rss>',
        b"<html><body>not a feed</body></html>",
    ],
)
def test_a_feed_that_cannot_be_read_changes_nothing(
    server: FeedServer, tmp_path: Path, content: bytes
) -> None:
    source = feed(server, tmp_path)
    server.content = rss(("1", "one"))
    position = source.read(None, 9).position
    server.content = content
    reading = source.read(position, 9)
    assert reading.updates == []
    assert len(reading.refused) == 1
    assert reading.refused[0].content == content
    server.content = rss(("1", "one"), ("2", "two"))
    assert told(source.read(reading.position, 9)) == [("insert", "2")]
    source.close()


def test_a_private_address_is_refused_unless_it_is_allowed(
    server: FeedServer, tmp_path: Path
) -> None:
    source = feed(server, tmp_path, allow=[])
    with pytest.raises(ConnectorError, match="AX821"):
        source.read(None, 9)
    source.close()


def test_atom_and_markup_in_texts() -> None:
    content = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>
    <entry><id>urn:1</id><title type="html">&lt;b&gt;x&lt;/b&gt; &amp;amp; y</title>
    <updated>2026-01-08T05:07:10Z</updated><link href="http://e.example/1"/>
    <category term="a"/><category term="b"/><summary>s</summary></entry></feed>"""
    (thing,) = read_feed(content, "here")
    tree = etree.fromstring(thing.xml())
    assert tree.findtext("updated") == "2026-01-08T05:07:10+00:00"
    assert [each.text for each in tree.iter("category")] == ["a", "b"]
    assert tree.findtext("link") == "http://e.example/1"
    assert tree.find("title/b") is None  # it is text


def test_conformance_feeds_poll_by_poll(conformance: Callable[[str], Path], tmp_path: Path) -> None:
    """What is told is what is expected, and a poll that finds the same again tells nothing.

    The first versions of each feed; all 228 with AXLOG_ALL_POLLS=1.
    """
    root = conformance("stream-feeds/olshansk")
    lines = (root / "expected_item_deltas.jsonl").read_text(encoding="utf-8").splitlines()
    by_feed: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        expected = json.loads(line)
        by_feed[expected["feed"]].append(expected)
    polls = [line.split("\t") for line in (root / "polls.tsv").read_text().splitlines()]
    for name, versions in by_feed.items():
        path = tmp_path / "feed.xml"
        watched = Feed(FeedOptions(url="feed.xml", interval=0), origin(tmp_path))
        source = Alerter(watched, FeedOptions(url="feed.xml", interval=0), origin(tmp_path))
        versions = versions[: None if os.environ.get("AXLOG_ALL_POLLS") else 25]
        files = [file for _, feed_name, file, _ in polls if feed_name == name]
        assert list(dict.fromkeys(files))[: len(versions)] == [
            version["file"] for version in versions
        ]
        position: Any = None
        keys: dict[str, str] = {}
        for version in versions:
            path.write_bytes(gzip.decompress((root / version["file"]).read_bytes()))
            reading = source.read(position, 10_000)
            position = reading.position
            deleted, inserted = set(), set()
            for action, what in told(reading):
                if action == "delete":
                    deleted.add(keys[what])
                else:
                    inserted.add(what)
                    keys[digest(what)] = what
            assert inserted - deleted == set(version["added"]), version["file"]
            assert deleted - inserted == set(version["removed"]), version["file"]
            assert deleted & inserted == set(version["changed"]), version["file"]
            for _ in range(min(2, files.count(version["file"]) - 1)):
                path.touch()
                assert source.read(position, 10_000).updates == []
        source.close()


def mangled(text: str) -> str:
    """A text that was written as UTF-8 and read as Windows' Latin."""
    return text.encode().decode("cp1252", "replace")


def test_mangled_and_doubled_items_of_real_feeds_are_reported(
    conformance: Callable[[str], Path], tmp_path: Path
) -> None:
    """Texts whose encoding is mangled, then mended, change their items; no shared guid hides one.

    The last version of each feed; all 228 versions with AXLOG_ALL_POLLS=1.
    """
    root = conformance("stream-feeds/olshansk")
    lines = (root / "expected_item_deltas.jsonl").read_text(encoding="utf-8").splitlines()
    files = {said["feed"]: said["file"] for said in map(json.loads, lines)}
    if os.environ.get("AXLOG_ALL_POLLS"):
        files = {said["file"]: said["file"] for said in map(json.loads, lines)}
    changed = 0
    for file in files.values():
        whole = etree.fromstring(gzip.decompress((root / file).read_bytes()))
        items = list(whole.iter("item"))
        names = [i.findtext("guid") or i.findtext("link") for i in items]
        source = FEED.make(FeedOptions(url="feed.xml", interval=0), origin(tmp_path))
        path = tmp_path / "feed.xml"

        def replaced(tree: etree._Element, to: Path = path) -> None:
            (to.parent / "new.xml").write_bytes(etree.tostring(tree, encoding="utf-8"))
            (to.parent / "new.xml").replace(to)

        replaced(whole)
        first = source.read(None, 10_000)
        assert [name for _, name in told(first)] == names
        wrong = copy.deepcopy(whole)
        wanted = set()
        for item, name in zip(wrong.iter("item"), names, strict=True):
            for part in item.iter("title", "description"):
                if part.text and mangled(part.text) != part.text:
                    part.text = mangled(part.text)
                    wanted.add(name)
        changed += len(wanted)
        position = first.position
        for version in (wrong, whole):
            replaced(version)
            reading = source.read(position, 10_000)
            position = reading.position
            inserted = [name for action, name in told(reading) if action == "insert"]
            assert sorted(inserted) == sorted(map(str, wanted))
            assert len(reading.updates) == 2 * len(inserted)
        for item in items:
            item.addnext(copy.deepcopy(item))
        replaced(whole)
        reading = source.read(position, 10_000)
        assert sorted(told(reading)) == sorted(("insert", name) for name in names)
        assert all('number="2"' in str(update.content) for update in reading.updates)
        source.close()
    assert changed >= 5


def test_items_that_share_a_guid_are_all_emitted_and_logged(
    server: FeedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = feed(server, tmp_path)
    server.content = rss(("1", "one"), ("1", "uno"), ("2", "two"))
    reading = source.read(None, 9)
    assert told(reading) == [("insert", "1"), ("insert", "1"), ("insert", "2")]
    said = [record.axlog_fields for record in caplog.records]  # type: ignore[attr-defined]
    assert said == [{"stream": "news", "count": 1, "ids": "1"}]
    server.content = rss(("1", "one"), ("1", "UNO"), ("2", "two"))
    again = source.read(reading.position, 9)
    assert told(again) == [("delete", digest("1\0002")), ("insert", "1")]
    server.content = rss(("1", "UNO"), ("2", "two"))
    last = source.read(again.position, 9)
    assert told(last) == [
        ("delete", digest("1")), ("delete", digest("1\0002")), ("insert", "1")
    ]  # fmt: skip
    assert len(caplog.records) == 1  # it was said once
    source.close()


def test_differential_items_are_those_of_feedparser() -> None:
    """Where nothing has to be repaired, another reader of feeds finds the same items."""
    for dialect in ("rss", "rdf", "atom"):
        head, tail = HEADS[dialect]
        random = Random(dialect)
        for _ in range(60):
            item = random_item(random)
            content = f"{head}{item.written(dialect)}{tail}".encode()
            (thing,) = read_feed(content, "here")
            (entry,) = feedparser.parse(BytesIO(content), sanitize_html=False).entries
            assert thing.id == str(entry.get("id") or entry.get("link") or entry.get("title") or "")
            found = [(each.tag, each.text) for each in thing.tree]
            for name, text in item.fields():
                if name not in ("category", "published"):
                    assert (name, entry[name]) == (name, text)
            assert found == item.fields()
            assert [tag["term"] for tag in entry.get("tags", ())] == list(
                dict.fromkeys(item.categories)
            )


def test_records_and_rows_that_share_an_id_are_all_emitted(tmp_path: Path) -> None:
    xml = "<all><r><k>a</k></r><r><k>a</k>2</r><r><k>a#2</k></r></all>"
    (tmp_path / "all.xml").write_text(xml)
    source = DOCUMENT.make(DocumentOptions(url="all.xml", by="k", interval=0), origin(tmp_path))
    reading = source.read(None, 9)
    assert told(reading) == [("insert", "a"), ("insert", "a"), ("insert", "a#2")]
    source.close()
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("create table t (k text, v text)")
        connection.executemany("insert into t values (?, ?)", [("a", "1"), ("a", "2")])
    connection.close()
    options = TableOptions(
        database=Secret(f"sqlite:///{tmp_path}/t.db"), table="t", by="k", mode="all", interval=0
    )
    table = TABLE.make(options, origin(tmp_path))
    assert told(table.read(None, 9)) == [("insert", "a"), ("insert", "a")]
    table.close()


# Access logs --------------------------------------------------------------------------------------

LINE = '10.0.0.{n} - - [17/May/2015:10:05:{n:02} +0000] "GET /{n} HTTP/1.1" 200 {n}\n'


def paths(reading: Reading) -> list[str]:
    return [str(etree.fromstring(u.content).findtext("path")) for u in reading.updates]


def test_the_two_formats() -> None:
    common = read_call('::1 - ann b [17/May/2015:10:05:03 +0200] "GET /a b HTTP/1.1" 304 -')
    assert common.name == "in-call"
    assert common.fields["user"] == "ann b"
    assert common.fields["path"] == "/a b"
    assert common.fields["bytes"] == "0"
    assert common.time.isoformat() == "2015-05-17T10:05:03+02:00"
    combined = read_call(
        'h - - [17/May/2015:10:05:03 +0000] "GET http://other:80/a HTTP/1.1" 200 5 "-" "a \\"b\\""'
    )
    assert (combined.name, combined.fields["callee"]) == ("out-call", "other:80")
    assert combined.fields["agent"] == 'a "b"'
    assert combined.fields["referrer"] is None
    tunnel = read_call('h - - [17/May/2015:10:05:03 +0000] "CONNECT other:443 HTTP/1.1" 200 5')
    assert (tunnel.name, tunnel.fields["callee"]) == ("out-call", "other:443")
    garbage = read_call('h - - [17/May/2015:10:05:03 +0000] "\\x16\\x03\\x01" 400 5')
    assert garbage.fields["request"] == "\x16\x03\x01"
    etree.fromstring(garbage.xml())  # what no XML can hold is taken out
    for line in ("", "nothing", LINE.format(n=1)[:40], LINE.format(n=1).replace("May", "Mai")):
        with pytest.raises(ConnectorError, match="AX832"):
            read_call(line)


def test_a_log_is_followed_across_rotation(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    source = AccessLog(AccessLogOptions(path="access.log"), origin(tmp_path))
    with pytest.raises(ConnectorError, match="AX858"):
        source.read(None, 10)

    def append(path: Path, *numbers: int) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(LINE.format(n=n) for n in numbers))

    append(log, 1, 2)
    first = source.read(None, 10)
    assert paths(first) == ["/1", "/2"]
    append(log, 3)
    log.rename(tmp_path / "access.log.1")
    append(tmp_path / "access.log.1", 4)  # the server has not reopened its log yet
    assert paths(source.read(first.position, 10)) == ["/3", "/4"]
    append(log, 5)
    with log.open("a", encoding="utf-8") as file:
        file.write(LINE.format(n=6)[:30])  # being written
    second = source.read(first.position, 10)
    assert paths(second) == ["/3", "/4", "/5"]
    with log.open("a", encoding="utf-8") as file:
        file.write(LINE.format(n=6)[30:])
    third = source.read(second.position, 10)
    assert paths(third) == ["/6"]
    (tmp_path / "access.log.1").rename(tmp_path / "access.log.2")
    log.rename(tmp_path / "access.log.1")
    append(log, 7, 8)
    assert paths(source.read(third.position, 1)) == ["/7"]
    assert paths(source.read(second.position, 10)) == ["/6", "/7", "/8"]  # the same span again
    last = source.read(third.position, 10)
    log.write_text(LINE.format(n=9), encoding="utf-8")  # copied away and cut
    assert paths(source.read(last.position, 10)) == ["/9"]
    bad = tmp_path / "access.log"
    append(bad, 10)
    with bad.open("a", encoding="utf-8") as file:
        file.write("what is this\n")
    reading = source.read(source.read(last.position, 1).position, 10)
    assert paths(reading) == ["/10"]
    assert reading.refused[0].origin == "access.log:3"


def test_a_log_that_vanished_unread_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("".join(LINE.format(n=n) for n in (1, 2)), encoding="utf-8")
    source = AccessLog(AccessLogOptions(path="access.log"), origin(tmp_path))
    position = source.read(None, 1).position
    other = tmp_path / "new"
    other.write_text(LINE.format(n=3), encoding="utf-8")
    other.rename(log)
    reading = source.read(position, 10)
    assert paths(reading) == ["/3"]
    assert "AX858" in reading.refused[0].error
    assert source.read(reading.position, 10).refused == []


def test_the_end_as_start_and_one_kind_of_calls(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(LINE.format(n=1), encoding="utf-8")
    options = AccessLogOptions(path="access.log", start="end", calls="out")
    source = AccessLog(options, origin(tmp_path))
    first = source.read(None, 10)
    assert first.updates == []
    out = LINE.replace("GET /", "GET http://other/")
    with log.open("a", encoding="utf-8") as file:
        file.write(LINE.format(n=2) + out.format(n=3))
    assert paths(source.read(first.position, 10)) == ["http://other/3"]


def test_all_lines_of_a_log_that_comes_later_are_new(tmp_path: Path) -> None:
    source = AccessLog(AccessLogOptions(path="access.log", start="end"), origin(tmp_path))
    with pytest.raises(ConnectorError, match="AX858"):
        source.read(None, 10)
    (tmp_path / "access.log").write_text(LINE.format(n=1), encoding="utf-8")
    assert paths(source.read(None, 10)) == ["/1"]


def test_conformance_log_line_by_line(conformance: Callable[[str], Path], tmp_path: Path) -> None:
    """Every line is a call; fields compared with a reading by splitting, not by our expression."""
    content = (conformance("stream-logs") / "apache_access_first2k.log").read_bytes()
    lines = content.decode().splitlines()
    (tmp_path / "access.log").write_bytes(content)
    source = AccessLog(AccessLogOptions(path="access.log"), origin(tmp_path))
    position: Any = None
    updates: list[StreamUpdate] = []
    while len(updates) < len(lines):
        reading = source.read(position, 333)
        assert reading.updates
        assert reading.refused == []
        updates += reading.updates
        position = reading.position
    assert source.read(position, 10).updates == []
    latest = 0.0
    for line, update in zip(lines, updates, strict=True):
        tree = etree.fromstring(update.content)
        quoted = line.split('"')
        assert tree.tag == "in-call"
        assert tree.findtext("caller") == line.split(" ")[0]
        said = (tree.findtext("method"), tree.findtext("path"), tree.findtext("protocol"))
        assert " ".join(map(str, said)) == quoted[1]
        assert f" {tree.findtext('status')} " in quoted[2]
        assert (tree.findtext("agent") or "-") == quoted[5]
        assert float(str(update.at)) >= latest
        latest = float(str(update.at))


# Folders, documents, tables -----------------------------------------------------------------------


def test_a_folder_of_files_that_come_change_and_go(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    source = FOLDER.make(FolderOptions(path="in", interval=0), origin(tmp_path))
    (folder / "a.xml").write_text("<a/>")
    (folder / "sub" / "b.xml").write_text("<b/>")
    (folder / "bad.xml").write_text("<b>")
    (folder / ".hidden.xml").write_text("<h/>")
    first = source.read(None, 9)
    assert told(first) == [("insert", "a.xml"), ("insert", "sub/b.xml")]
    assert [each.origin for each in first.refused] == ["bad.xml"]
    again = source.read(first.position, 9)
    assert (again.updates, again.refused) == ([], [])
    (folder / "a.xml").write_text("<a>changed</a>")
    (folder / "sub" / "b.xml").unlink()
    (folder / "bad.xml").write_text("<b></b>")
    second = source.read(first.position, 9)
    deleted = {("delete", digest("a.xml")), ("delete", digest("sub/b.xml"))}
    assert set(told(second)) == {*deleted, ("insert", "a.xml"), ("insert", "bad.xml")}
    (folder / "a.xml").write_text("<a>broken")
    third = source.read(second.position, 9)
    assert (third.updates, len(third.refused)) == ([], 1)  # it stays as it was
    source.close()


def test_a_document_by_records(tmp_path: Path) -> None:
    path = tmp_path / "papers.xml"
    options = DocumentOptions(url="papers.xml", record="paper", by="@id", interval=0)
    source = DOCUMENT.make(options, origin(tmp_path))
    path.write_text('<all><v><paper id="1">a</paper><paper id="2">b</paper></v></all>')
    first = source.read(None, 9)
    assert told(first) == [("insert", "1"), ("insert", "2")]
    path.write_text('<all><v><paper id="2">B</paper></v><paper id="3">c</paper></all>')
    second = source.read(first.position, 9)
    gone = [("delete", digest("1")), ("delete", digest("2"))]
    assert told(second) == [*gone, ("insert", "2"), ("insert", "3")]
    source.close()


def test_a_document_by_content_counts_equal_records(tmp_path: Path) -> None:
    path = tmp_path / "d.xml"
    source = DOCUMENT.make(DocumentOptions(url="d.xml", interval=0), origin(tmp_path))
    path.write_text("<r><a/><a/><b/></r>")
    position = source.read(None, 9).position
    path.write_text("<r><a/><!-- no record --><b/><c/></r>")
    reading = source.read(position, 9)
    assert [update.action for update in reading.updates] == ["delete", "insert"]
    source.close()


def test_a_document_by_patches(tmp_path: Path) -> None:
    path = tmp_path / "d.xml"
    source = DOCUMENT.make(
        DocumentOptions.model_validate({"url": "d.xml", "as": "patch", "interval": 0}),
        origin(tmp_path),
    )
    path.write_text("<r><a/></r>")
    first = source.read(None, 9)
    assert '<version number="1"><r><a/></r></version>' in str(first.updates[0].content)
    path.write_text("<r><a/><b/></r>")
    second = source.read(first.position, 9)
    tree = etree.fromstring(second.updates[0].content)
    assert (tree.get("number"), tree[0].tag, len(tree[0])) == ("2", "diff", 1)
    source.close()


def test_the_versions_of_a_real_document(
    conformance: Callable[[str], Path], tmp_path: Path
) -> None:
    """What a document has after each version is what the version has."""
    archive = conformance("stream-large-doc/acl-anthology") / "P18.versions.tar.xz"
    with tarfile.open(archive) as packed:
        named = sorted(packed.getnames())[:3]
        versions = [packed.extractfile(name).read() for name in named]  # type: ignore[union-attr]
    path = tmp_path / "d.xml"
    source = DOCUMENT.make(DocumentOptions(url="d.xml", interval=0), origin(tmp_path, "d"))
    doc = Document('<all><ax:call xmlns:ax="urn:axlog" stream="d" deletes="yes"/></all>')
    position: Any = None
    for content in versions:
        path.write_bytes(content)
        reading = source.read(position, 100_000)
        position = reading.position
        with doc.batch():
            for update in reading.updates:
                doc.take(update)
        mine = [_canonical(record[0]) for record in etree.fromstring(doc.xml()).iter("record")]
        wanted = [_canonical(each) for each in etree.fromstring(content) if _is_element(each)]
        assert sorted(mine) == sorted(wanted)
    source.close()


def _is_element(node: Any) -> bool:
    return isinstance(node.tag, str)


def _canonical(tree: Any) -> bytes:
    parser = etree.XMLParser(remove_blank_text=True)
    copy = etree.fromstring(etree.tostring(tree, with_tail=False), parser)
    return etree.tostring(copy, method="c14n")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    base = sqlite3.connect(tmp_path / "shop.db")
    base.execute("create table orders (number integer primary key, status text, at text)")
    yield base
    base.close()


def table(tmp_path: Path, **options: Any) -> Source:
    address = Secret(f"sqlite:///{tmp_path / 'shop.db'}")
    given = {"database": address, "table": "orders", "by": "number", "interval": 0, **options}
    return TABLE.make(TableOptions(**given), origin(tmp_path))


def test_a_table_polled_by_key(database: sqlite3.Connection, tmp_path: Path) -> None:
    rows = [(n, f"s{n}", f"2026-01-0{n}") for n in range(1, 5)]
    database.executemany("insert into orders values (?, ?, ?)", rows[:3])
    database.commit()
    source = table(tmp_path, time="at", columns=["number", "status"])
    first = source.read(None, 2)
    assert (told(first), first.position, first.more) == (
        [("insert", "1"), ("insert", "2")],
        2,
        True,
    )
    assert first.updates[0].at == "2026-01-01"
    assert "<at>" not in str(first.updates[0].content)
    second = source.read(2, 2)
    assert told(second) == [("insert", "3")]
    assert source.read(second.position, 2).updates == []
    database.execute("insert into orders values (?, ?, ?)", rows[3])
    database.commit()
    assert told(source.read(second.position, 2)) == [("insert", "4")]
    source.close()


def test_a_table_compared_as_a_whole(database: sqlite3.Connection, tmp_path: Path) -> None:
    database.executemany("insert into orders values (?, 'new', '')", [(1,), (2,)])
    database.commit()
    source = table(tmp_path, mode="all")
    position = source.read(None, 9).position
    database.execute("update orders set status = 'sent' where number = 2")
    database.execute("delete from orders where number = 1")
    database.commit()
    gone = [("delete", digest("1")), ("delete", digest("2"))]
    assert told(source.read(position, 9)) == [*gone, ("insert", "2")]
    source.close()


def test_a_table_that_is_not_there(database: sqlite3.Connection, tmp_path: Path) -> None:
    for options in ({"table": "none"}, {"by": "none"}, {"columns": ["none"]}):
        source = table(tmp_path, **options)
        with pytest.raises(AxlogError):
            source.read(None, 1)
        source.close()


def test_every_alerter_is_a_kind_of_source() -> None:
    for name in ("access-log", "document", "feed", "folder", "table"):
        assert kinds.source_kind(name).name == name
