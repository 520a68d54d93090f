"""Truth: the papers' examples, declared facts, negation by profiles, law 4 by brute force."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.document.tree import ATTRIBUTE, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.interpreter import Interpreter
from axlog.future import profile_trees
from axlog.future.coverage import FACTS, FEATURES, Feature, matrix
from axlog.future.relevance import relevance
from axlog.future.truth import Outlook
from axlog.live.document import Document, parse
from axlog.live.options import Options
from axlog.query.compile import Relation
from axlog.query.native import parse_pattern
from axlog.query.truth import Truth
from lab.laws.fallen_law import _Deleting
from lab.laws.fuzz_cases import Case
from lab.laws.fuzzing import LAWS, Failure, run_case
from lab.laws.outlook_cases import smaller_cases
from lab.laws.outlook_law import check_outlook, make_small_case
from tests.amounts import cases, chunks
from tests.papers import document, end, feed, xml

CHUNK = 100
CASES = 200


def truth(tree: Tree | str, query: str) -> Truth:
    tree = document(tree) if isinstance(tree, str) else tree
    return Outlook(tree, parse_pattern(query)).truth


def refusal(tree: Tree | str, query: str) -> UndecidedError:
    with pytest.raises(UndecidedError) as raised:
        truth(tree, query)
    return raised.value


# The papers' examples -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notation", "expected"),
    [("a[b, c]", Truth.TRUE), ("a[b]", Truth.NEVER), ("a[b, ?f1]", Truth.POSSIBLE)],
)
def test_example_1_p1_three_values(notation: str, expected: Truth) -> None:
    assert truth(notation, "match /a[b][c]") is expected


def test_example_3_p1_figure_6_the_closure_of_joins() -> None:
    query = "match /r[u/$x][v/$x][w/$x]/z/$x"
    assert truth("r[u[a], v[?f], w[?g], z[b]]", query) is Truth.NEVER
    assert truth("r[u[a], v[?f], w[?g], z[a]]", query) is Truth.POSSIBLE


def test_example_5_p1_theorem_3_sharing_one_tree() -> None:
    """x or y, not x or y, x or not y: each variable is one tree that a call may bring."""
    clauses = "[{0}/p or {1}/p][{0}/n or {1}/p][{0}/p or {1}/n]"
    query = "match /r" + clauses.format("x", "y")
    tree = document("r[x[?f{most=1}], y[?g{most=1}]]")
    assert truth(tree, query) is Truth.POSSIBLE
    assert truth(tree, query + "[x/n or y/n]") is Truth.NEVER
    free = document("r[x[?f], y[?g]]")
    assert truth(free, query + "[x/n or y/n]") is Truth.POSSIBLE


@pytest.mark.parametrize("manager", ["done[p[paid]]", "done[p, ?f]", "done[p]"])
def test_example_6_p1_managers(manager: str) -> None:
    expected = {
        "done[p[paid]]": Truth.TRUE, "done[p, ?f]": Truth.POSSIBLE, "done[p]": Truth.NEVER,
    }  # fmt: skip
    assert truth(f"managers[{manager}]", "match /managers/done/p/paid") is expected[manager]


def test_example_11_p2_figure_4_time() -> None:
    query = "match /r[p/a#t1][q/d#t2] where t2 - t1 <= 3"
    tree = document("r[p[?then], q[?f], e[?g]]")
    feed(tree, "then", "a", 2)
    end(tree, "then")
    assert truth(tree, query) is Truth.POSSIBLE
    feed(tree, "g", "x", 5)
    assert truth(tree, query) is Truth.POSSIBLE
    feed(tree, "g", "x", 10)
    assert truth(tree, query) is Truth.NEVER


def test_example_11_p3_time_passes() -> None:
    tree = document("r[?f]")
    assert truth(tree, "match /r/a#t where t <= 100") is Truth.POSSIBLE
    feed(tree, "f", "b", 123)
    assert truth(tree, "match /r/a#t where t <= 100") is Truth.NEVER


def test_example_12_p2_negation_without_joins_is_decided() -> None:
    tree = document("r[?f]")
    assert truth(tree, "match /r[not(b)]") is Truth.TRUE
    assert truth(tree, "match /r[a][not(a)]") is Truth.NEVER
    assert truth(tree, "match /r[a][not(b)]") is Truth.POSSIBLE
    feed(tree, "f", "b")
    assert truth(tree, "match /r[a][not(b)]") is Truth.NEVER


def test_example_12_p2_negation_with_joins_is_refused_by_name() -> None:
    error = refusal("r[?f]", "match /r[a][not(b/$x and c/$x)]")
    assert error.code == "AX501"
    assert "undecidable" in error.message


def test_example_12_p2_a_join_with_a_value_outside_the_not_is_decided() -> None:
    tree = document("r[?f]")
    assert truth(tree, "match /r[a/$x][not(b/$x)] return $x") is Truth.POSSIBLE
    feed(tree, "f", "a[u]")
    assert truth(tree, "match /r[a/$x][not(b/$x)] return $x") is Truth.TRUE
    feed(tree, "f", "b[u]")
    assert truth(tree, "match /r[a/$x][not(b/$x)] return $x") is Truth.POSSIBLE
    end(tree, "f")
    assert truth(tree, "match /r[a/$x][not(b/$x)] return $x") is Truth.NEVER


MONITOR = (
    'match /management[webstore/orders/order[client/"INRIA"][details/computer]/oid/$x#t1]'
    "[shipping/orders/order/oid/$x#t2] where t2 - t1 {} 50000 return $x"
)
ORDER = 'order[client["INRIA"], details[computer], oid["17"]]'


def monitor(shipped_after: float | None, clock: float = 0) -> Tree:
    tree = document(
        "management[webstore[orders[?placed]], shipping[orders[?shipped]], clock[?tick]]"
    )
    feed(tree, "placed", ORDER, 100)
    if shipped_after is not None:
        feed(tree, "shipped", 'order[oid["17"]]', 100 + shipped_after)
    if clock:
        feed(tree, "tick", "tick", clock)
    return tree


@pytest.mark.parametrize(
    ("shipped_after", "expected"),
    [(50_000, Truth.TRUE), (None, Truth.POSSIBLE), (49_999, Truth.POSSIBLE)],
)
def test_example_13_p3_order_monitor(shipped_after: float | None, expected: Truth) -> None:
    outlook = Outlook(monitor(shipped_after), parse_pattern(MONITOR.format(">=")))
    assert outlook.status({"x": "17"}) is expected


@pytest.mark.parametrize(("clock", "expected"), [(50_100, Truth.POSSIBLE), (50_101, Truth.NEVER)])
def test_example_13_p3_orders_in_time(clock: float, expected: Truth) -> None:
    tree = monitor(None, clock)
    end(tree, "placed")  # else order 17 may be placed again, later
    outlook = Outlook(tree, parse_pattern(MONITOR.format("<=")))
    assert outlook.status({"x": "17"}) is expected


def test_example_14_p3_end_of_stream() -> None:
    tree = document("a[d[?f], b[?g]]")
    query = "match /a[d/y]/b/c/$x return $x"
    assert truth(tree, query) is Truth.POSSIBLE
    end(tree, "f")
    assert truth(tree, query) is Truth.NEVER


# Declared facts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "query", "expected"),
    [
        ("?f{most=2}", "match /r[a][b]", Truth.POSSIBLE),
        ("?f{most=1}", "match /r[a][b]", Truth.NEVER),
        ("?f{most=1}", "match /r[a/c][a/d]", Truth.POSSIBLE),
        ("?f{most=1}", "match /r[a][//b]", Truth.POSSIBLE),
        ("?f{most=1}", "match /r[$x/c][$y/d] where $x != $y", Truth.NEVER),
        ("?f{most=2}", "match /r[$x/c][$y/d] where $x != $y", Truth.POSSIBLE),
        ("?f{most=1}", 'match /r[a/@k = "1"][a/@k = "2"]', Truth.NEVER),
        ("?f{most=2}", 'match /r[a/@k = "1"][a/@k = "2"]', Truth.POSSIBLE),
        ("?f{most=1}", "match /r[a#t/c][a#u/d] where t < u", Truth.NEVER),
        ("?f{most=0}", "match /r[a]", Truth.NEVER),
        ("?f{mode=one-shot}", "match /r[a#t][b#u] where t < u", Truth.NEVER),
        ("?f{mode=one-shot}", "match /r[a#t/c][b#u] where t < u", Truth.NEVER),
        ("?f{mode=one-shot}", "match /r[a/c#t][b#u] where t > u", Truth.NEVER),
        (
            "?f{mode=one-shot calls=yes}",
            "match /r[a/c#t][b#u] where t > u",
            Truth.POSSIBLE,
        ),  # a call in a
        ("?f", "match /r[a#t][b#u] where t < u", Truth.POSSIBLE),
        ("?f{deletes=only}", "match /r[a]", Truth.NEVER),
        ("?f", 'match /r/"text"', Truth.NEVER),  # a message has no text at its top
        ("?f", 'match /r//"text"', Truth.POSSIBLE),
        ("?f", 'match /r/a[@k = "1"][@k = "2"]', Truth.NEVER),
        ("?f", 'match /r/a[@k = "1"][@m = "2"]', Truth.POSSIBLE),
        ("?f", 'match /r/$x[. = "1"][self::"2"]', Truth.NEVER),
        ("?f", "match /r/a[self::b]", Truth.NEVER),
        ("?f", 'match /r[a/$x]["7"/self::$x]', Truth.NEVER),
    ],
)
def test_declared_facts_narrow_the_future(call: str, query: str, expected: Truth) -> None:
    assert truth(f"r[{call}]", query) is expected


def test_a_name_and_a_text_join_only_where_a_name_can_be_that_text() -> None:
    query = "match /r[p/$x][q/$x/c]"
    assert truth('r[p["7"], q[?f]]', query) is Truth.NEVER  # no element is called 7
    assert truth('r[p["seven"], q[?f]]', query) is Truth.POSSIBLE


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("match /r[a#t][b#u] where 2*u + t <= -1us", Truth.NEVER),
        ("match /r[a#t][b#u] where 2*u + t <= 0us", Truth.POSSIBLE),
        ("match /r[a#t][b#u] where 2*u - 4*t = 7us", Truth.NEVER),  # even and odd
        ("match /r[a#t][b#u] where 2*u - 3*t = 7us", Truth.POSSIBLE),
        ("match /r[a#t][b#u][d#v] where t + u + v < 0us", Truth.NEVER),
        ("match /r[a#t][b#u][d#v] where t - u + v = 5us", Truth.POSSIBLE),
        ("match /r[a#t/c#w][b#u] where t - w >= u + 1us", Truth.NEVER),  # w is not before t
        ("match /r[a#t/c#w][b#u] where t - w >= u", Truth.POSSIBLE),
        ("match /r[a#t][b#u] where t < 0us", Truth.NEVER),  # the clock is not before 0
    ],
)
def test_linear_constraints_are_decided(query: str, expected: Truth) -> None:
    """By the analysis, and by a document's view, whether its joins' tables know it or not."""
    assert truth("r[?f]", query) is expected
    call = '<ax:call xmlns:ax="urn:axlog" stream="f"/>'
    for keep in ("all", "needed"):
        view = Document(f"<r>{call}</r>", views={"v": query}, options=Options(keep=keep)).view("v")
        assert view.truth is expected
        assert bool(view.possible()) == (expected is Truth.POSSIBLE)
        assert view.status({}) is expected


@pytest.mark.parametrize(
    ("notation", "query"),
    [
        ("r[a[?f]]", 'match /r[a = "1"]'),
        ("r[a[?f{deletes=only}]]", 'match /r[a = "1"]'),
        ("r[?f]", 'match /r/a[. = "1"]/b'),
        ("r[?f{most=1}]", 'match /r[a = "1"][a/b]'),
    ],
)
def test_what_is_not_covered_is_refused_by_name(notation: str, query: str) -> None:
    assert refusal(notation, query).code == "AX503"


# Negation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notation", "query", "expected"),
    [
        ("r[?f]", "match //a[not(b)]", Truth.POSSIBLE),
        ("r[?f]", "match //a[not(*)][c]", Truth.NEVER),
        ("r[a[b], ?f]", "match /r[a][not(a/b)]", Truth.NEVER),
        ("r[?f{most=1}]", "match /r[a][c][not(d)]", Truth.NEVER),
        ("r[?f{most=2}]", "match /r[a][c][not(d)]", Truth.POSSIBLE),
        ("r[?f{most=1}]", "match /r[a][//c][not(c)]", Truth.POSSIBLE),
        ("r[?f]", "match /r[not(not(a))]", Truth.POSSIBLE),
        ("r[?f]", "match /r//a[not(@k)]/@m", Truth.POSSIBLE),
        ("r[?f]", 'match /r//a[@k][not(@k = "1")]', Truth.POSSIBLE),
        ("r[?f]", "match /r//a[not(text())][//text()][not(*)]", Truth.NEVER),
        ("r[?f]", "match /r[not(c)]//c", Truth.POSSIBLE),  # inside something else
        ("r[b]", "match /r[not(b)]", Truth.NEVER),
        ("r[?f]", "match /r/a/$x[not(b)] return $x", Truth.POSSIBLE),
    ],
)
def test_negation_without_joins(notation: str, query: str, expected: Truth) -> None:
    assert truth(notation, query) is expected


@pytest.mark.parametrize(
    ("notation", "query"),
    [
        ("r[?f]", 'match /r[a][not(b < "c")]'),
        ("r[?f]", "match /r[a][not(b < 5 as xs:integer)]"),
    ],
)
def test_negation_with_more_is_refused_by_name(notation: str, query: str) -> None:
    assert refusal(notation, query).code == "AX503"


def test_a_join_inside_a_not_is_decided_where_no_call_is_open_that_matters() -> None:
    query = "match /r[a][not(b/$x and c/$x)]"
    assert truth('r[a, b["1"], c["1"], z[?f]]', query) is Truth.NEVER
    assert truth('r[a, b["1"], c["2"], z[?f]]', query) is Truth.TRUE
    assert refusal('r[a, b["1"], c["1"], ?f]', query).code == "AX501"


def test_negation_beyond_the_limit_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_trees, "LIMIT", 3)
    error = refusal("r[?f]", "match /r[a//b][c//d][e//f][not(g)]")
    assert error.code == "AX502"


# Law 4 --------------------------------------------------------------------------------------------


@cache
def compared(seed: int) -> tuple[Failure | None, Counter[str]]:
    """The case of a seed: whether the law fails, and what was compared."""
    seen: Counter[str] = Counter()
    return run_case(seed, "4", seen), seen


@pytest.mark.parametrize("start", chunks(CASES, CHUNK))
def test_differential_truth_and_relevance_equal_brute_force(start: int) -> None:
    failures = [f for seed in range(start, start + CHUNK) if (f := compared(seed)[0]) is not None]
    said = [f"{f}\n{f.case.document}\n{f.case.patterns[0]}\n{f.case.steps}" for f in failures]
    assert not failures, "\n".join(said)


@settings(max_examples=cases(25))
@given(data=st.data())
def test_differential_truth_and_relevance_of_drawn_cases(data: st.DataObject) -> None:
    random: Random = data.draw(st.randoms(use_true_random=False))
    check_outlook(make_small_case(random))


def test_most_random_cases_of_truth_are_compared() -> None:
    seen: Counter[str] = Counter()
    for seed in range(150):
        seen.update(compared(seed)[1])
    assert sum(seen[f"truth {each.value}"] for each in Truth) > 105
    assert seen["too large"] < 15
    assert any(kind.startswith("key ") for kind in seen)
    assert any(kind.startswith("type ") for kind in seen)
    assert min(seen[f"truth {each.value}"] for each in Truth) > 10
    assert min(seen["relevant True"], seen["relevant False"]) > 5


def test_a_wrong_truth_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axlog.future.truth.fits", lambda *_: True)
    case = Case(xml("r[?f{most=1}]"), (parse_pattern("match /r[a][c]"),))
    with pytest.raises(AssertionError, match="the truth"):
        check_outlook(case)
    patterns = {str(smaller.patterns[0]) for smaller in smaller_cases(case)}
    assert "match /r/c" in patterns


def test_texts_of_attributes_that_are_overlooked_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def overlook(self: Interpreter, tree: Tree, node: int) -> list[Relation]:
        is_value = tree.kind_column[tree.parent_column[node]] == ATTRIBUTE
        return [] if is_value else below(self, tree, node)

    below = Interpreter.candidates_below
    monkeypatch.setattr(Interpreter, "candidates_below", overlook)
    call = '<ax:call xmlns:ax="urn:axlog" stream="f" deletes="yes"/>'
    case = Case(f'<r k="1">{call}</r>', (parse_pattern("match /r[@k/$x]/a return $x"),))
    with pytest.raises(AssertionError, match="the truth"):
        check_outlook(case)


@pytest.mark.parametrize(
    "law", ["4", "never", "fallen", "prospects", "ground", "absence", "thresholds"]
)
def test_laws_of_truth_draw_attributes_that_are_bound(law: str) -> None:
    made = [LAWS[law].make(Random(f"{law}:{seed}")) for seed in range(80)]
    if law == "fallen":  # a seed; its check draws the case
        queries = [str(_Deleting(Random(seed)).pattern) for seed in range(40)]
    else:
        queries = [query_of(case) for case in made]
    bound = [query for query in queries if re.search(r"@\w+/\$", query)]
    assert 0 < len(bound) < len(queries)


def query_of(case: object) -> str:
    """The text of a case's query."""
    if isinstance(case, Case):
        return str(case.patterns[0])
    return str(getattr(case, "text", None) or getattr(case, "query"))  # noqa: B009


