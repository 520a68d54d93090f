"""Relevance: lazy, axlog and exact, on the papers' examples; what a stream is wanted for.

Law 4 (`test_truth.py`) compares exact relevance with brute force on random cases.
"""

import json

import pytest
from tests.papers import document, end, feed, xml
from typer.testing import CliRunner

from axlog.analysis.relevance import Relevance, relevance
from axlog.cli.application import application
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.language.tree_syntax import parse_pattern


def of(tree: Tree | str, query: str) -> dict[str, Relevance]:
    tree = document(tree) if isinstance(tree, str) else tree
    return relevance(tree, parse_pattern(query))


def split(found: dict[str, Relevance]) -> tuple[set[str], set[str], set[str]]:
    """The lazily, the axlog and the exactly relevant streams."""
    return (
        {s for s, each in found.items() if each.lazy},
        {s for s, each in found.items() if each.axlog},
        {s for s, each in found.items() if each.relevant},
    )


def test_example_4_p1_figure_7_useless_streams() -> None:
    found = of("r[b[e, ?g], b[?f], d[?h2], ?h]", "match /r[b/e][c]")
    assert split(found)[2] == {"h"}
    assert found["h"].wanted == ("c",)


def test_example_6_p1_a_finished_manager_wants_nothing() -> None:
    found = of("m[done[p[paid], ?f], open[p[?g]]]", "match /m/done/p/paid")
    assert split(found)[1:] == (set(), set())


def test_example_8_p2_figure_5() -> None:
    found = of("a[b[c, ?f], ?g, e[?h]]", "match /a[b/c][d]")
    assert split(found) == ({"f", "g"}, {"g"}, {"g"})


def test_example_9_p2_figure_5_the_subtle_one() -> None:
    found = of("r[b[?f], d[?g]]", "match /r[//c][d/c]")
    assert split(found) == ({"f", "g"}, {"f", "g"}, {"g"})
    assert "//c" in found["f"].wanted


def test_example_9_p2_dominance_compares_join_variables() -> None:
    found = of('r[a["1", ?f], a["2", k], z[?g]]', "match /r[a[$y][k]][z/b/$y]")
    assert split(found)[2] == {"f", "g"}


def test_example_14_p3_figure_4_what_streams_are_wanted_for() -> None:
    query = "match /a[d/y]/b/c/$x return $x"
    tree = document("a[d[?f], b[?g]]")
    found = of(tree, query)
    assert (found["f"].wanted, found["g"].wanted) == (("y",), ("c/$x",))
    feed(tree, "f", "y")
    assert split(of(tree, query)) == ({"f", "g"}, {"g"}, {"g"})


def test_example_14_p3_figure_4_nothing_is_relevant_after_an_end() -> None:
    tree = document("a[d[?f], b[?g]]")
    end(tree, "f")
    assert split(of(tree, "match /a[d/y]/b/c/$x return $x")) == (set(), set(), set())


def test_example_16_p3_figure_6() -> None:
    found = of("r[s[a2], m[u, ?f], n[v, ?g]]", "match /r[s/$x][m/u][n/v] return $x")
    assert split(found)[1:] == (set(), set())


def test_example_17_p3_with_deletions_only_lazy_relevance_is_meant() -> None:
    found = of("r[a[b[?f]], ?g{deletes=only}]", "match /r/a/b/c/$x return $x")
    assert found["f"].lazy
    assert found["f"].relevant is None
    assert "may delete" in str(found["f"].reason)
    assert found["f"].wanted == ("c/$x",)


def test_a_stream_that_has_brought_all_it_may_is_not_relevant() -> None:
    tree = document("r[?f{most=1}]")
    feed(tree, "f", "b")
    assert split(of(tree, "match /r/a")) == (set(), set(), set())


@pytest.mark.parametrize(
    ("notation", "query", "reason"),
    [
        ("r[p[?f], q[?g]]", "match /r[p/a#t][q/b#u] where u - t <= 3", "time"),
        ("r[?f{most=1}]", "match /r[a][b]", "so many trees"),
        ("r[?f]", 'match /r/a/$x where $x < "5" return $x', "comparisons"),
    ],
)
def test_what_exact_relevance_does_not_cover_is_said(
    notation: str, query: str, reason: str
) -> None:
    for each in of(notation, query).values():
        assert each.relevant is None or not each.axlog
        assert each.relevant is not None or reason in str(each.reason)


def test_relevance_with_not_is_refused_by_name() -> None:
    with pytest.raises(UndecidedError) as raised:
        of("r[?f]", "match /r[not(a)]")
    assert raised.value.code == "AX503"


def test_the_limit_says_undecided() -> None:
    tree = document("r[b[?f], d[?g]]")
    found = relevance(tree, parse_pattern("match /r[//c][d/c]"), limit=0)
    assert found["f"].relevant is None
    assert "undecided within 0" in str(found["f"].reason)


def test_axlog_relevance_prints_example_8() -> None:
    arguments = ["relevance", xml("a[b[c, ?f], ?g, e[?h]]"), "match /a[b/c][d]"]
    result = CliRunner().invoke(application(["relevance"]), arguments)
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines == [
        {"stream": "f", "lazy": True, "axlog": False, "relevant": False, "wanted": []},
        {"stream": "g", "lazy": True, "axlog": True, "relevant": True, "wanted": ["d"]},
        {"stream": "h", "lazy": False, "axlog": False, "relevant": False, "wanted": []},
    ]
