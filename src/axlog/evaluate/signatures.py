"""Signatures of functions: how arguments are converted before a function sees them.

A signature is written as the recommendation does, in short: `string? string? [string]` has two
arguments and one that may be left out. `?` allows the empty sequence (None), `*` any sequence (a
list). Arguments of atomic types are atomised; an untyped value is cast to the type, numbers are
promoted to double, and any other type raises XPTY0004 (XPath 3.1, section 3.1.5.2). `item` and
`node` take items as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from axlog.document.tree import Tree
from axlog.errors import ValueProblem
from axlog.evaluate.atoms import NUMERIC, Atom, Untyped, is_of, type_of
from axlog.evaluate.casts import cast
from axlog.evaluate.items import Item, Items, New, Node, atom
from axlog.query.numbers import double

_ITEMS = frozenset({"item", "node"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its type, and how many values it takes."""

    type: str
    occurrence: str = ""

    @property
    def is_sequence(self) -> bool:
        """Whether it takes any number of values, as a list."""
        return self.occurrence == "*"

    @property
    def is_atomic(self) -> bool:
        """Whether its arguments are atomised."""
        return self.type not in _ITEMS

    def of_items(self, tree: Tree, items: Items) -> Any:
        """The argument for a sequence: a value, None, or a list."""
        if not self.is_atomic:
            if self.type == "node" and not all(isinstance(item, Node | New) for item in items):
                raise ValueProblem("XPTY0004", "expected a node, found a value")
            return items if self.is_sequence else self._single(items)
        values = [atom(tree, item) for item in items]
        if self.is_sequence:
            return [self.of_value(value) for value in values]
        one: Any = self._single(values)
        return None if one is None else self.of_value(one)

    def _single(self, items: list[Any]) -> Item | None:
        if len(items) > 1:
            raise ValueProblem("XPTY0004", "expected one value, found several")
        if items:
            return items[0]  # type: ignore[no-any-return]
        self.missing()
        return None

    def missing(self) -> None:
        """The argument for the empty sequence."""
        if not self.occurrence:
            raise ValueProblem("XPTY0004", "expected one value, found none")

    def of_value(self, value: Atom) -> Atom:
        """The argument for one value."""
        kind = type(value)
        match self.type:
            case "string":
                if kind is str:
                    return value
                if kind is Untyped:
                    return str.__str__(value)
            case "any" | "item":
                return value
            case "numeric":
                if kind in NUMERIC:
                    return value
                if kind is Untyped:
                    return cast(value, "xs:double")
            case "double":
                if kind in NUMERIC:
                    return double(value)  # type: ignore[arg-type]
                if kind is Untyped:
                    return cast(value, "xs:double")
            case type_:
                name = f"xs:{type_}"
                if is_of(value, name):
                    return value
                if kind is Untyped:
                    return cast(value, name)
        raise ValueProblem("XPTY0004", f"expected {self.type}, found {type_of(value)}")


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its parameters, and how it is calculated.

    `least` of the parameters are required; the last one repeats if `is_open`. `takes_tree`: the
    tree comes before the arguments. `is_many`: the result is a list; otherwise a value or None. If
    `takes_context`, a call without arguments takes the context item.
    """

    parameters: tuple[Parameter, ...]
    least: int
    apply: Callable[..., Any]
    is_many: bool = False
    is_open: bool = False
    takes_tree: bool = False
    takes_context: bool = False

    @property
    def most(self) -> int:
        """The greatest number of arguments."""
        return 999 if self.is_open else len(self.parameters)

    def parameter(self, number: int) -> Parameter:
        """The parameter of the n-th argument, from 0."""
        return self.parameters[min(number, len(self.parameters) - 1)]

    @property
    def is_scalar(self) -> bool:
        """Whether all arguments are single atomic values: no nodes, no sequences."""
        return not self.takes_tree and all(
            each.is_atomic and not each.is_sequence for each in self.parameters
        )

    def value(self, tree: Tree, arguments: list[Items]) -> Items:
        """The value of a call."""
        given = [self.parameter(at).of_items(tree, items) for at, items in enumerate(arguments)]
        found = self.apply(tree, *given) if self.takes_tree else self.apply(*given)
        if self.is_many:
            return found  # type: ignore[no-any-return]
        return [] if found is None else [found]


def function(signature: str, apply: Callable[..., Any], **options: bool) -> Function:
    """A function by its signature.

    >>> function("string? [string]", str.upper).least
    1
    """
    parameters = []
    least = 0
    for written in signature.split():
        name = written.strip("[]")
        bare = name.rstrip("?*")
        parameters.append(Parameter(bare, name[len(bare) :]))
        least += not written.startswith("[")
    return Function(tuple(parameters), least, apply, **options)
