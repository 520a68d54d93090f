"""The evaluator of expressions, on the current document: paths, conditions, calculations.

This is the one place where expressions are evaluated. Its parts:

- `atoms`, `casts`, `arithmetic`, `comparisons`: atomic values and the operations on them
- `items`: sequences of nodes and values
- `functions`: two tables of pure functions of sequences (`OPERATORS` and `FUNCTIONS`); a new
  operator, function or cast is an entry there
- `Evaluator`: the rest, which needs a scope or nodes: paths, variables, `if`, `for`, sets of nodes
- `clauses`: the tuples of FLWOR expressions
- `sequence_types`: `instance of`, casts and the conversion of arguments
- `constructors`: new nodes; `made_nodes`: paths into them
- `updates`, `transform`: `copy ... modify ... return`

Expressions over the columns of a row, without nodes, are compiled (`scalars`); they use the same
tables.

A path from the document that a pattern can express (`query/path_patterns`) is found by columns
(`select`), with the value index where it helps. Every other path is walked step by step, with
positions and variables (`node_tests`). Law: both ways give the same nodes. The meaning is XQuery's
over untyped documents; calls pass no test (docs/meaning.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from axlog.document.blocks import FixedContent
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import AxlogError, QueryError, ValueProblem
from axlog.evaluate.atoms import NUMERIC, Named
from axlog.evaluate.clauses import tuples
from axlog.evaluate.columns import columns_of, handles
from axlog.evaluate.constructors import Builder
from axlog.evaluate.functions import FUNCTIONS, OPERATORS
from axlog.evaluate.items import Item, Items, Later, New, Node, is_true, text
from axlog.evaluate.made_nodes import identity, in_order, order_key, reached, root_of
from axlog.evaluate.node_tests import step_passes, step_reached
from axlog.evaluate.select import covers, select
from axlog.evaluate.sequence_types import typed
from axlog.query.path_patterns import pattern_of
from axlog.query.pattern import AnyNode, Name
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Clause,
    Constant,
    Constructor,
    Context,
    Enclosed,
    Expression,
    Flwor,
    ForKept,
    Group,
    Kept,
    Path,
    Predicate,
    Quantified,
    Reference,
    Root,
    Statement,
    Step,
    Transform,
    Typed,
)
from axlog.query.syntax_tree import Sequence as Listed
from axlog.query.tokenizer import unsupported

DOCUMENT = Node(DOCUMENT_NODE)
_DOWNWARD = frozenset({"child", "attribute", "self", "descendant", "descendant-or-self"})
_NEAR = frozenset({"parent", "following-sibling", "preceding-sibling"})
"""Axes that stay below the parent of a node."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The context of an expression: variables, the item, its position and the number of items."""

    variables: Mapping[str, Items | Later]
    item: Item = DOCUMENT
    position: int = 1
    size: int = 1

    def binding(self, name: str, items: Items | Later) -> Scope:
        return replace(self, variables={**self.variables, name: items})

    def with_variables(self, variables: Mapping[str, Items | Later]) -> Scope:
        return replace(self, variables=variables)

    def items(self, name: str) -> Items:
        """The items of a variable."""
        found = self.variables[name]
        return found.items() if isinstance(found, Later) else found

    def focused(self, item: Item, position: int, size: int) -> Scope:
        return Scope(self.variables, item, position, size)


