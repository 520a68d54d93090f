"""Questions about the future rows of a join as generated functions.

The walk of `join_outlook.py` takes the parts of a join in an order that depends only on which
columns have known values, so one function answers all questions about the same columns:

    ask(value of each known column) -> whether some way agrees with them, and is possible

The walk is the definition. The function makes the same look-ups in the same order; the conditions
of the last step of a way (keys, texts, `not`s, times) are written where they are needed, and bounds
between times that no row gives are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from axlog.evaluate.generated_code import function_of
from axlog.future.join_inputs import FAR, JoinInputs
from axlog.future.search_budget import spend
from axlog.query.compile import Column
from axlog.views.operators.table import Positions, Table

if TYPE_CHECKING:
    from axlog.views.counting.join_outlook import Guard, Watched

MOST_PARTS = 5
"""The largest number of parts: the code doubles with each."""

Ask = Callable[..., bool]
Known = Mapping[Column, str]
"""Columns with the expressions of their values."""


def can_write(inputs: JoinInputs) -> bool:
    """Whether the functions of a join are small enough."""
    return len(inputs.parts) <= MOST_PARTS


def may_come_function(
    watched: Watched, inputs: JoinInputs, guards: Sequence[Guard], columns: Sequence[Column]
) -> Ask:
    """A function of the values of columns: whether a row with these values may still come."""
    writer = _Writer(watched, inputs, guards)
    return writer.function(columns, lambda known: writer.ways(writer.everything, known, (), set()))


def holds_function(
    watched: Watched, inputs: JoinInputs, guards: Sequence[Guard], columns: Sequence[Column]
) -> Ask:
    """A function of the values of columns: whether the join has a row with these values."""
    writer = _Writer(watched, inputs, guards)
    return writer.function(columns, lambda known: writer.joined(writer.everything, known))


def next_part(
    parts: Sequence[int], known: Container[Column], at: Sequence[Iterable[Column]]
) -> int:
    """The part that shares most columns with what is known."""
    if len(parts) == 1:
        return parts[0]
    best, most = parts[0], -1
    for part in parts:
        shared = 0
        for column in at[part]:
            if column in known:
                shared += 1
        if shared > most:
            best, most = part, shared
    return best


def best_index(indexes: Iterable[Positions], known: Container[int]) -> Positions | None:
    """The index that uses most of the known positions; None: no index uses only these."""
    best: Positions | None = None
    for positions in indexes:
        if all(i in known for i in positions) and (best is None or len(positions) > len(best)):
            best = positions
    return best


class _Writer:
    """Writes one function."""

    def __init__(self, watched: Watched, inputs: JoinInputs, guards: Sequence[Guard]) -> None:
        self._watched, self._inputs, self._guards = watched, inputs, guards
        self.everything = tuple(range(len(inputs.parts)))
        self._columns = [part.columns for part in inputs.parts]
        self._lines: list[str] = []
        self._depth = 1
        self._names = 0
        self._scope: dict[str, object] = {
            "watched": watched, "spend": spend, "latest": inputs.latest,
        }  # fmt: skip

    def function(self, columns: Sequence[Column], body: Callable[[Known], None]) -> Ask:
        given = {column: f"v{at}" for at, column in enumerate(columns)}
        body(given)
        head = [
            f"def ask({', '.join(given.values())}):",
            " clock, live, streams = watched.clock, watched.live, watched.open",
        ]
        source = "\n".join([*head, *self._lines, " return False"])
        made: Ask = function_of("ask", source, self._scope)
        return made

    def _line(self, text: str) -> None:
        self._lines.append(" " * self._depth + text)

    def _new(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def _inside(self, conditions: Sequence[str], body: Callable[[], None]) -> None:
        """Lines under conditions that must all hold."""
        if conditions:
            self._line(f"if {' and '.join(conditions)}:")
            self._depth += 1
        start = len(self._lines)
        body()
        if len(self._lines) == start:
            self._line("pass")
        if conditions:
            self._depth -= 1

    # Ways -----------------------------------------------------------------------------------------

    def ways(
        self, left: tuple[int, ...], known: Known, future: tuple[int, ...], passed: set[str]
    ) -> None:
        """The ways that extend one: `future` are the parts that it leaves to streams.

        `passed`: the conditions that hold where the lines stand.
        """
        if not left:
            if future:
                self._leaf(known, future, passed)
            return
        part = next_part(left, known, self._columns)
        rest = tuple(each for each in left if each != part)
        arrives = list(self._arrival(part, known))
        open_ = [each for each in arrives if each not in passed]
        now = passed | set(arrives)
        self._inside(open_, lambda: self.ways(rest, known, (*future, part), now))
        if self._inputs.parts[part].is_free:
            if not open_:
                return
            self._line("else:")
            self._depth += 1
            self._rows(part, known, lambda longer: self.ways(rest, longer, future, passed))
            self._depth -= 1
            return
        self._rows(part, known, lambda longer: self.ways(rest, longer, future, passed))

    def joined(self, left: tuple[int, ...], known: Known) -> None:
        """The rows of all parts that extend a way and have the same values."""
        if not left:
            self._leaf(known, (), set())
            return
        part = next_part(left, known, self._columns)
        rest = tuple(each for each in left if each != part)
        self._rows(part, known, lambda longer: self.joined(rest, longer))

    def _rows(self, part: int, known: Known, body: Callable[[Known], None]) -> None:
        """A loop over the rows of a part that agree with known values."""
        columns = self._columns[part]
        given = {at: known[column] for at, column in enumerate(columns) if column in known}
        # Only indexes that exist: generated joins fill those that were there when they were made.
        table: Table = self._watched.live[part]
        positions, row = best_index(table.keys(), given), self._new("r")
        if positions is None:
            self._line(f"for {row} in live[{part}]:")
            positions = ()
        else:
            bucket = self._new("b")
            key = _tuple(given[at] for at in positions)
            self._line(f"{bucket} = live[{part}].index({positions!r}).get({key})")
            self._line(f"for {row} in () if {bucket} is None else {bucket} "
                       f"if type({bucket}) is dict else {bucket}[:1]:")  # fmt: skip
        self._depth += 1
        self._line("spend(1)")
        same = [f"{row}[{at}] == {value}" for at, value in given.items() if at not in positions]
        longer = {**known}
        for at, column in enumerate(columns):
            if at not in given:
                longer[column] = f"{row}[{at}]"
        self._inside(same, lambda: body(longer))
        self._depth -= 1

    # Conditions -----------------------------------------------------------------------------------

    def _arrival(self, part: int, known: Known) -> Iterator[str]:
        """Whether a stream can bring a row of a part with these values."""
        facts = self._inputs.parts[part]
        columns = facts.columns
        yield f"streams[{part}]"
        for at in sorted(facts.texts):
            if columns[at] in known:
                yield f'{known[columns[at]]} != ""'
        for at, _ in facts.keys:
            if columns[at] in known:
                yield f"not watched.has_used({part}, {at}, {known[columns[at]]})"
        if facts.time is not None and columns[facts.time] in known:
            yield f"{known[columns[facts.time]]} >= clock"

    def _leaf(self, known: Known, future: tuple[int, ...], passed: set[str]) -> None:
        """Return that a way is possible, under the conditions that are left."""
        conditions = [each for part in future for each in self._arrival(part, known)]
        for number, (columns, positions, table) in enumerate(self._guards):
            if all(column in known for column in columns):
                self._scope[f"not{number}"] = table.has
                key = _tuple(known[column] for column in columns)
                conditions.append(f"not not{number}({positions!r}, {key})")
        times = self._times(known, future)
        if times is None:
            return
        conditions += times
        left = [each for each in dict.fromkeys(conditions) if each not in passed]
        self._inside(left, lambda: self._line("return True"))

    def _times(self, known: Known, future: tuple[int, ...]) -> list[str] | None:
        """The conditions of `JoinInputs.latest`, from the clock on; None: they cannot be met."""
        found = self._inputs.bounds(known, future)
        conditions = [f"{_sum(terms, known)} <= {bound}" for terms, bound in found.checks]
        if not found.linked:
            for highs, lows in found.ranges:
                tops = [f"({b} - ({_sum(t, known)})) // {f}" for f, t, b in highs]
                lowest = [f"-(({b} - ({_sum(t, known)})) // {f})" for f, t, b in lows]
                conditions += [f"{top} >= clock" for top in tops]
                conditions += [f"{low} <= {top}" for low in lowest for top in tops]
            return conditions
        if any(highs or lows for highs, lows in found.ranges):
            times = {column for test in self._inputs.tests for column in test.columns}
            given = ", ".join(f"{c!r}: {v}" for c, v in known.items() if c in times)
            name = self._new("t")
            call = f"({name} := latest({{{given}}}, {future!r}))"
            return [*conditions, f"{call} is not None", f"{name} >= clock"]
        limit = found.latest
        if limit is None:
            return None
        return conditions if limit == FAR else [*conditions, f"{limit} >= clock"]


def _tuple(values: Iterable[str]) -> str:
    return "(" + "".join(f"{value}, " for value in values).rstrip() + ")"


def _sum(terms: Iterable[tuple[int, Column]], known: Known) -> str:
    return " + ".join(f"{factor} * {known[column]}" for factor, column in terms) or "0"
