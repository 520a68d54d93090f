"""Conditions over whole paths: each path is collected, and the condition reads the column.

`[count(item) > 1]` becomes `[collect(item#all1)]` and the condition `count(all1.id) > 1` of
`where`. A condition over several values that stands inside `or` or `not`, or in a query with
aggregates, becomes one over collected paths too: `some(...)` holds if it does for some of their
values. There a path beside it holds if it has nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lark import Token

from axlog.errors import UnsupportedError
from axlog.query.native_paths import (
    NODE,
    WHOLE,
    Conditions,
    Extra,
    Path,
    chain,
    of_path,
    place_of,
    renamed,
)
from axlog.query.native_scalars import ScalarBuilder
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Collect,
    Comparison,
    Not,
    Or,
    PatternNode,
    Variable,
    nodes_of,
)
from axlog.query.positions import place_at
from axlog.query.steps import Scalar
from axlog.query.syntax_tree import Call, Reference


class WholePathBuilder(ScalarBuilder):
    """The collected paths of conditions; `native_conditions.ConditionBuilder` adds the rules."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._collects: list[Token] = []
        self._values = 0
        self._made: set[str] = set()  # the names of collected paths that no `collect` wrote

    def _named(self, found: Conditions, source: str, path: Path | None) -> str:
        """Name the node at the end of a path, and collect the path if all its nodes are read."""
        if path is None:
            name = self._fresh("node")
            found.items.append(PatternNode(Axis.SELF, AnyNode(), name))
            found.relative.append(Token("DOT", ".", 0))
            return name
        is_whole, last = source.startswith(WHOLE), path.last
        name = last.name or self._fresh("all" if is_whole else "node")
        inside = of_path(path.ending_in(replace(last, name=name)))
        if is_whole:
            self._collects.append(path.start)
            self._made.add(name)
            (node,) = inside.items
            assert isinstance(node, PatternNode)
            inside.items = [Collect(node)]
        found.take(inside)
        return name

    def _fresh(self, word: str = "value") -> str:
        """The name of a variable or of a node that the text does not use."""
        while True:
            self._values += 1
            name = f"{word}{self._values}"
            if f"${name}" not in self._text and f"#{name}" not in self._text:
                return name

    def existential(self, extra: Extra) -> tuple[Scalar, dict[Branch | Comparison, Collect]]:
        """A condition that holds for some values, as one over collected paths.

        Also given is what replaces the branches and comparisons that bind the values.
        """
        assert extra.operand is not None, "the condition reads values"
        names: dict[str, str] = {}
        instead: dict[Branch | Comparison, Collect] = {}
        for source, item in extra.bound:
            path = extra.operand.paths.get(source)
            name = self._fresh("all")
            if path is None:
                node = PatternNode(Axis.SELF, AnyNode(), name)
            elif path.last.name is None:
                node = chain(path.ending_in(replace(path.last, name=name)).steps)
            else:
                raise UnsupportedError(
                    "AX211",
                    "a name in a condition over several values is not supported inside `or`, `not`"
                    " and queries with aggregates",
                    place=place_at(self._text, extra.condition.at),
                    advice="bind the values (price = $p) and write the condition in `where`",
                )
            self._collects.append(Token("COLLECT", "", extra.condition.at))
            self._made.add(name)
            instead[item] = Collect(node)
            names[source] = name if source.startswith(NODE) else f"{name}.val"
        condition = renamed(extra.operand.scalar, names)
        return Call("some", (condition,), extra.condition.at), instead  # type: ignore[arg-type]

    # conditions inside `or` and `not` that compute

    def _truth(self, given: Conditions) -> Scalar:
        """A conjunction as an expression: a path holds if its collected nodes exist."""
        parts: list[Scalar] = []
        for extra in given.extras:
            if not extra.variables:
                parts.append(extra.condition)
                continue
            condition, instead = self.existential(extra)
            given.items = [instead.get(item, item) for item in given.items]
            parts.append(condition)
        for item in list(given.items):
            parts += self._exists(given, item)
        return self.both(parts)

    def _exists(self, given: Conditions, item: Branch | Comparison) -> list[Scalar]:
        at = place_of(given)
        match item:
            case Collect(node=node) if any(n.name in self._made for n in nodes_of(node)):
                return []  # a condition of its own reads it
            case Comparison():
                return self._exists(given, PatternNode(Axis.SELF, AnyNode(), comparisons=(item,)))
            case PatternNode() if not any(map(_binds, nodes_of(item))):
                name = self._fresh("all")
                self._made.add(name)
                self._collects.append(Token("COLLECT", "", at))
                given.items.append(Collect(replace(item, name=name)))
                return [Call("exists", (Reference(f"{name}.id", at),), at)]  # type: ignore[arg-type]
            case Or(alternatives=alternatives):
                each = [self._all_exist(given, branches) for branches in alternatives]
                return [self.disjunction(each)]
            case Not(branches=branches, where=()):
                return [Call("not", (self._all_exist(given, branches),), at)]  # type: ignore[arg-type]
        raise UnsupportedError(
            "AX211",
            "variables, names and `collect` beside a function of a whole path are not supported"
            " inside `or` and `not`",
            place=place_at(self._text, at),
            advice="write them in a predicate of their own",
        )

    def _all_exist(self, given: Conditions, branches: Iterable[Branch]) -> Scalar:
        return self.both([part for each in branches for part in self._exists(given, each)])

    def _computed_truth(self, given: Conditions, truth: Scalar) -> Conditions:
        """The collected paths of a condition, with the condition as one expression."""
        collected: list[Branch | Comparison] = [i for i in given.items if isinstance(i, Collect)]
        extras = [Extra(truth, frozenset())]
        return replace(given, items=collected, extras=extras, path=None)


def _binds(node: PatternNode) -> bool:
    compared = (comparison.operand for comparison in node.comparisons)
    is_variable = isinstance(node.test, Variable)
    return node.name is not None or is_variable or any(isinstance(o, Variable) for o in compared)
