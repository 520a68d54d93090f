"""The tuner: examples 14 to 17 of P3, what is installed, dropped, restored and refused.

Law 5 (`test_tuning.py`) compares with untuned documents on random cases.
"""

from pathlib import Path
from threading import Event

import pytest

import axlog
from axlog.connect.channels.subscription_filters import passes
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Options, Policy
from axlog.match.filters import Filter
from tests.papers import xml


def doc(notation: str, query: str, **options: str) -> Document:
    return Document(xml(notation), views={"v": query}, options=Options(**options))  # type: ignore[arg-type]


FIGURE_4 = ("a[d[?f], b[?g]]", "match /a[d/y][b/c/$x] return $x")


# The papers' examples -----------------------------------------------------------------------------


def test_example_14_p3_figure_4_what_filters_keep() -> None:
    made = doc(*FIGURE_4, keep="needed")
    report = made.tune()
    assert {name: each.wanted for name, each in report.streams.items()} == {
        "f": ("y",), "g": ("c/$x",),
    }  # fmt: skip
    for message in ("<z/>", "<z><y/></z>", "<c>1</c>"):
        assert made.feed("f", message) == []
    for message in ("<y/>", "<b><c>1</c></b>", "<c/>"):
        assert made.feed("g", message) == []
    streams = made.streams()
    assert (streams["f"].dropped, streams["f"].kept) == (3, 0)
    assert (streams["g"].dropped, streams["g"].kept) == (3, 0)
    assert maintained(made).engine.climbed == 0


def test_example_14_after_y_the_stream_is_unsubscribed() -> None:
    made = doc(*FIGURE_4, keep="needed")
    made.tune()
    made.feed("f", "<y/>", at=1)
    report = made.tune()
    assert report.unsubscribed == ("f",)
    assert report.streams["f"].not_looked_for == ("y",)
    assert report.streams["g"].wanted == ("c/$x",)
    climbed = maintained(made).engine.climbed
    assert made.feed("f", "<y/>", at=7) == []
    assert maintained(made).engine.climbed == climbed
    assert made.clock == 7
    status = made.streams()["f"]
    assert status.is_unsubscribed
    assert (status.dropped, status.kept) == (1, 1)
    assert [change.row["x"] for change in made.feed("g", "<c>5</c>")] == ["5"]


def test_example_14_a_stream_that_ends_without_y_leaves_nothing_to_want() -> None:
    made = doc(*FIGURE_4, keep="needed")
    made.tune()
    made.end("f")
    assert made.tune().unsubscribed == ("g",)
    assert made.feed("g", "<c>1</c>") == []
    assert made.streams()["g"].dropped == 1
    assert not made.view("v").rows()


def test_example_15_what_came_before_y_is_matched_already() -> None:
    made = doc(*FIGURE_4, keep="needed")
    made.tune()
    for number in range(200):
        made.feed("g", f"<c>{number}</c>")
    engine = maintained(made).engine
    before = (engine.visited, engine.climbed)
    changes = made.feed("f", "<y/>")
    assert len(changes) == 200
    assert (engine.visited, engine.climbed - before[1]) == (before[0], 1)


def test_example_16_p3_figure_6_nothing_is_relevant() -> None:
    made = doc("r[s[a2], m[u, ?f], n[v, ?g]]", "match /r[s/$x][m/u][n/v] return $x")
    assert made.streams()["f"].wanted == ("u",)
    assert made.tune().unsubscribed == ("f", "g")
    climbed = maintained(made).engine.climbed
    assert made.feed("f", "<u/>") == made.feed("g", "<v/>") == []
    assert maintained(made).engine.climbed == climbed
    assert [row["x"] for row in made.view("v").rows()] == ["a2"]


def test_example_9_p3_figure_7_is_seen_by_a_closer_look_only() -> None:
    made = doc("r[b[?f], d[?g]]", "match /r[//c][d/c]")
    assert made.tune().streams["f"].wanted == ("//c",)
    report = made.tune(exact=True)
    assert report.unsubscribed == ("f",)
    assert made.feed("f", "<c/>") == []
    assert len(made.feed("g", "<c/>")) == 1


def test_streams_that_can_replace_each_other_are_not_both_dropped() -> None:
    made = doc("r[b[?f], b[?g], d[?h]]", "match /r[//c][d/k]")
    assert made.tune(exact=True).unsubscribed == ()


FIGURE_8 = ("r[a[b[?f]], ?g{deletes=only}]", "match /r/a/b/c/$x return $x")


