"""Law 6: ids never change, and relations between ids are those of the tree.

The definitions are on the tree: a node's position in a walk, its ancestors, its parent. The ids
must agree after any updates, in both their forms. A node that stays keeps its id, and an inserted
node never takes the id of a node that is deleted in the same update.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from axlog.document.ids import Id
from axlog.document.loader import load
from axlog.document.pending import apply
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.errors import AxlogError
from lab.laws import small_cases

_PAIRS = 12


@dataclass(frozen=True, slots=True)
class IdsCase:
    """A document, and the seed of the updates and of the compared pairs."""

    document: str
    seed: int
    updates: int


def make_ids_case(random: Random) -> IdsCase:
    """A random case."""
    text = small_cases.document(random, random.randint(1, 14), random.choice((0, 0, 1)))
    return IdsCase(text, random.getrandbits(32), random.randint(1, 4))


def check_ids(case: IdsCase) -> None:
    """Check law 6 after every update."""
    random, tree = Random(case.seed), load(case.document)
    for _ in range(case.updates):
        known = {node: tree.id(node) for node in tree.subtree(DOCUMENT_NODE)}
        try:
            delta = apply(tree, small_cases.operations(random, tree))
        except AxlogError:
            continue
        _same("ids that came back at once", {known[root] for root in delta.removed} & {
            tree.id(root) for root in delta.added
        }, set())  # fmt: skip
        for node, identifier in known.items():
            if tree.is_alive(node):
                _same(f"the id of {tree.path(node)}", tree.id(node), identifier)
    _check_order(tree)
    nodes = list(tree.subtree(DOCUMENT_NODE))[1:]
    for _ in range(_PAIRS):
        _check_pair(tree, nodes, random.randrange(len(nodes)), random.randrange(len(nodes)))
    for node in random.sample(nodes, min(3, len(nodes))):
        _check_one(tree, node)


def _check_order(tree: Tree) -> None:
    keys = [tree.id(node).key for node in tree.subtree(DOCUMENT_NODE)]
    if any(one >= two for one, two in pairwise(keys)):
        raise AssertionError(f"the byte forms are not in document order: {keys}")


def _check_pair(tree: Tree, nodes: list[int], one: int, two: int) -> None:
    node, other = nodes[one], nodes[two]
    first, second = tree.id(node), tree.id(other)
    above = list(tree.ancestors(other))
    same_sort = (tree.kind(node) is NodeKind.ATTRIBUTE) == (tree.kind(other) is NodeKind.ATTRIBUTE)
    is_sibling = one != two and tree.parent(node) == tree.parent(other) and same_sort
    said = (
        first < second,
        first == second,
        first.is_ancestor_of(second),
        first.is_parent_of(second),
        first.is_sibling_of(second),
    )
    wanted = (one < two, one == two, node in above, above[:1] == [node], is_sibling)
    _same(f"what {first} and {second} say of each other", said, wanted)


def _check_one(tree: Tree, node: int) -> None:
    """An id has its ancestors' ids and labels, finds its node, and round-trips as text."""
    identifier = tree.id(node)
    above = [n for n in reversed(list(tree.ancestors(node))) if n != DOCUMENT_NODE]
    _same(f"the ancestors of {identifier}", identifier.ancestors(), [tree.id(n) for n in above])
    labels = (identifier.labels or ())[:-1]
    _same(f"the labels of {identifier}", labels, tuple(tree.label(n) for n in above))
    _same(f"the node of {identifier}", tree.find(identifier), node)
    _same(f"the text of {identifier}", Id.parse(str(identifier)), identifier)
    _same(f"the bytes of {identifier}", Id(identifier.key), identifier)


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, wanted {wanted!r}")
