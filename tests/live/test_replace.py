"""Streams that replace their messages by key (docs/meaning.md, Streams that replace)."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import axlog
from axlog import Document, Options
from axlog.errors import AxlogError, StoreError, UndecidedError, UpdateError
from axlog.live.internals import maintained, streams_of
from axlog.query.truth import Truth
from lab.benchmarks.upsert import made, positions, work_of
from lab.laws.fuzzing import run_case
from tests.amounts import cases, chunks

STREAMS: dict[str, dict[str, str]] = {"pos": {"replace": "@v"}, "veh": {}}
VIEWS = {
    "at": "match //pos/p[@v = $v]/x/$x return $v, $x",
    "named": "match /document[pos/p[@v = $v]/x/$x]/veh/c[@v = $v]/n/$n return $n, $x",
}


def fed(keep: Any = "all", views: dict[str, str] | None = None, **options: Any) -> Document:
    doc = Document(
        streams=STREAMS,
        views=VIEWS if views is None else views,
        options=Options(keep=keep, **options),
    )
    doc.feed("veh", "<c v='1'><n>bus</n></c>")
    for vehicle, x in (("1", "a"), ("2", "b"), ("1", "c")):
        doc.feed("pos", f"<p v='{vehicle}'><x>{x}</x></p>")
    return doc


def said(changes: list[axlog.Change]) -> list[tuple[str, tuple[Any, ...]]]:
    return [(change.op, change.row.values_) for change in changes]


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_message_replaces_the_earlier_one_with_its_key(keep: str) -> None:
    doc = fed(keep)
    assert [row.values_ for row in doc.view("at").rows()] == [("1", "c"), ("2", "b")]
    assert [row.values_ for row in doc.view("named").rows()] == [("bus", "c")]
    assert said(doc.feed("pos", "<p v='1'><x>d</x></p>")) == [
        ("delete", ("1", "c")), ("insert", ("1", "d")),
        ("delete", ("bus", "c")), ("insert", ("bus", "d")),
    ]  # fmt: skip
    assert doc.feed("pos", "<p v='1'><x>d</x></p>") == []  # the same again
    assert said(doc.feed("pos", "<p v='1'/>")) == [("delete", ("1", "d")), ("delete", ("bus", "d"))]


def test_the_new_message_has_the_place_and_the_ids_of_the_old_one_and_its_own_time() -> None:
    doc = fed()
    text = '<p v="1"><x>c</x></p><p v="2"><x>b</x></p>'
    assert text in doc.xml()
    ids = doc.watch("match //pos/p#p[@v = $v] return $v, p.id, p.time")
    first = {row["v"]: row["p.id"] for row in ids.rows()}
    doc.feed("pos", "<p v='1'><x>d</x></p>", at=7)
    assert {row["v"]: row["p.id"] for row in ids.rows()} == first
    assert {row["v"]: row["p.time"] for row in ids.rows()} == {"1": 7, "2": 0}


@pytest.mark.parametrize("maintainer", ["counting", "algebraic", "reevaluate"])
def test_a_row_keyed_by_a_node_is_updated(maintainer: str) -> None:
    doc = fed(views={})
    doc.watch("match //pos/p#p[@v = $v]/x#x return $v, x.val", "v", maintainer=maintainer)
    (change,) = doc.feed("pos", "<p v='1'><x>d</x></p>")
    assert change.op == "update"
    assert change.before is not None
    assert (change.before.values_, change.row.values_) == (("1", "c"), ("1", "d"))
    assert change.before.key == change.row.key


def test_a_batch_emits_one_update() -> None:
    doc = fed(views={"v": "match //pos/p#p[@v = $v] return $v, p.val"})
    heard: list[axlog.Change] = []
    doc.view("v").subscribe(heard.append)
    with doc.batch():
        for x in "xyz":
            doc.feed("pos", f"<p v='1'><x>{x}</x></p>")
    assert said(heard) == [("update", ("1", "z"))]


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_batch_that_raises_is_rolled_back(keep: str) -> None:
    doc = fed(keep)
    with suppress(ValueError), doc.batch():
        doc.feed("pos", "<p v='1'><x>lost</x></p>")
        raise ValueError
    assert said(doc.feed("pos", "<p v='1'><x>d</x></p>"))[:2] == [
        ("delete", ("1", "c")), ("insert", ("1", "d")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "message",
    ["<p/>", "<p v='1'/><p v='2'/>", "<p v='3'/><!-- beside -->", "<!-- beside --><p v='3'/>"],
)
@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_message_without_one_key_is_a_dead_letter(message: str, keep: str) -> None:
    doc = fed(keep, on_error="dead-letter")
    before = [row.values_ for row in doc.view("at").rows()]
    assert doc.feed("pos", message) == []
    assert [letter.error.code for letter in doc.dead_letters] == ["AX420"]
    assert [row.values_ for row in doc.view("at").rows()] == before


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("k", "<p><k>1</k><k>2</k></p>"),
        ("k", "<p><k>1<b/></k></p>"),
        ("k", "<p><k>1<!--c-->2</k></p>"),
        ("k/@i", "<p><k i='1'/><k i='2'/></p>"),
        (".", "<p>1<b/></p>"),
    ],
)
def test_a_key_is_one_attribute_or_one_element_with_text(path: str, message: str) -> None:
    doc = Document(streams={"s": {"replace": path}})
    with pytest.raises(AxlogError, match="AX420"):
        doc.feed("s", message)


@pytest.mark.parametrize(
    "declared",
    [
        {"replace": "@a/b"}, {"replace": ""}, {"replace": "a//b"}, {"replace": "p:a"},
        {"replace": "a", "calls": "yes"}, {"replace": "a", "deletes": "only"}, {"replaces": "a"},
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_refused(declared: dict[str, str]) -> None:
    with pytest.raises(AxlogError, match="AX105"):
        Document(streams={"s": declared})


def test_names_of_the_path_may_have_namespaces() -> None:
    options = Options(namespaces={"u": "urn:u"})
    doc = Document(streams={"s": {"replace": "u:k/@u:i"}}, options=options)
    for x in "ab":
        doc.feed("s", f"<p xmlns:u='urn:u'><u:k u:i='1'/><x>{x}</x></p>")
    assert doc.xml().count("<p ") == 1
    assert "<x>b</x>" in doc.xml()


def test_a_statement_edits_the_message_and_deletion_frees_its_key() -> None:
    doc = fed()
    doc.update("replace value of node //p[@v = '1']/@v with '5'")
    assert said(doc.feed("pos", "<p v='1'><x>d</x></p>"))[:2] == [
        ("delete", ("5", "c")), ("insert", ("1", "d")),
    ]  # fmt: skip
    doc.update("delete nodes //p[@v = '1']")
    assert said(doc.feed("pos", "<p v='1'><x>e</x></p>"))[0] == ("insert", ("1", "e"))
    assert [row["v"] for row in doc.view("at").rows()] == ["1", "2"]


def test_only_messages_of_the_stream_are_replaced() -> None:
    call = '<ax:call xmlns:ax="urn:axlog" stream="s" replace="@v" deletes="yes"/>'
    other = '<ax:call xmlns:ax="urn:axlog" stream="t"/>'
    doc = axlog.parse(f"<r><p v='1'>0</p>{call}{other}</r>", views={"v": "match /r/p/$x return $x"})
    doc.feed("t", "<p v='1'>1</p>")
    doc.feed("s", "<p v='1'>2</p>")
    assert said(doc.feed("s", "<p v='1'>3</p>")) == [("delete", ("2",)), ("insert", ("3",))]
    assert [row["x"] for row in doc.view("v").rows()] == ["0", "1", "3"]
    doc.delete("s", "match /p/'3'")
    assert said(doc.feed("s", "<p v='1'>4</p>")) == [("insert", ("4",))]


def test_most_counts_replacements_and_a_late_message_is_refused() -> None:
    doc = Document(streams={"s": {"replace": "@v", "most": "2"}})
    doc.feed("s", "<p v='1'/>", at=5)
    with pytest.raises(AxlogError, match="AX404"):
        doc.feed("s", "<p v='1'/>", at=4)
    doc.feed("s", "<p v='1'/>", at=6)
    with pytest.raises(AxlogError, match="AX406"):
        doc.feed("s", "<p v='1'/>", at=7)


def test_a_replacement_is_not_a_second_node_of_an_enforced_key() -> None:
    doc = Document(streams={"s": {"replace": "@v"}}, facts=["key s/p by @v enforced"])
    doc.feed("s", "<p v='1'>a</p>")
    doc.feed("s", "<p v='1'>b</p>")
    assert '<p v="1">b</p>' in doc.xml()
    doc = Document(streams={"s": {"replace": "@v"}}, facts=["key s/p by @w enforced"])
    doc.feed("s", "<p v='1' w='1'/>")
    with pytest.raises(AxlogError, match="AX413"):
        doc.feed("s", "<p v='2' w='1'/>")


def test_a_store_continues_with_the_keys(tmp_path: Path) -> None:
    for keep in ("all", "needed"):
        path = tmp_path / keep
        source = (
            '<document xmlns:ax="urn:axlog"><pos><ax:call stream="pos" replace="@v"/></pos>'
            '<veh><ax:call stream="veh"/></veh></document>'
        )
        with axlog.open(path, source, views=VIEWS, options=Options(keep=keep)) as doc:
            doc.feed("veh", "<c v='1'><n>bus</n></c>")
            doc.feed("pos", "<p v='1'><x>a</x></p>")
            doc.snapshot()
            doc.feed("pos", "<p v='2'><x>b</x></p>")
        with axlog.open(path) as doc:
            assert said(doc.feed("pos", "<p v='1'><x>c</x></p>"))[:2] == [
                ("delete", ("1", "a")), ("insert", ("1", "c")),
            ]  # fmt: skip


def test_views_can_be_dropped_while_only_rows_are_kept() -> None:
    doc = fed("needed")
    doc.unwatch("at")
    assert said(doc.feed("pos", "<p v='1'><x>d</x></p>")) == [
        ("delete", ("bus", "c")), ("insert", ("bus", "d")),
    ]  # fmt: skip


# What may still happen ----------------------------------------------------------------------------


def test_truth_is_decided_where_a_row_needs_one_message() -> None:
    query = "match /document[pos/p[@v = $v]]/veh/c[@v = $v]"
    doc = Document(streams=STREAMS, views={"v": query})
    assert doc.view("v").truth is Truth.POSSIBLE
    doc.feed("pos", "<p v='1'/>")
    doc.feed("veh", "<c v='1'/>")
    assert doc.view("v").truth is Truth.TRUE
    doc.end("veh")
    doc.feed("pos", "<p v='2'/>")
    doc.feed("pos", "<p v='1'><x/></p>")
    assert doc.view("v").truth is Truth.TRUE


def test_truth_follows_a_replacement() -> None:
    doc = Document(streams=STREAMS, views={"v": "match /document/pos/p[x]"})
    doc.feed("pos", "<p v='1'><x/></p>")
    assert doc.view("v").truth is Truth.TRUE
    doc.feed("pos", "<p v='1'/>")
    assert doc.view("v").truth is Truth.POSSIBLE
    assert "replaces" in str(doc.view("v").explain())
    assert doc.end("pos") == []  # no `never`: rows may have gone and come again until now
    assert doc.view("v").truth is Truth.NEVER


@pytest.mark.parametrize(
    "query",
    [
        "match /document/pos[p[@v = $v]/x/$x][p[@v = $v]/y/$x]",
        "match /document/pos[not(p)]",
        "match /document/pos[. = 'a']",
    ],
)
def test_truth_is_undecided_where_two_messages_may_have_one_key(query: str) -> None:
    doc = Document(streams=STREAMS, views={"v": query})
    doc.feed("pos", "<p v='1'/>")
    if not doc.view("v").rows():
        with pytest.raises(UndecidedError, match="replaces"):
            _ = doc.view("v").truth


def test_nothing_is_dropped_that_a_replacement_may_need() -> None:
    doc = fed("needed", collect="auto")
    doc.end("veh")
    report = doc.tune()
    assert report.unsubscribed == ()
    assert "replaces" in report.streams["pos"].reason
    assert "replaces" in str(fed(collect="auto").collect().kept)
    assert doc.filter("pos") is None
    assert said(doc.feed("pos", "<p v='1'><x>d</x></p>"))[2:] == [
        ("delete", ("bus", "c")), ("insert", ("bus", "d")),
    ]  # fmt: skip


def test_streams_are_tuned_and_collected_where_no_view_reads_the_replacing_one() -> None:
    doc = Document(streams=STREAMS, views={"v": "match /document/veh/c/$x return $x"})
    assert doc.tune().unsubscribed == ("pos",)
    assert doc.collect().streams == ("pos",)


# The cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_the_work_of_a_message_does_not_grow_with_the_messages_or_the_keys(keep: Any) -> None:
    views = {"whole": "match //positions/p#p[@vehicle = $v] return $v, p.cont"}
    sent = positions(50, 10)
    for each in ({"at": "match //positions/p[@vehicle = $v][@lat = $a] return $v, $a"}, views):
        work = []
        for vehicles, before in ((10, 0), (10, 300), (300, 300)):
            doc = made(keep, each, vehicles)
            for message in positions(before, vehicles, 2):
                doc.feed("positions", message)
            work.append(work_of(doc, sent))
        assert work[0] == work[1] == work[2]


def test_messages_set_aside_and_rows_remembered_are_as_many_as_keys() -> None:
    for keep in ("all", "needed"):
        doc = made(keep, {"at": "match //positions/p[@vehicle = $v] return $v"}, 10)
        for message in positions(200, 10):
            doc.feed("positions", message)
        engine = streams_of(doc).engine
        assert len(engine.state()[4][0][1]) == 10
        assert len(maintained(doc).engine.sites()) < 10
        if keep == "all":
            assert doc.xml().count("<p ") == 10


# The laws, on a few seeds -------------------------------------------------------------------------


@pytest.mark.parametrize("start", chunks(75, 25))
def test_rows_and_changes_are_those_of_trees_replaced(start: int) -> None:
    failures = [f for seed in range(start, start + 25) if (f := run_case(seed, "replace"))]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


def test_truth_is_that_of_all_futures() -> None:
    failures = [f for seed in range(cases(10)) if (f := run_case(seed, "replace-truth"))]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


RIGHT = "match /r[p/a[k/$k]/x/$x][q/b/x/$x] return $k"
PLAIN = "match /r/p/a[k/$k]/x/$x return $x, $k"


def replacing() -> Document:
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}" {}/>'
    p, q = call.format("p", 'replace="x"'), call.format("q", "")
    return axlog.parse(
        f"<r><p>{p}</p><q>{q}</q></r>", options=Options(keep="needed", never="joins")
    )


def rows_of(doc: Document, name: str) -> list[tuple[tuple[Any, ...], int]]:
    return [(row.values_, row.count) for row in doc.view(name).rows()]


@pytest.mark.parametrize("first", [PLAIN, RIGHT])
def test_a_view_that_starts_now_loses_no_rows_that_it_never_had(first: str) -> None:
    doc = replacing()
    doc.watch(first, "first")
    doc.feed("p", "<a><k>2</k><x>1</x></a>", at=1)
    with pytest.raises(UpdateError, match="AX307"):
        doc.watch(RIGHT, "late", since="now")
    doc.watch("match /r/p/a/k/$k return $k", "other", since="now")  # no part in common
    doc.feed("p", "<a><k>3</k><x>1</x></a>", at=2)
    assert rows_of(doc, "other") == [(("3",), 1)]


def test_a_batch_that_raises_after_a_view_was_dropped() -> None:
    doc = replacing()
    doc.watch("match /r/p/a/x/$x return $x", "first")
    doc.watch(PLAIN, "left")
    doc.feed("p", "<a><k>2</k><x>1</x></a>", at=1)
    doc.unwatch("first")
    with suppress(ValueError), doc.batch():
        doc.feed("q", "<b><x>1</x></b>", at=2)
        raise ValueError
    doc.feed("p", "<a><k>3</k><x>1</x></a>", at=3)
    assert rows_of(doc, "left") == [(("1", "3"), 1)]


def test_a_snapshot_has_the_rows_of_relations_by_name(tmp_path: Path) -> None:
    """Relations may have another order in the plan after a restart, if views were dropped."""
    source = replacing().xml()
    views = {"first": "match /r/p/a/x/$x return $x", "second": PLAIN}
    options = Options(keep="needed", never="joins")
    with axlog.open(tmp_path / "s", source, views=views, options=options) as doc:
        doc.watch("match /r/p/a[k/$k]/k/$n return $n", "third")
        doc.feed("p", "<a><k>2</k><x>1</x></a>", at=1)
        doc.unwatch("first")
        doc.snapshot()
    with axlog.open(tmp_path / "s") as doc:
        doc.feed("p", "<a><k>3</k><x>1</x></a>", at=2)
        assert rows_of(doc, "second") == [(("1", "3"), 1)]
        assert rows_of(doc, "third") == [(("3",), 1)]


def test_saved_rows_without_the_names_of_relations_are_refused() -> None:
    """Older versions wrote them in the order of their plan."""

    def made() -> Document:
        doc = Document(replacing().xml(), options=Options(keep="needed", never="joins"))
        doc.watch(PLAIN, "v")
        return doc

    older, doc = made(), made()
    older.feed("p", "<a><k>2</k><x>1</x></a>", at=1)
    state = streams_of(older).engine.state()
    ((stream, messages),) = state[-1]
    unnamed: Any = tuple((key, tuple(rows for _, rows in bags)) for key, bags in messages)
    assert any(bags for _, bags in unnamed)
    with pytest.raises(StoreError) as refused:
        streams_of(doc).engine.restore((*state[:-1], ((stream, unnamed),)))
    assert refused.value.code == "AX872"
    streams_of(doc).engine.restore(state)
    doc.feed("p", "<a><k>3</k><x>1</x></a>", at=2)
    assert rows_of(doc, "v") == [(("1", "3"), 1)]
