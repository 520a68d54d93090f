"""Finding nodes by columns: the same nodes as the reference and as the bottom-up interpreter find.

Documents are changed by random updates before they are asked, so that handles are used again and
siblings have components beyond one integer; the value index follows those updates.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from axlog.document import pending
from axlog.document.ids import Id
from axlog.document.loader import load, read_forest
from axlog.document.operations import Delete, Insert, Where
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import AxlogError, UnsupportedError
from axlog.evaluate import node_sets
from axlog.evaluate.answers import selected
from axlog.evaluate.columns import FEW, MarkedNodes, columns_of, handles
from axlog.evaluate.definition import rows
from axlog.evaluate.path_walker import LONGEST, walker_of
from axlog.evaluate.select import MOST_WALKED, covers, path_of, select
from axlog.query.compile import compile_pattern
from axlog.query.native import parse_pattern
from axlog.query.pattern import Kind, Output, Pattern
from lab.laws import small_cases
from tests.accepted_errors import accept

DOWNWARD = small_cases.Features(times=False, outputs=(Kind.ID,))
EVERY_AXIS = replace(DOWNWARD, siblings=True, reverse=True)


def living(seed: int) -> tuple[Random, Tree, ValueIndex]:
    """A document that random updates have changed, and an index that followed them."""
    random = Random(seed)
    tree = load(small_cases.document(random, random.choice((8, 20, 40))))
    index = ValueIndex(tree)
    for label in (*small_cases.LABELS, *(f"@{key}" for key in small_cases.KEYS)):
        index.find(label, "1")
    for _ in range(random.randrange(6)):
        try:
            pending.apply(tree, small_cases.operations(random, tree), watchers=[index])
        except AxlogError as error:
            accept(error)
            continue
    return random, tree, index


def selecting(random: Random, features: small_cases.Features) -> Pattern | None:
    """A random pattern that selects one of its nodes."""
    pattern = small_cases.pattern(random, features)
    names = {output.of for output in pattern.outputs if output.kind is not Kind.VARIABLE}
    if not names:
        return None
    return replace(pattern, outputs=(Output(Kind.ID, min(names)),))


def by_definition(tree: Tree, pattern: Pattern) -> list[int]:
    found = [key[0] for key in rows(tree, pattern)]
    return [tree.find(one) for one in sorted(i for i in found if isinstance(i, Id))]


@pytest.mark.parametrize(
    ("few", "walked"), [(0, 0), (FEW, 0), (FEW, 12), (FEW, MOST_WALKED)],
    ids=["arrays", "few", "walks that give up", "walks"],
)  # fmt: skip
@pytest.mark.parametrize("features", [DOWNWARD, EVERY_AXIS], ids=["downward", "every axis"])
def test_oracle_select(
    few: int, walked: int, features: small_cases.Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_sets, "FEW", few)
    monkeypatch.setattr("axlog.evaluate.select.MOST_WALKED", walked)
    compared = found = 0
    for seed in range(350):
        random, tree, index = living(seed)
        pattern = selecting(random, features)
        if pattern is None or covers(pattern) is not None:
            continue
        compared += 1
        expected = by_definition(tree, pattern)
        found += bool(expected)
        assert select(tree, pattern) == expected, (seed, str(pattern))
        assert select(tree, pattern, index) == expected, (seed, str(pattern))
    assert compared > 60
    assert found > 15


def test_differential_select_and_interpreter() -> None:
    compared = 0
    for seed in range(350):
        random, tree, _ = living(seed)
        pattern = selecting(random, replace(DOWNWARD, collects=False))
        if pattern is None or compile_pattern(pattern).refusal is not None:
            continue
        expected = selected(tree, pattern)
        compared += 1
        assert select(tree, pattern) == expected, (seed, str(pattern))
    assert compared > 60


def test_oracle_document_order() -> None:
    for seed in range(200):
        random, tree, _ = living(seed)
        nodes = list(tree.subtree(DOCUMENT_NODE))
        some = [node for node in nodes if random.random() < 0.7]
        random.shuffle(some)
        with columns_of(tree) as columns:
            ordered = columns.in_document_order(handles(some)).tolist()
        assert ordered == [node for node in nodes if node in set(some)]


def test_order_after_insertions_at_one_spot() -> None:
    """Components grow beyond one integer; the order is still the document's."""
    tree = load("<r><a/><b/></r>")
    first = tree.partition("a")[0]
    for _ in range(40):
        pending.apply(tree, [Insert(Where.AFTER, first, tuple(read_forest("<c/><c/>")))])
        first = tree.next(first)
    found = select(tree, parse_pattern("match //*#x return x.id"))
    assert found == list(tree.subtree(tree.root))
    assert len(found) == 83


def test_oracle_value_index() -> None:
    """After every update the index says what a scan of the partition says."""
    for seed in range(300):
        _, tree, index = living(seed)
        for label in index.labels():
            scanned: dict[str, set[int]] = {}
            for node in tree.partition(label):
                scanned.setdefault(tree.string_value(node), set()).add(node)
            for value in (*scanned, "no such value"):
                assert set(index.find(label, value) or ()) == scanned.get(value, set()), seed


