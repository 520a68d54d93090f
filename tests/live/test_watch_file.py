"""A file as a living document: the changes of a view follow the file."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from axlog.errors import InputError
from axlog.live.file_watch import watch_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "orders.xml"
    path.write_text("<orders><order><oid>1</oid></order></orders>", encoding="utf-8")
    return path


def rewrite(path: Path, xml: str, seconds: int) -> None:
    """Another version, with a time of its own: clocks of file systems are coarse."""
    path.write_text(xml, encoding="utf-8")
    os.utime(path, (seconds, seconds))


QUERY = "match //order/oid/$x return $x"


def test_changes_follow_the_file(file: Path) -> None:
    watch = watch_file(file, QUERY)
    assert [row["x"] for row in watch.view.rows()] == ["1"]
    assert watch.poll() == []
    rewrite(file, "<orders><order><oid>2</oid></order><order><oid>1</oid></order></orders>", 100)
    assert [(c.op, c.row["x"]) for c in watch.poll()] == [("insert", "2")]
    assert watch.poll() == []
    assert watch.document.clock == 100
    rewrite(file, "<orders/>", 50)  # an older file put back: time does not go back
    assert sorted((c.op, c.row["x"]) for c in watch.poll()) == [("delete", "1"), ("delete", "2")]
    assert watch.document.xml() == "<orders/>"


def test_a_file_that_was_only_touched_brings_nothing(file: Path) -> None:
    watch = watch_file(file, QUERY)
    os.utime(file, (5, 5))
    assert watch.poll() == []
    assert watch.document.clock == 0


def test_a_half_written_or_missing_file_is_waited_for(file: Path) -> None:
    watch = watch_file(file, QUERY)
    rewrite(file, "<orders><order>", 10)
    assert watch.poll() == []
    assert watch.error is not None
    assert watch.error.code == "AX101"
    file.unlink()
    assert watch.poll() == []
    assert watch.error.code == "AX102"
    assert [row["x"] for row in watch.view.rows()] == ["1"]
    rewrite(file, "<orders/>", 20)
    assert [c.op for c in watch.poll()] == ["delete"]
    assert watch.error is None


def test_iterating_ends_when_stopped(file: Path) -> None:
    with watch_file(file, QUERY, interval=0.01) as watch:
        found: list[str] = []

        def read() -> None:
            for change in watch:
                found.append(str(change.row["x"]))
                watch.stop()

        reader = Thread(target=read)
        reader.start()
        rewrite(file, "<orders><order><oid>7</oid></order></orders>", 30)
        reader.join(timeout=60)
        assert not reader.is_alive()
    assert "7" in found


def test_a_file_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        watch_file(tmp_path / "none.xml", QUERY)
    assert caught.value.code == "AX102"
