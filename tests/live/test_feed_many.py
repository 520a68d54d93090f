"""`feed_many`, and the generated function of a stream against the long path."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from lxml import etree

import axlog
from axlog import Document, Options
from axlog.document.messages import AnyMessage
from axlog.errors import AxlogError, StreamError
from axlog.live.internals import maintained, streams_of
from axlog.samples import orders
from lab.benchmarks.messages import plain

VIEW = {"late": orders.LATE}
SOURCE = '<r xmlns:ax="urn:axlog"><ax:call stream="s"/></r>'
SENT = plain(orders.messages(300))


def changes(found: list[axlog.Change]) -> list[tuple[object, ...]]:
    return [(one.op, one.row.to_dict(), one.row.count, one.time, one.cause) for one in found]


@pytest.mark.parametrize("keep", ["needed", "all"])
def test_messages_together_have_the_effect_of_each_alone(keep: str) -> None:
    options = Options(keep=keep)  # type: ignore[arg-type]
    one = Document(orders.DOCUMENT, views=VIEW, options=options)
    many = Document(orders.DOCUMENT, views=VIEW, options=options)
    for stream in ("orders", "shipments"):
        mine = [(message, at) for name, message, at in SENT if name == stream]
        base = SENT[-1][2] if stream == "shipments" else 0.0
        times = [base + at for _, at in mine]
        alone = [c for (m, _), at in zip(mine, times, strict=True) for c in one.feed(stream, m, at)]
        together = many.feed_many(stream, [message for message, _ in mine], times)
        assert changes(alone) == changes(together)
    assert one.view("late").rows() == many.view("late").rows()
    assert one.clock == many.clock
    if keep == "all":
        assert one.xml() == many.xml()
    assert streams_of(many).engine.feeds


def test_every_form_of_a_message_is_accepted() -> None:
    doc = Document(streams=["s"], views={"all": "match //a/$x return $x"})
    given: list[AnyMessage] = [
        "<a>1</a>",
        b"<a>2</a>",
        {"a": "3"},
        etree.fromstring("<a>4</a>"),
        '{"a": 5}',
        "<a>6</a><a>7</a>",
        "<!--c--><a>8</a>",
        " <a>9</a>",
    ]
    doc.feed("s", "<a>0</a>")
    found = doc.feed_many("s", given, at=3)
    assert [one.row["x"] for one in found] == [str(number) for number in range(1, 10)]
    assert {one.time for one in found} == {3}


def test_times_must_be_as_many_as_messages() -> None:
    doc = Document(streams=["s"], views={"all": "match //a/$x return $x"})
    with pytest.raises(StreamError) as raised:
        doc.feed_many("s", ["<a/>"], at=[1, 2])
    assert raised.value.code == "AX409"


def test_a_rejected_message_stops_or_is_set_aside() -> None:
    messages = ["<a>1</a>", "<a>2", "<a>3</a>"]
    doc = Document(streams=["s"], views={"all": "match //a/$x return $x"})
    with pytest.raises(AxlogError):
        doc.feed_many("s", messages)
    assert [row["x"] for row in doc.view("all")] == ["1"]
    doc = Document(
        streams=["s"],
        views={"all": "match //a/$x return $x"},
        options=Options(on_error="dead-letter"),
    )
    doc.feed_many("s", messages)
    assert [row["x"] for row in doc.view("all")] == ["1", "3"]
    assert len(doc.dead_letters) == 1


def test_a_durable_document_keeps_every_message(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "store", SOURCE) as doc:
        doc.watch("match //a/$x return $x", "all")
        doc.feed_many("s", ["<a>1</a>", "<a>2</a>"], at=[1, 2])
    with axlog.open(tmp_path / "store") as doc:
        assert [row["x"] for row in doc.view("all")] == ["1", "2"]


def test_a_view_that_is_added_is_followed() -> None:
    doc = Document(streams=["s"], views={"all": "match //a/$x return $x"})
    doc.feed("s", "<a>1</a>")
    doc.feed("s", "<a>2</a>")
    doc.watch("match //b/$x return $x", "other")
    assert [one.view for one in doc.feed("s", "<a>3<b>4</b></a>")] == ["all", "all", "other"]
    doc.unwatch("other")
    assert [one.view for one in doc.feed("s", "<a>5</a>")] == ["all"]
    doc.end("s")
    with pytest.raises(StreamError):
        doc.feed("s", "<a>6</a>")


def test_a_literal_is_found_however_it_is_written() -> None:
    """The search in the bytes of a message must not hide a text that is written differently."""
    doc = Document(streams=["s"], views={"v": 'match //a[b/"INRIA"]/@k/$x return $x'})
    doc.feed("s", "<a k='0'><b>INRIA</b></a>")
    written = ("INRIA", "IN&#82;IA", "<![CDATA[INRIA]]>", "IN<![CDATA[RIA]]>", "&#x49;NRIA")
    for number, text in enumerate(written):
        found = doc.feed("s", f"<a k='{number + 1}'><b>{text}</b></a>")
        assert [one.row["x"] for one in found] == [str(number + 1)], text
    assert not doc.feed("s", "<a k='9'><b>INR</b><b>IA</b></a>")


def test_unwanted_messages_are_not_parsed_but_counted() -> None:
    doc = Document(
        streams=["s"],
        views={"v": "match //s/a/b/$x return $x"},
        options=Options(keep="needed", validate="wanted"),
    )
    for message in ("<a><b>1</b></a>", "<c><b>1</b></c>", "<c><b/>", "<a><b>2</b></a>"):
        doc.feed("s", message, at=maintained(doc).tree.clock / 1e6 + 1)
    status = doc.streams()["s"]
    assert (status.messages, status.unparsed) == (4, 2)
    assert [row["x"] for row in doc.view("v")] == ["1", "2"]


def test_times_of_every_kind_take_the_generated_function() -> None:
    doc = Document(streams=["s"], views={"all": "match //a/$x return $x"})
    doc.feed("s", "<a>0</a>")
    with doc.profile() as found:
        for number, at in enumerate((1, 1.5, timedelta(seconds=2), Fraction(5, 2), "3s", None)):
            doc.feed("s", f"<a>{number + 1}</a>", at)
    assert (found.messages, found.nodes) == (6, 0)
    assert [change.time for change in doc.feed("s", "<a>9</a>", 4)] == [4]
    with pytest.raises(StreamError):
        doc.feed("s", "<a>10</a>", timedelta(seconds=1))
