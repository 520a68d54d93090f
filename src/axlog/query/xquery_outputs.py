"""The compiler of results: the `return` of a view to outputs of the pattern and template parts.

A path in a constructor or a sequence is collected (`Collect`): a row exists even if the path finds
no node. `string()` and `data()` show values, `id()` shows identifiers, other expressions show
contents. An inner `for $a in path where c return ...` is a collected path that is shown item by
item; only the node of its variable can be shown, no paths from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from axlog.query import template as t
from axlog.query.pattern import AnyNode, Axis, Kind, Name, Output
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
    For,
    Let,
    Path,
    Reference,
    Root,
    Where,
    Written,
)
from axlog.query.syntax_tree import (
    Sequence as Items,
)
from axlog.query.template import Atom, Each, Form, Part, Show
from axlog.query.xpath_branches import (
    Anchor,
    CollectBuilder,
    ConjunctionBuilder,
    NodeBuilder,
    OrBuilder,
)
from axlog.query.xpath_compiler import XPathCompiler
from axlog.query.xpath_paths import BuiltRoute, Location
from axlog.query.xpath_routes import Trail
from axlog.query.xpath_steps import DOCUMENT, SpotKind

_FORMS = {
    SpotKind.ELEMENT: Form.CONTENT,
    SpotKind.TEXT: Form.TEXT,
    SpotKind.ATTRIBUTE: Form.ATTRIBUTE,
    SpotKind.MARKUP: Form.NODE,
    SpotKind.TREE: Form.NODE,
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A node that a row shows: its name in the pattern, and the form in which it is shown."""

    name: str
    form: Form
    attribute: str | None = None


