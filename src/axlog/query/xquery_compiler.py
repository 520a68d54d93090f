"""The compiler of XQuery views: a query to a pattern and a template.

    let $auction := doc("auction.xml") return
    for $p in $auction/site/people/person, $a in $auction//closed_auction
    where $a/buyer/@person = $p/@id and $p/profile/@income > 50000
    return <sale person="{$p/@id}">{$p/name/text()}{$a/price}</sale>

- Each `for` variable names a node of the pattern. A `let` variable stands for its path wherever it
  is used. `for $v in distinct-values(path)` is a variable of the pattern. `where` adds conditions
  to the nodes, and joins them by values.
- The rows are the distinct tuples of the returned items, with derivation counts. A path that is
  returned alone (`return $b/bidder/increase`) gives a row for each node. In a constructor or a
  sequence a path is collected, and the row exists even if the path finds no node.
- `doc(...)`, `document(...)`, `collection(...)`, `/` and the context item all mean the document of
  the view.
- A constructor around the whole query is written around the rows.
- `return A, B` at the end of a query is read as `return (A, B)`. By the recommendation, variables
  of the query would be undeclared in B.

Rows are a set, so their order is not that of XQuery. Sorted by the ids of `template.bindings` they
are in XQuery's order. A value that is not a number compares with numbers as in XPath 1.0 instead of
raising an error. (Paper 5, section 2.2, figure 3 and appendix A.6; Q13 there for `return A, B`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError
from axlog.query.normalize import check
from axlog.query.pattern import Axis, Branch, Comparison, Kind, Output, Pattern, Variable, Wildcard
from axlog.query.pattern_fragment import refuse_beyond
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Clause,
    Constant,
    Constructor,
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
    references,
)
from axlog.query.syntax_tree import Sequence as Items
from axlog.query.template import Form, Part, Show, Template
from axlog.query.xpath_branches import ConjunctionBuilder, NodeBuilder, nothing
from axlog.query.xpath_compiler import XPathCompiler, is_condition
from axlog.query.xpath_paths import BuiltRoute, Location, NodeVariable
from axlog.query.xpath_routes import Trail
from axlog.query.xpath_steps import DOCUMENT, Spot, SpotKind
from axlog.query.xquery_outputs import (
    OutputCompiler,
    Shown,
    at_document,
    name_last,
    shown_as,
    wanted_name,
)
from axlog.query.xquery_parser import XQueryParser


def parse_xquery(
    text: str, namespaces: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[Pattern, Template | None]:
    """The pattern of an XQuery view, and the template of its result.

    A condition without `for` is a Boolean query and has no template.

    >>> view = "for $b in //book where $b/price return <b id='{$b/@id}'>{$b/title}</b>"
    >>> pattern, template = parse_xquery(view)
    >>> print(pattern)
    match //book#b[price][collect(@id#id)][collect(title#title)] return id.val, title.cont
    >>> template.render({"id.val": ("7",), "title.cont": ("<title>A &amp; B</title>",)})
    '<b id="7"><title>A &amp; B</title></b>'
    """
    return _parse(text, tuple(sorted((namespaces or {}).items())), limits)


@lru_cache(maxsize=512)
def _parse(
    text: str, namespaces: tuple[tuple[str, str], ...], limits: Limits
) -> tuple[Pattern, Template | None]:
    expression = XQueryParser(text, dict(namespaces)).parse_query()
    refuse_beyond(expression, text)
    pattern, template = XQueryCompiler(text).view(expression)
    check(pattern, limits=limits)
    return pattern, template


class XQueryCompiler:
    """Compiles one query text; its parts compile the paths, conditions and results in it."""

    def __init__(self, text: str) -> None:
        self._root = ConjunctionBuilder(True)
        self._xpath = XPathCompiler(text)
        self._paths = self._xpath.paths
        self._variables = self._paths.variables
        self._expander = self._paths.expander
        self._outputs = OutputCompiler(self._xpath, self._root)
        self._bindings: list[str] = []

    def view(self, expression: Expression) -> tuple[Pattern, Template | None]:
        """The pattern and the template of a whole query."""
        around = _Around()
        while True:
            expression = self._as_meant(expression)
            if isinstance(expression, Flwor):
                self._bind(expression.clauses)
                expression = expression.returned
                continue
            query = None if self._bindings or around.before else _only_query(expression)
            if query is None:
                break
            around, expression = self._around(expression), query
        if is_condition(expression) and not self._bindings and not around.before:
            self._require(expression)
            return Pattern(self._branches()), None
        parts = self._returned(expression)
        outputs = tuple(self._outputs.outputs.values())
        pattern = Pattern(self._branches(), tuple(self._variables.where), outputs)
        bindings = tuple(self._bindings)
        return pattern, Template(tuple(parts), bindings, around.before, around.after, around.scope)

    def tuples(self, clauses: Sequence[Clause]) -> tuple[Pattern, tuple[str, ...]]:
        """The pattern of `for` and `where` clauses alone: its outputs are the ids of the nodes.

        Returns the variable of each output as well.
        """
        self._bind(tuple(clauses))
        names = tuple(clause.variable for clause in clauses if isinstance(clause, For))
        outputs = []
        for clause in clauses:
            if isinstance(clause, For):
                node = self._paths.node_variable(clause.variable, clause.at).node
                outputs.append(Output(Kind.ID, str(node.name)))
        pattern = Pattern(self._branches(), tuple(self._variables.where), tuple(outputs))
        return pattern, names

    def _branches(self) -> tuple[Branch, ...]:
        if not self._root.items:
            self._root.add(
                [NodeBuilder(Axis.CHILD, Wildcard())]
            )  # every document has a root element
        return self._root.build()

    # the whole

    def _as_meant(self, expression: Expression) -> Expression:
        """Move expressions after a comma into `return` if they use the query's variables."""
        match expression:
            case Items(items=(Flwor() as query, *rest)):
                declared = {clause.variable for clause in _bindings_of(query)}
                for each in rest:
                    if not references(each) & declared:
                        construct = "a query after another one"
                        raise self._paths.unsupported(construct, each.at, advice="a view for each")
                return _with_more(query, tuple(rest))
        return expression

    def _around(self, expression: Expression) -> _Around:
        """The XML around the one query that the constructors enclose."""
        assert isinstance(expression, Constructor)
        whole = self._outputs.element(_with_hole(expression))
        before, _, after = Template((whole,)).render({}).partition(_HOLE)
        return _Around(before, after, tuple(_scope_at_hole(expression).items()))

    def _returned(self, expression: Expression) -> list[Part]:
        """The parts of a row; an expression that is returned alone gives a row for each item."""
        match expression:
            case Path(start=Reference(name=name), steps=()) if (
                name in self._variables.constants or name in self._variables.values
            ):
                return self._outputs.parts(expression)
            case Path(steps=(*_, Call())):
                return self._each_value(self._expander.value_trails(expression))
            case Call(name="data", arguments=(inside,)):
                return self._each_value(self._expander.value_trails(inside))
            case Call(name="distinct-values", arguments=(inside,)):
                name = self._paths.names.new("value")
                self._bind_value(name, self._expander.value_trails(inside))
                return [Show(self._outputs.output(Kind.VARIABLE, name), Form.VALUE)]
            case Path() | Binary(operator="|"):
                trails = self._expander.trails(expression)
                return [self._outputs.content(self._returned_node(trails))]
        return self._outputs.parts(expression)

    def _each_value(self, trails: list[Trail]) -> list[Part]:
        shown = self._returned_node(trails)
        return [Show(self._outputs.output(Kind.VAL, shown.name), Form.VALUE)]

    def _returned_node(self, trails: list[Trail]) -> Shown:
        match trails:
            case [Trail(start=Reference() as start, steps=())]:
                return self._outputs.of_variable(start)
        name, ends = self._select(trails, wanted_name(trails[0]) if trails else "node")
        return shown_as(name, ends)

    def _select(self, trails: list[Trail], wanted: str) -> tuple[str, list[BuiltRoute]]:
        """Attach a named node to the pattern; every row has one."""
        name = self._paths.names.new(wanted)
        self._bindings.append(name)
        ends: list[BuiltRoute] = []

        def finish(built: BuiltRoute) -> None:
            if built.spot.is_document:
                at = trails[0].at
                raise self._paths.unsupported("the document node in a result", at, advice="/*")
            name_last(built, name)
            ends.append(built)

        trails = [at_document(trail) for trail in trails]
        found = self._paths.attach(trails, Location(DOCUMENT, self._root), finish)
        if found is None:
            node = nothing(name)
            self._root.add([node])
            return name, [BuiltRoute([], node, Spot(SpotKind.ELEMENT))]
        self._root.add(found)
        return name, ends

    # clauses

    def _bind(self, clauses: tuple[Clause, ...]) -> None:
        """Add the nodes and conditions of clauses to the pattern."""
        for clause in clauses:
            match clause:
                case For():
                    self._declare(clause)
                    self._bind_for(clause)
                case Let():
                    self._declare(clause)
                    self._bind_let(clause)
                case Where(condition=condition):
                    self._require(condition)

    def _require(self, condition: Expression) -> None:
        found = self._xpath.condition(condition, Location(DOCUMENT, self._root))
        self._root.add([nothing()] if found is None else found)

    def _declare(self, clause: For | Let) -> None:
        variables = self._variables
        for known in (variables.nodes, variables.values, variables.paths, variables.constants):
            if clause.variable in known:
                raise QueryError(
                    "AX202",
                    f"the variable ${clause.variable} is declared twice",
                    place=place_at(self._paths.text, clause.at),
                    advice="another name",
                )

    def _bind_let(self, clause: Let) -> None:
        match clause.value:
            case Constant() as constant:
                self._variables.constants[clause.variable] = constant
            case Path(start=Reference(name=name), steps=()) if name in self._variables.constants:
                self._variables.constants[clause.variable] = self._variables.constants[name]
            case Path() | Binary(operator="|") | Call(name="doc" | "document" | "collection"):
                trails = self._expander.trails(clause.value)
                self._variables.paths[clause.variable] = tuple(map(at_document, trails))
            case value:
                raise self._paths.unsupported(
                    "`let` with a computed value", value.at, expected="a path or a constant"
                )

    def _bind_for(self, clause: For) -> None:
        match clause.source:
            case Call(name="distinct-values", arguments=(inside,)):
                name = self._paths.names.new(clause.variable)
                self._bind_value(name, self._expander.value_trails(inside))
                self._variables.values[clause.variable] = name
                return
        trails = [at_document(trail) for trail in self._expander.trails(clause.source)]
        match trails:
            case [Trail(start=Root(), steps=()) as trail]:
                self._variables.paths[clause.variable] = (trail,)
                return
            case [Trail(start=Reference(name=name), steps=(), at=at)]:
                self._variables.nodes[clause.variable] = self._paths.node_variable(name, at)
                return
        _, ends = self._select(trails, clause.variable)
        node = ends[0].last
        if len(ends) > 1 or node is None:
            raise self._paths.unsupported(
                "a union in `for`", clause.source.at, advice="a view for each"
            )
        self._variables.nodes[clause.variable] = NodeVariable(node, ends[0].spot)

    def _bind_value(self, name: str, trails: list[Trail]) -> None:
        """Bind a variable of the pattern to the values of the nodes that paths find."""
        bound = Comparison("=", Variable(name))
        trails = [at_document(trail) for trail in trails]
        found = self._paths.exists(trails, Location(DOCUMENT, self._root), [bound])
        if found is None:
            empty = nothing()
            empty.add([bound])
            found = [empty]
        self._root.add(found)


