"""Snowcaps: what is kept, that it serves terms, who shares it, when it is chosen and given up."""

from typing import Any

import pytest

from axlog.document.delta import Delta
from axlog.document.loader import load, read_forest
from axlog.document.operations import Delete, Insert, Rename, Where
from axlog.document.pending import apply
from axlog.document.tree import Tree
from axlog.query.native import parse_pattern
from axlog.query.query import parse_query
from axlog.samples.auction import auction
from axlog.views.algebraic.engine import AlgebraicEngine
from axlog.views.algebraic.lattice import chain, columns_of_snowcap, may_be_kept
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.reports import Options
from axlog.views.algebraic.shape import shape_of
from axlog.views.algebraic.snowcaps import EVERY
from axlog.views.reevaluate import Reevaluate
from lab.laws.algebra_law import Watcher

LEVELS = Options(snowcaps="levels", may_recompute=False)
DEAR = "match /site/open_auctions/open_auction[//keyword]/bidder/increase#x return x.id"
CHEAP = "match /site/open_auctions/open_auction[reserve]/bidder/increase#x return x.id"
QUERY = "match /r/a#x[b][c]/d#y return x.id, y.id"


class Watch:
    """Views of one tree, each checked against re-evaluation after every update."""

    def __init__(self, tree: Tree, *views: tuple[str, Options]) -> None:
        self.tree = tree
        self.engine = AlgebraicEngine(tree)
        patterns = [(parse_pattern(query), options) for query, options in views]
        self.views = [Algebraic(tree, p, self.engine, options) for p, options in patterns]
        self._plain = [Reevaluate(tree, pattern) for pattern, _ in patterns]

    def before(self, delta: Delta) -> None:
        for view in self.views:
            view.before(delta)

    def after(self, delta: Delta) -> None:
        for view, plain in zip(self.views, self._plain, strict=True):
            view.after(delta)
            plain.after(delta)
            assert _rows(view) == _rows(plain)

    def insert(self, path: str, fragment: str) -> None:
        content = tuple(read_forest(fragment))
        apply(self.tree, [Insert(Where.LAST, n, content) for n in self.at(path)], watchers=[self])

    def delete(self, path: str) -> None:
        apply(self.tree, [Delete(n) for n in self.at(path)], watchers=[self])

    def at(self, path: str) -> list[int]:
        return [n for n in self.tree.subtree(0) if n and self.tree.path(n) == path]


def _rows(view: Any) -> list[Any]:
    return sorted((row.values_, row.count) for row in view.rows())


def many(count: int) -> Tree:
    return load("<r>" + "<a><b/><c/><d/></a>" * count + "<z/></r>")


def test_a_snowcap_has_its_parents_and_only_the_columns_that_are_needed() -> None:
    shape = shape_of(parse_pattern("match /r/a#x[b[e]][c]/d#y return y.id"))
    assert may_be_kept(shape, frozenset({1, 2}))
    assert not may_be_kept(shape, frozenset({1, 3}))
    assert columns_of_snowcap(shape, frozenset({1, 2})) == (2,)
    assert columns_of_snowcap(shape, frozenset({1, 2, 3, 5})) == (2, 3)
    assert [len(level) for level in chain(frozenset({1, 2, 3}))] == [1, 2, 3]
    conditional = shape_of(parse_pattern("match /r/a#x[not(b)]/d#y return y.id"))
    assert not may_be_kept(conditional, frozenset({1, 2}))


def test_a_kept_snowcap_serves_its_term() -> None:
    for options, is_served in ((LEVELS, True), (Options(snowcaps="leaves"), False)):
        watch = Watch(many(30), (QUERY, options))
        watch.insert("/r/a[7]", "<d/>")
        (cost,) = watch.views[0].report.costs
        assert cost[0] == {1, 2, 3, 4}
        assert cost[2] == is_served
        assert (cost[1] == 0) == is_served  # nothing was looked at beside the path


def test_snowcaps_follow_insertions_deletions_and_renames() -> None:
    watch = Watch(many(6), (QUERY, LEVELS))
    watch.insert("/r/z", "<a/>")
    watch.insert("/r", "<a><b/><b/><c/><d/></a>")
    watch.delete("/r/a[2]/b")
    watch.insert("/r/a[3]", "<c/>")
    watch.delete("/r/a[4]")
    (node,) = watch.at("/r/a[1]/c")
    apply(watch.tree, [Rename(node, "e")], watchers=[watch])
    watch.insert("/r/a[1]", "<c/>")
    watch.insert("/r/a[1]", "<d/>")
    assert watch.views[0].report.costs[0][2]


