"""Possible rows of a query with `not`, each decided exactly.

Every row of the query is also a row of the query without its `not`s, so the scenarios of that query
cover all possible rows. For each of them, `profiles.py` decides whether the row can appear, with
the values of the row put into the pattern (`grounding.py`). Tied values that the row does not show
are tried: those that the document and the pattern have, and one that neither has.

A scenario is listed if its row can appear by data from its own streams alone. A row that also needs
other streams (for a `not` inside a `not`) is listed with the needs of its scenario, unless another
listed row covers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import count, islice, product

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, TEXT, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers, holds
from axlog.future.generalized_rows import Need, Values
from axlog.future.grounding import Given, Ties, constraints_of, ground, ties_of
from axlog.future.profiles import Events, Profiles, check_covered, times_of
from axlog.future.scenarios import Scenarios, may_bring
from axlog.future.search_budget import bounded
from axlog.future.typed_absence import carried_out, is_among, valid_messages
from axlog.future.value_classes import samples_of
from axlog.query.compile import compile_pattern
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Literal,
    Name,
    Not,
    Or,
    Pattern,
    PatternNode,
    TimeConstraint,
    ValueConstraint,
    Variable,
    branches_of,
)
from axlog.query.truth import Truth

_DOCUMENT = PatternNode(Axis.SELF, AnyNode())
LIMIT = 4_000_000
"""Largest number of node profiles to compute for all rows together."""
MOST_EXAMPLES = 20
"""Largest number of futures of one row to carry out under types."""
MOST_TIMES = 5_000
"""Largest number of times to try for one node."""

Pins = Mapping[str, str | int]
"""The known values of a row, by column of the program."""


def without_not(pattern: Pattern) -> Pattern:
    """The pattern with every `not` assumed to hold."""
    whole = normalise(pattern)
    branches = tuple(_positive(whole.branches)) or (
        _DOCUMENT,
    )  # `match not(/a)` has no other branch
    return replace(whole, branches=branches)


def _positive(branches: Iterable[Branch]) -> Iterator[Branch]:
    for branch in branches:
        match branch:
            case PatternNode():
                yield replace(branch, branches=tuple(_positive(branch.branches)))
            case Or(alternatives=alternatives):
                ways = [tuple(_positive(each)) for each in alternatives]
                if all(ways):  # else one alternative has no conditions
                    yield Or(tuple(ways))
            case Not(branches=(Not(branches=inside, where=()),), where=()):
                yield from _positive(inside)
            case Not():
                continue
            case _:
                yield branch


class Negation:
    """A pattern with `not` over a document: which rows exist, and which can appear."""

    def __init__(
        self, tree: Tree, pattern: Pattern, excludes: Callable[[Pins], bool] | None = None
    ) -> None:
        """`excludes`: whether the query without its `not`s can never have such a row."""
        self.tree = tree
        self.pattern = pattern
        self.excludes = excludes
        self._spent = 0
        self._known: dict[tuple[object, ...], Events | None] = {}
        program = compile_pattern(pattern)
        if program.refusal is not None:
            raise UndecidedError("AX503", f"the analyses do not cover the query: {program.refusal}")
        self._columns = program.root.columns
        self._is_over = not any(
            may_bring(tree, call) or call.deletes != "no"
            for call in map(tree.call, tree.calls().values())
        )

    @cached_property
    def _ties(self) -> Ties:
        return ties_of(self.pattern)

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self.tree, self.pattern)

    @property
    def truth(self) -> Truth:
        """Whether some row exists, can appear, or can never appear."""
        if holds(self.tree, replace(self.pattern, outputs=())):
            return Truth.TRUE
        return Truth.POSSIBLE if self.may_come({}) else Truth.NEVER

    def scenarios(self, *, together: bool) -> Scenarios:
        """Every scenario of the pattern without `not`; dominating ones may be ruled out later."""
        return Scenarios(self.tree, without_not(self.pattern), together=together, prune="none")

    # Rows -----------------------------------------------------------------------------------------

    @cached_property
    def _present(self) -> set[Values]:
        return set(answers(self.tree, self.pattern))

    def is_there(self, pins: Pins) -> bool:
        """Whether a row with these values exists now."""
        return self._has_row(self._present, pins)

    def _has_row(self, rows: Iterable[Values], pins: Pins) -> bool:
        at = [(self._columns.index(column), value) for column, value in pins.items()]
        return any(all(row[i] == value for i, value in at) for row in rows)

    def may_come(self, pins: Pins, among: frozenset[str] | None = None) -> bool:
        """Whether a row with these values exists or can appear, by data from `among` if given."""
        return self.future(pins, among) is not None

    def future(
        self, pins: Pins, among: frozenset[str] | None = None, clock: int | None = None
    ) -> Events | None:
        """Events after which a row with these values exists; None if nothing can bring it.

        `clock`: the events are at or after this time.
        """
        if self._is_over:
            return () if self.is_there(pins) else None
        key = (frozenset(pins.items()), among, clock)
        if key not in self._known:
            try:
                with bounded(len(self.tree)):
                    find = self._future if self.tree.types is None else self._valid_future
                    self._known[key] = find(pins, among, clock)
            except UndecidedError:
                if not self._is_excluded(pins):
                    raise
                self._known[key] = None
        return self._known[key]

    def _future(self, pins: Pins, among: frozenset[str] | None, clock: int | None) -> Events | None:
        return next((events for _, events in self._futures(pins, among, clock)), None)

    def _valid_future(
        self, pins: Pins, among: frozenset[str] | None, clock: int | None
    ) -> Events | None:
        """The same under types; AX503 if no example shows it (`typed_absence.py`)."""
        is_some = False
        time = self.tree.clock if clock is None else clock
        positive = without_not(self.pattern)
        for given, events in islice(self._futures(pins, among, clock), MOST_EXAMPLES):
            is_some = True
            if carried_out(self.tree, events) is not None:
                return events
            found = valid_messages(self.tree, positive, given.strings, time)
            if found is not None and is_among(found, among):
                later = carried_out(self.tree, found)
                if later is not None and self._has_row(answers(later, self.pattern), pins):
                    return found
        if not is_some:
            return None
        raise UndecidedError(
            "AX503", "whether valid messages bring a row of this query with `not` is not decided"
        )

    def _is_excluded(self, pins: Pins) -> bool:
        """Whether the query without its `not`s can have no such row either."""
        if self.excludes is None:
            return False
        try:
            return self.excludes(pins)
        except UndecidedError:
            return False

    def end(self, pins: Pins) -> Events | None:
        """Events after which no row with these values exists; None if nothing can end them.

        The row must give all tied values: others would be a join inside a `not`.
        """
        given = Given.of(pins)
        ties = self._ties
        if set(ties.variables) - set(given.strings) or ties.open_times(given.times):
            raise UndecidedError("AX503", "the row does not show all values that tie its query")
        check_covered(self.tree, self.pattern)
        if self.tree.types is not None:
            raise UndecidedError("AX503", "what ends a row is not decided under types")
        grounded = ground(self.pattern, given)
        if grounded is None:
            return ()
        absent = Pattern((Not(grounded.pattern.branches),))
        with bounded(len(self.tree)):
            return Profiles(self.tree, replace(grounded, pattern=absent)).future()

    def _futures(
        self, pins: Pins, among: frozenset[str] | None, clock: int | None
    ) -> Iterator[tuple[Given, Events]]:
        """Events after which a row exists, with the values that they give to ties."""
        _ = self._ties  # undecidable for every document
        check_covered(self.tree, self.pattern)
        for given in self._given(pins, clock):
            self._spent += len(self.tree)
            if self._spent > LIMIT:
                raise UndecidedError("AX502", "a query with `not` has too many rows to check")
            grounded = ground(self.pattern, given)
            if grounded is not None:
                found = Profiles(self.tree, grounded, among, clock).future()
                if found is not None:
                    yield given, found

    def _given(self, pins: Pins, clock: int | None) -> Iterator[Given]:
        """Every choice of tied values that a row leaves open."""
        tree, ties = self.tree, self._ties
        given = Given.of(pins)
        times = {n: tree.time(node) for n, node in given.nodes.items() if n not in given.times}
        given = given.with_values({}, times)
        variables = [name for name in ties.variables if name not in given.strings]
        for strings in self._candidates.strings(variables):
            known = given.with_values(strings, {})
            names = ties.open_times(known.times)
            for chosen in self._candidates.times(names, known, clock):
                yield known.with_values({}, chosen)

    def deadline(self, pins: Pins, among: frozenset[str] | None = None) -> int | None:
        """The latest clock at which a row can still appear; None: it has no limit, or cannot."""
        if not any(isinstance(c, TimeConstraint) for c in constraints_of(normalise(self.pattern))):
            return None
        turns = sorted(self._turns(pins))
        if self.future(pins, among, turns[-1] + 1) is not None:
            return None
        low, high = 0, len(turns) - 1  # possible at the first of these times, which is the clock
        while low < high:
            middle = (low + high + 1) // 2
            if self.future(pins, among, turns[middle]) is not None:
                low = middle
            else:
                high = middle - 1
        return turns[low]

    def _turns(self, pins: Pins) -> set[int]:
        """The clock, and the later times around which the verdict on a row may change."""
        clock = self.tree.clock
        found = {clock}
        for given in self._given(pins, None):
            grounded = ground(self.pattern, given)
            if grounded is not None:
                found.update(times_of(grounded, clock))
        return found

    # Scenarios ------------------------------------------------------------------------------------

    def shown(self, pins: Pins) -> dict[str, str | int]:
        """The values of a scenario that its row shows."""
        return {column: value for column, value in pins.items() if column in self._columns}

    def open_scenarios(
        self, scenarios: Scenarios, met: Iterable[tuple[Values, Need]]
    ) -> list[tuple[Values, Need]]:
        """The possible scenarios that no other dominates."""
        by_row: dict[Values, list[Need]] = {}
        for values, need in met:
            by_row.setdefault(values, []).append(need)
        found: list[tuple[Values, Need]] = []
        uncertain: list[tuple[Values, Need]] = []
        for values, needs in by_row.items():
            pins = self.shown(pins_of(scenarios.columns, values))
            if not self.may_come(pins):
                continue
            own = [n for n in needs if self.may_come(pins, _streams(n))]
            if not own:
                uncertain.append((values, needs[0]))
                continue
            least = [n for n in own if not any(self._dominates(pins, o, n) for o in own)]
            found += [(values, n) for n in least if n.brought or not self.is_there(pins)]
        # a more general row covers it: its existing parts may contribute nothing
        shown = [values for values, _ in found]
        found += [(v, n) for v, n in uncertain if not any(_covers(each, v) for each in shown)]
        return found

    def _dominates(self, pins: Pins, other: Need, need: Need) -> bool:
        """Whether one scenario of a row needs less than another, and can come about as long."""
        if not other.brought < need.brought:
            return False
        late, until = (self.deadline(pins, _streams(each)) for each in (other, need))
        return late is None or (until is not None and until <= late)


def _streams(need: Need) -> frozenset[str]:
    return frozenset(stream for _, stream in need.brought)


def _covers(general: Values, values: Values) -> bool:
    return all(g is None or g == v for g, v in zip(general, values, strict=True))


def pins_of(columns: Iterable[str], values: Values) -> dict[str, str | int]:
    """The known values of a row, by column."""
    return {c: v for c, v in zip(columns, values, strict=True) if v is not None}


# Values to try ------------------------------------------------------------------------------------


class Candidates:
    """The values that a tied variable or time may have, as far as the query distinguishes them."""

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        self.tree = tree
        self.pattern = normalise(pattern)
        self._places = list(_places(self.pattern.branches, None))
        self._changing = {n for call in tree.calls().values() for n in tree.ancestors(call)}
        self._strings: dict[str, list[str]] = {}

    # Strings

    def strings(self, variables: list[str]) -> Iterator[dict[str, str]]:
        """Every choice of strings for these variables, new ones first."""
        new = self._new(len(variables))
        choices = [
            [own, *self._seen(name), *(each for each in new if each != own)]
            for own, name in zip(new, variables, strict=True)
        ]
        for chosen in product(*choices):
            yield dict(zip(variables, chosen, strict=True))

    def _new(self, number: int) -> list[str]:
        """Strings that are neither in the document nor in the pattern; short ones, to save work."""
        letters = (chr(code) for code in count(ord("A")) if chr(code).isalpha())
        return list(islice((each for each in letters if each not in self._letters), number))

    @cached_property
    def _letters(self) -> set[str]:
        tree = self.tree
        every = [tree.label(node) for node in tree.subtree(DOCUMENT_NODE) if node != DOCUMENT_NODE]
        return set("".join([*every, str(self.pattern)]))

    def _seen(self, variable: str) -> list[str]:
        """The strings that the pattern has, and those of nodes that the variable may match."""
        if variable not in self._strings:
            found = dict.fromkeys(self._constants(variable))
            for node in self.tree.subtree(DOCUMENT_NODE):
                for place, above in self._places:
                    found.update(dict.fromkeys(self._bound(variable, node, place, above)))
            self._strings[variable] = [each for each in found if each]
            if "" in found:
                self._strings[variable].append("")
        return self._strings[variable]

    def _constants(self, variable: str) -> Iterator[str]:
        """The strings of the pattern that a node which the variable matches may have as well."""
        constants = [c.operand for place, _ in self._places for c in place.comparisons
                     if not isinstance(c.operand, Variable)]  # fmt: skip
        constants += [
            constraint.right
            for constraint in constraints_of(self.pattern)
            if isinstance(constraint, ValueConstraint)
            and not isinstance(constraint.right, Variable)
        ]
        yield from (each for each in constants if isinstance(each, str))
        yield from samples_of(constants)
        mine = [way for way in self._ways if Variable(variable) in _operands(way[-1])]
        for way in self._ways:
            if any(_may_coincide(way, other) for other in mine):
                test = way[-1].test
                if isinstance(test, Literal | Name):
                    yield test.text if isinstance(test, Literal) else test.label

    @cached_property
    def _ways(self) -> list[tuple[PatternNode, ...]]:
        """The nodes from the root of the pattern to each of its nodes."""
        found: list[tuple[PatternNode, ...]] = []
        for place, above in self._places:
            before = next((w for w in reversed(found) if above is not None and w[-1] is above), ())
            found.append((*before, place))
        return found

    def _bound(
        self, variable: str, node: int, place: PatternNode, above: PatternNode | None
    ) -> Iterator[str]:
        tree = self.tree
        if not _may_match(tree, node, place) or not self._is_below(node, place, above):
            return
        if isinstance(place.test, Variable) and place.test.name == variable:
            yield tree.label(node)
        for each in place.comparisons:
            if isinstance(each.operand, Variable) and each.operand.name == variable:
                value = tree.string_value(node)
                yield value
                if node in self._changing:  # it may grow to a string that nothing else has
                    yield value + self._new(1)[0]

    def _is_below(self, node: int, place: PatternNode, above: PatternNode | None) -> bool:
        if above is None or place.axis not in (Axis.CHILD, Axis.ATTRIBUTE):
            return True
        return _may_match(self.tree, self.tree.parent(node), above)

    # Times

    def times(self, names: list[str], given: Given, clock: int | None) -> Iterator[dict[str, int]]:
        """Every choice of times for these names: those of nodes, and those of future nodes."""
        if not names:
            yield {}
            return
        start = self.tree.clock if clock is None else clock
        now = {name: self._times_of(name, given) for name in self._tied_names}
        later = self._later({t for each in now.values() for t in each}, given, names, start)
        choices = [sorted({*now[name], *later}) for name in names]
        for chosen in product(*choices):
            yield dict(zip(names, chosen, strict=True))

    @cached_property
    def _tied(self) -> list[TimeConstraint]:
        every = [c for c in constraints_of(self.pattern) if isinstance(c, TimeConstraint)]
        if any(abs(factor) != 1 or len(c.terms) > 2 for c in every for factor, _ in c.terms):
            raise UndecidedError(
                "AX503",
                "beside `not`, only sums and differences of two times are decided",
                advice="give the times in the row",
            )
        return every

    @cached_property
    def _tied_names(self) -> set[str]:
        return {name for each in self._tied for _, name in each.terms}

    def _later(self, known: set[int], given: Given, names: list[str], clock: int) -> list[int]:
        """The times from the clock on at which constraints may turn, from the known times."""
        if not any(may_bring(self.tree, self.tree.call(n)) for n in self.tree.calls().values()):
            return []
        bounds = {each.bound for each in self._tied}
        times = {*known, *given.times.values(), clock}
        for _ in names:
            turns = {t + sign * b for t in times for b in bounds for sign in (1, -1)}
            turns |= {bound - time for time in times for bound in bounds}
            times |= {turn + step for turn in turns | times for step in (-1, 0, 1)}
            if len(times) > MOST_TIMES:
                raise UndecidedError("AX502", "a query with `not` has too many times to try")
        return sorted(time for time in times if time >= clock)

    def _times_of(self, name: str, given: Given) -> set[int]:
        """The times of nodes that a pattern node with this name may match."""
        tree = self.tree
        places = [(place, above) for place, above in self._places if place.name == name]
        return {
            tree.time(node)
            for node in tree.subtree(DOCUMENT_NODE)
            for place, above in places
            if _may_match(tree, node, place)
            and self._is_below(node, place, above)
            and self._may_hold(node, place, given)
        }

    def _may_hold(self, node: int, place: PatternNode, given: Given) -> bool:
        """Whether the known strings below a pattern node are at the node, or may still come."""
        test = place.test
        if isinstance(test, Variable) and given.strings.get(test.name, self.tree.label(node)) != (
            self.tree.label(node)
        ):
            return False
        if node in self._changing:
            return True
        return all(
            any(
                _may_match(self.tree, child, branch) and self._may_hold(child, branch, given)
                for child in self.tree.chain(node)
            )
            for branch in place.branches
            if isinstance(branch, PatternNode) and branch.axis in (Axis.CHILD, Axis.ATTRIBUTE)
        )


def _places(
    branches: Iterable[Branch], above: PatternNode | None
) -> Iterator[tuple[PatternNode, PatternNode | None]]:
    """Every node of a pattern with the one above it."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            yield branch, above
            yield from _places(branch.branches, branch)
        else:
            yield from _places(branches_of(branch), above)


