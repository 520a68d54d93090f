"""Branches about the root element become branches of one node, with the same rows and counts."""

from __future__ import annotations

from random import Random

import pytest

from axlog.document.loader import load
from axlog.evaluate.definition import rows
from axlog.query.native import parse_pattern
from axlog.query.root_element import with_one_root

MERGED = {
    "match /a/b/$x, /a/c/$x return $x": "match /a[b/$x]/c/$x return $x",
    "match /a/b/$x, not(/a/c/$x) return $x": "match /a[b/$x][not(c/$x)] return $x",
    "match /a#r/b, /a[c = 1], not(/a[d] and /a/e) return r.id": (
        "match /a#r[b][c = 1][not(d and e)] return r.id"
    ),
    "match /*/b, /*/c": "match /*[b]/c",
    "match /a/b/$x, (/a/c/$x or not(/a/d)) return $x": "match /a[b/$x][c/$x or not(d)] return $x",
}
KEPT = [
    "match //a/b, //a/c",
    "match /a/b, /*/c",
    "match /a#s/b, /a#t/c return s.id, t.id",
    "match /a/b, not(/a)",
    "match /a/b, not(/a[. = 1])",
    "match /a/b, not(//a/c)",
    "match not(/a/b), not(/a/c)",
]


@pytest.mark.parametrize("text", MERGED)
def test_branches_about_the_root_element_share_a_node(text: str) -> None:
    assert str(with_one_root(parse_pattern(text))) == MERGED[text]


@pytest.mark.parametrize("text", KEPT)
def test_other_branches_stay(text: str) -> None:
    pattern = parse_pattern(text)
    assert str(with_one_root(pattern)) == str(pattern)


def test_rows_and_counts_stay_the_same() -> None:
    random = Random(20)
    differing = 0
    for _ in range(300):
        parts = [random.choice(_PARTS) for _ in range(random.randint(1, 3))]
        pattern = parse_pattern(f"match /a/b/$x, {', '.join(parts)} return $x")
        tree = load(_document(random))
        merged = with_one_root(pattern)
        differing += merged != pattern
        assert rows(tree, merged) == rows(tree, pattern), str(pattern)
    assert differing > 200


_PARTS = (
    "/a/c/$x",
    "/a/c",
    "/a[c]/b",
    "not(/a/c/$x)",
    "not(/a[c][b/$x])",
    "not(/a/c and /a/b/$x)",
    "(/a/c/$x or /a[not(b)])",
    "(/a/c or not(/a/c/$x))",
    "not(/b/c)",
    "/*/c",
    "//c/$x",
)


def _document(random: Random) -> str:
    names = random.choices("bc", k=random.randint(0, 5))
    return f"<a>{''.join(_leaf(random, name) for name in names)}</a>"


def _leaf(random: Random, name: str) -> str:
    return f"<{name}>{random.choice('123')}</{name}>"
