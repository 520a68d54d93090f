"""Operators and functions that statements have and queries for views do not.

A view is maintained, so its queries keep to what a pattern can say; a statement is evaluated once,
so it may calculate. This parser adds to that of XQuery: arithmetic, `||`, `to`, `is`, `intersect`
and `except`, and the functions of `FUNCTIONS`. Precedence is the recommendation's.

Also here: which expressions are updating, and that the two kinds are not mixed (XUST0001).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum

from axlog.errors import QueryError
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Binary, Call, Constant, Expression, Flwor, Sequence
from axlog.query.xquery_parser import QueryParser

FUNCTIONS = frozenset(
    """abs boolean ceiling concat contains count data distinct-values doc document empty
    ends-with error exists false floor last local-name lower-case max min name namespace-uri
    normalize-space not number position QName round starts-with string string-join string-length
    substring sum translate true upper-case""".split()
)
TYPES = frozenset("string integer int decimal double QName boolean".split())
"""The types that a value can be made: `xs:integer("7")`."""

_VALUE_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is")
_COMPARISON = re.compile(r"!=|<=|>=|<<|>>|=|<|>")
_REFUSED = {
    "instance of": "`instance of`",
    "treat as": "`treat as`",
    "castable as": "`castable as`",
    "cast as": "`cast as`",
}


class OperatorParser(QueryParser):
    """Parses expressions of statements."""

    def _comparison(self) -> Expression:
        found = self._joined()
        at = self.skip()
        symbol = self.take_match(_COMPARISON)
        operator = symbol.group() if symbol else self.take_word(*_VALUE_COMPARISONS)
        if operator is None:
            return found
        return Binary(operator, found, self._joined(), at)

    def _joined(self) -> Expression:
        found = self._range()
        while True:
            at = self.skip()
            if not self.take("||"):
                return found
            found = Binary("||", found, self._range(), at)

    def _range(self) -> Expression:
        found = self._sum()
        at = self.skip()
        if self.take_word("to"):
            return Binary("to", found, self._sum(), at)
        return found

    def _sum(self) -> Expression:
        found = self._product()
        while True:
            at = self.skip()
            symbol = self.take("+", "-")
            if symbol is None:
                return found
            found = Binary(symbol, found, self._product(), at)

    def _product(self) -> Expression:
        found = self._union()
        while True:
            at = self.skip()
            symbol = self.take("*") or self.take_word("div", "idiv", "mod")
            if symbol is None:
                return found
            found = Binary(symbol, found, self._union(), at)

    def _union(self) -> Expression:
        found = self._operand()
        while True:
            at = self.skip()
            is_union = not self.text.startswith("||", at) and (
                self.take("|") or self.take_word("union")
            )
            if not is_union:
                return found
            found = Binary("|", found, self._operand(), at)

    def _operand(self) -> Expression:
        found = self._signed()
        while True:
            at = self.skip()
            word = self.take_word("intersect", "except")
            if word is None:
                break
            found = Binary(word, found, self._signed(), at)
        word = self.take_word(*_REFUSED)
        if word is not None:
            raise self.unsupported(_REFUSED[word], at)
        if self.sees("=>") or (self.sees("!") and not self.sees("!=")):
            raise self.unsupported("this operator", at, advice="a function: f(a), a step: a/b")
        return found

    def _signed(self) -> Expression:
        at = self.skip()
        sign = self.take("-", "+")
        if sign is None:
            return self.path()
        return Binary(sign, Constant(0.0, at), self._signed(), at)

    def _call(self, at: int) -> Call:
        prefix, name = self.take_name() or ("", "")
        written = f"{prefix}:{name}" if prefix else name
        is_known = (prefix in ("", "fn") and name in FUNCTIONS) or (
            prefix == "xs" and name in TYPES
        )
        if not is_known:
            known = "one of " + ", ".join(f"{one}()" for one in sorted(FUNCTIONS))
            raise self.unsupported(f"the function {written}()", at, expected=known)
        self.need("(")
        arguments: list[Expression] = []
        if not self.take(")"):
            with self.nested():
                arguments.append(self.single())
                while self.take(","):
                    arguments.append(self.single())
            self.need(")")
        return Call(written if prefix == "xs" else name, tuple(arguments), at)


# Updating or not ----------------------------------------------------------------------------------


class Class(Enum):
    """What an expression is for: values, updates, or neither (`()`, `error()`)."""

    SIMPLE = "simple"
    UPDATING = "updating"
    VACUOUS = "vacuous"


def classify(expression: Expression, text: str) -> Class:
    """The class of an expression; refused where updates stand among values, or the reverse."""
    match expression:
        case Call(name=name, arguments=arguments) if name in UPDATING:
            for argument in arguments:
                _need_simple(argument, text)
            return Class.UPDATING
        case Call(name="if", arguments=(condition, first, second)):
            _need_simple(condition, text)
            return _together((first, second), text)
        case Call(name="error"):
            _need_simple_inside(expression, text)
            return Class.VACUOUS
        case Sequence(items=items):
            return _together(items, text)
        case Flwor(clauses=clauses, returned=returned):
            for clause in clauses:
                _need_simple_inside(clause, text)
            return classify(returned, text)
    _need_simple_inside(expression, text)
    return Class.SIMPLE


UPDATING = frozenset(
    """insert-into insert-first insert-last insert-before insert-after delete replace-node
    replace-value rename""".split()
)


def _together(items: tuple[Expression, ...], text: str) -> Class:
    classes = [classify(item, text) for item in items]
    if Class.UPDATING in classes and Class.SIMPLE in classes:
        raise _misplaced(items[classes.index(Class.SIMPLE)].at, text, "a value beside updates")
    for wanted in (Class.UPDATING, Class.SIMPLE):
        if wanted in classes:
            return wanted
    return Class.VACUOUS


def _need_simple(expression: Expression, text: str) -> None:
    if classify(expression, text) is Class.UPDATING:
        raise _misplaced(expression.at, text, "an update where a value is wanted")


def _need_simple_inside(node: object, text: str) -> None:
    for expression in _expressions(node):
        _need_simple(expression, text)


def _expressions(node: object) -> Iterator[Expression]:
    """The expressions directly inside a node of the tree."""
    if not is_dataclass(node):
        return
    for field in fields(node):
        yield from _within(getattr(node, field.name))


def _within(value: object) -> Iterator[Expression]:
    if isinstance(value, tuple):
        for item in value:
            yield from _within(item)
    elif isinstance(value, Expression):
        yield value
    else:
        yield from _expressions(value)


def _misplaced(at: int, text: str, what: str) -> QueryError:
    return QueryError(
        "XUST0001",
        f"{what} stands here",
        place=place_at(text, at),
        expected="updates in `return`, in both branches of `if`, and in lists of updates",
    )