def test_an_indexed_value_costs_no_walk() -> None:
    people = "".join(f'<person id="p{i}"><name>n{i}</name></person>' for i in range(500))
    tree = load(f"<site>{people}</site>")
    index = ValueIndex(tree)
    pattern = parse_pattern('match /site/person#x[@id = "p7"] return x.id')
    (target,) = select(tree, pattern, index)
    assert index.built == 500
    pending.apply(tree, [Delete(target)], watchers=[index])
    assert select(tree, pattern, index) == []
    assert index.built == 500, "an update makes the index look only at what it touched"


def test_an_index_that_missed_an_update_starts_anew() -> None:
    tree = load('<r><a k="1"/></r>')
    index = ValueIndex(tree)
    pattern = parse_pattern('match //a#x[@k = "1"] return x.id')
    assert len(select(tree, pattern, index)) == 1
    insert = [Insert(Where.LAST, tree.root, tuple(read_forest('<a k="1"/>')))]
    pending.apply(tree, insert)
    assert len(select(tree, pattern, index)) == 2
    pending.apply(tree, insert)
    pending.apply(tree, insert, watchers=[index])
    assert len(select(tree, pattern, index)) == 4


def test_elements_with_elements_inside_are_not_indexed() -> None:
    tree = load("<r><a>1<b>2</b></a><a>12</a></r>")
    index = ValueIndex(tree)
    pattern = parse_pattern('match //a#x[. = "12"] return x.id')
    assert len(select(tree, pattern, index)) == 2
    assert index.labels() == []


def test_the_tree_can_grow_after_a_selection() -> None:
    tree = load("<r><a/></r>")
    for _ in range(3):
        nodes = select(tree, parse_pattern("match //a#x return x.id"))
        pending.apply(tree, [Insert(Where.LAST, nodes[0], tuple(read_forest("<a/>")))])
    assert len(tree) == 5


def test_oracle_walks() -> None:
    """Paths with conditions of every kind that a walk handles, and holes in them."""
    tree = load(
        '<r><a k="1"><b>1</b><b>2</b><c/></a><a><b>2</b><a k="2"><b>3</b></a>x</a><!--y--><d/></r>'
    )
    for path in (
        '/r/a#x[@k = "1"]', "/r/a[b]/b#x", "/r/a[not(c)]/b#x", "/r/*#x[b or c]", "//a#x[@k]",
        "//a/b#x", "/r//b#x", "/r/a//b#x", '/r/a[b = "2"]/b#x[. != "1"]', "/r/a/text()#x",
        "/r/comment()#x", "/r/node()#x", "/r/none//b#x", "/r/a[a[b]]/a/b#x", "/r/*:a#x[@*]",
    ):  # fmt: skip
        pattern = parse_pattern(f"match {path} return x.id")
        assert covers(pattern) is None
        assert select(tree, pattern) == by_definition(tree, pattern), path
        steps = path_of(pattern, "x")
        walker = None if steps is None else walker_of(steps)
        assert walker is not None, path
        walked = walker(tree, {}, 100)
        assert walked == (None if path == "//a/b#x" else select(tree, pattern)), path
        assert walker(tree, {}, 0) in (None, []), path


def test_a_walk_gives_up_after_its_worth() -> None:
    many = load(f"<r>{'<a><b/></a>' * 50}</r>")
    pattern = parse_pattern("match /r/a/b#x return x.id")
    steps = path_of(pattern, "x")
    assert steps is not None
    walker = walker_of(steps)
    assert walker is not None
    assert walker(many, {}, 101) == list(many.partition("b"))
    assert walker(many, {}, 100) is None
    wide = load(f"<r><a>{'<c/>' * LONGEST}<b/></a></r>")
    steps = path_of(parse_pattern("match /r/a#x[b] return x.id"), "x")
    assert steps is not None
    walker = walker_of(steps)
    assert walker is not None
    assert walker(wide, {}, 100) is None, "a branch looks at so many children only"


@pytest.mark.parametrize(
    "text", ["match //$x return $x", "match //a#s//b#t return s.id, t.id", "match //a"]
)
def test_patterns_that_select_no_nodes_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        select(load("<r/>"), parse_pattern(text))
    assert caught.value.code == "AX211"


def test_joins_are_left_to_the_interpreter() -> None:
    tree = load("<r><a>1</a><b>1</b><b>2</b></r>")
    pattern = parse_pattern("match /r[a = $x]/b#t[. = $x] return t.id")
    assert covers(pattern) == "variables join parts of it"
    assert [tree.string_value(n) for n in select(tree, pattern)] == ["1"]


@pytest.mark.parametrize(
    "join", ["with_parent_in", "with_ancestor_in", "with_child_in", "with_descendant_in", "common",
             "without"],
)  # fmt: skip
def test_joins_of_few_nodes_are_those_by_masks(join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(30):
        random, tree, _ = living(seed)
        with columns_of(tree) as columns:
            every = columns.nodes().tolist() + columns.attributes().tolist()
            sides = [handles(random.sample(every, random.randint(0, len(every)))) for _ in "ab"]
            found = {}
            for share in (0, 1 << 40):  # never and always by masks
                monkeypatch.setattr("axlog.evaluate.columns._SHARE", share)
                found[share] = getattr(columns, join)(*sides).tolist()
                marked = MarkedNodes(len(columns.kind), sides[0][:2]).and_also(sides[0][2:])
                assert marked[sides[1]].tolist() == columns.mask(sides[0])[sides[1]].tolist()
            assert found[0] == found[1 << 40]
