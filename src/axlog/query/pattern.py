"""The pattern: the one intermediate form of every query, immutable, hashable, printable.

A pattern is a set of branches that hang on the document node, `where` constraints and outputs. A
branch is a pattern node (an axis, a test, value comparisons, further branches) or a connective of
branches: `Or`, `Not`, `Collect`. The native text, XPath and XQuery all compile to it.
`normalize.py` resolves scopes. `str(pattern)` is the native text, and `native.parse_pattern` parses
it to the same pattern.

Meaning (docs/meaning.md): a valuation maps every positive node to a document node. The rows are the
distinct output tuples, each counted by its valuations. Each node is reached by its axis from the
node above: `/a` is CHILD of the document node, `//a` is DESCENDANT of it. Variables hold strings (a
label or a string value), names (`#t`) hold nodes. All occurrences of a variable must have the same
string. (Tree patterns: paper 3, definition 2.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum

from axlog.query.columns import Columns, ColumnType
from axlog.query.formula import Formula
from axlog.query.lexemes import is_word, quoted, terms_text
from axlog.query.time_literals import date_text, seconds_text


class Axis(Enum):
    """The axis from one pattern node to the next."""

    CHILD = "child"
    DESCENDANT = "descendant"
    ATTRIBUTE = "attribute"
    SELF = "self"
    DESCENDANT_OR_SELF = "descendant-or-self"
    NEXT_SIBLING = "next-sibling"  # the nearest following sibling element
    FOLLOWING_SIBLING = "following-sibling"
    PREVIOUS_SIBLING = "previous-sibling"  # the nearest preceding sibling element
    PRECEDING_SIBLING = "preceding-sibling"
    PARENT = "parent"
    ANCESTOR = "ancestor"
    ANCESTOR_OR_SELF = "ancestor-or-self"

    @property
    def is_downward(self) -> bool:
        return self in _DOWNWARD


_DOWNWARD = frozenset(
    {Axis.CHILD, Axis.DESCENDANT, Axis.ATTRIBUTE, Axis.SELF, Axis.DESCENDANT_OR_SELF}
)


# Tests ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """An element (under ATTRIBUTE, an attribute) with this expanded name: `a` or `{uri}a`."""

    label: str


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Any element (or, under ATTRIBUTE, any attribute)."""


@dataclass(frozen=True, slots=True)
class PartialName(Wildcard):
    """Elements or attributes by a part of their name: `*:local` or `prefix:*`.

    It is a `Wildcard` that fewer nodes pass: code that only needs to know the kind of a node treats
    both alike. As the operand of a comparison with the operator `IS_NAMED` it tests labels.
    """

    namespace: str | None  # None: any; empty: none
    local: str | None  # None: any

    def matches(self, label: str) -> bool:
        """Whether a label (of an attribute, with its `@`) has these parts."""
        uri, _, local = label.removeprefix("@").rpartition("}")
        is_here = self.namespace is None or uri.removeprefix("{") == self.namespace
        return is_here and self.local in (None, local)


IS_NAMED = "is name"
"""The operator of a comparison of labels with a partial name."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text node with exactly this string."""

    text: str


@dataclass(frozen=True, slots=True)
class AnyText:
    """Any text node."""


@dataclass(frozen=True, slots=True)
class AnyComment:
    """Any comment."""


@dataclass(frozen=True, slots=True)
class AnyInstruction:
    """A processing instruction with this target, or any."""

    target: str | None = None


@dataclass(frozen=True, slots=True)
class AnyNode:
    """Any element, text, comment or processing instruction; under SELF, any node at all."""


@dataclass(frozen=True, slots=True)
class Variable:
    """As a test: any element or text; it binds the label. As an operand: a string value."""

    name: str


Test = Name | Wildcard | Literal | AnyText | AnyComment | AnyInstruction | AnyNode | Variable


# Values -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time: integer microseconds since 1970-01-01T00:00:00Z, and its original text."""

    microseconds: int
    written: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the native text, exact for any number of digits."""

    value: Decimal

    def __str__(self) -> str:
        if abs(self.value.adjusted()) > 60:
            return str(self.value)
        text = format(self.value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text


Constant = str | Number | float | Moment | Formula | PartialName
"""The operands of comparisons that need no variable; `values.py` defines how values compare.

