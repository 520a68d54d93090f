"""YFilter 1.0's own regression set: every expected match on 100 documents, and no other.

The queries are simple paths over NITF, and a few that select texts and attributes. A query is known
by its line number, counted from one. The expected answers also say which nodes each query selects:
the rows of `match` must be these nodes, in document order.
"""

import gzip
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from axlog.document.loader import load
from axlog.document.parser import Element, parse
from axlog.document.serializer import serialise
from axlog.document.tree import ATTRIBUTE, TEXT, Tree
from axlog.match.filters import Filter
from tests.amounts import cases

pytestmark = pytest.mark.system

SETS = ("simple_paths", "extra_selects")
MOST_STATES = 64  # few enough that states are dropped and made again
WAYS = {"automaton": 0, "one by one": 1 << 30}


def load_filter(folder: Path, name: str, automaton_from: int) -> Filter:
    made = Filter(automaton_from, most_states=MOST_STATES)
    lines = (folder / "queries" / f"{name}.txt").read_text().splitlines()
    for number, line in enumerate(lines, 1):
        made.add(str(number), line.strip(), language="xpath")
    return made


@cache
def expected(folder: Path, name: str) -> list[tuple[str, Element, dict[str, str]]]:
    with gzip.open(folder / f"expected.{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        given = [json.loads(line) for line in lines]
    return [
        (one["doc"], parse((folder / "docs" / one["doc"]).read_bytes()).root, one["matched"])
        for one in given
    ]


def written(tree: Tree, node: int) -> str:
    """A selected node as YFilter's answers write it."""
    kind = tree.kind_column[node]
    if kind == TEXT:
        return tree.text(node)
    if kind == ATTRIBUTE:
        return f'{tree.label(node).removeprefix("@")}="{tree.string_value(node)}"'
    return serialise(tree, node)


def plain(text: str) -> str:
    """White space beside elements is dropped on reading, and says nothing here."""
    return "".join(text.split())


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("way", WAYS)
def test_oracle_every_expected_match_and_no_other(
    conformance: Callable[[str], Path], name: str, way: str
) -> None:
    folder = conformance("yfilter")
    made = load_filter(folder, name, WAYS[way])
    documents = expected(folder, name)
    assert len(documents) == 100
    for document, root, matched in documents:
        assert made.matches(root) == set(matched), document
    if way == "automaton":
        counted = made.statistics()
        assert counted.messages == 100
        assert counted.states <= MOST_STATES
        assert counted.left_open == 0  # paths are settled by the automaton alone


@pytest.mark.parametrize("name", SETS)
def test_oracle_every_selected_node(conformance: Callable[[str], Path], name: str) -> None:
    """On as many documents as it takes to compare every query that matches."""
    folder = conformance("yfilter")
    made = load_filter(folder, name, 0)
    documents = expected(folder, name)
    assert len(documents) == 100
    compared: Counter[str] = Counter()
    for document, root, matched in documents:
        if all(compared[key] >= cases(1) for key in matched):
            continue
        tree = load(root)
        rows = made.match(root)
        assert rows.keys() == matched.keys(), document
        # Many queries select the same nodes: each is written once.
        at = cache(tree.id)
        shown = cache(lambda node, tree=tree: plain(written(tree, node)))
        wanted = cache(plain)
        for key, bag in rows.items():
            nodes = sorted({int(row[0]) for row in bag}, key=at)
            found = "".join(map(shown, nodes))
            assert found == wanted(matched[key]), f"{document}, query {key}"
            compared[key] += 1
    assert compared.keys() == {key for _, _, matched in documents for key in matched} != set()
