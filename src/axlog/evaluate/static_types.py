"""The types that expressions of XPath and XQuery can have, from the text alone.

Some operations fail for all values of the types that their operands can have (`t eq 150`, `name >>
3`, `upper-case(a, b)`). A view with such an operation is refused when it is watched. To find out,
the operation itself is applied to one sample of each type: a type error (XPTY0004) depends on types
alone. Types are not checked in the branches of `if`, because their condition may guard them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import product
from typing import Any, NoReturn, TypeAlias

from axlog.document.tree import Tree
from axlog.errors import AxlogError, QueryError, ValueProblem
from axlog.evaluate.arithmetic import ARITHMETIC
from axlog.evaluate.atoms import TYPES, Named, Untyped
from axlog.evaluate.casts import CASTS, cast
from axlog.evaluate.comparisons import GENERAL, VALUE, general_comparison, value_comparison
from axlog.evaluate.functions import FUNCTIONS, number_range
from axlog.evaluate.items import Node
from axlog.evaluate.signatures import Function, Parameter
from axlog.query.dates import Date, DateTime, DayTimeDuration, Duration, Time, YearMonthDuration
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    AnyStep,
    Binary,
    Call,
    Clause,
    Constant,
    Constructor,
    Context,
    Counted,
    Enclosed,
    Expression,
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
    Typed,
    Where,
)
from axlog.query.syntax_tree import Sequence as Listed

Kinds: TypeAlias = frozenset[type] | None
"""The classes of the items that an expression can have; None if they are not known."""

_MOMENT = "2000-01-01T00:00:00Z"
_SAMPLES: dict[type, Any] = {
    Untyped: Untyped("1"),
    str: "1",
    int: 1,
    Decimal: Decimal(1),
    float: 1.0,
    bool: True,
    Named: Named("a"),
    DateTime: cast(_MOMENT, "xs:dateTime"),
    Date: cast(_MOMENT[:10], "xs:date"),
    Time: cast(_MOMENT[11:], "xs:time"),
    Duration: cast("P1M", "xs:duration"),
    DayTimeDuration: cast("P1D", "xs:dayTimeDuration"),
    YearMonthDuration: cast("P1M", "xs:yearMonthDuration"),
}
_NODES: Kinds = frozenset({Node})
_OF_NODE = frozenset({Untyped, str})
"""The types of the values of nodes: comments and instructions have strings."""
_TRUTH: Kinds = frozenset({bool})
_NUMBER: Kinds = frozenset({int})
_TEXT: Kinds = frozenset({str})
_CALLS: dict[str, Kinds] = {
    "position": _NUMBER,
    "last": _NUMBER,
    "count": _NUMBER,
    "id": _TEXT,
    "name": _TEXT,
    "local-name": _TEXT,
    "namespace-uri": _TEXT,
    "string": _TEXT,
    "string-join": _TEXT,
    "deep-equal": _TRUTH,
    "doc": _NODES,
    "document": _NODES,
    "collection": _NODES,
    "root": _NODES,
}
"""The results of functions that read nodes or the context."""
_RESULTS: dict[str, Kinds] = {
    **_CALLS,
    **{name: frozenset({kind}) for kind, name in TYPES.items() if name in CASTS},
    "xs:int": _NUMBER,
}
_NUMBERS = frozenset({int, Decimal, float})
_MOST_SAMPLES = 64


def refuse_type_errors(
    expression: Expression, text: str, variables: Mapping[str, Kinds] | None = None
) -> None:
    """Raise the error of an operation that has no value for any operands of their types.

    Parameters:
        expression: The expression, with all its parts.
        text: The text of the query, for the places of errors.
        variables: The classes of the items of variables; those of other variables are not known.

    >>> from axlog.query.xpath_parser import XPathParser
    >>> refuse_type_errors(XPathParser("/a/b eq 1", {}).parse(), "/a/b eq 1")
    Traceback (most recent call last):
    axlog.errors.ValueProblem: XPTY0004: ...
    """
    _Checker(text).kinds(expression, variables or {})


class _Checker:
    """Finds the kinds of an expression and of all its parts."""

    def __init__(self, text: str) -> None:
        self.text = text

    def kinds(self, given: object, scope: Mapping[str, Kinds]) -> Kinds:
        """The kinds of an expression; `scope` has those of variables, and `.` is the context."""
        match given:
            case Constant():
                return frozenset({type(given.typed)})
            case Reference(name=name):
                return scope.get(name)
            case Root():
                return _NODES
            case Context():
                return scope.get(".")
            case Path():
                return self._path(given, scope)
            case Listed(items=items):
                return _union(self.kinds(each, scope) for each in items)
            case Binary():
                return self._binary(given, scope)
            case Call():
                return self._call(given, scope)
            case Quantified(variable=variable, source=source, condition=condition):
                self.kinds(condition, {**scope, variable: self.kinds(source, scope)})
                return _TRUTH
            case Typed(operator=operator, value=value):
                self.kinds(value, scope)
                return _TRUTH if operator in ("instance of", "castable as") else None
            case Flwor(clauses=clauses, returned=returned):
                for clause in clauses:
                    scope = self._clause(clause, scope)
                return self.kinds(returned, scope)
            case Constructor():
                self._constructor(given, scope)
                return _NODES
        return None

    def _refused(self, at: int, message: str, advice: str | None = None) -> NoReturn:
        raise ValueProblem("XPTY0004", message, place=place_at(self.text, at), advice=advice)

    # Paths ----------------------------------------------------------------------------------------

    def _path(self, path: Path, scope: Mapping[str, Kinds]) -> Kinds:
        found = self.kinds(path.start, scope)
        for step in path.steps:
            found = self._step(step, found, scope)
        return found

    def _step(self, step: AnyStep, context: Kinds, scope: Mapping[str, Kinds]) -> Kinds:
        if isinstance(step, Group):
            return self.kinds(step.inside, {**scope, ".": context})
        if isinstance(step, Call):
            return self.kinds(step, {**scope, ".": context})
        found = context if step.is_filter else _NODES
        if not step.is_filter and context and Node not in context:
            self._refused(step.at, f"a step begins at a node, not at {_names(context)}")
        for predicate in step.predicates:
            inside = {**scope, ".": found}
            if predicate.variable is not None:
                inside[predicate.variable] = found
            self.kinds(predicate.condition, inside)
        return found

    # Operators ------------------------------------------------------------------------------------

    def _binary(self, given: Binary, scope: Mapping[str, Kinds]) -> Kinds:
        operator, at = given.operator, given.at
        left, right = self.kinds(given.left, scope), self.kinds(given.right, scope)
        if operator in ("and", "or"):
            return _TRUTH
        if operator in ("|", "intersect", "except", "is", "<<", ">>"):
            for side in (left, right):
                if side and Node not in side:
                    self._refused(at, f"`{operator}` is for nodes, not for {_names(side)}")
            return _TRUTH if operator in ("is", "<<", ">>") else _NODES
        if operator == "||":
            return _TEXT
        one, other = _atomized(left), _atomized(right)
        if not one or not other:
            return _TRUTH if operator in _COMPARISONS else None
        found = _results(_operation(operator), (one, other))
        if found == frozenset():
            message = f"`{operator}` is not defined for {_names(one)} and {_names(other)}"
            self._refused(at, message, _advice(operator, one, other))
        return found

    # Calls ----------------------------------------------------------------------------------------

    def _call(self, given: Call, scope: Mapping[str, Kinds]) -> Kinds:
        name, arguments = given.name, given.arguments
        if name == "if":
            self.kinds(arguments[0], scope)
            return _union(self._guarded(each, scope) for each in arguments[1:])
        function = FUNCTIONS.get(name)
        if function is not None and not function.least <= len(arguments) <= function.most:
            takes_context = function.takes_context and not arguments
            if not takes_context:
                self._refuse_number(given, function)
        kinds = [self.kinds(each, scope) for each in arguments]
        if function is None or name == "error":
            return _CALLS.get(name)
        if not arguments and function.takes_context:
            kinds = [scope.get(".")]
        for number, each in enumerate(kinds):
            self._argument(given, function.parameter(number), each)
        if name in _RESULTS or function.takes_tree:
            return _RESULTS.get(name)
        return _result_of(function, kinds)

    def _refuse_number(self, given: Call, function: Function) -> NoReturn:
        least, most = function.least, function.most
        expected = f"{least}" if least == most else f"{least} to {most}"
        number = len(given.arguments)
        raise QueryError(
            "XPST0017",
            f"{given.name}() has {number} argument{'' if number == 1 else 's'}",
            place=place_at(self.text, given.at),
            expected=f"at least {least}" if function.is_open else expected,
        )

    def _guarded(self, branch: Expression, scope: Mapping[str, Kinds]) -> Kinds:
        try:
            return self.kinds(branch, scope)
        except ValueProblem:
            return None

    def _argument(self, given: Call, parameter: Parameter, kinds: Kinds) -> None:
        if not kinds:
            return
        if not parameter.is_atomic:
            if parameter.type == "node" and Node not in kinds:
                self._refused(given.at, f"{given.name}() is for nodes, not for {_names(kinds)}")
            return
        if not any(_is_accepted(parameter, kind) for kind in _atomized(kinds) or ()):
            wanted = "a number" if parameter.type == "numeric" else f"xs:{parameter.type}"
            name = "-" if given.name == "unary-" else f"{given.name}()"
            self._refused(given.at, f"{name} takes {wanted}, and not {_names(kinds)}")

    # Queries --------------------------------------------------------------------------------------

    def _clause(self, clause: Clause, scope: Mapping[str, Kinds]) -> Mapping[str, Kinds]:
        match clause:
            case ForAt(variable=variable, source=source, position=position):
                return {**scope, variable: self.kinds(source, scope), position: _NUMBER}
            case For(variable=variable, source=source):
                return {**scope, variable: self.kinds(source, scope)}
            case Let(variable=variable, value=value):
                return {**scope, variable: self.kinds(value, scope)}
            case Counted(variable=variable):
                return {**scope, variable: _NUMBER}
            case Where(condition=condition):
                self.kinds(condition, scope)
            case OrderBy(keys=keys):
                for key in keys:
                    self.kinds(key.value, scope)
            case GroupBy(keys=grouped):
                inner = dict(scope)
                for name, key_value in grouped:
                    found = inner.get(name) if key_value is None else self.kinds(key_value, inner)
                    inner[name] = _grouped(found)
                return inner
        return scope

    def _constructor(self, given: Constructor, scope: Mapping[str, Kinds]) -> None:
        parts = [part for _, written in given.attributes for part in written]
        for part in (*parts, *given.content):
            if isinstance(part, Enclosed):
                self.kinds(part.inside, scope)
            elif isinstance(part, Constructor):
                self._constructor(part, scope)


# Types --------------------------------------------------------------------------------------------


def _union(found: Iterable[Kinds]) -> Kinds:
    union: frozenset[type] = frozenset()
    for each in [*found]:
        if each is None:
            return None
        union |= each
    return union


def _atomized(kinds: Kinds) -> Kinds:
    return kinds if kinds is None or Node not in kinds else (kinds - {Node}) | _OF_NODE


def _grouped(kinds: Kinds) -> Kinds:
    """The kinds of a key of `group by`: an untyped value is a string."""
    found = _atomized(kinds)
    return found if found is None or Untyped not in found else (found - {Untyped}) | {str}


def _names(kinds: Iterable[type]) -> str:
    """The types, in words."""
    if Node in kinds:
        return "the value of a node"
    if frozenset(kinds) == _OF_NODE:
        return "the untyped value of a node"
    return " or ".join(sorted(TYPES[kind] for kind in kinds))


_COMPARISONS = frozenset((*GENERAL, *VALUE))


def _operation(operator: str) -> Callable[..., Any]:
    if operator in VALUE:
        return lambda one, other: value_comparison(operator, one, other)
    if operator in GENERAL:
        return lambda one, other: general_comparison(operator, one, other)
    return number_range if operator == "to" else ARITHMETIC[operator]


def _results(operation: Callable[..., Any], operands: tuple[frozenset[type], ...]) -> Kinds:
    """The kinds of the results for samples of all kinds of the operands; none: type errors only."""
    if _size(operands) > _MOST_SAMPLES:
        return None
    found: set[type] = set()
    is_known = True
    for chosen in product(*operands):
        try:
            result = operation(*(_SAMPLES[kind] for kind in chosen))
        except ValueProblem as problem:
            is_known = is_known and problem.code == "XPTY0004"
            continue
        except AxlogError:
            is_known = False
            continue
        for item in result if isinstance(result, list) else [result]:
            is_known = is_known and type(item) in _SAMPLES
            found.add(type(item))
    return frozenset(found) if is_known else None


def _size(operands: tuple[frozenset[type], ...]) -> int:
    size = 1
    for each in operands:
        size *= len(each)
    return size


def _is_accepted(parameter: Parameter, kind: type) -> bool:
    try:
        parameter.of_value(_SAMPLES[kind])
    except ValueProblem as problem:
        return problem.code != "XPTY0004"
    return True


def _result_of(function: Function, kinds: list[Kinds]) -> Kinds:
    """The kinds of the result of a function of atomic values."""
    atomized = [_atomized(each) for each in kinds]
    if not all(atomized) or any(not each.is_atomic for each in function.parameters):
        return None

    def applied(*values: Any) -> Any:
        return function.value(_TREE, [[value] for value in values])

    found = _results(applied, tuple(each for each in atomized if each))
    return found or None


_TREE = Tree()


def _advice(operator: str, one: frozenset[type], other: frozenset[type]) -> str | None:
    """What to write instead, if one operand is a text."""
    texts = [each for each in (one, other) if each <= _OF_NODE]
    if len(texts) != 1:
        return None
    typed = other if texts[0] is one else one
    if operator in VALUE and texts[0] == _OF_NODE:
        general = f"write `{VALUE[operator]}`, which compares with the type of the other side"
    elif operator in VALUE or operator in GENERAL or operator in ARITHMETIC:
        general = ""
    else:
        return None
    convert = "number" if typed <= _NUMBERS else next(iter(TYPES[kind] for kind in typed))
    converted = f"convert {'the node' if general else 'the text'} with {convert}()"
    return f"{general}, or {converted}" if general else converted
