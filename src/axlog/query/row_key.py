"""The key of a view: the columns that identify a row (docs/design.md, Row identity).

    return $x, $y             ("x", "y")       all plain outputs
    return $x, t.val          ("x", "t.id")    the id of `t` in place of its value
    return t.id, t.val        ("t.id",)

A group is known by the values that it is grouped by. An order with a limit keeps the key of the
rows that it orders.

The value or content of a node can change while the row stays, so the key has the node's id in their
place. A value that is computed from them has the ids of these nodes and the other outputs that it
is computed from. A collected path has the id of the node at which it starts, and the values of the
variables that it joins with. If the query does not show such an output, it is a hidden one:
maintainers keep `RowKey.pattern` and `RowKey.steps`, which have the hidden outputs behind the shown
ones, and the view splits the values of each row into the shown ones and the key.

Law: two rows of a view with equal keys do not hold at the same time. A hidden output is a part of
the row's key by definition (`evaluate/definition.py`), so it adds and removes no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

from axlog.query.aggregate_patterns import START, variables_bound
from axlog.query.columns import Columns, ColumnType
from axlog.query.normalize import bound_names, bound_variables, variables_of
from axlog.query.pattern import Branch, Collect, Kind, Output, Pattern, PatternNode
from axlog.query.steps import Cell, Compute, Group, Step, columns_after, is_hidden
from axlog.query.syntax_tree import Reference, references

_READ = (Kind.VAL, Kind.CONT)
_Part = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class RowKey:
    """The key columns of a query, and its pattern and steps with the outputs that they need."""

    names: tuple[str, ...]
    positions: tuple[int, ...]  # of the key values among the columns of a kept row
    pattern: Pattern
    steps: tuple[Step, ...]
    columns: Columns  # that rows show; they come first
    kept: Columns  # of the rows that maintainers keep: those that rows show, then hidden ones

    @property
    def is_all(self) -> bool:
        """Whether the key is all values of a row, so that rows need no separate key."""
        return self.positions == tuple(range(len(self.columns))) and not self.hides

    @property
    def hides(self) -> bool:
        """Whether maintainers keep values that rows do not show."""
        return len(self.kept) > len(self.columns)


@lru_cache(maxsize=1024)
def row_key(pattern: Pattern, steps: tuple[Step, ...] = ()) -> RowKey:
    """The key of a query's rows. `Query.row_key` gives it for a query.

    >>> from axlog.query.query import parse_query
    >>> parse_query("match //a#t/$x return $x, t.val").key
    ('x', 't.id')
    """
    needed = _Needed(_with_named_anchors(pattern))
    if not steps:
        positions: dict[int, None] = {}
        for number, output in enumerate(pattern.outputs):
            parts = needed.parts(output)
            found = [number] if parts is None else [needed.position(part) for part in parts]
            positions |= dict.fromkeys(found)
        whole = needed.whole()
        return _made(positions, whole, (), whole.columns, len(pattern.outputs))
    columns = columns_after(steps, zip(pattern.columns, pattern.columns.types, strict=True))
    shown = sum(1 for name in columns if not is_hidden(name))
    group = next((step for step in steps if isinstance(step, Group)), None)
    cells = _last_cells(steps)
    if group is not None:
        keys = [at for at, name in enumerate(columns) if _refers(cells.get(name), group.keys)]
        kept = Columns(columns, columns.values())
        return _made(dict.fromkeys(keys), needed.whole(), steps, kept, shown)
    return _computed(needed, steps, columns, cells, shown)


def _computed(
    needed: _Needed,
    steps: tuple[Step, ...],
    columns: dict[str, ColumnType],
    cells: dict[str, Cell],
    shown: int,
) -> RowKey:
    """The key of rows with computed columns: ids in place of those computed from a node's value."""
    outputs = {output.column: output for output in needed.outputs}
    names = list(columns)
    at = {  # the positions of outputs that rows show as they are
        cell.expression.name: number
        for number, cell in enumerate(cells.values())
        if isinstance(cell.expression, Reference)
    }
    positions: dict[int, None] = {}
    added: list[Cell] = []
    for number, cell in enumerate(list(cells.values())[:shown]):
        read = [outputs[name] for name in sorted(references(cell.expression))]
        instead = [needed.parts(output) for output in read]
        if all(parts is None for parts in instead):
            positions[number] = None
            continue
        for part in (
            part
            for output, parts in zip(read, instead, strict=True)
            for part in (((output.kind, output.of),) if parts is None else parts)
        ):
            output = needed.outputs[needed.position(part)]
            if output.column not in at:
                at[output.column] = len(names)
                name = output.column
                while name in names:
                    name += "~"
                names.append(name)
                kind = Pattern((), (), (output,)).columns.types[0]
                added.append(Cell(name, Reference(output.column, 0), kind))
            positions[at[output.column]] = None
    longer = tuple(
        replace(step, cells=(*step.cells, *added)) if isinstance(step, Compute) else step
        for step in steps
    )
    kept = Columns(names, [*columns.values(), *(cell.type for cell in added)])
    return _made(positions, needed.whole(), longer, kept, shown)


