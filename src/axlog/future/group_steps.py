"""The steps of a view as its future sees them: what is computed before groups, and asked of them.

A view without aggregates is read as one with groups: every column is a key, and nothing is asked of
a group but that it has a member.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from axlog.errors import UndecidedError, ValueProblem
from axlog.evaluate.scalars import compile_scalar
from axlog.evaluate.steps_definition import apply_steps
from axlog.future.group_members import UNKNOWN
from axlog.query.row_key import RowKey
from axlog.query.steps import (
    Aggregate,
    Cell,
    Clock,
    Compute,
    Distinct,
    Filter,
    Group,
    Order,
    Positions,
    Scalar,
    Step,
    collected_after,
)
from axlog.query.syntax_tree import Binary, Constant, Reference, references

Row = Mapping[str, Any]


class GroupSteps:
    """The steps of a view, split at its group."""

    def __init__(self, key: RowKey) -> None:
        self._key = key
        steps = [each for each in key.steps if not isinstance(each, Distinct)]
        for each in steps:
            if isinstance(each, Order) and each.limit is not None:
                raise UndecidedError(
                    "AX503",
                    "the future of the first rows of an order is not decided: a row goes when a"
                    " better one comes",
                    advice="ask a view without `limit`",
                )
            if isinstance(each, Positions):
                raise UndecidedError(
                    "AX503",
                    "the future of a view with positions is not decided: a row goes when a sibling"
                    " comes before its node",
                    advice="ask a view without positions",
                )
            if isinstance(each, Clock):
                raise UndecidedError(
                    "AX502",
                    "the future of a view with `now` is not decided",
                    advice="ask a view of the times of the nodes: where u - t <= 2h",
                )
        steps = [each for each in steps if not isinstance(each, Order)]
        self._group = next((each for each in steps if isinstance(each, Group)), None)
        at = len(steps) if self._group is None else steps.index(self._group)
        self._before: Sequence[Step] = steps[:at]
        after = steps[at + 1 :]
        self.having = [each.condition for each in after if isinstance(each, Filter)]
        self._cells = _last_cells(after)
        columns = list(key.pattern.columns)
        self.plain: dict[str, str] = {name: name for name in columns}
        """Columns before the group that show an output of the pattern as it is."""
        self._program: list[_Function | list[tuple[str, _Function]]] = []
        self._compile(columns)
        names = tuple(key.columns)
        self.keys: tuple[str, ...] = names if self._group is None else self._group.keys
        self.aggregates: tuple[Aggregate, ...] = (
            () if self._group is None else self._group.aggregates
        )
        self.arguments = sorted({a.argument for a in self.aggregates if a.argument is not None})

    def _compile(self, columns: list[str]) -> None:
        times = {columns[at] for at in self._key.pattern.columns.times}
        collected = self._key.pattern.columns.collected
        for step in self._before:
            if collected and _reads(step, collected):
                raise UndecidedError(
                    "AX503",
                    "the future of a view that computes with all nodes of a path is not decided",
                    advice="bind the nodes with $x and write an aggregate in `return`",
                )
            collected = collected_after(step, collected)
            if isinstance(step, Filter):
                self._program.append(_Function(step.condition, columns, times))
            elif isinstance(step, Compute):
                self._program.append(
                    [
                        (cell.name, _Function(cell.expression, columns,
                                              () if cell.type == "time" else times))
                        for cell in step.cells
                    ]
                )  # fmt: skip
                self.plain = {
                    cell.name: self.plain[cell.expression.name]
                    for cell in step.cells
                    if isinstance(cell.expression, Reference) and cell.expression.name in self.plain
                }
                columns = [cell.name for cell in step.cells]
                times = {cell.name for cell in step.cells if cell.type == "time"}

    @property
    def has_conditions(self) -> bool:
        """Whether rows of the pattern are tested before they are grouped."""
        return any(isinstance(each, Filter) for each in self._before)

    def before(self, base: Row) -> tuple[bool | None, Row]:
        """Whether a row of the pattern passes, and the columns that the group sees."""
        passes: bool | None = True
        found = base
        for part in self._program:
            if isinstance(part, _Function):
                holds = part(found)
                if holds is UNKNOWN:
                    passes = None if passes else passes
                elif holds is not True:
                    passes = False
            else:
                found = {name: function(found) for name, function in part}
        return passes, found

    def rows(self, base: Sequence[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
        """The rows of the view, from those of the pattern."""
        kept = apply_steps([(row, 1) for row in base], self._key.pattern, self._key.steps)
        return {row[: len(self._key.columns)] for row, _ in kept}

    def asked(self, row: Row) -> tuple[list[Scalar], dict[str, Any]]:
        """The conditions on aggregates, and the key values, that a row of the view means."""
        conditions: list[Scalar] = []
        given: dict[str, Any] = {}
        for name, value in row.items():
            key = self.shown_key(name)
            if key is not None:
                given[key] = value
                continue
            cell = self._cells[name]
            constant = Constant(value if isinstance(value, str) else float(value), 0,
                                None if isinstance(value, str) else value)  # fmt: skip
            conditions.append(Binary("=", cell.expression, constant, 0))  # type: ignore[arg-type]
        return conditions, given

    def shown_key(self, column: str) -> str | None:
        """The key that a column of the view shows; None: it shows something else."""
        if self._group is None:
            return column
        expression = self._cells[column].expression
        is_key = isinstance(expression, Reference) and expression.name in self.keys
        return expression.name if is_key and isinstance(expression, Reference) else None

    @property
    def said(self) -> str:
        """What a row asks of its group."""
        if self.having:
            return "the condition of `having`"
        return "a row with these values" if self.aggregates else "a condition of `where`"


class _Function:
    """An expression over columns; UNKNOWN if it reads a value that is not known."""

    def __init__(self, expression: Scalar, columns: Sequence[str], times: Collection[str]) -> None:
        self._columns = columns
        self._read = references(expression)
        self._compute = compile_scalar(expression, columns, times=set(times))

    def __call__(self, row: Row) -> Any:
        if any(row[name] is UNKNOWN for name in self._read):
            return UNKNOWN
        try:
            return self._compute(tuple(row[name] for name in self._columns))
        except ValueProblem:
            return None


def _reads(step: Step, columns: frozenset[str]) -> bool:
    """Whether a step computes with one of these columns, other than to copy it."""
    if isinstance(step, Filter):
        return not references(step.condition).isdisjoint(columns)
    return isinstance(step, Compute) and any(
        not isinstance(cell.expression, Reference)
        and not references(cell.expression).isdisjoint(columns)
        for cell in step.cells
    )


def _last_cells(steps: Sequence[Step]) -> dict[str, Cell]:
    for step in reversed(steps):
        if isinstance(step, Compute):
            return {cell.name: cell for cell in step.cells}
    return {}
