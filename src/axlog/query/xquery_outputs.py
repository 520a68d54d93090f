"""What the `return` of a view shows: outputs of the pattern, and the template that uses them.

A path in a constructor or a sequence is collected (`Collect`): it may be empty and the row still
stands. `string()` and `data()` show values, `id()` identifiers, all else contents. An inner
`for $a in path where c return ...` is a collected path shown item by item; from its variable only
the node itself can be shown.
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
from axlog.query.xpath_branches import Choice, Conjunction, Gathering, Growing, Holder
from axlog.query.xpath_conditions import Conditions
from axlog.query.xpath_paths import Built, Site
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
    """A node that a row shows something of: its name in the pattern, and what it can be."""

    name: str
    form: Form
    attribute: str | None = None


class Showing(Conditions):
    """Adds outputs and parts of the template; `root` is the pattern that grows."""

    def __init__(self, text: str) -> None:
        super().__init__(text, is_xquery=True)
        self.root = Conjunction(True)
        self.outputs: dict[tuple[Kind, str], Output] = {}
        self._names: set[str] = set()
        self._collected: dict[str, Shown] = {}
        self._inner: dict[str, Shown] = {}

    def fresh_variable(self) -> str:
        return self.new_name(super().fresh_variable())

    # parts

    def parts(self, expression: Expression) -> list[Part]:
        """What an expression shows in a constructor or a sequence."""
        match expression:
            case Constant(value=value):
                return [Atom(_constant_text(value))]
            case Items(items=items):
                return [part for item in items for part in self.parts(item)]
            case Constructor():
                return [self.element(expression)]
            case Flwor(clauses=clauses, returned=returned):
                return self._inner_query(clauses, returned, expression.at)
            case Path(start=Reference(name=name), steps=()) if name in self.variables.constants:
                return self.parts(self.variables.constants[name])
            case Path(start=Reference(name=name), steps=()) if name in self.variables.values:
                return [Show(self.output(Kind.VARIABLE, self.variables.values[name]), Form.VALUE)]
            case Path(steps=(*_, Call())):
                return self.values(self.trails_of_values(expression))
            case Path() | Binary(operator="|") | Call(name="doc" | "document" | "collection"):
                return self._contents(self.spreading.trails(expression))
            case Call():
                return self._function(expression)
        raise self.unsupported("this in a result", expression.at, expected=_SHOWN)

    def values(self, trails: Sequence[Trail], is_distinct: bool = False) -> list[Part]:
        """The string values of what paths find."""
        return [
            Show(self.output(Kind.VAL, shown.name), Form.VALUE, is_distinct=is_distinct)
            for shown in self.shown(trails)
        ]

    def _contents(self, trails: Sequence[Trail]) -> list[Part]:
        return [self.content(shown) for shown in self.shown(trails)]

    def content(self, shown: Shown) -> Show:
        """A node as it is."""
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
                shown = self.shown(self.spreading.trails(inside))
                if not shown:
                    return [Atom("")]
                column = self.output(Kind.VAL, shown[0].name)
                return [Show(column, Form.VALUE, is_one=True)]
            case ("data" | "distinct-values", (inside,)):
                trails = self.trails_of_values(inside)
                return self.values(trails, is_distinct=call.name == "distinct-values")
            case ("id", (Path() as inside,)):
                return [
                    Show(self.output(Kind.ID, shown.name), Form.VALUE)
                    for shown in self.shown(self.spreading.trails(inside))
                ]
        raise self.unsupported(f"{call.name}() in a result", call.at, expected=_SHOWN)

    # constructors

    def element(self, constructor: Constructor) -> t.Element:
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
        """What stands in an attribute: the values of nodes, not the nodes."""
        match expression:
            case Items(items=items):
                return [part for item in items for part in self._attribute_values(item)]
            case Path(start=Reference(name=name), steps=()) if (
                name in self.variables.constants or name in self.variables.values
            ):
                return self.parts(expression)
            case Path() | Binary(operator="|"):
                return self.values(self.trails_of_values(expression))
            case Constant() | Call():
                return self.parts(expression)
        raise self.unsupported("this in an attribute", expression.at, expected=_SHOWN)

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

    def new_name(self, wanted: str) -> str:
        """A node's name in the pattern: the wanted one as far as it is a word, and new."""
        word = re.sub(r"\W", "_", wanted)
        word = word if re.match(r"[^\W\d]", word) else f"n{word}"
        name, number = word, 1
        while name in self._names:
            number += 1
            name = f"{word}_{number}"
        self._names.add(name)
        return name

    def shown(self, trails: Sequence[Trail]) -> list[Shown]:
        """The node that paths show: a variable's own, or one that is collected; none if empty."""
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
        if start.name in self._inner:
            return self._inner[start.name]
        variable = self.node_variable(start.name, start.at)
        assert variable.node.name is not None, "variables name their nodes"
        attribute = _attribute_name(variable.node)
        return Shown(variable.node.name, _FORMS[variable.spot.kind], attribute)

    def _collect(
        self, trails: Sequence[Trail], conditions: Sequence[Where], variable: str | None = None
    ) -> Shown | None:
        """Gather what paths find at the node where they start."""
        holder, site = self._gathered_at(trails)
        routes = [route for trail in trails for route in self.routes_of(trail, site)]
        name = self.new_name(wanted_name(trails[0]))
        found: list[Built] = []
        for route in routes:
            if route.spot.is_document:
                raise self.unsupported("showing the document node", route.at, advice="/*")
            built = self.build(route, None)
            if built is not None and self._meets(built, conditions, variable):
                name_last(built, name)
                found.append(built)
        if not found:
            return None
        holder.take([Gathering(_one_node(found))])
        return shown_as(name, found)

    def _meets(self, built: Built, conditions: Sequence[Where], variable: str | None) -> bool:
        for clause in conditions:
            items = self.condition(clause.condition, Site(built.spot, None, variable))
            if items is None:
                return False
            built.take(items)
        return True

    def _gathered_at(self, trails: Sequence[Trail]) -> tuple[Holder, Site]:
        starts = {self.start_of(trail, Site(DOCUMENT)) for trail in trails}
        name = min(starts)
        if len(starts) > 1:
            raise self.unsupported("a union of paths from different starts", trails[0].at)
        if name == "/":
            return self.root, Site(DOCUMENT)
        if name in self._inner:
            raise self.unsupported(
                f"a path from ${name}, the variable of an inner `for`,",
                trails[0].at,
                expected=f"${name}, string(${name}), id(${name})",
                advice="a `for` of the query itself",
            )
        variable = self.node_variable(name, trails[0].at)
        return variable.node, Site(variable.spot, None, name)

    # inner queries

    def _inner_query(
        self, clauses: tuple[Clause, ...], returned: Expression, at: int
    ) -> list[Part]:
        match clauses:
            case (For() as clause, *rest) if all(isinstance(each, Where) for each in rest):
                conditions = [each for each in rest if isinstance(each, Where)]
                return self._each(clause, conditions, returned)
            case _ if all(isinstance(each, Let) for each in clauses):
                raise self.unsupported("`let` in a result", at, advice="`let` before `return`")
        raise self.unsupported(
            "this inner query", at, expected="for $x in path where ... return ..."
        )

    def _each(self, clause: For, conditions: list[Where], returned: Expression) -> list[Part]:
        trails = [at_document(trail) for trail in self.spreading.trails(clause.source)]
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
    """A relative path of the query itself starts at the document."""
    if isinstance(trail.start, Context):
        return Trail(Root(trail.at), trail.steps, trail.at)
    return trail


