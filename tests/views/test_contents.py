"""Contents that views keep: at every version of a document what writing them anew would give."""

from random import Random

import pytest

from axlog.document import bulk_operations, pending, serializer
from axlog.document.loader import load, read_forest
from axlog.document.operations import Delete, Insert, Rename, Where
from axlog.document.tree import ELEMENT, Tree
from axlog.errors import AxlogError
from axlog.evaluate.collected_paths import gather, steps_of
from axlog.query.pattern import Collect
from axlog.query.query import parse_query
from axlog.views import contents
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.contents import Contents
from axlog.views.reevaluate import Reevaluate
from lab.laws import small_cases
from lab.laws.algebra_law import Watcher
from lab.reference import gather as by_definition
from tests.accepted_errors import accept
from tests.amounts import cases

ITEMS = '<r><a n="1"><b>x &amp; y</b><c/>t</a><a n="&lt;&quot;2"><b>&gt;</b><!--k--></a></r>'


def anew(tree: Tree, node: int) -> str:
    """The way that knows of namespaces, which the shorter one must agree with."""
    parts: list[str] = []
    serializer._write(tree, node, {}, parts, tree.namespaces(node))
    return "".join(parts)


def elements(tree: Tree) -> list[int]:
    return [node for node in tree.subtree(tree.root) if tree.kind_column[node] == ELEMENT]


def every(tree: Tree, kept: Contents) -> None:
    for node in elements(tree):
        assert kept.of(node) == anew(tree, node), tree.path(node)


@pytest.mark.parametrize("room", [contents.MOST, 40])
def test_kept_contents_are_those_written_anew(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MOST", room)
    monkeypatch.setattr(contents, "SHARE", 0)
    monkeypatch.setattr(bulk_operations, "FEWEST", 2)
    pattern = parse_query("match //a#x return x.id, x.cont").pattern
    kept_ones = 0
    for seed in range(cases(50)):
        random = Random(f"contents:{seed}")
        tree = load(small_cases.document(random, random.randint(1, 30)))
        view = Algebraic(tree, pattern)
        kept = view.engine.contents
        for _ in range(5):
            if random.random() < 0.7:
                every(tree, kept)
            kept_ones += len(kept._kept)
            operations = small_cases.operations(random, tree, random.choice((1, 3)))
            if random.random() < 0.3:
                targets = random.sample(elements(tree), k=min(3, len(elements(tree))))
                fragment = tuple(read_forest("<a><b>1</b><a/></a>"))
                operations = [Insert(Where.LAST, target, fragment) for target in targets]
            try:
                pending.apply(tree, operations, watchers=[Watcher(view)])
            except AxlogError as error:
                accept(error)
                continue
            every(tree, kept)
            held = sum(map(len, kept._kept.values()))
            assert kept.room == room - held >= 0
    assert kept_ones > 500


def test_what_an_update_does_not_touch_is_not_written() -> None:
    tree = load("<r>" + "<a><b>1</b><c>2</c></a>" * 20 + "</r>")
    view = Algebraic(tree, parse_query("match /r/a#x return x.cont").pattern)
    untouched = "<a><b>1</b><c>2</c></a>"
    assert [row["x.cont"] for row in view.rows()] == [untouched] * 20
    kept = view.engine.contents
    written = kept.written
    (first, *_) = tree.partition("a")
    pending.apply(
        tree, [Insert(Where.LAST, first, tuple(read_forest("<d/>")))], watchers=[Watcher(view)]
    )
    shown = sorted(row["x.cont"] for row in view.rows())
    assert shown == [*[untouched] * 19, "<a><b>1</b><c>2</c><d/></a>"]
    assert kept.written == written + 1


def test_copies_are_put_into_what_is_kept_of_their_places() -> None:
    tree = load("<r>" + "<a n='1'><b>1</b><a><c/></a></a>" * 10 + "<a/></r>")
    view = Algebraic(tree, parse_query("match //a#x return x.cont").pattern)
    outer, inner_text = '<a n="1"><b>1</b><a><c/></a></a>', "<a><c/></a>"
    shown = sorted(row["x.cont"] for row in view.rows())
    assert shown == sorted([*[outer] * 10, *[inner_text] * 10, "<a/>"])
    kept = view.engine.contents
    written = kept.written
    fragment = tuple(read_forest("<d>2<e/></d>"))
    targets = [
        node
        for node in tree.partition("a")
        if tree.kind_column[tree.parent_column[node]] == ELEMENT
    ]
    inner = [node for node in targets if tree.parent_column[node] != tree.root]
    operations = [Insert(Where.LAST, node, fragment) for node in inner]
    pending.apply(tree, operations, watchers=[Watcher(view)])
    shown = sorted(row["x.cont"] for row in view.rows())
    inserted = "<a><c/><d>2<e/></d></a>"
    assert shown == sorted([*[outer.replace(inner_text, inserted)] * 10, *[inserted] * 10, "<a/>"])
    assert kept.written == written + 10  # what is above the places, not the places
    every(tree, kept)


def test_escapes_namespaces_and_renames() -> None:
    tree = load(ITEMS)
    view = Algebraic(tree, parse_query("match /r/a#x return x.id, x.cont").pattern)
    plain = Reevaluate(tree, view.pattern)
    watchers = [Watcher(view), Watcher(plain)]
    kept = view.engine.contents
    every(tree, kept)
    assert kept
    inside = tree.partition("b")[0]
    pending.apply(tree, [Rename(inside, "{urn:x}b")], watchers=watchers)
    assert not kept
    every(tree, kept)
    assert watchers[0].told() == watchers[1].told()
    fragment = tuple(read_forest('<y:q xmlns:y="urn:y"><z/></y:q>'))
    pending.apply(tree, [Insert(Where.LAST, tree.root, fragment)], watchers=watchers)
    every(tree, kept)
    assert not kept


def test_an_update_that_was_missed_is_noticed() -> None:
    tree = load(ITEMS)
    kept = Contents(tree)
    every(tree, kept)
    pending.apply(tree, [Delete(tree.partition("b")[0])])
    every(tree, kept)


def test_an_update_that_is_given_up_leaves_no_trace() -> None:
    tree = load("<r><a><b>1</b></a><a><b>2</b></a></r>")
    view = Algebraic(tree, parse_query("match /r/a#x return x.cont").pattern)
    plan = pending.planned(tree, [Delete(tree.partition("b")[0])])
    view.before(plan.delta)
    plan.abandon()
    watchers = [Watcher(view), Watcher(Reevaluate(tree, view.pattern))]
    last = tree.partition("a")[1]
    pending.apply(tree, [Delete(last)], watchers=watchers)
    pending.apply(
        tree, [Insert(Where.LAST, tree.root, tuple(read_forest("<a>3</a>")))], watchers=watchers
    )
    assert watchers[0].told() == watchers[1].told()
    assert watchers[0].rows() == watchers[1].rows()


@pytest.mark.parametrize(
    ("path", "is_plain"),
    [("b/text()#n", True), ("*#n", True), ("@n#n", True), ("b#n[c]", False), (".//b#n", False)],
)
def test_collected_paths_by_walking_and_by_definition(path: str, is_plain: bool) -> None:
    written = parse_query(f"match //a#x[collect({path})] return x.id, n.val").pattern
    (collect,) = [b for node in written.nodes() for b in node.branches if isinstance(b, Collect)]
    assert (steps_of(collect.node) is not None) is is_plain
    for seed in range(40):
        tree = load(small_cases.document(Random(f"gather:{seed}"), 25))
        for node in elements(tree):
            assert gather(tree, collect.node, node) == by_definition(tree, collect.node, node)
