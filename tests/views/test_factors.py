"""Branches that bind nothing are factors of the counts: kept apart, and exact."""

from __future__ import annotations

from random import Random

import pytest

import axlog
from axlog import Document, Options
from axlog.live.internals import maintained
from lab.benchmarks.growth import lines_of

SOURCE = (
    '<r xmlns:ax="urn:axlog"><a><ax:call stream="a" deletes="yes"/></a>'
    '<b><ax:call stream="b" deletes="yes"/></b><c><ax:call stream="c" deletes="yes"/></c></r>'
)
QUERIES = (
    "match /r[a/x/$x][b/y] return $x",
    "match /r[a/x/$x][b/y][c/z] return $x",
    "match /r[a/x/$x][b/y][b/y] return $x",
    "match /r[a/x/$x][//y] return $x",
    "match /r[a/x/$x][b/y/$y][c/z] return $x",
    "match //r[a/x/$x][b/y] return $x",
    "match /r[b/y][c/z]",
)


def counted(doc: Document, name: str) -> list[tuple[object, int]]:
    return sorted((tuple(row.to_dict().items()), row.count) for row in doc.view(name).rows())


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(4))
def test_differential_counts_with_factors_and_of_a_new_document(query: str, seed: int) -> None:
    random = Random(seed)
    doc = axlog.parse(SOURCE, views={"v": query}, options=Options(never="joins"))
    seen: dict[str, int] = {}
    for step in range(40):
        stream, name = random.choice((("a", "x"), ("b", "y"), ("b", "y"), ("c", "z")))
        pick = random.random()
        if pick < 0.8:
            inside = f"<{name}>{random.randrange(4)}</{name}>"
            found = doc.feed(stream, f"{inside}" * random.choice((1, 1, 2)))
        elif pick < 0.9:
            found = doc.delete(stream, f'match /{name}["{random.randrange(4)}"]')
        else:
            found = doc.update(f"insert node <{name}>{step}</{name}> into /r/{stream}")
        for change in found:
            key = str(change.row.to_dict())
            seen[key] = seen.get(key, 0) + (1 if change.op == "insert" else -1)
        if step % 7 == 0 or step == 39:
            again = axlog.parse(doc.xml(), views={"v": query})
            assert counted(doc, "v") == counted(again, "v"), f"step {step}"
    rows = {str(row.to_dict()) for row in doc.view("v").rows()}
    assert {key for key, count in seen.items() if count} == rows
    assert set(seen.values()) <= {0, 1}


def test_a_message_for_a_factor_does_not_visit_the_rows() -> None:
    def cost(rows: int) -> int:
        source = SOURCE.replace(' deletes="yes"', "")
        doc = axlog.parse(source, views={"v": QUERIES[0]}, options=Options(keep="needed"))
        doc.feed_many("a", [f"<x>{number}</x>" for number in range(rows)])
        doc.feed("b", "<y/>")
        counted_lines = lines_of(lambda number: doc.feed("b", "<y/>"))
        assert {row.count for row in doc.view("v").rows()} == {7}
        assert maintained(doc).views["v"].maintainer.size() == rows
        return counted_lines

    assert cost(200) == cost(20)
