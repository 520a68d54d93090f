"""XQuery views to patterns and templates (P5 2.2, figure 3, and appendix A.6).

    let $auction := doc("auction.xml") return
    for $p in $auction/site/people/person, $a in $auction//closed_auction
    where $a/buyer/@person = $p/@id and $p/profile/@income > 50000
    return <sale person="{$p/@id}">{$p/name/text()}{$a/price}</sale>

- Each `for` variable names a node of the pattern; `let` stands for its path wherever it is used;
  `for $v in distinct-values(path)` is a variable of the pattern. `where` hangs conditions on the
  nodes, and joins them by values.
- The rows are the distinct tuples of what `return` shows, with derivation counts. What is returned
  alone (`return $b/bidder/increase`) gives a row for each node; in a constructor or a sequence a
  path is collected, and the row stands without any.
- `doc(...)`, `document(...)`, `collection(...)`, `/` and the context are the one document there is.
- A constructor around the whole query is what stands around the rows.
- `return A, B` at the end of a query is `return (A, B)`, as appendix A.6's Q13 means it (by the
  recommendation, `$i` of B would be undeclared).

The order of rows is not XQuery's: rows are a set. Sorted by the ids of `template.bindings` they
come in XQuery's order. A value that is no number compares with numbers as in XPath 1.0 instead of
being an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError
from axlog.query.normalize import check
from axlog.query.pattern import Axis, Branch, Comparison, Kind, Pattern, Variable, Wildcard
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
    Sequence,
    Where,
    Written,
    references,
)
from axlog.query.template import Form, Part, Show, Template
from axlog.query.xpath_branches import Growing, nothing
from axlog.query.xpath_conditions import is_condition
from axlog.query.xpath_paths import Built, NodeVariable, Site
from axlog.query.xpath_routes import Trail
from axlog.query.xpath_steps import DOCUMENT, Spot, SpotKind
from axlog.query.xquery_outputs import (
    Showing,
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
    """The pattern of an XQuery view, and the template that its constructor is.

    A query without `for` that is a condition is Boolean and has no template.

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
    pattern, template = Querying(text).view(expression)
    check(pattern, limits=limits)
    return pattern, template


