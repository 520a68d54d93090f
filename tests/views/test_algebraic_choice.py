"""The same view kept otherwise: by size of the update, with conditions, or only when read."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from axlog.document import pending
from axlog.document.delta import Delta
from axlog.document.loader import load, read_forest
from axlog.document.operations import Delete, Insert, Where
from axlog.document.tree import Tree
from axlog.live.document import Document, parse
from axlog.live.internals import maintained, maintained_view
from axlog.query.native import parse_pattern
from axlog.views.adaptive import Adaptive
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.selection import Selections
from axlog.views.change import Change, Op, Row
from axlog.views.choose import LARGE, choice
from axlog.views.counting.maintainer import Counting
from axlog.views.maintainer import Maintainer
from axlog.views.net_changes import net
from axlog.views.prices import MEASURED, Costs, Prices
from axlog.views.reevaluate import Reevaluate
from lab.laws import small_cases
from lab.laws.algebra_law import Watcher, accepted, update
from lab.laws.exact_law import RESTLESS
from tests.amounts import cases

# By size ------------------------------------------------------------------------------------------

ITEMS = "match /r/a#x[b]/c#y return x.id, y.id"
FRAGMENT = tuple(read_forest("<c>1</c>"))


CHEAP_COUNTING = Prices(counting=Costs(1.0, 1.0, 1.0))


def wide(count: int) -> Tree:
    return load("<r>" + "<a><b/><c/></a>" * count + "</r>")


def insert(tree: Tree, count: int, *watchers: Any) -> None:
    targets = list(tree.partition("a"))[:count]
    pending.apply(tree, [Insert(Where.LAST, t, FRAGMENT) for t in targets], watchers=watchers)


def test_small_updates_change_over_to_counting_and_large_ones_back() -> None:
    prices = Prices(counting=Costs(0.0, 100.0, 1.0), algebraic=Costs(300.0, 1.0, 1.0))
    tree = wide(40)
    view = Adaptive(tree, parse_pattern(ITEMS), prices=prices)
    tested, plain = Watcher(view), Watcher(Reevaluate(tree, view.pattern))
    names = []
    for size in (40, 1, 1, 1, 1, 1, 40, 40, 40, 1, 40):
        insert(tree, size, tested, plain)
        names.append(view.kept_by.name)
        assert tested.rows() == plain.rows()
        assert tested.told() == plain.told()
    # 201 us of regret an update, 241 nodes to set up
    assert names[:3] == ["algebraic", "algebraic", "counting"]
    assert names[6] == "algebraic"
    assert view.changeovers >= 2
    assert any("kept by algebraic now" in line for line in view.details())


def test_regret_waits_until_the_other_is_worth_its_price() -> None:
    tree = wide(3_000)
    view = Adaptive(tree, parse_pattern("match /r#x[a]/a#y return x.id, y.id"))
    for _ in range(3):
        insert(tree, 1, view)
    assert view.kept_by.name == "algebraic"
    assert 0 < view.regret < MEASURED.counting.node * len(tree)


@pytest.mark.parametrize(
    "query",
    [ITEMS, "match //a[b]/c/$y return $y", "match /r/a[not(d)]/c#y return y.id", "match /r/a"],
)
def test_counting_begins_with_the_rows_of_the_algebra_if_it_keeps_nothing_else(query: str) -> None:
    tree = load("<r>" + "<a><b/><c>1</c></a>" * 200 + "</r>")
    view = Adaptive(tree, parse_pattern(query), prices=CHEAP_COUNTING)
    assert isinstance(view.kept_by, Counting)
    assert view.kept_by.is_begun
    assert view.kept_by.engine.visited == 0, "nothing is evaluated"
    tested, plain = Watcher(view), Watcher(Reevaluate(tree, view.pattern))
    assert tested.rows() == plain.rows()
    for size in (1, 3, 1):
        insert(tree, size, tested, plain)
        assert tested.rows() == plain.rows()
        assert tested.told() == plain.told()
    assert view.kept_by.name == "counting"


def test_counting_begins_with_known_rows_if_few_sites_keep_some() -> None:
    """The first `a` is large, so it keeps the rows of its branches, and is evaluated."""
    large = f"<a>{'<b/>' * 70}<c>1</c></a>"
    tree = load("<r>" + large + "<a><b/><c>1</c></a>" * 400 + "</r>")
    view = Adaptive(tree, parse_pattern("match /r/a[b]/c/$y return $y"), prices=CHEAP_COUNTING)
    assert isinstance(view.kept_by, Counting)
    assert view.kept_by.is_begun
    assert 0 < view.kept_by.engine.visited < 100
    tested, plain = Watcher(view), Watcher(Reevaluate(tree, view.pattern))
    first = tree.partition("a")[0]
    for child in [n for n in tree.children(first) if tree.label(n) == "b"]:
        pending.apply(tree, [Delete(child)], watchers=[tested, plain])
        assert tested.rows() == plain.rows()
        assert tested.told() == plain.told()


@pytest.mark.parametrize("query", ["match /r#x[a]/a#y return x.id, y.id", "match /r[not(d)]/a/b"])
def test_counting_evaluates_what_its_sites_keep(query: str) -> None:
    tree = wide(100)
    view = Adaptive(tree, parse_pattern(query), prices=CHEAP_COUNTING)
    assert view.kept_by.name == "algebraic"


def test_patterns_with_not_change_over_too() -> None:
    tree = wide(200)
    view = Adaptive(tree, parse_pattern("match /r/a[not(d)]/c#y return y.id"))
    plain = Watcher(Reevaluate(tree, view.pattern))
    tested = Watcher(view)
    for _ in range(6):
        insert(tree, 1, tested, plain)
        assert tested.rows() == plain.rows()
    assert view.kept_by.name == "counting"


def test_rows_known_by_one_node_leave_the_algebra_nothing_to_regret() -> None:
    tree = wide(200)
    view = Adaptive(tree, parse_pattern("match /r/a[b]/c#y return y.id"))
    for _ in range(3):
        insert(tree, 1, view)
    assert view.kept_by.name == "algebraic"
    assert view.regret == 0


def test_differential_adaptive_keeps_the_same_view() -> None:
    changeovers = 0
    for seed in range(cases(80)):
        random = Random(f"adaptive:{seed}")
        pattern = accepted(random)
        if Adaptive.refusal(pattern) is not None:
            continue
        tree = load(small_cases.document(random, random.randint(1, 16)))
        view = Adaptive(tree, pattern, prices=RESTLESS)
        tested, plain = Watcher(view), Watcher(Reevaluate(tree, pattern))
        for _ in range(6):
            update(random, tree, [tested, plain])
            assert tested.rows() == plain.rows(), (seed, str(pattern))
            assert tested.told() == plain.told(), (seed, str(pattern))
        changeovers += view.changeovers
    assert changeovers > cases(25)


def test_the_choice_depends_on_the_document() -> None:
    pattern = parse_pattern(ITEMS)
    assert choice(pattern).name == "counting"
    assert choice(pattern, tree=wide(10)).name == "counting"
    large = wide(LARGE // 3 + 1)
    chosen = choice(pattern, tree=large)
    assert chosen.name == "adaptive"
    assert "size of each update" in chosen.reason
    join = parse_pattern("match //a[b/$x][c/$x] return $x")
    assert choice(join, tree=large).name == "counting"
    document = Document(large)
    assert document.watch(ITEMS).explain().maintainer == "adaptive"


# Conditions at the document node ------------------------------------------------------------------

SHOP = "<shop>{}{}</shop>"
ORDER = "<order><oid>1</oid></order>"
WITHOUT_STOP = (
    "//order[not(/shop/stop)]",
    "//order[count(//stop)=0]",
    "for $o in //order where empty(/shop/stop) return id($o)",
    "match //order#o, not(/shop/stop) return o.id",
    "match not(/shop/stop)",
)


@pytest.mark.parametrize(("maintainer", "orders"), [(None, 6_700), ("algebraic", 700)])
def test_rows_come_and_go_with_a_condition_at_the_document_node(
    maintainer: str | None, orders: int
) -> None:
    document = parse(SHOP.format("<stop/>", ORDER * orders))
    views = [document.watch(query, maintainer=maintainer) for query in WITHOUT_STOP]
    sizes = {v.name: 1 if v.query.text.startswith("match not") else orders for v in views}
    assert {maintained_view(view).chosen.name for view in views} == {maintainer or "adaptive"}
    assert not any(map(len, views))
    for statement, op in (
        ("insert node <order><oid>2</oid></order> into /shop", None),
        ("delete nodes /shop/order[oid = '2']", None),
        ("delete nodes /shop/stop", "insert"),
        ("insert node <stop/> as last into /shop", "delete"),
        ("rename node /shop/stop as 'go'", "insert"),
        ("rename node /shop/go as 'stop'", "delete"),
    ):
        changes = document.update(statement)
        told = Counter((change.view, change.op) for change in changes)
        assert told == ({(view, op): size for view, size in sizes.items()} if op else {})
        for view in views:
            new = {change.row for change in changes if change.view == view.name}
            assert set(view.rows()) == (new if op == "insert" else set())
    for view in views:
        assert any("rows only while" in line for line in view.explain().terms)
        assert any("no longer hold" in line for line in view.explain().terms)


@pytest.mark.parametrize("maintainer", ["algebraic", "adaptive"])
def test_an_or_at_the_document_node_is_asked(maintainer: str) -> None:
    document = parse("<a><b/><c/></a>")
    view = document.watch("//c[//z or //y]", maintainer=maintainer)
    assert view.rows() == []
    assert [change.op for change in document.update("insert node <z/> into /a/b")] == ["insert"]
    assert document.update("insert node <y/> into /a/b") == []
    assert document.update("delete nodes //z") == []
    assert [change.op for change in document.update("delete nodes //y")] == ["delete"]


def test_updates_that_meet_no_label_of_a_condition_do_not_ask_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = load("<shop><order/></shop>")
    view = Algebraic(tree, parse_pattern("match //order#o, not(/shop/stop) return o.id"))
    asked: list[Selections] = []

    def holds(self: Selections, columns: Any) -> bool:
        asked.append(self)
        return True

    monkeypatch.setattr(Selections, "holds", holds)
    orders = [Insert(Where.LAST, tree.root, tuple(read_forest("<order/>")))]
    pending.apply(tree, orders, watchers=[Watcher(view)])
    assert Watcher(view).rows() == Watcher(Reevaluate(tree, view.pattern)).rows()
    assert asked == []
    stop = [Insert(Where.LAST, tree.root, tuple(read_forest("<stop/>")))]
    pending.apply(tree, stop, watchers=[Watcher(view)])
    assert asked == [view.selections]


def test_a_row_that_moved_and_went_beside_another_that_came_says_nothing() -> None:
    """Rows are told apart by what they show, and another may show what one showed at first."""

    def change(op: Op, value: str, before: str | None = None) -> Change:
        old = None if before is None else Row(("x",), (before,))
        return Change(op, Row(("x",), (value,)), old)

    moved, came, went = change("update", "2", "1"), change("insert", "1"), change("delete", "2")
    assert net([moved, came, went]) == []
    assert [(c.op, c.row["x"]) for c in net([moved, went])] == [("delete", "1")]


# When read ----------------------------------------------------------------------------------------


class Later:
    """A maintainer that is told that its view is read seldom."""

    def __init__(self, maintainer: Maintainer, held: list[Change]) -> None:
        self.maintainer = maintainer
        self.held = held

    def before(self, delta: Delta) -> None:
        self.maintainer.before(delta)

    def after(self, delta: Delta) -> None:
        self.held += self.maintainer.later(delta)


@pytest.mark.parametrize("maintainer", ["algebraic", "counting", "adaptive", "reevaluate"])
def test_a_deferred_view_emits_the_net_changes_of_updates(maintainer: str) -> None:
    document = parse("<r><a>1</a></r>")
    view = document.watch("match /r/a#t return t.id, t.val", maintainer=maintainer).defer()
    heard: list[Change] = []
    view.subscribe(heard.append)
    assert maintained(document).insert("match /r#t return t.id", "<a>2</a>") == []
    assert document.update("delete nodes /r/a[. = '2']") == []
    assert maintained(document).insert("match /r#t return t.id", "<a>3</a>") == []
    assert heard == []
    assert [row["t.val"] for row in view.rows()] == ["1", "3"]
    assert [(change.op, change.row["t.val"]) for change in heard] == [("insert", "3")]
    assert view.refresh() == []
    view.defer(False)
    (change,) = maintained(document).insert("match /r#t return t.id", "<a>4</a>")
    assert change.position == 2
    assert [row["t.val"] for row in view.rows()] == ["1", "3", "4"]


def test_what_came_and_went_unread_is_never_matched() -> None:
    tree = wide(3)
    view = Algebraic(tree, parse_pattern(ITEMS))
    held: list[Change] = []
    for _ in range(5):
        insert(tree, 3, Later(view, held))
        newest = [n for n in tree.partition("c") if tree.string_value(n) == "1"]
        pending.apply(tree, [Delete(n) for n in newest], watchers=[Later(view, held)])
    behind = [view.is_behind]
    assert held == view.catch_up() == []
    insert(tree, 3, Later(view, held))
    behind.append(view.is_behind)
    insert(tree, 1, Watcher(view))  # not deferred any more: it catches up
    assert [*behind, view.is_behind] == [False, True, False]
    assert Watcher(view).rows() == Watcher(Reevaluate(tree, view.pattern)).rows()
