"""Axlog and exact relevance by search, where there are too many scenarios to list.

A stream is relevant if some future loses a row without its data. Scenarios that require the stream
are found one by one (`scenario_search.py`), each is tried on its most general futures
(`instances.py`), and the first that loses a row decides.

If a scenario loses nothing, its row also comes about without the stream, by some of the other
deliveries. Every scenario with these deliveries and the same values loses nothing either, so all of
them are excluded at once. Where that does not follow (times, comparisons, keys, calls with few
trees), only the scenario itself is excluded. When no scenario is left, the stream is not relevant.

Dominance is found in the same way: a scenario that another one dominates excludes all that contain
the deliveries of the other one. (Paper 1, theorems 5 and 6; paper 2, section 6, theorems 8 and 9.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from axlog.document.tree import Tree
from axlog.errors import UndecidedError, UnsupportedError
from axlog.future.instances import Instances, Sent
from axlog.future.scenario_clauses import Target
from axlog.future.scenario_search import MOST_WORK, Found, ScenarioSearch, smallest
from axlog.future.scenarios import is_limited, with_join_variables
from axlog.future.scratch_document import Scratch
from axlog.future.truth import column_of
from axlog.query.pattern import Comparison, Kind, Pattern, TimeConstraint, Variable

_NODES = (Kind.ID, Kind.VAL, Kind.CONT)
Verdict = tuple[bool | None, str | None]
"""Whether a stream is relevant, or None and the reason why that is undecided."""


class RelevanceSearch:
    """The relevance of the streams of one document for one pattern."""

    def __init__(self, tree: Tree, pattern: Pattern, limit: int, *, together: bool) -> None:
        self.tree = tree
        self.pattern = pattern
        self._limit = limit
        self._together = together
        asked = with_join_variables(pattern)
        self._search = ScenarioSearch(tree, asked, together=together)
        self._outputs = tuple(dict.fromkeys(column_of(output) for output in asked.outputs))
        self._learned: list[tuple[frozenset[str], list[int]]] = []
        shows_nodes = any(output.kind in _NODES for output in pattern.outputs)
        is_free = not is_limited(tree) and not tree.facts
        self._is_general = is_free and not shows_nodes and _is_plain(pattern)

    @cached_property
    def _instances(self) -> Instances:
        return Instances(self.tree, self.pattern, self._together)

    @cached_property
    def _scratch(self) -> Scratch:
        return Scratch(self.tree)

    # Axlog relevance ------------------------------------------------------------------------------

    def wanted(self, stream: str) -> list[str]:
        """The sub-patterns that scenarios which no other dominates require from a stream."""
        mine: dict[str, list[int]] = {}
        for literal, target in self._search.targets.items():
            if target.stream == stream:
                mine.setdefault(str(target.relation.node), []).append(literal)
        return [written for written, literals in sorted(mine.items()) if self._is_wanted(literals)]

    def _is_wanted(self, literals: list[int]) -> bool:
        """Whether a scenario that no other dominates has one of these targets."""
        search = self._search
        asked = search.new()
        search.add([-asked, *literals])
        while (found := search.find(None, [asked])) is not None:
            self._limit_work()
            while (less := self._dominating(found)) is not None:
                if not less.need.asks_no_more_than(found.need):
                    return True  # it has other conditions: an over-approximation
                if not any(each.literal in literals for each in less.targets):
                    break
                found = less
            if less is None:
                return True
            search.add([-asked, *self._clause(less, _delivered(less))])
        return False

    def _limit_work(self) -> None:
        """Give up the search for dominating scenarios past the limit."""
        if self._search.work > MOST_WORK:
            raise UndecidedError(
                "AX502",
                "the scenarios that others dominate are too many to exclude one by one",
                advice="use a query with fewer branches, or with branches that share variables",
            )

    def _dominating(self, found: Found) -> Found | None:
        """A scenario for the same row that requires a part of the deliveries of another."""
        self._limit_work()
        search = self._search
        within = search.new()
        mine = {each.literal for each in _delivered(found)}
        search.add([-within, *(-literal for literal in mine)])
        others = [
            -literal
            for literal, target in search.targets.items()
            if target.stream is not None and literal not in mine
        ]
        known = {c: v for c in self._outputs if (v := found.known[c]) is not None}
        unknown = [-search.state(c, None) for c in self._outputs if found.known[c] is None]
        return search.find(known, [within, *others, *unknown])

    # Exact relevance ------------------------------------------------------------------------------

    def relevant(self, stream: str) -> Verdict:
        """Whether leaving out the data of a stream loses a row in some future."""
        try:
            return self._relevant(stream)
        except (UndecidedError, UnsupportedError) as error:
            return None, error.message

    def _relevant(self, stream: str) -> Verdict:
        search = self._search
        mine = [literal for literal, each in search.targets.items() if each.stream == stream]
        if not mine:
            return False, None
        asked = search.new()
        search.add([-asked, *mine])
        for streams, clause in self._learned:
            if stream not in streams:
                search.add([-asked, *clause])
        self._instances.start()
        tried, forbidden = 0, False
        while (found := search.find(None, [asked])) is not None:
            used: set[Target] = set()
            for sent in self._instances.of(found.columns, found.values, found.need):
                tried += 1
                if tried > self._limit:
                    return None, f"undecided within {self._limit} instances"
                loses = self._scratch.loses(self.pattern, sent, stream)
                if loses:
                    return True, None
                forbidden |= loses is None
                if self._is_general:
                    used |= self._used(found, sent, stream)
            chosen = used if self._is_general else found.targets
            clause = self._clause(found, chosen)
            if self._is_general:  # the row comes without any stream that delivers none of these
                self._learned.append((frozenset(str(each.stream) for each in chosen), clause))
            search.add([-asked, *clause])
        if forbidden:
            return None, "a key rules out the simplest futures, and others are not tried"
        if not self._instances.is_complete:
            return None, self._instances.reason
        return False, None

    def _used(self, found: Found, sent: list[Sent], stream: str) -> set[Target]:
        """Deliveries of other streams that suffice for the row of a scenario: a smallest set."""
        pairs = sorted(found.need.brought, key=lambda pair: (pair[1], pair[0].name))
        targets = {(t.relation, t.stream): t for t in _delivered(found)}
        left = [(targets[pair], each) for pair, each in zip(pairs, sent, strict=True)]
        rows = self._scratch.rows(self.pattern, sent)
        # of equal deliveries of a stream, one is enough
        left = list({self._search.like(t): (t, s) for t, s in left if t.stream != stream}.values())

        def suffice(some: Sequence[tuple[Target, Sent]]) -> bool:
            return rows <= self._scratch.rows(self.pattern, [each for _, each in some])

        return {target for target, _ in smallest(left, suffice)}

    def _clause(self, found: Found, chosen: Iterable[Target]) -> list[int]:
        """The clause that excludes some targets, together with the values of a row."""
        search = self._search
        chosen = list(chosen)
        literals = {-search.like(each) if self._is_general else -each.literal for each in chosen}
        columns = set(self._outputs)
        for target in chosen:
            columns |= {column for column in target.known if column.startswith("$")}
        for column in columns:
            givers = [each for each in found.targets if column in each.known]
            given = {each.known[column] for each in givers} - {None}
            if found.known[column] is not None and not given:
                return [-each.literal for each in found.targets]  # its value follows from others
            if not column.startswith("$"):
                literals |= {-each.literal for each in givers}
            elif given:
                literals |= {-search.state(column, value) for value in given}
            else:
                literals.add(search.state(column, None))
        return sorted(literals)


def _delivered(found: Found) -> list[Target]:
    return [each for each in found.targets if each.stream is not None]


def _is_plain(pattern: Pattern) -> bool:
    """Whether a more special future has all rows of a more general one: only equality is tested."""
    if any(isinstance(c, TimeConstraint) or c.operator != "=" for c in pattern.where):
        return False
    compared = [c for node in pattern.nodes() for c in node.comparisons]
    return all(map(_is_equality, compared))


def _is_equality(comparison: Comparison) -> bool:
    return comparison.operator == "=" and isinstance(comparison.operand, str | Variable)
