"""The plan of a query that is more than a pattern: collections that are kept, inner before outer.

A collection is a sequence of tuples. Its source gives the values of some variables: the nodes of a
pattern, the keys of another collection (`group by`, `distinct-values`), or positions among the
siblings of another collection. Its clauses are evaluated for each tuple of the source and give the
entries of the tuple. An entry has a place in the order of the collection, keys of the index by
which look-ups find it, and the items of each output.

Expressions of a plan contain look-ups (`syntax_tree.Kept`, `ForKept`) in collections that come
before theirs. The last collection is the query; the items of its only output are the result.
`views/dataflow` keeps the collections.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from axlog.query.columns import Columns
from axlog.query.pattern import Axis, Kind, Output, Pattern, PatternNode, Wildcard
from axlog.query.row_key import RowKey
from axlog.query.syntax_tree import Clause, Expression, OrderKey


@dataclass(frozen=True, slots=True)
class Leaf:
    """The tuples of nodes that a pattern finds: one variable for each output, which is an id."""

    pattern: Pattern
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeysOf:
    """The keys of another collection's index: one tuple for each key that has entries."""

    collection: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChosenOf:
    """The nodes of another collection that have certain positions under each key of its index.

    `predicate` is the condition on position() and last(). `first` and `last` bound the positions
    from the start and from the end, where these are constants: (1, 1) is `[1]`, (-1, -1) is
    `[last()]`. Without bounds the predicate is evaluated for every position.
    """

    collection: int
    name: str
    predicate: Expression
    bounds: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class UnionOf:
    """The nodes that are keys of any of several collections by node."""

    collections: tuple[int, ...]
    name: str


Source: TypeAlias = Leaf | KeysOf | ChosenOf | UnionOf

IndexKind: TypeAlias = Literal[
    "one", "string", "number", "node", "parent", "group", "distinct", "order"
]


@dataclass(frozen=True, slots=True)
class Index:
    """How look-ups find entries.

    - `one`: all entries together
    - `string`, `number`: by any of the values of an expression, compared as strings or doubles
    - `node`: by the node of an expression; `parent`: by the parent of that node
    - `group`: by the single values of several expressions, as `group by` compares them
    - `distinct`: by each of the values of an expression, as distinct-values() compares them
    - `order`: the values v with `key operator v`, as doubles or as strings (`is_number`); with
      `is_negated`, the others
    """

    kind: IndexKind = "one"
    values: tuple[Expression, ...] = ()
    operator: str = "="
    is_number: bool = False
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class OutputItems:
    """The items of an entry.

    `is_path`: together the entries give distinct nodes in document order. `is_read`: some look-up
    reads the values of the items and not only their number.
    """

    value: Expression
    is_path: bool = False


@dataclass(slots=True)
class Collection:
    """One kept collection; see the module."""

    source: Source | None
    clauses: tuple[Clause, ...] = ()
    order: tuple[OrderKey, ...] = ()
    index: Index = field(default_factory=Index)
    outputs: list[OutputItems] = field(default_factory=list)
    read: set[int] = field(default_factory=set)
    """The outputs whose values look-ups read, and not only their number or identity."""
    exposed: tuple[str, ...] = ()
    """The variables that look-ups by `ForKept` get."""

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the source."""
        match self.source:
            case None:
                return ()
            case ChosenOf(name=name) | UnionOf(name=name):
                return (name,)
            case Leaf(names=names) | KeysOf(names=names):
                return names


@dataclass(frozen=True, slots=True)
class Plan:
    """The collections of a query, inner before outer; the last one is the query.

    `reevaluated` says why an update may evaluate the whole query again; None: it never does.
    """

    collections: tuple[Collection, ...]
    text: str
    namespaces: tuple[tuple[str, str], ...]
    reevaluated: str | None = None
    has_nodes: bool = True
    """Whether items may be nodes of the document, which have ids."""
    written: Expression | None = field(default=None, compare=False, repr=False)
    """The syntax tree of the text, before anything is kept."""


EVERYTHING = Pattern(
    (PatternNode(Axis.DESCENDANT, Wildcard(), "item"),),
    outputs=(Output(Kind.ID, "item"), Output(Kind.CONT, "item")),
)
"""Stands for a plan in analyses: it shows the content of every element, so all data matters."""

ITEM_KEY = RowKey(
    names=("item",),
    positions=(2,),
    pattern=EVERYTHING,
    steps=(),
    columns=Columns(("id", "value"), ("id", "any"), ("any",)),
    kept=Columns(("id", "value", "item"), ("id", "any", "any")),
)
"""The columns and the key of the items of a plan that may be nodes."""

VALUE_KEY = RowKey(
    names=("item",),
    positions=(1,),
    pattern=EVERYTHING,
    steps=(),
    columns=Columns(("value",), ("any",), ("any",)),
    kept=Columns(("value", "item"), ("any", "any")),
)
"""The columns and the key of items that are no nodes of the document: values and new nodes."""
