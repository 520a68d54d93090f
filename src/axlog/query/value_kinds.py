"""What an expression gives, from its text: strings, numbers, truth values or untyped nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from axlog.query.syntax_tree import (
    Binary,
    Call,
    Constant,
    Constructor,
    Context,
    Counted,
    Expression,
    Flwor,
    For,
    ForAt,
    Group,
    GroupBy,
    Let,
    Path,
    Quantified,
    Reference,
    Root,
    Sequence,
    Step,
    Typed,
)

ValueKind: TypeAlias = Literal["untyped", "string", "number", "truth", "unknown"]
"""The static kind of the items of an expression; nodes are untyped."""

_TRUTHS = frozenset(
    """boolean contains deep-equal empty ends-with exists false matches not starts-with true
    xs:boolean""".split()
)
_STRINGS = frozenset(
    """concat local-name lower-case name namespace-uri normalize-space replace string string-join
    substring substring-after substring-before translate upper-case xs:string""".split()
)
_NUMBERS = frozenset(
    """abs avg ceiling count floor last number position round string-length sum xs:decimal xs:double
    xs:int xs:integer""".split()
)
_ARITHMETIC = frozenset("+ - * div idiv mod".split())
_COMPARISONS = frozenset("= != < <= > >= eq ne lt le gt ge is << >> and or".split())
_SAME_AS_ARGUMENT = frozenset(
    "data distinct-values exactly-one one-or-more reverse subsequence zero-or-one".split()
)


def kind_of_value(value: object, variables: Mapping[str, ValueKind]) -> ValueKind:
    """The kind of the items that an expression gives."""
    match value:
        case Constant(value=constant):
            return "string" if isinstance(constant, str) else "number"
        case Path():
            return _kind_of_path(value, variables)
        case Root() | Context():
            return "untyped"
        case Binary(operator=operator, left=left, right=right):
            if operator in _COMPARISONS:
                return "truth"
            if operator in _ARITHMETIC:
                sides = {kind_of_value(side, variables) for side in (left, right)}
                return "number" if sides <= {"number", "untyped"} else "unknown"
            return _OF_OPERATORS.get(operator, "untyped")
        case Quantified():
            return "truth"
        case Typed(operator="castable as" | "instance of"):
            return "truth"
        case Flwor():
            return _kind_of_query(value, variables)
        case Call(name=name, arguments=arguments):
            return _kind_of_call(name, arguments, variables)
    return "unknown"


def _kind_of_path(path: Path, variables: Mapping[str, ValueKind]) -> ValueKind:
    match path:
        case Path(start=Reference(name=name), steps=()):
            return variables.get(name, "unknown")
        case Path(steps=(*_, Call() as last)):
            return kind_of_value(last, variables)
        case Path(steps=(*_, Group(inside=inside))):
            return kind_of_value(inside, variables)
    if all(isinstance(step, Step) and step.is_filter for step in path.steps):
        return kind_of_value(path.start, variables)
    return "untyped"


def _kind_of_query(query: Flwor, variables: Mapping[str, ValueKind]) -> ValueKind:
    inner = dict(variables)
    for clause in query.clauses:
        if isinstance(clause, For):
            inner[clause.variable] = kind_of_value(clause.source, inner)
        elif isinstance(clause, Let):
            inner[clause.variable] = kind_of_value(clause.value, inner)
    return kind_of_value(query.returned, inner)


_OF_OPERATORS: dict[str, ValueKind] = {"||": "string", "to": "number"}


def _kind_of_call(
    name: str, arguments: tuple[Expression, ...], variables: Mapping[str, ValueKind]
) -> ValueKind:
    if name in _TRUTHS:
        return "truth"
    if name in _STRINGS:
        return "string"
    if name in _NUMBERS:
        return "number"
    if name in _SAME_AS_ARGUMENT and arguments:
        return kind_of_value(arguments[0], variables)
    if name == "if":
        kinds = {kind_of_value(each, variables) for each in arguments[1:]}
        return kinds.pop() if len(kinds) == 1 else "unknown"
    return "unknown"


def is_double(value: object, variables: Mapping[str, ValueKind]) -> bool:
    """Whether the items of an expression are doubles for certain."""
    match value:
        case Call(name="number" | "xs:double"):
            return True
        case Call(name="exactly-one" | "zero-or-one" | "one-or-more", arguments=(inside,)):
            return is_double(inside, variables)
        case Path(steps=(*_, Call() as last)):
            return is_double(last, variables)
        case Path(steps=(*_, Group(inside=inside, is_map=True))):
            return is_double(inside, variables)
        case Binary(operator=operator, left=left, right=right) if operator in _ARITHMETIC:
            return operator != "idiv" and any(
                kind_of_value(side, variables) == "untyped" or is_double(side, variables)
                for side in (left, right)
            )
    return False


_ATOMIC = frozenset(
    """avg codepoints-to-string current-date current-dateTime data distinct-values index-of max min
    node-name resolve-QName round-half-to-even string-to-codepoints tokenize unary+
    unary-""".split()
)
"""Functions that give values only, beside those of known kinds."""
_SET_OPERATORS = ("|", "except", "intersect")


def may_give_nodes(value: object, variables: Mapping[str, bool]) -> bool:
    """Whether an expression may give nodes of the document; True where it is not known.

    `variables` says it of variables.
    """
    match value:
        case Constant() | Constructor() | Quantified():
            return False
        case Sequence(items=items):
            return any(may_give_nodes(each, variables) for each in items)
        case Binary(operator=operator):
            return operator in _SET_OPERATORS
        case Typed(operator=operator, value=inside):
            return operator in ("treat as", "convert") and may_give_nodes(inside, variables)
        case Flwor():
            return _may_return_nodes(value, variables)
        case Path(start=Reference(name=name), steps=()):
            return variables.get(name, True)
        case Path(steps=(*_, Call() as last)):
            return may_give_nodes(last, variables)
        case Path(steps=(*_, Group(inside=inside))):
            return may_give_nodes(inside, variables)
        case Path(start=start, steps=steps):
            is_same = all(isinstance(step, Step) and step.is_filter for step in steps)
            return not is_same or may_give_nodes(start, variables)
        case Call(name="if", arguments=(_, *choices)):
            return any(may_give_nodes(each, variables) for each in choices)
        case Call(name=name):
            known = name in _ATOMIC or name.startswith(("new-", "xs:"))
            return not known and kind_of_value(value, {}) in ("untyped", "unknown")
    return True


def _may_return_nodes(query: Flwor, variables: Mapping[str, bool]) -> bool:
    inner = dict(variables)
    for clause in query.clauses:
        match clause:
            case For(variable=variable, source=source):
                inner[variable] = may_give_nodes(source, inner)
                if isinstance(clause, ForAt):
                    inner[clause.position] = False
            case Let(variable=variable, value=given):
                inner[variable] = may_give_nodes(given, inner)
            case Counted(variable=variable):
                inner[variable] = False
            case GroupBy(keys=keys):
                inner |= {variable: False for variable, _ in keys}
    return may_give_nodes(query.returned, inner)
