"""Scalar expressions over the columns of a row, compiled to Python functions.

`compile_scalar` writes one Python function for an expression. `Reference(name)` is a column. The
operations are those of `Evaluator` for `xquery` and those of `native_values` for `native`; the
function only decides their order, so `and`, `or` and `if` evaluate what they need. None is the
empty sequence or a missing value; several values are a tuple. Law: the compiled function gives what
the evaluator gives (`lab/laws/scalars_law.py`).

Expressions that need a scope of their own (`for`, quantifiers, `!`) are left to the evaluator, in
XQuery only. Paths are refused: a row has no nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from axlog.document.tree import Tree
from axlog.errors import QueryError, UnsupportedError, ValueProblem
from axlog.evaluate import native_values
from axlog.evaluate.arithmetic import ARITHMETIC
from axlog.evaluate.comparisons import GENERAL, VALUE, general_comparison, value_comparison
from axlog.evaluate.contents import contents_equal
from axlog.evaluate.expressions import Evaluator, Scope
from axlog.evaluate.functions import FUNCTIONS, number_range, single
from axlog.evaluate.generated_code import function_of
from axlog.evaluate.items import is_true, truth
from axlog.evaluate.native_functions import (
    NATIVE_FUNCTIONS,
    holds_for_some,
    is_content,
    is_node,
)
from axlog.evaluate.native_values import CALCULATIONS
from axlog.evaluate.sequence_types import cast_items, is_castable
from axlog.evaluate.signatures import Function, Parameter
from axlog.query.positions import place_at
from axlog.query.regex_matcher import check_regex
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Constant,
    Context,
    Expression,
    Flwor,
    Path,
    Quantified,
    Reference,
    Root,
    Statement,
    Typed,
    references,
)
from axlog.query.syntax_tree import Sequence as Listed

Language: TypeAlias = Literal["native", "xquery"]
Scalar: TypeAlias = Callable[[Sequence[Any]], Any]
MOST_NESTED = 60
"""Operations inside each other; Python limits the indentation of the written code."""


def compile_scalar(
    expression: Expression | Reference,
    columns: Sequence[str],
    language: Language = "native",
    *,
    text: str = "",
    times: Collection[str] = (),
    untyped: Collection[str] = (),
    lists: Collection[str] = (),
) -> Scalar:
    """The function of a row that an expression over its columns is.

    Parameters:
        expression: The expression; `Reference(name)` is the column of that name.
        columns: The names of the columns, in the order of a row.
        language: `native`: values by their form; `xquery`: typed values.
        text: The text of the query, for the places of errors.
        times: Columns that hold times, as integer microseconds.
        untyped: Columns whose strings are values of nodes (XQuery).
        lists: Columns whose values are tuples: sequences of any number of values.

    The function raises a `ValueProblem` if a row has no value.

    >>> from axlog.query.syntax_tree import Binary, Constant, Reference
    >>> total = Binary("*", Reference("price", 0), Reference("number", 0), 0)
    >>> compile_scalar(total, ("price", "number"))(("1.10", "3"))
    Decimal('3.30')
    """
    if isinstance(expression, Reference) and expression.name in lists:
        return itemgetter(columns.index(expression.name))  # a copy, with all its values
    writer = _WRITERS[language](columns, text, times, untyped, lists)
    return writer.function(expression)


class _Written:
    """The value of a part of the expression: Python code, and whether it is a list."""

    __slots__ = ("code", "is_list")

    def __init__(self, code: str, is_list: bool = False) -> None:
        self.code = code
        self.is_list = is_list


class _Writer:
    """Writes the code of one function, one statement for each operation."""

    reads_strings = False  # whether casts read strings as values without a type

    def __init__(
        self,
        columns: Sequence[str],
        text: str,
        times: Collection[str],
        untyped: Collection[str],
        lists: Collection[str] = (),
    ) -> None:
        self.places = {name: at for at, name in reversed([*enumerate(columns)])}
        self.text = text
        self.times = times
        self.untyped = untyped
        self.lists = lists
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._indentation = 1
        self._depth = 0
        self._counter = 0

    def function(self, expression: Expression | Reference) -> Scalar:
        found = self.value(expression)
        result = f"_result({found.code})" if found.is_list else found.code
        self.names["_result"] = _result
        body = "\n".join([*self.lines, f"    return {result}"])
        source = f"def scalar(row):\n{body}\n"  # names and operations, no text of the query
        made: Scalar = function_of("scalar", source, self.names)
        return made

    # Writing

    def emit(self, code: str) -> None:
        self.lines.append("    " * self._indentation + code)

    def assigned(self, code: str, is_list: bool = False) -> _Written:
        """Assign code to a new variable."""
        self._counter += 1
        name = f"t{self._counter}"
        self.emit(f"{name} = {code}")
        return _Written(name, is_list)

    def named(self, value: object) -> str:
        """A name for a constant or an operation."""
        self._counter += 1
        name = f"c{self._counter}"
        self.names[name] = value
        return name

    def refused(self, what: str, at: int) -> UnsupportedError:
        return UnsupportedError(
            "AX211",
            f"{what} is not supported in an expression over columns",
            place=place_at(self.text, at),
        )

    # Expressions

    def value(self, given: Expression | Reference) -> _Written:
        match given:
            case Reference(name=name, at=at):
                return self._column(name, at)
            case Path(start=Reference(name=name, at=at), steps=()):
                return self._column(name, at)
            case Constant():
                return _Written(self.named(self.constant(given)))
            case Binary(operator="and" | "or"):
                return self._condition(given)
            case Binary():
                return self._binary(given)
            case Call(name="if", arguments=(condition, first, second)):
                return self._choice(condition, first, second)
            case Call(name="some", arguments=(condition,)):
                return self._some(condition)
            case Call():
                return self._call(given)
            case Listed(items=items):
                with self._nested():
                    lists = [self.as_list(self.value(item)) for item in items]
                return self.assigned(f"[{', '.join(f'*{code}' for code in lists)}]", True)
            case Typed():
                return self.typed(given)
            case Path(start=Context() | Root()):
                raise self.refused("a path", given.at)
        return self.other(given)

    def constant(self, given: Constant) -> Any:
        raise NotImplementedError

    def other(self, given: Expression) -> _Written:
        raise self.refused("this expression", given.at)

    def typed(self, given: Typed) -> _Written:
        """Casts here; `instance of` and `treat as` need an evaluator."""
        if given.operator not in _CASTS:
            return self.other(given)
        with self._nested():
            value = self.as_list(self.value(given.value))
        name, of_strings = self.named(given.type), self.helper(native_values.untyped)
        listed = f"[{of_strings}(each) for each in {value}]" if self.reads_strings else value
        cast_ = self.helper(_CASTS[given.operator])
        return self.assigned(f"{cast_}({listed}, {name})", given.operator == "cast as")

    def _column(self, name: str, at: int) -> _Written:
        if name not in self.places:
            raise QueryError(
                "AX203",
                f"there is no column {name}",
                place=place_at(self.text, at),
                expected="one of " + ", ".join(self.places),
            )
        if name in self.lists:
            each = self.column(name, "each")
            return self.assigned(f"[{each} for each in row[{self.places[name]}]]", True)
        code = self.column(name, f"row[{self.places[name]}]")
        return self.assigned(code) if "(" in code else _Written(code)

    def column(self, name: str, cell: str) -> str:
        """The code that reads a column."""
        if name in self.times:
            return f"{self.helper(native_values.moment)}({cell})"
        return cell

    def helper(self, function: Callable[..., Any]) -> str:
        """The name of an operation that many parts share."""
        name = f"_{function.__name__}"
        self.names[name] = function
        return name

    @contextmanager
    def _nested(self, indentation: int = 0) -> Iterator[None]:
        """One level deeper, in the expression and perhaps in the code."""
        self._depth += 1
        self._indentation += indentation
        if self._depth > MOST_NESTED:
            raise QueryError(
                "AX213",
                f"the expression is nested more than {MOST_NESTED} deep",
                expected=f"at most {MOST_NESTED} operations inside each other",
            )
        yield
        self._depth -= 1
        self._indentation -= indentation

    def _condition(self, given: Binary) -> _Written:
        """`and` or `or`: the next operand is evaluated only if it decides."""
        first, *rest = _chain(given, given.operator)
        with self._nested():
            found = self.assigned(self.truth(self.value(first)))
        for part in rest:
            self.emit(f"if {'' if given.operator == 'and' else 'not '}{found.code}:")
            with self._nested(indentation=1):
                self.emit(f"{found.code} = {self.truth(self.value(part))}")
        return found

    def truth(self, value: _Written) -> str:
        """The code of a condition."""
        raise NotImplementedError

    def _choice(self, condition: Expression, first: Expression, second: Expression) -> _Written:
        with self._nested():
            test = self.truth(self.value(condition))
        self._counter += 1
        name = f"t{self._counter}"
        ends: list[tuple[int, _Written]] = []
        for head, part in ((f"if {test}:", first), ("else:", second)):
            self.emit(head)
            with self._nested(indentation=1):
                value = self.value(part)
                listed = self.as_list(value)
                self.emit(f"{name} = {listed}")
                ends.append((len(self.lines) - 1, value))
        if any(value.is_list for _, value in ends):
            return _Written(name, True)
        for line, value in ends:  # no lists needed
            indentation = self.lines[line].partition(name)[0]
            self.lines[line] = f"{indentation}{name} = {value.code}"
        return _Written(name)

    def _some(self, condition: Expression) -> _Written:
        """Whether a condition holds for some values of the columns in it that are lists."""
        read = sorted(references(condition) & set(self.lists))
        others = [name for name in self.lists if name not in read]
        writer = type(self)([*self.places], self.text, self.times, self.untyped, others)
        writer.places = self.places
        holds = writer.function(condition)
        found = partial(holds_for_some, holds, [self.places[name] for name in read])
        return self.assigned(f"{self.named(found)}(row)")

    def as_list(self, value: _Written) -> str:
        """The code of a value as a list."""
        if value.is_list:
            return value.code
        name = value.code if value.code.isidentifier() else self.assigned(value.code).code
        return f"([] if {name} is None else [{name}])"

    def as_one(self, value: _Written, what: str = "value") -> str:
        """The code of at most one value."""
        if not value.is_list:
            return value.code
        return self.assigned(f"{self.helper(single)}({value.code}, {what!r})").code

    def _binary(self, given: Binary) -> _Written:
        """Operators from the left: a chain of any length needs no recursion."""
        chain: list[Binary] = []
        left: Expression = given
        while isinstance(left, Binary) and left.operator not in ("and", "or"):
            chain.append(left)
            left = left.left
        found = self.value(left)
        for each in reversed(chain):
            with self._nested():
                right = self.value(each.right)
            found = self.operation(each, found, right)
        return found

    def operation(self, given: Binary, left: _Written, right: _Written) -> _Written:
        raise NotImplementedError

    def both(self, operation: object, left: _Written, right: _Written, what: str) -> _Written:
        """An operation on two values; None if one is missing."""
        one, other = self.as_one(left, what), self.as_one(right, what)
        name = self.named(operation)
        return self.assigned(
            f"None if {one} is None or {other} is None else {name}({one}, {other})"
        )

    # Calls

    def _call(self, given: Call) -> _Written:
        function = FUNCTIONS.get(given.name)
        if function is None or given.name == "error":
            raise self.refused(f"{given.name}()", given.at)
        if not function.least <= len(given.arguments) <= function.most or (
            not given.arguments and function.takes_context
        ):
            raise QueryError(
                "XPST0017",
                f"{given.name}() has {len(given.arguments)} arguments",
                place=place_at(self.text, given.at),
            )
        check_regex(given.name, given.arguments, self.text)
        arguments = []
        for at, each in enumerate(given.arguments):
            with self._nested():
                arguments.append(self.argument(function.parameter(at), self.value(each)))
        return self.call(given, function, arguments)

    def call(self, given: Call, function: Function, arguments: list[str]) -> _Written:
        if function.takes_tree:
            arguments = [self.named(None), *arguments]
        code = f"{self.named(function.apply)}({', '.join(arguments)})"
        return self.assigned(code, function.is_many)

    def argument(self, parameter: Parameter, value: _Written) -> str:
        """The code of an argument, converted to the type of the parameter."""
        if parameter.is_sequence:
            listed = self.as_list(value)
            if not parameter.is_atomic or parameter.type == "any":
                return listed
            convert = self.named(partial(self.convert, parameter))
            return f"[{convert}(each) for each in {listed}]"
        code = self.as_one(value)
        if code in self.names:  # a constant: converted once, unless it has no value
            try:
                return self.named(self.convert(parameter, self.names[code]))
            except ValueProblem:
                pass
        return f"{self.named(partial(self.convert, parameter))}({code})"

    @staticmethod
    def convert(parameter: Parameter, value: Any) -> Any:
        raise NotImplementedError


class _XQueryWriter(_Writer):
    """Typed values and the operations of XQuery."""

    def constant(self, given: Constant) -> Any:
        return given.typed

    def column(self, name: str, cell: str) -> str:
        if name in self.untyped:
            return f"{self.helper(native_values.untyped)}({cell})"
        return super().column(name, cell)

    def truth(self, value: _Written) -> str:
        if value.is_list:
            return f"{self.helper(is_true)}({value.code})"
        return f"{self.helper(_truth_of_one)}({value.code})"

    def operation(self, given: Binary, left: _Written, right: _Written) -> _Written:
        symbol = given.operator
        if symbol in ARITHMETIC:
            return self.both(ARITHMETIC[symbol], left, right, "number")
        if symbol in VALUE:
            return self.both(partial(value_comparison, symbol), left, right, "value")
        if symbol == "||":
            one, other = self.as_one(left, "string"), self.as_one(right, "string")
            text = self.helper(native_values.text)
            return self.assigned(f"{text}({one}) + {text}({other})")
        if symbol == "to":
            one, other = self.as_one(left, "integer"), self.as_one(right, "integer")
            name = self.helper(number_range)
            return self.assigned(
                f"[] if {one} is None or {other} is None else {name}({one}, {other})", True
            )
        if symbol not in GENERAL:
            raise self.refused(f"`{symbol}`", given.at)
        compare = self.named(partial(general_comparison, symbol))
        if left.is_list or right.is_list:
            pairs = f"for a in {self.as_list(left)} for b in {self.as_list(right)}"
            return self.assigned(f"any({compare}(a, b) {pairs})")
        one, other = left.code, right.code
        return self.assigned(
            f"{one} is not None and {other} is not None and {compare}({one}, {other})"
        )

    @staticmethod
    def convert(parameter: Parameter, value: Any) -> Any:
        if value is None:
            parameter.missing()
            return None
        if parameter.type == "node":
            raise ValueProblem("XPTY0004", "expected a node, found a value")
        return parameter.of_value(value)

    def other(self, given: Expression) -> _Written:
        """Expressions with a scope: evaluated with the columns as variables."""
        if not isinstance(given, Flwor | Quantified | Typed | Path):
            raise self.refused("this expression", given.at)
        used = sorted(references(given) & set(self.places))
        cells = [self.column(name, f"row[{self.places[name]}]") for name in used]
        evaluator = Evaluator(Tree(), Statement(given, self.text, ()))
        evaluate = self.named(partial(_evaluated, evaluator, given, used))
        return self.assigned(f"{evaluate}([{', '.join(cells)}])", True)


class _NativeWriter(_Writer):
    """Values by their form, exact numbers."""

    reads_strings = True

    def constant(self, given: Constant) -> Any:
        value = given.typed
        return value if isinstance(value, str | bool) else native_values.operand(value)

    def truth(self, value: _Written) -> str:
        if value.is_list:
            return f"bool({value.code})"
        return f"{self.helper(native_values.holds)}({value.code})"

    def operation(self, given: Binary, left: _Written, right: _Written) -> _Written:
        symbol = given.operator
        if symbol in CALCULATIONS:
            return self.both(CALCULATIONS[symbol], left, right, "number")
        if symbol == "||":
            text = self.helper(native_values.text)
            return self.assigned(f"{text}({self.as_one(left)}) + {text}({self.as_one(right)})")
        compare = native_values.COMPARISONS.get(VALUE.get(symbol, symbol))
        if compare is None:
            raise self.refused(f"`{symbol}`", given.at)
        if symbol in native_values.NODE_OPERATORS and not (
            is_node(given.left) and is_node(given.right)
        ):
            raise self.refused(f"`{symbol}` of values, which are no nodes,", given.at)
        return self.assigned(f"{self.named(compare)}({self.as_one(left)}, {self.as_one(right)})")

    def call(self, given: Call, function: Function, arguments: list[str]) -> _Written:
        native = NATIVE_FUNCTIONS.get(given.name)
        if given.name == "deep-equal" and all(map(is_content, given.arguments)):
            native = contents_equal
        if native is not None:
            return self.assigned(f"{self.named(native)}({', '.join(arguments)})")
        return super().call(given, function, arguments)

    @staticmethod
    def convert(parameter: Parameter, value: Any) -> Any:
        return native_values.argument(parameter, value)


_CASTS: dict[str, Callable[..., Any]] = {"cast as": cast_items, "castable as": is_castable}
_WRITERS: dict[str, type[_Writer]] = {"native": _NativeWriter, "xquery": _XQueryWriter}


def _chain(given: Expression, operator: str) -> list[Expression]:
    """The operands of one associative operator."""
    found: list[Expression] = []
    waiting: list[Expression] = [given]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Binary) and part.operator == operator:
            waiting += (part.right, part.left)
        else:
            found.append(part)
    return found


def _truth_of_one(value: Any) -> bool:
    return value is not None and truth(value)


def _evaluated(
    evaluator: Evaluator, expression: Expression, names: Sequence[str], cells: Sequence[Any]
) -> list[Any]:
    variables = {
        name: [] if cell is None else list(cell) if isinstance(cell, tuple) else [cell]
        for name, cell in zip(names, cells, strict=True)
    }
    return evaluator.value(expression, Scope(variables))


def _result(items: list[Any]) -> Any:
    """A sequence as the value of a cell."""
    if len(items) > 1:
        return tuple(items)
    return items[0] if items else None
