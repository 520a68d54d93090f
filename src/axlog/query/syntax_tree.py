"""The syntax tree of XPath, XQuery and XQuery Update: the parsers build it, the compilers read it.

Every node keeps the offset `at` of its first character, so that an error can point at it. Names are
expanded, and node tests are those of patterns. Abbreviations are written out. The step for `//`,
`descendant-or-self::node()`, is marked, because most such steps merge with the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from typing import TypeAlias

from axlog.query.pattern import Pattern, Test


@dataclass(frozen=True, slots=True)
class Constant:
    """A string or a number in the text; `exact` is the number in its type."""

    value: str | float
    at: int
    exact: int | Decimal | float | None = None

    @property
    def typed(self) -> str | int | Decimal | float:
        """The value in the type of XQuery: an integer, a decimal, a double or a string."""
        return self.value if self.exact is None else self.exact


# Paths ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Root:
    """The document node: a leading `/`, and `doc(...)`.

    `/` is the root of the tree of the context node, which may be a tree that the query makes; not
    if `is_document`.
    """

    at: int
    is_document: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """The context node, where a relative path starts."""

    at: int


@dataclass(frozen=True, slots=True)
class Reference:
    """`$name`: a variable."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on a step's node; inside it, `variable` (if any) refers to that node."""

    condition: Expression
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    `is_filter` marks `(...)[p]`, whose positions count all nodes instead of those of one step.
    `is_slashes` marks the step for `//`.
    """

    axis: str
    test: Test
    predicates: tuple[Predicate, ...]
    at: int
    is_filter: bool = False
    is_slashes: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A step in parentheses: `a/(b | c)`. `is_map` marks the operand of `!`: no nodes required."""

    inside: Expression
    at: int
    is_map: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from a start; the last one may be a call (`a/string()`)."""

    start: Root | Context | Reference | Expression
    steps: tuple[Step | Group | Call, ...]
    at: int


# Expressions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A known function with its arguments."""

    name: str
    arguments: tuple[Expression, ...]
    at: int


AnyStep: TypeAlias = Step | Group | Call


