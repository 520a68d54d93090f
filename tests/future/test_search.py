"""The search for one scenario: the reductions of the papers' hardness theorems, and both solvers.

Each theorem's reduction turns a formula into a document and a query. The verdict must say whether
the formula is satisfiable, which trying all assignments tells. Law 4 compares the search with brute
force over futures on random cases.
"""

from collections.abc import Callable, Iterator
from itertools import product
from random import Random

import pytest

from axlog.document.loader import load
from axlog.document.schema_parser import parse_schema
from axlog.errors import UndecidedError
from axlog.future.relevance import relevance
from axlog.future.sat import OwnSolver, Solver, library_solver, using
from axlog.future.scenario_search import smallest
from axlog.future.truth import Outlook
from axlog.query.native import parse_pattern
from axlog.query.truth import Truth
from lab.generators.reductions import (
    Clause,
    at_most_one,
    holds,
    is_satisfiable,
    random_formula,
    usefulness,
)
from tests.papers import document


def own() -> Solver:
    return OwnSolver()


def library() -> Solver:
    found = library_solver()
    assert found is not None
    return found


SOLVERS = [own, library]


@pytest.fixture(params=SOLVERS)
def each_solver(request: pytest.FixtureRequest) -> Iterator[None]:
    with using(request.param):
        yield


# Solvers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", SOLVERS)
def test_oracle_a_solver_finds_what_trying_all_assignments_finds(
    make: Callable[[], Solver],
) -> None:
    random = Random(3)
    for _ in range(150):
        variables, solver = random.randint(1, 7), make()
        known: list[Clause] = []
        for _ in range(random.randint(1, 3)):  # clauses may be added between questions
            for clause in random_formula(random, variables, random.randint(1, 9)):
                known.append(clause)
                solver.add(clause)
            assumed = [v * random.choice((1, -1)) for v in range(1, random.randint(1, 3))]
            assumed = [each for each in assumed if abs(each) <= variables]
            found = solver.solve(assumed)
            assert (found is not None) is is_satisfiable(
                variables, [*known, *((each,) for each in assumed)]
            )
            if found is not None:
                assert holds([*known, *((e,) for e in assumed)], tuple(
                    v in found for v in range(1, variables + 1)
                ))  # fmt: skip


def test_the_limit_of_conflicts_is_said() -> None:
    solver = OwnSolver(conflicts=5)
    for one, other in product(range(7), range(6)):  # seven pigeons, six holes
        solver.add([10 * one + hole + 1 for hole in range(6)])
        for third in range(one):
            solver.add([-(10 * one + other + 1), -(10 * third + other + 1)])
    with pytest.raises(UndecidedError) as undecided:
        solver.solve()
    assert undecided.value.code == "AX502"


def test_smallest_finds_a_part_of_which_no_part_suffices() -> None:
    assert sorted(smallest(range(20), lambda some: {3, 11, 17} <= set(some))) == [3, 11, 17]
    assert smallest(range(5), lambda _: True) == []


# P1 theorem 3: at most one tree of each call ------------------------------------------------------


def formulas(sizes: list[tuple[int, int]], seed: int) -> Iterator[tuple[int, list[Clause], bool]]:
    random = Random(seed)
    for variables, clauses in sizes:
        made = random_formula(random, variables, clauses)
        yield variables, made, is_satisfiable(variables, made)


@pytest.mark.usefixtures("each_solver")
def test_theorem_3_p1_at_most_one_tree() -> None:
    verdicts = set()
    for variables, clauses, expected in formulas([(2, 4), (2, 8), (3, 6), (3, 26), (5, 21)], 4):
        written, query = at_most_one(variables, clauses)
        truth = Outlook(load(written), parse_pattern(query)).truth
        assert truth is (Truth.POSSIBLE if expected else Truth.NEVER), clauses
        verdicts.add(truth)
    assert verdicts == {Truth.POSSIBLE, Truth.NEVER}


