"""Random typed expressions for the law of scalars, as texts.

A case has a document, variables with values (written as literals and constructor functions), and
expressions over both. All values are those of variables or nodes: an engine that knows the type of
a literal may report an error in a part that is never evaluated. Expressions are drawn by the type
that they should have, so that most of them have a value; now and then a part of another type is
drawn, so that errors are compared too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

EXPRESSIONS = 10
"""Expressions in a case."""

_INTEGERS = ("0", "1", "2", "3", "7", "10", "-1", "-3", "100", "12345678901234567890", "-250")
_DECIMALS = ("0.0", "0.5", "1.5", "2.5", "-2.5", "-0.5", "3.14159", "100.25", "0.001", "1.10",
             "99999999999.99", "0.1", "0.30", "12.345678901234567890123")  # fmt: skip
_DOUBLES = ("0e0", "-0e0", "1e0", "1.5e0", "-2.5e0", "2.5e0", "1e6", "1.2345678e7", "1e-7", "3e22",
            "0.1e0", "1e300", "1e-300", "123456.789e0", "999999e0", "1.005e0",
            "xs:double('NaN')", "xs:double('INF')", "xs:double('-INF')")  # fmt: skip
_STRINGS = (
    "",
    "a",
    "abc",
    "abcabc",
    "b c",
    " x  y ",
    "12",
    "3.5",
    "true",
    "2024-02-29",
    "P1D",
    "aXbXc",
    "ÄÖß",
    "a-b_c",
    "NaN",
    "10:00:00",
    "x\\ny",
    "12,5;7",
    "ABC",
    "é",
    "1e3",
)
_UNTYPED = ("1", "2.5", " 7 ", "abc", "", "1e2", "true", "0", "2024-01-31", "P2M", "PT90M", "-3",
            "10:30:00", "INF", "2024-05-01T10:00:00Z")  # fmt: skip
_DATES = ("2024-02-29", "2023-12-31", "2024-01-31Z", "2024-05-01+02:00", "2024-05-01-11:30",
          "0001-01-01", "-0044-03-15", "1970-01-01", "12024-02-28")  # fmt: skip
_TIMES = ("00:00:00", "10:30:15.5", "23:59:59.999", "12:00:00Z", "12:00:00+05:30", "01:00:00-14:00",
          "24:00:00")  # fmt: skip
_DATE_TIMES = (
    "2024-02-29T12:00:00",
    "2023-12-31T23:59:59.5Z",
    "2024-05-01T00:00:00+02:00",
    "1969-12-31T24:00:00",
    "2024-03-31T01:30:00-05:00",
    "-0001-06-01T00:00:00Z",
)
_DAY_TIME = ("P1D", "PT0S", "-P1DT2H", "PT36H", "P30D", "PT0.5S", "-PT1.25S", "PT1M30S", "P366D",
             "PT0.001S")  # fmt: skip
_YEAR_MONTH = ("P1Y", "P1M", "P0M", "-P13M", "P2Y6M", "P100Y", "-P1Y")
_DURATIONS = ("P1Y2M3DT4H5M6.7S", "PT0S", "-P1M", "P1D", "P12M", "P1Y")
_DIVISORS = ("1", "2", "-4", "0.5", "10", "8e0", "0", "0e0", "xs:double('NaN')", "xs:double('INF')")
"""Divisors of durations: Saxon multiplies by the rounded reciprocal, which is exact for these."""
_FACTORS = ("1", "0", "-3", "2.5", "0.1e0", "1.5e0", "-1e6", "xs:double('NaN')", "0.333", "1e-9",
            "xs:untypedAtomic('2')", "true()")  # fmt: skip
_PLACES = ("0", "1", "2", "1.5", "2.5", "-1", "3", "0e0", "2e0", "xs:double('NaN')", "100",
           "xs:double('INF')", "xs:double('-INF')", "xs:untypedAtomic('2')")  # fmt: skip
_PATTERNS = ("a", "b+", "[a-c]", "x|y", "^a", "c$", "(a)(b)?", "a.c", "\\\\s+", "[^a-z]", "(ab)+",
             "\\\\d", "a*?b", "[a-z-[b]]", "\\\\p{Lu}", "(", "a{2}", "b{1,2}c", "(?:a|b)c",
             "\\\\w+", "a{2,1}", "[]", "a**", "(a|b)*c", "\\\\.", "[\\\\-a]", "^", "$", "(a+)+$",
             "\\\\i\\\\c*", "é", "[A-Z]", ".", "X", "B", "(.)(.)", "]")  # fmt: skip
_FLAGS = ("", "", "i", "s", "m", "x", "q", "im", "z")
_REPLACEMENTS = ("", "z", "$1", "[$0]", "$2-$1", "\\\\$", "$", "\\\\", "$9", "a$11")
TYPES = ("integer", "decimal", "double", "string", "untypedAtomic", "boolean", "date", "dateTime",
         "time", "dayTimeDuration", "yearMonthDuration", "duration")  # fmt: skip
_NUMERIC = ("integer", "decimal", "double")
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "eq", "ne", "lt", "le", "gt", "ge")
_ARITHMETIC = ("+", "-", "*", "div", "idiv", "mod")


@dataclass(frozen=True, slots=True)
class ScalarsCase:
    """Values of nodes, variables with their literals, expressions, and the parts of these."""

    nodes: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    expressions: tuple[str, ...]
    parts: tuple[str, ...] = ()

    @property
    def document(self) -> str:
        """The document `$doc`."""
        inside = "".join(f'<v k="{at}">{value}</v>' for at, value in enumerate(self.nodes))
        return f'<r xmlns:p="urn:p">{inside}<p:w a="1" p:b="2">x<i>y</i><!--c--></p:w></r>'


def make_scalars_case(random: Random) -> ScalarsCase:
    """A random case."""
    writer = _Writer(random)
    nodes = tuple(random.choice(_UNTYPED) for _ in range(4))
    expressions = tuple(writer.any(random.choice((1, 2, 3))) for _ in range(EXPRESSIONS))
    parts = sorted({part for part in writer.parts if not part[1:].isalnum()}, key=len)
    return ScalarsCase(nodes, tuple(writer.variables.items()), expressions, tuple(parts))


def smaller_scalars(case: ScalarsCase) -> Iterator[ScalarsCase]:
    """One expression alone."""
    if len(case.expressions) > 1:
        for expression in case.expressions:
            yield replace(case, expressions=(expression,))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\n", "\n").replace("\\\\", "\\") + "'"


class _Writer:
    """Writes random expressions."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.variables: dict[str, str] = {}
        self.parts: set[str] = set()

    def _pick(self, *options: str) -> str:
        return self._random.choice(options)

    def literal(self, kind: str) -> str:
        """A variable with a value of a type, sometimes with none or with several."""
        roll = self._random.random()
        if roll < 0.03:
            return self._variable("()")
        if roll < 0.06:
            several = (self._written(kind) for _ in range(self._random.randint(2, 3)))
            return self._variable(f"({', '.join(several)})")
        return self._variable(self._written(kind))

    def _variable(self, value: str) -> str:
        name = f"v{len(self.variables)}"
        self.variables[name] = value
        return f"${name}"

    def _text(self, *options: str) -> str:
        return self._variable(_quoted(self._pick(*options)))

    def _written(self, kind: str) -> str:
        match kind:
            case "integer":
                return f"({self._pick(*_INTEGERS)})"
            case "decimal":
                return f"({self._pick(*_DECIMALS)})"
            case "double":
                return f"({self._pick(*_DOUBLES)})"
            case "string":
                return _quoted(self._pick(*_STRINGS))
            case "boolean":
                return self._pick("true()", "false()")
        values = {
            "untypedAtomic": _UNTYPED, "date": _DATES, "dateTime": _DATE_TIMES, "time": _TIMES,
            "dayTimeDuration": _DAY_TIME, "yearMonthDuration": _YEAR_MONTH,
            "duration": _DURATIONS,
        }[kind]  # fmt: skip
        return f"xs:{kind}({_quoted(self._pick(*values))})"

    def any(self, depth: int) -> str:
        """An expression of any type."""
        kind = self._pick(*TYPES, "number", "number", "string", "boolean", "boolean", "many")
        return self.many(depth) if kind == "many" else self.value(kind, depth)

    def value(self, kind: str, depth: int) -> str:
        """An expression of a type, mostly."""
        found = self._value(kind, depth)
        self.parts.add(found)
        return found

    def many(self, depth: int) -> str:
        """A sequence."""
        found = self._many(depth)
        self.parts.add(found)
        return found

    def _value(self, kind: str, depth: int) -> str:
        random = self._random
        if random.random() < 0.03:
            return self.any(max(depth - 1, 0))
        if depth <= 0 or random.random() < 0.15:
            return self._leaf(kind)
        if random.random() < 0.05:
            condition = self.value("boolean", depth - 1)
            first, second = self.value(kind, depth - 1), self.value(kind, depth - 1)
            return f"(if ({condition}) then {first} else {second})"
        writers = {
            "number": self._number, "integer": self._number, "decimal": self._number,
            "double": self._number, "string": self._string, "boolean": self._boolean,
            "date": self._moment, "dateTime": self._moment, "time": self._moment,
            "dayTimeDuration": self._duration, "yearMonthDuration": self._duration,
        }  # fmt: skip
        writer = writers.get(kind)
        return self._cast(kind, depth) if writer is None else writer(kind, depth - 1)

    def _leaf(self, kind: str) -> str:
        random = self._random
        if kind == "number":
            kind = self._pick(*_NUMERIC, "untypedAtomic")
        if random.random() < 0.1 and kind in ("string", "untypedAtomic", "integer", "double"):
            return f"$doc/r/v[{random.randint(1, 5)}]"
        return self.literal(kind)

    def _cast(self, kind: str, depth: int) -> str:
        # Saxon keeps the subtype of a duration that it casts to xs:duration: only texts are cast.
        inside = self._text(*_DURATIONS, "x") if kind == "duration" else self.any(depth - 1)
        if self._random.random() < 0.5:
            return f"xs:{kind}({inside})"
        return f"({inside} cast as xs:{kind}{self._pick('', '?')})"

    def _number(self, kind: str, depth: int) -> str:
        random = self._random
        roll = random.randrange(13)
        if roll < 5:
            operator = self._pick(*_ARITHMETIC)
            return f"({self.value('number', depth)} {operator} {self.value('number', depth)})"
        if roll == 5:
            name = self._pick("abs", "floor", "ceiling", "round", "round-half-to-even")
            has_places = name[0] == "r" and random.random() < 0.5
            places = f", {self._pick('0', '1', '2', '-1', '3')}" if has_places else ""
            return f"{name}({self.value('number', depth)}{places})"
        if roll == 6:
            return f"{self._pick('count', 'sum', 'avg', 'min', 'max')}({self.many(depth)})"
        if roll == 7:
            return f"string-length({self.value('string', depth)})"
        if roll == 8:
            return f"number({self.any(depth)})"
        if roll == 9:
            type_ = self._pick("date", "dateTime", "time", "duration")
            parts = {
                "date": ("year", "month", "day"), "time": ("hours", "minutes", "seconds"),
                "dateTime": ("year", "month", "day", "hours", "minutes", "seconds"),
                "duration": ("years", "months", "days", "hours", "minutes", "seconds"),
            }[type_]  # fmt: skip
            kinds = ("duration", "dayTimeDuration", "yearMonthDuration")
            inside = self._pick(*kinds) if type_ == "duration" else type_
            return f"{self._pick(*parts)}-from-{type_}({self.value(inside, depth)})"
        if roll == 10:
            return f"(-{self.value('number', depth)})"
        if roll == 11:
            length = self._pick("dayTimeDuration", "yearMonthDuration")
            return f"({self.value(length, depth)} div {self.value(length, depth)})"
        return self._cast(self._pick(*_NUMERIC), depth)

    def _string(self, kind: str, depth: int) -> str:
        random = self._random
        one = self.value("string", depth)
        match random.randrange(14):
            case 0:
                return f"concat({one}, {self.any(depth)})"
            case 1:
                return f"({self.any(depth)} || {self.any(depth)})"
            case 2:
                start, length = (self._variable(self._pick(*_PLACES)) for _ in range(2))
                more = f", {length}" if random.random() < 0.5 else ""
                return f"substring({one}, {start}{more})"
            case 3:
                name = self._pick("substring-before", "substring-after")
                return f"{name}({one}, {self.value('string', 0)})"
            case 4:
                return f"{self._pick('upper-case', 'lower-case', 'normalize-space')}({one})"
            case 5:
                return f"translate({one}, {self._text(*_STRINGS)}, {self._text(*_STRINGS)})"
            case 6:
                return f"string-join({self.many(depth)}, {self._text(*_STRINGS)})"
            case 7:
                flags = f", {self._text(*_FLAGS)}" if random.random() < 0.4 else ""
                pattern, new = self._text(*_PATTERNS), self._text(*_REPLACEMENTS)
                return f"replace({one}, {pattern}, {new}{flags})"
            case 8:
                return f"codepoints-to-string(string-to-codepoints({one}))"
            case 9:
                return f"encode-for-uri({one})"
            case 10:
                node = self._pick("$doc/r", "$doc/r/*[5]", "$doc/r/v[2]/@k", "$doc/r/*[5]/@*[2]")
                return f"string({self._pick('name', 'local-name', 'namespace-uri')}({node}))"
        return f"string({self.any(depth)})"

    def _boolean(self, kind: str, depth: int) -> str:
        random = self._random
        match random.randrange(14):
            case 0 | 1 | 2:
                same = self._pick("number", "number", *TYPES)
                other = same if random.random() < 0.8 else self._pick(*TYPES)
                operator = self._pick(*_COMPARISONS)
                return f"({self.value(same, depth)} {operator} {self.value(other, depth)})"
            case 3:
                operator = self._pick("and", "or")
                one, other = self._condition(depth), self._condition(depth)
                return f"({one} {operator} {other})"
            case 4:
                return f"not({self.any(depth)})"
            case 5:
                name = self._pick("contains", "starts-with", "ends-with")
                return f"{name}({self.value('string', depth)}, {self.value('string', 0)})"
            case 6:
                flags = f", {self._text(*_FLAGS)}" if random.random() < 0.4 else ""
                pattern = self._text(*_PATTERNS)
                return f"matches({self.value('string', depth)}, {pattern}{flags})"
            case 7:
                return f"{self._pick('empty', 'exists', 'boolean')}({self.many(depth)})"
            case 8:
                return f"({self.any(depth)} castable as xs:{self._pick(*TYPES)})"
            case 9:
                type_ = self._pick(*TYPES, "anyAtomicType")
                return f"({self.many(depth)} instance of xs:{type_}{self._pick('', '?', '*', '+')})"
            case 10:
                return f"deep-equal({self.many(depth)}, {self.many(depth)})"
            case 11:
                name = self._pick("compare", "codepoint-equal")
                return f"{name}({self.value('string', depth)}, {self.value('string', depth)})"
            case 12:
                one, other = (f"$doc/r/v[{random.randint(1, 5)}]" for _ in range(2))
                return f"({one} {self._pick('is', '<<', '>>')} {other})"
        return f"xs:boolean({self.any(depth)})"

    def _condition(self, depth: int) -> str:
        """A truth value: an error of it belongs to a part."""
        found = f"boolean({self.value('boolean', depth)})"
        self.parts.add(found)
        return found

    def _moment(self, kind: str, depth: int) -> str:
        random = self._random
        duration = self._pick("dayTimeDuration", "yearMonthDuration")
        match random.randrange(5):
            case 0 | 1:
                operator = self._pick("+", "-")
                return f"({self.value(kind, depth)} {operator} {self.value(duration, depth)})"
            case 2:
                zone = self._pick("PT2H", "-PT5H30M", "PT0S", "PT15H")
                wanted = self._variable(self._pick(f"xs:dayTimeDuration('{zone}')", "()"))
                return f"adjust-{kind}-to-timezone({self.value(kind, depth)}, {wanted})"
            case 3 if kind == "dateTime":
                return f"dateTime({self.value('date', depth)}, {self.value('time', depth)})"
        return self._cast(kind, depth)

    def _duration(self, kind: str, depth: int) -> str:
        random = self._random
        match random.randrange(6):
            case 0:
                operator = self._pick("+", "-")
                return f"({self.value(kind, depth)} {operator} {self.value(kind, depth)})"
            case 1:
                if random.random() < 0.5:
                    return (
                        f"({self.value(kind, depth)} div {self._variable(self._pick(*_DIVISORS))})"
                    )
                return f"({self.value(kind, depth)} * {self._variable(self._pick(*_FACTORS))})"
            case 2 if kind == "dayTimeDuration":
                moment = self._pick("date", "dateTime", "time")
                return f"({self.value(moment, depth)} - {self.value(moment, depth)})"
            case 3:
                name = self._pick("sum", "avg", "min", "max")
                return f"{name}(({self.value(kind, depth)}, {self.value(kind, depth)}))"
            case 4 if kind == "dayTimeDuration":
                moment = self._pick("date", "dateTime", "time")
                return f"timezone-from-{moment}({self.value(moment, depth)})"
        return self._cast(kind, depth)

    def _many(self, depth: int) -> str:
        random = self._random
        kind = self._pick(*TYPES, "number", "number", "number", "string")
        if depth <= 0 or random.random() < 0.5:
            parts = [self.value(kind, depth - 1) for _ in range(random.randint(0, 3))]
            return f"({', '.join(parts)})"
        inside = self.many(depth - 1)
        match random.randrange(12):
            case 0:
                return f"reverse({inside})"
            case 1:
                return f"distinct-values({inside})"
            case 2:
                return f"subsequence({inside}, {self.value('number', 0)})"
            case 3:
                return f"{self._pick('head', 'tail')}({inside})"
            case 4:
                return f"insert-before({inside}, {self._pick('0', '1', '2', '9')}, {self.many(0)})"
            case 5:
                return f"remove({inside}, {self._pick('0', '1', '2')})"
            case 6:
                return f"index-of({inside}, {self.value(kind, 0)})"
            case 7:
                pattern = self._text(",", "X", "a", "[bc]", "\\\\s+", "b|c")
                return f"tokenize({self.value('string', depth - 1)}, {pattern})"
            case 8:
                return f"string-to-codepoints({self.value('string', depth - 1)})"
            case 9:
                return f"({self._pick('1', '0', '-2')} to {self._pick('3', '2', '-1')})"
            case 10:
                return f"{self._pick('zero-or-one', 'exactly-one', 'one-or-more')}({inside})"
        return f"({inside} ! string(.))"
