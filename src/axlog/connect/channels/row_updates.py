"""The changes of a view as updates of a stream: how a view feeds a call.

A row becomes a tree: an element with the row's key, and one child element per column.

    <row key="8c1f..."><x>17</x></row>

The key is a digest of the row's key, so that a deleted row is deleted exactly, whatever its
values: `match /row[@key = "8c1f..."]`. An updated row is deleted and inserted. A `never` change
produces no update: the row never existed. Contents (`cont`) become trees again.

The mapping follows paper 2, remark 4.
"""

from __future__ import annotations

import json
from hashlib import blake2b

from lxml import etree

from axlog.document.loader import read_forest
from axlog.document.stream_update import StreamUpdate
from axlog.errors import InputError
from axlog.views.change import Change, Row

ROW = "row"
KEY = "key"


def key_of(row: Row) -> str:
    """Return the digest of a row's key, the same on any machine."""
    if row.key_ is None:  # all values, as in journals of 0.1
        written = json.dumps(row.to_dict(), ensure_ascii=False, sort_keys=True)
    else:
        written = row.key_text
    return blake2b(written.encode(), digest_size=16).hexdigest()


def row_xml(row: Row, *, is_keyed: bool = True) -> str:
    """Return a row as a tree, without a key if nothing is ever deleted."""
    top = etree.Element(ROW, {KEY: key_of(row)} if is_keyed else {})
    for column, value in row.to_dict().items():
        cell = etree.SubElement(top, cell_name(column))
        if column.endswith(".cont") and isinstance(value, str):
            _put_content(cell, value)
        else:
            cell.text = value if isinstance(value, str) else json.dumps(value)
    return etree.tostring(top, encoding="unicode")


def _put_content(cell: etree._Element, content: str) -> None:
    try:
        for tree in read_forest(content):
            cell.append(tree)
    except InputError:  # the content of a text node is not a tree
        cell.text = content


def cell_name(column: str) -> str:
    """Return the name of a column's element; invalid characters become `_`."""
    kept = "".join(c if c.isalnum() or c in "._-" else "_" for c in column)
    return kept if kept[:1].isalpha() or kept[:1] == "_" else f"_{kept}"


def updates_of(change: Change, stream: str, *, is_keyed: bool = True) -> list[StreamUpdate]:
    """Return the updates that a change of a view makes to the stream it feeds.

    In a cycle rows have no keys, because a key is a value too and would make every row new.
    """
    at = seconds(change.microseconds) if change.microseconds else None
    found = []
    lost = change.before if change.op == "update" else change.row if change.op == "delete" else None
    if lost is not None:
        pattern = f'match /{ROW}[@key = "{key_of(lost)}"]'
        found.append(StreamUpdate(stream, "delete", pattern, at))
    if change.op in ("insert", "update"):
        found.append(StreamUpdate(stream, "insert", row_xml(change.row, is_keyed=is_keyed), at))
    return found


def seconds(time: int) -> int | str:
    """Return microseconds as seconds, exactly; JSON numbers would round some of them.

    >>> seconds(12_000_000), seconds(12_500_001)
    (12, '12.500001')
    """
    whole, rest = divmod(time, 1_000_000)
    if not rest:
        return whole
    sign, whole, rest = ("-", *divmod(-time, 1_000_000)) if time < 0 else ("", whole, rest)
    return f"{sign}{whole}.{rest:06d}"
