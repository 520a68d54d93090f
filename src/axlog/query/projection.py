"""Document projection: the nodes that an XQuery reads, as label paths. A static analysis.

A path is a sequence of steps down from the document. The analysis gives two sets of them:

- `touched`: the query depends on which nodes have such a path (their existence, number and order)
- `deep`: the query depends on all that is in and below them (it returns, copies or compares them)

An update that adds, removes or changes nothing on a touched path, and nothing in or below a deep
one, leaves the result as it is. The analysis follows the nodes that each expression may give, and
errs on the side of more: what it does not know gives None, and then every update counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from axlog.errors import AxlogError
from axlog.query.function_expansion import Function
from axlog.query.pattern import AnyNode, Name, PartialName, Test, Wildcard
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Clause,
    Constant,
    Constructor,
    Context,
    Counted,
    Enclosed,
    Expression,
    External,
    Flwor,
    For,
    ForAt,
    Group,
    GroupBy,
    Let,
    OrderBy,
    Path,
    Quantified,
    Reference,
    Root,
    Sequence,
    Step,
    Typed,
    Where,
)
from axlog.query.whole_xquery_parser import WholeXQueryParser

DownAxis: TypeAlias = Literal["child", "descendant", "attribute"]
LabelStep: TypeAlias = tuple[DownAxis, Test]
LabelPath: TypeAlias = tuple[LabelStep, ...]
Nodes: TypeAlias = frozenset[LabelPath]

_NONE: Nodes = frozenset()
_DOCUMENT: Nodes = frozenset({()})
_MOST_PATHS = 200
_MOST_STEPS = 40
_MOST_CALLS = 200
_PASSING = frozenset(
    """head tail reverse subsequence remove insert-before exactly-one zero-or-one one-or-more
    unordered innermost outermost if""".split()
)
"""Functions that give nodes of their arguments."""
_COUNTING = frozenset(
    """boolean count empty error exists false last local-name name namespace-uri node-name not
    position true""".split()
)
"""Functions that read no more than which nodes their arguments have."""
_READING = frozenset(
    """abs adjust-date-to-timezone adjust-dateTime-to-timezone adjust-time-to-timezone
    analyze-string avg ceiling codepoint-equal codepoints-to-string collation-key compare concat
    contains contains-token data dateTime day-from-date day-from-dateTime days-from-duration
    deep-equal default-collation distinct-values encode-for-uri ends-with escape-html-uri floor
    format-date format-dateTime format-integer format-number format-time hours-from-dateTime
    hours-from-duration hours-from-time index-of iri-to-uri json-to-xml lower-case matches max min
    minutes-from-dateTime minutes-from-duration minutes-from-time month-from-date
    month-from-dateTime months-from-duration normalize-space normalize-unicode number
    parse-ietf-date parse-json parse-xml parse-xml-fragment QName replace round round-half-to-even
    seconds-from-dateTime seconds-from-duration seconds-from-time serialize starts-with string
    string-join string-length string-to-codepoints substring substring-after substring-before sum
    timezone-from-date timezone-from-dateTime timezone-from-time tokenize translate upper-case
    xml-to-json year-from-date year-from-dateTime years-from-duration""".split()
)
"""Functions that read what is in and below the nodes of their arguments, and give no nodes of the
document.
"""
_OF_CONTEXT = frozenset(
    """data local-name name namespace-uri node-name normalize-space number string
    string-length""".split()
)
_VALUES = frozenset("+ - * div idiv mod || to = != < <= > >= eq ne lt le gt ge".split())
_SETS = frozenset("| intersect except".split())
_REACHES_DOWN = frozenset("child descendant descendant-or-self attribute self".split())


@dataclass(frozen=True, slots=True)
class Projection:
    """The nodes that a query reads."""

    touched: Nodes
    deep: Nodes

    def lines(self) -> list[str]:
        """The paths as text; `...` marks those that are read with all below them."""
        shown = dict.fromkeys(self.touched, "") | dict.fromkeys(self.deep, " ...")
        return sorted(f"{_text(path)}{more}" for path, more in shown.items())


class _Unknown(Exception):
    """The query has a part that the analysis does not know."""


def projection_of(
    text: str, namespaces: Mapping[str, str], language: str = "xquery"
) -> Projection | None:
    """What a query reads; None if that is not known.

    >>> print(*projection_of("for $o in //order where $o/total > 5 return $o/@id", {}).lines())
    //order //order/@id ... //order/total ...
    """
    parser = WholeXQueryParser(text, dict(namespaces), is_xpath=language == "xpath")
    try:
        expression = parser.parse_query()
        analysis = _Analysis(parser.functions)
        analysis.deep |= analysis.nodes(expression, {}, _DOCUMENT)
    except (AxlogError, _Unknown, RecursionError):
        return None
    return Projection(frozenset(analysis.touched), frozenset(analysis.deep))


class _Analysis:
    def __init__(self, functions: Mapping[tuple[str, int], Function]) -> None:
        self.touched: set[LabelPath] = set()
        self.deep: set[LabelPath] = set()
        self._functions = functions
        self._inside: list[tuple[str, int]] = []
        self._calls = 0

    def touch(self, nodes: Nodes) -> Nodes:
        self.touched |= nodes
        if len(nodes) > _MOST_PATHS or len(self.touched) > _MOST_PATHS:
            raise _Unknown
        return nodes

    def read(self, nodes: Nodes) -> Nodes:
        self.touch(nodes)
        self.deep |= nodes
        return nodes

    def nodes(
        self, value: Expression | Context | Reference | Root, known: Mapping[str, Nodes],
        context: Nodes | None,
    ) -> Nodes:  # fmt: skip
        """The nodes of the document that an expression may give; notes what it reads."""
        match value:
            case Constant():
                return _NONE
            case Root():
                return _DOCUMENT
            case Context():
                if context is None:
                    raise _Unknown
                return context
            case Reference(name=name):
                return known.get(name, _NONE)
            case Path():
                return self._path(value, known, context)
            case Sequence(items=items):
                return self._all(items, known, context)
            case Binary(operator=operator, left=left, right=right):
                both = self._all((left, right), known, context)
                if operator in _SETS:
                    return self.touch(both)
                (self.read if operator in _VALUES else self.touch)(both)
                return _NONE
            case Typed():
                return self._typed(value, known, context)
            case Quantified(variable=variable, source=source, condition=condition):
                found = self.touch(self.nodes(source, known, context))
                self.touch(self.nodes(condition, {**known, variable: found}, context))
                return _NONE
            case Flwor(clauses=clauses, returned=returned):
                return self.nodes(returned, self._clauses(clauses, known, context), context)
            case Constructor():
                self._constructed(value, known, context)
                return _NONE
            case Call():
                return self._call(value, known, context)
        raise _Unknown

    def _typed(self, value: Typed, known: Mapping[str, Nodes], context: Nodes | None) -> Nodes:
        found = self.touch(self.nodes(value.value, known, context))
        if value.operator == "instance of":
            return _NONE
        if value.operator == "treat as" or not value.type.kind.startswith("xs:"):
            return found
        self.read(found)
        return _NONE

    def _all(
        self, values: Iterable[Expression], known: Mapping[str, Nodes], context: Nodes | None
    ) -> Nodes:
        return frozenset().union(*(self.nodes(each, known, context) for each in values))

    # Clauses and constructors ---------------------------------------------------------------------

    def _clauses(
        self, clauses: tuple[Clause, ...], known: Mapping[str, Nodes], context: Nodes | None
    ) -> Mapping[str, Nodes]:
        known = dict(known)
        for clause in clauses:
            match clause:
                case External():
                    raise _Unknown
                case For(variable=variable, source=source):
                    known[variable] = self.touch(self.nodes(source, known, context))
                    if isinstance(clause, ForAt):
                        known[clause.position] = _NONE
                case Let(variable=variable, value=value):
                    known[variable] = self.touch(self.nodes(value, known, context))
                case Where(condition=condition):
                    self.touch(self.nodes(condition, known, context))
                case GroupBy(keys=keys):
                    for name, given in keys:
                        found = known.get(name, _NONE)
                        self.read(found if given is None else self.nodes(given, known, context))
                        known[name] = _NONE
                case OrderBy(keys=order):
                    for key in order:
                        self.read(self.nodes(key.value, known, context))
                case Counted(variable=variable):
                    known[variable] = _NONE
                case _:
                    raise _Unknown
        return known

    def _constructed(
        self, made: Constructor, known: Mapping[str, Nodes], context: Nodes | None
    ) -> None:
        pieces = [*made.content, *(piece for _, pieces in made.attributes for piece in pieces)]
        for piece in pieces:
            if isinstance(piece, Enclosed):
                self.read(self.nodes(piece.inside, known, context))
            elif isinstance(piece, Constructor):
                self._constructed(piece, known, context)

    # Calls ----------------------------------------------------------------------------------------

    def _call(self, call: Call, known: Mapping[str, Nodes], context: Nodes | None) -> Nodes:
        name, arguments = call.name, call.arguments
        declared = self._functions.get((name, len(arguments)))
        if declared is not None:
            return self._declared(declared, arguments, known, context)
        name = name.removeprefix("fn:")
        if not arguments and name in _OF_CONTEXT:
            if context is None:
                raise _Unknown
            (self.touch if name in _COUNTING else self.read)(context)
            return _NONE
        found = self._all(arguments, known, context)
        if name in _PASSING or name == "choice":
            return self.touch(found)
        if name in _COUNTING:
            self.touch(found)
            return _NONE
        if name in ("switch", "map"):  # what they compare or have as keys is not told apart
            return self.read(found)
        is_known = name in _READING or name.startswith(("new-", "unary", "xs:", "math:"))
        if is_known:
            self.read(found)
            return _NONE
        if name == "root" and arguments:
            self.touch(found)
            return _DOCUMENT
        raise _Unknown

    def _declared(
        self, function: Function, arguments: tuple[Expression, ...], known: Mapping[str, Nodes],
        context: Nodes | None,
    ) -> Nodes:  # fmt: skip
        """The call of a function of the prolog: its body with the nodes of the arguments."""
        self._calls += 1
        key = (function.name, len(arguments))
        if key in self._inside or self._calls > _MOST_CALLS:
            raise _Unknown
        given: dict[str, Nodes] = {}
        for (name, type_), argument in zip(function.parameters, arguments, strict=True):
            found = self.touch(self.nodes(argument, known, context))
            is_value = type_ is not None and type_.kind.startswith("xs:")
            given[name] = _NONE if is_value else found
            if is_value:
                self.read(found)
        self._inside.append(key)
        found = self.nodes(function.body, given, None)
        self._inside.pop()
        is_value = function.result is not None and function.result.kind.startswith("xs:")
        return self.read(found) if is_value else self.touch(found)

    # Paths ----------------------------------------------------------------------------------------

    def _path(self, path: Path, known: Mapping[str, Nodes], context: Nodes | None) -> Nodes:
        found = self.nodes(path.start, known, context)
        steps = list(path.steps)
        while steps:
            step = steps.pop(0)
            if not isinstance(step, Step):
                self.touch(found)
                inside = step.inside if isinstance(step, Group) else step
                found = self.touch(self.nodes(inside, known, found))
                continue
            following = steps[0] if steps else None
            if step.is_slashes and isinstance(following, Step):
                steps.pop(0)
                found = self._below(found, following)
                found = self._filtered(found, following, known)
                continue
            if step.axis not in _REACHES_DOWN:
                self.touch(found)
            found = self._stepped(found, step)
            found = self._filtered(found, step, known)
        return found

    def _filtered(self, found: Nodes, step: Step, known: Mapping[str, Nodes]) -> Nodes:
        for predicate in step.predicates:
            self.touch(found)
            self.touch(self.nodes(predicate.condition, known, found))
        return found

    def _below(self, found: Nodes, step: Step) -> Nodes:
        """`//step`."""
        if step.axis == "child":
            return self._extended(found, "descendant", step.test)
        if step.axis not in _REACHES_DOWN:
            raise _Unknown
        inside = found | self._extended(found, "descendant", AnyNode())
        return self._stepped(inside, step)

    def _stepped(self, found: Nodes, step: Step) -> Nodes:
        """The nodes that one step may reach."""
        test = step.test
        everywhere: Nodes = frozenset({(("descendant", test),)})
        match step.axis:
            case "child" | "descendant" | "attribute" as axis:
                return self._extended(found, axis, test)
            case "self":
                return frozenset(path for path in found if _may_be(path, test))
            case "descendant-or-self":
                kept = frozenset(path for path in found if _may_be(path, test))
                return kept | self._extended(found, "descendant", test)
            case "parent":
                above: set[LabelPath] = set()
                for path in found:
                    if path:
                        above.add(path[:-1])
                    if path and path[-1][0] == "descendant":
                        above.add((*path[:-1], ("descendant", test)))
                return frozenset(path for path in above if _may_be(path, test))
            case "following-sibling" | "preceding-sibling":
                return frozenset(
                    (*path[:-1], (path[-1][0], test))
                    for path in found
                    if path and path[-1][0] != "attribute"
                )
            case "ancestor" | "following" | "preceding" | "ancestor-or-self" as axis:
                more = found if axis == "ancestor-or-self" else _NONE
                if axis.startswith("ancestor"):
                    more |= _DOCUMENT
                return frozenset(path for path in more if _may_be(path, test)) | everywhere
        raise _Unknown

    @staticmethod
    def _extended(found: Nodes, axis: DownAxis, test: Test) -> Nodes:
        made: set[LabelPath] = set()
        for path in found:
            if path and path[-1][0] == "attribute":
                continue  # an attribute has nothing below it
            if len(path) >= _MOST_STEPS:
                raise _Unknown
            made.add((*path, (axis, test)))
        return frozenset(made)


def _may_be(path: LabelPath, test: Test) -> bool:
    """Whether a node with a path may pass a test of the self axis."""
    if isinstance(test, AnyNode):
        return True
    if not path:
        return False
    last = path[-1][1]
    return not (isinstance(last, Name) and isinstance(test, Name) and last != test)


def _text(path: LabelPath) -> str:
    parts = []
    for axis, test in path:
        match test:
            case Name(label=label):
                shown = label
            case PartialName(namespace=namespace, local=local):
                shown = f"*:{local}" if namespace is None else f"{{{namespace}}}{local or '*'}"
            case Wildcard():
                shown = "*"
            case AnyNode():
                shown = "node()"
            case _:
                shown = f"{type(test).__name__.removeprefix('Any').lower()}()"
        parts.append(f"{'//' if axis == 'descendant' else '/'}{'@' * (axis == 'attribute')}{shown}")
    return "".join(parts) or "/"