class OutputCompiler:
    """Compiles the results of one query text: `outputs` of the pattern, and parts of a template.

    Paths in results are attached to `root` and to the nodes of variables.
    """

    def __init__(self, xpath: XPathCompiler, root: ConjunctionBuilder) -> None:
        self.outputs: dict[tuple[Kind, str], Output] = {}
        self._xpath = xpath
        self._paths = xpath.paths
        self._variables = self._paths.variables
        self._expander = self._paths.expander
        self._root = root
        self._collected: dict[str, Shown] = {}
        self._inner: dict[str, Shown] = {}

    # parts

    def parts(self, expression: Expression) -> list[Part]:
        """The parts for an expression in a constructor or a sequence."""
        match expression:
            case Constant(value=value):
                return [Atom(_constant_text(value))]
            case Items(items=items):
                return [part for item in items for part in self.parts(item)]
            case Constructor():
                return [self.element(expression)]
            case Flwor(clauses=clauses, returned=returned):
                return self._inner_query(clauses, returned, expression.at)
            case Path(start=Reference(name=name), steps=()) if name in self._variables.constants:
                return self.parts(self._variables.constants[name])
            case Path(start=Reference(name=name), steps=()) if name in self._variables.values:
                return [Show(self.output(Kind.VARIABLE, self._variables.values[name]), Form.VALUE)]
            case Path(steps=(*_, Call())):
                return self.values(self._expander.value_trails(expression))
            case Path() | Binary(operator="|") | Call(name="doc" | "document" | "collection"):
                return self._contents(self._expander.trails(expression))
            case Call():
                return self._function(expression)
        raise self._paths.unsupported("this expression in a result", expression.at, expected=_SHOWN)

    def values(self, trails: Sequence[Trail], is_distinct: bool = False) -> list[Part]:
        """The string values of the nodes that paths find."""
        return [
            Show(self.output(Kind.VAL, shown.name), Form.VALUE, is_distinct=is_distinct)
            for shown in self.shown(trails)
        ]

    def _contents(self, trails: Sequence[Trail]) -> list[Part]:
        return [self.content(shown) for shown in self.shown(trails)]

    def content(self, shown: Shown) -> Show:
        """A node with its content."""
        match shown.form:
            case Form.TEXT:
                return Show(self.output(Kind.VAL, shown.name), Form.TEXT)
            case Form.ATTRIBUTE if shown.attribute is not None:
                column = self.output(Kind.VAL, shown.name)
                return Show(column, Form.ATTRIBUTE, name=shown.attribute)
            case Form.ATTRIBUTE:
                column = self.output(Kind.VAL, shown.name)
                return Show(column, Form.ATTRIBUTE, kinds=self.output(Kind.LABEL, shown.name))
            case Form.NODE:
                column = self.output(Kind.CONT, shown.name)
                return Show(column, Form.NODE, kinds=self.output(Kind.ID, shown.name))
        return Show(self.output(Kind.CONT, shown.name), Form.CONTENT)

    def _function(self, call: Call) -> list[Part]:
        match call.name, call.arguments:
            case ("string", (inside,)):
                shown = self.shown(self._expander.trails(inside))
                if not shown:
                    return [Atom("")]
                column = self.output(Kind.VAL, shown[0].name)
                return [Show(column, Form.VALUE, is_one=True)]
            case ("data" | "distinct-values", (inside,)):
                trails = self._expander.value_trails(inside)
                return self.values(trails, is_distinct=call.name == "distinct-values")
            case ("id", (Path() as inside,)):
                return [
                    Show(self.output(Kind.ID, shown.name), Form.VALUE)
                    for shown in self.shown(self._expander.trails(inside))
                ]
        raise self._paths.unsupported(f"{call.name}() in a result", call.at, expected=_SHOWN)

    # constructors

    def element(self, constructor: Constructor) -> t.Element:
        """The template of a constructor."""
        attributes = tuple(
            (name, tuple(self._attribute_part(part) for part in parts))
            for name, parts in constructor.attributes
        )
        content = tuple(self._content_part(part) for part in constructor.content)
        return t.Element(constructor.tag, constructor.declared, attributes, content)

    def _attribute_part(self, part: Written | Enclosed) -> t.Text | t.Enclosed:
        if isinstance(part, Written):
            return t.Text(part.text)
        return t.Enclosed(tuple(self._attribute_values(part.inside)))

    def _attribute_values(self, expression: Expression) -> list[Part]:
        """The parts for an expression in an attribute: values of nodes, not the nodes."""
        match expression:
            case Items(items=items):
                return [part for item in items for part in self._attribute_values(item)]
            case Path(start=Reference(name=name), steps=()) if (
                name in self._variables.constants or name in self._variables.values
            ):
                return self.parts(expression)
            case Path() | Binary(operator="|"):
                return self.values(self._expander.value_trails(expression))
            case Constant() | Call():
                return self.parts(expression)
        raise self._paths.unsupported(
            "this expression in an attribute", expression.at, expected=_SHOWN
        )

    def _content_part(
        self, part: Written | Enclosed | Constructor
    ) -> t.Text | t.Markup | t.Enclosed | t.Element:
        match part:
            case Written(text=text, is_markup=is_markup):
                return t.Markup(text) if is_markup else t.Text(text)
            case Enclosed(inside=inside):
                return t.Enclosed(tuple(self.parts(inside)))
            case Constructor():
                return self.element(part)

    # nodes

    def output(self, kind: Kind, of: str) -> str:
        """The column for a kind of a node, or for a variable."""
        return self.outputs.setdefault((kind, of), Output(kind, of)).column

    def shown(self, trails: Sequence[Trail]) -> list[Shown]:
        """The node that paths show: that of a variable, or a collected one; none if empty."""
        trails = [at_document(trail) for trail in trails]
        if not trails:
            return []
        start = trails[0].start
        if len(trails) == 1 and not trails[0].steps and isinstance(start, Reference):
            return [self.of_variable(start)]
        signature = re.sub(r"\bat=\d+", "", repr(trails))
        if signature not in self._collected:
            found = self._collect(trails, ())
            if found is None:
                return []
            self._collected[signature] = found
        return [self._collected[signature]]

    def of_variable(self, start: Reference) -> Shown:
        """The node of a variable."""
        if start.name in self._inner:
            return self._inner[start.name]
        variable = self._paths.node_variable(start.name, start.at)
        assert variable.node.name is not None, "variables name their nodes"
        attribute = _attribute_name(variable.node)
        return Shown(variable.node.name, _FORMS[variable.spot.kind], attribute)

    def _collect(
        self, trails: Sequence[Trail], conditions: Sequence[Where], variable: str | None = None
    ) -> Shown | None:
        """Collect the nodes that paths find, at the node where the paths start."""
        holder, location = self._collection_anchor(trails)
        routes = [route for trail in trails for route in self._paths.routes_of(trail, location)]
        name = self._paths.names.new(wanted_name(trails[0]))
        found: list[BuiltRoute] = []
        for route in routes:
            if route.spot.is_document:
                raise self._paths.unsupported("showing the document node", route.at, advice="/*")
            built = self._paths.build(route, None)
            if built is not None and self._meets(built, conditions, variable):
                name_last(built, name)
                found.append(built)
        if not found:
            return None
        holder.add([CollectBuilder(_one_node(found))])
        return shown_as(name, found)

    def _meets(self, built: BuiltRoute, conditions: Sequence[Where], variable: str | None) -> bool:
        for clause in conditions:
            items = self._xpath.condition(clause.condition, Location(built.spot, None, variable))
            if items is None:
                return False
            built.add(items)
        return True

    def _collection_anchor(self, trails: Sequence[Trail]) -> tuple[Anchor, Location]:
        starts = {self._paths.start_of(trail, Location(DOCUMENT)) for trail in trails}
        name = min(starts)
        if len(starts) > 1:
            raise self._paths.unsupported("a union of paths from different starts", trails[0].at)
        if name == "/":
            return self._root, Location(DOCUMENT)
        if name in self._inner:
            raise self._paths.unsupported(
                f"a path from ${name}, the variable of an inner `for`,",
                trails[0].at,
                expected=f"${name}, string(${name}), id(${name})",
                advice="a `for` of the query itself",
            )
        variable = self._paths.node_variable(name, trails[0].at)
        return variable.node, Location(variable.spot, None, name)

    # inner queries

    def _inner_query(
        self, clauses: tuple[Clause, ...], returned: Expression, at: int
    ) -> list[Part]:
        match clauses:
            case (For() as clause, *rest) if all(isinstance(each, Where) for each in rest):
                conditions = [each for each in rest if isinstance(each, Where)]
                return self._each(clause, conditions, returned)
            case _ if all(isinstance(each, Let) for each in clauses):
                raise self._paths.unsupported(
                    "`let` in a result", at, advice="`let` before `return`"
                )
        raise self._paths.unsupported(
            "this inner query", at, expected="for $x in path where ... return ..."
        )

    def _each(self, clause: For, conditions: list[Where], returned: Expression) -> list[Part]:
        trails = [at_document(trail) for trail in self._expander.trails(clause.source)]
        found = self._collect(trails, conditions, clause.variable) if trails else None
        if found is None:
            return []
        with self._as_inner(clause.variable, found):
            parts = self.parts(returned)
        columns = [o.column for o in self.outputs.values() if o.of == found.name]
        if not columns:
            columns = [self.output(Kind.ID, found.name)]
        return [Each(tuple(columns), tuple(parts))]

    @contextmanager
    def _as_inner(self, variable: str, shown: Shown) -> Iterator[None]:
        outer = self._inner
        self._inner = {**outer, variable: shown}
        yield
        self._inner = outer


