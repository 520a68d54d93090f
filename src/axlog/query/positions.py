"""Positions in the text of a query, so that every error can point at its cause.

Parsers keep offsets only. A `Place` (line, column, caret) is computed when an error needs one.
Lines are those of `str.splitlines`, as in `Place.caret`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from axlog.errors import Place


def place_at(text: str, offset: int) -> Place:
    """The line and column of an offset (0-based, up to the text's length)."""
    # The extra character keeps splitlines from dropping an empty last line.
    before = (text[:offset] + "^").splitlines()
    return Place(line=len(before), column=len(before[-1]), text=text)


@dataclass
class Places:
    """Offsets of a pattern's names, variables, constraints and outputs, in the order of writing.

    `names` and `variables` list the occurrences in branches. `where`, `outputs` and `collects` have
    one offset for every constraint, output and `collect(...)`.
    """

    text: str
    names: dict[str, list[int]] = field(default_factory=dict)
    variables: dict[str, list[int]] = field(default_factory=dict)
    where: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    collects: list[int] = field(default_factory=list)

    def name(self, name: str) -> Place | None:
        """The last declaration of a node name; of two, this is the duplicate."""
        return self._at(self.names.get(name, ()), -1)

    def variable(self, variable: str) -> Place | None:
        """The first occurrence of a variable."""
        return self._at(self.variables.get(variable, ()), 0)

    def constraint(self, index: int) -> Place | None:
        return self._at(self.where, index)

    def output(self, index: int) -> Place | None:
        return self._at(self.outputs, index)

    def collect(self, index: int) -> Place | None:
        return self._at(self.collects, index)

    def _at(self, offsets: Sequence[int], index: int) -> Place | None:
        if -len(offsets) <= index < len(offsets):
            return place_at(self.text, offsets[index])
        return None