class Evaluator:
    """Evaluates the expressions of one statement on one tree."""

    def __init__(
        self,
        tree: Tree,
        statement: Statement,
        index: ValueIndex | None = None,
        given: Mapping[str, Items] | None = None,
    ) -> None:
        self.tree = tree
        self.statement = statement
        self.index = index
        self.given = dict(given or {})
        self._strings = {
            name: items[0]
            for name, items in self.given.items()
            if len(items) == 1 and isinstance(items[0], str)
        }
        self._holes = frozenset(self._strings)

    def scope(self) -> Scope:
        """The scope of the whole statement: the variables given by its caller."""
        return Scope(self.given)

    def builder(self, scope: Scope) -> Builder:
        return Builder(
            self.tree,
            self.statement.text,
            dict(self.statement.namespaces),
            lambda inside: self.value(inside, scope),
        )

    def value(self, given: Expression, scope: Scope) -> Items:
        """The value of an expression, a sequence."""
        from axlog.evaluate.transform import transformed

        match given:
            case Constant():
                return [given.typed]
            case Path():
                return self.path(given, scope)
            case Listed(items=items):
                return [found for item in items for found in self.value(item, scope)]
            case Binary():
                return self._binary(given, scope)
            case Call():
                return self._call(given, scope)
            case Constructor():
                return [self._constructed(given, scope)]
            case Flwor(clauses=clauses, returned=returned):
                return [
                    i for each in self.tuples(clauses, scope) for i in self.value(returned, each)
                ]
            case Quantified():
                return [self._quantified(given, scope)]
            case Typed():
                return typed(self, given, self.value(given.value, scope))
            case Transform():
                return transformed(self, given, scope)
            case Kept():
                return self.kept(given, scope)

    def _constructed(self, given: Constructor, scope: Scope) -> New:
        """The element of a constructor; cached if it encloses no expression."""
        known = _CONSTRUCTED.get(id(given))
        if known is not None:
            return New("element", known[1].pieces)  # each evaluation makes another node
        made = New("element", (self.builder(scope).element(given),))
        if not _encloses(given):
            made = New("element", FixedContent(made.pieces))
            if len(_CONSTRUCTED) > 256:
                _CONSTRUCTED.clear()
            _CONSTRUCTED[id(given)] = (given, made)
        return made

    def holds(self, given: Expression, scope: Scope) -> bool:
        """Whether an expression is true."""
        return is_true(self.value(given, scope))

    def tuples(self, clauses: Sequence[Clause], scope: Scope) -> Iterator[Scope]:
        """The scopes of the tuples that clauses make (`clauses`)."""
        return tuples(self, clauses, scope)

    def depend(self, node: int) -> None:
        """Note that the value depends on a node and all below it; plans override it.

        The nodes of variables and of the context, and what is below them, need no note.
        """

    def kept(self, given: Kept, scope: Scope) -> Items:
        """The value of a look-up; plans, which keep collections, override it."""
        raise AssertionError("a look-up outside a plan")

    def tuples_kept(self, given: ForKept, scope: Scope) -> Iterator[Scope]:
        """The scopes of the tuples that a look-up finds; plans override it."""
        raise AssertionError("a look-up outside a plan")

    def _quantified(self, given: Quantified, scope: Scope) -> bool:
        held = (
            self.holds(given.condition, scope.binding(given.variable, [item]))
            for item in self.value(given.source, scope)
        )
        return all(held) if given.is_every else any(held)

    # Operators and calls ------------------------------------------------------------------------

    def _binary(self, given: Binary, scope: Scope) -> Items:
        operator = given.operator
        if operator == "and":
            return [self.holds(given.left, scope) and self.holds(given.right, scope)]
        if operator == "or":
            return [self.holds(given.left, scope) or self.holds(given.right, scope)]
        left, right = self.value(given.left, scope), self.value(given.right, scope)
        if operator in ("|", "intersect", "except"):
            return self._set(operator, left, right, given.at)
        if operator in ("is", "<<", ">>"):
            return self._by_identity(operator, left, right, given.at)
        return OPERATORS[operator](self.tree, left, right)

    def _set(self, operator: str, left: Items, right: Items, at: int) -> Items:
        if has_new(left) or has_new(right):
            return self._set_of_new(operator, left, right, at)
        one, other = self.nodes_of(left, at), self.nodes_of(right, at)
        if operator == "|":
            return self.ordered({*one, *other})
        others = set(other)
        is_kept = operator == "intersect"
        return self.ordered({node for node in one if (node in others) == is_kept})

    def _set_of_new(self, operator: str, left: Items, right: Items, at: int) -> Items:
        """The same, where some nodes are made by the statement."""
        one, other = self._any_nodes(left, at), self._any_nodes(right, at)
        if operator == "|":
            return in_order(self, (*one, *other), at)
        others = {identity(self, item, at) for item in other}
        is_kept = operator == "intersect"
        kept = (item for item in one if (identity(self, item, at) in others) == is_kept)
        return in_order(self, kept, at)

    def _by_identity(self, operator: str, left: Items, right: Items, at: int) -> Items:
        if not left or not right:
            return []
        ones, others = self._any_nodes(left, at), self._any_nodes(right, at)
        if len(ones) > 1 or len(others) > 1:
            raise self.refused("XPTY0004", f"`{operator}` compares single nodes", at)
        (one,), (other,) = ones, others
        if operator == "is":
            return [one is other or identity(self, one, at) == identity(self, other, at)]
        first, second = order_key(self, one, at), order_key(self, other, at)
        return [first < second if operator == "<<" else second < first]

    def _call(self, given: Call, scope: Scope) -> Items:
        name, arguments = given.name, given.arguments
        match name:
            case "if":
                first, second = arguments[1:]
                return self.value(first if self.holds(arguments[0], scope) else second, scope)
            case "position":
                return [scope.position]
            case "last":
                return [scope.size]
            case "doc" | "document" | "collection":
                self.depend(DOCUMENT_NODE)
                return [DOCUMENT]
            case "id":
                nodes = self.nodes_of(self.value(arguments[0], scope), given.at)
                return [str(self.tree.id(node)) for node in nodes]
            case "xs:QName":
                name_given = self.value(arguments[0], scope)
                written = text(self.tree, name_given[0]) if name_given else ""
                label = self.builder(scope).name(name_given, True, given.at)
                return [Named(label, written.rpartition(":")[0])]
        if name.startswith("new-"):
            computed = self.builder(scope).computed(given)
            return [] if computed is None else [computed]
        function = FUNCTIONS[name]
        least, most = function.least, function.most
        if not least <= len(arguments) <= most:
            raise self.refused(
                "XPST0017", f"{name}() has {len(arguments)} arguments", given.at,
                expected=f"{least}" if least == most else f"{least} to {most}",
            )  # fmt: skip
        values = [self.value(argument, scope) for argument in arguments]
        if not values and function.takes_context:
            values = [[scope.item]]
        if name == "root":  # what is read from there may be anywhere
            self.depend(DOCUMENT_NODE)
        return function.value(self.tree, values)

    # Paths --------------------------------------------------------------------------------------

    def path(self, given: Path, scope: Scope) -> Items:
        """The nodes, or values, at the end of a path."""
        current = self._start(given, scope)
        found = self._by_columns(given, current)
        if found is not None:
            return [Node(node) for node in found]
        after_slashes = False
        for step in given.steps:
            if isinstance(step, Step) and step.is_slashes and _is_document(current):
                after_slashes = True
                continue
            current = self._step(step, current, scope, after_slashes)
            after_slashes = False
        return current

    def handles(self, given: Expression, scope: Scope) -> list[int] | None:
        """The nodes of a path from the document, if columns can find them; else None."""
        if not isinstance(given, Path):
            return None
        return self._by_columns(given, self._start(given, scope))

    def _start(self, given: Path, scope: Scope) -> Items:
        match given.start:
            case Root(at=at, is_document=is_document):
                if isinstance(scope.item, New) and not is_document:
                    return [self._root_of_new(scope.item, at)]
                self.depend(DOCUMENT_NODE)
                return [DOCUMENT]
            case Context():
                return [scope.item]
            case Reference(name=name, at=at):
                return self._variable(name, at, scope)
            case start:
                return self.value(start, scope)

    def _root_of_new(self, item: New, at: int) -> New:
        top = root_of(self, item, at)
        if top.kind != "document":
            raise self.refused("XPDY0050", "the root of the context node is not a document", at)
        return top

    def _by_columns(self, given: Path, start: Items) -> list[int] | None:
        if not given.steps or not _is_document(start):
            return None
        known = self.statement.patterns
        if id(given) in known:
            pattern = known[id(given)]
        else:
            pattern = pattern_of(given, self.statement.text, self._holes)
        if pattern is None or covers(pattern) is not None:
            return None
        return select(self.tree, pattern, self.index, self._strings)

    def _variable(self, name: str, at: int, scope: Scope) -> Items:
        if name not in scope.variables:
            raise self.refused("AX203", f"${name} is used but never declared", at)
        return scope.items(name)

    def _step(
        self, step: Step | Group | Call, current: Items, scope: Scope, from_all: bool
    ) -> Items:
        if isinstance(step, Step):
            if step.is_filter:
                return self.filtered(step.predicates, current, scope)
            if has_new(current):
                return self._step_from_new(step, current, scope)
            contexts = self.nodes_of(current, step.at)
            if from_all:
                return self.ordered(self._anywhere(step, scope))
            found = [n for context in contexts for n in self._reached(step, context, scope)]
            if len(contexts) < 2 and step.axis in _DOWNWARD:
                return list(found)
            return self.ordered(set(found))
        if from_all:
            current = [DOCUMENT, *self._all_nodes()]
        inside = step.inside if isinstance(step, Group) else step
        gathered: Items = []
        for position, item in enumerate(current, 1):
            gathered += self.value(inside, scope.focused(item, position, len(current)))
        if not isinstance(step, Group) or step.is_map:
            return gathered
        if all(isinstance(item, Node) for item in gathered):
            return self.ordered({item for item in gathered if isinstance(item, Node)})
        if all(isinstance(item, Node | New) for item in gathered):
            return in_order(self, self._any_nodes(gathered, step.at), step.at)
        return gathered

    def _step_from_new(self, step: Step, current: Items, scope: Scope) -> Items:
        """A step from nodes of which some are made by the statement."""
        found: Items = []
        for context in self._any_nodes(current, step.at):
            if isinstance(context, New):
                found += reached(self, step, context, scope)
            else:
                found += self._reached(step, context, scope)
        if len(current) < 2 and step.axis in _DOWNWARD:
            return found
        return in_order(self, self._any_nodes(found, step.at), step.at)

    def _reached(self, step: Step, context: Node, scope: Scope) -> list[Node]:
        """The nodes of one step from one node, in the order of its axis."""
        if step.axis not in _DOWNWARD:
            near = step.axis in _NEAR and context != DOCUMENT
            self.depend(self.tree.parent(context) if near else DOCUMENT_NODE)
        found = [
            Node(node)
            for node in step_reached(self.tree, context, step.axis)
            if step_passes(self.tree, node, step.axis, step.test)
        ]
        return self._kept(step.predicates, found, scope)

    def _anywhere(self, step: Step, scope: Scope) -> set[Node]:
        """The nodes of a step from every node of the document: a step after `//`."""
        tree = self.tree
        if step.axis == "child" and type(step.test) is Name:
            siblings: dict[int, list[Node]] = {}
            with columns_of(tree) as columns:
                every = columns.in_document_order(columns.partition(step.test.label)).tolist()
            for node in every:
                siblings.setdefault(tree.parent(node), []).append(Node(node))
            groups = siblings.values()
            return {n for group in groups for n in self._kept(step.predicates, group, scope)}
        contexts = [DOCUMENT, *self._all_nodes()]
        return {n for context in contexts for n in self._reached(step, context, scope)}

    def _all_nodes(self) -> Iterator[Node]:
        """The nodes of `/descendant::node()`."""
        for node in self.tree.descendants(DOCUMENT_NODE):
            if step_passes(self.tree, node, "descendant", AnyNode()):
                yield Node(node)

    def _kept(self, predicates: Sequence[Predicate], nodes: list[Node], scope: Scope) -> list[Node]:
        kept = self.filtered(predicates, list(nodes), scope)
        return [node for node in kept if isinstance(node, Node)]

    def filtered(self, predicates: Sequence[Predicate], items: Items, scope: Scope) -> Items:
        """The items that meet all predicates."""
        for predicate in predicates:
            items = self._meeting_predicate(predicate, items, scope)
        return items

    def _meeting_predicate(self, predicate: Predicate, items: Items, scope: Scope) -> Items:
        condition = predicate.condition
        if isinstance(condition, Constant) and not isinstance(condition.value, str):
            at = condition.value
            return [items[int(at) - 1]] if 0 < at <= len(items) and at == int(at) else []
        kept: Items = []
        for position, item in enumerate(items, 1):
            inner = scope.focused(item, position, len(items))
            if predicate.variable is not None:
                inner = inner.binding(predicate.variable, [item])
            found = self.value(condition, inner)
            if len(found) == 1 and type(found[0]) in NUMERIC:
                is_kept = found[0] == position
            else:
                is_kept = is_true(found)
            if is_kept:
                kept.append(item)
        return kept

    # Nodes --------------------------------------------------------------------------------------

    def nodes_of(self, items: Items, at: int) -> list[Node]:
        """Items that must be nodes of the document."""
        found = [item for item in items if isinstance(item, Node)]
        if len(found) != len(items):
            if has_new(items):
                what = "the identifier of a node that the statement makes"
                raise unsupported(self.statement.text, at, what, advice="nodes of the document")
            raise self.refused("XPTY0004", "a step cannot start from a value", at)
        return found

    def _any_nodes(self, items: Items, at: int) -> list[Node | New]:
        """Items that must be nodes."""
        found = [item for item in items if isinstance(item, Node | New)]
        if len(found) != len(items):
            raise self.refused("XPTY0004", "a node is expected, and this is a value", at)
        return found

    def ordered(self, nodes: set[Node]) -> Items:
        """Distinct nodes in document order."""
        if len(nodes) < 2:
            return list(nodes)
        with columns_of(self.tree) as columns:
            sort = columns.in_document_order(handles([int(node) for node in nodes])).tolist()
        return [Node(node) for node in sort]

    def refused(self, code: str, message: str, at: int, expected: str | None = None) -> AxlogError:
        kind = QueryError if code.startswith("AX") else ValueProblem
        return kind(code, message, place=place_at(self.statement.text, at), expected=expected)


_CONSTRUCTED: dict[int, tuple[Constructor, New]] = {}  # by identity, like patterns


def _encloses(given: Constructor) -> bool:
    parts = (*given.content, *(part for _, value in given.attributes for part in value))
    return any(
        isinstance(part, Enclosed) or (isinstance(part, Constructor) and _encloses(part))
        for part in parts
    )


def has_new(items: Items) -> bool:
    """Whether some items are nodes made by the statement."""
    return any(isinstance(item, New) for item in items)


def _is_document(items: Items) -> bool:
    return len(items) == 1 and isinstance(items[0], Node) and items[0] == DOCUMENT