def _operands(node: PatternNode) -> list[object]:
    return [node.test, *(each.operand for each in node.comparisons)]


def _may_coincide(one: tuple[PatternNode, ...], other: tuple[PatternNode, ...]) -> bool:
    """Whether two pattern nodes, given by the ways to them, may match one document node."""
    (*above, last), (*beside, end) = one, other
    if last.axis not in (Axis.CHILD, Axis.ATTRIBUTE) or end.axis is not last.axis:
        return True
    tests = (last.test, end.test)
    if all(isinstance(test, Name | Literal) for test in tests) and tests[0] != tests[1]:
        return False
    if not above or not beside:
        return len(above) == len(beside)
    return _may_coincide(tuple(above), tuple(beside))


def _may_match(tree: Tree, node: int, place: PatternNode) -> bool:
    """Whether a node has the kind and the label that a pattern node asks for."""
    kind, label = tree.kind_column[node], tree.label(node)
    if place.axis is Axis.ATTRIBUTE:
        return kind == ATTRIBUTE and (
            not isinstance(place.test, Name) or label == f"@{place.test.label}"
        )
    match place.test:
        case Name(label=wanted):
            return kind == ELEMENT and label == wanted
        case Literal(text=text):
            return kind == TEXT and label == text
        case AnyText():
            return kind == TEXT
    return kind in (ELEMENT, TEXT)