A `float` is an xs:double of XPath or XQuery. A `Formula` is a condition on the value itself.
A `PartialName` tests a label.
"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The string value of a node against a constant or a variable: `price > 5`, `oid = $x`.

    `= $x` binds `$x` to the string value. The other operators only compare with the value of `$x`,
    which another part of the pattern binds.
    """

    operator: str  # one of = != < <= > >=, followed by the type of both sides; HOLDS of a formula
    operand: Constant | Variable

    def __str__(self) -> str:
        return _comparison_text(self.operator, self.operand)


OPERATORS = ("=", "!=", "<=", ">=", "<", ">")


# Branches ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PatternNode:
    """An axis and a test, with the comparisons and branches that must hold at the node found."""

    axis: Axis
    test: Test
    name: str | None = None
    comparisons: tuple[Comparison, ...] = ()
    branches: tuple[Branch, ...] = ()

    def __str__(self) -> str:
        return _branch_text(self)


@dataclass(frozen=True, slots=True)
class Or:
    """At least one alternative holds; each alternative is a conjunction of branches.

    It counts once for every distinct binding of the variables that all its alternatives bind.
    """

    alternatives: tuple[tuple[Branch, ...], ...]

    def __str__(self) -> str:
        return _branch_text(self)


@dataclass(frozen=True, slots=True)
class Not:
    """The branches together have no match at this node for the current bindings.

    `where` holds the constraints on nodes inside; `normalize.normalise` moves them here.
    """

    branches: tuple[Branch, ...]
    where: tuple[Constraint, ...] = ()

    def __str__(self) -> str:
        return _branch_text(self)


@dataclass(frozen=True, slots=True)
class Collect:
    """All matches of one path, collected into one sequence; it may be empty and counts once.

    It is the nested path of an XQuery constructor. Outputs of names inside it are tuples in
    document order.
    """

    node: PatternNode

    def __str__(self) -> str:
        return _branch_text(self)


Branch = PatternNode | Or | Not | Collect


# Constraints and outputs ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeConstraint:
    """Linear over the times of named nodes: `sum of coefficient * time(name)  operator  bound`.

    The bound is in integer microseconds.
    """

    terms: tuple[tuple[int, str], ...]
    operator: str
    bound: int

    def __str__(self) -> str:
        return f"{terms_text(self.terms)} {self.operator} {seconds_text(self.bound)}"


@dataclass(frozen=True, slots=True)
class ValueConstraint:
    """A comparison between two variables, or between a variable and a constant."""

    left: Variable
    operator: str
    right: Variable | Constant

    def __str__(self) -> str:
        return f"${self.left.name} {_comparison_text(self.operator, self.right)}"


Constraint = TimeConstraint | ValueConstraint


class Kind(Enum):
    """What an output shows: a variable, or a property of a node."""

    VARIABLE = "variable"
    LABEL = "label"
    ID = "id"
    VAL = "val"
    CONT = "cont"
    TIME = "time"


_TYPES: dict[Kind, ColumnType] = {Kind.ID: "id", Kind.TIME: "time"}


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the rows: a variable, or a property of a named node."""

    kind: Kind
    of: str
    alias: str | None = None

    @property
    def column(self) -> str:
        """The column's name in a row: `x` for `$x`, `t.id` for the id of `#t`."""
        if self.alias is not None:
            return self.alias
        return self.of if self.kind is Kind.VARIABLE else f"{self.of}.{self.kind.value}"

    def __str__(self) -> str:
        shown = f"${self.of}" if self.kind is Kind.VARIABLE else f"{self.of}.{self.kind.value}"
        if self.alias is None:
            return shown
        return f"{shown} as {self.alias if is_word(self.alias) else quoted(self.alias)}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A whole query. Without outputs it is Boolean."""

    branches: tuple[Branch, ...]
    where: tuple[Constraint, ...] = ()
    outputs: tuple[Output, ...] = ()

    @property
    def is_boolean(self) -> bool:
        return not self.outputs

    @property
    def columns(self) -> Columns:
        outputs = self.outputs
        types = [_TYPES.get(output.kind, "text") for output in outputs]
        inside = self.collected_names()
        collected = [output.column for output in outputs if output.of in inside] if inside else ()
        return Columns([output.column for output in outputs], types, collected=collected)

    def collected_names(self) -> frozenset[str]:
        """The names of nodes inside `collect(...)`: their outputs are tuples."""
        found: set[str] = set()
        waiting: list[Branch] = [*self.branches]
        while waiting:
            branch = waiting.pop()
            if isinstance(branch, Collect):
                found |= {node.name for node in nodes_of(branch) if node.name is not None}
            elif isinstance(branch, PatternNode):
                waiting += branch.branches
        return frozenset(found)

    def nodes(self) -> Iterator[PatternNode]:
        """Every pattern node in the order of writing (preorder): p1, p2, ..."""
        for branch in self.branches:
            yield from nodes_of(branch)

    def __str__(self) -> str:
        """The canonical native text."""
        text = "match " + ", ".join([_branch_text(branch, True) for branch in self.branches])
        where = [*self.where]
        for branch in self.branches:
            where += _inner_constraints(branch)
        if where:
            text += " where " + ", ".join([str(constraint) for constraint in where])
        if self.outputs:
            text += " return " + ", ".join([str(output) for output in self.outputs])
        return text


