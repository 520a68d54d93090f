"""Questions with too many scenarios to list: which sizes are decided within a second.

Truth of paper 1's theorem 3 and relevance of its theorem 5, by formulas of growing size; relevance
and possible rows of many calls beside each other, and of a join of three over many calls. Each with
the solver of axlog, and with python-sat if it is installed. Processor times, the slowest of the
formulas of a size.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from time import process_time

from axlog.document.loader import load
from axlog.future.relevance import relevance
from axlog.future.sat import OwnSolver, Solver, library_solver, using
from axlog.future.truth import Outlook
from axlog.query.native import parse_pattern
from axlog.query.truth import Truth
from lab.benchmarks.measuring import Result
from lab.generators.reductions import at_most_one, is_satisfiable, random_formula, usefulness

Sizes = tuple[tuple[int, int], ...]
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="f{}"/>'
_JOIN = "match /r[a/x/$x][a/y/$x][a/z/$x] return $x"


def hard_questions(
    trees: Sizes, useful: Sizes, siblings: tuple[int, ...], joined: tuple[int, ...], formulas: int
) -> Result:
    """Time the questions; `trees` and `useful` are numbers of variables and clauses."""
    result = Result("search", "questions with too many scenarios to list (a second)")
    result.sizes = {"formulas of a size": formulas, "sibling calls": siblings, "joined": joined}
    makers: dict[str, Callable[[], Solver]] = {"own solver": OwnSolver}
    if library_solver() is not None:
        makers["python-sat"] = _library
    for name, make in makers.items():
        with using(make):
            for size in trees:
                _slowest(result, f"{name}, at most one tree", size, formulas, _truth)
            for size in useful:
                _slowest(result, f"{name}, usefulness", size, formulas, _useful)
            for calls in siblings:
                _wide(result, f"{name}, {calls} sibling calls", calls, "", "match /r[a][b][c]")
            for calls in joined:
                _wide(result, f"{name}, a join of three over {calls} calls", calls, "a", _JOIN)
    return result


def _library() -> Solver:
    found = library_solver()
    assert found is not None
    return found


Question = Callable[[int, list[tuple[int, ...]]], tuple[float, bool]]
"""The processor time, and the answer."""


def _slowest(
    result: Result, what: str, size: tuple[int, int], formulas: int, ask: Question
) -> None:
    taken = []
    for seed in range(formulas):
        clauses = random_formula(Random(seed), *size)
        seconds, answer = ask(size[0], clauses)
        assert answer is is_satisfiable(size[0], clauses), (what, clauses)
        taken.append(seconds)
    result.figures[f"{what}, {size[0]} variables, {size[1]} clauses, s"] = max(taken)


def _truth(variables: int, clauses: list[tuple[int, ...]]) -> tuple[float, bool]:
    document, query = at_most_one(variables, clauses)
    tree, pattern = load(document), parse_pattern(query)
    start = process_time()
    found = Outlook(tree, pattern).truth
    return process_time() - start, found is Truth.POSSIBLE


def _useful(variables: int, clauses: list[tuple[int, ...]]) -> tuple[float, bool]:
    document, query = usefulness(variables, clauses)
    tree, pattern = load(document), parse_pattern(query)
    start = process_time()
    found = relevance(tree, pattern)["h"].relevant
    return process_time() - start, bool(found)


def _wide(result: Result, what: str, calls: int, label: str, query: str) -> None:
    inside = "".join(_CALL.format(number) for number in range(calls))
    if label:
        inside = "".join(f"<{label}>{_CALL.format(n)}</{label}>" for n in range(calls))
    tree, pattern = load(f"<r>{inside}</r>"), parse_pattern(query)
    start = process_time()
    found = relevance(tree, pattern)
    result.figures[f"{what}: relevance of all, s"] = process_time() - start
    assert {each.relevant for each in found.values()} == {True}
    start = process_time()
    rows = Outlook(tree, pattern).possible()
    result.figures[f"{what}: possible rows, s"] = process_time() - start
    assert rows
