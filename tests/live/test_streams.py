"""Documents: messages, callbacks and feeds, batches, bad messages, readers beside a writer."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from lxml import etree

from axlog import Change, Document, Limits
from axlog.errors import (
    AxlogError,
    EndedStreamError,
    LateError,
    LimitError,
    MalformedError,
    QueryError,
    StreamError,
    UnknownStreamError,
)
from axlog.live.internals import maintained
from axlog.live.options import Options

AX = 'xmlns:ax="urn:axlog"'
PAIRS_XML = (
    f'<m {AX}><o><ax:call stream="o" deletes="yes" calls="yes"/></o>'
    '<s><ax:call stream="s"/></s></m>'
)
PAIRS = "match /m[o/a/$x][s/b/$x] return $x"
# A view that shows nodes: its messages go through the document.
NODES = "match /m/o/a#t return t.id, t.cont"


def pairs(**options: Any) -> Document:
    return Document(PAIRS_XML, views={"pairs": PAIRS}, options=Options(**options))


def inserted_pairs(**options: Any) -> Document:
    """Without deletions, which need all messages of their stream."""
    source = PAIRS_XML.replace(' deletes="yes"', "")
    return Document(source, views={"pairs": PAIRS}, options=Options(**options))


def nodes(**options: Any) -> Document:
    return Document(PAIRS_XML, views={"pairs": PAIRS, "nodes": NODES}, options=Options(**options))


BOTH = pytest.mark.parametrize("make", [pairs, nodes])
"""The short way for messages, and the long one: a user must not see the difference."""


def told(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.op, change.row["x"]) for change in changes if change.view == "pairs"]


# Messages -----------------------------------------------------------------------------------------


@BOTH
def test_messages_change_the_view(make: Callable[..., Document]) -> None:
    doc = make()
    assert told(doc.feed("o", "<a>1</a>", at=1)) == []
    assert told(doc.feed("s", b"<b>1</b>", at=2.5)) == [("insert", "1")]
    assert told(doc.feed("s", etree.fromstring("<b>1</b>"), at=3)) == []
    assert doc.view("pairs").rows()[0].count == 2
    assert told(doc.delete("o", 'match /a/"1"', at=4)) == [("delete", "1")]
    assert told(doc.end("o", at=5)) == [("never", None), ("never", "1")]
    assert doc.clock == 5
    assert doc.xml() == (f'<m {AX}><o/><s><b>1</b><b>1</b><ax:call stream="s"/></s></m>')


@BOTH
def test_changes_carry_time_and_number(make: Callable[..., Document]) -> None:
    doc = make()
    heard: list[Change] = []
    doc.view("pairs").subscribe(heard.append)
    doc.feed("o", "<a>1</a>", at=1)
    doc.feed("s", "<b>1</b>", at=2.5)
    doc.feed("o", "<a>2</a>")
    doc.feed("s", "<b>2</b>")
    doc.delete("o", "match /a")
    assert [(c.time, c.position) for c in heard] == [
        (2.5, 1), (2.5, 2), (2.5, 3), (2.5, 4)
    ]  # fmt: skip
    assert {change.view for change in heard} == {"pairs"}


@BOTH
def test_messages_with_several_trees_comments_and_calls(make: Callable[..., Document]) -> None:
    doc = make()
    doc.feed("s", "<b>1</b><!-- and --><b>2</b>")
    doc.feed("o", f'<a>1</a><box {AX}><ax:call stream="inner"/></box>')
    assert told(doc.feed("o", "<?xml version='1.0'?><!-- one --><a>2</a>")) == [("insert", "2")]
    assert doc.feed("inner", "<a>9</a>") == []
    assert sorted(doc.streams()) == ["inner", "o", "s"]
    assert doc.xml().count("<!-- ") == 2


def test_a_call_may_be_written_in_many_ways() -> None:
    """The namespace of a call may be spelled with references; it is a call all the same."""
    hidden = '<a xmlns:k="urn&#58;axlog"><k:call stream="inner"/>1</a>'
    for options in ({}, {"validate": "wanted"}):
        doc = pairs(**options)
        doc.feed("o", hidden)
        assert "inner" in doc.streams()
        assert doc.feed("inner", "<b/>") == []


def test_one_shot_and_most() -> None:
    doc = Document(
        f'<r {AX}><ax:call stream="once" mode="one-shot"/><ax:call stream="two" most="2"/></r>',
        views={"all": "match /r/a/$x return $x"},
    )
    doc.feed("once", "<a>1</a>")
    with pytest.raises(EndedStreamError):
        doc.feed("once", "<a>2</a>")
    doc.feed("two", "<a>3</a>")
    with pytest.raises(StreamError) as caught:
        doc.feed("two", "<a>4</a><a>5</a>")
    assert caught.value.code == "AX406"
    doc.feed("two", "<a>6</a>")
    assert [row["x"] for row in doc.view("all")] == ["1", "3", "6"]
    assert {name: status.ended for name, status in doc.streams().items()} == {
        "once": True,
        "two": False,
    }


def test_streams_count_their_messages() -> None:
    doc = pairs()
    doc.feed("o", "<a>1</a>", at=3)
    with pytest.raises(MalformedError):
        doc.feed("o", "<a>")
    with pytest.raises(UnknownStreamError):
        doc.feed("nobody", "<a/>")
    doc.end("s", at=4)
    streams = doc.streams()
    assert sorted(streams) == ["o", "s"]
    assert (streams["o"].messages, streams["o"].refused, streams["o"].last) == (2, 1, 3)
    assert (streams["s"].ended, streams["o"].ended) == (True, False)


def test_views_by_name() -> None:
    doc = pairs()
    assert list(doc.views) == ["pairs"]
    later = doc.watch("match /m/o/a/$x return $x", "later")
    doc.feed("o", "<a>1</a>")
    assert later.rows() == [{"x": "1"}]
    with pytest.raises(QueryError) as caught:
        doc.view("other")
    assert caught.value.code == "AX203"
    assert "later" in str(caught.value)


@pytest.mark.parametrize("option", ["on_error", "keep", "validate"])
def test_options_are_checked(option: str) -> None:
    with pytest.raises(QueryError) as caught:
        pairs(**{option: "perhaps"})
    assert option in str(caught.value)


# Feeds and batches --------------------------------------------------------------------------------


def test_a_feed_is_iterated_as_far_as_it_goes() -> None:
    doc = pairs()
    doc.feed("o", "<a>1</a><a>2</a>")
    feed = doc.changes("pairs")
    doc.feed("s", "<b>1</b>")
    assert told(list(feed)) == [("insert", "1")]
    assert list(feed) == []
    doc.feed("s", "<b>2</b>")
    assert told(feed.take()) == [("insert", "2")]
    feed.close()
    doc.delete("o", "match /a")
    assert list(feed) == []


def test_async_iteration_waits_for_a_writer_in_another_thread() -> None:
    doc = pairs()
    feed = doc.changes("pairs")

    def write() -> None:
        for number in range(50):
            doc.feed("o", f"<a>{number}</a>")
            doc.feed("s", f"<b>{number}</b>")
        feed.close()

    async def read() -> list[str]:
        writer = threading.Thread(target=write)
        writer.start()
        seen = [change.row["x"] async for change in feed]
        writer.join()
        return seen

    seen = asyncio.run(asyncio.wait_for(read(), timeout=60))
    assert seen == [str(number) for number in range(50)]


def test_async_iteration_sees_what_came_before() -> None:
    doc = pairs()
    feed = doc.changes("pairs")
    doc.feed("o", "<a>1</a>")
    doc.feed("s", "<b>1</b>")
    feed.close()

    async def read() -> list[Change]:
        return [change async for change in feed]

    assert told(asyncio.run(read())) == [("insert", "1")]


@BOTH
def test_a_batch_emits_its_net_changes(make: Callable[..., Document]) -> None:
    doc = make()
    doc.feed("o", "<a>1</a><a>2</a>")
    doc.feed("s", "<b>1</b>")
    feed = doc.changes("pairs")
    with doc.batch():
        assert told(doc.feed("s", "<b>2</b>")) == [("insert", "2")]
        doc.delete("o", 'match /a/"1"')
        with doc.batch():
            doc.feed("o", "<a>1</a>")
            doc.feed("o", "<a>3</a>")
        doc.feed("s", "<b>3</b>")
        doc.delete("o", 'match /a/"2"')
        assert list(feed) == []
    assert told(list(feed)) == [("insert", "3")]


def test_a_batch_joins_updates_of_a_row() -> None:
    doc = Document(
        f'<r {AX}><p><ax:call stream="s" deletes="yes"/></p></r>',
        views={"text": "match /r/p#t return t.val"},
    )
    feed = doc.changes("text")
    with doc.batch():
        doc.feed("s", "<c>1</c>")
        doc.feed("s", "<c>2</c>")
    (change,) = feed
    assert change.to_dict() == {
        "view": "text", "op": "update", "key": ["1.1"], "row": {"t.val": "12"},
        "before": {"t.val": ""}, "time": 0,
        "cause": {"kind": "message", "stream": "s", "number": 2}, "final": False, "position": 2,
    }  # fmt: skip
    with doc.batch():
        doc.feed("s", "<c>3</c>")
        doc.delete("s", "match /c[. = 3]")
    assert list(feed) == []


def test_a_batch_that_fails_changes_and_emits_nothing() -> None:
    doc = pairs()
    feed = doc.changes("pairs")
    doc.feed("o", "<a>1</a>")

    def fail_half_way() -> None:
        with doc.batch():
            doc.feed("s", "<b>1</b>")
            doc.feed("s", "<b>")

    with pytest.raises(MalformedError):
        fail_half_way()
    assert list(feed) == []
    assert told(doc.feed("s", "<b>1</b>")) == [("insert", "1")]


# Bad messages -------------------------------------------------------------------------------------

LIMITS = Limits(depth=4, size=120, text=20, name=20)
DEEP = "<a>" + "<b>" * 3 + "</b>" * 3 + "</a>"
BAD: list[tuple[str, Callable[[Document], Any], type[AxlogError], str]] = [
    ("not well-formed", lambda w: w.feed("o", "<a><b></a>"), MalformedError, "AX101"),
    ("not in its encoding", lambda w: w.feed("o", b"<a>\xff</a>"), MalformedError, "AX1"),
    ("lone surrogate", lambda w: w.feed("o", "<a>\ud800</a>"), MalformedError, "AX101"),
    ("text alone", lambda w: w.feed("o", "<a/>text"), StreamError, "AX104"),
    ("entities", lambda w: w.feed("o", '<!DOCTYPE a [<!ENTITY e "1">]><a>&e;</a>'), AxlogError,
     "AX111"),
    ("too deep", lambda w: w.feed("o", DEEP), LimitError, "AX121"),
    ("too deep below its call", lambda w: w.feed("o", "<a><b><c/></b></a>"), LimitError, "AX121"),
    ("too big", lambda w: w.feed("o", "<a>" + "<b/>" * 30 + "</a>"), LimitError, "AX122"),
    ("too long a text", lambda w: w.feed("o", f"<a>{'x' * 21}</a>"), LimitError, "AX123"),
    ("too long a name", lambda w: w.feed("o", f"<{'x' * 21}/>"), LimitError, "AX124"),
    ("unknown stream", lambda w: w.feed("other", "<a/>"), UnknownStreamError, "AX401"),
    ("late", lambda w: w.feed("o", "<a/>", at=4), LateError, "AX404"),
    ("no time", lambda w: w.feed("o", "<a/>", at="soon"), StreamError, "AX409"),
    ("beyond time", lambda w: w.feed("o", "<a/>", at=1e30), StreamError, "AX409"),
    ("a second call", lambda w: w.feed("o", f'<a {AX}><ax:call stream="s"/></a>'), StreamError,
     "AX403"),
    ("deletion not allowed", lambda w: w.delete("s", "match /b"), StreamError, "AX405"),
    ("deletion that does not parse", lambda w: w.delete("o", "match /b["), QueryError, "AX201"),
    ("late deletion", lambda w: w.delete("o", "match /b", at=4), LateError, "AX404"),
    ("late end", lambda w: w.end("o", at=4), LateError, "AX404"),
]  # fmt: skip


def state(doc: Document) -> tuple[Any, ...]:
    views = {name: [(dict(r), r.count) for r in view] for name, view in doc.views.items()}
    return doc.xml(), views, doc.clock, sorted(maintained(doc).tree.calls())


@BOTH
@pytest.mark.parametrize(
    ("send", "kind", "code"), [each[1:] for each in BAD], ids=[each[0] for each in BAD]
)
def test_a_bad_message_changes_nothing_and_says_where(
    make: Callable[..., Document],
    send: Callable[[Document], Any],
    kind: type[AxlogError],
    code: str,
) -> None:
    doc = make(limits=LIMITS)
    doc.feed("o", "<a>1</a>", at=5)
    heard: list[Change] = []
    doc.view("pairs").subscribe(heard.append)
    before = state(doc)
    with pytest.raises(kind) as caught:
        send(doc)
    assert caught.value.code.startswith(code)
    assert caught.value.context is not None
    assert "message " in caught.value.context
    assert "of stream '" in caught.value.context
    assert caught.value.context in str(caught.value)
    assert state(doc) == before
    assert heard == []
    assert told(doc.feed("s", "<b>1</b>")) == [("insert", "1")]


@BOTH
def test_an_error_has_stream_number_and_place(make: Callable[..., Document]) -> None:
    doc = make()
    doc.feed("o", "<a>1</a>")
    doc.feed("o", "<a>2</a>")
    with pytest.raises(MalformedError) as caught:
        doc.feed("o", "<a>\n  <b></a>")
    error = caught.value
    assert error.context == "message 3 of stream 'o'"
    assert error.place is not None
    assert error.place.line == 2
    assert "<b></a>" in str(error)
    assert "^" in str(error)


@BOTH
def test_an_ended_stream_brings_nothing(make: Callable[..., Document]) -> None:
    doc = make()
    doc.feed("o", "<a>1</a>")
    doc.end("o")
    before = state(doc)
    sends: list[Callable[[], Any]] = [
        lambda: doc.feed("o", "<a>2</a>"),
        lambda: doc.delete("o", "match /a"),
        lambda: doc.end("o"),
    ]
    for send in sends:
        with pytest.raises(EndedStreamError) as caught:
            send()
        assert caught.value.code == "AX402"
    assert state(doc) == before


@BOTH
def test_dead_letters_are_collected_with_their_errors(make: Callable[..., Document]) -> None:
    doc = make(limits=LIMITS, on_error="dead-letter")
    doc.feed("o", "<a>1</a>", at=5)
    before = state(doc)
    for _, send, _, _ in BAD:
        assert send(doc) == []
    assert state(doc) == before
    assert [letter.error.code[:3] for letter in doc.dead_letters] == [
        code[:3] for _, _, _, code in BAD
    ]
    first = doc.dead_letters[0]
    assert (first.stream, first.sequence, first.message) == ("o", 2, "<a><b></a>")
    assert told(doc.feed("s", "<b>1</b>")) == [("insert", "1")]
    assert doc.streams()["o"].refused == len(
        [letter for letter in doc.dead_letters if letter.stream == "o"]
    )


def test_what_a_listener_raises_is_no_fault_of_the_message() -> None:
    doc = pairs(on_error="dead-letter")

    def broken(change: Change) -> None:
        raise StreamError("AX407", "the receiver is full")

    doc.view("pairs").subscribe(broken)
    doc.feed("o", "<a>1</a>")
    with pytest.raises(StreamError, match="the receiver is full"):
        doc.feed("s", "<b>1</b>")
    assert doc.dead_letters == []
    assert doc.streams()["s"].refused == 0
    assert doc.view("pairs").rows() == [{"x": "1"}]


def test_late_messages_can_be_moved_to_the_clock() -> None:
    doc = Document(
        f'<r {AX}><ax:call stream="s" late="clock"/></r>', views={"t": "match /r/a#t return t.time"}
    )
    doc.feed("s", "<a/>", at=5)
    assert doc.feed("s", "<a/>", at=3) == []  # the same row once more: a count, no change
    assert [(row["t.time"], row.count) for row in doc.view("t")] == [(5, 2)]


# What is kept, what is parsed ---------------------------------------------------------------------


def test_unwanted_messages_are_counted_and_move_the_clock() -> None:
    doc = inserted_pairs(validate="wanted")
    assert doc.feed("o", "<z>not even well-formed", at=7) == []
    assert doc.clock == 7
    assert (doc.streams()["o"].messages, doc.streams()["o"].unparsed) == (1, 1)
    doc.feed("o", "<a>1</a>", at=8)
    assert told(doc.feed("s", "<b>1</b>", at=8)) == [("insert", "1")]
    with pytest.raises(MalformedError):
        doc.feed("o", "<a>1")


@pytest.mark.parametrize("options", [{"keep": "needed"}, {"validate": "wanted"}])
def test_what_was_not_kept_is_never_guessed(options: dict[str, str]) -> None:
    doc = inserted_pairs(**options)
    doc.feed("o", "<z>1</z>")
    doc.feed("o", "<a>1</a>")
    assert told(doc.feed("s", "<b>1</b>")) == [("insert", "1")]
    asks: list[Callable[[], Any]] = [
        lambda: doc.watch("match /m/o/z/$x return $x"),
        lambda: doc.xml(),
    ]
    for ask in asks:
        with pytest.raises(AxlogError) as caught:
            ask()
        assert caught.value.code == "AX307"
        assert "keep" in str(caught.value)
    assert doc.view("pairs").rows() == [{"x": "1"}]
    assert told(doc.feed("o", "<a>1</a>")) == []


def test_a_text_in_a_query_never_becomes_code() -> None:
    """The generated matcher names pattern nodes in comments: a line break must not end one."""
    trap = "x\nraise SystemExit('executed')\n#"
    doc = Document(PAIRS_XML, views={"trap": f'match /m/o/a["{trap}"]/$x return $x'})
    assert doc.feed("o", "<a>1</a>") == []
    assert [c.row["x"] for c in doc.feed("o", f"<a>{trap}</a>")] == [trap]
    code = doc.code("o")
    assert code is not None
    assert "\nraise" not in code


def test_code_is_shown_for_streams_that_have_it() -> None:
    assert "def match" in (pairs().code("o") or "")
    assert nodes().code("o") is None


# Why ----------------------------------------------------------------------------------------------


@BOTH
def test_why_names_every_matched_node_and_its_time(make: Callable[..., Document]) -> None:
    doc = make()
    doc.feed("o", "<a>1</a>", at=1)
    doc.feed("s", "<b>1</b>", at=2)
    doc.feed("s", "<b>1</b>", at=3)
    derivations = doc.view("pairs").why({"x": "1"})
    assert len(derivations) == doc.view("pairs").rows()[0].count == 2
    found = {m.path: m.time for d in derivations for m in d.matched if m.pattern == "$x"}
    assert found == {
        "/m/o/a/text()": 1,
        "/m/s/b[1]/text()": 2,
        "/m/s/b[2]/text()": 3,
    }


# Readers beside a writer --------------------------------------------------------------------------


@BOTH
def test_readers_see_a_view_before_or_after_an_update(make: Callable[..., Document]) -> None:
    """Each message brings two rows and each deletion takes two: a reader never sees one alone."""
    doc = make()
    doc.feed("s", "".join(f"<b>{number}</b>" for number in range(200)))
    view = doc.view("pairs")
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not done.is_set():
            seen.append(len(view.rows()))
            seen.append(len(view))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(0, 100, 2):
            doc.feed("o", f"<a>{number}<i/>{number + 1}</a>")
        doc.delete("o", "match /a[i]")
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert seen
    assert all(count % 2 == 0 for count in seen)
    assert len(view) == 0


def test_a_batch_is_one_step_for_readers() -> None:
    doc = pairs()
    doc.feed("s", "".join(f"<b>{number}</b>" for number in range(10)))
    view = doc.view("pairs")
    started = threading.Event()
    seen: list[int] = []

    def read() -> None:
        started.set()
        seen.append(len(view))

    reader = threading.Thread(target=read)
    with doc.batch():
        doc.feed("o", "<a>1</a>")
        reader.start()
        assert started.wait(60)
        for number in range(2, 10):
            doc.feed("o", f"<a>{number}</a>")
    reader.join()
    assert seen == [9]


def test_two_writers_take_turns() -> None:
    doc = pairs()

    def write(stream: str, label: str) -> None:
        for number in range(200):
            doc.feed(stream, f"<{label}>{number}</{label}>")

    writers = [
        threading.Thread(target=write, args=arguments) for arguments in (("o", "a"), ("s", "b"))
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(doc.view("pairs")) == 200
    assert {s.messages for s in doc.streams().values()} == {200}
