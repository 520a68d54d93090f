"""A batch whose body raises leaves nothing behind: documents, documents and stores."""

# ruff: noqa: PT012  # the body of the batch is what is tested

from pathlib import Path
from random import Random
from typing import Any

import pytest

import axlog
from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Cache, Keep, Options
from axlog.query.query import Query
from axlog.views.change import Change
from lab.laws.edits import carry_out
from lab.laws.fuzz_cases import make_case
from tests.document_invariants import invariants, snapshot


class Failed(Exception):
    """What the body of a batch raises."""


def told(changes: list[Change]) -> list[tuple[Any, ...]]:
    return [(c.op, c.row.values_, c.row.count, c.view, c.time, c.position) for c in changes]


def everything(doc: Document) -> dict[str, Any]:
    """All that can be seen of a document."""
    names = doc.views
    return {
        "tree": None if maintained(doc).forgotten else snapshot(maintained(doc).nodes()),
        "rows": {n: [(r.values_, r.count) for r in names[n].rows()] for n in names},
        "positions": {name: view.position for name, view in names.items()},
        "streams": doc.streams(),
        "letters": len(doc.dead_letters),
        "clock": doc.clock,
    }


@pytest.mark.parametrize("maintainer", ["counting", "algebraic", "adaptive", "records"])
def test_a_document_is_as_before(maintainer: str) -> None:
    doc = axlog.parse("<r><a>1</a><!--c--></r>")
    view = doc.watch("//a", "v", maintainer=maintainer)
    heard: list[Change] = []
    view.subscribe(heard.append)
    before = snapshot(maintained(doc).tree)
    with pytest.raises(Failed), doc.batch():
        doc.update("insert node <a>2</a> into /r; rename node //a[1] as 'b'", at=5)
        doc.update("delete nodes //comment()")
        raise Failed
    invariants(maintained(doc).tree)
    assert snapshot(maintained(doc).tree) == before
    assert (len(view.rows()), heard, doc.clock) == (1, [], 0)
    with doc.batch():
        changes = doc.update("insert node <a>3</a> into /r")
    assert [c.position for c in changes] == [1]
    assert told(heard) == told(changes)


def test_a_refused_statement_takes_the_first_part_back() -> None:
    doc = axlog.parse("<r/>")
    with pytest.raises(AxlogError), doc.batch():
        doc.update("insert node <a/> into /r")
        doc.update("rename node //z as 'y'")
    assert doc.xml() == "<r/>"


def test_views_of_the_body_are_gone_with_it() -> None:
    doc = axlog.parse("<r><a/></r>")
    doc.watch("//a", "old")
    with pytest.raises(Failed), doc.batch():
        doc.watch("//b", "new")
        doc.unwatch("old")
        raise Failed
    assert list(doc.views) == ["old"]
    assert [c.view for c in doc.update("insert node <a/> into /r")] == ["old"]


def test_an_inner_batch_takes_back_its_own_part() -> None:
    doc = axlog.parse("<r/>")
    view = doc.watch("//*[self::a or self::b]")
    heard: list[Change] = []
    view.subscribe(heard.append)
    with doc.batch():
        doc.update("insert node <a/> into /r")
        with pytest.raises(Failed), doc.batch():
            doc.update("insert node <b/> into /r")
            raise Failed
    assert doc.xml() == "<r><a/></r>"
    assert [change.op for change in heard] == ["insert"]


def test_what_a_listener_raises_takes_nothing_back() -> None:
    doc = axlog.parse("<r/>")
    view = doc.watch("//a")

    def listener(change: Change) -> None:
        raise Failed

    view.subscribe(listener)
    with pytest.raises(Failed), doc.batch():
        doc.update("insert node <a/> into /r")
    assert doc.xml() == "<r><a/></r>"


CALLS = (
    '<r><o><ax:call xmlns:ax="urn:axlog" stream="o"/></o>'
    '<s><ax:call xmlns:ax="urn:axlog" stream="s"/></s></r>'
)
LATE = "match /r[o/m/$x#t1][s/m/$x#t2] where t2 - t1 <= 5 return $x"


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize("cache", ["memory", "disk"])
def test_a_document_with_streams_is_as_before(keep: Keep, cache: Cache) -> None:
    """The rows that a join dropped as time passed are there again."""
    key = "key o/m by x enforced"
    facts = [key] if keep == "all" else []
    options = axlog.Options(keep=keep, cache=cache)
    tested = Document(CALLS, views={"v": LATE}, facts=facts, options=options)
    plain = Document(CALLS, views={"v": LATE}, facts=facts, options=options)
    for doc in (tested, plain):
        doc.feed("o", "<m>1</m>", at=1)
    before = everything(tested)
    with pytest.raises(Failed), tested.batch():
        tested.feed("o", "<m>2</m>", at=2)
        tested.feed("s", "<m>3</m>", at=100)
        tested.advance(200)
        tested.end("o")
        raise Failed
    assert everything(tested) == before
    for message in (("s", "<m>1</m>", 3), ("o", "<m>2</m>", 4), ("s", "<m>2</m>", 5)):
        found, wanted = (
            told(w.feed(message[0], message[1], at=message[2])) for w in (tested, plain)
        )
        assert found == wanted
    assert everything(tested) == everything(plain)