POSITION = "position"
"""The operator of a comparison of a node's position, in the text of a query alone."""


def is_position(branch: Branch) -> bool:
    """Whether a branch is a position in a predicate, which `native_positions` takes out."""
    return isinstance(branch, PatternNode) and any(
        comparison.operator == POSITION for comparison in branch.comparisons
    )


def nodes_of(branch: Branch) -> Iterator[PatternNode]:
    """The pattern nodes of one branch in preorder."""
    waiting = [branch]
    while waiting:
        branch = waiting.pop()
        if isinstance(branch, PatternNode):
            yield branch
        waiting += reversed([*branches_of(branch)])


def sees_markup(node: PatternNode) -> bool:
    """Whether a node's test can be passed by comments or processing instructions alone.

    `self::node()` tests nothing, and `descendant-or-self::node()` with an attribute below finds
    elements only.
    """
    match node.test:
        case AnyComment() | AnyInstruction():
            return True
        case AnyNode():
            return node.axis is not Axis.SELF and _attribute_anywhere(node) is None
    return False


def branches_of(branch: Branch) -> Iterator[Branch]:
    """The branches directly below one branch."""
    match branch:
        case PatternNode(branches=branches) | Not(branches=branches):
            yield from branches
        case Or(alternatives=alternatives):
            for alternative in alternatives:
                yield from alternative
        case Collect(node=node):
            yield node


# Printing ---------------------------------------------------------------------------------------
#
# The canonical native text. The last branch of a node continues its path if it can; the other
# branches and the comparisons are printed as predicates. The constraints inside a `not` are printed
# at the end of the query, where the text has them. Fresh variables of the normal form (`x~1`) are
# printed as they are and cannot be parsed.

_TAILS = frozenset({Axis.CHILD, Axis.DESCENDANT, Axis.ATTRIBUTE})


def _branch_text(branch: Branch, at_root: bool = False) -> str:
    """One branch as printed in a predicate, or at the root of the query."""
    match branch:
        case PatternNode(comparisons=(comparison,)) if is_position(branch):
            return _own_text(comparison)
        case PatternNode():
            return _path_text(branch, at_root)
        case Or(alternatives=((only,),)):  # it only says that the branch counts once
            return _branch_text(only, at_root)
        case Or(alternatives=alternatives):
            return " or ".join([_conjunction_text(inside, at_root) for inside in alternatives])
        case Not(branches=(Or() as only,)):
            return f"not({_branch_text(only, at_root)})"
        case Not(branches=branches):
            return f"not({_conjunction_text(branches, at_root)})"
        case Collect(node=node):
            return f"collect({_path_text(node, at_root)})"


def _conjunction_text(branches: tuple[Branch, ...], at_root: bool) -> str:
    """Branches inside `or` or `not`, where `. = v` is a node of its own."""
    texts = []
    for branch in branches:
        match branch:
            case PatternNode(Axis.SELF, AnyNode(), None, (comparison,), ()) if not at_root:
                texts.append(_own_text(comparison))
            case Or():
                texts.append(f"({_branch_text(branch, at_root)})")
            case _:
                texts.append(_branch_text(branch, at_root))
    return " and ".join(texts)


