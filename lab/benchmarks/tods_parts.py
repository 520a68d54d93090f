"""The experiments of paper 5, sections 6.3 and 6.6 to 6.8, and the basis of the choice by size.

    22, 23  deletions by longer and longer paths on Q1
    24      stored data of a view: ids alone, values and contents of its leaf, its root, all nodes
    28      one node at a time (IVMA) against the whole statement, on Q1
    29-32   snowcaps of every level against leaves, on Q4 and Q6: terms (R), maintenance (U)
            and, beyond the paper, where the choice by cost keeps them and where not
    33-35   rules O1, O3 and I5: operations propagated one by one, reduced first and not, with
            20 to 100 % of them overlapping; and as one list (`Document.apply`), reduced and not

The numbers are those of the paper's figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict
from functools import partial
from time import thread_time
from typing import Any

from axlog.document import pending
from axlog.document.loader import load, read_forest
from axlog.document.operations import Delete, Insert, Operation, Where
from axlog.document.reduction import reduce
from axlog.document.tree import Tree
from axlog.document.update_lists import addressed, resolved
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.list_updates import apply_list
from axlog.query.query import Query, parse_query
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.algebraic.reports import Options
from axlog.views.counting.maintainer import Counting
from axlog.views.maintainer import Maintainer
from lab.baselines.ivma import Ivma
from lab.benchmarks.measuring import Parts, Plot, Result
from lab.benchmarks.tods_pairs import Run, document, pattern_of, statement_of
from lab.benchmarks.tods_target import one_target
from lab.generators.appendix import UPDATES

PATHS = (
    "/site",
    "/site/people",
    "/site/people/person",
    "/site/people/person/name",
    "/site/people/person/name/text()",
)
STORED = {
    "IDs": "s.id, p.id, q.id, i.id, n.id",
    "VC_Leaf": "s.id, p.id, q.id, i.id, n.id, n.val, n.cont",
    "VC_Root": "s.id, s.val, s.cont, p.id, q.id, i.id, n.id",
    "VC_All_but_Root": "s.id, p.id, p.val, p.cont, q.id, q.val, q.cont, i.id, i.val, n.id, n.val,"
    " n.cont",
    "VC_All": "s.id, s.val, s.cont, p.id, p.val, p.cont, q.id, q.val, q.cont, i.id, i.val, n.id,"
    " n.val, n.cont",
}
_STORING = "match /site#s/people#p/person#q[@id#i]/name#n return "
NAMES = ("X1_L", "A6_A", "A7_O", "A8_AO", "B7_LB")
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
_FRAGMENT = "<name>new<name>and</name><name>some</name></name>"


def parts(result: Result, sizes: Sequence[float], times: int, done: Parts) -> None:
    """All experiments; quadratic and one-by-one ones at the smallest size, as in the paper."""
    small, middle = min(sizes), sorted(sizes)[len(sizes) // 2]
    large = max((s for s in sizes if s <= 10), default=small)
    works: dict[str, Callable[[Result], object]] = {
        f"paths, {small} MB": lambda to: paths(to, 22, small, times),
        f"paths, {large} MB again": lambda to: paths(to, 23, large, times),
        f"annotations, {small} MB": lambda to: annotated(to, small, times),
        f"one by one, {small} MB": lambda to: one_by_one(to, small, times),
        f"snowcaps, {middle} MB": lambda to: snowcaps(to, middle, times),
        f"snowcaps chosen, {middle} MB": lambda to: snowcaps_chosen(to, middle),
        f"rules, {small} MB": lambda to: rules(to, small, times),
        f"one target, {large} MB": lambda to: one_target(to, large, 20 * times),
    }
    for name, work in works.items():
        found = done.part(f"{name}, {times} times", partial(_apart, work))
        result.figures.update(found["figures"])
        result.plots += [Plot(**plot) for plot in found["plots"]]


def _apart(work: Callable[[Result], object]) -> dict[str, Any]:
    """The result of one experiment, for JSON."""
    result = Result("part", "")
    work(result)
    return {"figures": result.figures, "plots": [asdict(plot) for plot in result.plots]}


def paths(result: Result, figure: int, size: float, times: int) -> None:
    """Figures 22 and 23."""
    text = document(size)
    points = []
    for length, path in enumerate(PATHS, 1):
        if length == 1:
            continue  # the root of a document cannot be deleted
        taken = [_steps(text, "Q1", f"delete {path}") for _ in range(times)]
        points.append((float(length), min(taken)))
        result.figures[f"paths, {size} MB, delete {path}, ms"] = min(taken)
    title = f"Fig. {figure}: Q1, deletions by longer paths, {size} MB"
    result.plots.append(Plot(title, "steps of the path", "ms", {"PDDT/MT": points}))


def _steps(text: str, view: str, statement: str, options: Options | None = None) -> float:
    run = Run(text, (view,), options)
    run.update(statement)
    return sum(run.steps[view].values())


def annotated(result: Result, size: float, times: int) -> None:
    """Figure 24: the changes are emitted, so that values and contents are read."""
    text = document(size)
    points = []
    for number, (name, outputs) in enumerate(STORED.items(), 1):
        taken = []
        for _ in range(times):
            tree = load(text)
            view = Algebraic(tree, parse_query(_STORING + outputs).pattern)
            person = tree.partition("person")[0]
            taken.append(_followed(tree, view, [Delete(person)]))
        points.append((float(number), 1e3 * min(taken)))
        result.figures[f"annotations, {name}, ms"] = 1e3 * min(taken)
    title = f"Fig. 24: one person deleted, {', '.join(STORED)}"
    result.plots.append(Plot(title, "what is stored", "ms", {"PDDT/MT": points}, log_y=True))


def _followed(tree: Tree, view: Maintainer, operations: Sequence[Operation]) -> float:
    """Seconds that a view needs for an update, without the work of the document."""
    plan = pending.planned(tree, operations)
    start = thread_time()
    view.before(plan.delta)
    middle = thread_time()
    plan.commit()
    after = thread_time()
    view.after(plan.delta)
    return middle - start + thread_time() - after


def one_by_one(result: Result, size: float, times: int) -> None:
    """Figure 28: IVMA, on the same relations."""
    text = document(size)
    lines: dict[str, list[tuple[float, float]]] = {"PINT/PIMT": [], "IVMA": []}
    for number, name in enumerate(NAMES, 1):
        statement = statement_of(UPDATES[name], "insert")
        whole = min(_told(Algebraic, text, statement) for _ in range(times))
        apart = min(_told(Ivma, text, statement) for _ in range(times))
        lines["PINT/PIMT"].append((number, 1e3 * whole))
        lines["IVMA"].append((number, 1e3 * apart))
        result.figures[f"{name} on Q1, {size} MB: algebraic, ms"] = 1e3 * whole
        result.figures[f"{name} on Q1, {size} MB: IVMA, ms"] = 1e3 * apart
    title = f"Fig. 28: Q1, {', '.join(NAMES)}, {size} MB"
    result.plots.append(Plot(title, "update", "ms", lines, log_y=True))


def _told(kind: type[Algebraic], text: str, statement: str) -> float:
    run = Run(text, ())
    view = kind(run.tree, pattern_of("Q1"))
    return _followed(run.tree, view, run.operations(statement))


def snowcaps(result: Result, size: float, times: int) -> None:
    """Figures 29 to 32: the second of two updates, so that the snowcaps exist."""
    text = document(size)
    wanted = {
        "Q4": ("B3_L", "X2_L", "B3_LB", "X3_A", "X4_O", "X5_AO"),
        "Q6": ("E6_L", "X17_L", "B5_LB", "E6_A", "X20_A", "X7_O", "X8_AO"),
    }
    for figure, (view, updates) in zip((29, 30), wanted.items(), strict=True):
        lines: dict[str, list[tuple[float, float]]] = {}
        for number, name in enumerate(updates, 1):
            for mode in ("levels", "leaves"):
                # Both use tables, as the paper does: only the snowcaps differ.
                options = Options(snowcaps=mode, is_direct=False)
                runs = [_twice(text, view, name, options) for _ in range(times)]
                terms, follow = min(runs, key=sum)
                for what, value in (("R", terms), ("U", follow), ("total", terms + follow)):
                    lines.setdefault(f"{mode}, {what}", []).append((number, max(value, 1e-3)))
                result.figures[f"{name} on {view}, {size} MB: {mode}, ms"] = terms + follow
        named = ", ".join(updates)
        total = {name: points for name, points in lines.items() if name.endswith("total")}
        result.plots.append(Plot(f"Fig. {figure}: {view}, {named}", "update", "ms", total))
        title = f"Fig. {figure + 2}: {view}, terms (R) and following (U)"
        result.plots.append(Plot(title, "update", "ms", lines, log_y=True))


def _twice(text: str, view: str, update: str, options: Options) -> tuple[float, float]:
    run = Run(text, (view,), options)
    statement = statement_of(UPDATES[update], "insert")
    run.update(statement)
    run.update(statement)
    steps = run.steps[view]
    return steps["expression"] + steps["execute"], steps["lattice"]


DEAR = "match /site/open_auctions/open_auction[//keyword]/bidder/increase#x return x.id"
"""Beside the path to what comes stands a walk over every keyword of the document."""


def snowcaps_chosen(result: Result, size: float, updates: int = 40) -> None:
    """Beyond 6.7: small insertions into Q4, and into a view with an expensive branch."""
    base = load(document(size))
    patterns = {"dear": parse_query(DEAR).pattern, "Q4": pattern_of("Q4")}
    for name, pattern in patterns.items():
        lines: dict[str, list[tuple[float, float]]] = {}
        for mode in ("leaves", "levels", "cost"):
            tree = deepcopy(base)
            view = Algebraic(tree, pattern, options=Options(snowcaps=mode, is_measured=False))
            bidders = list(tree.partition("bidder"))
            taken = []
            for at in range(updates):
                content = tuple(read_forest("<increase>9.00</increase>"))
                targets = bidders[3 * at : 3 * at + 3]
                operations = [Insert(Where.LAST, node, content) for node in targets]
                taken.append(1e3 * _followed(tree, view, operations))
            later = sorted(taken[updates // 2 :])
            what = f"three increases, {name} view, {size} MB: {mode}"
            result.figures[f"{what}, ms"] = later[len(later) // 2]
            result.figures[f"{what}, snowcaps kept"] = len(view.snowcaps.chosen)
            lines[mode] = [(float(n), t) for n, t in enumerate(taken, 1)]
        title = f"Snowcaps chosen by cost: {name}, three increases an update, {size} MB"
        result.plots.append(Plot(title, "update", "ms", lines, log_y=True))


# Reduction rules ----------------------------------------------------------------------------------


def rules(result: Result, size: float, times: int) -> None:
    """Figures 33 to 35."""
    text = document(size)
    for figure, (rule, make) in zip((33, 34, 35), _RULES.items(), strict=True):
        lines: dict[str, list[tuple[float, float]]] = {}
        for share in SHARES:
            for name, (run, reduces) in _WAYS.items():
                taken = 1e3 * min(run(text, make, share, reduces) for _ in range(times))
                lines.setdefault(name, []).append((100 * share, taken))
                result.figures[f"{rule} at {share:.0%}: {name}, ms"] = taken
        title = f"Fig. {figure}: rule {rule}, Q1, {size} MB"
        result.plots.append(Plot(title, "overlap, %", "ms", lines))


Make = Callable[[Tree, float], list[Operation]]


def _operations_one_by_one(text: str, make: Make, share: float, is_reduced: bool) -> float:
    """Seconds to propagate atomic operations one by one; the time to reduce them is included."""
    tree = load(text)
    view = Algebraic(tree, pattern_of("Q1"))
    operations = make(tree, share)
    taken = 0.0
    if is_reduced:
        start = thread_time()
        operations = resolved(tree, reduce(addressed(tree, operations)))
        taken += thread_time() - start
    for operation in operations:
        if tree.is_alive(operation.target):
            taken += _followed(tree, view, [operation])
    return taken


def _one_list(text: str, make: Make, share: float, is_reduced: bool) -> float:
    """Seconds to apply the operations as one list, and to propagate it; with the reduction."""
    inside = maintained(Document(text))
    inside.watch(Query(pattern_of("Q1"), "Q1"), maintainer="algebraic")
    edits = addressed(inside.tree, make(inside.tree, share))
    start = thread_time()
    apply_list(inside, edits, reduces=is_reduced)
    return thread_time() - start


_WAYS: dict[str, tuple[Callable[[str, Make, float, bool], float], bool]] = {
    "as given": (_operations_one_by_one, False),
    "reduced": (_operations_one_by_one, True),
    "one list, as given": (_one_list, False),
    "one list, reduced": (_one_list, True),
}


def _persons(tree: Tree, share: float) -> tuple[list[int], list[int]]:
    persons = list(tree.partition("person"))
    return persons, persons[: max(1, round(share * len(persons)))]


def _into(nodes: Sequence[int]) -> list[Operation]:
    content = tuple(read_forest(_FRAGMENT))
    return [Insert(Where.LAST, node, content) for node in nodes]


def _same_target(tree: Tree, share: float) -> list[Operation]:
    persons, some = _persons(tree, share)
    return [*_into(persons), *(Delete(person) for person in some)]


def _target_below(tree: Tree, share: float) -> list[Operation]:
    persons, some = _persons(tree, share)
    names = [n for p in persons for n in tree.children(p) if tree.label(n) == "name"]
    return [*_into(names), *(Delete(person) for person in some)]


def _same_insertion(tree: Tree, share: float) -> list[Operation]:
    persons, some = _persons(tree, share)
    return [*_into(persons), *_into(some)]


_RULES: dict[str, Make] = {"O1": _same_target, "O3": _target_below, "I5": _same_insertion}


# The choice by size -------------------------------------------------------------------------------


def by_size(size: float, operations: Sequence[int], times: int) -> Result:
    """The times of counting and the algebra for statements of these sizes, with changes emitted."""
    result = Result("choice", "counting and the algebra by the size of the update")
    text = document(size)
    result.sizes = {"megabytes": size, "operations": list(operations)}
    lines: dict[str, list[tuple[float, float]]] = {}
    for kind in (Counting, Algebraic):
        tree = load(text)
        start = thread_time()
        view = kind(tree, pattern_of("Q1"))
        view.size()
        result.figures[f"{kind.name}, set up, ms"] = 1e3 * (thread_time() - start)
        persons = list(tree.partition("person"))
        for count in operations:
            taken = [_followed(tree, view, _into(persons[:count])) for _ in range(times)]
            result.figures[f"{kind.name}, {count} operations, ms"] = 1e3 * min(taken)
            lines.setdefault(kind.name, []).append((count, 1e3 * min(taken)))
    title = f"Q1 at {size} MB: an update of so many insertions"
    result.plots = [Plot(title, "operations", "ms", lines, log_x=True, log_y=True)]
    return result
