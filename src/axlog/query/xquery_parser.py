"""The parser of XQuery: XPath, the prolog, the clauses of FLWOR expressions, constructors.

Functions of the prolog are expanded where they are called (`function_expansion.py`). `switch` and
`typeswitch` become `let` and `if`. Modules, maps, arrays and `try` are refused by name. Statements
of XQuery Update have a parser of their own on top of this one (`update_parser.py`).
"""

from __future__ import annotations

import re
from dataclasses import replace

from axlog.errors import QueryError
from axlog.query.constant_variables import without_constants
from axlog.query.constructor_parser import TAG_START
from axlog.query.depth import check_depth
from axlog.query.function_expansion import Function, expanded
from axlog.query.pattern import Name, Wildcard
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Call,
    Clause,
    Constant,
    Context,
    Counted,
    Expression,
    External,
    ExternalVariable,
    Flwor,
    For,
    ForAt,
    GroupBy,
    Let,
    OrderBy,
    OrderKey,
    Path,
    Reference,
    Root,
    Sequence,
    SequenceType,
    Step,
    Typed,
    Where,
)
from axlog.query.tokenizer import NCNAME
from axlog.query.update_expressions import UpdateExpressionParser
from axlog.query.xpath_parser import balanced

_BLOCK = r"(?:un)?ordered\s*\{"
_REFUSED = r"(try|validate|map|array)\s*\{|(function)\s*\("
_SWITCH = r"(typeswitch|switch)\s*\("
_PROLOG = (
    r"xquery\s+(?:version|encoding)\b|module\s+namespace\b|import\s+(?:schema|module)\b|declare\s+"
    r"(?:namespace|default|variable|function|option|ordering|construction|copy-namespaces"
    r"|boundary-space|base-uri|context|decimal-format|%|updating|revalidation)\b"
)
_COMPUTED = (
    rf"(element|attribute|processing-instruction)\s+(?:({NCNAME}(?::{NCNAME})?)\s*)?\{{"
    rf"|(element|attribute|processing-instruction|text|comment|document)\s*\{{"
)
_CLAUSES = ("for", "let", "where", "group by", "order by", "stable order by", "count")
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
MOST_CASES = 50
_CODEPOINT = "http://www.w3.org/2005/xpath-functions/collation/codepoint"


def looks_like_xquery(text: str) -> bool:
    """Whether a text begins as only XQuery can: `for $`, `let $`, a constructor, a prolog."""
    parser = XQueryParser(text, {})
    at = parser.skip()
    starts = (r"(?:for|let|copy)\s*\$", TAG_START, _BLOCK, _PROLOG, _COMPUTED, _SWITCH)
    return any(parser.match_at(start, at) for start in starts)


def _is_surely(source: Expression, type_: SequenceType) -> bool:
    """Whether all items of an expression have a type, so that nothing must be tested."""
    if type_.kind == "item()":
        return True
    match source:
        case Path(steps=(*_, Step(axis=axis, test=Name() | Wildcard() as test))):
            is_element = axis != "attribute" and type_.kind == "element()"
            return type_.kind == "node()" or (is_element and type_.test in (Wildcard(), test))
    return False


def _any_of(tests: list[Expression]) -> Expression:
    """Whether one of several conditions holds."""
    return balanced("or", tests)


def _converted(value: Expression, type_: SequenceType | None) -> Expression:
    return value if type_ is None else Typed("treat as", value, type_, value.at)


