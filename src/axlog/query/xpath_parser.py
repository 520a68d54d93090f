"""The parser of XPath: text to the tree of `syntax_tree.py`, by recursive descent.

It reads the expressions of XPath 3.1 without maps, arrays and functions as values. The compilers
decide whether an expression is a pattern (`xpath_compiler.py`) or needs a plan
(`plan_compiler.py`).

The methods without an underscore are the productions of the grammar, the loosest first. The parsers
of XQuery and XQuery Update override those that their languages extend.
"""

from __future__ import annotations

from dataclasses import replace

from axlog.query.depth import check_depth
from axlog.query.function_names import TYPES
from axlog.query.path_parser import KIND_TESTS, PathParser, path_of
from axlog.query.pattern import AnyNode
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Clause,
    Constant,
    Expression,
    Flwor,
    For,
    Group,
    Let,
    Quantified,
    SequenceType,
    Typed,
)
from axlog.query.syntax_tree import Sequence as Items

_BY_LEVEL = (
    ("or",),
    ("and",),
    ("eq", "ne", "lt", "le", "gt", "ge", "is", "!=", "<=", ">=", "<<", ">>", "=", "<", ">"),
    ("||",),
    ("to",),
    ("+", "-"),
    ("*", "div", "idiv", "mod"),
    ("|",),
    ("intersect", "except"),
    ("instance of",),
    ("treat as",),
    ("castable as",),
    ("cast as",),
    ("=>",),
)
"""The operators, the loosest first."""
_LEVELS = {name: level for level, names in enumerate(_BY_LEVEL, 1) for name in names}
_SYMBOL = r"!=|<=|>=|<<|>>|=>|=|<|>|\|\||\||[+*-]"
_WORDS = (*(name for name in _LEVELS if name[0].isalpha()), "union")
_TYPE_OPERATORS = frozenset(("instance of", "treat as", "castable as", "cast as"))
_CHAINED = frozenset(("or", "and", "|", "||"))
_ALONE = frozenset((*_BY_LEVEL[2], "to"))
_CHOICE = r"if\s*\("
_MAP = r"!(?!=)"
_OCCURRENCE = r"[?*+]"


