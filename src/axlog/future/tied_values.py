"""The values to try for a variable or a time that ties places of a query with `not`.

They are the strings and times of the document that the query could match, those of the query
itself, and as many new ones as the query can tell apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import count, islice, product

from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, TEXT, Tree
from axlog.errors import UndecidedError
from axlog.future.grounding import Given, constraints_of
from axlog.future.scenarios import may_bring
from axlog.future.time_turns import turning_times
from axlog.future.value_classes import samples_of
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    AnyText,
    Axis,
    Branch,
    Literal,
    Name,
    Pattern,
    PatternNode,
    TimeConstraint,
    ValueConstraint,
    Variable,
    branches_of,
)

MOST_TIMES = 5_000
"""Largest number of times to try for one node."""


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
        known = {t for each in now.values() for t in each}
        if self._is_simple:
            later = self._later(known, given, names, start)
            choices = [sorted({*now[name], *later}) for name in names]
        else:
            choices = [sorted({*now[n], *self._turning(n, known, given, start)}) for n in names]
        for chosen in product(*choices):
            yield dict(zip(names, chosen, strict=True))

    @cached_property
    def _tied(self) -> list[TimeConstraint]:
        return [c for c in constraints_of(self.pattern) if isinstance(c, TimeConstraint)]

    @cached_property
    def _is_simple(self) -> bool:
        """Whether constraints have at most two times, with coefficients 1 and -1."""
        return all(abs(f) == 1 and len(c.terms) <= 2 for c in self._tied for f, _ in c.terms)

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

    def _turning(self, name: str, known: set[int], given: Given, clock: int) -> set[int]:
        """The same for one time, of constraints with any coefficients."""
        if not any(may_bring(self.tree, self.tree.call(n)) for n in self.tree.calls().values()):
            return set()
        planes: list[tuple[dict[str, int], int]] = []
        for each in self._tied:
            left: Counter[str] = Counter()
            bound = each.bound
            for factor, of in each.terms:
                if of in given.times:
                    bound -= factor * given.times[of]
                else:
                    left[of] += factor
            planes.append((dict(left), bound))
        times = turning_times(planes, {*known, *given.times.values(), clock}, name)
        if len(times) > MOST_TIMES:
            raise UndecidedError("AX502", "a query with `not` has too many times to try")
        return {time for time in times if time >= clock}

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