@pytest.mark.parametrize("ended", ["p", "pq", "pqs"])
@pytest.mark.parametrize("options", [{"keep": "needed"}, {"collect": "auto"}])
@pytest.mark.parametrize("rest", ["[q/b/x/$x]", "[not(q/b/x/$x)]", "[q/b/x/$x][s/c/x/$x]"])
def test_a_join_whose_streams_have_ended_is_as_before(
    rest: str, options: dict[str, Any], ended: str
) -> None:
    views = {"v": f"match /document[p/a/x/$x]{rest} return $x"}
    doc = Document(streams=["p", "q", "s"], views=views, options=axlog.Options(**options))
    for stream, message in (("p", "<a><x>1</x></a>"), ("q", "<b><x>2</x></b>")):
        doc.feed(stream, message, at=1)
    for stream in ended:
        doc.end(stream, at=2)
    if "collect" in options:
        doc.collect()
    rows, truth = [row.values_ for row in doc.view("v")], doc.view("v").truth
    with pytest.raises(Failed), doc.batch():
        doc.advance(9)
        raise Failed
    assert ([row.values_ for row in doc.view("v")], doc.view("v").truth) == (rows, truth)
    assert doc.clock == 2


def test_a_store_logs_nothing_of_it(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "s", CALLS, views={"v": LATE}) as doc:
        doc.feed("o", "<m>1</m>", at=1)
        before, record = everything(doc), doc.record
        with pytest.raises(Failed), doc.batch():
            doc.feed("s", "<m>1</m>", at=2)
            raise Failed
        assert (everything(doc), doc.record) == (before, record)
        with doc.batch():
            doc.feed("s", "<m>1</m>", at=3)
        after = everything(doc)
    with axlog.open(tmp_path / "s") as again:
        assert everything(again)["rows"] == after["rows"]
        assert again.xml() == doc.xml()


def test_oracle_random_batches_that_fail_change_nothing() -> None:
    """Random cases of law 1: some steps in a batch that raises, then the rest, beside a document
    that never saw them."""
    failed = 0
    for seed in range(60):
        random = Random(seed)
        case = make_case(random)
        if case.keep != "all" or case.validate != "all" or len(case.steps) < 2:
            continue
        tested, plain = Document(case.document), Document(case.document)
        for number, pattern in enumerate(case.patterns):
            query = Query(pattern=pattern, template=None, language="tree", text=str(pattern))
            for doc in (tested, plain):
                doc.watch(query, f"v{number}")
        middle = random.randrange(len(case.steps))
        for number, step in enumerate(case.steps):
            if number == middle:
                before = everything(tested)
                with pytest.raises(Failed), tested.batch():
                    for lost in case.steps[middle:]:
                        attempt(tested, lost)
                    raise Failed
                invariants(maintained(tested).tree)
                assert everything(tested) == before, seed
                failed += 1
            found, wanted = attempt(tested, step), attempt(plain, step)
            assert found == wanted, (seed, number)
        assert everything(tested) == everything(plain), seed
    assert failed > 30


def attempt(doc: Document, step: Any) -> object:
    try:
        return told(carry_out(doc, step))
    except AxlogError as error:
        return error.code


@pytest.mark.parametrize("share", ["off", "always"])
def test_the_first_of_two_equal_views_leaves_before_a_batch_is_rolled_back(share: Any) -> None:
    """The tables are restored by their order, which is that of the views that are left."""
    query = 'match /r[p/a[k/"{}"]/x/$x][q/b[k/"{}"]/x/$x] return $x'
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
    doc = axlog.Document(
        f"<r><p>{call.format('p')}</p><q>{call.format('q')}</q></r>",
        options=axlog.Options(keep="needed", share=share),
    )
    for name, constants in (("first", (2, 3)), ("other", (1, 1)), ("equal", (2, 3))):
        doc.watch(query.format(*constants), name)
    doc.feed("p", "<a><k>1</k><x>3</x></a>")
    doc.feed("p", "<a><k>2</k><x>4</x></a>")
    doc.unwatch("first")
    with pytest.raises(KeyError), doc.batch():
        raise KeyError
    doc.feed("q", "<b><k>1</k><x>3</x></b>")
    doc.feed("q", "<b><k>3</k><x>4</x></b>")
    assert [row["x"] for row in doc.view("other").rows()] == ["3"]
    assert [row["x"] for row in doc.view("equal").rows()] == ["4"]


