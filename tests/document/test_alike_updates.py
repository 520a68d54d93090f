"""Statements that do one thing at many places: the same document, node by node and id by id, as one
operation after the other gives (laws 1, 2 and 6 rest on it), whatever came before and comes after.
"""

from contextlib import suppress
from random import Random

import pytest

from axlog.document import bulk_columns, bulk_operations, pending
from axlog.document.blocks import FixedContent
from axlog.document.bulk_operations import Deletion, Insertion
from axlog.document.delta import Planned
from axlog.document.loader import load, read_forest
from axlog.document.operations import Attribute, Delete, Insert, Operation, Repeated, Where
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.pending import Plan, planned
from axlog.document.tree import DOCUMENT_NODE, ELEMENT, Tree
from axlog.document.tree_codec import load_tree, save_tree
from axlog.errors import AxlogError, UpdateError
from axlog.evaluate.select import select
from axlog.evaluate.statements import operations_of
from axlog.evaluate.text_search import labelled
from axlog.live.document import parse
from axlog.query.native import parse_pattern
from axlog.query.statement_templates import OFTEN
from axlog.query.update_parser import parse_statements
from lab.laws import small_cases
from tests.accepted_errors import accept
from tests.amounts import chunks
from tests.document_invariants import invariants, snapshot

MIXED = "<r>one<a k='1'><b>x</b>tail</a>two<a/>three<b m='2'/><!--c--><a><a><b/></a></a></r>"

FRAGMENTS = ("<b/>", "<a k='1'><b>x<c/></b>y</a>", "<p:a xmlns:p='u'><p:b/></p:a>")
FIXED = {what: FixedContent(read_forest(what)) for what in FRAGMENTS}
"""Content whose block is kept, for all trees and depths."""