class XPathParser(PathParser):
    """The parser of XPath expressions."""

    _last_operator: tuple[int, str | None, int] = (-1, None, -1)  # where, which, and its end

    def parse(self) -> Expression:
        """The expression that the whole text is."""
        found = self.expression()
        if not self.is_at_end():
            raise self.unexpected("an operator, `/`, `[` or the end of the query")
        check_depth(found, self.text)
        return found

    def expression(self) -> Expression:
        """Expressions separated by commas."""
        at = self.skip()
        items = [self.single()]
        while self.take(","):
            items.append(self.single())
        return items[0] if len(items) == 1 else Items(tuple(items), at)

    def single(self) -> Expression:
        """One expression without a comma."""
        at = self.skip()
        if self.match_at(r"(some|every)\s*\$", at):
            return self._quantified(at)
        if self.match_at(_CHOICE, at):
            return self._choice(at)
        if self.match_at(r"(for|let)\s*\$", at):
            return self.flwor(at)
        return self._operators(1)

    def flwor(self, at: int) -> Expression:
        """`for` and `let` of XPath: variables, then `return`."""
        with self.nested():
            clauses: list[Clause] = []
            while (word := self.take_word("for", "let")) is not None:
                while True:
                    start = self.skip()
                    variable = self.need_variable()
                    if word == "for":
                        self.need_word("in")
                        clauses.append(For(variable, self.single(), start))
                    else:
                        self.need(":=")
                        clauses.append(Let(variable, self.single(), start))
                    if not self.take(","):
                        break
            self.need_word("return")
            return Flwor(tuple(clauses), self.single(), at)

    def _quantified(self, at: int) -> Expression:
        is_every = self.take_word("some", "every") == "every"
        bindings = []
        while True:
            start = self.skip()
            variable = self.need_variable()
            if self.take_word("as"):
                self.sequence_type()
            self.need_word("in")
            bindings.append((start, variable, self.single()))
            if not self.take(","):
                break
        self.need_word("satisfies")
        with self.nested():
            condition = self.single()
        for start, variable, source in reversed(bindings):
            condition = Quantified(is_every, variable, source, condition, start)
        return condition

    def _choice(self, at: int) -> Call:
        self.take_word("if")
        self.need("(")
        with self.nested():
            condition = self.expression()
            self.need(")")
            self.need_word("then")
            first = self.single()
            self.need_word("else")
            return Call("if", (condition, first, self.single()), at)

    # operators

    def _operators(self, least: int) -> Expression:
        """Operands joined by operators that bind at least so closely: precedence climbing."""
        found = self._signed()
        while True:
            at = self.skip()
            operator = self._operator()
            level = _LEVELS.get(operator or "", 0)
            if level < least or operator is None:
                self.offset = at
                return found
            if operator in _TYPE_OPERATORS:
                found = Typed(operator, found, self.sequence_type(), at)
            elif operator == "=>":
                name = self.take_name()
                if name is None:
                    raise self.unexpected("the name of a function")
                found = self.called(*name, (found, *self.arguments()), at)
            elif operator in _CHAINED:
                found = self._chain(operator, found, level)
            else:
                found = Binary(operator, found, self._operators(level + 1), at)
                self._refuse_chain(operator)

    def _operator(self) -> str | None:
        """Read the operator that follows.

        The levels of precedence ask for the same operator in turn, so the last one read is kept.
        """
        at = self.skip()
        if self._last_operator[0] == at:
            self.offset = self._last_operator[2]
            return self._last_operator[1]
        found = self.take_match(_SYMBOL)
        word = self.take_word(*_WORDS) if found is None else found.group()
        operator = "|" if word == "union" else word
        self._last_operator = (at, operator, self.offset)
        return operator

    def _chain(self, operator: str, first: Expression, level: int) -> Expression:
        """The operands of an associative operator, whose first use was just read."""
        operands = [first, self._operators(level + 1)]
        while True:
            at = self.skip()
            if self._operator() != operator:
                self.offset = at
                return balanced(operator, operands)
            operands.append(self._operators(level + 1))

    def _refuse_chain(self, operator: str) -> None:
        """Comparisons and ranges do not associate."""
        at = self.skip()
        following = self._operator()
        self.offset = at
        is_chain = operator in _ALONE and _LEVELS.get(following or "") == _LEVELS[operator]
        if is_chain:
            raise self.refusal("a chain of comparisons", at, advice="join them with `and`")

    def _signed(self) -> Expression:
        at = self.skip()
        sign = self.take("-", "+")
        if sign is None:
            return self._map()
        with self.nested():
            operand = self._signed()
        if isinstance(operand, Constant) and not isinstance(operand.value, str):
            if sign == "+":
                return replace(operand, at=at)
            exact = None if operand.exact is None else -operand.exact
            return Constant(-operand.value, at, exact)
        return Call(f"unary{sign}", (operand,), at)

    def _map(self) -> Expression:
        found = self.path()
        while True:
            at = self.skip()
            if not self.take_match(_MAP):
                return found
            found = path_of(found, [Group(self.path(), at, is_map=True)], at)

    # types

    def sequence_type(self) -> SequenceType:
        """A sequence type: `xs:decimal?`, `element(a)*`, `item()`."""
        at = self.skip()
        prefix, name = self.take_name() or ("", "")
        if not name:
            raise self.unexpected("a type")
        if prefix == "xs" and name in TYPES | {"anyAtomicType", "untypedAtomic", "numeric"}:
            return SequenceType(f"xs:{name}", None, self._occurrence())
        if prefix or not self.sees("("):
            written = f"{prefix}:{name}" if prefix else name
            expected = ", ".join(f"xs:{each}" for each in sorted(TYPES))
            raise self.unsupported(f"the type {written}", at, expected=f"one of {expected}")
        if name in ("item", "empty-sequence", "document-node"):
            self.need("(")
            self.need(")")
            return SequenceType(f"{name}()", None, self._occurrence())
        if name not in KIND_TESTS:
            raise self.unsupported(f"the type {name}()", at)
        self.offset = at
        axis = "attribute" if name == "attribute" else "child"
        test = self.node_test(axis, at)
        is_node = isinstance(test, AnyNode)
        return SequenceType("node()" if is_node else f"{name}()", test, self._occurrence())

    def _occurrence(self) -> str:
        """The mark directly after a type; `*` after a space is also one, as in the grammar."""
        found = self.take_match(_OCCURRENCE)
        return found.group() if found else ""


def balanced(operator: str, operands: list[Expression]) -> Expression:
    """The operands of an associative operator as a balanced tree: walks of the tree recurse."""
    while len(operands) > 1:
        pairs = zip(operands[::2], operands[1::2], strict=False)
        joined: list[Expression] = [Binary(operator, a, b, a.at) for a, b in pairs]
        operands = joined + operands[len(joined) * 2 :]
    return operands[0]