def test_the_status_of_rows_is_known_after_nodes_were_collected_and_a_batch_failed() -> None:
    call = '<ax:call xmlns:ax="urn:axlog" stream="{0}"/>'
    doc = axlog.Document(
        "<r>" + "".join(f"<{s}>{call.format(s)}</{s}>" for s in "ab") + "</r>",
        facts=["key a/o by k trusted", "key b/o by k trusted"],
        views={
            "v": "match /r[a/o[w]/k/$x#t1][b/o/k/$x#t2] where t2 - t1 >= 0 and t2 - t1 <= 5"
            " return $x"
        },
    )
    for stream, inside, at in (
        ("a", "<w/><k>1</k>", 1), ("b", "<k>1</k>", 2), ("a", "<k>2</k>", 3),
        ("b", "<k>3</k>", 4), ("a", "<w/><k>4</k>", 5),
    ):  # fmt: skip
        doc.feed(stream, f"<o>{inside}</o>", at=at)
    doc.advance(20)
    assert doc.collect().nodes
    view = doc.view("v")
    before = [view.status({"x": x}).value for x in "12349"]
    assert before == ["true", "never", "never", "never", "possible"]
    with pytest.raises(ZeroDivisionError), doc.batch():
        doc.feed("a", "<o><w/><k>5</k></o>", at=21)
        raise ZeroDivisionError
    assert [view.status({"x": x}).value for x in "12349"] == before
    doc.feed("a", "<o><w/><k>5</k></o>", at=21)
    doc.advance(40)
    assert [view.status({"x": x}).value for x in "59"] == ["never", "possible"]


def test_rows_ruled_out_before_a_batch_are_not_ruled_out_again_after_it() -> None:
    # Law `shared`, seed 71000429: rows that are kept although they wait no more.
    doc = Document(
        '<r xmlns:ax="urn:axlog"><p><ax:call stream="p"/></p><q><ax:call stream="q"/></q></r>',
        facts=["key p/a by x trusted"],
        options=Options(keep="needed", collect="off", never="kept"),
    )
    view = doc.watch('match /r[p/a[k/"1"]/x/$x][q/b/x/$x] return $x')
    emitted: list[tuple[str, str | None]] = []
    view.subscribe(lambda change: emitted.append((change.op, change.row["x"])))
    doc.feed("q", "<b><x>3</x></b>", at=18)
    doc.feed("p", "<a><k>2</k><x>3</x></a>", at=20)
    with pytest.raises(KeyError), doc.batch():
        doc.feed("p", "<a><k>1</k><x>1</x></a>", at=21)
        raise KeyError
    doc.end("p", at=23)
    assert emitted == [("never", "3"), ("never", None)]


def test_a_join_of_three_is_watched_after_a_batch_that_failed() -> None:
    # Law `prospects`, seed 7100025: its key values counted as forgotten.
    parts = "".join(
        f'<{s}><ax:call xmlns:ax="urn:axlog" stream="{s}"/></{s}>' for s in ("f", "g", "h")
    )
    doc = Document(
        f"<r>{parts}</r>", facts=["key f/a by k trusted"], options=Options(keep="needed")
    )
    doc.watch("match /r[f/a/k/$x][g/a/k/$x][h/a/k/$x] return $x", "v")
    with pytest.raises(Failed), doc.batch():
        doc.feed("h", "<a><k>1</k></a>")
        raise Failed
    doc.feed("h", "<a><k>1</k></a>")
    assert [told([change]) for change in doc.end("f")]
    assert "reported by the join's state" in str(doc.view("v").explain())


@pytest.mark.parametrize("keep", ["all", "needed"])
@pytest.mark.parametrize(
    ("query", "ended", "is_fed"),
    [  # exact once the stream has ended whose time is compared with a constant
        ("u - t <= 3 and t >= 1.5", "p", True),
        # the row without values waits for the instant of the end
        ("u - t >= 0 and u - t <= 3", "q", True),
        ("u - t >= 0 and u - t <= 3", "q", False),
    ],
)
def test_never_does_not_depend_on_a_batch_that_failed(
    keep: Keep, query: str, ended: str, is_fed: bool
) -> None:
    def changes(fails: bool) -> list[list[tuple[Any, ...]]]:
        calls = "".join(
            f'<{s}><ax:call xmlns:ax="urn:axlog" stream="{s}"/></{s}>' for s in ("p", "q")
        )
        doc = Document(f"<r>{calls}</r>", options=Options(keep=keep, never="joins"))
        doc.watch(f"match /r[p/a[k/'2']/x/$x#t][q/b/x/$x#u] where {query} return $x", "v")
        found = []
        if is_fed:
            found.append(doc.feed("p", "<a><k>2</k><x>1</x></a>", at=6))
        found.append(doc.end(ended, at=6))
        if fails:
            with pytest.raises(Failed), doc.batch():
                doc.advance(40)
                raise Failed
        found.append(doc.advance(20))
        found.append(doc.end("q" if ended == "p" else "p", at=21))
        return [told(each) for each in found]

    alone = changes(fails=False)
    assert changes(fails=True) == alone
    assert any(each[0] == "never" for step in alone for each in step)