# Queries inside constructors --------------------------------------------------------------------

_HOLE = "\0"  # marks the enclosed query; the character is not allowed in XML


@dataclass(frozen=True, slots=True)
class _Around:
    """The XML before and after a query, and the namespaces that it declares."""

    before: str = ""
    after: str = ""
    scope: tuple[tuple[str, str], ...] = ()


def _only_query(expression: Expression) -> Flwor | None:
    """The query with `for`, if it is the only expression that a constructor encloses."""
    if not isinstance(expression, Constructor):
        return None
    match list(_enclosed(expression)):
        case [Enclosed(inside=Flwor() as query)] if any(
            isinstance(clause, For) for clause in _bindings_of(query)
        ):
            return query
    return None


def _enclosed(constructor: Constructor) -> Iterator[Enclosed]:
    for _, value in constructor.attributes:
        yield from (part for part in value if isinstance(part, Enclosed))
    for part in constructor.content:
        if isinstance(part, Constructor):
            yield from _enclosed(part)
        elif isinstance(part, Enclosed):
            yield part


def _with_hole(constructor: Constructor) -> Constructor:
    content: list[Written | Enclosed | Constructor] = []
    for part in constructor.content:
        match part:
            case Enclosed():
                content.append(Written(_HOLE))
            case Constructor():
                content.append(_with_hole(part))
            case _:
                content.append(part)
    return replace(constructor, content=tuple(content))


def _scope_at_hole(constructor: Constructor) -> dict[str, str]:
    """The namespaces that the constructors around the query declare."""
    scope = dict(constructor.declared)
    for part in constructor.content:
        if isinstance(part, Constructor) and list(_enclosed(part)):
            scope |= _scope_at_hole(part)
    return scope


def _bindings_of(query: Flwor) -> Iterator[For | Let]:
    """The variables of a query, and of a query that is its `return` expression."""
    for clause in query.clauses:
        if isinstance(clause, For | Let):
            yield clause
    if isinstance(query.returned, Flwor):
        yield from _bindings_of(query.returned)


def _with_more(query: Flwor, rest: tuple[Expression, ...]) -> Flwor:
    inside = query.returned
    if isinstance(inside, Flwor):
        return replace(query, returned=_with_more(inside, rest))
    return replace(query, returned=Items((inside, *rest), inside.at))
