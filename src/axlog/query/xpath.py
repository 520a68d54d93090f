"""XPath to patterns: the rows of an expression are the nodes that it selects (DESIGN section 4).

    /site/people/person[profile/@income > 50000 and not(homepage)]/name
    //bidder/following-sibling::*[1][self::bidder]
    //person[@id = //closed_auction/buyer/@person]
    not(//order[client = "INRIA"])                          Boolean: it has a row or none

All axes but `namespace`, abbreviated or not; predicates with `and`, `or`, `not()`, comparisons (see
`xpath_comparisons.py`), `some` and `every`; unions; `[1]` for the nearest sibling. A relative path
starts at the document node. In a predicate `//c` is absolute, as the recommendation says, and
`.//c` is below.

Where patterns know less than XPath, nothing is guessed. The document node is never a row: a path
that could select it is refused. Not handled, and refused by name: positions, arithmetic, functions
of strings, `intersect` and `except`, names with wildcards in them, everything that gives no nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError, UnsupportedError
from axlog.query.normalize import check
from axlog.query.pattern import Axis, Kind, Output, Pattern, Wildcard
from axlog.query.syntax_tree import Call, Constant, Expression, Path
from axlog.query.syntax_tree import Sequence as Items
from axlog.query.xpath_branches import Choice, Conjunction, Growing, nothing
from axlog.query.xpath_conditions import Conditions, is_condition
from axlog.query.xpath_fast_path import plain
from axlog.query.xpath_parser import XPathParser
from axlog.query.xpath_paths import Site
from axlog.query.xpath_routes import Route, Trail
from axlog.query.xpath_steps import DOCUMENT, Spot

SELECTED = "node"
"""The name of the selected node in the pattern: its outputs are `node.id`, `node.val`, ..."""

_SHOWN = {"id": Kind.ID, "val": Kind.VAL, "cont": Kind.CONT, "label": Kind.LABEL, "time": Kind.TIME}


def parse_xpath(
    text: str,
    namespaces: Mapping[str, str] | None = None,
    show: Sequence[str] = ("id",),
    limits: Limits = DEFAULT_LIMITS,
) -> Pattern:
    """The pattern of an XPath expression; `show` says what a row has of its node.

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
    """The pattern of any expression, by the parser proper."""
    expression = XPathParser(text, dict(namespaces)).parse()
    pattern = Selecting(text).pattern(expression, outputs)
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


class Selecting(Conditions):
    """From a whole expression to its pattern."""

    def pattern(self, expression: Expression, outputs: tuple[Output, ...]) -> Pattern:
        root = Conjunction(True)
        if is_condition(expression):
            self.require(expression, root)
            return Pattern(root.freeze())
        self._check_selects(expression)
        trails = self.spreading.trails(expression)
        self.select(trails, root)
        return Pattern(root.freeze(), outputs=outputs)

    def require(self, expression: Expression, root: Conjunction) -> None:
        """Let a condition hold; a root that is still empty then says that it always does."""
        found = self.condition(expression, Site(DOCUMENT, root))
        if found is None:
            root.items = [nothing()]
        else:
            root.take(found)
        if not root.items:
            root.take([Growing(Axis.CHILD, Wildcard())])  # every document has a root element

    def select(self, trails: Sequence[Trail], root: Conjunction) -> None:
        """Hang the selected node on the root; of several routes, one alternative each."""
        routes = [(t, r) for t in trails for r in self.routes_of(t, Site(DOCUMENT))]
        for trail, route in routes:
            self.check_selected(route.spot, trail)
        found = [each for _, route in routes if (each := self._selection(route)) is not None]
        if not found:
            root.take([nothing(SELECTED)])
        elif len(found) == 1:
            root.take(found[0].items)
        else:
            root.take([Choice(found)])

    def _selection(self, route: Route) -> Conjunction | None:
        inside = Conjunction(True)
        built = self.build(route, inside)
        if built is None:
            return None
        assert built.last is not None, "only the document node is no node of a pattern"
        built.last.name = SELECTED
        inside.take(built.items)
        return inside

    def check_selected(self, spot: Spot, trail: Trail) -> None:
        """Refuse a path that may select the document node."""
        if not spot.is_document:
            return
        advice = "/* for the root element"
        if trail.steps:
            advice = "`parent::*` and `ancestor::*` for elements, `//node()` for all nodes"
        raise self.unsupported("selecting the document node", trail.at, advice=advice)

    def _check_selects(self, expression: Expression) -> None:
        """Refuse what gives values or a sequence in an order of its own, by name."""
        match expression:
            case Items():
                raise self.unsupported("a sequence", expression.at, advice="a union: `a | b`")
            case Constant():
                raise self._no_nodes("a constant", expression)
            case Call(name=name) if name not in ("doc", "document", "collection"):
                raise self._no_nodes(f"the value of {name}()", expression)
            case Path(steps=(*_, Call(name=name))):
                raise self._no_nodes(f"the value of {name}()", expression)

    def _no_nodes(self, what: str, expression: Expression) -> UnsupportedError:
        return self.unsupported(
            f"{what} as a query",
            expression.at,
            expected="a path, whose nodes are the rows, or a condition",
            advice='the path alone; show=("val",) gives the string values',
        )
