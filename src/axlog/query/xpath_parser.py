"""The parser of XPath: text to the tree of `syntax_tree.py`, by recursive descent.

It reads the syntax of XPath 3.1. Constructs that a view cannot have (arithmetic, `intersect`, `if`,
unknown functions) are refused by name, at their position. `xpath_compiler.py` decides what an
expression means and whether it is a pattern.

The methods without an underscore are the productions of the grammar, the loosest first. The parsers
of XQuery and XQuery Update override those that their languages extend.
"""

from __future__ import annotations

from axlog.query.numbers import literal
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Name,
    Test,
    Wildcard,
)
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Constant,
    Context,
    Expression,
    Group,
    Path,
    Predicate,
    Quantified,
    Reference,
    Root,
    Sequence,
    Step,
)
from axlog.query.tokenizer import NCNAME, Tokenizer
from axlog.query.values import READ

AnyStep = Step | Group | Call
AXES = frozenset(
    """ancestor ancestor-or-self attribute child descendant descendant-or-self following
    following-sibling parent preceding preceding-sibling self""".split()
)
FUNCTIONS = frozenset(
    """boolean collection count data distinct-values doc document empty exists false id last not
    number position string true""".split()
)
CASTS = frozenset(READ)
"""The constructor functions of types: `xs:date(...)`."""
MOST_STEPS = 150

_AXIS = rf"({NCNAME})\s*::"
_EXPANDED = rf"Q\{{([^{{}}]*)\}}({NCNAME}|\*)"
_PARTIAL = rf"(?:\*:{NCNAME}|{NCNAME}:\*)"
_CALLED = rf"(?:({NCNAME}):)?({NCNAME})\s*\((?!:)"
KIND_TESTS = frozenset(
    """attribute comment document-node element item namespace-node node processing-instruction
    schema-attribute schema-element text""".split()
)
_PLAIN_KINDS: dict[str, Test] = {
    "comment": AnyComment(),
    "node": AnyNode(),
    "processing-instruction": AnyInstruction(),
    "text": AnyText(),
}
_KINDS = frozenset({*_PLAIN_KINDS, "attribute", "element"})
_DOT = r"\.(?![.\d])"
_CONSTRUCTED = rf"<(?:{NCNAME}|!--|\?)"
_COMPUTED = (
    r"(element|attribute|processing-instruction|namespace)\s+(?:[\w:.\-]+\s*)?\{"
    r"|(?:element|attribute|text|comment|document)\s*\{"
)
_VALUE_START = r"[$\"'\d]"
_STEP_START = rf"{NCNAME}|[*@.(]"
_COMPARISON = r"!=|<=|>=|=|<(?!<)|>(?!>)"
_VALUE_COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_ARITHMETIC = r"[+\-*]"
INFIX_SYMBOLS = {
    "||": "joining strings by `||`",
    "=>": "the arrow `=>`",
    "<<": "`<<`",
    ">>": "`>>`",
}
INFIX_WORDS = {
    "div": "arithmetic",
    "idiv": "arithmetic",
    "mod": "arithmetic",
    "to": "a range (`to`)",
    "is": "comparing identities by `is`",
    "instance of": "`instance of`",
    "treat as": "`treat as`",
    "castable as": "`castable as`",
    "cast as": "`cast as`",
}
SETS = {"intersect": "`A[...]` with a predicate that says B", "except": "`A[not(...)]`"}