def test_example_17_p3_figure_8_a_deletion_finds_all_that_came() -> None:
    made = doc(*FIGURE_8)
    report = made.tune()
    assert "may delete" in report.streams["f"].reason
    made.feed("f", "<c><d><e/></d></c>")
    made.feed("f", "<z/>")
    assert [row["x"] for row in made.view("v").rows()] == ["d"]
    changes = made.delete("g", "match /a/b/c/d/e")
    assert [(c.op, c.row["x"]) for c in changes] == [("delete", "d"), ("never", None)]


def test_example_17_messages_that_a_deletion_can_reach_are_kept() -> None:
    made = doc(*FIGURE_8, keep="needed")
    made.tune()
    made.feed("f", "<c><d><e/></d></c>")
    assert [c.op for c in made.delete("g", "match /a/b/c/d/z")] == []
    assert [c.op for c in made.delete("g", "match /a/b/c/d/e")][:1] == ["delete"]


# Values known, views, edits -----------------------------------------------------------------------

MONITOR = ("m[o[?orders], s[?ships]]", "match /m[o/order/oid/$x][s/ship/oid/$x] return $x")


def order(number: int) -> str:
    return f"<order><oid>{number}</oid></order>"


def ship(number: int) -> str:
    return f"<ship><oid>{number}</oid></ship>"


def test_values_that_can_still_join_are_asked_for() -> None:
    made = doc(*MONITOR, keep="needed")
    for number in range(5):
        made.feed("orders", order(number))
    made.tune()
    made.feed("ships", ship(77))
    made.end("orders")
    made.tune()
    climbed = maintained(made).engine.climbed
    assert made.feed("ships", ship(99)) == []
    assert [change.row["x"] for change in made.feed("ships", ship(3))] == ["3"]
    tables = [t for s in maintained(made).engine.states_at(1) for t in s.join.kept]
    assert sorted(len(table) for table in tables) == [0, 5]  # no order to come: none waits
    assert maintained(made).engine.climbed == climbed + 2
    made.tune()
    assert made.feed("ships", ship(3)) == []  # its row is there


def test_tuned_for_all_views() -> None:
    made = Document(
        xml(FIGURE_4[0]),
        views={"v": FIGURE_4[1], "w": "match /a/d/w"},
        options=Options(keep="needed"),
    )
    made.feed("f", "<y/>")
    assert made.tune().streams["f"].wanted == ("w",)
    assert [change.view for change in made.feed("f", "<w/>")] == ["w"]
    assert made.tune().unsubscribed == ("f",)


def test_a_view_added_later_subscribes_again() -> None:
    made = doc(*FIGURE_4)
    made.feed("f", "<y/>")
    assert made.tune().unsubscribed == ("f",)
    made.feed("f", "<y/>")
    made.feed("f", "<k>9</k>")
    later = made.watch("match /a/d[y]/k/$x return $x", "later")
    assert [(row["x"], row.count) for row in later.rows()] == [("9", 2)]
    assert made.streams()["f"].wanted == ("k/$x", "y")
    assert len(made.feed("f", "<k>10</k>")) == 1


def test_a_view_that_would_need_what_was_dropped_is_refused() -> None:
    made = doc(*FIGURE_4, keep="needed")
    made.tune()
    made.feed("f", "<z/>")
    with pytest.raises(AxlogError, match="AX307"):
        made.watch("match /a/d/z")
    with pytest.raises(AxlogError, match="AX307"):
        maintained(made).apply([])


def test_a_statement_gets_the_whole_counts_back() -> None:
    made = doc(*FIGURE_4)
    made.feed("g", "<c>1</c>")
    made.feed("f", "<y/>")
    made.tune()
    made.feed("f", "<y/>")
    made.feed("g", "<c>1</c>")
    assert [row.count for row in made.view("v").rows()] == [2]
    assert made.update("insert node <k/> into /a") == []
    assert [row.count for row in made.view("v").rows()] == [4]
    made.update("delete node /a/d/y[1]")
    assert [row.count for row in made.view("v").rows()] == [2]
    made.update("delete nodes /a/d/y")
    assert not made.view("v").rows()


def test_contents_of_nodes_above_a_call_need_all_that_comes() -> None:
    made = doc(*(FIGURE_4[0], "match /a[d/y]/b#n/c return n.cont"), keep="needed")
    report = made.tune()
    assert "content of an element" in report.streams["g"].reason
    made.feed("f", "<y/>")
    made.feed("g", "<c/>")
    assert [change.op for change in made.feed("g", "<z/>")] == ["update"]


@pytest.mark.parametrize("is_tuned", [False, True])
def test_collected_paths_are_read_from_all_that_came(is_tuned: bool) -> None:
    made = doc("c[b, ?f]", "match //b#t1, /*[collect(//b#t3)] return t3.label")
    if is_tuned:
        assert "collects" in made.tune().streams["f"].reason
    changes = made.feed("f", "<b><b/></b>")
    assert [change.op for change in changes] == ["update"]
    assert [row["t3.label"] for row in made.view("v").rows()] == [("b", "b", "b")]


