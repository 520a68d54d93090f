"""Relevance: lazy, axlog and exact, on the papers' examples; what a stream is wanted for.

Law 4 (`test_truth.py`) compares exact relevance with brute force on random cases.
"""

import json
from random import Random

import pytest
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.relevance import Relevance, relevance
from axlog.query.native import parse_pattern
from lab.laws.table import LAWS
from tests.papers import document, end, feed, xml


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
    assert found["f"].whole  # the deletion may look for what the query does not
    assert found["g"].lazy  # it may take away what rows are made of


def test_example_17_p3_what_deletions_may_look_at_is_kept() -> None:
    found = of("r[a[x[?f], b[?h], c], ?g{deletes=only}]", "match /r/a/c#t return t.id")
    assert split(found)[0] == {"f", "g", "h"}  # g may delete `a[x[y]]`
    assert (found["f"].wanted, found["g"].wanted) == (("node()",), ())
    unseen = of("r[a[x[?f], b[?h], ?g{deletes=yes}]]", "match /r/z")
    assert split(unseen)[0] == set()


def test_a_stream_that_has_brought_all_it_may_is_not_relevant() -> None:
    tree = document("r[?f{most=1}]")
    feed(tree, "f", "b")
    assert split(of(tree, "match /r/a")) == (set(), set(), set())


@pytest.mark.parametrize(
    ("notation", "query", "relevant"),
    [
        # times: g can bring b in time for an a that is still to come, and for one that is here
        ("r[p[?f], q[?g]]", "match /r[p/a#t][q/b#u] where u - t <= 3", {"f", "g"}),
        ("r[p[a, ?f], q[?g]]", "match /r[p/a#t][q/b#u] where u - t <= 3", {"f", "g"}),
        ("r[p[a, ?f], q[?g]]", "match /r[p/a#t][q/b#u] where u - t >= 3", {"g"}),
        ("r[p[a, ?f], q[?g]]", "match /r[p/a#t][q/b#u] where u >= 3", {"g"}),
        # trees that must be shared
        ("r[?f{most=1}]", "match /r[a][b]", set()),
        ("r[a, ?f{most=1}]", "match /r[a][b]", {"f"}),
        ("r[?f{most=1}, ?g]", "match /r[a/c][a/d]", {"f", "g"}),
        ("r[a[?f{mode=one-shot}], ?g]", "match /r[a/c#t][b#u] where t > u", {"f", "g"}),
        # comparisons
        ("r[?f]", 'match /r/a/$x where $x < "5" return $x', {"f"}),
        ("r[?f, b[?g]]", "match /r[a > 5][b/c < 3]", {"f", "g"}),
        ("r[a[?f], b[?g]]", "match /r[//c > 5][b/c > 7]", {"g"}),
        ("r[a[?f], b[?g]]", "match /r[//c > 7][b/c > 5]", {"f", "g"}),
        ('r[a["1"], a["2"], b[?f]]', "match /r[a/$x][b/$y] where $x != $y", {"f"}),
        ('r[a["1"], a["2"], b["3", ?f]]', "match /r[a/$x][b/$y] where $x != $y", set()),
        # or, inside what a stream brings
        ("r[p[?f], q[?g]]", "match /r[p[a or b]][q[c[d or e]]]", {"f", "g"}),
        ("r[b[?f], d[?g]]", "match /r[//c[x or y]][d/c[x or y]]", {"g"}),
        ("r[b[?f], d[?g]]", "match /r[//c[x or y]][d/c/x]", {"g"}),
        ("r[b[?f], d[?g]]", "match /r[//c/x][d/c[x or y]]", {"f", "g"}),
    ],
)
def test_exact_relevance_is_decided(notation: str, query: str, relevant: set[str]) -> None:
    found = of(notation, query)
    assert {s for s, each in found.items() if each.relevant} == relevant
    assert all(each.relevant is not None for each in found.values()), found


def test_elements_with_any_value_but_one_are_undecided() -> None:
    found = of("r[a[?f], b[?g]]", 'match /r[//c != "1"][b/c]')
    assert found["f"].relevant is None
    assert "elements are compared" in str(found["f"].reason)


def test_times_that_calls_inside_messages_would_change_are_undecided() -> None:
    query = "match /r[//c#s/x#t][d/c#u/x#v] where t - s <= 3, v - u <= 3"
    found = relevance(document("r[b[?f{calls=yes}], d[?g{calls=yes}]]"), parse_pattern(query))
    assert found["f"].relevant is None
    assert "inside a message" in str(found["f"].reason)
    found = relevance(document("r[b[?f], d[?g]]"), parse_pattern(query))
    assert found["f"].relevant is False


@pytest.mark.parametrize("output", ["val", "cont"])
def test_a_stream_that_changes_what_a_row_shows_is_relevant(output: str) -> None:
    found = of("r[a[b, ?f], c[?g]]", f"match /r/a#t return t.{output}")
    assert split(found) == ({"f"}, {"f"}, {"f"})
    assert found["f"].wanted == ("node()",)
    assert found["f"].whole


def test_relevance_with_not_says_whether_the_query_can_match_the_data() -> None:
    found = of("r[p[?f], q[?g]]", "match /r/p[not(a)]")
    assert found["f"].lazy
    assert found["f"].relevant is None  # it can only end the row
    assert found["f"].wanted == ("a",)
    assert found["g"].relevant is False
    with pytest.raises(UndecidedError) as raised:
        of("r[?f]", 'match /r[not(a < "b")]')
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


def test_a_text_that_is_also_compared_can_still_come() -> None:
    """Seed 9972 of law 4: the compared value was tried as anything but the text asked for."""
    tree = document("b[?s]")
    found = relevance(tree, parse_pattern('match //"1"[. != "2"]'))
    assert found["s"].relevant is True


@pytest.mark.parametrize(
    "query", ["match //b[$x/* or //$y]", "match //b[a[. > 5] or c]", "match //b[a[. > 5] or c]//d"]
)
def test_variables_and_values_that_one_alternative_has_to_itself(query: str) -> None:
    """Both streams can bring a first row, whichever way through the `or`."""
    found = of("c[c[?f], ?g]", query)
    assert {stream: each.relevant for stream, each in found.items()} == {"f": True, "g": True}


@pytest.mark.parametrize("seed", [921, 2000921])
def test_truth_of_alternatives_with_variables_of_their_own(seed: int) -> None:
    law = LAWS["4"]
    law.check(law.make(Random(f"4:{seed}")))


@pytest.mark.parametrize("text", ["$x", '"0"', "text()"])
@pytest.mark.parametrize("compared", ['< "1"', "< 1", "<= 0", "= 0"])
def test_the_value_of_an_attribute_is_the_text_below_it(text: str, compared: str) -> None:
    tree = document("r[?f]")
    found = relevance(tree, parse_pattern(f"match //*/@k[. {compared}]/{text}"))
    assert found["f"].relevant is True


@pytest.mark.parametrize("query", ['match /c/c[self::$y] where $y != "1"', "match /c/c/self::$y"])
def test_a_variable_at_a_self_step_is_the_label_of_its_node(query: str) -> None:
    """Found by law 4: the label of the step before `self` was not among the values to try."""
    assert split(of("c[?f]", query))[2] == {"f"}