class XQueryParser(UpdateExpressionParser):
    """The parser of XQuery views.

    `declared` holds the variables of the prolog, `functions` its functions.
    """

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self.declared: list[Clause] = []
        self.externals: list[ExternalVariable] = []
        self.functions: dict[tuple[str, int], Function] = {}
        self._is_empty_greatest = False  # the default of `order by`
        self._has_revalidation = False
        self.namespaces.setdefault("xsi", _INSTANCE)

    def parse_query(self) -> Expression:
        """The prolog and the query; variables of the prolog become clauses before the query."""
        self.prolog()
        found = self.parse()
        if self.declared and not self.functions:
            clauses, found = without_constants(self.declared, found)
            self.declared = list(clauses)
        return self.checked(self.whole(found))

    def whole(self, found: Expression) -> Expression:
        """An expression with the variables and functions of the prolog."""
        if self.declared:
            found = Flwor(tuple(self.declared), found, found.at)
        check_depth(found, self.text)
        if not self.functions:
            return found
        whole = expanded(found, self.functions, self.text)
        check_depth(whole, self.text)
        return whole

    # the prolog

    def prolog(self) -> None:
        """The declarations before the query."""
        while True:
            at = self.skip()
            if not self.match_at(_PROLOG, at):
                return
            if self.take_word("xquery version", "xquery encoding"):
                self.need_string("a version")
                if self.take_word("encoding"):
                    self.need_string("an encoding")
            elif self.take_word("declare"):
                self.declaration(at)
            else:
                raise self.unsupported("a module", at, advice="a query without modules")
            self.need(";")

    def declaration(self, at: int) -> None:
        """One declaration of the prolog, after the word `declare`."""
        if self.take_word("namespace"):
            prefix = ":".join(part for part in self.take_name() or () if part)
            self.need("=")
            self.namespaces[prefix] = self.need_string("a namespace")
        elif self.take_word("default element namespace"):
            self.namespaces[""] = self.need_string("a namespace")
        elif self.take_word("default order"):
            empty = self.take_word("empty greatest", "empty least")
            self._is_empty_greatest = empty == "empty greatest"
        elif self.take_word("construction"):
            self.take_word("strip", "preserve")
        elif self.take_word("copy-namespaces"):
            self.take_word("preserve", "no-preserve")
            self.need(",")
            self.take_word("inherit", "no-inherit")
        elif self.take_word("default function namespace"):
            self.need_string("a namespace")
        elif self.take_word("option"):
            self.take_name()
            self.need_string("a value")
        elif self.take_word("boundary-space"):
            self.keeps_space = self.take_word("preserve", "strip") == "preserve"
        elif self.take_word("ordering"):  # rows are a set
            self.take_word("ordered", "unordered")
        elif self.take_word("revalidation"):
            self._revalidation(at)
        elif self.take_word("variable"):
            self._variable()
        elif self.take_word("updating function", "%updating function"):
            self._function(at, is_updating=True)
        elif self.take_word("function", "%simple function"):
            self._function(at)
        else:
            word = self.take_name() or ("", "this")
            raise self.unsupported(f"`declare {word[1]}`", at)

    def _variable(self) -> None:
        """`declare variable $x := value`, after the word `variable`."""
        start = self.skip()
        variable = self.need_variable()
        type_at = self.skip()
        type_ = self.sequence_type() if self.take_word("as") else None
        written = self.text[type_at : self.offset].removeprefix("as").strip()
        if self.take_word("external"):
            self.declared.append(External(variable, Path(Root(start), (), start), start))
            has_default = self.take(":=") is not None
            if has_default:
                self.declared[-1] = Let(variable, self.single(), start)
            self.externals.append(
                ExternalVariable(variable, written or None, start, self.offset, has_default)
            )
            return
        self.need(":=")
        self.declared.append(Let(variable, _converted(self.single(), type_), start))

    def _revalidation(self, at: int) -> None:
        """`declare revalidation skip`; nodes have no types, so the other modes are refused."""
        if self._has_revalidation:
            raise QueryError(
                "XUST0003", "revalidation is declared twice", place=place_at(self.text, at)
            )
        self._has_revalidation = True
        is_next = re.match(r"[\w\s;]*declare\s+revalidation\b", self.text[self.skip() :])
        if self.take_word("strict", "lax", "skip") != "skip" and not is_next:
            raise QueryError(
                "XUST0026",
                "revalidation is not supported",
                place=place_at(self.text, at),
                advice="leave the declaration out",
            )

    def _function(self, at: int, is_updating: bool = False) -> None:
        """`declare function name($a as type, ...) as type { body }`, after the word `function`."""
        prefix, name = self.take_name() or ("", "")
        parameters: list[tuple[str, SequenceType | None]] = []
        self.need("(")
        while not self.take(")"):
            variable = self.need_variable()
            parameters.append((variable, self.sequence_type() if self.take_word("as") else None))
            if not self.sees(")"):
                self.need(",")
        result = self.sequence_type() if self.take_word("as") else None
        if self.take_word("external"):
            raise self.unsupported("an external function", at)
        if is_updating and result is not None:
            raise QueryError(
                "XUST0028",
                "an updating function has a result type",
                place=place_at(self.text, at),
                advice="leave it out",
            )
        outside, self.allows_updates = self.allows_updates, True
        body = self._block()
        self.allows_updates = outside
        written = f"{prefix}:{name}" if prefix else name
        if (written, len(parameters)) in self.functions:
            raise self.refusal(f"the function {written}() is declared twice", at)
        made = Function(written, tuple(parameters), result, body, at, is_updating)
        self.functions[written, len(parameters)] = made

    def called(
        self, prefix: str, name: str, arguments: tuple[Expression, ...], at: int
    ) -> Expression:
        """A call; the functions of the prolog have a prefix and may be declared later."""
        if prefix and prefix not in ("fn", "xs") and prefix in {"local", *self.namespaces}:
            return Call(f"{prefix}:{name}", arguments, at)
        return super().called(prefix, name, arguments, at)

    # clauses

    def flwor(self, at: int) -> Expression:
        """The clauses of a FLWOR expression, and `return`."""
        with self.nested():
            clauses = self.clauses()
            self.need_word("return")
            return Flwor(tuple(clauses), self.single(), at)

    def clauses(self) -> list[Clause]:
        """All clauses before `return`, in any order; the caller reads the rest."""
        found: list[Clause] = []
        while True:
            at = self.skip()
            match self.take_word(*_CLAUSES):
                case "for":
                    self._for(found)
                case "let":
                    self._let(found)
                case "where":
                    found.append(Where(self.single(), at))
                case "group by":
                    found.append(self._group(at))
                case "order by" | "stable order by":
                    found.append(self._order(at))
                case "count":
                    found.append(Counted(self.need_variable(), at))
                case _:
                    return found

    def _for(self, found: list[Clause]) -> None:
        """The variables of one `for`."""
        while True:
            at = self.skip()
            variable = self.need_variable()
            type_ = self.sequence_type() if self.take_word("as") else None
            allows_empty = self.take_word("allowing empty") is not None
            position = self.need_variable() if self.take_word("at") else None
            self.need_word("in")
            source = self.single()
            if type_ is not None and not _is_surely(source, type_):
                source = _converted(source, replace(type_, occurrence="*"))
            if position is None:
                found.append(For(variable, source, at, allows_empty))
            else:
                found.append(ForAt(variable, source, at, allows_empty, position))
            if not self.take(","):
                return

    def _let(self, found: list[Clause]) -> None:
        """The variables of one `let`."""
        while True:
            at = self.skip()
            variable = self.need_variable()
            type_ = self.sequence_type() if self.take_word("as") else None
            if not self.take_word("in"):  # as printed in paper 5, figure 3
                self.need(":=")
            found.append(Let(variable, _converted(self.single(), type_), at))
            if not self.take(","):
                return

    def _group(self, at: int) -> GroupBy:
        keys: list[tuple[str, Expression | None]] = []
        while True:
            variable = self.need_variable()
            if self.take_word("as"):
                self.sequence_type()
            keys.append((variable, self.single() if self.take(":=") else None))
            self._collation()
            if not self.take(","):
                return GroupBy(tuple(keys), at)

    def _order(self, at: int) -> OrderBy:
        keys: list[OrderKey] = []
        while True:
            value = self.single()
            is_descending = self.take_word("ascending", "descending") == "descending"
            empty = self.take_word("empty greatest", "empty least")
            greatest = self._is_empty_greatest if empty is None else empty == "empty greatest"
            keys.append(OrderKey(value, is_descending, greatest))
            self._collation()
            if not self.take(","):
                return OrderBy(tuple(keys), at)

    def _collation(self) -> None:
        at = self.skip()
        if self.take_word("collation") and self.need_string("a collation") != _CODEPOINT:
            raise self.unsupported("a collation", at, advice="leave it out: by code point")

    # choices

    def single(self) -> Expression:
        at = self.skip()
        found = self.match_at(_SWITCH, at)
        if found is None:
            return super().single()
        return self._typeswitch(at) if found[1] == "typeswitch" else self._switch(at)

    def _typeswitch(self, at: int) -> Expression:
        """`typeswitch`, as a chain of `if ($value instance of type)`."""
        self.take_word("typeswitch")
        value, here = self._switched(at)
        cases: list[tuple[Expression, Expression]] = []
        while self.take_word("case"):
            start = self.skip()
            variable = None
            if self.sees("$"):
                variable = self.need_variable()
                self.need_word("as")
            types = [self.sequence_type()]
            while self.take("|"):
                types.append(self.sequence_type())
            tests: list[Expression] = [Typed("instance of", here, each, start) for each in types]
            cases.append((_any_of(tests), self._case(variable, here)))
        self.need_word("default")
        variable = self.need_variable() if self.sees("$") else None
        return self._choices(value, cases, self._case(variable, here), at)

    def _switch(self, at: int) -> Expression:
        """`switch`, as a chain of `if (deep-equal($value, ...))`."""
        self.take_word("switch")
        value, here = self._switched(at)
        value = replace(value, value=Call("data", (value.value,), at))
        cases: list[tuple[Expression, Expression]] = []
        while self.sees("case"):
            tests: list[Expression] = []
            while self.take_word("case"):
                start = self.skip()
                operand = Call("data", (self.single(),), start)
                tests.append(Call("deep-equal", (here, operand), start))
            cases.append((_any_of(tests), self._case(None, here)))
        self.need_word("default")
        return self._choices(value, cases, self._case(None, here), at)

    def _switched(self, at: int) -> tuple[Let, Path]:
        """The value in parentheses that a choice is about, and a reference to it."""
        self.need("(")
        with self.nested():
            value = self.expression()
        self.need(")")
        name = f"choice~{at}"
        return Let(name, value, at), Path(Reference(name, at), (), at)

    def _case(self, variable: str | None, here: Path) -> Expression:
        self.need_word("return")
        with self.nested():
            found = self.single()
        if variable is None:
            return found
        return Flwor((Let(variable, here, here.at),), found, found.at)

    def _choices(
        self,
        value: Let,
        cases: list[tuple[Expression, Expression]],
        otherwise: Expression,
        at: int,
    ) -> Expression:
        if not cases:
            raise self.unexpected("`case`")
        if len(cases) > MOST_CASES:
            raise self.unsupported(f"a choice of more than {MOST_CASES} cases", at)
        for condition, chosen in reversed(cases):
            otherwise = Call("if", (condition, chosen, otherwise), condition.at)
        return Flwor((value,), otherwise, at)

    # expressions that can start a path

    def primary(self, at: int) -> Context | Reference | Expression | None:
        if self.match_at(TAG_START, at):
            return self.constructor()
        if self.match_at(_BLOCK, at):  # rows are a set, so neither word changes the result
            self.take_word("ordered", "unordered")
            self.need("{")
            with self.nested():
                inside = self.expression()
            self.need("}")
            return inside
        if self.match_at(r"\(#", at):
            return self._pragmas(at)
        refused = self.match_at(_REFUSED, at)
        if refused is not None:
            raise self.unsupported(f"`{refused.group()[:-1].strip()}`", at)
        for opening, closing, name in (("<!--", "-->", "comment"), ("<?", "?>", "instruction")):
            if self.text.startswith(opening, at):
                return self._markup_alone(at, opening, closing, name)
        computed = self.match_at(_COMPUTED, at)
        if computed is not None:
            return self._computed(computed, at)
        return super().primary(at)

    def _pragmas(self, at: int) -> Expression:
        """`(# name ... #) { ... }`: no pragma is known, so the value is that of the expression."""
        while self.take_match(r"\(#"):
            self.skip()
            found = self.take_name()
            if found is None:
                raise self.unexpected("the name of a pragma")
            self.expanded(*found, at, is_element=False)
            end = self.text.find("#)", self.offset)
            if end < 0:
                raise self.refusal("the pragma is not closed", at, advice="#)")
            self.offset = end + 2
        if self.match_at(r"\{\s*\}", self.skip()):
            raise self.unsupported("a pragma without an expression", at)
        return self._block()

    def _markup_alone(self, at: int, opening: str, closing: str, name: str) -> Call:
        end = self.text.find(closing, at + len(opening))
        if end < 0:
            raise self.refusal(f"`{opening}` is not closed", at, advice=closing)
        self.offset = end + len(closing)
        inside = self.text[at + len(opening) : end]
        if name == "comment":
            return Call("new-comment", (Constant(inside, at),), at)
        target, _, data = inside.partition(" ")
        return Call("new-processing-instruction", (Constant(target, at), Constant(data, at)), at)

    def _computed(self, found: re.Match[str], at: int) -> Call:
        kind, written = found.group(1) or found.group(3), found.group(2)
        arguments: list[Expression] = []
        self.offset = found.end() - 1
        if written is not None:
            arguments.append(Constant(written, at))
        elif kind in ("element", "attribute", "processing-instruction"):
            arguments.append(self._block())
        arguments.append(self._block())
        return Call(f"new-{kind}", tuple(arguments), at)

    def _block(self) -> Expression:
        self.need("{")
        at = self.skip()
        if self.take("}"):
            return Sequence((), at)
        with self.nested():
            inside = self.expression()
        self.need("}")
        return inside
