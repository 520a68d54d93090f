"""Statements at many places that no relation of a counting view sees: skipped, and nothing else."""

from __future__ import annotations

from collections.abc import Container
from random import Random

import pytest

import axlog
from axlog.document.delta import Delta
from axlog.evaluate.interpreter import Interpreter
from axlog.views.counting import engine, seen_roots
from lab.laws import small_cases

QUERIES = (
    "match /r/a/b/$x return $x",
    "match //a[b/$x]/c/$y return $x, $y",
    "match /r/b//c[@k = $k] return $k",
    "match //b[not(c)]/@k/$k return $k",
    "match /r/a[b = '1']/c/$x return $x",
    "match //a/b#n/c return n.val",
)
STATEMENTS = (
    "insert <b k='2'>1<c>x</c></b> into //{0}",
    "insert <d>y</d> into //{0}",
    "delete //{0}",
    "delete //{0}/{1}",
)


@pytest.mark.parametrize("most", [3, 64])
@pytest.mark.parametrize("query", QUERIES)
def test_skipped_roots_are_seen_by_no_relation(
    query: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = 0

    def removed(interpreter: Interpreter, sites: Container[int], delta: Delta) -> list[int]:
        nonlocal left_out
        found = seen_roots.seen_removed(interpreter, sites, delta)
        for root in set(delta.removed) - set(found):
            assert not interpreter.sees(delta.tree, root, most)
            assert not any(node in sites for node in delta.tree.subtree(root))
            left_out += 1
        return found

    def added(interpreter: Interpreter, size: int, delta: Delta) -> list[int]:
        nonlocal left_out
        found = seen_roots.seen_added(interpreter, size, delta)
        for root in set(delta.added) - set(found):
            assert not interpreter.sees(delta.tree, root, most)
            left_out += 1
        return found

    monkeypatch.setattr(seen_roots, "MANY", 1)
    monkeypatch.setattr(engine, "BLOCK", most)
    monkeypatch.setattr(engine, "seen_removed", removed)
    monkeypatch.setattr(engine, "seen_added", added)
    for seed in range(20):
        random = Random(f"seen:{seed}")
        text = small_cases.document(random, random.randint(10, 60))
        document = axlog.parse(f"<r>{text}</r>")
        document._maintained.make_engines(None, most)
        view = document.watch(query, maintainer="counting")
        for _ in range(6):
            names = random.choices("abcd", k=2)
            document.update(random.choice(STATEMENTS).format(*names))
            again = axlog.parse(document.xml()).watch(query)
            assert sorted(map(repr, view.rows())) == sorted(map(repr, again.rows()))
    assert left_out or "'1'" in query