def test_values_of_nodes_above_a_call_need_all_that_comes() -> None:
    made = doc('r[c[?f], "2"]', "match /r[c = 1]", keep="needed", validate="wanted")
    assert "compares the value" in made.tune().streams["f"].reason
    assert not made.streams()["f"].is_unsubscribed
    assert made.filter("f") is None
    assert len(made.feed("f", "<z>1</z>")) == 1


def test_a_document_without_views_wants_nothing() -> None:
    made = Document(xml("r[?f]"))
    assert made.tune().unsubscribed == ("f",)
    made.feed("f", "<a/>")
    assert len(made.watch("match /r/a").rows()) == 1


def test_not_is_left_alone() -> None:
    made = doc("r[?f, a[?g]]", "match /r[not(b)]/a/c/$x return $x")
    report = made.tune()
    assert "`not`" in report.undecided["v"]
    assert report.streams["f"].wanted == ("a/c/$x", "b")
    made.feed("g", "<c>1</c>")
    assert [change.op for change in made.feed("f", "<b/>")] == ["delete"]


# At the source ------------------------------------------------------------------------------------


def passing(made: Document, stream: str, *messages: str) -> list[bool]:
    wanted = made.filter(stream)
    assert wanted is not None
    sent = Filter.from_json(wanted.to_json())  # to the source, with no document
    return [passes(sent, StreamUpdate(stream, "insert", each)) for each in messages]


def test_a_filter_for_the_source_of_a_stream() -> None:
    made = doc(*FIGURE_4, keep="needed")
    assert passing(made, "g", "<c>1</c>", "<c/>", "<z/>") == [True, False, False]
    made.feed("f", "<y/>")
    assert passing(made, "f", "<y/>") == [True]
    made.tune()
    assert passing(made, "f", "<y/>") == [False]
    with pytest.raises(AxlogError, match="AX307"):  # what is dropped there is not here
        made.watch("match /a/b/z")


def test_a_filter_for_the_source_asks_for_values() -> None:
    made = doc(*MONITOR, keep="needed")
    made.feed("orders", order(3))
    made.end("orders")
    made.tune()
    assert passing(made, "ships", ship(3), ship(4)) == [True, False]


def test_a_filter_counts_no_message_and_is_given_again() -> None:
    made = doc(*FIGURE_4, keep="needed")
    first, again = made.filter("g"), made.filter("g")
    assert first is not None
    assert again is not None
    assert first.to_json() == again.to_json()
    assert maintained(made).forgotten == 0
    with pytest.raises(AxlogError, match=r"AX307.*the source of 'g' has a filter"):
        made.watch("match /a/b/z")  # the source may have dropped messages


def test_a_filter_stays_with_its_source_when_a_batch_is_rolled_back() -> None:
    made = doc(*FIGURE_4, keep="needed")
    with pytest.raises(AxlogError, match="AX101"), made.batch():
        made.feed("g", f"<{made.filter('g')}")
    with pytest.raises(AxlogError, match="AX307"):
        made.watch("match /a/b/z")


def test_the_source_of_a_durable_document_sends_everything(tmp_path: Path) -> None:
    with axlog.open(tmp_path, xml(FIGURE_4[0]), options=Options(keep="needed")) as store:
        store.watch(FIGURE_4[1], "v")
        assert store.filter("g") is None  # a view that is added later reads the whole log


def test_a_source_sends_everything_where_it_must() -> None:
    assert doc(*FIGURE_4).filter("f") is None  # all is kept
    assert doc(*FIGURE_8, keep="needed").filter("f") is None
    assert doc(FIGURE_4[0], "match /a/b#n return n.cont", keep="needed").filter("g") is None
    assert doc(*FIGURE_4, keep="needed").filter("unknown") is None


def test_one_automaton_for_many_views() -> None:
    views = {f"v{n}": f"match /r/m[k{n}]/$x return $x" for n in range(40)}
    made = Document(xml("r[?f]"), views=views, options=Options(keep="needed"))
    changes = made.feed("f", "<m><k7/><k8/></m>")
    assert {change.view for change in changes} == {"v7", "v8"}
    assert made.feed("f", "<m><z/></m>") == []
    status = made.streams()["f"]
    assert status.nodes > 40
    assert (status.dropped, status.kept, len(status.wanted)) == (1, 1, 40)
    assert made.tune().streams["f"].wanted == status.wanted