# The table of what is decided ---------------------------------------------------------------------

CELLS = [(feature, fact, number) for feature in FEATURES for number, fact in enumerate(FACTS)]


@pytest.mark.parametrize(("feature", "fact", "number"), CELLS)
def test_the_table_says_what_is_decided(feature: Feature, fact: str, number: int) -> None:
    tree, pattern = FACTS[fact].tree(), parse_pattern(feature.query)
    wanted = feature.truth[number]
    try:
        Outlook(tree, pattern).possible()
        found = "decided"
    except UndecidedError as error:
        found = error.code
    assert found == ("decided" if wanted in ("limit", "shown") else wanted)


@pytest.mark.parametrize(("feature", "fact", "number"), CELLS)
def test_the_table_says_what_relevance_is_decided(feature: Feature, fact: str, number: int) -> None:
    tree, pattern = FACTS[fact].tree(), parse_pattern(feature.query)
    wanted = feature.relevance[number]
    if wanted.startswith("AX"):
        with pytest.raises(UndecidedError, match=wanted):
            relevance(tree, pattern)
        return
    found = relevance(tree, pattern)["f"]
    is_exact = found.relevant is not None
    assert is_exact == (wanted in ("limit", "shown")) or not found.axlog


def test_the_page_shows_the_table(repository: Path) -> None:
    page = (repository / "docs" / "analysis.md").read_text(encoding="utf-8")
    assert matrix("truth") in page
    assert matrix("relevance") in page


