"""Variables after `group by`: sequences over the tuples of a group, as look-ups in the group.

A path from such a variable is taken for each tuple by itself where that gives the same nodes, so
that `sum($o/total)` of a group follows from the tuples that come and go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from axlog.query.plan import Collection, OutputItems
from axlog.query.plan_rewrites import has_positional_filter, rebuilt, references_in
from axlog.query.plan_sources import is_value_step
from axlog.query.syntax_tree import (
    Expression,
    Flwor,
    For,
    Kept,
    Let,
    Path,
    Reference,
    Where,
)


class Regrouping:
    """Replaces the variables that `group by` makes sequences of by look-ups of the group."""

    def __init__(
        self, number: int, grouped: Collection, names: set[str], keys: tuple[Expression, ...]
    ) -> None:
        self._number = number
        self._grouped = grouped
        self._names = names
        self._keys = keys

    def of(self, value: Any) -> Any:
        """A part of the query after `group by`, with the look-ups in place."""
        match value:
            case Path(start=Reference(name=name)) if name in self._names:
                return self._path(value)
            case Flwor(clauses=(For() as first, *rest)) if type(first) is For:
                mentioned = references_in(value)
                is_plain = all(type(each) in (For, Let, Where) for each in rest)
                is_one = len(mentioned) == 1 and mentioned <= self._names
                if is_plain and is_one and self._distributes(first.source):
                    return self._output(value, False)
        return rebuilt(value, self.of)

    def _distributes(self, source: Any) -> bool:
        match source:
            case Path(start=Reference(), steps=steps):
                return self._length(steps) == len(steps)
        return False

    def _length(self, steps: tuple[Any, ...]) -> int:
        """The number of steps that may be taken for each tuple by itself."""
        for at, step in enumerate(steps):
            if references_in(step) or has_positional_filter((step,)):
                return at
        return len(steps)

    def _path(self, path: Path) -> Any:
        length = self._length(path.steps)
        steps = path.steps[:length]
        is_values = bool(steps) and is_value_step(steps[-1])
        found = self._output(replace(path, steps=steps), bool(steps) and not is_values)
        if length == len(path.steps):
            return found
        return Path(found, tuple(self.of(step) for step in path.steps[length:]), path.at)

    def _output(self, value: Any, is_path: bool) -> Kept:
        made = OutputItems(value, is_path)
        if made not in self._grouped.outputs:
            self._grouped.outputs.append(made)
        return Kept(self._number, self._grouped.outputs.index(made), "all", self._keys, value.at)
