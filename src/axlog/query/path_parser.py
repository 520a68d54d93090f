"""The parser of paths: steps, node tests, predicates and function calls, on the tokenizer.

`XPathParser` adds the operators. Names are expanded here, and abbreviations are written out.
"""

from __future__ import annotations

from abc import abstractmethod

from axlog.errors import did_you_mean
from axlog.query.function_names import CASTS, CLOCK, CONTEXT_FUNCTIONS, FUNCTIONS
from axlog.query.numbers import literal
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Name,
    PartialName,
    Test,
    Wildcard,
)
from axlog.query.regex_matcher import check_regex
from axlog.query.syntax_tree import (
    AnyStep,
    Call,
    Constant,
    Context,
    Expression,
    Group,
    Path,
    Predicate,
    Reference,
    Root,
    Sequence,
    Step,
)
from axlog.query.tokenizer import NCNAME, Tokenizer

AXES = frozenset(
    """ancestor ancestor-or-self attribute child descendant descendant-or-self following
    following-sibling parent preceding preceding-sibling self""".split()
)
MOST_STEPS = 150

_AXIS = rf"({NCNAME})\s*::"
_EXPANDED = rf"Q\{{([^{{}}]*)\}}({NCNAME}|\*)"
_ANY_NAMESPACE = rf"\*:({NCNAME})"
_ANY_LOCAL = rf"({NCNAME}):\*"
_CALLED = rf"(?:({NCNAME}):)?({NCNAME})\s*\((?!:)"
KIND_TESTS = frozenset(
    """attribute comment document-node element item namespace-node node processing-instruction
    schema-attribute schema-element text""".split()
)
RESERVED = KIND_TESTS | frozenset("if switch typeswitch function".split())
"""Names that no function has."""
_PLAIN_KINDS: dict[str, Test] = {
    "comment": AnyComment(),
    "node": AnyNode(),
    "processing-instruction": AnyInstruction(),
    "text": AnyText(),
}
_KINDS = frozenset({*_PLAIN_KINDS, "attribute", "element"})
_UNTYPED = {
    "element": ("anyType", "untyped"),
    "attribute": ("anyType", "anySimpleType", "anyAtomicType", "untypedAtomic"),
}
"""The types that untyped elements and attributes have."""
_DOT = r"\.(?![.\d])"
_CONSTRUCTED = rf"<(?:{NCNAME}|!--|\?)"
_COMPUTED = (
    r"(element|attribute|processing-instruction|namespace)\s+(?:[\w:.\-]+\s*)?\{"
    r"|(?:element|attribute|text|comment|document)\s*\{"
)
_VALUE_START = r"[$\"'\d]"
_STEP_START = rf"{NCNAME}|[*@.(]"


class PathParser(Tokenizer):
    """The productions from paths down to names; `expression` and `single` are those above."""

    allows_infinity = True

    @abstractmethod
    def expression(self) -> Expression:
        """Expressions separated by commas."""

    @abstractmethod
    def single(self) -> Expression:
        """One expression without a comma."""

    def path(self) -> Expression:
        """A path, or an expression that can start one."""
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
                return path_of(start, steps, at)
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
            return Group(path_of(inside, [step], at), at)
        if self.take(".."):
            return Step("parent", AnyNode(), self._predicates(), at)
        if self.take("."):
            return Step("self", AnyNode(), self._predicates(), at)
        if self._sees_call():
            called = self.call(at)
            predicates = self._predicates()
            if predicates:
                step = Step("self", AnyNode(), predicates, at, is_filter=True)
                return Group(path_of(called, [step], at), at)
            return called if isinstance(called, Call) else Group(called, at)
        if self.match_at(_VALUE_START, at):
            value = self.primary(at)
            if value is not None and not isinstance(value, Context):
                predicates = self._predicates()
                steps: list[AnyStep] = []
                if predicates:
                    steps.append(Step("self", AnyNode(), predicates, at, is_filter=True))
                is_bare = not steps and not isinstance(value, Reference)
                return Group(value if is_bare else path_of(value, steps, at), at)  # type: ignore[arg-type]
        self._refuse_constructor(at)
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
        """A test of a name or a kind."""
        is_element = axis != "attribute"
        any_namespace = self.take_match(_ANY_NAMESPACE)
        if any_namespace is not None:
            return PartialName(None, any_namespace[1])
        any_local = self.take_match(_ANY_LOCAL)
        if any_local is not None:
            return PartialName(self.expanded(any_local[1], "", at)[1:-1], None)
        expanded = self.take_match(_EXPANDED)
        if expanded is not None:
            if expanded[2] == "*":
                return PartialName(" ".join(expanded[1].split()), None)
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
            if self.take(","):
                self._type_of_untyped(kind, at)
        self.need(")")
        return test

    def _type_of_untyped(self, kind: str, at: int) -> None:
        """The type in `element(a, type)`: nodes are untyped, so only these types are no test."""
        prefix, name = self.take_name() or ("", "")
        self.take("?")
        if prefix != "xs" or name not in _UNTYPED[kind]:
            raise self.unsupported("a test of a schema type", at)

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
        return found is not None and (bool(found[1]) or found[2] not in RESERVED)

    def call(self, at: int) -> Expression:
        """A function call; `FUNCTIONS` and `CASTS` are the known ones."""
        prefix, name = self.take_name() or ("", "")
        return self.called(prefix, name, self.arguments(), at)

    def called(
        self, prefix: str, name: str, arguments: tuple[Expression, ...], at: int
    ) -> Expression:
        """The call of a function with its arguments."""
        written = f"{prefix}:{name}" if prefix else name
        if written in CASTS:
            return Call(written, arguments, at)
        if prefix not in ("", "fn") or name not in FUNCTIONS | CONTEXT_FUNCTIONS:
            if name in CLOCK and prefix in ("", "fn"):
                advice = "a variable given by the caller: `declare variable $now external`"
                raise self.unsupported(f"{name}(), no function of the document,", at, None, advice)
            near = did_you_mean(written, sorted({*FUNCTIONS, *CASTS}))
            raise self.unsupported(f"the function {written}()", at, None, near)
        check_regex(name, arguments, self.text)
        return Call(name, arguments, at)

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


def path_of(start: Root | Context | Reference | Expression, steps: list[AnyStep], at: int) -> Path:
    """The path of these steps; a path that starts it is continued."""
    if isinstance(start, Path):
        return Path(start.start, (*start.steps, *steps), at)
    return Path(start, tuple(steps), at)


def _slashes(at: int) -> Step:
    return Step("descendant-or-self", AnyNode(), (), at, is_slashes=True)
