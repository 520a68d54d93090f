"""The law of values: every evaluator compares values as the definition does.

A case has pairs of values (numbers with decimals, signs, leading zeros and exponents, dates and
times with and without zones, texts, mixed), a comparison of the two or of one with a constant, and
updates that change values. The definition is implemented here again, with `Fraction` and `datetime`
instead of `query/values.py`.

Compared after every update: the rows of a maintainer (mostly counting) and the accumulated changes;
the definitions' own evaluator; in one case of five the filter on each pair as a message, and the
query's text, parsed; and whether the analysis excludes a comparison of an unknown value that some
value satisfies. XPath's casts are among the comparisons; where the recommendation raises FORG0001,
no value passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any
from xml.sax.saxutils import quoteattr

from lxml import etree

from axlog.document.operations import ReplaceValue
from axlog.errors import QueryError, UndecidedError
from axlog.future.unknowns import is_consistent
from axlog.live.document import parse
from axlog.live.internals import maintained
from axlog.match.filters import Filter
from axlog.query.pattern import (
    Axis,
    Comparison,
    Constant,
    Kind,
    Name,
    Number,
    Output,
    Pattern,
    PatternNode,
    ValueConstraint,
    Variable,
)
from axlog.query.query import Query, parse_query
from axlog.query.values import typed
from axlog.views.change import Row
from lab.reference import rows

NUMBERS = ("0", "00", "-0.0", "1", "01", "1.0", "+1", " 1 ", "-1", "-1.50", ".5", "0.50", "5.", "9",
           "10", "99.00", "100.00", "1e1", "1E-2", "0.1", "0.10000000000000000001",
           "100000000000000000000", "100000000000000000001")  # fmt: skip
MOMENTS = ("2024-05-01", "2024-05-01Z", "2024-05-01+02:00", "2024-04-30", "2024-05-01T00:00:00",
           "2024-05-01T00:00:00.5Z", "2024-05-01T02:00:00+02:00", "2024-04-30T24:00:00Z",
           "2024-05-01T09:31:00Z", "2024-05-01T11:30:00+02:00", "2024-05-01T09:31Z", "1969-12-31",
           "0001-01-01", "2024-02-29", "2024-05-01T00:00:00.0000001Z")  # fmt: skip
TIMES = ("09:31:00Z", "11:30:00+02:00", "09:30:00", "09:31Z", "24:00:00", "00:00:00-14:00",
         "23:59:59.9")  # fmt: skip
TEXTS = ("", "a", "b2", "5 kg", "1,5", "--1", "1e", "2023-02-29", "2024-13-01", "25:00:00", "INF",
         "NaN", "2024-05-01T10:00:00+15:00", "Z", "é")  # fmt: skip
ALL = (*NUMBERS, *MOMENTS, *TIMES, *TEXTS)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
TYPES = ("xs:string", "xs:double", "xs:decimal", "xs:integer", "xs:date", "xs:dateTime", "xs:time")
MAINTAINERS = ("counting", "algebraic", "reevaluate")


@dataclass(frozen=True, slots=True)
class ValuesCase:
    """Pairs of values, a comparison, and the pairs that replace some of them."""

    pairs: tuple[tuple[str, str], ...]
    operator: str
    type: str | None  # both sides are cast to it
    constant: str | None  # replaces the second value
    is_number: bool  # the constant is written as a number
    updates: tuple[tuple[int, tuple[str, str]], ...]
    maintainer: str = "counting"
    is_wide: bool = True  # whether the text and the filter are checked, too

    @property
    def pattern(self) -> Pattern:
        """The pattern of the query."""
        operator = self.operator if self.type is None else typed(self.operator, self.type)
        if self.constant is None:
            where: tuple[ValueConstraint, ...]
            where = (ValueConstraint(Variable("a"), operator, Variable("b")),)
            compared = {"a": Comparison("=", Variable("a")), "b": Comparison("=", Variable("b"))}
        else:
            where, compared = (), {"a": Comparison(operator, self.operand)}
        inside = tuple(
            PatternNode(Axis.ATTRIBUTE, Name(name), None, (each,))
            for name, each in compared.items()
        )
        pair = PatternNode(Axis.CHILD, Name("p"), "p", (), inside)
        root = PatternNode(Axis.CHILD, Name("r"), None, (), (pair,))
        return Pattern((root,), where, (Output(Kind.ID, "p"),))

    @property
    def operand(self) -> Constant:
        """The constant."""
        assert self.constant is not None
        return Number(Decimal(self.constant)) if self.is_number else self.constant

    @property
    def query(self) -> str:
        """The query that finds the pairs."""
        end = "" if self.type is None else f" as {self.type}"
        if self.constant is None:
            where = f"where $a {self.operator} $b{end}"
            return f"match /r/p#p[@a = $a][@b = $b] {where} return p.id"
        said = self.constant.strip() if self.is_number else f'"{self.constant}"'
        return f"match /r/p#p[@a {self.operator} {said}{end}] return p.id"


def make_values_case(random: Random) -> ValuesCase:
    """A random case; half of them use one kind, so that ordered comparisons often hold."""
    from_ = random.choice((NUMBERS, MOMENTS, ALL, ALL))

    def pair() -> tuple[str, str]:
        return random.choice(from_), random.choice(from_)

    constant = random.choice(from_) if random.random() < 0.4 else None
    written = None if constant is None else constant.strip().lstrip("+")
    is_number = written is not None and written.replace(".", "").isdigit() and written[-1] != "."
    is_number = is_number and written is not None and written[0] != "." and random.random() < 0.7
    if is_number:
        constant = written
    pairs = tuple(pair() for _ in range(random.randint(1, 8)))
    count = random.choice((0, 1, 1, 2))
    updates = tuple((random.randrange(len(pairs)), pair()) for _ in range(count))
    kept = random.choices(MAINTAINERS, (7, 2, 1))[0]
    is_wide = random.random() < 0.2
    type_ = random.choice(TYPES) if random.random() < 0.3 and not is_number else None
    operator = random.choice(OPERATORS)
    return ValuesCase(pairs, operator, type_, constant, is_number, updates, kept, is_wide)


def smaller_values(case: ValuesCase) -> Iterator[ValuesCase]:
    """Reduced cases."""
    for at in range(len(case.updates)):
        yield replace(case, updates=case.updates[:at] + case.updates[at + 1 :])
    if not case.updates:
        for at in range(len(case.pairs) if len(case.pairs) > 1 else 0):
            yield replace(case, pairs=case.pairs[:at] + case.pairs[at + 1 :])


# The definition -----------------------------------------------------------------------------------


def kind_of(text: str) -> tuple[str, Any]:
    """The kind of a value, and its comparison key."""
    trimmed = text.strip(" \t\r\n")
    number = _number(trimmed, "0123456789+-.eE")
    if number is not None:
        return "number", number
    for kind, forms in (("date", ("%Y-%m-%d",)), ("moment", _TIMED), ("time", _TIMES)):
        found = _instant(trimmed, forms)
        if found is not None:
            return ("time" if kind == "time" else "moment"), found
    return "text", text


def _number(text: str, characters: str) -> Fraction | None:
    try:
        return Fraction(Decimal(text)) if text and set(text) <= set(characters) else None
    except ArithmeticError:
        return None


_TIMES = ("%H:%M:%S.%f", "%H:%M:%S", "%H:%M")
_TIMED = tuple(f"%Y-%m-%dT{form}" for form in _TIMES)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _instant(text: str, forms: tuple[str, ...]) -> Fraction | None:
    """Microseconds since 1970, or since midnight of a day; UTC without a zone."""
    text, ahead, later = _zoned(text), 0, Fraction(0)
    if text[-6:-5] in ("+", "-") and text[-3:-2] == ":":
        if text[-5:] > "14:00":
            return None
        ahead = int(text[-6] + "1") * (int(text[-5:-3]) * 60 + int(text[-2:]))
        text = text[:-6]
    if "." in text:
        text, _, digits = text.partition(".")
        if not digits.isdigit():
            return None
        later = Fraction(int(digits), 10 ** len(digits)) * 1_000_000
    if text.endswith("24:00:00") and "%H" in forms[0]:
        text, is_next = text[:-8] + "00:00:00", "%Y" in forms[0]
        later += 86_400_000_000 if is_next else 0
    for form in forms:
        try:
            found = datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        start = _EPOCH if "%Y" in form else datetime(1900, 1, 1, tzinfo=UTC)
        whole = (found - start) // timedelta(microseconds=1)
        return Fraction(whole - ahead * 60_000_000) + later
    return None


def _zoned(text: str) -> str:
    return text[:-1] + "+00:00" if text.endswith("Z") else text


def cast(text: str, type_: str) -> Any:
    """A value cast to a type; None if the cast fails."""
    trimmed = text.strip(" \t\r\n")
    seconds = trimmed.count(":") - trimmed[-6:].count(":") * (trimmed[-6:-5] in ("+", "-"))
    match type_:
        case "xs:string":
            return text
        case "xs:double":
            special = {"INF": "inf", "+INF": "inf", "-INF": "-inf", "NaN": "nan"}
            number = _number(trimmed, "0123456789+-.eE")
            return float(special.get(trimmed, "nan")) if number is None else float(trimmed)
        case "xs:decimal":
            return _number(trimmed, "0123456789+-.")
        case "xs:integer":
            return _number(trimmed, "0123456789+-")
        case "xs:date":
            return _instant(trimmed, ("%Y-%m-%d",))
        case "xs:dateTime":
            return _instant(trimmed, _TIMED) if seconds == 2 else None
        case _:
            return _instant(trimmed, _TIMES) if seconds == 2 else None


_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def passes(case: ValuesCase, pair: tuple[str, str]) -> bool:
    """Whether the query of the case finds a pair."""
    left, right = pair[0], pair[1] if case.constant is None else case.constant
    holds = _HOLDS[case.operator]
    if case.type is not None:
        one, other = cast(left, case.type), cast(right, case.type)
        return one is not None and other is not None and holds(one, other)
    if case.is_number:
        kind, value = kind_of(left)
        if kind != "number":
            return case.operator == "!="
        return holds(value, kind_of(right)[1])
    if case.operator in ("=", "!="):
        return holds(left, right)
    (kind, value), (other_kind, bound) = kind_of(left), kind_of(right)
    return kind == other_kind and holds(value, bound)


# The check ----------------------------------------------------------------------------------------


def check_values(case: ValuesCase) -> Counter[str]:
    """Compare every evaluator with the definition; return the number of comparisons by name."""
    seen: Counter[str] = Counter()
    inside = "".join(_written(pair, at) for at, pair in enumerate(case.pairs))
    document = parse(f"<r>{inside}</r>")
    query = parse_query(case.query) if case.is_wide else Query(case.pattern, "")
    _same("the pattern", query.pattern, case.pattern)
    try:
        view = document.watch(query, "v", maintainer=case.maintainer)
    except QueryError as error:
        if error.code != "AX212":
            raise
        view = document.watch(query, "v")
        seen["refused"] += 1
    pairs, found = list(case.pairs), Counter(view.rows())
    _compare(case, pairs, found, seen)
    tree = maintained(document).tree
    for at, pair in case.updates:
        pairs[at] = pair
        node = list(tree.children(tree.root))[at]
        given = {tree.label(each): each for each in tree.attributes(node)}
        changes = maintained(document).apply(
            [ReplaceValue(given["@a"], pair[0]), ReplaceValue(given["@b"], pair[1])]
        )
        for change in changes:
            found[change.row] += 1 if change.op == "insert" else -1
        _compare(case, pairs, found, seen)
    _same("the rows", Counter(view.rows()), +found)
    _same("the definition's rows", len(rows(tree, case.pattern)), (+found).total())
    if case.is_wide:
        _check_filter(case, pairs, seen)
    _check_analysis(case, pairs, seen)
    return seen


def _written(pair: tuple[str, str], at: int = 0) -> str:
    return f'<p n="{at}" a={quoteattr(pair[0])} b={quoteattr(pair[1])}/>'


def _compare(
    case: ValuesCase, pairs: list[tuple[str, str]], found: Counter[Row], seen: Counter[str]
) -> None:
    wanted = [f"1.{at}" for at, pair in enumerate(pairs, 1) if passes(case, pair)]
    shown = sorted((str(row["p.id"]) for row in (+found).elements()), key=_number_of_id)
    _same(f"{case.maintainer}: {case.query} over {pairs}", shown, wanted)
    seen["rows"] += len(wanted)


def _number_of_id(text: str) -> int:
    return int(text.partition(".")[2])


def _check_filter(case: ValuesCase, pairs: list[tuple[str, str]], seen: Counter[str]) -> None:
    made = Filter()
    try:
        made.add("q", case.query.replace("/r/p", "/p"))
    except QueryError:
        return
    for pair in pairs:
        found = made.matches(etree.fromstring(_written(pair)))
        _same(f"the filter of {case.query} on {pair}", "q" in found, passes(case, pair))
        seen["filters"] += 1


def _check_analysis(case: ValuesCase, pairs: list[tuple[str, str]], seen: Counter[str]) -> None:
    """The analysis considers every value possible that passes a comparison."""
    if case.constant is None:
        return
    operand = case.operand
    operator = case.operator if case.type is None else typed(case.operator, case.type)
    asked = [Comparison(operator, operand), Comparison("!=", "zz")]
    try:
        verdict = is_consistent(asked)
        never = is_consistent([*asked, Comparison(_OPPOSITE[operator], operand)])
    except (UndecidedError, KeyError):
        seen["undecided"] += 1
        return
    if any(passes(case, pair) for pair in pairs):
        _same(f"{asked[0]} is possible", verdict, True)
        seen["possible"] += 1
    _same(f"{asked[0]} and its opposite are possible", never, False)


_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
