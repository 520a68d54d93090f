"""The operators of a view as lines of text, for `explain`."""

from __future__ import annotations

from axlog.document.tree import DOCUMENT_NODE
from axlog.query.compile import Relation
from axlog.views.counting.engine import CountingEngine
from axlog.views.operators.operator import Cost, Operator

MOST = 20
"""The number of lines; a view over a large document has operators at many sites."""


def operator_lines(engine: CountingEngine, root: Relation) -> tuple[str, ...]:
    """One line for each operator that keeps rows: its site, its cost, its state and its key."""
    engine.build()
    mine = set(root.walk())
    lines: list[str] = []
    more = 0
    for node in sorted(engine.sites()):
        for state in engine.states_at(node):
            if state.relation not in mine or state.is_dead:
                continue
            for operator in state.operators():
                if not operator.has_state:
                    continue
                if len(lines) < MOST:
                    lines.append(_line(operator, _place(engine, node)))
                else:
                    more += 1
    return (*lines, *([f"and {more} more"] if more else []))


def _line(operator: Operator, place: str) -> str:
    costs = [operator.cost(port) for port in range(len(operator.tables()))]
    cost = max(costs, key=lambda each: (each.scans, each.probes))
    rows = operator.size().rows
    key = operator.partition_key
    split = f"splits by {', '.join(key)}" if key else "cannot be split"
    return (
        f"{operator.name} at {place}: {_cost(cost)} for a row, keeps {rows} row{_s(rows)}, {split}"
    )


def _cost(cost: Cost) -> str:
    scans = f" and {cost.scans} scan{_s(cost.scans)}" if cost.scans else ""
    return f"{cost.probes} look-up{_s(cost.probes)}{scans}"


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def _place(engine: CountingEngine, node: int) -> str:
    tree = engine.tree
    if node == DOCUMENT_NODE:
        return "/"
    path = [node, *tree.ancestors(node)]
    return "".join(f"/{tree.label(each)}" for each in reversed(path) if each != DOCUMENT_NODE)
