"""Expressions without variables and paths that have no value: errors of the text, not of the data.

`1 div 0` and `xs:date('today')` fail for every document, so a view with them is refused when it is
written. Operands that a query may leave unevaluated are not looked at: the branches of `if`, the
operands of `and` and `or`.
"""

from __future__ import annotations

from collections.abc import Iterator

from axlog.errors import AxlogError, ValueProblem
from axlog.evaluate.scalars import Language, compile_scalar
from axlog.query.plan import Plan
from axlog.query.positions import place_at
from axlog.query.query import Query
from axlog.query.syntax_tree import Binary, Call, Constant, field_names

_ARITHMETIC = frozenset("+ - * div idiv mod".split())


def refuse_constants_without_value(query: Query) -> None:
    """Raise the error of a constant expression that has no value, with its place."""
    language: Language = "native" if query.language == "pattern" else "xquery"
    found = query.steps if query.plan is None else _expressions(query.plan)
    for constant in _constants(found):
        try:
            value = compile_scalar(constant, (), language, text=query.text)
        except AxlogError:
            continue  # no expression of single values
        try:
            value(())
        except ValueProblem as problem:
            raise ValueProblem(
                problem.code,
                problem.message,
                place=place_at(query.text, constant.at),
                advice="correct it: it has no value for any document",
            ) from None


def _expressions(plan: Plan) -> tuple[object, ...]:
    return tuple(
        (each.clauses, each.order, each.index.values, tuple(o.value for o in each.outputs))
        for each in plan.collections
    )


def _constants(value: object) -> Iterator[Binary | Call]:
    """The largest parts that are computed from constants alone, and are evaluated in any case."""
    if _is_constant(value):
        if isinstance(value, Binary | Call):
            yield value
        return
    if isinstance(value, tuple):
        for each in value:
            yield from _constants(each)
        return
    if isinstance(value, Binary) and value.operator in ("and", "or"):
        return
    if isinstance(value, Call) and value.name == "if":
        yield from _constants(value.arguments[0])
        return
    for name in field_names(type(value)) or ():
        yield from _constants(getattr(value, name))


def _is_constant(value: object) -> bool:
    match value:
        case Constant():
            return True
        case Binary(operator=operator, left=left, right=right):
            return operator in _ARITHMETIC and _is_constant(left) and _is_constant(right)
        case Call(name=name, arguments=(_, *_) as arguments):
            is_cast = name.startswith(("xs:", "unary"))
            return is_cast and all(map(_is_constant, arguments))
    return False
