"""Generated joins: the delta rule of one edge of one relation as straight-line Python.

    ΔR = ΔL_i ⋈ own ⋈ L_1 ⋈ ... (without i) ⋈ L_k   where tests, projected

for relations without connectives, which is what messages mostly meet. `sites.py` holds the general
rule that this one is checked by; both look up the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, TypeAlias

from axlog.errors import QueryError
from axlog.evaluate.joins import Bag, JoinPlan, Meeting, Row, make_check, too_many_rows
from axlog.evaluate.work import Meter
from axlog.match.matcher_generator import Sink
from axlog.query.compile import Column, Relation, Test
from axlog.query.pattern import TimeConstraint
from axlog.views.counting.tables import Positions, Table

if TYPE_CHECKING:
    from axlog.views.counting.sites import State
    from axlog.views.counting.waiting_rows import Waiting

Push: TypeAlias = Callable[[Bag, Row, list[Table]], Bag]
MOST_PARTS = 15
"""Parts that are joined by generated code at most: each is a loop, and Python nests twenty."""
MOST_PRODUCTS = 1
"""Parts that share nothing with the others, at most where nobody counts what comes of it."""


def join_order(
    parts: list[tuple[Column, ...]], layout: list[Column], without: int | None
) -> list[tuple[int, Meeting]]:
    """The parts in the order they are joined: what shares most with what is there comes first."""
    steps: list[tuple[int, Meeting]] = []
    columns, bound = [frozenset(part) for part in parts], set(layout)
    waiting = [number for number in range(len(parts)) if number != without]
    while waiting:
        number = max(waiting, key=lambda each: len(columns[each] & bound))
        waiting.remove(number)
        meeting = Meeting(layout, parts[number])
        steps.append((number, meeting))
        layout += meeting.added_columns
        bound |= columns[number]
    return steps


def ready_tests(waiting: list[Test], bound: Container[Column]) -> list[Test]:
    """The tests whose columns are all bound by now; they wait no more."""
    ready: list[Test] = []
    left: list[Test] = []
    for test in waiting:
        (ready if all(column in bound for column in test.columns) else left).append(test)
    waiting[:] = left
    return ready


def keys_used(plan: JoinPlan, seeds: list[tuple[Column, ...]]) -> list[list[Positions]]:
    """For each part of a relation, the positions that joins from these seeds look it up by."""
    used: list[list[Positions]] = [[] for _ in plan.parts]
    for number, columns in enumerate(seeds):
        layout = list(dict.fromkeys([*columns, *plan.own]))
        without = number if number < len(plan.parts) else None
        for part, meeting in join_order(plan.parts, layout, without):
            used[part].append(meeting.positions)
    return used


def generate_push(
    relation: Relation, number: int, most_rows: int, meter: Meter
) -> tuple[Push, str] | None:
    """The push of one edge, with its source; None where connectives need the general rule.

    Parts that share nothing multiply: there the rows of the result are counted. The rows read are
    counted wherever a key has several.
    """
    plan = JoinPlan(relation)
    if relation.choices or relation.absences or len(plan.parts) > MOST_PARTS:
        return None
    where: dict[Column, str] = {c: f"row[{i}]" for i, c in enumerate(plan.parts[number])}
    constants: dict[str, object] = {"read": meter.read}
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
    is_counted = _products(plan.parts, steps) > MOST_PRODUCTS
    if is_counted:
        lines.append("    met = 0")
        constants |= {"MOST": most_rows, "too_many_rows": too_many_rows}
    lines.append("    for row, count in delta.items():")
    depth = 2
    if conditions:
        lines.append("    " * depth + f"if {' and '.join(conditions)}:")
        depth += 1
    counts = ["count"]
    waiting = list(relation.tests)
    for at, (part, meeting) in enumerate(steps):
        tests = _ready(waiting, where, constants)
        if tests:
            lines.append("    " * depth + f"if {' and '.join(tests)}:")
            depth += 1
        key = "".join(f"{where[plan.parts[part][i]]}, " for i in meeting.positions)
        lines.append("    " * depth + f"found{at} = index{at}.get(({key}))")
        lines.append("    " * depth + f"if found{at} is not None:")
        depth += 1
        pairs = f"read(found{at}) if type(found{at}) is dict else (found{at},)"
        lines.append("    " * depth + f"for row{at}, count{at} in ({pairs}):")
        depth += 1
        for i, column in enumerate(plan.parts[part]):
            where.setdefault(column, f"row{at}[{i}]")
        counts.append(f"count{at}")
    if is_counted:
        lines.append("    " * depth + "met += 1")
        lines.append("    " * depth + "if met > MOST: raise too_many_rows(MOST)")
    tests = _ready(waiting, where, constants)
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


def can_push(relation: Relation) -> bool:
    """Whether sinks can be generated for a relation: no connectives, and not too many parts."""
    if relation.choices or relation.absences:
        return False
    if sum(bool(edge.relation.columns) for edge in relation.edges) > MOST_PARTS:
        return False
    plan = JoinPlan(relation)
    orders = (
        join_order(plan.parts, list(dict.fromkeys([*columns, *plan.own])), number)
        for number, columns in enumerate(plan.parts)
    )
    return all(_products(plan.parts, steps) <= MOST_PRODUCTS for steps in orders)


def _products(parts: list[tuple[Column, ...]], steps: list[tuple[int, Meeting]]) -> int:
    """How many parts are joined by nothing: each multiplies the rows."""
    return sum(bool(parts[part]) and not meeting.positions for part, meeting in steps)


def generate_sink(state: State, number: int, then: Sink) -> tuple[Sink, str]:
    """A sink for rows of one edge at a site, with its source; what they join to goes to `then`."""
    writer = _Push(state.relation, number)
    scope: dict[str, object] = {
        "then": then,
        "own": state.own,
        "read": state.seeds.meter.read,
        "note": state.seeds.note,
        "QueryError": QueryError,
    }
    source = writer.function(state.tables, state.waiting, scope)
    exec(_compiled(source), scope)
    return scope["push"], source  # type: ignore[return-value]


@lru_cache(maxsize=512)
def _compiled(source: str) -> CodeType:
    """One relation has the same code at all sites, and again whenever routes change."""
    return compile(source, "<push>", "exec")


class _Push:
    """Writes the code of one push."""

    def __init__(self, relation: Relation, number: int) -> None:
        self.relation = relation
        self.number = number
        self.plan = JoinPlan(relation)
        self.columns = self.plan.parts[number]
        self.lines: list[str] = []
        self.keys: dict[str, str] = {}  # tuples of the row's values, and what they are called

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def function(
        self, tables: list[Table], waiting: Waiting | None, scope: dict[str, object]
    ) -> str:
        name, number = self.relation.name, self.number + 1
        self.line(0, f"def push(row, count, answers):  # {name}, edge {number}")
        at = len(self.lines)
        self.line(1, "try:")
        self._join(tables, scope)
        self.line(1, "except QueryError as error:  # over budget: the relation is set aside")
        self.line(2, "note(error)")
        keeper = None if waiting is None else waiting.keeper(self.number)
        if tables and (keeper is None or (waiting is not None and not waiting.drops)):
            self._keep(tables[self.number], scope)
        if waiting is not None and keeper is not None:
            if waiting.keeps_none(self.number):
                waiting.passes_by = True
            else:
                scope["keep"] = keeper
                self.line(1, "keep(row, count)")
        self.lines[at:at] = [f"    {name} = {value}" for value, name in self.keys.items()]
        return "\n".join(self.lines) + "\n"

    def _join(self, tables: list[Table], scope: dict[str, object]) -> None:
        """What the row joins to."""
        parts, own = self.plan.parts, list(dict.fromkeys(self.plan.own))
        where = {column: f"row[{i}]" for i, column in enumerate(self.columns)}
        conditions = [f"{where[c]} == own[{i}]" for i, c in enumerate(own) if c in where]
        where.update({c: f"own[{i}]" for i, c in enumerate(own) if c not in where})
        steps = join_order(parts, list(where), self.number)
        for at, (part, meeting) in enumerate(steps):
            scope[f"index{at}"] = tables[part].index(meeting.positions)
        scales = [at for at, (part, _) in enumerate(steps) if not parts[part]]
        for at in scales:
            self.line(2, f"scale{at} = index{at}.get(())")
        conditions += [f"scale{at}" for at in scales]
        counts = ["count", *(f"scale{at}[1]" for at in scales)]
        waiting = list(self.relation.tests)
        depth = 2
        if conditions:
            self.line(depth, f"if {' and '.join(conditions)}:")
            depth += 1
        for at, (part, meeting) in enumerate(steps):
            if at in scales:
                continue
            tests = _ready(waiting, where, scope)
            if tests:
                self.line(depth, f"if {' and '.join(tests)}:")
                depth += 1
            key = self._tuple([where[parts[part][i]] for i in meeting.positions])
            self.line(depth, f"found = index{at}.get({key})")
            self.line(depth, "if found is not None:")
            pairs = "read(found) if type(found) is dict else (found,)"
            self.line(depth + 1, f"for row{at}, count{at} in {pairs}:")
            depth += 2
            for i, column in enumerate(parts[part]):
                where.setdefault(column, f"row{at}[{i}]")
            counts.append(f"count{at}")
        tests = _ready(waiting, where, scope)
        if tests:
            self.line(depth, f"if {' and '.join(tests)}:")
            depth += 1
        shown = self._tuple([where[column] for column in self.relation.columns])
        self.line(depth, f"then({shown}, {' * '.join(counts)}, answers)")

    def _keep(self, table: Table, scope: dict[str, object]) -> None:
        """Add the row to its own table."""
        scope["put"] = table.put
        for at, positions in enumerate(table.keys()):
            scope[f"kept{at}"] = table.index(positions)
            key = self._tuple([f"row[{i}]" for i in positions])
            self.line(1, f"if {key} in kept{at}:")
            self.line(2, f"put(kept{at}, {key}, row, count)")
            self.line(1, "else:")
            self.line(2, f"kept{at}[{key}] = (row, count)")

    def _tuple(self, values: list[str]) -> str:
        """A row of these values; made once where it comes from the row alone, or the row itself."""
        if values == [f"row[{i}]" for i in range(len(self.columns))]:
            return "row"
        made = f"({''.join(value + ', ' for value in values)})"
        if values and all(value.startswith("row[") for value in values):
            return self.keys.setdefault(made, f"key{len(self.keys)}")
        return made


def _ready(
    waiting: list[Test], where: dict[Column, str], constants: dict[str, object]
) -> list[str]:
    """The conditions of the tests whose columns are all bound by now."""
    return [_condition(test, where, constants) for test in ready_tests(waiting, where)]


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
