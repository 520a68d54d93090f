"""The key of a view: the columns that identify a row (docs/design.md, Row identity).

    return $x, $y             ("x", "y")       all plain outputs
    return $x, t.val          ("x", "t.id")    the id of `t` in place of its value
    return t.id, t.val        ("t.id",)

The value or content of a node can change while the row stays, so the key has the node's id in their
place. A collected path has the id of the node at which it starts, and the values of the variables
that it joins with. If the query does not show such an id, it is a hidden output: maintainers keep
`RowKey.pattern`, which has the hidden outputs behind the shown ones, and the view splits the values
of each row into the shown ones and the key.

Law: two rows of a view with equal keys do not hold at the same time. A hidden output is a part of
the row's key by definition (`evaluate/definition.py`), so it adds and removes no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

from axlog.query.normalize import bound_names, bound_variables, variables_of
from axlog.query.pattern import Branch, Collect, Kind, Output, Pattern, PatternNode
from axlog.views.change import Row, Values

_READ = (Kind.VAL, Kind.CONT)


@dataclass(frozen=True, slots=True)
class RowKey:
    """The key columns of a pattern, and the pattern with the outputs that they need."""

    names: tuple[str, ...]
    positions: tuple[int, ...]  # of the key values among the outputs of `pattern`
    pattern: Pattern
    shown: int  # the number of outputs that rows show; the hidden ones follow

    @property
    def is_all(self) -> bool:
        """Whether the key is all values of a row, so that rows need no separate key."""
        return self.positions == tuple(range(self.shown)) and not self.hides

    @property
    def hides(self) -> bool:
        """Whether the key has values that rows do not show."""
        return len(self.pattern.outputs) > self.shown

    def of(self, row: Row) -> Values:
        """The key of a row of a maintainer."""
        values = row.values_
        return tuple([values[at] for at in self.positions])

    def split(self, row: Row, columns: tuple[str, ...]) -> Row:
        """The row of a maintainer with its shown values and its key.

        A row that can never come lacks hidden values. They are None in its key.
        """
        values = row.values_
        known = len(values)
        key: Values = tuple([values[at] if at < known else None for at in self.positions])
        return type(row)(columns, values[: self.shown], row.count, key)


@lru_cache(maxsize=1024)
def row_key(pattern: Pattern) -> RowKey:
    """The key of a pattern's rows.

    >>> from axlog.query.query import parse_query
    >>> row_key(parse_query("match //a#t/$x return $x, t.val").pattern).names
    ('x', 't.id')
    """
    pattern = _with_named_anchors(pattern)
    outputs = list(pattern.outputs)
    collected = _collected(pattern)
    at: dict[tuple[Kind, str], int] = {}
    for number, output in enumerate(outputs):
        at.setdefault((output.kind, output.of), number)
    positions: dict[int, None] = {}
    for number, output in enumerate(pattern.outputs):
        is_collected = output.kind is not Kind.VARIABLE and output.of in collected
        if is_collected:
            needed = collected[output.of]
        elif output.kind in _READ:
            needed = ((Kind.ID, output.of),)
        else:
            positions[number] = None
            continue
        for part in needed:
            if part not in at:
                at[part] = len(outputs)
                outputs.append(_hidden(*part, outputs))
            positions[at[part]] = None
    names = tuple(outputs[position].column for position in positions)
    whole = replace(pattern, outputs=tuple(outputs))
    return RowKey(names, tuple(positions), whole, len(pattern.outputs))


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
    fresh = (name for number in count(1) if (name := f"from~{number}") not in taken)
    return replace(pattern, branches=tuple(_anchored(each, fresh) for each in pattern.branches))


def _anchored(branch: Branch, fresh: Iterator[str]) -> Branch:
    if not isinstance(branch, PatternNode):
        return branch
    below = tuple(_anchored(each, fresh) for each in branch.branches)
    is_anchor = any(isinstance(each, Collect) for each in below)
    name = next(fresh) if is_anchor and branch.name is None else branch.name
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
