"""Lines that are read together into columns, as the parser of single lines reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from axlog.connect.kinds import Origin
from axlog.connect.protocol import Refusal
from axlog.connect.sources import insert_columns as columns
from axlog.connect.sources import jsonl
from axlog.connect.sources.insert_columns import InsertColumns, insert_columns
from axlog.connect.sources.jsonl import JsonLinesOptions, JsonLinesSource
from axlog.document.clock_bounds import Horizon
from axlog.document.times import microseconds
from axlog.runtime.message_rows import rows_in_pieces, rows_of

PLAIN = b'{"stream": "a", "insert": "<a/>", "at": 1.5}'
READ = (  # by their columns
    PLAIN,
    b'{"at":2.675,"insert":"<?xml version=\'1.0\'?><a/>","stream":"a"}',
    b'{"stream": "a", "insert": "<a/>", "at": 3}',
    b'{"stream": "a", "insert": "<a/>", "at": -0.0}',
    b'{"stream": "a", "insert": "<a/>", "at": 1E3}',
    b'{"str\\u0065am": "a", "insert": "\\/\\b\\u00e9\\"", "at": 1}',
    b'{"stream": "a", "insert": "}\\n{", "at": 1}',
    b'{"stream": "a", "insert": "\xc3\xa9 null", "at": 1e-7}',
    b'{"stream": "a", "insert": "", "at": 1700000000.123456}',
    b'{"stream": "a", "insert": "<a/>", "at": 0.0000005}',
    b'{"stream": "a", "insert": "<a/>", "at": 1700000000.1234567}',
)
LEFT = (  # to the other parser, which takes some and refuses some
    b'{"stream": "a", "stream": "b", "insert": "<a/>", "at": 1.5}',
    b'{"stream": "a", "insert": "<a/>", "at": 1e400}',
    b'{"stream": "a", "insert": "<a/>", "at": NaN}',
    b'{"stream": "a", "insert": "<a/>", "at": 12345678901234567890}',
    b'{"stream": "a", "insert": "<a/>", "at": 9007199254740993}',
    b'{"stream": "a", "insert": "<a\\udc00/>", "at": 1}',
    b'{"stream": "a", "insert": "<a\\ud83d\\ude00/>", "at": 1}',
    b'{"stream": "a", "insert": "<a\t/>", "at": 1}',
    b'{"stream": "a", "insert": "<a\x01/>", "at": 1}',
    b'{"stream": "a", "insert": "<a/>", "at": 01}',
    b'{"stream": "a", "insert": "<a/>", "at": 1.}',
    b'{"stream": "a", "insert": "<a/>", "at": +5}',
    b'{"stream": "a", "insert": "<a/>", "at": 1, }',
    b'{"stream": "a", "insert": "<a/>", "at": "1"}',
    b'{"stream": "a", "insert": "<a/>", "at": "2024-05-01"}',
    b'{"stream": "a", "insert": "<a/>", "at": true}',
    b'{"stream": "a", "insert": "<a/>", "at": null}',
    b'{"stream": "a", "insert": "<a/>"}',
    b'{"stream": null, "insert": "<a/>", "at": 1}',
    b'{"stream": "b", "insert": {"x": 1}, "at": 1}',
    b'{"stream": "a", "insert": 5, "at": 1}',
    b'{"stream": "a", "insert": "<a/>", "at": 1}{"stream": "a", "insert": "<b/>", "at": 1}',
    b'{"stream": "a",\n"insert": "<a/>", "at": 1}',
    b"{}",
    b"",
    b'{"stream": "a", "end": true}',
    b'{"stream": "a", "insert": "<a/>", "at": 1, "x": 2}',
    b'{"stream": "a", "insert": "\xff", "at": 1}',
    b'{"stream": "a", "insert": "\xed\xa0\x80", "at": 1}',
    b'{"stream": "a", "insert": "<a/>", "at": 1}\r',
    b'{"stream": "a", "insert": "<a/>", "at": 1}\0}',
    b'\xef\xbb\xbf{"stream": "a", "insert": "<a/>", "at": 1}',
    b'{/*x*/"stream": "a", "insert": "<a/>", "at": 1}',
)


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "FEWEST", 1)


@pytest.mark.parametrize("stream", [None, "a"])
@pytest.mark.parametrize("line", READ + LEFT)
def test_columns_have_the_updates_of_the_parser_of_lines(line: bytes, stream: str | None) -> None:
    for lines in ([line], [PLAIN, line], [line, PLAIN]):
        found = insert_columns(b"".join(each + b"\n" for each in lines), stream, "f", 7)
        assert found is None or line in READ or stream == "a"
        if found is None:
            assert line not in READ
            continue
        wanted, offset = [], 7
        for each in lines:
            wanted.append(jsonl.read_update(each, stream, f"f@{offset}"))
            offset += len(each) + 1
        assert list(found.updates()) == wanted
        assert list(found.times) == [microseconds(update.at or 0) for update in wanted]


def test_lines_without_a_stream_are_of_the_stream_of_the_source() -> None:
    lines = b'{"insert": "<a/>", "at": 1}\n{"stream": "a", "insert": "<b/>", "at": 2}\n'
    found = insert_columns(lines, "a", "f", 0)
    assert found is not None
    assert list(found.streams) == ["a", "a"]
    assert insert_columns(lines, None, "f", 0) is None
    assert insert_columns(lines, "b", "f", 0) is None


@pytest.mark.parametrize(
    "horizon", [None, Horizon({"a": None}), Horizon({"a": 5}), Horizon({}, True)]
)
def test_pieces_are_the_rows_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, horizon: Horizon | None
) -> None:
    """In pieces of a line or more, as columns or not, rows and their numbers are the same."""
    lines = [line for line in READ + LEFT if b"\n" not in line] * 2
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    size = path.stat().st_size
    horizon = horizon and Horizon(horizon.declared, horizon.is_dated, now=lambda: 2.0)
    seen: set[type] = set()
    found = []
    for piece, fewest in ((60, 1), (200, 1), (1 << 18, 1), (60, 1 << 30)):
        monkeypatch.setattr(jsonl, "_PIECE", piece)
        monkeypatch.setattr(columns, "FEWEST", fewest)
        source = JsonLinesSource(JsonLinesOptions(path=str(path)), Origin())
        refused: list[Refusal] = []
        seen |= {type(each) for each in source.pieces([0, size], refused)}
        whole = list(rows_of(source.fetch([0, size]), 3, 100, horizon))
        assert [
            row for rows in rows_in_pieces(source, [0, size], 3, 100, horizon) for row in rows
        ] == whole
        found.append(whole)
    assert all(each == found[-1] for each in found)
    assert seen == {list, InsertColumns}
