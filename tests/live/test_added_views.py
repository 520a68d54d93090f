"""Views added to a running document: what is derived from the others is added to, and is the same.

Law: after views are added, routes, the inputs of joins, the automaton and the watched joins are
those that would be found anew.
"""

from __future__ import annotations

from random import Random

import pytest

from axlog.document.parser import parse
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Options
from axlog.match.automaton import Automaton
from axlog.match.linear_paths import needs_of
from axlog.query.compile import compile_pattern
from axlog.query.query import parse_query
from axlog.views.counting.routes import Route
from axlog.views.counting.stream_inputs import stream_inputs

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
DOCUMENT = "<r><p>{}</p><q>{}</q></r>".format(CALL.format("p"), CALL.format("q"))
SHAPES = (
    "match /r[p/a/x/$x][q/b/x/$x] return $x",
    "match /r[p/a/x/$x][q/b/x/$x][q/b/k/$x] return $x",
    "match /r[p/a/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= 2 return $x",
    "match /r[p/a/x/$x][not(q/b/x/$x)] return $x",
    "match /r[p/a/x/$x][q/b/x/$x or q/b/k/$x] return $x",
    "match /r/p/a/x/$x return $x",
    "match //a/x/$x return $x",
    "match //a[k/$k]/x/$x return $k, $x",
    "match /r[p[a/x/$x][a/k/$y]]/q/b/x/$y return $x, $y",
    "match /r/p[a/x/$x][a/k/$y] return $x, $y",
    "match //p[a/x/$x][a/k/$y] return $x, $y",
    "match /r[//a/x/$x]/q/b/x/$x return $x",
    "match /r[p/a/x/$x]/q/b/n/$n return $x, count() as n",
    "match /r/*/a/x/$x return $x",
    'match //a[k/"1"]/x/$x return $x',
    "match //b[n > 1]/x/$x return $x",
)


def _message(random: Random, name: str) -> str:
    k, n, x = (random.choice("123") for _ in range(3))
    return f"<{name}><k>{k}</k><n>{n}</n><x>{x}</x></{name}>"


@pytest.mark.parametrize("seed", range(6))
def test_added_views_change_nothing_but_what_is_added(seed: int) -> None:
    random = Random(seed)
    facts = ["key q/b by x trusted"] if seed % 3 == 0 else []
    doc = Document(DOCUMENT, facts=facts, options=Options(keep="needed" if seed % 2 else "all"))
    maintained(doc).many_relations, maintained(doc).few_joins = 1, 0
    shapes, used, rebuilt = random.sample(SHAPES, 12), 0, 0
    for number, shape in enumerate(shapes):
        before = maintained(doc).engine.rebuilt
        doc.watch(shape, f"v{number}", since="now")
        rebuilt += maintained(doc).engine.rebuilt != before
        _compare(doc)
        for _ in range(2):
            used += 1
            doc.feed("p", _message(random, "a"), at=used)
        key = f"<b><k>1</k><n>{used}</n><x>{used}</x></b>"
        doc.feed("q", key if facts else _message(random, "b"), at=used)
    assert rebuilt < 3, "most views must be added to what is there"


def _compare(doc: Document) -> None:
    """Compare what was added to with what is found anew."""
    streams, document = streams_of(doc), maintained(doc)
    collector, engine = streams.collector, document.engine
    collector.refresh()
    watched = collector._watched
    fresh = stream_inputs(engine, watched._places())
    kept = watched.inputs
    parts = {part: set(feeders) for part, feeders in kept.parts.items() if feeders}
    assert parts == {part: set(feeders) for part, feeders in fresh.parts.items() if feeders}
    assert kept.entangled == fresh.entangled
    assert kept.narrowed == fresh.narrowed
    assert kept.brought == fresh.brought
    joins = {join.state for join in collector.joins}
    for stream in ("p", "q"):
        plan = streams.engine.plan(stream)
        if plan is None:
            continue
        keys = collector.key_users(stream)
        route = streams.engine._routes.route(stream, None)
        other = Route(engine, route.node, None, keys, document.many_relations)
        assert set(route.here) - _keys(route) == set(other.here) - _keys(other)
        assert set(route.everywhere) == set(other.everywhere)
        assert _watches(route) == _watches(other)
        assert (plan.here, plan.everywhere) == (route.here, route.everywhere)
    watched.clear()
    collector.refresh()
    assert {join.state for join in collector.joins} == joins


def _keys(route: Route) -> set[object]:
    return {relation for relations, _, _ in route.keys for relation in relations}


def _watches(route: Route) -> dict[object, set[object]]:
    """The joins that rows of each relation reach."""
    keys = _keys(route)
    found: dict[object, set[object]] = {}
    for is_inside, relations in enumerate((route.here, route.everywhere)):
        for number, relation in enumerate(relations):
            if relation not in keys:
                at = number + (is_inside << 32)
                found[relation, is_inside] = {join.state for join in route.watches.get(at, ())}
    return found


def test_rows_of_added_views_are_those_of_views_watched_first() -> None:
    """The views of one document are added between messages, those of the other come first."""
    for seed in range(4):
        random = Random(f"rows {seed}")
        shapes = random.sample(SHAPES, 10)
        options = Options(keep="all")
        later, first = Document(DOCUMENT, options=options), Document(DOCUMENT, options=options)
        for doc in (later, first):
            maintained(doc).many_relations, maintained(doc).few_joins = 1, 0
        for number, shape in enumerate(shapes):
            first.watch(shape, f"v{number}")
        for number, shape in enumerate(shapes):
            later.watch(shape, f"v{number}")
            for _ in range(3):
                stream = random.choice("pq")
                message = _message(random, "a" if stream == "p" else "b")
                at = 3 * number
                later.feed(stream, message, at=at)
                first.feed(stream, message, at=at)
        for number in range(len(shapes)):
            one, other = later.view(f"v{number}").rows(), first.view(f"v{number}").rows()
            assert [(row, row.count) for row in one] == [(row, row.count) for row in other]


def test_states_of_an_automaton_follow_paths_that_come_and_go() -> None:
    texts = [
        "match /a/b/$x return $x", "match //b/c/$x return $x", "match /*/b[c] return count() as n",
        "match //a//c/$x return $x", 'match /a[@m = "1"]/b/$x return $x', "match /a//b[n > 1]/$x",
        'match //c/"2"', "match /a/*/c/$x return $x", "match //b//$x return $x",
    ]  # fmt: skip
    each = [needs_of(compile_pattern(parse_query(t).row_key.pattern).root).each for t in texts]
    for seed in range(20):
        random = Random(f"automaton {seed}")
        grown, present = Automaton(6 if seed % 4 == 0 else 8192), set[int]()
        for _ in range(40):
            number = random.randrange(len(each))
            change = grown.remove if number in present else grown.add
            for at, need in enumerate(each[number]):
                change(need, 10 * number + at)
            present ^= {number}
            fresh = Automaton()
            for one in sorted(present):
                for at, need in enumerate(each[one]):
                    fresh.add(need, 10 * one + at)
            for _ in range(2):
                root = parse(_random_tree(random, 3)).root
                assert grown.run(root) == fresh.run(root)


def _random_tree(random: Random, depth: int) -> str:
    name = random.choice("abcn") if depth < 3 else random.choice("aab")
    inside = [random.choice("12")] if random.random() < 0.4 else []
    inside += [_random_tree(random, depth - 1) for _ in range(random.randrange(3) if depth else 0)]
    return f"<{name} m='{random.choice('12')}'>{''.join(inside)}</{name}>"