def _made(
    positions: dict[int, None], whole: Pattern, steps: tuple[Step, ...], kept: Columns, shown: int
) -> RowKey:
    key_types = [kept.types[at] for at in positions]
    columns = Columns(kept[:shown], kept.types[:shown], key_types)
    key = tuple(kept[at] for at in positions)
    return RowKey(key, tuple(positions), whole, steps, columns, kept)


class _Needed:
    """The outputs of a pattern, to which those that a key needs are added."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self.outputs = list(pattern.outputs)
        self._collected = _collected(pattern)
        self._at: dict[_Part, int] = {}
        for number, output in enumerate(self.outputs):
            self._at.setdefault((output.kind, output.of), number)

    def parts(self, output: Output) -> tuple[_Part, ...] | None:
        """The outputs that identify a row in place of this one; None: itself."""
        if output.kind is not Kind.VARIABLE and output.of in self._collected:
            return self._collected[output.of]
        return ((Kind.ID, output.of),) if output.kind in _READ else None

    def position(self, part: _Part) -> int:
        """The position of an output, which is added if the pattern lacks it."""
        if part not in self._at:
            self._at[part] = len(self.outputs)
            self.outputs.append(_hidden(*part, self.outputs))
        return self._at[part]

    def whole(self) -> Pattern:
        """The pattern with the outputs that were added."""
        return replace(self._pattern, outputs=tuple(self.outputs))


def _last_cells(steps: tuple[Step, ...]) -> dict[str, Cell]:
    """The cells of the last computation, by name."""
    for step in reversed(steps):
        if isinstance(step, Compute):
            return {cell.name: cell for cell in step.cells}
    return {}


def _refers(cell: Cell | None, keys: tuple[str, ...]) -> bool:
    """Whether a column of a query with groups is one of their keys."""
    return (
        cell is not None
        and isinstance(cell.expression, Reference)
        and (cell.expression.name in keys)
    )


def _hidden(kind: Kind, of: str, outputs: Iterable[Output]) -> Output:
    taken = {output.column for output in outputs}
    made = Output(kind, of)
    while made.column in taken:
        made = Output(kind, of, f"{made.column}~")
    return made


def _collected(pattern: Pattern) -> dict[str, tuple[tuple[Kind, str], ...]]:
    """For each name inside a collected path, the outputs that identify the row of the path."""
    bound = bound_variables(pattern.branches)
    found: dict[str, tuple[tuple[Kind, str], ...]] = {}
    for collect, anchor in _collects(pattern.branches, None):
        joined = sorted(variables_of(collect.node) & bound)
        parts = [] if anchor is None else [(Kind.ID, anchor)]
        parts += [(Kind.VARIABLE, variable) for variable in joined]
        found |= dict.fromkeys(bound_names((collect.node,)), tuple(parts))
    return found


def _with_named_anchors(pattern: Pattern) -> Pattern:
    """The pattern with a name for every node at which a collected path starts."""
    if not any(True for _ in _collects(pattern.branches, None)):
        return pattern
    taken = {node.name for node in pattern.nodes()}
    fresh = (name for number in count(1) if (name := f"{START}{number}") not in taken)
    return replace(pattern, branches=tuple(_anchored(each, fresh) for each in pattern.branches))


def _anchored(branch: Branch, fresh: Iterator[str]) -> Branch:
    if not isinstance(branch, PatternNode):
        return branch
    below = tuple(_anchored(each, fresh) for each in branch.branches)
    is_anchor = any(isinstance(each, Collect) for each in below)
    name = branch.name
    if is_anchor and name is None:
        name = next(fresh).replace(START, "at~") if variables_bound(branch) else next(fresh)
    return replace(branch, name=name, branches=below)


def _collects(
    branches: Iterable[Branch], above: PatternNode | None
) -> Iterator[tuple[Collect, str | None]]:
    """Every collected path, with the name of the node at which it starts; None: the document."""
    for branch in branches:
        if isinstance(branch, Collect):
            yield branch, None if above is None else above.name
        elif isinstance(branch, PatternNode):
            yield from _collects(branch.branches, branch)