# Faces --------------------------------------------------------------------------------------------


def test_a_view_says_its_truth() -> None:
    view = parse(xml("a[b, ?f]")).watch("match /a[b][c]")
    assert view.truth is Truth.POSSIBLE


@pytest.mark.parametrize(
    ("notation", "query", "expected"),
    [
        ("a[b, c]", "match /a[b][c]", {"truth": "true", "possible": []}),
        ("a[b]", "match /a[b][c]", {"truth": "never", "possible": []}),
        (
            "a[b, ?f]",
            "match /a[b][c]",
            {
                "truth": "possible",
                "possible": [{"row": {}, "needs": [{"stream": "f", "pattern": "c"}]}],
            },
        ),
    ],
)
def test_axlog_truth_prints_example_1(notation: str, query: str, expected: object) -> None:
    result = CliRunner().invoke(application(["truth"]), ["truth", xml(notation), query])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == expected


def test_axlog_truth_takes_updates_first(tmp_path: Path) -> None:
    updates = tmp_path / "updates.jsonl"
    updates.write_text('{"stream": "f", "insert": "<b/>", "at": 123}\n', encoding="utf-8")
    arguments = ["truth", xml("r[?f]"), "match /r/a#t where t <= 100", "--after", str(updates)]
    result = CliRunner().invoke(application(["truth"]), arguments)
    assert json.loads(result.stdout) == {"truth": "never", "possible": []}


def test_axlog_truth_refuses_by_name() -> None:
    arguments = ["truth", xml("r[?f]"), "match /r[a][not(b/$x and c/$x)]"]
    result = CliRunner().invoke(application(["truth"]), arguments)
    assert result.exit_code == 2
    assert "AX501" in result.output
