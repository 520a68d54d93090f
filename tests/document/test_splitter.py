"""A file cut at its records has the nodes of the whole file, ids included; rows read back too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axlog.document import splitter
from axlog.document.loader import load
from axlog.document.node_table import read_rows, rows_of
from axlog.document.splitter import can_split, record_spans, split
from axlog.errors import MalformedError
from tests.strategies.documents import documents

AWKWARD = [
    "<r><i>1</i><i>2</i></r>",
    "<r> <i/> text <i a='>'/> <i a='/>'>x</i>\n</r>",
    "<r><!-- <i> --><i><!-- </i> --></i><![CDATA[<i>]]><i/></r>",
    "<r><?p <i> ?><g><i><i>inner</i></i><i/></g><g><i/></g></r>",
    '<r xmlns="u" xmlns:p="v"><p:g xml:space="preserve"><i p:a="1"> <b/> </i> <i> </i></p:g></r>',
    '<i xmlns:ax="urn:axlog"><b/><ax:call stream="s"/></i>',
    '<r xmlns:ax="urn:axlog"><i/><ax:call stream="s"/><i><ax:call stream="t"/></i></r>',
    "<!-- before --><r><items/><i_/><i\n>x</i ></r><!-- after -->",
    "<r>no records</r>",
    "<r>_ __<i>___</i></r>",
]


def pieces_of(data: bytes, *records: str) -> list[tuple[object, ...]]:
    cut = split(data, records)
    rows = list(cut.spine)
    for piece in cut.pieces:
        rows += piece.rows(data[piece.start : piece.end])
    return sorted(rows)


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_files(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sorted(rows_of(load(text)))
    assert pieces_of(text.encode(), "i") == whole
    monkeypatch.setattr(splitter, "PIECE", 1)  # every record alone
    assert pieces_of(text.encode(), "i") == whole


@given(documents(), st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
def test_pieces_are_the_whole(text: str, records: list[str]) -> None:
    assert pieces_of(text.encode(), *records) == sorted(rows_of(load(text)))


@given(documents())
def test_rows_read_back(text: str) -> None:
    tree = load(text)
    again, keys = read_rows(rows_of(tree))
    assert list(rows_of(again)) == list(rows_of(tree))  # prefixes aside
    assert all(again.id(node).key == key for node, key in keys.items())


def test_latin_1_and_wide_characters() -> None:
    head = '<?xml version="1.0" encoding="iso-8859-1"?>'
    data = f"{head}<r><i>é</i><g>é<i/></g></r>".encode("latin-1")
    assert can_split(data)
    assert pieces_of(data, "i") == sorted(rows_of(load(data)))
    assert not can_split("<r><i/></r>".encode("utf-16"))
    assert not can_split(b"<!DOCTYPE r><r><i/></r>")


@pytest.mark.parametrize("text", ["<r><i></r>", "<r><i", "<r><i><i></i></r>", "<r></i><i/></r>"])
def test_what_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(MalformedError):
        pieces_of(text.encode(), "i")


def test_spans_are_outermost() -> None:
    data = b"<r><i><i/></i><ii/><i/></r>"
    assert [data[a:b] for a, b in record_spans(data, ["i"])] == [b"<i><i/></i>", b"<i/>"]
