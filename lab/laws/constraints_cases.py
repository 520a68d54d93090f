"""Cases for the law of constraints: joins with constraints over several streams.

A case has one to three parts, each fed by a stream, linear constraints over their times (any
coefficients, up to three times in one), constraints that fix values, and messages, clocks and ends.
Some of the streams declare that their messages may contain calls, and some messages contain one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from axlog.errors import QueryError
from axlog.query.native import parse_pattern

_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}" calls="{}"/>'
_OPERATORS = ("<=", "<=", ">=", "<", ">", "=", "=", "!=")
_BROUGHT = ("1", "2")
CALLS = "calls"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a join: an element, optionally an inner element, optionally a value."""

    label: str
    time: str
    inner: str | None = None  # the name of a second node's time
    variable: str | None = None
    place: str | None = None  # the element that its stream feeds; None: the root

    @property
    def names(self) -> tuple[str, ...]:
        return (self.time,) if self.inner is None else (self.time, self.inner)

    def __str__(self) -> str:
        place = "" if self.place is None else f"{self.place}/"
        inner = "" if self.inner is None else f"[c#{self.inner}]"
        value = "" if self.variable is None else f"/k/${self.variable}"
        return f"[{place}{self.label}#{self.time}{inner}{value}]"

    def message(self, value: str) -> str:
        """A message that inserts one binding of it."""
        inner = "" if self.inner is None else "<c/>"
        return f"<{self.label}>{inner}<k>{value}</k></{self.label}>"


@dataclass(frozen=True, slots=True)
class Linear:
    """A constraint over times."""

    terms: tuple[tuple[int, str], ...]
    operator: str
    bound: int

    def __str__(self) -> str:
        left = " + ".join(f"{factor}*{name}" for factor, name in self.terms)
        return f"{left} {self.operator} {self.bound}us".replace("+ -", "- ")


@dataclass(frozen=True, slots=True)
class Pin:
    """A constraint over values: with a constant or with another variable."""

    left: str
    operator: str
    right: str

    def __str__(self) -> str:
        right = self.right if self.right.startswith("$") else f'"{self.right}"'
        return f"${self.left} {self.operator} {right}"


@dataclass(frozen=True, slots=True)
class Step:
    """A message of a part, the end of its stream, or (without a part) the clock."""

    at: int
    part: int | None = None
    value: str | None = None  # None: the end; CALLS: a call, in an element outside all parts


@dataclass(frozen=True, slots=True)
class ConstraintsCase:
    """One case; its `str` is enough to run it again."""

    parts: tuple[Part, ...]
    where: tuple[Linear | Pin, ...]
    shown: tuple[str, ...]
    steps: tuple[Step, ...]
    options: tuple[tuple[str, str], ...] = ()
    calling: tuple[tuple[str, int], ...] = ()  # number of calls in messages, by stream

    @property
    def query(self) -> str:
        where = " and ".join(map(str, self.where))
        query = "match /r" + "".join(map(str, self.parts))
        query += f" where {where}" if where else ""
        return query + (f" return {', '.join(self.shown)}" if self.shown else "")

    @property
    def document(self) -> str:
        if self.parts[0].place is None:
            return f"<r>{self._call(0)}</r>"
        inside = [f"<{p.place}>{self._call(n)}</{p.place}>" for n, p in enumerate(self.parts)]
        return f"<r>{''.join(inside)}</r>"

    def _call(self, part: int) -> str:
        return _CALL.format(self.stream(part), self.calls(self.stream(part)))

    def stream(self, part: int) -> str:
        return self.parts[part].place or "s"

    def calls(self, stream: str) -> int:
        """The number of calls that the messages of a stream may contain."""
        return dict(self.calling).get(stream, 0)

    def message(self, number: int) -> str:
        """The message of a step."""
        step = self.steps[number]
        assert step.part is not None
        assert step.value is not None
        if step.value == CALLS:
            return f"<z>{_CALL.format(f'n{number}', 0)}</z>"
        return self.parts[step.part].message(step.value)


# Cases --------------------------------------------------------------------------------------------