def name_last(built: Built, name: str) -> None:
    """Name the node that a route ends on; where it ends at its start, a node for that."""
    if built.last is None:
        node = Growing(Axis.SELF, AnyNode())
        node.take(built.items)
        built.items[:] = [node]
        built.last = node
    built.last.name = name


def _one_node(alternatives: list[Built]) -> Growing:
    """One node that holds all the alternatives: what `collect` gathers."""
    if len(alternatives) == 1:
        match alternatives[0].items:
            case [Growing() as only]:
                return only
    around = Growing(Axis.SELF, AnyNode())
    if len(alternatives) == 1:
        around.take(alternatives[0].items)
    else:
        around.take([Choice([Conjunction(False, each.items) for each in alternatives])])
    return around


def shown_as(name: str, ends: list[Built]) -> Shown:
    """What a row shows of a node, by the ways that lead to it."""
    kinds = {built.spot.kind for built in ends}
    form = _FORMS[kinds.pop()] if len(kinds) == 1 else Form.NODE
    names = {_attribute_name(built.last) for built in ends if built.last is not None}
    attribute = names.pop() if form is Form.ATTRIBUTE and len(names) == 1 else None
    return Shown(name, form, attribute)


def _attribute_name(node: Growing) -> str | None:
    return node.test.label if isinstance(node.test, Name) else None


def wanted_name(trail: Trail) -> str:
    """What a column is called: the last name in the path."""
    for step in reversed(trail.steps):
        if not isinstance(step, Call) and isinstance(step.test, Name):
            return step.test.label.rpartition("}")[2]
    return "node"


def _constant_text(value: str | float) -> str:
    return value if isinstance(value, str) else repr(value).removesuffix(".0")
