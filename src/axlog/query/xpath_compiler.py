"""The compiler of XPath: an expression to the pattern whose rows are the nodes that it selects.

    /site/people/person[profile/@income > 50000 and not(homepage)]/name
    //bidder/following-sibling::*[1][self::bidder]
    //person[@id = //closed_auction/buyer/@person]
    not(//order[client = "INRIA"])                          Boolean: it has one row or none

The path of an expression: `xpath_parser.py` gives the syntax tree; `XPathCompiler.pattern` selects
nodes or requires a condition; `xpath_routes.py` and `xpath_steps.py` turn paths into moves along
axes; `xpath_paths.py` turns the moves into branches; `xpath_comparisons.py` compiles comparisons.
`xpath_fast_path.py` handles simple paths without any of this.

Supported: all axes but `namespace`; predicates with `and`, `or`, `not()`, comparisons, `some` and
`every`; unions; `[1]` for the nearest sibling. A relative path starts at the document node. In a
predicate `//c` is absolute, as in the recommendation, and `.//c` starts at the predicate's node.

An expression is true by its effective Boolean value: a path is true if it finds a node.
`some $x in p satisfies c` is `p[c]` with a name for the node, and `every` says that no node fails
the condition. All conditions of an `or` or a `not` must be on one node (besides the document), and
they are attached there.

Where patterns express less than XPath, nothing is guessed. The document node is never a row, so a
path that could select it is refused. Also refused by name: positions, arithmetic, string functions,
`intersect` and `except`, names with wildcards, and all expressions that give values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError, UnsupportedError
from axlog.query.normalize import check
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Comparison,
    Kind,
    Output,
    Pattern,
    Variable,
    Wildcard,
)
from axlog.query.pattern_fragment import refuse_beyond
from axlog.query.plan_rewrites import has_context, in_context
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Constant,
    Expression,
    Path,
    Predicate,
    Quantified,
    Reference,
    Step,
    operands,
    references,
)
from axlog.query.syntax_tree import Sequence as Items
from axlog.query.value_operands import with_value
from axlog.query.xpath_branches import (
    Anchor,
    Condition,
    Conditions,
    ConjunctionBuilder,
    NodeBuilder,
    OrBuilder,
    nothing,
)
from axlog.query.xpath_comparisons import ComparisonCompiler
from axlog.query.xpath_fast_path import plain
from axlog.query.xpath_parser import XPathParser
from axlog.query.xpath_paths import Location, PathCompiler, any_of, none_of
from axlog.query.xpath_routes import Route, Trail
from axlog.query.xpath_steps import DOCUMENT

SELECTED = "node"
"""The name of the selected node in the pattern: its outputs are `node.id`, `node.val`, ..."""

BOOLEAN_CALLS = frozenset("boolean empty exists false not true".split())
_SHOWN = {"id": Kind.ID, "val": Kind.VAL, "cont": Kind.CONT, "label": Kind.LABEL, "time": Kind.TIME}


def parse_xpath(
    text: str,
    namespaces: Mapping[str, str] | None = None,
    show: Sequence[str] = ("id",),
    limits: Limits = DEFAULT_LIMITS,
) -> Pattern:
    """The pattern of an XPath expression; `show` lists the columns of its node in a row.

    >>> print(parse_xpath("//a[b = 5 or not(c)]/@d"))
    match //a[b = 5 as xs:double or not(c)]/@d#node return node.id
    >>> print(parse_xpath("//a[//c = b]", show=("id", "val")))
    match //c = $v1, //a#node[b = $v1] return node.id, node.val
    >>> parse_xpath("//a[2]")
    Traceback (most recent call last):
    ...
    axlog.errors.UnsupportedError: AX211: this position is not supported (line 1, column 5)
        //a[2]
            ^
    expected: `[1]` on following-sibling::* or preceding-sibling::*
    try: a condition that the node itself meets, such as [@id = ...]
    """
    return _parse(text, tuple(sorted((namespaces or {}).items())), tuple(show), limits)


@lru_cache(maxsize=512)
def _parse(
    text: str, namespaces: tuple[tuple[str, str], ...], show: tuple[str, ...], limits: Limits
) -> Pattern:
    outputs = _outputs(show)
    pattern = plain(text, outputs, SELECTED)
    if pattern is None:
        pattern = parse_any(text, namespaces, outputs, limits)
    return pattern


def parse_any(
    text: str,
    namespaces: tuple[tuple[str, str], ...],
    outputs: tuple[Output, ...],
    limits: Limits = DEFAULT_LIMITS,
) -> Pattern:
    """The pattern of any expression, without the fast path."""
    expression = XPathParser(text, dict(namespaces)).parse()
    refuse_beyond(expression, text)
    pattern = XPathCompiler(text).pattern(expression, outputs)
    check(pattern, limits=limits)
    return pattern


def _outputs(show: tuple[str, ...]) -> tuple[Output, ...]:
    unknown = [kind for kind in show if kind not in _SHOWN]
    if unknown or not show:
        raise QueryError(
            "AX203",
            f"a node has no {unknown[0]}" if unknown else "a row shows nothing",
            expected="show= with some of " + ", ".join(_SHOWN),
        )
    return tuple(Output(_SHOWN[kind], SELECTED) for kind in show)


def is_condition(expression: Expression) -> bool:
    """Whether the value of an expression is a Boolean."""
    match expression:
        case Binary(operator=operator):
            return operator != "|"
        case Call(name=name):
            return name in BOOLEAN_CALLS
    return isinstance(expression, Quantified)


class XPathCompiler:
    """Compiles the expressions of one query text; `paths` and `comparisons` are its parts."""

    def __init__(self, text: str) -> None:
        self.paths = PathCompiler(text, self.condition)
        self.comparisons = ComparisonCompiler(self.paths)

    # the whole expression

    def pattern(self, expression: Expression, outputs: tuple[Output, ...]) -> Pattern:
        """The pattern of a whole expression; that of a condition is Boolean."""
        root = ConjunctionBuilder(True)
        if is_condition(expression):
            self._require(expression, root)
            return Pattern(root.build())
        self._check_selects(expression)
        self._select(self.paths.expander.trails(expression), root)
        return Pattern(root.build(), outputs=outputs)

    def _require(self, expression: Expression, root: ConjunctionBuilder) -> None:
        """Require a condition; one that always holds becomes a condition on the root element."""
        found = self.condition(expression, Location(DOCUMENT, root))
        if found is None:
            root.items = [nothing()]
        else:
            root.add(found)
        if not root.items:
            root.add([NodeBuilder(Axis.CHILD, Wildcard())])  # every document has a root element

    def _check_selects(self, expression: Expression) -> None:
        """Refuse an expression that gives values, or a sequence in its own order."""
        match expression:
            case Items():
                advice = "a union: `a | b`"
                raise self.paths.unsupported("a sequence", expression.at, advice=advice)
            case Constant():
                raise self._no_nodes("a constant", expression)
            case Call(name=name) if name not in ("doc", "document", "collection"):
                raise self._no_nodes(f"the value of {name}()", expression)
            case Path(steps=(*_, Call(name=name))):
                raise self._no_nodes(f"the value of {name}()", expression)

    def _no_nodes(self, construct: str, expression: Expression) -> UnsupportedError:
        return self.paths.unsupported(
            f"{construct} as a query",
            expression.at,
            expected="a path, whose nodes are the rows, or a condition",
            advice='the path alone; show=("val",) gives the string values',
        )

    def _select(self, trails: Sequence[Trail], root: ConjunctionBuilder) -> None:
        """Attach the selected node to the root; each of several routes is an alternative."""
        routes = [(t, r) for t in trails for r in self.paths.routes_of(t, Location(DOCUMENT))]
        for trail, route in routes:
            self._check_selected(route, trail)
        found = [each for _, route in routes if (each := self._selection(route)) is not None]
        if not found:
            root.add([nothing(SELECTED)])
        elif len(found) == 1:
            root.add(found[0].items)
        else:
            root.add([OrBuilder(found)])

    def _check_selected(self, route: Route, trail: Trail) -> None:
        """Refuse a path that may select the document node."""
        if not route.spot.is_document:
            return
        advice = "/* for the root element"
        if trail.steps:
            advice = "`parent::*` and `ancestor::*` for elements, `//node()` for all nodes"
        raise self.paths.unsupported("selecting the document node", trail.at, advice=advice)

    def _selection(self, route: Route) -> ConjunctionBuilder | None:
        inside = ConjunctionBuilder(True)
        built = self.paths.build(route, inside)
        if built is None:
            return None
        assert built.last is not None, "every node but the document node is a node of the pattern"
        built.last.name = SELECTED
        inside.add(built.items)
        return inside

    # conditions

    def condition(self, expression: Expression, location: Location) -> Conditions:
        """The conditions under which the effective Boolean value of an expression is true."""
        match expression:
            case Binary(operator="and", left=left, right=right):
                first, second = self.condition(left, location), self.condition(right, location)
                return None if first is None or second is None else first + second
            case Binary(operator="or") | Call(name="not" | "empty") | Quantified(is_every=True):
                return self._connective(expression, location)
            case Quantified():
                return self._some(expression, location)
            case Binary(operator="|") | Path() | Items():
                return self._nodes(expression, location)
            case Binary():
                return self.comparisons.compare(expression, location)
            case Constant(value=value):
                return [] if value else None
            case Call():
                return self._call(expression, location)
        raise self.paths.unsupported("this expression as a condition", expression.at)

    def _nodes(self, expression: Expression, location: Location) -> Conditions:
        constants = self.paths.variables.constants
        match expression:
            case Path(start=Reference(name=name), steps=()) if name in constants:
                return self.condition(constants[name], location)
            case Path(steps=(*_, Call() as last)):
                construct = f"the function {last.name}() as a condition"
                raise self.paths.unsupported(construct, last.at)
        return self._exists(expression, location)

    def _exists(self, expression: Expression, location: Location) -> Conditions:
        return self.paths.exists(self.paths.expander.trails(expression), location)

    def _call(self, call: Call, location: Location) -> Conditions:
        match call.name:
            case "true" | "false":
                self.paths.arguments(call, 0)
                return [] if call.name == "true" else None
            case "boolean":
                (inside,) = self.paths.arguments(call, 1)
                return self.condition(inside, location)
            case "exists" | "count":
                (inside,) = self.paths.arguments(call, 1)
                return self._exists(inside, location)
            case "string":
                not_empty = Binary("!=", call, Constant("", call.at), call.at)
                return self.comparisons.compare(not_empty, location)
            case "doc" | "document" | "collection":
                return self._exists(call, location)
        raise self.paths.unsupported(f"{call.name}() as a condition", call.at)

    def _some(self, quantified: Quantified, location: Location) -> Conditions:
        if has_context(quantified.condition):  # in a predicate it would be another node
            construct = "the context item inside `some` or `every`"
            raise self.paths.unsupported(construct, quantified.at)
        predicate = Predicate(quantified.condition, quantified.variable)
        step = Step("self", AnyNode(), (predicate,), quantified.at, is_filter=True)
        trails = self.paths.expander.trails(quantified.source)
        return self.paths.exists([replace(t, steps=(*t.steps, step)) for t in trails], location)

    # connectives

    def _connective(self, expression: Expression, location: Location) -> Conditions:
        """An `or`, `not` or `every`, attached to the node that its conditions are on."""
        if location.lift_to is None:
            return self._isolated(expression, location)
        starts = self._starts(expression, location)
        names = starts - {"/", "."}
        by_value = self._by_value(expression, starts, location)
        if by_value is not None:
            return self._at_document(*by_value, location)
        if "." in starts:
            return self._isolated(expression, location.isolated)
        anchor: Anchor = location.lift_to
        start = Location(DOCUMENT)
        if names:
            variable = self.paths.node_variable(min(names), expression.at)
            anchor, start = variable.node, Location(variable.spot, None, min(names))
        found = self._isolated(expression, start)
        if found is None:
            return None
        anchor.add(found)
        return []

    def _by_value(
        self, expression: Expression, starts: set[str], location: Location
    ) -> tuple[Expression, str] | None:
        """A connective about the document and one node, with the node's value for the node.

        Returns the start of the paths from that node as well; None if there is no such node, or
        if the connective needs more of it than its value.
        """
        variables = self.paths.variables
        used = references(expression) - {location.variable}
        nodes = (starts | (used & variables.nodes.keys())) - {"/"}
        is_hidden = any(
            isinstance(trail.start, Reference)
            for name in used & variables.paths.keys()
            for trail in variables.paths[name]
        )
        if "/" not in starts or len(nodes) != 1 or is_hidden:
            return None
        (start,) = nodes
        node = start
        if start == ".":
            if location.spot.is_document:
                return None
            node = location.variable or start
            expression = in_context(expression, node)
        found = with_value(expression, node, _value_of(start))
        return None if found is None else (found, start)

    def _at_document(self, expression: Expression, start: str, location: Location) -> Conditions:
        """A connective about a node's value, attached to the document; binds the value.

        Every use of a variable of `for` has the same value, so that is bound once.
        """
        values, value = self.paths.variables.values, _value_of(start)
        here: list[Condition] = []
        if start == "." or value not in values:
            values[value] = self.paths.names.new_variable()
            bound = Comparison("=", Variable(values[value]))
            if start == ".":
                here.append(bound)
            else:
                self.paths.node_variable(start, expression.at).node.add([bound])
        found = self._isolated(expression, Location(DOCUMENT))
        if found is None:
            return None
        assert location.lift_to is not None
        location.lift_to.add(found)
        return here

    def _isolated(self, expression: Expression, location: Location) -> Conditions:
        """A connective with all its conditions attached at this location."""
        match expression:
            case Binary():
                sides = [self.condition(side, location) for side in operands(expression, "or")]
                return any_of([side for side in sides if side is not None], location)
            case Quantified():
                other = replace(expression, condition=_opposite(expression.condition))
                return none_of(self._some(other, location), location)
            case Call(name="empty"):
                (inside,) = self.paths.arguments(expression, 1)
                return none_of(self._exists(inside, location), location)
            case Call():
                (inside,) = self.paths.arguments(expression, 1)
                return none_of(self.condition(inside, location), location)
        raise self.paths.unsupported("this expression as a condition", expression.at)

    def _starts(self, expression: Expression, location: Location) -> set[str]:
        """The starts of a connective's paths: `.` the location, `/` the document, or variables."""
        variables = self.paths.variables
        match expression:
            case Path(start=Reference(name=name), steps=()) if (
                name in variables.constants or name in variables.values
            ):
                return set()
            case Binary(operator="|") | Path():
                trails = self.paths.expander.value_trails(expression)
                return {self.paths.start_of(trail, location) for trail in trails}
            case Binary(left=left, right=right):
                return self._starts(left, location) | self._starts(right, location)
            case Items(items=items):
                return set[str]().union(*(self._starts(item, location) for item in items))
            case Call(name="doc" | "document" | "collection"):
                return {"/"}
            case Call(name="string" | "number", arguments=()):
                return {"."}
            case Call(arguments=arguments):
                return set[str]().union(*(self._starts(each, location) for each in arguments))
            case Quantified(source=source, condition=condition, variable=variable):
                inner = self._starts(condition, location) - {variable}
                return self._starts(source, location) | inner
        return set()


def _opposite(condition: Expression) -> Expression:
    match condition:
        case Call(name="not", arguments=(inside,)):
            return Call("boolean", (inside,), condition.at)
        case Call(name="empty", arguments=(inside,)):
            return Call("exists", (inside,), condition.at)
    return Call("not", (condition,), condition.at)


def _value_of(node: str) -> str:
    """The name of the variable for a node's value; no query can write it."""
    return f"value of {node}"