def make_constraints_case(random: Random) -> ConstraintsCase:
    """A random case."""
    is_apart = random.random() < 0.7
    parts: list[Part] = []
    for number in range(random.choice((1, 2, 2, 2, 2, 3))):
        has_inner = random.random() < 0.15 and not any(p.inner for p in parts)
        variable = random.choice("xxy") if random.random() < 0.55 else None
        parts.append(
            Part(
                "abd"[number],
                f"t{number + 1}",
                "t4" if has_inner else None,
                variable,
                "pqe"[number] if is_apart else None,
            )
        )
    names = [name for part in parts for name in part.names]
    variables = sorted({part.variable for part in parts if part.variable is not None})
    count = random.choice((0, 1, 1, 1, 2))
    where: list[Linear | Pin] = [_linear(random, names, 4 - count) for _ in range(count)]
    if variables and random.random() < 0.6:
        where.append(_pin(random, variables))
    shown = [f"${v}" for v in variables if random.random() < 0.6]
    shown += [f"{name}.time" for name in names if random.random() < 0.25]
    options = {
        "cache": random.choice(("memory", "disk")),
        "keep": random.choice(("all", "all", "needed")),
        "never": random.choice(("all", "kept")),
        "collect": random.choice(("state", "state", "off", "auto")),
    }
    steps = tuple(_steps(random, len(parts), is_apart))
    case = ConstraintsCase(
        tuple(parts), tuple(where), tuple(shown[:3]), steps, tuple(options.items())
    )
    return _with_calls(random, case)


def _linear(random: Random, names: list[str], most: int) -> Linear:
    """A constraint with coefficients up to a limit that keeps solutions near."""
    size = min(len(names), random.choice((1, 2, 2, 2, 3)))
    factors = [f for f in range(-most, most + 1) if f]
    if random.random() < 0.3:
        factors = [-1, 1]
    terms = tuple((random.choice(factors), name) for name in random.sample(names, size))
    return Linear(terms, random.choice(_OPERATORS), random.randint(-4, 3 * most))


def _pin(random: Random, variables: list[str]) -> Pin:
    operator = random.choice(("=", "=", "=", "!="))
    if len(variables) == 2 and random.random() < 0.5:
        return Pin("x", operator, "$y")
    return Pin(random.choice(variables), operator, random.choice(_BROUGHT))


def _steps(random: Random, parts: int, is_apart: bool) -> Iterator[Step]:
    time = 0
    is_open = set(range(parts))
    for _ in range(random.choice((0, 1, 2, 2, 3, 4))):
        time += random.choice((0, 0, 1, 1, 2))
        pick = random.random()
        if pick < 0.15 or not is_open:
            yield Step(time)
        elif pick < 0.25:
            part = random.choice(sorted(is_open))
            is_open -= {part} if is_apart else is_open
            yield Step(time, part)
        else:
            yield Step(time, random.choice(sorted(is_open)), random.choice(_BROUGHT))


def _with_calls(random: Random, case: ConstraintsCase) -> ConstraintsCase:
    """The case with streams that may insert calls, and maybe a message that contains one."""
    streams = dict.fromkeys(case.stream(part) for part in range(len(case.parts)))
    calling = {stream: random.choice((0, 0, 1, 1, 9)) for stream in streams}
    case = replace(case, calling=tuple((s, most) for s, most in calling.items() if most))
    inner = [n for n, part in enumerate(case.parts) if part.inner is not None]
    if not inner or not calling[case.stream(inner[0])] or random.random() < 0.4:
        return case
    if random.random() < 0.5:  # data from calls only, or from messages without calls only
        tied = Linear(((1, "t4"), (-1, case.parts[inner[0]].time)), random.choice(_OPERATORS), 1)
        case = replace(case, where=(tied, *case.where[1:]))
    ends = (n for n, step in enumerate(case.steps) if step.part is not None and step.value is None)
    at = random.randint(0, next(ends, len(case.steps)))
    time = case.steps[at - 1].at if at else 0
    steps = (*case.steps[:at], Step(time, inner[0], CALLS), *case.steps[at:])
    return replace(case, steps=steps)


def smaller_constraints(case: ConstraintsCase) -> Iterator[ConstraintsCase]:
    """Cases with fewer steps, constraints, columns, parts and streams with calls."""
    for smaller in _cuts(case):
        try:
            parse_pattern(smaller.query)
        except QueryError:
            continue
        yield smaller


def _cuts(case: ConstraintsCase) -> Iterator[ConstraintsCase]:
    for number in range(len(case.steps)):
        yield replace(case, steps=case.steps[:number] + case.steps[number + 1 :])
    for number in range(len(case.where)):
        yield replace(case, where=case.where[:number] + case.where[number + 1 :])
    for number in range(len(case.shown)):
        yield replace(case, shown=case.shown[:number] + case.shown[number + 1 :])
    called = {case.stream(s.part) for s in case.steps if s.part is not None and s.value == CALLS}
    for number, (stream, _) in enumerate(case.calling):
        if stream not in called:
            yield replace(case, calling=case.calling[:number] + case.calling[number + 1 :])
    for number, part in enumerate(case.parts):
        if part.variable is not None:
            parts = (*case.parts[:number], replace(part, variable=None), *case.parts[number + 1 :])
            yield replace(case, parts=parts)
    last = len(case.parts) - 1
    if last:
        steps = tuple(step for step in case.steps if step.part != last)
        yield replace(case, parts=case.parts[:last], steps=steps)