@pytest.mark.usefixtures("each_solver")
def test_theorem_4_p1_a_type_prevents_both_values() -> None:
    """The calls are streams; a type lets each bring 0 or 1, not both."""
    verdicts = set()
    for variables, clauses, expected in formulas([(2, 4), (2, 8), (3, 6)], 4):
        written, query = at_most_one(variables, clauses, ' service="w"')
        tree = load(written)
        names = [f"x{v}" for v in range(1, variables + 1)]
        labels = [f"c{number}" for number in range(len(clauses))]
        inside = " & ".join(f"|{each}| >= 0" for each in [*labels, "w", "_0", "_1"])
        rules = [f"{each} -> |x| = 1 & |n| = 1" for each in names]
        rules += [f"{each} -> {inside} & (|_0| = 0 or |_1| = 0)" for each in ("x", "n")]
        rules += [f"{each} ->" for each in [*labels, "_0", "_1"]]
        root = " & ".join(f"|{each}| = 1" for each in names)
        tree.types = parse_schema(f"root: r  r -> {root}  {'  '.join(rules)}  call w root: _0, _1")
        truth = Outlook(tree, parse_pattern(query)).truth
        assert truth is (Truth.POSSIBLE if expected else Truth.NEVER), clauses
        verdicts.add(truth)
    assert verdicts == {Truth.POSSIBLE, Truth.NEVER}


# P1 theorem 5, P2 theorems 8 and 9: useful calls --------------------------------------------------


@pytest.mark.usefixtures("each_solver")
def test_theorem_5_p1_useful_calls() -> None:
    verdicts = set()
    for variables, clauses, expected in formulas([(2, 4), (2, 8), (3, 8)], 4):
        written, query = usefulness(variables, clauses)
        found = relevance(load(written), parse_pattern(query))["h"]
        assert found.relevant is expected, (clauses, found)
        verdicts.add(found.relevant)
    assert verdicts == {True, False}


# Wide documents -----------------------------------------------------------------------------------


def test_thirty_sibling_calls_are_all_relevant() -> None:
    tree = document(f"r[{', '.join(f'?f{number}' for number in range(30))}]")
    pattern = parse_pattern("match /r[a][b][c]")
    found = relevance(tree, pattern).values()
    assert {each.relevant for each in found} == {True}
    assert {each.wanted for each in found} == {("a", "b", "c")}
    assert len(Outlook(tree, pattern).possible()) == 1


def test_a_join_of_three_over_many_calls() -> None:
    calls = ", ".join(f"a[?f{number}]" for number in range(22))
    tree = document(f'r[{calls}, a[x["1"]], a[z["2"]]]')
    pattern = parse_pattern("match /r[a/x/$x][a/y/$x][a/z/$x] return $x")
    outlook = Outlook(tree, pattern)
    assert outlook.truth is Truth.POSSIBLE
    rows = [one.row["x"] for one in outlook.possible()]
    assert rows == [None, "1", "2"]
    assert outlook.status({"x": "1"}) is Truth.POSSIBLE
    assert {each.relevant for each in relevance(tree, pattern).values()} == {True}


def test_rows_found_by_search_have_the_latest_deadline() -> None:
    calls = ", ".join(f"a[?f{number}{{most=2}}]" for number in range(14))
    tree = document(f"r[{calls}]")
    pattern = parse_pattern(
        "match /r[a/x#t][a/y#u][a/z#v][a/w] where t <= 50us, u - t <= 3us, v <= 40us return t.label"
    )
    (row,) = Outlook(tree, pattern).possible()
    assert (row.row, row.deadline) == ({"t.label": "x"}, 40)


@pytest.mark.parametrize(
    ("most", "branches", "expected"),
    [
        (3, [f"a/c{number}" for number in range(12)], Truth.POSSIBLE),
        (11, [f"a{number}" for number in range(12)], Truth.NEVER),
        (5, [f"a{number % 5}/b{number}" for number in range(30)], Truth.POSSIBLE),
        (5, [f'a/@k = "{number % 6}"' for number in range(30)], Truth.NEVER),
    ],
)
def test_many_sub_patterns_share_few_trees(most: int, branches: list[str], expected: Truth) -> None:
    query = "match /r" + "".join(f"[{branch}]" for branch in branches)
    assert Outlook(document(f"r[?f{{most={most}}}]"), parse_pattern(query)).truth is expected