def test_a_snowcap_grows_by_a_branch_beside_its_last_node() -> None:
    """What stays below a row that another branch makes new: ΔT' ⋈ R_c of proposition 3.13."""
    watch = Watch(load("<r>1<a/></r>"), ("match /r[a/b]/text(), //c", LEVELS))
    watch.insert("/r/a", "<b/>")
    watch.insert("/r", "<c/>")
    (row,) = watch.views[0].rows()
    assert row.count == 1
    assert watch.views[0].report.costs[0][2]


def test_an_update_that_turns_a_compared_value_leaves_the_snowcap_behind() -> None:
    query = 'match /r/a#x[b = "1"][c]/d#y return x.id, y.id'
    watch = Watch(load("<r>" + "<a><b>1</b><c/><d/></a>" * 3 + "</r>"), (query, LEVELS))
    watch.insert("/r/a[1]", "<d/>")
    builds = watch.engine.lattice.builds
    watch.insert("/r/a[1]/b", "<e>2</e>")
    watch.insert("/r/a[2]", "<d/>")
    assert watch.engine.lattice.builds > builds
    assert watch.views[0].report.costs[0][2]


def test_views_that_begin_alike_share() -> None:
    other = "match /r/a#p[b][c]/d#q return p.id, q.id"
    alone = Watch(many(3), (QUERY, LEVELS))
    both = Watch(many(3), (QUERY, LEVELS), (other, LEVELS))
    assert len(both.engine.lattice) == len(alone.engine.lattice)
    both.insert("/r/a[1]", "<d/>")
    assert all(view.report.costs[0][2] for view in both.views)
    both.views[0].close()
    assert len(both.engine.lattice) == len(alone.engine.lattice)
    both.views[1].close()
    assert len(both.engine.lattice) == 0


def test_delta_tables_are_made_once_for_all_views() -> None:
    alone = Watch(many(3), (QUERY, Options()))
    three = Watch(many(3), *[(QUERY, Options())] * 3)
    for watch in (alone, three):
        watch.insert("/r/a[1]", "<d><d/></d>")
        watch.delete("/r/a[2]")
    assert three.engine.walked == alone.engine.walked == 2 + 4


def test_the_choice_follows_what_terms_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axlog.views.algebraic.snowcaps.FOLLOWING", 2.0)
    monkeypatch.setattr("axlog.views.algebraic.snowcaps.IDLING", 1.0)
    watch = Watch(
        many(60), ("match /r/a#x[//b]/d#y return x.id, y.id", Options(may_recompute=False))
    )
    view = watch.views[0]
    for _ in range(EVERY + 1):
        watch.insert("/r/a[7]", "<d/>")
    assert view.snowcaps.chosen == [frozenset({1, 2, 3})]
    assert view.report.costs[0][2]
    assert any(line.startswith("snowcap r a b: 60 rows") for line in view.details())
    for _ in range(12 * EVERY):  # the updates drift: terms of that snowcap come no more
        watch.insert("/r/z", "<q/>")
    assert view.snowcaps.chosen == []
    assert len(watch.engine.lattice) == 0
    assert view.snowcaps.choices == 2


def test_a_snowcap_is_kept_where_something_dear_stands_beside_the_path_and_only_there() -> None:
    """P5 leaves the choice open: what is beside `bidder` costs a walk over all keywords, or not."""
    text = "".join(auction(0.6 / 117))
    fragment = tuple(read_forest("<increase>9.00</increase>"))
    chosen = {}
    for name, query in (("dear", DEAR), ("cheap", CHEAP)):
        tree = load(text)
        view = Algebraic(tree, parse_query(query).pattern, options=Options(is_measured=False))
        bidders = list(tree.partition("bidder"))
        for at in range(EVERY + 1):
            inserts = [Insert(Where.LAST, node, fragment) for node in bidders[at : at + 3]]
            apply(tree, inserts, watchers=[Watcher(view)])
        assert _rows(view) == _rows(Reevaluate(tree, view.pattern))
        chosen[name] = (len(view.snowcaps.chosen), view.report.scanned)
    assert chosen["dear"] == (1, 0)
    assert chosen["cheap"][0] == 0


def test_an_engine_that_missed_an_update_sets_snowcaps_up_anew() -> None:
    tree = many(3)
    watch = Watch(tree, (QUERY, LEVELS))
    watch.insert("/r/a[1]", "<d/>")
    builds = watch.engine.lattice.builds
    apply(tree, [Insert(Where.LAST, watch.at("/r/z")[0], tuple(read_forest("<a/>")))])
    watch.insert("/r/a[1]", "<d/>")
    assert watch.engine.lattice.builds == 2 * builds
