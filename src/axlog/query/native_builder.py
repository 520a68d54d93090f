"""The builder of patterns from parse trees of the native text, bottom-up and without recursion.

It has one method for each rule of `native.lark`. It keeps the offsets of names, variables,
constraints and outputs for `normalize.check`, which validates the result. The builder itself
refuses only errors in the text: an unknown axis, an undeclared prefix, a path with a wrong start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lark import Token

from axlog.errors import QueryError, UnsupportedError
from axlog.query.aggregate_patterns import binds, variables_bound
from axlog.query.clock_terms import names_now
from axlog.query.native_clock import WhereParts
from axlog.query.native_conditions import ConditionBuilder
from axlog.query.native_constraints import constant_of, sum_of, time_constraint
from axlog.query.native_paths import Extra, Path, Step, TypedComparison, chain
from axlog.query.native_positions import marker, split_positions
from axlog.query.native_scalars import offset_of, unquoted
from axlog.query.native_steps import Asked, QueryParts, built_query
from axlog.query.normalize import check
from axlog.query.pattern import (
    OPERATORS,
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Constant,
    Constraint,
    Literal,
    Name,
    PartialName,
    Pattern,
    PatternNode,
    Test,
    ValueConstraint,
    Variable,
    Wildcard,
    is_position,
)
from axlog.query.positions import Places, place_at
from axlog.query.steps import Scalar
from axlog.query.steps import Step as QueryStep
from axlog.query.syntax_tree import Binary, Reference, operands
from axlog.query.syntax_tree import Constant as Written
from axlog.query.values import mirrored

_UNSUPPORTED_AXES = ("following", "preceding", "namespace")
_ATTRIBUTE_TESTS = (
    "NAME", "EXPANDED_NAME", "STAR", "PREFIX_STAR", "STAR_NAME", "EXPANDED_STAR",
)  # fmt: skip


class PatternBuilder(ConditionBuilder):
    """For one text: `transform(tree)` gives pattern and steps, `places()` the offsets of names."""

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        super().__init__(text)
        self._namespaces = namespaces
        self._names: list[Token] = []
        self._variables: list[Token] = []
        self._where: list[int] = []
        self._outputs: list[int] = []
        self._roots: list[tuple[int, Path]] = []
        self._extras: list[Extra] = []

    def places(self) -> Places:
        """The offsets of names, variables, constraints and outputs, in the order of writing."""
        return Places(
            self._text,
            names=_by_word(self._names),
            variables=_by_word(self._variables),
            where=sorted(self._where),
            outputs=self._outputs,
            collects=_offsets(self._collects),
        )

    # the query

    def start(self, children: list[Any]) -> tuple[Pattern, tuple[QueryStep, ...]]:
        branches, where, outputs, having, order, limit = children
        parted = WhereParts.of(where or (), not names_now(branches), self._constraint)
        parts = QueryParts(self._text, parted, outputs or (), having, order or (), limit)
        if parts.has_groups:
            branches = self._with_ends(branches)
        if self._has_positions:
            branches, positions = split_positions(branches, self._text)
            parts = replace(parts, positions=positions)
        self._where = parted.offsets
        if parts.has_groups:
            branches = self._collecting(branches)
        more = self._predicate_constraints(branches, parted.conditions)
        pattern = Pattern(branches, (*parted.constraints, *more))
        if parted.clock_at is not None:
            check(pattern, self.places())  # now: its constraints on the clock leave the pattern
        built = built_query(pattern, replace(parts, collected=frozenset(self._made)))
        self._outputs = built.offsets
        return built.pattern, built.steps

    def _with_ends(self, branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
        """The paths of the query with a name for the node at the end of each.

        An aggregate counts the nodes that a path ends at, also if nothing is bound to them.
        """
        found = list(branches)
        for number, (at, path) in enumerate(self._roots, 1):
            last = path.last
            if not binds(last):
                found[at] = chain(path.ending_in(replace(last, name=f"end~{number}")).steps)
        return tuple(found)

    def roots(self, children: list[Any]) -> tuple[Branch, ...]:
        at = 0
        each = [self.conditions(child) for child in children]
        for child in each:
            if child.path is not None:
                self._roots.append((at, child.path))
            at += len(child.items)
        conditions = self.conjunction(each)
        self._extras += conditions.extras
        for token in conditions.relative[:1]:
            self._refuse(
                token,
                "a path of the query starts at the document",
                expected="`/` or `//`",
                advice="write /a for the root element, //a for any element",
            )
        return conditions.branches()

    # paths

    def relative_path(self, children: list[Any]) -> Path:
        return Path(children[0].start, _pairs(["/", *children]), slashed=False, relative=True)

    def slashed_path(self, children: list[Any]) -> Path:
        start = children[0]
        return Path(start, _pairs(children), slashed=start == "/", relative=False)

    def dotted_path(self, children: list[Any]) -> Path:
        dot, *rest = children
        return Path(dot, _pairs(rest), slashed=False, relative=True)

    def slash(self, children: list[Token]) -> Token:
        return children[0]

    def step(self, children: list[Any]) -> Step:
        axis_token, test_token, name, *predicates = children
        axis = Axis.CHILD if axis_token is None else self._axis(axis_token)
        if name is not None:
            self._names.append(name)
        if any(is_position(branch) for _, branches in predicates for branch in branches):
            predicates = [([], [*_selves(own), *branches]) for own, branches in predicates]
        node = PatternNode(
            axis,
            self._test(test_token, axis),
            name=None if name is None else name[1:],
            comparisons=tuple(item for own, _ in predicates for item in own),
            branches=tuple(item for _, branches in predicates for item in branches),
        )
        return Step(node, axis_token or test_token, test_token, has_axis=axis_token is not None)

    def predicate(self, children: list[Any]) -> tuple[list[Comparison], list[Branch]]:
        position = self.position(children[0])
        if position is not None:
            self._has_positions = True
            return [], [marker(position, self._text)]
        conditions = self.conditions(children[0])
        self._extras += conditions.extras
        for token in conditions.slashed[:1]:
            self._refuse(
                token,
                "inside [...] a path starts at the node of the predicate",
                expected="a path without a leading `/`",
                advice="write b for a child, //b for a descendant",
            )
        own = [item for item in conditions.items if isinstance(item, Comparison)]
        return own, [item for item in conditions.items if not isinstance(item, Comparison)]

    def _axis(self, token: Token) -> Axis:
        name = "attribute" if token == "@" else token[:-2].strip()
        known = [axis.value for axis in Axis]
        if name in _UNSUPPORTED_AXES:
            raise UnsupportedError(
                "AX211", f"the axis {name} is not supported", place=self._place(token)
            )
        if name not in known:
            self._refuse(token, f"there is no axis {name}", expected="one of " + ", ".join(known))
        return Axis(name)

    # tests

    def test(self, children: list[Token]) -> Token:
        return children[0]

    def _test(self, token: Token, axis: Axis) -> Test:
        if axis is Axis.ATTRIBUTE and token.type not in _ATTRIBUTE_TESTS:
            self._refuse(
                token,
                "an attribute is selected by its name",
                expected="a name or `*`",
                advice='write @name/"v" or @name = "v": the value is a text below the attribute',
            )
        if token.type == "DOTS":
            self._refuse(token, "`..` is not part of this language", advice="parent::node()")
        match token.type:
            case "STAR":
                return Wildcard()
            case "STRING":
                return Literal(unquoted(token))
            case "VARIABLE":
                return self._variable(token)
            case "TEXT_TEST":
                return AnyText()
            case "NODE_TEST":
                return AnyNode()
            case "COMMENT_TEST":
                return AnyComment()
            case "INSTRUCTION_TEST":
                target = token[token.index("(") + 1 : -1].strip()
                return AnyInstruction(unquoted(target) if target else None)
            case "NAME":
                return Name(self._expanded(token, axis))
            case "EXPANDED_NAME":
                uri, _, local = token[2:].rpartition("}")
                return Name(f"{{{uri}}}{local}" if uri else local)
            case "STAR_NAME":
                return PartialName(None, token[2:])
            case "PREFIX_STAR":
                return PartialName(self._uri(token[:-2], token), None)
        return PartialName(token[2:-2], None)  # EXPANDED_STAR

    def _expanded(self, token: Token, axis: Axis) -> str:
        prefix, colon, local = str(token).rpartition(":")
        if not colon:
            # the default namespace is for elements
            uri = "" if axis is Axis.ATTRIBUTE else self._namespaces.get("", "")
        else:
            uri = self._uri(prefix, token)
        return f"{{{uri}}}{local}" if uri else local

    def _uri(self, prefix: str, token: Token) -> str:
        """The namespace of a prefix."""
        uri = self._namespaces.get(prefix)
        if uri is None:
            raise QueryError(
                "AX206",
                f"the prefix {prefix} is not declared",
                place=self._place(token),
                advice="declare it with the query (namespaces=, or -n PREFIX=URI on the command"
                " line), or write Q{uri}name",
            )
        return uri

    def _variable(self, token: Token) -> Variable:
        self._variables.append(token)
        return Variable(token[1:])

    # constraints

    def where(self, children: list[Scalar]) -> tuple[Scalar, ...]:
        return tuple(part for child in children for part in operands(child, "and"))  # type: ignore[arg-type]

    def constraint(self, children: list[Any]) -> Scalar:
        left, operator, right, type_ = children
        if operator is None:
            whole: Scalar = left
            return whole
        compared = Binary(str(operator), left, right, left.at)
        if type_ is None:
            return compared
        return TypedComparison(str(operator), left, right, left.at, type_)

    def _collecting(self, branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
        """The branches with the values of conditions collected, so that they count nothing."""
        extras: list[Extra] = []
        instead: dict[Branch | Comparison, Collect] = {}
        for extra in self._extras:
            if extra.variables:
                condition, collects = self.existential(extra)
                instead |= collects
                extra = Extra(condition, frozenset())
            extras.append(extra)
        self._extras = extras
        return tuple(_replaced(branch, instead) for branch in branches) if instead else branches

    def _predicate_constraints(
        self, branches: tuple[Branch, ...], conditions: list[Scalar]
    ) -> list[Constraint]:
        """The constraints of predicates over several values; the others join `conditions`."""
        found: list[Constraint] = []
        surely = _surely_bound(branches) if self._extras else set()
        for extra in self._extras:
            if not extra.variables <= surely:
                raise UnsupportedError(
                    "AX211",
                    "a condition over several values, on a node inside `or`, `not` or `collect`, is"
                    " not supported",
                    place=place_at(self._text, extra.condition.at),
                    advice="bind the values (price = $p) and write the condition in `where`",
                )
            constraint = self._constraint(extra.condition)
            if constraint is None:
                conditions.append(extra.condition)
            else:
                self._where.append(extra.condition.at)
                found.append(constraint)
        return found

    def _constraint(self, conjunct: Scalar) -> Constraint | None:
        """A condition as a constraint of the pattern; None if it is a step after it."""
        if not isinstance(conjunct, Binary) or conjunct.operator not in OPERATORS:
            return None
        operator, left, right = conjunct.operator, conjunct.left, conjunct.right
        type_ = conjunct.type_ if isinstance(conjunct, TypedComparison) else None
        if not _is_variable(left) and _is_variable(right):
            operator, left, right = mirrored(operator), right, left
        if _is_variable(left):
            return self._value_constraint(operator, left, right, type_)
        one, other = sum_of(left), sum_of(right)
        if type_ is not None:
            self._refuse(type_, "times have no type", expected="a variable on one side")
        if one is None or other is None:
            wrong = right if other is None else left
            if _is_text(wrong) and (one or other or _is_text(left)):
                self._refuse_at(
                    wrong.at, "a time is not a string", advice='date "2024-05-01" for a date'
                )
            return None
        constraint = time_constraint(one, operator, other)
        if constraint is None:
            self._refuse_at(conjunct.at, "the constraint names no node, or its names cancel out")
        return constraint

    def _value_constraint(
        self, operator: str, left: Any, right: Any, type_: Token | None
    ) -> Constraint | None:
        operand: Constant | Variable | None = None
        if _is_variable(right):
            operand = Variable(right.name)
        elif _is_text(right):
            operand = right.value
        elif (side := sum_of(right)) is not None:
            operand = constant_of(side)
            if operand is None:
                self._refuse_at(
                    side.at,
                    "a variable has a value, not a time",
                    expected="a variable, a number, a string or a date",
                )
        if operand is None:
            if type_ is not None:
                self._refuse(type_, "this comparison has no type", advice="xs:date($x) < ...")
            return None
        compared = self._comparison(operator, operand, type_)
        return ValueConstraint(Variable(left.name), compared.operator, compared.operand)

    # outputs

    def returns(self, children: list[Asked]) -> tuple[Asked, ...]:
        return tuple(children)

    def output(self, children: list[Any]) -> Asked:
        expression, alias = children
        return Asked(expression, alias)

    def having(self, children: list[Scalar]) -> Scalar:
        return children[0]

    def order(self, children: list[tuple[Scalar, bool]]) -> tuple[tuple[Scalar, bool], ...]:
        return tuple(children)

    def sort_key(self, children: list[Any]) -> tuple[Scalar, bool]:
        expression, direction = children
        return expression, direction == "descending"

    def limit(self, children: list[Token]) -> int:
        (token,) = children
        if not token.isdecimal() or len(token) > 9:
            self._refuse(token, "a limit is a whole number", expected="limit 10")
        return int(token)

    def alias(self, children: list[Token]) -> str:
        (token,) = children
        return unquoted(token) if token.type == "STRING" else str(token)


def _pairs(parts: Sequence[Any]) -> list[tuple[str, Step]]:
    return list(zip((str(slash) for slash in parts[::2]), parts[1::2], strict=True))


def _replaced(branch: Branch, instead: Mapping[Branch | Comparison, Collect]) -> Branch:
    """A branch with some branches and comparisons inside it replaced."""
    if branch in instead:
        return instead[branch]
    if not isinstance(branch, PatternNode):
        return branch
    own = tuple(each for each in branch.comparisons if each not in instead)
    collected = [instead[each] for each in branch.comparisons if each in instead]
    below = [_replaced(each, instead) for each in branch.branches]
    return replace(branch, comparisons=own, branches=(*collected, *below))


def _selves(comparisons: Iterable[Comparison]) -> list[Branch]:
    """Comparisons of a node as branches, which keep their places among its predicates."""
    return [PatternNode(Axis.SELF, AnyNode(), comparisons=(each,)) for each in comparisons]


def _surely_bound(branches: tuple[Branch, ...]) -> set[str]:
    """The variables and `#names` that nodes outside of `or`, `not` and `collect` bind."""
    found: set[str] = set()
    waiting = list(branches)
    while waiting:
        branch = waiting.pop()
        if isinstance(branch, PatternNode):
            found |= set(variables_bound(branch))
            found |= set() if branch.name is None else {f"#{branch.name}"}
            waiting += branch.branches
    return found


def _is_variable(side: object) -> bool:
    return isinstance(side, Reference) and not side.name.startswith("#") and "." not in side.name


def _is_text(side: object) -> bool:
    return isinstance(side, Written) and isinstance(side.value, str)


def _offsets(tokens: Iterable[Token]) -> list[int]:
    return sorted(offset_of(token) for token in tokens)


def _by_word(tokens: Iterable[Token]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for token in sorted(tokens, key=offset_of):
        places.setdefault(token[1:], []).append(offset_of(token))
    return places
