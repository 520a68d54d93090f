"""Law 2 for pending update lists: reduced, aggregated or integrated, they give the same document.

    reduction     a list and its reduced form make the same document, and reducing again changes
                  nothing; the same holds for every stage of the rules alone
    aggregation   the lists one after the other make the document of the aggregated lists
    integration   lists that do not conflict, integrated, make the document of the lists one after
                  the other

(Paper 5, section 5.)
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from lxml import etree

from axlog.document import pending
from axlog.document.aggregation import aggregate
from axlog.document.integration import conflicts, integrate
from axlog.document.loader import load
from axlog.document.reduction import RULES, reduce
from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.document.update_lists import UpdateList, addressed, record, resolved
from axlog.errors import AxlogError
from lab.laws import small_cases


@dataclass(frozen=True, slots=True)
class ListsCase:
    """A document, the operation on lists over it, and the seed of the lists."""

    document: str
    kind: str
    seed: int


def make_lists_case(random: Random) -> ListsCase:
    """A random case."""
    text = small_cases.document(random, random.choice((4, 8, 14)))
    kind = random.choice(("reduction", "stage", "aggregation", "integration"))
    return ListsCase(text, kind, random.getrandbits(32))


def check_lists(case: ListsCase) -> None:
    """Check the law of the case."""
    _CHECKS[case.kind](case.document, Random(case.seed))


def after(xml: str, *lists: UpdateList) -> str:
    """The document after the lists were applied one after the other."""
    tree = load(xml)
    for given in lists:
        pending.apply(tree, resolved(tree, given))
    return serialise(tree)


def _canonical(xml: str) -> str:
    """The text in a canonical form: attributes have no order."""
    return str(etree.canonicalize(xml))


def _reduction(xml: str, random: Random) -> None:
    tree = load(xml)
    operations = small_cases.operations(random, tree, random.choice((3, 8, 15)))
    given = addressed(tree, operations)
    try:
        pending.apply(tree, operations)
    except AxlogError:
        return
    reduced = reduce(given)
    _same_document("the document of the reduced list", after(xml, reduced), serialise(tree))
    _same("the reduced list, reduced again", reduce(reduced), reduced)


def _stage(xml: str, random: Random) -> None:
    tree = load(xml)
    given = addressed(tree, small_cases.operations(random, tree, 12)).edits
    stage = random.randrange(len(RULES))
    for rule in RULES[:stage]:
        given = rule(given)
    try:
        wanted = after(xml, UpdateList(given))
    except AxlogError:
        return
    changed = UpdateList(RULES[stage](given))
    _same_document(f"the document after {RULES[stage].__name__}", after(xml, changed), wanted)


def _aggregation(xml: str, random: Random) -> None:
    tree = load(xml)
    made = [recorded(random, tree, random.choice((1, 2, 4))) for _ in range(random.choice((2, 3)))]
    lists = [each for each in made if each is not None]
    if len(lists) > 1:
        _same_document(
            "the document of aggregated lists", after(xml, *aggregate(lists)), serialise(tree)
        )


def recorded(random: Random, tree: Tree, most: int) -> UpdateList | None:
    """A random list that the tree accepts, after applying it."""
    try:
        return record(tree, small_cases.operations(random, tree, most))[1]
    except AxlogError:
        return None


def _integration(xml: str, random: Random) -> None:
    tree = load(xml)
    one = reduce(addressed(tree, small_cases.operations(random, tree, 2)))
    two = reduce(addressed(tree, small_cases.operations(random, tree, 2)))
    if conflicts([one, two]):
        return
    try:
        wanted = after(xml, UpdateList((*one, *two)))
    except AxlogError:
        return
    _same_document("the document of integrated lists", after(xml, integrate([one, two])), wanted)


_CHECKS = {
    "reduction": _reduction,
    "stage": _stage,
    "aggregation": _aggregation,
    "integration": _integration,
}


def _same_document(what: str, found: str, wanted: str) -> None:
    _same(what, _canonical(found), _canonical(wanted))


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