@dataclass(frozen=True, slots=True)
class Binary:
    """An infix operator; a sign has the left operand 0, and `||`, `to`, `is` are among them."""

    operator: str
    left: Expression
    right: Expression
    at: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """Expressions separated by commas; none at all for `()`."""

    items: tuple[Expression, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Quantified:
    """`some $x in source satisfies condition`, or `every`."""

    is_every: bool
    variable: str
    source: Expression
    condition: Expression
    at: int


@dataclass(frozen=True, slots=True)
class SequenceType:
    """`xs:decimal?`, `element(a)*`, `item()+`: a type name or a node test, and how many items.

    `kind` is the written name: `xs:decimal`, `item()`, `empty-sequence()`, `element()`, ...
    """

    kind: str
    test: Test | None = None
    occurrence: str = ""


@dataclass(frozen=True, slots=True)
class Typed:
    """`instance of`, `treat as`, `castable as`, `cast as`, and `convert` for function arguments."""

    operator: str
    value: Expression
    type: SequenceType
    at: int


# XQuery -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class For:
    variable: str
    source: Expression
    at: int
    allows_empty: bool = False


@dataclass(frozen=True, slots=True)
class Let:
    variable: str
    value: Expression
    at: int


@dataclass(frozen=True, slots=True)
class Where:
    condition: Expression
    at: int


@dataclass(frozen=True, slots=True)
class GroupBy:
    """`group by $a, $b := value`: the keys, each with its value or None for a variable in scope."""

    keys: tuple[tuple[str, Expression | None], ...]
    at: int


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of `order by`."""

    value: Expression
    is_descending: bool = False
    is_empty_greatest: bool = False


@dataclass(frozen=True, slots=True)
class OrderBy:
    keys: tuple[OrderKey, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A look-up in a collection that a plan keeps (`plan.py`), in place of an expression.

    `output` is the number of the collection's output. `aspect` is the name of an aggregate
    function, or `all`. `keys` are the values to look up, as the index of the collection has them.
    """

    collection: int
    output: int
    aspect: str
    keys: tuple[Expression, ...]
    at: int


@dataclass(frozen=True, slots=True)
class ForKept:
    """The tuples that a look-up finds, each with the values of these variables."""

    variables: tuple[str, ...]
    found: Kept
    at: int


@dataclass(frozen=True, slots=True)
class Counted:
    """`count $n`: the number of the tuple."""

    variable: str
    at: int


Clause: TypeAlias = For | ForKept | Let | Where | GroupBy | OrderBy | Counted


@dataclass(frozen=True, slots=True)
class Flwor:
    """Clauses in the order of writing, and the expression returned for every binding."""

    clauses: tuple[Clause, ...]
    returned: Expression
    at: int


@dataclass(frozen=True, slots=True)
class Written:
    """Text of a constructor with references resolved, or a comment or instruction as written."""

    text: str
    is_markup: bool = False


@dataclass(frozen=True, slots=True)
class Enclosed:
    """`{...}` in a constructor."""

    inside: Expression


@dataclass(frozen=True, slots=True)
class Constructor:
    """`<tag attribute="...">content</tag>`; `declared` holds the namespaces the tag declares."""

    tag: str
    declared: tuple[tuple[str, str], ...]
    attributes: tuple[tuple[str, tuple[Written | Enclosed, ...]], ...]
    content: tuple[Written | Enclosed | Constructor, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Transform:
    """`copy $x := node, ... modify updates return value`: updates of copies."""

    copies: tuple[Let, ...]
    modified: Expression
    returned: Expression
    at: int


Expression: TypeAlias = (
    Constant
    | Path
    | Call
    | Binary
    | Sequence
    | Quantified
    | Typed
    | Flwor
    | Constructor
    | Transform
    | Kept
)


# XQuery Update -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Update(Call):
    """An updating expression.

    `name` is the operation (see `EditKind` of the update lists). The arguments are the new content,
    if the operation has any, and the target. `is_each`: the operation applies to every target node.
    """

    is_each: bool = False


@dataclass(frozen=True, slots=True)
class ForAt(For):
    """`for $x at $position in ...`."""

    position: str = ""


@dataclass(frozen=True, slots=True)
class External(Let):
    """`declare variable $x external`: the value given by the caller; by default, the document."""


@dataclass(frozen=True, slots=True)
class ExternalVariable:
    """Where the text declares an external variable: from its `$` to the end, with its type."""

    variable: str
    type: str | None
    start: int
    stop: int
    has_default: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: its syntax tree, its text, and the namespaces in scope."""

    expression: Expression
    text: str
    namespaces: tuple[tuple[str, str], ...]
    patterns: dict[int, Pattern | None] = field(default_factory=dict, compare=False, repr=False)
    """By the id of a path in the tree, its pattern (`path_patterns.prepare`)."""


# Walking the tree --------------------------------------------------------------------------------


def operands(expression: Expression, operator: str) -> list[Expression]:
    """The operands of a chain of one operator, in the order of writing."""
    found: list[Expression] = []
    waiting = [expression]
    while waiting:  # a loop: chains may be long
        each = waiting.pop()
        if isinstance(each, Binary) and each.operator == operator:
            waiting += [each.right, each.left]
        else:
            found.append(each)
    return found


def references(expression: object) -> set[str]:
    """The variables that an expression mentions, at any depth."""
    return {node.name for node in walk(expression) if isinstance(node, Reference)}


def walk(node: object) -> Iterator[object]:
    """Every node of a syntax tree, the given one first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, tuple):
            waiting += found
        elif (names := field_names(type(found))) is not None:
            yield found
            waiting += [getattr(found, name) for name in names]


_FIELD_NAMES: dict[type, tuple[str, ...] | None] = {}


def field_names(kind: type) -> tuple[str, ...] | None:
    """The names of the fields of a class of nodes; None for any other class."""
    if kind not in _FIELD_NAMES:
        names = [each.name for each in fields(kind)] if is_dataclass(kind) else None
        _FIELD_NAMES[kind] = None if names is None else tuple(names)
    return _FIELD_NAMES[kind]
