"""Truth and possible rows of a pattern over a document with open streams.

TRUE: there is a row. POSSIBLE: there is none, but some scenario's needs can be met. NEVER: no
scenario's needs can be met. Unknown times are at or after the document's clock, so a message on one
stream can make a row of another NEVER. The deadline of a scenario is the latest clock at which it
can still come about. Streams that may deliver a limited number of trees, or all trees at one time,
are checked against everything that a scenario needs of them.

(Paper 1, section 2; paper 2, section 3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any

from axlog.document.ids import Id
from axlog.document.serializer import serialise
from axlog.document.times import Shown, plain
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.capacity import fits
from axlog.future.collected_paths import without_collected
from axlog.future.evidence import Witness, dominates, pinned_values
from axlog.future.generalized_rows import Need, Values
from axlog.future.grounding import has_not
from axlog.future.keys import has_value
from axlog.future.negation import Negation, pins_of, without_not
from axlog.future.profiles import Events
from axlog.future.references import referred
from axlog.future.replacement import check_replacement
from axlog.future.scenario_search import ScenarioSearch
from axlog.future.scenarios import Scenarios, is_limited
from axlog.future.search_budget import FIRST
from axlog.future.time_constraints import deadline, not_before, some_new
from axlog.future.type_trees import may_hold_calls
from axlog.future.typed_scenarios import TypedScenarios, typed_scenarios
from axlog.future.unknowns import ValueNeeds
from axlog.future.value_outputs import asked_by_variables
from axlog.query.columns import refuse_unknown_columns
from axlog.query.pattern import Kind, Output, Pattern
from axlog.query.truth import Truth


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """A sub-pattern that a stream must deliver."""

    stream: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Possible:
    """A row that can still appear: its known values, its needs, its deadline, and its moment.

    `View.possible` shows times as the document returns them. Here and in `Outlook.possible` they
    are microseconds.
    """

    row: Mapping[str, Any]  # None: unknown
    needs: tuple[Wanted, ...]
    deadline: Shown | None  # the latest clock at which it can appear; None: no limit
    since: Shown | None = None  # the moment at which time alone brings it; None: it needs data

    def to_dict(self) -> dict[str, Any]:
        """This row as JSON values."""
        result: dict[str, Any] = {
            "row": {column: _plain(value) for column, value in self.row.items()},
            "needs": [{"stream": w.stream, "pattern": w.pattern} for w in self.needs],
        }
        if self.deadline is not None:
            result["deadline"] = plain(self.deadline)
        if self.since is not None:
            result["since"] = plain(self.since)
        return result


def _plain(value: Any) -> Any:
    if isinstance(value, Id):
        return str(value)
    return plain(value) if isinstance(value, datetime | Fraction) else value


class Outlook:
    """Truth, possible rows and the status of single rows, for a document as it is now."""

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        *,
        together: bool = False,
        row: Mapping[str, Any] | None = None,
    ) -> None:
        """`row`: the only row that is asked about: rows with other strings are not examined."""
        self.tree = tree
        self._columns = pattern.columns  # those of collected paths included
        self._given = pattern
        self.pattern = pattern = referred(tree, without_collected(pattern))
        self._together = together
        self._pins = {
            column_of(output): (row or {})[output.column]
            for output in pattern.outputs
            if output.kind is Kind.VARIABLE and type((row or {}).get(output.column)) is str
        }
        check_replacement(tree, pattern)
        self._negation: Negation | None = None
        if has_not(pattern):
            self._negation = Negation(tree, pattern, self._is_excluded)
        if tree.types is not None and not may_hold_calls(tree, tree.types):
            self._together = True
        if self._negation is None:
            _ = self._decided

    @cached_property
    def _types(self) -> TypedScenarios | None:
        return typed_scenarios(self.tree, self.pattern)

    @cached_property
    def _decided(self) -> Truth:
        if isinstance(self._decisive, ScenarioSearch):
            return self._decisive.verdict()
        verdict = Truth.NEVER
        for values, needs in self._decisive.rows.items():
            for need in needs:
                if verdict is Truth.POSSIBLE and need.brought:
                    continue  # cannot improve the verdict
                if self._can_be_met(values, need):
                    if not need.brought:
                        return Truth.TRUE
                    verdict = Truth.POSSIBLE
        return verdict

    @cached_property
    def _without_not(self) -> Outlook:
        return Outlook(self.tree, without_not(self.pattern), together=self._together)

    def _is_excluded(self, pins: Mapping[str, str | int]) -> bool:
        """Whether even the query without its `not`s can never have a row with these values."""
        outlook = self._without_not
        wanted = [pins.get(column) for column in outlook._decisive.columns]
        return outlook._verdict(wanted, {}) is Truth.NEVER

    @cached_property
    def _scenarios(self) -> Scenarios:
        if self._negation is not None:
            return self._negation.scenarios(together=self._together)
        return Scenarios(self.tree, self.pattern, together=self._together, pins=self._pins)

    @cached_property
    def _decisive(self) -> Scenarios:
        """Scenarios for verdicts alone: with unlimited calls, one stream is as good as another.

        If there are too many to list, they are searched for.
        """
        tree, together = self.tree, self._together
        if self._negation is not None:
            return self._scenarios
        needs_all = is_limited(tree) or tree.facts or tree.types is not None
        prune = "dominated" if needs_all else "alike"
        try:
            listed = Scenarios(
                tree, self.pattern, together=together, prune=prune, least=FIRST, pins=self._pins
            )
        except UndecidedError as error:
            if error.code != "AX502":
                raise
            return self._search
        if needs_all:
            self.__dict__.setdefault("_scenarios", listed)
        return listed

    @cached_property
    def _search(self) -> ScenarioSearch:
        return ScenarioSearch(self.tree, self.pattern, together=self._together)

    @cached_property
    def _open(self) -> list[tuple[Values, Need]]:
        """The possible scenarios; those without needs are rows."""
        met = [
            (values, need)
            for values, needs in self._scenarios.rows.items()
            for need in needs
            if self._can_be_met(values, need)
        ]
        if self._negation is not None:
            met = self._negation.open_scenarios(self._scenarios, met)
        return self._undominated(met)

    def _undominated(self, met: list[tuple[Values, Need]]) -> list[tuple[Values, Need]]:
        """Scenarios without those whose row exists, or appears with fewer needs and as late.

        Where calls are limited, scenarios keep columns that rows do not show, so these duplicates
        were not found earlier. Scenarios of a row with unknowns may concern different rows, and are
        kept. The exception: if only times are unknown and every remaining choice of times is an
        existing row, the scenario is dropped.
        """
        columns = self._scenarios.columns
        shown = [columns.index(column_of(output)) for output in self.pattern.outputs]
        by_row: dict[Values, list[Need]] = {}
        for values, need in met:
            by_row.setdefault(tuple(values[at] for at in shown), []).append(need)
        there = {row for row, needs in by_row.items() if any(not n.brought for n in needs)}
        kept: list[tuple[Values, Need]] = []
        for values, need in met:
            row = tuple(values[at] for at in shown)
            if None in row:
                is_kept = not need.brought or self._may_be_new(row, need, there)
            else:
                is_kept = not any(dominates(other, need) for other in by_row[row])
                is_kept = is_kept and not self._is_there_with_not(columns, values, shown)
            if is_kept:
                kept.append((values, need))
        return kept

    def _may_be_new(self, row: Values, need: Need, there: set[Values]) -> bool:
        """Whether a scenario can yield a row that does not exist yet."""
        outputs, negation = self.pattern.outputs, self._negation
        unknown = [output for output, v in zip(outputs, row, strict=True) if v is None]
        if any(output.kind is not Kind.TIME for output in unknown):
            return True  # other unknowns have infinitely many values
        if not there and negation is None:
            return True

        def is_there(times: tuple[int, ...]) -> bool:
            left = iter(times)
            shown = tuple(next(left) if value is None else value for value in row)
            if negation is None:
                return shown in there
            return negation.is_there(dict(zip(map(column_of, outputs), shown, strict=True)))

        clock = self.tree.clock
        times = [*need.times, *(not_before(name, clock) for name in need.unknown_times)]
        return some_new(times, [output.of for output in unknown], clock, is_there)

    def _is_there_with_not(
        self, columns: tuple[str, ...], values: Values, shown: Iterable[int]
    ) -> bool:
        pins = {columns[at]: value for at in shown if (value := values[at]) is not None}
        return self._negation is not None and self._negation.is_there(pins)

    def _can_be_met(self, values: Values, need: Need) -> bool:
        columns = self._decisive.columns
        return (
            not self._decisive.is_repeated(columns, values, need)
            and fits(self.tree, columns, values, need, self._together)
            and (self._types is None or self._types.allow(columns, values, need))
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the values of scenarios."""
        return self._scenarios.columns

    def met(self) -> list[tuple[Values, Need]]:
        """The scenarios that can come about, and the rows that exist as those without needs."""
        return [
            (values, need)
            for values, needs in self._scenarios.rows.items()
            for need in needs
            if self.can_be_met(values, need)
        ]

    def can_be_met(self, values: Values, need: Need) -> bool:
        """Whether a scenario can come about with these values."""
        columns = self._scenarios.columns
        return (
            not self._scenarios.is_repeated(columns, values, need)
            and fits(self.tree, columns, values, need, self._together)
            and (self._types is None or self._types.allow(columns, values, need))
        )

    def witness(self) -> Witness | None:
        """The scenario that is likely to last longest: without a deadline, and with few streams.

        None if there is none, with `not`, with types, and if every scenario already holds a key's
        value.
        """
        if self._negation is not None or self._types is not None:
            return None
        if isinstance(self._decisive, ScenarioSearch):
            one = self._decisive.find()
            return None if one is None else Witness.of(self.tree, one.columns, one.values, one.need)
        columns = self._decisive.columns
        found = [
            (values, need)
            for values, needs in self._decisive.rows.items()
            for need in needs
            if not has_value(need.new, dict(zip(columns, values, strict=True)), need.values)
        ]
        found.sort(key=lambda one: (bool(one[1].times), len(one[1].brought)))
        best: Witness | None = None
        for values, need in found:
            if need.times and best is not None and best.until is None:
                break
            until = deadline(need.times, need.unknown_times) if need.times else None
            if best is None or (best.until is not None and (until is None or until > best.until)):
                best = self._as_witness(values, need) or best
        return best

    def _as_witness(self, values: Values, need: Need) -> Witness | None:
        try:
            if not self._can_be_met(values, need):
                return None
        except UndecidedError:  # undecided for this scenario; another one gave the verdict
            return None
        return Witness.of(self.tree, self._decisive.columns, values, need)

    @property
    def truth(self) -> Truth:
        """The truth of a Boolean pattern; with outputs, of there being some row."""
        return self._decided if self._negation is None else self._negation.truth

    def possible(self) -> list[Possible]:
        """The possible rows that no other scenario dominates, in the order of their values.

        If there are too many ways in which rows can appear, each row is listed once, with the way
        that stays open longest.
        """
        try:
            listed = self._open
        except UndecidedError as error:
            if error.code != "AX502" or self._negation is not None:
                raise
            return possible_rows(self._columns, self._searched_rows())
        ways: list[tuple[tuple[Any, ...], Iterable[Wanted], int | None]] = []
        for values, need in listed:
            if not need.brought and self._negation is None:
                continue  # an existing row
            row = self._row(self._scenarios.columns, values)
            needs = [Wanted(stream, str(relation.node)) for relation, stream in need.brought]
            until = self.deadline(values, need)
            ways.append((row, needs, until))
        return possible_rows(self._columns, ways)

    def _searched_rows(
        self,
    ) -> Iterator[tuple[tuple[Any, ...], Iterable[Wanted], int | None]]:
        outputs = [column_of(output) for output in self.pattern.outputs]
        for found, until in self._search.possible(outputs):
            needs = [Wanted(stream, str(relation.node)) for relation, stream in found.need.brought]
            yield self._row(found.columns, found.values), needs, until

    def _row(self, columns: tuple[str, ...], values: Values) -> tuple[Any, ...]:
        """The values that a scenario's row shows; None for collected paths."""
        found = row_of(self.tree, self.pattern, columns, values)
        return tuple(found.get(column) for column in self._columns)

    def deadline(self, values: Values, need: Need) -> int | None:
        """The latest clock at which a scenario can come about."""
        if self._negation is None:
            return deadline(need.times, need.unknown_times)
        pins = pins_of(self._scenarios.columns, values)
        own = frozenset(stream for _, stream in need.brought)
        among = own if self._negation.may_come(pins, own) else None
        return self._negation.lasts(pins, need, among)

    def status(self, row: Mapping[str, Any]) -> Truth:
        """The truth of one row. Columns left out may have any value."""
        wanted = self._wanted(row)
        if self._negation is not None:
            asked = asked_by_variables(self._given, row)
            if asked is not None:
                return Outlook(self.tree, asked[0], together=self._together).status(asked[1])
            found = self._status_with_not(row, wanted)
        else:
            found = self._verdict(wanted, row)
        hidden = {c for c, value in row.items() if value is not None} - {*self.pattern.columns}
        if hidden and found is not Truth.NEVER:
            raise UndecidedError(
                "AX503",
                f"whether {min(hidden)}, a collected path, comes to have this value is not decided",
                advice="leave the column out",
            )
        return found

    def ways(self, row: Mapping[str, Any]) -> list[Possible]:
        """The scenarios in which a row with these values comes about."""
        scenarios, wanted = self._scenarios, self._wanted(row)
        found: list[tuple[tuple[Any, ...], Iterable[Wanted], int | None]] = []
        for values, needs in scenarios.rows.items():
            pinned = pinned_values(scenarios.columns, values, wanted)
            for need in needs if pinned is not None else ():
                if pinned is not None and need.brought and self._can_be_met(pinned, need):
                    shown = self._row(scenarios.columns, pinned)
                    brought = [Wanted(stream, str(each.node)) for each, stream in need.brought]
                    until = self.deadline(pinned, need)
                    found.append((shown, brought, until))
        return possible_rows(self._columns, found)

    def bindings(self) -> dict[Values, dict[str, Any]]:
        """The possible rows by their bindings: nodes as handles, not as shown."""
        columns = self._scenarios.columns
        at = [columns.index(column_of(output)) for output in self.pattern.outputs]
        return {
            tuple(values[i] for i in at): dict(
                zip(self._columns, self._row(columns, values), strict=True)
            )
            for values, need in self._open
            if need.brought or self._negation is not None
        }

    def generalised(self) -> list[tuple[dict[str, Any], ValueNeeds]]:
        """The rows that may still come: known values as shown, and conditions on unknown ones.

        Conditions are those on labels and variables, by the columns of the row.
        """
        columns = self._scenarios.columns
        strings = {
            column_of(output): output.column
            for output in self.pattern.outputs
            if output.kind in (Kind.VARIABLE, Kind.LABEL)
        }
        found: dict[tuple[tuple[Any, ...], ValueNeeds], None] = {}
        for values, need in self._open:
            if need.brought or self._negation is not None:
                known = dict(zip(columns, values, strict=True))
                needs = need.values.projected(strings, known)
                found[self._row(columns, values), needs] = None
        return [(dict(zip(self._columns, row, strict=True)), needs) for row, needs in found]

    def truth_of(self, binding: Values) -> Truth:
        """The truth of one row, given by its binding (`bindings`)."""
        outputs = self.pattern.outputs
        known = {column_of(o): value for o, value in zip(outputs, binding, strict=True)}
        wanted = [known.get(column) for column in self._decisive.columns]
        if self._negation is not None:
            return self._status_with_not({}, wanted)
        return self._verdict(wanted, {})

    def _verdict(self, wanted: list[str | int | None], row: Mapping[str, Any]) -> Truth:
        verdict = Truth.NEVER
        if isinstance(self._decisive, ScenarioSearch):
            kinds = {o.kind for o in self.pattern.outputs if row.get(o.column) is not None}
            if kinds & {Kind.VAL, Kind.CONT}:
                raise UndecidedError("AX502", "there are too many ways in which rows can appear")
            return self._decisive.verdict(pins_of(self._decisive.columns, tuple(wanted)))
        for values, needs in self._decisive.rows.items():
            pinned = pinned_values(self._decisive.columns, values, wanted)
            if pinned is None:
                continue
            for need in needs:
                if self._can_be_met(pinned, need) and self._shows(row, pinned):
                    if not need.brought:
                        return Truth.TRUE
                    verdict = Truth.POSSIBLE
        return verdict

    def _status_with_not(self, row: Mapping[str, Any], wanted: Iterable[str | int | None]) -> Truth:
        assert self._negation is not None
        for output in self.pattern.outputs:
            if output.kind in (Kind.VAL, Kind.CONT) and row.get(output.column) is not None:
                raise UndecidedError(
                    "AX503",
                    f"the status of a row by its {output.column} is not decided beside `not`",
                )
        pins = pins_of(self._scenarios.columns, tuple(wanted))
        if self._negation.is_there(pins):
            return Truth.TRUE
        return Truth.POSSIBLE if self._negation.may_come(pins) else Truth.NEVER

    def future(self, row: Mapping[str, Any]) -> Events | None:
        """Events after which a row of a query with `not` exists; None if nothing can bring it."""
        assert self._negation is not None
        return self._negation.future(pins_of(self._decisive.columns, tuple(self._wanted(row))))

    def end(self, row: Mapping[str, Any]) -> Events | None:
        """Events after which a row of a query with `not` does not exist; None if none end it."""
        assert self._negation is not None
        return self._negation.end(pins_of(self._decisive.columns, tuple(self._wanted(row))))

    def _wanted(self, row: Mapping[str, Any]) -> list[str | int | None]:
        """The values of a row, by the columns of the program."""
        refuse_unknown_columns(self._columns, row)
        found: dict[str, str | int | None] = {}
        for output in self.pattern.outputs:
            if output.column in row:
                found[column_of(output)] = _as_value(self.tree, output, row[output.column])
        return [found.get(column) for column in self._decisive.columns]

    def _shows(self, row: Mapping[str, Any], values: Values) -> bool:
        """Whether the matched nodes have the values and contents that a row asks for."""
        for output in self.pattern.outputs:
            if output.kind not in (Kind.VAL, Kind.CONT) or row.get(output.column) is None:
                continue
            node = values[self._decisive.columns.index(column_of(output))]
            read = None if node is None else _read(self.tree, output, int(node))
            if read is None:
                raise UndecidedError(
                    "AX503",
                    f"{output.column} belongs to a node that has not arrived or may still change",
                )
            if read != row[output.column]:
                return False
        return True


