"""The members of a family that rows of one part of a join concern.

A parameter is a column of one part of the join that the members share. A row of the part concerns
the members whose constants it passes; a part without parameters concerns all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from axlog.evaluate.joins import Row
from axlog.query.compile import Column
from axlog.query.generalize import AnyParameter, Parameter, ParameterValue
from axlog.views.parameter_index import ParameterIndex

G = TypeVar("G", bound=Hashable)
Constants = tuple[ParameterValue, ...]


class PartMembers(Generic[G]):
    """Members, or groups of members with equal constants, by the rows of one part."""

    def __init__(self, parameters: Sequence[AnyParameter], columns: Sequence[Column]) -> None:
        self.numbers = [
            number
            for number, each in enumerate(parameters)
            if isinstance(each, Parameter) and f"${each.variable}" in columns
        ]
        """The parameters that the part has."""
        mine = [parameters[number] for number in self.numbers]
        self._index: ParameterIndex[G] = ParameterIndex(mine, columns)
        texts = [each for each in mine if each.is_text]
        self.text_at = tuple(columns.index(f"${each.variable}") for each in texts)
        """The positions of texts, which must be equal to those of a member."""
        self.has_texts_only = len(texts) == len(mine)
        """Whether the texts alone say which members a row concerns."""

    def constants(self, constants: Constants) -> Constants:
        """Those of a member's constants that the part decides."""
        return tuple([constants[number] for number in self.numbers])

    def texts(self, constants: Constants) -> Row:
        """The texts of a member at `text_at`."""
        key = self._index.member_key(self.constants(constants))
        return key if len(self.text_at) != 1 else (key,)

    def key(self, constants: Constants) -> Hashable:
        """The texts of a member, as a key."""
        return self._index.member_key(self.constants(constants))  # type: ignore[no-any-return]

    def key_of(self, row: Row) -> Hashable:
        """The same for a row."""
        return self._index.text_key(row)  # type: ignore[no-any-return]

    def add(self, group: G, constants: Constants) -> None:
        """Add members that have these constants."""
        self._index.add(group, self.constants(constants))

    def remove(self, group: G, constants: Constants) -> None:
        """Remove members."""
        self._index.remove(group, self.constants(constants))

    def find(self, row: Row) -> Sequence[G]:
        """The members that a row concerns."""
        return self._index.find(row)

    def test(self, constants: Constants) -> Callable[[Row], bool] | None:
        """Whether a row concerns a member with these constants; None: every row does."""
        if not self.numbers:
            return None
        index, mine = self._index, self.constants(constants)
        key = index.member_key(mine)
        return lambda row: index.text_key(row) == key and index.passes(mine, row)
