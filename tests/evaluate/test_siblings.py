"""The siblings that a delete removes: those that match the pattern, each as a document."""

from random import Random

import pytest

from axlog.document.loader import load
from axlog.document.serializer import serialise
from axlog.document.tree import CALL, ELEMENT, Tree
from axlog.document.value_index import ValueIndex
from axlog.evaluate.answers import answers
from axlog.evaluate.siblings import SiblingPatterns
from axlog.query.query import parse_query
from tests.amounts import cases

VALUES = ("", "1", "2", "1 ")
PATTERNS = (
    'match /a[b = "{}"]', 'match /a[@k = "{}"]', 'match /a[b/"{}"]', 'match /a[b/c = "{}"]',
    'match /a[b = "{}"][c]', 'match /a[b[@k = "{}"]]', 'match //b[. = "{}"]', 'match /a["{}"]',
    'match /a[b = "{}" or c]', 'match /a[not(b = "{}")]', 'match /b[b = "{}"]',
    'match /*[b = "{}"]',
)  # fmt: skip


def _element(random: Random, depth: int) -> str:
    label, value = random.choice("abc"), random.choice(VALUES)
    key = f" k='{random.choice(VALUES)}'" if random.random() < 0.4 else ""
    inside = "".join(_element(random, depth - 1) for _ in range(random.randint(0, 2 * depth)))
    return f"<{label}{key}>{value if random.random() < 0.6 else ''}{inside}</{label}>"


def _expected(tree: Tree, call: int, text: str) -> list[int]:
    """By definition: each sibling as a document of its own."""
    pattern = parse_query(text).only_pattern
    return [
        node
        for node in tree.children(tree.parent(call))
        if tree.kind_column[node] == ELEMENT and answers(load(serialise(tree, node)), pattern)
    ]


@pytest.mark.parametrize("start", [0, 1_000])
def test_differential_siblings_that_match(start: int) -> None:
    matched = 0
    for seed in range(start, start + cases(60)):
        random = Random(f"siblings:{seed}")
        inside = "".join(_element(random, 2) for _ in range(random.randint(1, 6)))
        tree = load(
            f'<r>{inside}<ax:call xmlns:ax="urn:axlog" stream="f"/></r>', keep_whitespace=True
        )
        index, patterns = ValueIndex(tree), SiblingPatterns(parse_query)
        (call,) = (n for n in tree.children(tree.root) if tree.kind_column[n] == CALL)
        for form in PATTERNS:
            for value in VALUES:
                text = form.format(value)
                found = patterns.matching(tree, text, index, call)
                assert found == _expected(tree, call, text), (seed, text)
                matched += len(found)
    assert matched