class Querying(Showing):
    """From a whole query to its pattern and template."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._bindings: list[str] = []

    def view(self, expression: Expression) -> tuple[Pattern, Template | None]:
        around = _Around()
        while True:
            expression = self._as_meant(expression)
            if isinstance(expression, Flwor):
                self.bind(expression.clauses)
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
        outputs = tuple(self.outputs.values())
        pattern = Pattern(self._branches(), tuple(self.variables.where), outputs)
        bindings = tuple(self._bindings)
        return pattern, Template(tuple(parts), bindings, around.before, around.after, around.scope)

    def _branches(self) -> tuple[Branch, ...]:
        if not self.root.items:
            self.root.take([Growing(Axis.CHILD, Wildcard())])  # every document has a root element
        return self.root.freeze()

    # the whole

    def _as_meant(self, expression: Expression) -> Expression:
        """A query with more behind a comma: it belongs to the return if it uses its variables."""
        match expression:
            case Sequence(items=(Flwor() as query, *rest)):
                declared = {clause.variable for clause in _bindings_of(query)}
                for each in rest:
                    if not references(each) & declared:
                        what = "a query behind another one"
                        raise self.unsupported(what, each.at, advice="a view for each")
                return _with_more(query, tuple(rest))
        return expression

    def _around(self, expression: Expression) -> _Around:
        """The XML around the one query that constructors hold."""
        assert isinstance(expression, Constructor)
        whole = self.element(_with_hole(expression))
        before, _, after = Template((whole,)).render({}).partition(_HOLE)
        return _Around(before, after, tuple(_scope_at_hole(expression).items()))

    def _returned(self, expression: Expression) -> list[Part]:
        """What is returned alone gives a row each; all else is shown in one."""
        match expression:
            case Path(start=Reference(name=name), steps=()) if (
                name in self.variables.constants or name in self.variables.values
            ):
                return self.parts(expression)
            case Path(steps=(*_, Call())):
                return self._each_value(self.trails_of_values(expression))
            case Call(name="data", arguments=(inside,)):
                return self._each_value(self.trails_of_values(inside))
            case Call(name="distinct-values", arguments=(inside,)):
                name = self.new_name("value")
                self._bind_value(name, self.trails_of_values(inside))
                return [Show(self.output(Kind.VARIABLE, name), Form.VALUE)]
            case Path() | Binary(operator="|"):
                trails = self.spreading.trails(expression)
                return [self.content(self._returned_node(trails))]
        return self.parts(expression)

    def _each_value(self, trails: list[Trail]) -> list[Part]:
        shown = self._returned_node(trails)
        return [Show(self.output(Kind.VAL, shown.name), Form.VALUE)]

    def _returned_node(self, trails: list[Trail]) -> Shown:
        match trails:
            case [Trail(start=Reference() as start, steps=())]:
                return self.of_variable(start)
        name, ends = self._select(trails, wanted_name(trails[0]) if trails else "node")
        return shown_as(name, ends)

    def _select(self, trails: list[Trail], wanted: str) -> tuple[str, list[Built]]:
        """Hang a named node on the pattern: every row has one."""
        name = self.new_name(wanted)
        self._bindings.append(name)
        ends: list[Built] = []

        def finish(built: Built) -> None:
            if built.spot.is_document:
                at = trails[0].at
                raise self.unsupported("the document node in a result", at, advice="/*")
            name_last(built, name)
            ends.append(built)

        trails = [at_document(trail) for trail in trails]
        found = self.hang(trails, Site(DOCUMENT, self.root), finish)
        if found is None:
            node = nothing(name)
            self.root.take([node])
            return name, [Built([], node, Spot(SpotKind.ELEMENT))]
        self.root.take(found)
        return name, ends

    # clauses

    def bind(self, clauses: tuple[Clause, ...]) -> None:
        """Let the clauses of a query hang nodes and conditions on the pattern."""
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
        found = self.condition(condition, Site(DOCUMENT, self.root))
        self.root.take([nothing()] if found is None else found)

    def _declare(self, clause: For | Let) -> None:
        variables = self.variables
        for known in (variables.nodes, variables.values, variables.paths, variables.constants):
            if clause.variable in known:
                raise QueryError(
                    "AX202",
                    f"the variable ${clause.variable} is declared twice",
                    place=place_at(self.text, clause.at),
                    advice="another name",
                )

    def _bind_let(self, clause: Let) -> None:
        match clause.value:
            case Constant() as constant:
                self.variables.constants[clause.variable] = constant
            case Path(start=Reference(name=name), steps=()) if name in self.variables.constants:
                self.variables.constants[clause.variable] = self.variables.constants[name]
            case Path() | Binary(operator="|") | Call(name="doc" | "document" | "collection"):
                trails = self.spreading.trails(clause.value)
                self.variables.paths[clause.variable] = tuple(map(at_document, trails))
            case value:
                raise self.unsupported(
                    "`let` with a computed value", value.at, expected="a path or a constant"
                )

    def _bind_for(self, clause: For) -> None:
        match clause.source:
            case Call(name="distinct-values", arguments=(inside,)):
                name = self.new_name(clause.variable)
                self._bind_value(name, self.trails_of_values(inside))
                self.variables.values[clause.variable] = name
                return
        trails = [at_document(trail) for trail in self.spreading.trails(clause.source)]
        match trails:
            case [Trail(start=Root(), steps=()) as trail]:
                self.variables.paths[clause.variable] = (trail,)
                return
            case [Trail(start=Reference(name=name), steps=(), at=at)]:
                self.variables.nodes[clause.variable] = self.node_variable(name, at)
                return
        _, ends = self._select(trails, clause.variable)
        node = ends[0].last
        if len(ends) > 1 or node is None:
            raise self.unsupported("a union in `for`", clause.source.at, advice="a view for each")
        self.variables.nodes[clause.variable] = NodeVariable(node, ends[0].spot)

    def _bind_value(self, name: str, trails: list[Trail]) -> None:
        """Let a variable of the pattern range over the values of what paths find."""
        bound = Comparison("=", Variable(name))
        trails = [at_document(trail) for trail in trails]
        found = self.exists(trails, Site(DOCUMENT, self.root), [bound])
        if found is None:
            empty = nothing()
            empty.take([bound])
            found = [empty]
        self.root.take(found)


# Queries inside constructors --------------------------------------------------------------------

_HOLE = "\0"  # no XML has it


@dataclass(frozen=True, slots=True)
class _Around:
    """The XML before and after a query, and the namespaces that it declares."""

    before: str = ""
    after: str = ""
    scope: tuple[tuple[str, str], ...] = ()


def _only_query(expression: Expression) -> Flwor | None:
    """The query with `for` that is all a constructor encloses."""
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
    """The variables of a query and of the queries that it returns at once."""
    for clause in query.clauses:
        if not isinstance(clause, Where):
            yield clause
    if isinstance(query.returned, Flwor):
        yield from _bindings_of(query.returned)


def _with_more(query: Flwor, rest: tuple[Expression, ...]) -> Flwor:
    inside = query.returned
    if isinstance(inside, Flwor):
        return replace(query, returned=_with_more(inside, rest))
    return replace(query, returned=Sequence((inside, *rest), inside.at))
