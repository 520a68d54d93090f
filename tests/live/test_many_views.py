"""Many views of different shapes on one document have what each of them has alone."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

import axlog
from axlog.document.parser import parse
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Options

KEYS = ("key orders/order by oid trusted", "key shipped/order by oid trusted")
WITHIN = (
    "match /document[orders/order[{}]/oid/$x#o][shipped/order/oid/$x#s]"
    " where s - o > 0 and s - o <= {} return $x, o.time"
)
ALL_THREE = (
    "match /document[orders/order[{}]/oid/$x][shipped/order/oid/$x][//order/client/$c]"
    " return $x, $c"
)
UNSHIPPED = "match /document[orders/order[{}]/oid/$x][not(shipped/order/oid/$x)] return $x"
COUNT = "match //order[{}]/client/$c return $c, count() as n"
NAMES = [f"n{number}" for number in range(12)]


def queries() -> dict[str, str]:
    found = {}
    for number, name in enumerate(NAMES):
        found[f"within {name}"] = WITHIN.format(name, 1 + number % 4)
        found[f"all {name}"] = ALL_THREE.format(name)
        found[f"unshipped {name}"] = UNSHIPPED.format(name)
        found[f"count {name}"] = COUNT.format(name)
    return found


def messages(count: int, seed: int) -> list[tuple[str, str, float]]:
    random, sent = Random(seed), []
    open_orders: list[int] = []
    for number in range(count):
        at = number / 2
        if open_orders and random.random() < 0.4:
            oid = open_orders.pop(random.randrange(len(open_orders)))
            sent.append(("shipped", f"<order><oid>{oid}</oid></order>", at))
            continue
        open_orders.append(number)
        names = "".join(f"<{name}/>" for name in random.sample(NAMES, random.choice((0, 1, 1, 3))))
        client = f"<client>c{random.randrange(3)}</client>"
        sent.append(("orders", f"<order><oid>{number}</oid>{client}{names}</order>", at))
    return sent


def watched(
    views: dict[str, str], facts: tuple[str, ...] = KEYS, **options: object
) -> axlog.Document:
    made = axlog.Options(share="off", **options)  # type: ignore[arg-type]
    return axlog.Document(streams=["orders", "shipped"], views=views, facts=facts, options=made)


def plain(changes: list[axlog.Change], view: str) -> list[dict[str, object]]:
    return [change.to_dict() for change in changes if change.view == view]


@pytest.mark.parametrize(("facts", "keep"), [(KEYS, "all"), ((), "all"), ((), "needed")])
def test_many_views_have_what_they_have_alone(facts: tuple[str, ...], keep: str) -> None:
    views = queries()
    together = watched(views, facts, keep=keep)
    alone = {name: watched({name: query}, facts, keep=keep) for name, query in views.items()}
    for stream, message, at in messages(40, 3):
        changes = together.feed(stream, message, at=at)
        for name, doc in alone.items():
            assert plain(changes, name) == plain(doc.feed(stream, message, at=at), name)
    changes = together.advance(100)
    for name, doc in alone.items():
        assert plain(changes, name) == plain(doc.advance(100), name)
        assert together.view(name).rows() == doc.view(name).rows()
    engine = streams_of(together).engine
    assert engine.automaton_nodes("orders"), "the relations are found by an automaton"
    assert streams_of(together).collector.is_many


def test_a_message_reaches_only_the_joins_that_it_concerns() -> None:
    together = watched(queries())
    for stream, message, at in messages(20, 5):
        together.feed(stream, message, at=at)
    route = streams_of(together).engine.route("orders")
    assert route is not None
    plan = streams_of(together).engine.plan("orders")
    assert plan is not None
    root = parse("<order><oid>7</oid><n3/></order>").root
    found = plan.found(root, 10**9, b"<order><oid>7</oid><n3/></order>")
    reached = {str(join.relation.node) for join in route.touched(found)}
    assert reached
    assert all("n3" in each for each in reached)


def test_streams_at_one_place_share_a_plan() -> None:
    doc = axlog.Document(
        '<r xmlns:ax="urn:axlog"><ax:call stream="a"/><ax:call stream="b"/></r>',
        views={"all": "match /r/x/$x return $x"},
    )
    doc.feed("a", "<x>1</x>")
    doc.feed("b", "<x>2</x>")
    engine = streams_of(doc).engine
    assert engine.plan("a") is engine.plan("b")
    assert [row["x"] for row in doc.view("all").rows()] == ["1", "2"]
    assert len(maintained(doc).views) == 1


def test_explain_shows_the_parts_that_other_views_have() -> None:
    doc = axlog.Document(
        streams=["s"],
        views={
            "ids": "match /document/s/order[client]/oid/$x return $x",
            "sums": "match /document[s/order[client]/oid/$x][s/sum/$y] return $x, $y",
            "same": "match /document/s/order[client]/oid/$x return $x",
            "other": "match //invoice/$x return $x",
        },
        options=axlog.Options(share="always"),
    )
    for number in range(9):
        doc.watch(f'match /document/s/order[client/"{number}"]/oid/$x return $x', f"v{number}")
    assert doc.view("ids").explain().shared_parts == ("the whole pattern: with same",)
    parts = doc.view("sums").explain().shared_parts
    assert parts == ("s/order[client]/oid/$x: with ids, same",)
    assert doc.view("other").explain().shared_parts == ()
    assert "shared parts\n  the whole pattern: with same" in str(doc.view("ids").explain())
    assert "one plan for 9 views" in str(doc.view("v3").explain())


def test_equal_groups_are_kept_once(tmp_path: Path) -> None:
    text = '<r xmlns:ax="urn:axlog"><p><ax:call stream="p"/></p></r>'
    group = "match /r/p/a[n/$n]/x/$x return $x, sum($n) as s, count() as c"
    ends = [f"having s > {least}" for least in range(5)] + ["order by s limit 2", ""]

    def feed(doc: Document, start: int, stop: int) -> None:
        for at in range(start, stop):
            doc.feed("p", f"<a><n>{at % 7}</n><x>{at % 4}</x></a>", at=at)

    def opened(place: Path, queries: dict[str, str]) -> Any:
        return axlog.open(place, text, options=Options(keep="needed"), views=queries)

    queries = {f"v{number}": f"{group} {end}".strip() for number, end in enumerate(ends)}
    with opened(tmp_path / "many", queries) as doc:
        feed(doc, 0, 20)
        doc.compact()
        (one,) = (maintained(doc).engine.arrangements or {}).values()
        assert len(one.users) == len(ends)
        assert "the group: with v0, v2, v3 and 3 more" in str(doc.view("v1").explain())
        doc.unwatch("v3")
        feed(doc, 20, 30)
    del queries["v3"]
    with opened(tmp_path / "many", queries) as doc:  # the state of each view, and one group again
        (one,) = (maintained(doc).engine.arrangements or {}).values()
        assert len(one.users) == len(queries)
        feed(doc, 30, 40)
        for name, query in queries.items():
            alone = Document(text, views={name: query})
            feed(alone, 0, 40)
            assert doc.view(name).rows() == alone.view(name).rows()


def test_a_group_of_one_view_gets_a_second_view_and_loses_it() -> None:
    text = '<r xmlns:ax="urn:axlog"><p><ax:call stream="p"/></p></r>'
    query = "match /r/p/a[n/$n]/x/$x return $x, sum($n) as s, count() as c"
    doc = Document(text, views={"first": query}, options=Options(keep="all"))
    alone = Document(text, views={"first": query}, options=Options(keep="all"))
    second: list[Any] = []

    def feed(start: int, stop: int) -> None:
        for at in range(start, stop):
            message = f"<a><n>{at % 7}</n><x>{at % 4}</x></a>"
            changes = doc.feed("p", message, at=at)
            wanted = [(each.op, each.row, each.before) for each in alone.feed("p", message, at=at)]
            for name in doc.views:
                found = [each for each in changes if each.view == name]
                assert [(each.op, each.row, each.before) for each in found] == wanted
            second.extend(each for each in changes if each.view == "second")
            assert doc.view("first").rows() == alone.view("first").rows()

    feed(0, 10)
    doc.watch(query, name="second")
    feed(10, 20)
    assert doc.view("second").rows() == doc.view("first").rows()
    doc.unwatch("second")
    feed(20, 30)
    assert len(second) == 10
