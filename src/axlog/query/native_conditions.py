"""Conditions in predicates of the native text: paths, comparisons, functions, calculations.

A condition on the value of one node is a comparison of that node: with a constant or a variable, or
by a formula (`[contains(description, "pump")]` is `[description[contains(., "pump")]]`). A
condition over several values (`[price * quantity > 100]`, `[contains(description, $w)]`) binds each
of them to a variable of its own; it holds if it does for some nodes at the ends of its paths. Equal
paths in one condition are one value.
`native_builder.py` adds it to the conditions of `where`.

A function of a sequence (`count`, `sum`, `exactly-one`, `deep-equal`) reads all nodes of a path
(`native_whole_paths.py`). `is`, `<<` and `>>` read nodes, which get names.

Operands are not resolved before the rule around them needs branches, because a comparison may be
part of an expression (`if (a > 5) then b else c`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, NoReturn

from lark import Token

from axlog.errors import QuerySyntaxError, UnsupportedError
from axlog.query.formula import HOLDS, OWN_VALUE, Formula
from axlog.query.native_paths import (
    NODE,
    OF_POSITIONS,
    VALUE,
    WHOLE,
    Condition,
    Conditions,
    Extra,
    Operand,
    Path,
    TypedComparison,
    calls_of,
    calls_positions,
    is_sequence,
    merged,
    of_path,
    place_of,
    read_names,
    renamed,
    source_of,
)
from axlog.query.native_positions import is_positional, marker
from axlog.query.native_scalars import TimeLiteral, offset_of, unquoted
from axlog.query.native_text import expression_text
from axlog.query.native_whole_paths import WholePathBuilder
from axlog.query.pattern import (
    Branch,
    Collect,
    Comparison,
    Moment,
    Not,
    Number,
    Or,
    PatternNode,
    Variable,
    is_position,
)
from axlog.query.pattern import Constant as Compared
from axlog.query.positions import place_at
from axlog.query.scalar_types import scalar_type
from axlog.query.steps import AGGREGATES, Scalar
from axlog.query.syntax_tree import Binary, Call, Constant, Reference
from axlog.query.values import mirrored, typed

_OF_NODES = ("local-name", "name", "namespace-uri", "node-name", "root")
_OF_SEQUENCES = frozenset(
    """avg count data deep-equal distinct-values exactly-one head index-of max min one-or-more
    reverse string-join subsequence sum tail zero-or-one""".split()
)
"""The functions whose paths are read as sequences of all their nodes."""

_NODE_OPERATORS = ("is", "<<", ">>")


class ConditionBuilder(WholePathBuilder):
    """The rules of conditions; `native_builder.PatternBuilder` adds those of paths and queries."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._paths = 0
        self._has_positions = False

    # connectives

    def conjunction(self, children: list[Any]) -> Conditions:
        whole = Conditions(parts=("and", children))
        for child in children:
            whole.take(self.conditions(child))
        if len(children) == 1:
            whole.path = self.conditions(children[0]).path
        elif any(isinstance(item, PatternNode) and is_position(item) for item in whole.items):
            # beside it, and not before it: `[paid and position() = 1]` counts unpaid ones too
            whole.items = [Or((whole.branches(),))]
        return whole

    def alternatives(self, children: list[Any]) -> Conditions:
        whole = Conditions(parts=("or", children))
        each = [self.conditions(child) for child in children]
        computes = any(child.extras for child in each)
        truths = [self._truth(child) for child in each] if computes else []
        for child in each:
            whole.take(child)
        if computes:
            return self._computed_truth(whole, self.disjunction(truths))
        whole.items = [Or(tuple(child.branches() for child in each))]
        return whole

    def negation(self, children: list[Any]) -> Conditions:
        inside = self.conditions(children[0])
        if inside.extras:
            truth = self._truth(inside)
            return self._computed_truth(inside, Call("not", (truth,), truth.at))  # type: ignore[arg-type]
        return replace(inside, items=[Not(inside.branches())], path=None, parts=None)

    def collection(self, children: list[Any]) -> Conditions:
        token: Token = children[0]
        inside = self.conditions(children[1])
        self._collects.append(token)
        if len(inside.items) != 1 or not isinstance(inside.items[0], PatternNode):
            self._refuse(token, "collect(...) takes a path", expected="a path")
        return replace(inside, items=[Collect(inside.items[0])], path=None, parts=None)

    # operands

    def condition(self, children: list[Any]) -> Any:
        left, operator, right, type_ = children
        if operator is None:
            return left
        return Condition(left, str(operator), right, type_, place_of(left))

    def own_value(self, children: list[Token]) -> Operand:
        return Operand(Reference(OWN_VALUE, offset_of(children[0])))

    def calculation(self, children: list[Any]) -> Operand:
        one, operator, other = children
        left, right = self._operand(one), self._operand(other)
        scalar = self.calculated([left.scalar, operator, right.scalar])
        return Operand(scalar, left.paths | right.paths)

    def signed_operand(self, children: list[Any]) -> Operand:
        sign, inside = children
        operand = self._operand(inside)
        return Operand(self.sign([sign, operand.scalar]), operand.paths)

    def choice(self, children: list[Any]) -> Operand:
        token, *inside = children
        return self._call(inside, lambda scalars: self.conditional([token, *scalars]))

    def operands(self, children: list[Any]) -> list[Any]:
        return children

    def function(self, children: list[Any]) -> Any:
        token, given = children
        name, arguments = str(token), given or []
        if name in ("exists", "empty") and len(arguments) == 1:
            found = self.conditions(arguments[0])
            return found if name == "exists" else self.negation([found])
        if name in OF_POSITIONS and not arguments:
            return Operand(Call(name, (), offset_of(token)))
        if name in _OF_SEQUENCES and any(map(is_sequence, arguments)):
            return self._of_sequences(token, arguments)
        if name in AGGREGATES or name in _OF_NODES:
            is_aggregate = name in AGGREGATES
            raise UnsupportedError(
                "AX211",
                f"{name}() in a predicate is not supported",
                place=self._place(token),
                expected="a function of values, such as contains, substring, round"
                if name not in _OF_SEQUENCES
                else f"{name}() of a path: {name}(a/b)",
                advice="bind the values with $x and write the aggregate in `return`, or use XQuery"
                if is_aggregate
                else "a name in any namespace is *:n, any name of one is p:*",
            )
        made = lambda scalars: self.call([token, None, tuple(scalars), None])  # noqa: E731
        return self._call(arguments, made)

    def _of_sequences(self, token: Token, arguments: list[Any]) -> Operand:
        """A function that reads all nodes of a path: their ids, values or contents."""
        name = str(token)
        is_content = name == "deep-equal" and all(isinstance(each, Path) for each in arguments)
        kind = "cont" if is_content else "id" if name == "count" else "val"
        scalars: list[Scalar] = []
        paths: dict[str, Path | None] = {}
        for each in arguments:
            if isinstance(each, Path) and not each.looks_like_an_operand:
                self._paths += 1
                paths[f"{WHOLE}{self._paths}"] = each
                scalars.append(Reference(f"{WHOLE}{self._paths}.{kind}", offset_of(each.start)))
            else:
                operand = self._operand(each)
                paths |= operand.paths
                scalars.append(operand.scalar)
        return Operand(Call(name, tuple(scalars), offset_of(token)), paths)  # type: ignore[arg-type]

    def _node(self, given: Any) -> Operand:
        """An operand of `is`, `<<` or `>>`: a path, or the node itself."""
        self._paths += 1
        name = f"{NODE}{self._paths}"
        if isinstance(given, Path) and not given.looks_like_an_operand:
            return Operand(Reference(f"{name}.id", offset_of(given.start)), {name: given})
        if isinstance(given, Operand) and given.scalar == Reference(OWN_VALUE, given.at):
            return Operand(Reference(f"{name}.id", given.at), {name: None})
        return self._refuse_at(
            place_of(given), "`is`, `<<` and `>>` compare nodes", expected="a path"
        )

    def _call(self, inside: list[Any], made: Callable[[list[Scalar]], Scalar]) -> Operand:
        each = [self._operand(child) for child in inside]
        paths = {name: path for operand in each for name, path in operand.paths.items()}
        return Operand(made([operand.scalar for operand in each]), paths)

    def _operand(self, given: Any) -> Operand:
        """A part of a condition as an expression."""
        match given:
            case Operand():
                return given
            case Path() if given.looks_like_an_operand:
                return Operand(self._plain(given))
            case Path():
                self._paths += 1
                name = f"{VALUE}{self._paths}"
                return Operand(Reference(name, offset_of(given.start)), {name: given})
            case Condition(left=left, operator=operator, right=right, type_=type_, at=at):
                if type_ is not None:
                    self._refuse(type_, "this comparison has no type", advice="xs:date(...) < ...")
                read = self._node if operator in _NODE_OPERATORS else self._operand
                one, other = read(left), read(right)
                compared = Binary(operator, one.scalar, other.scalar, at)  # type: ignore[arg-type]
                return Operand(compared, one.paths | other.paths)
            case Conditions(parts=(word, parts)):
                each = [self._operand(part) for part in parts]
                paths = {name: path for one in each for name, path in one.paths.items()}
                join = self.both if word == "and" else self.disjunction
                return Operand(join([operand.scalar for operand in each]), paths)
            case Conditions(path=Path() as path):
                return self._operand(path)
            case Conditions():
                raise UnsupportedError(
                    "AX211",
                    "`not` and `collect` inside an expression are not supported",
                    expected="a condition beside it: [not(a)][contains(b, 'x')]",
                )
        return Operand(given)

    def _plain(self, path: Path) -> Scalar:
        """`$x` or a string as an expression."""
        test = path.last.test
        at = offset_of(path.start)
        if isinstance(test, Variable):
            return Reference(test.name, at)
        return Constant(unquoted(path.start), at)

    # resolution

    def position(self, given: Any) -> Scalar | None:
        """A predicate that is a position; None: it is a condition."""
        if isinstance(given, Path | Conditions):
            return None
        if isinstance(given, Condition) and given.operator in _NODE_OPERATORS:
            return None
        scalar: Scalar | None = given if isinstance(given, Constant) else None
        if isinstance(given, Operand) and not given.paths:
            scalar = given.scalar
        if isinstance(given, Condition):
            sides = [each for each in (given.left, given.right) if isinstance(each, Operand)]
            if not any(calls_positions(side.scalar) for side in sides):
                return None
            scalar = self._operand(given).scalar
        return scalar if scalar is not None and is_positional(scalar) else None

    def conditions(self, given: Any) -> Conditions:
        """A part of a predicate as branches and comparisons."""
        if isinstance(given, Conditions):
            return given
        if isinstance(given, Path):
            return of_path(given)
        if isinstance(given, Condition):
            position = self.position(given)
            if position is not None:  # inside `and`, `or`, `not`
                self._has_positions = True
                dot = Token("DOT", ".", given.at)
                return Conditions([marker(position, self._text)], relative=[dot])
            found = None if given.operator in _NODE_OPERATORS else self._compared(given)
            if found is not None:
                return found
            return self._resolved(self._both_sides(given))
        operand = self._operand(given)
        if scalar_type(operand.scalar, {}) != "truth":
            self._refuse_at(
                operand.at, "this is a value, not a condition", expected="a comparison: a + 1 > b"
            )
        return self._resolved(operand)

    def _both_sides(self, given: Condition) -> Operand:
        read = self._node if given.operator in _NODE_OPERATORS else self._operand
        one, other = read(given.left), read(given.right)
        scalar: Binary = Binary(given.operator, one.scalar, other.scalar, given.at)  # type: ignore[arg-type]
        if given.type_ is not None:
            if not all(isinstance(each, Path) for each in (given.left, given.right)):
                self._refuse(
                    given.type_, "this comparison has no type", advice="xs:date(...) < ..."
                )
            scalar = TypedComparison(scalar.operator, scalar.left, scalar.right, given.at,
                                     given.type_)  # fmt: skip
        return Operand(scalar, one.paths | other.paths)

    def _compared(self, given: Condition) -> Conditions | None:
        """A path or the node itself, compared with a constant or a variable; None: otherwise."""
        left, operator, right = given.left, given.operator, given.right
        if isinstance(left, Path) and left.looks_like_an_operand:
            self._refuse(
                left.start,
                f"this would compare a child node, not {left.start} itself",
                advice=f"{left.start}[. {operator} ...] if a child node is meant; "
                f"variables are compared at the end: where $x {operator} ...",
            )
        constant = self._constant(right)
        if constant is None and self._constant(left) is not None:
            left, operator, constant = right, mirrored(operator), self._constant(left)
        if constant is None:
            return None
        if isinstance(left, Path) and not left.looks_like_an_operand:
            compared = self._comparison(operator, constant, given.type_)
            last = left.last
            return of_path(left.ending_in(
                replace(last, comparisons=(*last.comparisons, compared))
            ))  # fmt: skip
        if isinstance(left, Operand) and left.scalar == Reference(OWN_VALUE, left.at):
            compared = self._comparison(operator, constant, given.type_)
            return Conditions([compared], relative=[Token("DOT", ".", left.at)])
        return None

    def _constant(self, given: Any) -> Compared | Variable | None:
        """An operand as a constant or a variable of the pattern; None if it is neither."""
        if isinstance(given, Path) and given.looks_like_an_operand:
            test = given.last.test
            return test if isinstance(test, Variable) else unquoted(given.start)
        scalar = given.scalar if isinstance(given, Operand) else given
        match scalar:
            case TimeLiteral(microseconds=exact, written=str() as written):
                return Moment(int(exact), written)
            case Constant(exact=Decimal() as number):
                return Number(number)
        return None

    def _comparison(
        self, operator: str, operand: Compared | Variable, type_: Token | None
    ) -> Comparison:
        """A comparison; with `as` and a type, both sides are read as XPath does."""
        if type_ is None:
            return Comparison(str(operator), operand)
        if isinstance(operand, Number) and type_ == "xs:double":
            return Comparison(str(operator), float(operand.value))
        if isinstance(operand, Number):
            operand = str(operand)
        if isinstance(operand, Moment):
            self._refuse(type_, "a date has no other type", advice="write the date as a string")
        return Comparison(typed(str(operator), str(type_)), operand)

    def _resolved(self, operand: Operand) -> Conditions:
        """A condition on values: a formula of one node, or one over several."""
        operand = merged(operand)
        read = list(dict.fromkeys(map(source_of, read_names(operand.scalar))))
        sources = [name for name in read if name == OWN_VALUE or name in operand.paths]
        self._refuse_positions(operand)
        if not sources:
            self._refuse_at(
                operand.at,
                "the condition reads no value of the document",
                advice="conditions on variables alone are written at the end: where ...",
            )
        if len(read) == 1 and not sources[0].startswith((WHOLE, NODE)):
            return self._formula(operand, operand.paths.get(sources[0]))
        return self._over_several(operand, sources)

    def _formula(self, operand: Operand, path: Path | None) -> Conditions:
        scalar = renamed(operand.scalar, dict.fromkeys(operand.paths, OWN_VALUE))
        formula = Formula(expression_text(scalar), scalar, self._text)
        compared = Comparison(HOLDS, formula)
        if path is None:
            return Conditions([compared], relative=[Token("DOT", ".", operand.at)])
        last = path.last
        found = of_path(path.ending_in(replace(last, comparisons=(*last.comparisons, compared))))
        return replace(found, path=None)

    def _over_several(self, operand: Operand, sources: list[str]) -> Conditions:
        found = Conditions()
        names: dict[str, str] = {}
        variables: set[str] = set()
        bound: list[tuple[str, Branch | Comparison]] = []
        for source in sources:
            path = operand.paths.get(source)
            if source.startswith(WHOLE):
                names[source] = self._named(found, source, path)
                continue
            if source.startswith(NODE):
                names[source] = self._named(found, source, path)
                variables.add(f"#{names[source]}")
            else:
                names[source] = self._fresh()
                variables.add(names[source])
                self._bind(found, path, Comparison("=", Variable(names[source])))
            bound.append((source, found.items[-1]))
        condition = renamed(operand.scalar, names)
        written = Operand(renamed(operand.scalar, {n: names[n] for n in names if WHOLE in n}),
                          operand.paths)  # fmt: skip
        found.extras.append(Extra(condition, frozenset(variables), written, tuple(bound)))
        return found

    def _bind(self, found: Conditions, path: Path | None, bound: Comparison) -> None:
        """Bind a variable to the values of a path, or of the node itself."""
        if path is None:
            found.items.append(bound)
            return
        last = path.last
        found.take(of_path(path.ending_in(replace(last, comparisons=(*last.comparisons, bound)))))

    def _refuse_positions(self, operand: Operand) -> None:
        for each in calls_of(operand.scalar):
            if each.name in OF_POSITIONS:
                self._refuse_at(
                    each.at,
                    f"{each.name}() stands alone in a predicate, or is compared with a number",
                    expected="[1], [last()], [position() < 3], [position() > last() - 2]",
                )

    def _refuse_at(
        self, at: int, message: str, expected: str | None = None, advice: str | None = None
    ) -> NoReturn:
        raise QuerySyntaxError(
            "AX201", message, place=place_at(self._text, at), expected=expected, advice=advice
        )