_SHOWN = "a path, $x, string(), data(), id(), a constructor, a constant"


def at_document(trail: Trail) -> Trail:
    """The trail of a whole query: a relative path starts at the document."""
    if isinstance(trail.start, Context):
        return Trail(Root(trail.at), trail.steps, trail.at)
    return trail


def name_last(built: BuiltRoute, name: str) -> None:
    """Name the last node of a route; a route that ends at its start gets a node for this."""
    if built.last is None:
        node = NodeBuilder(Axis.SELF, AnyNode())
        node.add(built.items)
        built.items[:] = [node]
        built.last = node
    built.last.name = name


def _one_node(alternatives: list[BuiltRoute]) -> NodeBuilder:
    """One node that contains all the alternatives, for `collect`."""
    if len(alternatives) == 1:
        match alternatives[0].items:
            case [NodeBuilder() as only]:
                return only
    around = NodeBuilder(Axis.SELF, AnyNode())
    if len(alternatives) == 1:
        around.add(alternatives[0].items)
    else:
        around.add([OrBuilder([ConjunctionBuilder(False, each.items) for each in alternatives])])
    return around


def shown_as(name: str, ends: list[BuiltRoute]) -> Shown:
    """How a node is shown, by the routes that lead to it."""
    kinds = {built.spot.kind for built in ends}
    form = _FORMS[kinds.pop()] if len(kinds) == 1 else Form.NODE
    names = {_attribute_name(built.last) for built in ends if built.last is not None}
    attribute = names.pop() if form is Form.ATTRIBUTE and len(names) == 1 else None
    return Shown(name, form, attribute)


def _attribute_name(node: NodeBuilder) -> str | None:
    return node.test.label if isinstance(node.test, Name) else None


def wanted_name(trail: Trail) -> str:
    """The name for a column: the last name in the path."""
    for step in reversed(trail.steps):
        if not isinstance(step, Call) and isinstance(step.test, Name):
            return step.test.label.rpartition("}")[2]
    return "node"


def _constant_text(value: str | float) -> str:
    return value if isinstance(value, str) else repr(value).removesuffix(".0")