def test_views_that_need_nodes_are_filtered_too() -> None:
    made = doc("r[?f, d[?g]]", "match /r[d/y]/order#o[vip] return o.cont", keep="needed")
    made.tune()
    nodes = len(made)
    assert made.feed("f", "<order/>") == made.feed("f", "<order><vip/></order>") == []
    assert len(made) == nodes + 2  # of the one that is wanted
    changes = made.feed("g", "<y/>")
    assert [change.row["o.cont"] for change in changes] == ["<order><vip/></order>"]
    assert made.streams()["f"].dropped == 1


# When ---------------------------------------------------------------------------------------------


def test_tuned_by_number_of_messages_beside_feeding() -> None:
    made = doc(*FIGURE_4, keep="needed", tune={"messages": 3})  # type: ignore[arg-type]
    made.feed("f", "<y/>")
    made.feed("g", "<c>1</c>")
    assert not made.streams()["f"].is_tuned
    made.feed("g", "<c>2</c>")
    streams_of(made).tuner.wait()
    last = streams_of(made).tuner.last
    assert last is not None
    assert last.installed
    assert made.streams()["f"].is_unsubscribed


def test_a_message_during_a_slow_tuning_is_tuned_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """No message comes that would ask again: a tuning that is due may wait, but is not dropped."""
    from axlog.live import tuner

    made = doc(*FIGURE_4, keep="needed", tune={"messages": 1})  # type: ignore[arg-type]
    work_out = tuner._work_out
    has_begun, may_end = Event(), Event()

    def slowly(snapshot: tuner._Snapshot) -> tuner._Found:
        has_begun.set()
        may_end.wait()
        return work_out(snapshot)

    monkeypatch.setattr(tuner, "_work_out", slowly)
    made.feed("g", "<c>1</c>")
    has_begun.wait()
    made.feed("f", "<y/>")  # the tuning that is under way has not seen it
    may_end.set()
    streams_of(made).tuner.wait()
    assert made.streams()["f"].is_unsubscribed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_tuning_requested_while_another_fails_is_not_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from axlog.live import tuner

    made = doc(*FIGURE_4, keep="needed", tune={"messages": 1})  # type: ignore[arg-type]
    work_out = tuner._work_out
    has_begun, may_fail = Event(), Event()

    def failing(snapshot: tuner._Snapshot) -> tuner._Found:
        if has_begun.is_set():
            return work_out(snapshot)
        has_begun.set()
        may_fail.wait()
        raise MemoryError

    monkeypatch.setattr(tuner, "_work_out", failing)
    made.feed("g", "<c>1</c>")
    has_begun.wait()
    made.feed("f", "<y/>")
    may_fail.set()
    streams_of(made).tuner.wait()
    assert made.streams()["f"].is_unsubscribed


def test_a_tuning_sees_the_message_that_requests_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = doc(*FIGURE_4, keep="needed", tune={"messages": 1})  # type: ignore[arg-type]
    seen: list[int] = []
    monkeypatch.setattr(
        streams_of(made).tuner, "begin", lambda: seen.append(made.streams()["f"].messages)
    )
    made.feed("f", "<y/>")
    assert seen == [1]


def test_a_message_soon_after_a_slow_tuning_is_tuned_for_too() -> None:
    made = doc(*FIGURE_4, keep="needed", tune={"messages": 1})  # type: ignore[arg-type]
    made.feed("g", "<c>1</c>")
    streams_of(made).tuner.wait()
    streams_of(made).tuner._pause = 0.2  # as if it had taken a twentieth of this
    made.feed("f", "<y/>")
    streams_of(made).tuner.wait()
    assert made.streams()["f"].is_unsubscribed


def test_tuned_when_a_stream_ends() -> None:
    made = doc(*FIGURE_4, keep="needed", tune="auto")
    made.end("f")
    streams_of(made).tuner.wait()
    assert made.streams()["g"].is_unsubscribed


def test_what_a_person_wrote_in_between_is_not_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    made = doc(*FIGURE_4)
    made.feed("f", "<y/>")
    from axlog.live import tuner

    work_out = tuner._work_out

    def slowly(snapshot: tuner._Snapshot) -> tuner._Found:
        found = work_out(snapshot)
        made.update("delete node /a/d/y")
        return found

    monkeypatch.setattr(tuner, "_work_out", slowly)
    report = made.tune()
    assert not report.installed
    assert report.unsubscribed == ()
    made.feed("g", "<c>1</c>")
    assert len(made.feed("f", "<y/>")) == 1


@pytest.mark.parametrize("given", ["often", {}, {"messages": 0}, {"hours": 1}, {"messages": True}])
def test_what_is_no_policy_is_refused(given: object) -> None:
    with pytest.raises(AxlogError, match="AX211"):
        Policy.of(given)  # type: ignore[arg-type]