class XPathParser(Tokenizer):
    """The parser of XPath expressions."""

    def parse(self) -> Expression:
        """The expression that the whole text is."""
        found = self.expression()
        if not self.is_at_end():
            raise self.unexpected("an operator, `/`, `[` or the end of the query")
        return found

    def expression(self) -> Expression:
        """Expressions separated by commas."""
        at = self.skip()
        items = [self.single()]
        while self.take(","):
            items.append(self.single())
        return items[0] if len(items) == 1 else Sequence(tuple(items), at)

    def single(self) -> Expression:
        """One expression without a comma."""
        at = self.skip()
        if self.match_at(r"(some|every)\s*\$", at):
            return self._quantified(at)
        if self.match_at(r"if\s*\(", at):
            raise self.unsupported("a choice by `if`", at, advice="`or` and `and` in a predicate")
        if self.match_at(r"(for|let)\s*\$", at):
            return self.flwor(at)
        return self._disjunction()

    def flwor(self, at: int) -> Expression:
        """`for` and `let`, which belong to XQuery."""
        raise self.unsupported(
            f"`{self.text[at : at + 3]}` in XPath", at, advice='language="xquery"'
        )

    def _quantified(self, at: int) -> Expression:
        is_every = self.take_word("some", "every") == "every"
        bindings = []
        while True:
            start = self.skip()
            variable = self.need_variable()
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

    # operators, the loosest first

    def _disjunction(self) -> Expression:
        operands = [self._conjunction()]
        while self.take_word("or"):
            operands.append(self._conjunction())
        return _balanced("or", operands)

    def _conjunction(self) -> Expression:
        operands = [self.comparison()]
        while self.take_word("and"):
            operands.append(self.comparison())
        return _balanced("and", operands)

    def comparison(self) -> Expression:
        found = self.union()
        at = self.skip()
        operator = self._operator()
        if operator is None:
            return found
        found = Binary(operator, found, self.union(), at)
        at = self.skip()
        if self._operator() is not None:
            raise self.unsupported("a chain of comparisons", at, advice="join them with `and`")
        return found

    def _operator(self) -> str | None:
        found = self.take_match(_COMPARISON)
        return found.group() if found else self.take_word(*_VALUE_COMPARISONS)

    def union(self) -> Expression:
        operands = [self.operand()]
        while not self.sees("||") and (self.take("|") or self.take_word("union")):
            operands.append(self.operand())
        return _balanced("|", operands)

    def operand(self) -> Expression:
        """One operand; infix operators that views do not support are refused here."""
        found = self.signed()
        at = self.skip()
        word = self.take_word(*SETS)
        if word is not None:
            raise self.unsupported(f"the set operation `{word}`", at, advice=SETS[word])
        word = self.take_word(*INFIX_WORDS)
        if word is not None:
            raise self.unsupported(INFIX_WORDS[word], at)
        for symbol, name in INFIX_SYMBOLS.items():
            if self.sees(symbol):
                raise self.unsupported(name, at)
        if self.take_match(_ARITHMETIC):
            raise self.unsupported("arithmetic", at, advice="compare with a precomputed number")
        if self.sees("!") and not self.sees("!="):
            raise self.unsupported("the map operator `!`", at, advice="a step: `a/b`")
        return found

    def signed(self) -> Expression:
        at = self.skip()
        sign = self.take("-", "+")
        if sign is None:
            return self.path()
        number = self.take_number()
        if number is None:
            raise self.unsupported("arithmetic", at, expected="a number after the sign")
        return Constant(-number if sign == "-" else number, at)

    # paths

    def path(self) -> Expression:
        at = self.skip()
        slash = self.take("//", "/")
        if slash is None:
            start, steps = self._first(at)
            if not steps and not self.sees("/") and not isinstance(start, Context | Reference):
                return start
            return self._rest(start, steps, at)
        if slash == "//":
            return self._rest(Root(at), [_slashes(at), self._step()], at)
        is_longer = self.match_at(_STEP_START, self.skip())
        return self._rest(Root(at), [self._step()] if is_longer else [], at)

    def _rest(
        self, start: Root | Context | Reference | Expression, steps: list[AnyStep], at: int
    ) -> Path:
        """The steps that follow the first one."""
        while True:
            at_slash = self.skip()
            slash = self.take("//", "/")
            if slash is None:
                return _path(start, steps, at)
            if slash == "//":
                steps.append(_slashes(at_slash))
            steps.append(self._step())
            if len(steps) > MOST_STEPS:
                raise self.unsupported(f"a path of more than {MOST_STEPS} steps", at)

    def _first(self, at: int) -> tuple[Context | Reference | Expression, list[AnyStep]]:
        """The start of a path: a step, or an expression with its filters."""
        start = self.primary(at)
        if start is None:
            return Context(at), [self._step()]
        predicates = self._predicates()
        if not predicates:
            return start, []
        return start, [Step("self", AnyNode(), predicates, at, is_filter=True)]

    def primary(self, at: int) -> Context | Reference | Expression | None:
        """An expression that can start a path and is not a step; None if a step follows."""
        string = self.take_string()
        if string is not None:
            return Constant(self.string_value(string, at), at)
        if self.match_at(_DOT, at):
            self.need(".")
            return Context(at)
        number = self.take_number()
        if number is not None:
            return Constant(number, at, literal(self.text[at : self.offset]))
        if self.sees("$"):
            return Reference(self.need_variable(), at)
        if self.sees("(#"):
            raise self.unsupported("a pragma", at, advice="the expression that it encloses")
        if self.take("("):
            return self._parenthesised(at)
        if self._sees_call():
            return self.call(at)
        self._refuse_constructor(at)
        return None

    def _refuse_constructor(self, at: int) -> None:
        if self.match_at(_COMPUTED, at):
            raise self.unsupported(
                "a computed constructor", at, advice="XQuery's <name>{...}</name>"
            )
        if self.match_at(_CONSTRUCTED, at):
            raise self.unsupported(
                "a constructor here", at, advice="XQuery: for ... return <name/>"
            )

    def string_value(self, string: str, at: int) -> str:
        """The value of a string literal; in XPath, the string itself."""
        return string

    def _parenthesised(self, at: int) -> Expression:
        if self.take(")"):
            return Sequence((), at)
        with self.nested():
            inside = self.expression()
        self.need(")")
        return inside

    def _predicates(self) -> tuple[Predicate, ...]:
        found = []
        while self.take("["):
            with self.nested():
                found.append(Predicate(self.expression()))
            self.need("]")
        return tuple(found)

    # steps

    def _step(self) -> Step | Group | Call:
        at = self.skip()
        if self.take("("):
            inside = self._parenthesised(at)
            predicates = self._predicates()
            if not predicates:
                return Group(inside, at)
            step = Step("self", AnyNode(), predicates, at, is_filter=True)
            return Group(_path(inside, [step], at), at)
        if self.take(".."):
            return Step("parent", AnyNode(), self._predicates(), at)
        if self.take("."):
            return Step("self", AnyNode(), self._predicates(), at)
        if self._sees_call():
            return self.call(at)
        self._refuse_constructor(at)
        if self.match_at(_VALUE_START, at):
            raise self.unsupported("a value as a step", at, expected="a step of a path")
        axis = self._axis()
        test_at = self.skip()
        if axis is None and self.match_at(r"attribute\s*\(", test_at):
            axis = "attribute"
        test = self.node_test(axis or "child", test_at)
        return Step(axis or "child", test, self._predicates(), at)

    def _axis(self) -> str | None:
        if self.take("@"):
            return "attribute"
        at = self.skip()
        found = self.take_match(_AXIS)
        if found is None:
            return None
        axis = found[1]
        if axis == "namespace":
            raise self.unsupported("the axis namespace", at)
        if axis not in AXES:
            raise self.refusal(
                f"there is no axis {axis}", at, expected="one of " + ", ".join(sorted(AXES))
            )
        return axis

    def node_test(self, axis: str, at: int) -> Test:
        is_element = axis != "attribute"
        if self.match_at(_PARTIAL, at):
            raise self.unsupported("a name with a wildcard", at, expected="a name or `*`")
        expanded = self.take_match(_EXPANDED)
        if expanded is not None:
            if expanded[2] == "*":
                raise self.unsupported("a wildcard for a namespace", at, expected="a name or `*`")
            uri = " ".join(expanded[1].split())
            return Name(f"{{{uri}}}{expanded[2]}" if uri else expanded[2])
        if self.take("*"):
            return Wildcard()
        called = self.match_at(_CALLED, at)
        if called is not None and called[2] in KIND_TESTS and not called[1]:
            return self._kind_test(called[2], axis, at)
        found = self.take_name()
        if found is None:
            raise self.unexpected("a step (a name, `*`, `@name`, `.`, `..`, an axis)")
        return Name(self.expanded(*found, at, is_element))

    def _kind_test(self, kind: str, axis: str, at: int) -> Test:
        self.take_name()
        self.need("(")
        if kind not in _KINDS:
            expected = ", ".join(f"{known}()" for known in sorted(_KINDS))
            raise self.unsupported(f"the test {kind}()", at, expected=f"one of {expected}")
        test: Test = _PLAIN_KINDS.get(kind, AnyNode())
        if kind == "processing-instruction" and not self.sees(")"):
            test = AnyInstruction(self._target())
        if kind in ("element", "attribute"):
            if (kind == "attribute") != (axis == "attribute"):
                raise self.unsupported(f"{kind}() on the axis {axis}", at)
            test = Wildcard()
            name = None if self.take("*") else self.take_name()
            if name is not None:
                test = Name(self.expanded(*name, at, kind == "element"))
            if self.sees(","):
                raise self.unsupported("a test of a schema type", at)
        self.need(")")
        return test

    def _target(self) -> str:
        """The target in processing-instruction(...): a name or a string."""
        at = self.skip()
        found = self.take_string()
        if found is not None:
            return " ".join(found.split())
        named = self.take_name()
        if named is None or named[0]:
            raise self.refusal("this is not a valid target", at, expected="a name or a string")
        return named[1]

    # functions

    def _sees_call(self) -> bool:
        found = self.match_at(_CALLED, self.skip())
        return found is not None and (bool(found[1]) or found[2] not in KIND_TESTS)

    def call(self, at: int) -> Call:
        """A function call; views know the functions of `FUNCTIONS` and `CASTS`."""
        prefix, name = self.take_name() or ("", "")
        written = f"{prefix}:{name}" if prefix else name
        if written in CASTS:
            name = written
        elif prefix not in ("", "fn") or name not in FUNCTIONS:
            known = "one of " + ", ".join(f"{each}()" for each in sorted({*FUNCTIONS, *CASTS}))
            advice = _INSTEAD.get(name)
            raise self.unsupported(f"the function {written}()", at, known, advice)
        return Call(name, self.arguments(), at)

    def arguments(self) -> tuple[Expression, ...]:
        """The arguments of a call, in parentheses."""
        found: list[Expression] = []
        self.need("(")
        if not self.take(")"):
            with self.nested():
                found.append(self.single())
                while self.take(","):
                    found.append(self.single())
            self.need(")")
        return tuple(found)


def _balanced(operator: str, operands: list[Expression]) -> Expression:
    """The operands of an associative operator as a balanced tree: walks of the tree recurse."""
    while len(operands) > 1:
        pairs = zip(operands[::2], operands[1::2], strict=False)
        joined: list[Expression] = [Binary(operator, a, b, a.at) for a, b in pairs]
        operands = joined + operands[len(joined) * 2 :]
    return operands[0]


def _path(start: Root | Context | Reference | Expression, steps: list[AnyStep], at: int) -> Path:
    if isinstance(start, Path):
        return Path(start.start, (*start.steps, *steps), at)
    return Path(start, tuple(steps), at)


def _slashes(at: int) -> Step:
    return Step("descendant-or-self", AnyNode(), (), at, is_slashes=True)


_INSTEAD = {
    "contains": 'a comparison with the whole value: `. = "..."`',
    "starts-with": 'a comparison with the whole value: `. = "..."`',
    "local-name": "a test of the name: `self::name`",
    "name": "a test of the name: `self::name`",
    "sum": "maintain the rows and add them up",
}
"""Advice for functions that views do not support."""