def _path_text(node: PatternNode, at_root: bool) -> str:
    """A node and the path that its last branches form, with the other branches as predicates."""
    text = ""
    at_start = not at_root
    while True:
        attribute = _attribute_anywhere(node)
        if attribute is not None:
            text, node = f"{text}//@{_test_text(attribute.test)}", attribute
        else:
            text += _step_text(node, at_start)
        at_start = False
        if node.name is not None and "~" not in node.name:  # others are not written
            text += f"#{node.name}"
        if _is_comparison(node):
            return f"{text} {node.comparisons[0]}"
        for comparison in node.comparisons:
            text += f"[{_own_text(comparison)}]"
        tail = node.branches[-1] if node.branches else None
        following = tail if isinstance(tail, PatternNode) and _continues(tail) else None
        # A loop, because calls and comprehensions would overflow the stack for deep patterns.
        for branch in node.branches if following is None else node.branches[:-1]:
            text += f"[{_branch_text(branch)}]"
        if following is None:
            return text
        node = following


def _continues(node: PatternNode) -> bool:
    """Whether a node is printed as the next step of its parent's path: `/b`, not `[b = 5]`."""
    found = _attribute_anywhere(node) or node
    return found.axis in _TAILS and not _is_comparison(found)


def _is_comparison(node: PatternNode) -> bool:
    """Whether a node is printed as `test = v`; `$x = v` would compare the variable's value."""
    is_operand = isinstance(node.test, Variable | Literal)
    if len(node.comparisons) != 1 or node.branches or is_operand:
        return False
    return not isinstance(node.comparisons[0].operand, Formula)


def _attribute_anywhere(node: PatternNode) -> PatternNode | None:
    """The attribute of `//@name`, which is two nodes: descendant-or-self::node()/@name."""
    match node:
        case PatternNode(
            Axis.DESCENDANT_OR_SELF,
            AnyNode(),
            None,
            (),
            (PatternNode(axis=Axis.ATTRIBUTE) as attribute,),
        ):
            return attribute
    return None


def _step_text(node: PatternNode, at_start: bool) -> str:
    slash = "" if at_start else "/"
    test = _test_text(node.test)
    match node.axis:
        case Axis.CHILD:
            return slash + test
        case Axis.DESCENDANT:
            return "//" + test
        case Axis.ATTRIBUTE:
            return f"{slash}@{test}"
        case axis:
            return f"{slash}{axis.value}::{test}"


def _test_text(test: Test) -> str:
    match test:
        case Name(label=label):
            return f"Q{label}" if label.startswith("{") else label
        case PartialName(namespace=None, local=str(local)):
            return f"*:{local}"
        case PartialName(namespace=namespace):
            return f"Q{{{namespace}}}*"
        case Wildcard():
            return "*"
        case Literal(text=text):
            return quoted(text)
        case AnyText():
            return "text()"
        case AnyComment():
            return "comment()"
        case AnyInstruction(target=target):
            return f"processing-instruction({'' if target is None else quoted(target)})"
        case AnyNode():
            return "node()"
        case Variable(name=name):
            return f"${name}"


def _own_text(comparison: Comparison) -> str:
    """A comparison of the node itself."""
    return str(comparison) if isinstance(comparison.operand, Formula) else f". {comparison}"


def _comparison_text(operator: str, operand: Constant | Variable) -> str:
    if isinstance(operand, Formula):
        return operand.text
    symbol, _, type_ = operator.partition(" ")
    return f"{symbol} {_operand_text(operand)}" + (f" as {type_}" if type_ else "")


def _operand_text(operand: Constant | Variable) -> str:
    match operand:
        case Variable(name=name):
            return f"${name}"
        case Moment(microseconds=microseconds):
            return f'date "{date_text(microseconds)}"'
        case str():
            return quoted(operand)
        case Number() | Formula():
            return str(operand)
        case PartialName():
            return _test_text(operand)
        case _:
            return repr(float(operand)).removesuffix(".0") + " as xs:double"


def _inner_constraints(branch: Branch) -> list[Constraint]:
    """The constraints inside the `not`s of a branch, in the order of writing."""
    constraints = list(branch.where) if isinstance(branch, Not) else []
    for below in branches_of(branch):
        constraints += _inner_constraints(below)
    return constraints
