"""The rows that views with an order, `latest`, `min` and `max` keep of dropped messages."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

import axlog
from axlog import AxlogError, Document, Options
from axlog.live.internals import maintained_view
from axlog.views.counting.stepped import SteppedCounting

VIEWS = {
    "top": "match //o[c/$c]/t/$t return $c, $t order by $t descending limit 3",
    "latest": "match //o[c/$c][t/$t]/at/$a return $c, latest($t by $a) as last, max($t) as most",
    "busy": "match //o[c/$c]/t/$t return $c, count() as n order by n descending limit 2",
}
NEEDED = Options(keep="needed")


def message(random: Random, number: int) -> str:
    return f"<o><c>c{random.randrange(4)}</c><t>{random.randrange(50)}</t><at>{number}</at></o>"


def kept(doc: Document, view: str) -> int:
    """The rows that the operators of a view keep."""
    maintainer = maintained_view(doc.view(view)).maintainer
    assert isinstance(maintainer, SteppedCounting)
    return sum(each.size().rows for each in maintainer.chain.operators if each.has_state)


def shown(doc: Document) -> dict[str, list[Any]]:
    return {name: doc.view(name).rows() for name in VIEWS}


def fed(doc: Document, first: int, count: int) -> Document:
    random = Random(first)
    for number in range(first, first + count):
        doc.feed("s", message(random, number))
    return doc


@pytest.mark.parametrize("options", [NEEDED, Options(validate="wanted", keep="needed")])
def test_only_rows_that_can_be_shown_are_kept(options: Options) -> None:
    doc = fed(Document(streams=["s"], views=VIEWS, options=options), 0, 90)
    assert shown(doc) == shown(fed(Document(streams=["s"], views=VIEWS), 0, 90))
    # Four groups with their numbers of rows, and a best value for each aggregate.
    assert (kept(doc, "top"), kept(doc, "latest")) == (3, 12)
    assert kept(doc, "busy") == 4 + 4  # counts may pass each other: all groups are ordered


def test_a_statement_before_the_first_message_finds_all_rows() -> None:
    text = "<r>{}<ax:call xmlns:ax='urn:axlog' stream='s'/></r>"
    first = "".join(message(Random(number), number) for number in range(9))
    docs = [axlog.parse(text.format(first), options=options) for options in (NEEDED, Options())]
    for doc in docs:
        for name, query in VIEWS.items():
            doc.watch(query, name)
        doc.feed("s", "<other/><other/>")  # becomes nodes
        doc.update("delete nodes (//o[t > 20], //o[1])")
        fed(doc, 100, 30)
        assert shown(doc) == shown(docs[0])
    assert kept(docs[0], "top") == 3
    with pytest.raises(AxlogError, match="AX307"):
        docs[0].update("delete nodes //o")


@pytest.mark.parametrize("declared", ["deletes='yes'", "replace='c'"])
def test_all_rows_are_kept_where_streams_remove_rows(declared: str) -> None:
    text = f"<r><ax:call xmlns:ax='urn:axlog' stream='s' {declared}/></r>"
    docs = [axlog.parse(text, options=options) for options in (NEEDED, Options())]
    for doc in docs:
        for name, query in VIEWS.items():
            doc.watch(query, name)
        fed(doc, 0, 40)
    assert shown(docs[0]) == shown(docs[1])
    assert kept(docs[0], "top") == kept(docs[1], "top") == (4 if "replace" in declared else 35)


def test_a_view_that_rejects_values_keeps_all_rows_and_the_others_need_not() -> None:
    doc = Document(streams=["s"], options=NEEDED)
    for name, query in VIEWS.items():
        doc.watch(query, name)
    strict = "match //o/t/$t return sum($t) as total, max($t) as most"
    doc.watch(strict, "strict", on_value_error="reject")
    fed(doc, 0, 50)
    before = shown(doc)
    for value in ("many", "", "1e99999"):
        with pytest.raises(AxlogError):
            doc.feed("s", f"<o><c>c1</c><t>{value or '-'}</t><at>99</at></o>")
    assert shown(doc) == before
    assert (kept(doc, "top"), kept(doc, "latest")) == (3, 12)
    assert kept(doc, "strict") > 10


def test_a_store_goes_on_with_the_kept_rows(tmp_path: Path) -> None:
    whole = Document(streams=["s"], views=VIEWS)
    text = "<r><ax:call xmlns:ax='urn:axlog' stream='s'/></r>"
    for first in (0, 20, 40):
        with axlog.open(tmp_path, text, views=VIEWS, options=NEEDED, sync="off") as doc:
            fed(doc, first, 20)
            if first == 20:
                doc.snapshot()
            assert shown(doc) == shown(fed(whole, first, 20))
            assert kept(doc, "top") == 3


def test_the_next_rows_are_found_when_the_first_ones_go() -> None:
    doc = fed(Document(streams=["s"], views=VIEWS), 0, 60)
    for _ in range(5):
        doc.update(
            "delete nodes (for $o in //o order by number($o/t) descending return $o)"
            "[position() < 9]"
        )
        assert doc.view("top").rows() == axlog.parse(doc.xml()).watch(VIEWS["top"]).rows()
    doc.feed("s", "<o><c>c9</c><t>1000</t><at>1</at></o>")
    assert doc.view("top").rows()[0].to_dict() == {"c": "c9", "t": "1000"}
    assert doc.view("latest").rows()[-1]["most"] == Decimal(1000)