def possible_rows(
    columns: tuple[str, ...], ways: Iterable[tuple[tuple[Any, ...], Iterable[Wanted], int | None]]
) -> list[Possible]:
    """The rows that have a way to come, each by its values, needs and deadline, in their order.

    Of several ways with the same needs, the latest deadline counts.
    """
    found: dict[tuple[tuple[Any, ...], tuple[Wanted, ...]], int | None] = {}
    for values, needs, until in ways:
        key = (values, tuple(sorted(set(needs))))
        if key in found and until is not None:
            known = found[key]
            until = None if known is None else max(known, until)
        found[key] = until
    listed = [
        Possible(dict(zip(columns, values, strict=True)), needs, until)
        for (values, needs), until in found.items()
    ]
    return sorted(listed, key=lambda one: [_sort_key(v) for v in one.row.values()])


def row_of(
    tree: Tree, pattern: Pattern, columns: tuple[str, ...], values: Values
) -> dict[str, Any]:
    """The row of a scenario as it is shown."""
    shown: dict[str, Any] = {}
    for output in pattern.outputs:
        value = values[columns.index(column_of(output))]
        if value is None or output.kind in (Kind.VARIABLE, Kind.TIME, Kind.LABEL):
            shown[output.column] = value
        elif output.kind is Kind.ID:
            shown[output.column] = tree.id(int(value))
        else:
            shown[output.column] = _read(tree, output, int(value))
    return shown


def _read(tree: Tree, output: Output, node: int) -> str | None:
    """The value or content of a node; None while a stream may still change it."""
    if any(node in tree.ancestors(call) for call in tree.calls().values()):
        return None
    return tree.string_value(node) if output.kind is Kind.VAL else serialise(tree, node)


def column_of(output: Output) -> str:
    """The column of the program that holds an output."""
    if output.kind is Kind.VARIABLE:
        return f"${output.of}"
    source = {Kind.LABEL: "label", Kind.TIME: "time"}.get(output.kind, "node")
    return f"{output.of}.{source}"


def _as_value(tree: Tree, output: Output, value: Any) -> str | int | None:
    if output.kind is Kind.ID and value is not None:
        return tree.find(value if isinstance(value, Id) else Id.parse(str(value)))
    return None if output.kind in (Kind.VAL, Kind.CONT) else value


def _sort_key(value: Any) -> tuple[bool, Any]:
    return (value is not None, value if value is not None else "")
