"""The scopes of a pattern: the homes of variables and names, and the bindings of conjunctions.

The root, the inside of every `not`, every alternative of an `or` and the inside of every `collect`
is a scope: a conjunction that can have variables of its own. A pattern node binds in its own scope.
An `or` binds (exports) in its scope the variables that all its alternatives bind. No binding leaves
a `not` or a `collect` (docs/meaning.md, Rows). `normalize.py` checks and renames with these scopes;
engines use the set functions at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from axlog.query.pattern import (
    Branch,
    Collect,
    Constraint,
    Not,
    Or,
    PatternNode,
    Variable,
    nodes_of,
)


class ScopeKind(Enum):
    """The kinds of scope, with the words for them in errors."""

    ROOT = "the query"
    NOT = "not(...)"
    ALTERNATIVE = "one alternative of an `or`"
    COLLECT = "collect(...)"


@dataclass(eq=False, slots=True)
class Scope:
    """One conjunction: its own names and variables, and its parts in the order of writing.

    `surely` are the variables that it binds in every match, `variables` all those that occur in it.
    """

    kind: ScopeKind
    above: Scope | None = None
    depth: int = 0
    where: tuple[Constraint, ...] = ()
    names: list[str] = field(default_factory=list)
    binding: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    parts: list[Scope | Choice] = field(default_factory=list)
    # derived from the parts
    surely: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    # set by the normal form: variables to rename in this scope, constraints that belong to it
    renames: dict[str, str] = field(default_factory=dict)
    moved: list[Constraint] = field(default_factory=list)

    def lies_in(self, other: Scope) -> bool:
        scope: Scope | None = self
        while scope is not None and scope is not other:
            scope = scope.above
        return scope is other

    def walk(self) -> Iterator[Scope]:
        """This scope and all inside it, outer before inner, in the order of writing."""
        waiting = [self]
        while waiting:
            scope = waiting.pop()
            yield scope
            inner: list[Scope] = []
            for part in scope.parts:
                inner += part.alternatives if isinstance(part, Choice) else [part]
            waiting += reversed(inner)


@dataclass(eq=False, slots=True)
class Choice:
    """An `or`: the scopes of its alternatives."""

    alternatives: list[Scope]

    @property
    def variables(self) -> set[str]:
        return set().union(*(scope.variables for scope in self.alternatives))

    @property
    def exported(self) -> set[str]:
        return set.intersection(*(scope.surely for scope in self.alternatives))


def scope_of(
    branches: Iterable[Branch],
    kind: ScopeKind = ScopeKind.ROOT,
    above: Scope | None = None,
    where: tuple[Constraint, ...] = (),
) -> Scope:
    """The scope of a conjunction with everything inside it."""
    scope = Scope(kind, above, 0 if above is None else above.depth + 1, where)
    _gather(branches, scope)
    scope.surely |= scope.binding
    scope.variables |= scope.used
    for part in scope.parts:
        scope.variables |= part.variables
        if isinstance(part, Choice):
            scope.surely |= part.exported
    return scope


def _gather(branches: Iterable[Branch], scope: Scope) -> None:
    for branch in branches:
        match branch:
            case PatternNode():
                _gather_node(branch, scope)
                _gather(branch.branches, scope)
            case Or(alternatives=alternatives):
                kind = ScopeKind.ALTERNATIVE
                scope.parts.append(
                    Choice([scope_of(inside, kind, scope) for inside in alternatives])
                )
            case Not(branches=inside, where=where):
                scope.parts.append(scope_of(inside, ScopeKind.NOT, scope, where))
            case Collect(node=node):
                scope.parts.append(scope_of((node,), ScopeKind.COLLECT, scope))


def _gather_node(node: PatternNode, scope: Scope) -> None:
    if node.name is not None:
        scope.names.append(node.name)
    scope.binding |= _bound_by(node)
    scope.used |= _used_by(node)


def _bound_by(node: PatternNode) -> set[str]:
    equal = (comparison.operand for comparison in node.comparisons if comparison.operator == "=")
    return {operand.name for operand in (node.test, *equal) if isinstance(operand, Variable)}


def _used_by(node: PatternNode) -> set[str]:
    operands = (node.test, *(comparison.operand for comparison in node.comparisons))
    return {operand.name for operand in operands if isinstance(operand, Variable)}


# For engines --------------------------------------------------------------------------------------


def variables_of(branch: Branch) -> frozenset[str]:
    """Every variable that occurs in a branch, at any depth."""
    return frozenset().union(*(_used_by(node) for node in nodes_of(branch)))


def names_of(branch: Branch) -> frozenset[str]:
    """Every node name declared in a branch, at any depth."""
    return frozenset(node.name for node in nodes_of(branch) if node.name is not None)


def bound_variables(branches: Iterable[Branch]) -> frozenset[str]:
    """The variables that every match of a conjunction binds; see `exported_variables` for `or`."""
    return frozenset(scope_of(branches).surely)


def bound_names(branches: Iterable[Branch]) -> frozenset[str]:
    """The names that have a node in every match of a conjunction; see `exported_names` for `or`."""
    found: set[str] = set()
    for branch in branches:
        if isinstance(branch, PatternNode):
            found |= {branch.name} if branch.name is not None else set()
            found |= bound_names(branch.branches)
        elif isinstance(branch, Or):
            found |= exported_names(branch)
    return frozenset(found)


def exported_variables(choice: Or) -> frozenset[str]:
    """The variables that an `or` binds: those that all its alternatives bind."""
    return frozenset.intersection(*(bound_variables(branches) for branches in choice.alternatives))


def exported_names(choice: Or) -> frozenset[str]:
    """The names that an `or` declares: those that all its alternatives declare."""
    return frozenset.intersection(*(bound_names(branches) for branches in choice.alternatives))