@pytest.fixture(autouse=True, params=["arrays", "ranges", "few"])
def _from_one_operation_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few nodes are handled one by one, subtrees are ranges of handles or not: all ways agree."""
    few = 24 if request.param == "few" else 0
    if request.param != "few":
        monkeypatch.setattr(bulk_columns, "_unedited", lambda tree, roots: None)
    monkeypatch.setattr(bulk_operations, "FEWEST", 3 if few else 1)
    monkeypatch.setattr(bulk_operations, "FEW", few)
    monkeypatch.setattr(bulk_columns, "FEW", few)
    monkeypatch.setattr(bulk_columns, "ONE_BY_ONE", few)
    monkeypatch.setattr(bulk_columns, "SMALL", 0 if request.param == "ranges" else 150)
    monkeypatch.setattr(bulk_columns, "MANY", 3)
    if request.param == "arrays":
        monkeypatch.setattr(bulk_columns, "SHARE", 0)  # nodes leave their partitions at once


def seen(tree: Tree) -> dict[str, object]:
    """What a document is, handles left out: nodes may get others."""
    found = snapshot(tree)
    nodes = list(tree.subtree(DOCUMENT_NODE))
    found["nodes"] = [(tree.kind(n), tree.label(n), tree.time(n)) for n in nodes]
    found["partitions"] = {label: len(tree.partition(label)) for label in tree.labels()}
    found["calls"] = {stream: str(tree.id(node)) for stream, node in tree.calls().items()}
    return found


def nodes_of(tree: Tree, targets: list[str]) -> list[int]:
    by_id = {str(tree.id(node)): node for node in tree.subtree(DOCUMENT_NODE)}
    return [by_id[each] for each in targets]


def one_thing(random: Random, tree: Tree) -> tuple[list[str], str]:
    """Targets by their ids, and what is done with them."""
    nodes = [n for n in tree.subtree(DOCUMENT_NODE) if n != DOCUMENT_NODE]
    if random.random() < 0.5:
        nodes = [n for n in nodes if tree.kind_column[n] == ELEMENT]
        what = random.choice(FRAGMENTS)
    else:
        what = "delete"
    chosen = [n for n in nodes if random.random() < random.choice((0.2, 0.6, 0.9))]
    random.shuffle(chosen)
    return [str(tree.id(n)) for n in chosen], what


def operations(tree: Tree, targets: list[str], what: str, where: Where) -> list[Operation]:
    nodes = nodes_of(tree, targets)
    if what == "delete":
        return [Delete(node) for node in nodes]
    fixed = FIXED.get(what) if len(nodes) % 2 else None
    content = tuple(read_forest(what)) if fixed is None else fixed
    return [Insert(where, node, content) for node in nodes]


@pytest.mark.parametrize("start", chunks(200, 100))
def test_differential_with_one_operation_after_the_other(start: int) -> None:
    kinds = set()
    for seed in range(start, start + 100):
        random = Random(f"alike:{seed}")
        text = MIXED if seed % 4 == 0 else small_cases.document(random, random.randint(3, 25))
        one, two = load(text), load(text)
        for step in range(4):
            targets, what = one_thing(random, one)
            where = random.choice((Where.INTO, Where.LAST))
            try:
                Plan(one, operations(one, targets, what, where), step).commit()
            except UpdateError as error:
                with pytest.raises(UpdateError, match=error.code):
                    pending.apply(two, operations(two, targets, what, where), step)
                continue
            plan = planned(two, operations(two, targets, what, where), step)
            kinds.add(type(plan))
            _check_delta(two, plan)
            plan.commit()
            invariants(two)
            assert seen(one) == seen(two), seed
    assert kinds == {Insertion, Deletion, Plan}


def _check_delta(tree: Tree, plan: Planned) -> None:
    """What the delta says beside its roots is so."""
    delta = plan.delta
    for block in delta.blocks:
        assert sorted(block.ravel().tolist()) == sorted(
            node for root in delta.added for node in tree.subtree(root)
        )
    if delta.nodes_removed is not None:
        assert sorted(delta.nodes_removed.tolist()) == sorted(
            node for root in delta.removed for node in tree.subtree(root)
        )


def test_an_abandoned_plan_leaves_the_document_alone() -> None:
    tree = load(MIXED)
    before = snapshot(tree)
    elements = [n for n in tree.subtree(DOCUMENT_NODE) if tree.kind_column[n] == ELEMENT]
    for what in ("<b>x<c/></b>", "delete"):
        targets = [str(tree.id(n)) for n in elements[1:]]
        plan = planned(tree, operations(tree, targets, what, Where.LAST), 3)
        plan.abandon()
        assert snapshot(tree) == before
        invariants(tree)


@pytest.mark.parametrize(
    "content",
    [
        ("text",),
        (Attribute("k", "1"),),
        tuple(read_forest("<a><ax:call xmlns:ax='urn:axlog' stream='f'/></a>")),
    ],
)
def test_other_content_goes_one_by_one(content: tuple[object, ...]) -> None:
    tree = load("<r><a/><a/></r>")
    nodes = list(tree.partition("a"))
    made: list[Operation] = [Insert(Where.LAST, n, content) for n in nodes]  # type: ignore[arg-type]  # any content
    assert bulk_operations.plan_of(tree, made, 0, DEFAULT_LIMITS, False) is None


def test_what_is_wrong_is_said_as_for_one_operation() -> None:
    tree = load("<r><a/><a/></r>")
    a, b = tree.partition("a")
    gone = [Delete(a), Delete(b)]
    pending.apply(tree, gone)
    for wrong in (gone, [Delete(0), Delete(0)], [Delete(99), Delete(98)]):
        with pytest.raises(AxlogError):
            planned(tree, wrong)


def test_deep_content_is_refused_by_the_limit_at_the_deepest_place() -> None:
    limits = Limits(depth=4)
    tree = load("<r><a/><a><b/></a></r>", limits=limits)
    content = FixedContent(read_forest("<c><d/></c>"))
    elements = [*tree.partition("a"), *tree.partition("b")]
    before = snapshot(tree)
    planned(tree, [Insert(Where.LAST, n, content) for n in elements]).abandon()  # keeps the block
    with pytest.raises(AxlogError):
        planned(tree, [Insert(Where.LAST, n, content) for n in elements], limits=limits)
    assert snapshot(tree) == before
    pending.apply(
        tree, [Insert(Where.LAST, n, content) for n in tree.partition("a")], limits=limits
    )
    invariants(tree)


@pytest.mark.parametrize("start", [0, 60])
def test_differential_large_deletions_among_other_operations(start: int) -> None:
    """What goes is gathered in arrays from `MANY` nodes on: columns and delta come out the same."""
    gathered = 0
    for seed in range(start, start + 60):
        random = Random(f"many:{seed}")
        text = small_cases.document(random, random.randint(6, 25))
        one, two = load(text), load(text)
        made = small_cases.operations(random, one, 4)
        try:
            plan = Plan(two, made)
        except AxlogError as error:
            accept(error)
            continue
        gathered += plan.delta.nodes_removed is not None
        _check_delta(two, plan)
        plan.commit()
        invariants(two)
        bulk_columns.MANY = 1 << 30
        Plan(one, made).commit()
        bulk_columns.MANY = 3
        assert snapshot(one) == snapshot(two), seed
    assert gathered > 5


def test_copies_of_a_kept_fragment_share_their_strings() -> None:
    tree, plain = load("<r><a/><a/><a>x</a></r>"), load("<r><a/><a/><a>x</a></r>")
    fixed, content = FixedContent(read_forest("<b k='1'>x</b>")), read_forest("<b k='1'>x</b>")
    for _ in range(3):
        for each, given in ((tree, fixed), (plain, tuple(content))):
            made = [Insert(Where.LAST, node, given) for node in each.partition("a")]
            pending.apply(each, made)
            invariants(each)
    assert tree.shared_texts == ["1", "x"]
    assert not tree.texts_by_node
    assert len(plain.texts_by_node) == 18
    assert snapshot(tree) == snapshot(plain)
    assert labelled(tree, "x") == labelled(plain, "x")
    assert len(labelled(tree, "x")) == 10
    for query in ('match //b#x["x"] return x.id', 'match //b#x[@k = "1"] return x.id'):
        assert len(select(tree, parse_pattern(query))) == 9
    other = tree.copied()
    pending.apply(tree, [Delete(node) for node in tree.partition("b")[:4]])
    restored = load_tree(save_tree(tree))
    assert snapshot(restored) == snapshot(tree)
    invariants(restored)
    assert snapshot(other) == snapshot(plain)


def test_strings_are_shared_after_a_batch_is_undone() -> None:
    document = parse("<r><a/><a/><a/></r>")
    statement = "for $x in //a return insert node <b>x</b> into $x"
    for _ in range(OFTEN + 1):  # its fragment is kept from then on
        parse("<r><a/></r>").update(statement)
    with suppress(KeyError), document.batch():
        document.update(statement)
        raise KeyError
    document.update(statement)
    assert str(document) == f"<r>{3 * '<a><b>x</b></a>'}</r>"


def test_only_so_many_strings_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axlog.document.tree.MOST_SHARED", 1)
    tree = load("<r><a/><a/><a/></r>")
    fixed = FixedContent(read_forest("<b k='1'>x</b>"))
    pending.apply(tree, [Insert(Where.LAST, node, fixed) for node in tree.partition("a")])
    invariants(tree)
    assert tree.shared_texts == ["1"]
    assert sorted(tree.texts_by_node.values()) == ["x", "x", "x"]
    copy = '<a><b k="1">x</b></a>'
    assert snapshot(tree)["xml"] == f"<r>{copy}{copy}{copy}</r>"


def test_repeated_operations_are_those_of_a_list() -> None:
    """Alone, among others, and after another update of the document."""
    text = "<r><a/><b/><a><a/></a><c/></r>"
    for statement in (
        "delete nodes //a", "insert node <d>1</d> into /r/c", "delete nodes //zzz",
        "for $x in //a return insert node <d>1</d> into $x",
        "delete nodes //b, for $x in /r/a return insert node <d/> into $x, delete nodes //c",
        "for $x in /r/a return insert node <d/> into $x, rename node /r/c as 'e'",
    ):  # fmt: skip
        (parsed,) = parse_statements(statement, {})
        for other in (None, Delete(2), Insert(Where.LAST, 1, tuple(read_forest("<a/>")))):
            one, two = load(text), load(text)
            made = [operations_of(tree, parsed) for tree in (one, two)]
            if other is not None:
                for tree in (one, two):
                    pending.apply(tree, [other])
            try:
                pending.apply(two, list(made[1]))
            except AxlogError as error:
                with pytest.raises(type(error)):
                    pending.apply(one, made[0])
            else:
                pending.apply(one, made[0])
            invariants(one)
            assert seen(one) == seen(two), (statement, other)
    found = operations_of(load(text), parse_statements("delete nodes //a", {})[0])
    assert isinstance(found, Repeated)
    assert list(found) == [Delete(2), Delete(4), Delete(5)]
