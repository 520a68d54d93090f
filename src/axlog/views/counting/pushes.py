"""Generated joins: the delta rule of one edge of one relation as straight-line Python.

    ΔR = ΔL_i ⋈ own ⋈ L_1 ⋈ ... (without i) ⋈ L_k   where tests, projected

for relations without connectives, which is what messages mostly meet. `sites.py` holds the general
rule that this one is checked by; both look up the same tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from axlog.datalog.compile import Column, Relation, Test
from axlog.datalog.joins import Bag, JoinPlan, Meeting, Row, make_check
from axlog.language.pattern import TimeConstraint
from axlog.views.counting.tables import Positions, Table

Push: TypeAlias = Callable[[Bag, Row, list[Table]], Bag]


def join_order(
    parts: list[tuple[Column, ...]], layout: list[Column], without: int | None
) -> list[tuple[int, Meeting]]:
    """The parts in the order they are joined: what shares most with what is there comes first."""
    steps: list[tuple[int, Meeting]] = []
    waiting = [number for number in range(len(parts)) if number != without]
    while waiting:
        shared = [len(set(parts[number]) & set(layout)) for number in waiting]
        number = waiting.pop(shared.index(max(shared)))
        meeting = Meeting(layout, parts[number])
        steps.append((number, meeting))
        layout += meeting.added_columns
    return steps


def keys_used(relation: Relation, seeds: list[tuple[Column, ...]]) -> list[list[Positions]]:
    """For each part of a relation, the positions that joins from these seeds look it up by."""
    plan = JoinPlan(relation)
    used: list[list[Positions]] = [[] for _ in plan.parts]
    for number, columns in enumerate(seeds):
        layout = list(dict.fromkeys([*columns, *plan.own]))
        without = number if number < len(plan.parts) else None
        for part, meeting in join_order(plan.parts, layout, without):
            used[part].append(meeting.positions)
    return used


def generate_push(relation: Relation, number: int) -> tuple[Push, str] | None:
    """The push of one edge, with its source; None where connectives need the general rule."""
    if relation.choices or relation.absences:
        return None
    plan = JoinPlan(relation)
    where: dict[Column, str] = {c: f"row[{i}]" for i, c in enumerate(plan.parts[number])}
    constants: dict[str, object] = {}
    lines = [
        f"def push(delta, own, tables):  # {relation.name}, edge {number + 1}",
        "    result = {}",
    ]
    own = list(dict.fromkeys(plan.own))
    conditions = [f"{where[c]} == own[{i}]" for i, c in enumerate(own) if c in where]
    where.update({c: f"own[{i}]" for i, c in enumerate(own) if c not in where})
    layout = list(where)
    steps = join_order(plan.parts, layout, number)
    for at, (part, meeting) in enumerate(steps):
        lines.append(f"    index{at} = tables[{part}].index({meeting.positions!r})")
    lines.append("    for row, count in delta.items():")
    depth = 2
    if conditions:
        lines.append("    " * depth + f"if {' and '.join(conditions)}:")
        depth += 1
    counts = ["count"]
    for at, (part, meeting) in enumerate(steps):
        key = "".join(f"{where[plan.parts[part][i]]}, " for i in meeting.positions)
        lines.append("    " * depth + f"found{at} = index{at}.get(({key}))")
        lines.append("    " * depth + f"if found{at} is not None:")
        depth += 1
        pairs = f"found{at}.items() if type(found{at}) is dict else (found{at},)"
        lines.append("    " * depth + f"for row{at}, count{at} in ({pairs}):")
        depth += 1
        for i, column in enumerate(plan.parts[part]):
            where.setdefault(column, f"row{at}[{i}]")
        counts.append(f"count{at}")
    tests = [_condition(test, where, constants) for test in relation.tests]
    if tests:
        lines.append("    " * depth + f"if {' and '.join(tests)}:")
        depth += 1
    shown = "".join(f"{where[column]}, " for column in relation.columns)
    lines.append("    " * depth + f"shown = ({shown})")
    lines.append("    " * depth + f"result[shown] = result.get(shown, 0) + {' * '.join(counts)}")
    lines.append("    return {r: c for r, c in result.items() if c} if len(result) > 1 else result")
    source = "\n".join(lines) + "\n"
    scope: dict[str, object] = dict(constants)
    exec(compile(source, "<push>", "exec"), scope)
    return scope["push"], source  # type: ignore[return-value]


def _condition(test: Test, where: dict[Column, str], constants: dict[str, object]) -> str:
    constraint = test.constraint
    if isinstance(constraint, TimeConstraint):
        terms = " + ".join(
            f"{coefficient} * {where[column]}"
            for (coefficient, _), column in zip(constraint.terms, test.columns, strict=True)
        )
        symbol = "==" if constraint.operator == "=" else constraint.operator
        return f"{terms} {symbol} {constraint.bound}"
    name = f"TEST_{len(constants)}"
    constants[name] = make_check(test, test.columns)
    return f"{name}(({''.join(where[column] + ', ' for column in test.columns)}))"
