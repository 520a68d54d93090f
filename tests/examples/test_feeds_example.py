"""The feeds example: two sites behind a real server change, and the views follow them."""

import os
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree, ignore_patterns
from threading import Thread
from typing import Any

import pyarrow.parquet as parquet
import pytest
from lxml import etree

from axlog.connect.sinks.jsonl import read_log
from axlog.pipeline.loader import check, load
from axlog.runtime.embedded import run

ATOM = "{http://www.w3.org/2005/Atom}"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def example(repository: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the example, its addresses those of a server of its sites."""
    source = repository / "examples" / "feeds"
    copied = copytree(source, tmp_path / "feeds", ignore=ignore_patterns("out"))
    handler = partial(Quiet, directory=str(copied / "sites"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    path = copied / "feeds.yaml"
    text = path.read_text(encoding="utf-8")
    assert text.count("127.0.0.1:8801/") == 2
    path.write_text(text.replace(":8801/", f":{server.server_port}/"), encoding="utf-8")
    yield path
    server.shutdown()
    server.server_close()
    thread.join()


def journal_items(path: Path) -> list[tuple[str, str, set[str]]]:
    """Title, link and categories of an RSS feed, read without axlog."""
    feed: Any = etree.parse(path)
    return [
        (item.findtext("title"), item.findtext("link"), {c.text for c in item.iter("category")})
        for item in feed.iter("item")
    ]


def planet_items(path: Path) -> list[tuple[str, str, set[str]]]:
    feed: Any = etree.parse(path)
    return [
        (
            entry.findtext(f"{ATOM}title"),
            entry.find(f"{ATOM}link").get("href"),
            {c.get("term") for c in entry.iter(f"{ATOM}category")},
        )
        for entry in feed.iter(f"{ATOM}entry")
    ]


def assert_views_are_what_the_sites_say(example: Path) -> tuple[int, int]:
    run(load(example), once=True)  # each time from its checkpoint, as after a restart
    sites = example.parent / "sites"
    items: dict[str, Any] = {
        "journal": journal_items(sites / "journal.xml"),
        "planet": planet_items(sites / "planet.xml"),
    }
    expected = {
        (site, title, link)
        for site, found in items.items()
        for title, link, topics in found
        if "xml" in topics
    }
    topics = [set[str]().union(*(t for _, _, t in found)) for found in items.values()]

    def rows(view: str) -> list[tuple[str, ...]]:
        found = parquet.read_table(example.parent / "out" / f"{view}.parquet").to_pylist()
        return sorted(tuple(row.values()) for row in found)

    assert rows("on_topic") == sorted(expected)
    assert rows("shared_topics") == sorted((topic,) for topic in topics[0] & topics[1])
    return len(expected), len(topics[0] & topics[1])


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert before in text
    write(path, text.replace(before, after).encode())


def write(path: Path, content: bytes) -> None:
    """As if minutes had passed: the server tells versions apart by seconds."""
    later = path.stat().st_mtime + 60
    path.write_bytes(content)
    os.utime(path, (later, later))


def test_views_follow_the_sites(example: Path) -> None:
    assert check(example).problems == []
    sites = example.parent / "sites"
    assert assert_views_are_what_the_sites_say(example) == (2, 2)
    # An item is filed under the topic, another one loses it, a third changes its title.
    edit(sites / "journal.xml", "<category>travel</category>", "<category>xml</category>")
    edit(sites / "planet.xml", 'term="xml"', 'term="travel"')
    edit(sites / "journal.xml", "Trees that change", "Trees that live")
    assert assert_views_are_what_the_sites_say(example) == (2, 1)
    # An item is new, the others are gone.
    entry = (
        "<entry><id>urn:c</id><title>New</title><link href='https://planet.example/c'/>"
        "<category term='xml'/><category term='databases'/></entry>"
    )
    edit(sites / "planet.xml", "</feed>", f"{entry}</feed>")
    items: Any = etree.parse(sites / "journal.xml")
    for item in list(items.iter("item")):
        item.getparent().remove(item)
    write(sites / "journal.xml", etree.tostring(items))
    assert assert_views_are_what_the_sites_say(example) == (1, 0)


def test_a_site_that_breaks_stays_as_it_was(example: Path) -> None:
    assert_views_are_what_the_sites_say(example)
    table = example.parent / "out" / "on_topic.parquet"
    before = parquet.read_table(table).to_pylist()
    edit(example.parent / "sites" / "planet.xml", "</feed>", "")
    run(load(example), once=True)
    assert parquet.read_table(table).to_pylist() == before
    assert len(read_log(example.parent / "out" / "dead-letters.jsonl")) == 1
