"""Statements that do one thing at many places: the same document, node by node and id by id, as one
operation after the other gives (laws 1, 2 and 6 rest on it), whatever came before and comes after.
"""

from random import Random

import pytest

from axlog.document import bulk_columns, bulk_operations, pending
from axlog.document.blocks import FixedContent
from axlog.document.bulk_operations import Deletion, Insertion
from axlog.document.delta import Planned
from axlog.document.loader import load, read_forest
from axlog.document.operations import Attribute, Delete, Insert, Operation, Where
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.pending import Plan, planned
from axlog.document.tree import DOCUMENT_NODE, ELEMENT, Tree
from axlog.errors import AxlogError, UpdateError
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
