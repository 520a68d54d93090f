"""Containment of queries: is every row of one a row of the other, on every document?

`contains(q1, q2)` decides this for positive tree patterns (child, descendant, `*`, names, texts,
attributes, branches, variables as outputs and joins, `or`). Rows are compared by position and key:
strings as strings, nodes as nodes.

The method is Miklau and Suciu's canonical models (J. ACM 51, 2004), searched from the most general
one. The `or`s of q1 are distributed, which gives a union of twigs. For each twig, a model with
every choice open is matched with q2; this is the homomorphism test. If q2 matches, all documents of
that model are covered. If not, one choice is made in every possible way. A model without open
choices that q2 does not match is a witness. Chains need at most w + 1 fresh elements, where w is
the longest chain of child steps in q2 that fresh elements can match. With joins in q2, the chain
must be longer than the number of such child steps in q2, so that one link of it is not covered;
more elements can be inserted there without moving anything that is joined. Without such steps one
fresh element is enough, and the search is the homomorphism test.

The models of a path are words, which the states of a path automaton group: `path_containment.py`.

Joins of q1 need no valuations: equal labels get one fresh string, and a match of q2 then holds for
all strings. The valuations of join variables (paper 2, theorem 9) are those of q2, over the strings
of the model (`homomorphism.py`).

The verdict UNDECIDED is returned at the limit (AX502), and where element values are tested (`oid =
"17"`), no homomorphism exists, and none of a few likely documents is a witness (AX503). Rejected
with AX211: `not`, `collect`, times, comparisons other than equality with strings, other axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from axlog.errors import QueryError, UndecidedError
from axlog.future.canonical_models import Canon, Model, Sketch
from axlog.future.disjuncts import Twig, check_positive, disjunct_count, disjuncts
from axlog.future.homomorphism import Matcher
from axlog.future.path_containment import PathAutomaton, twigs_of, uncovered_chains
from axlog.future.witness import Witness, attempts, witness_from
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Kind,
    Literal,
    Name,
    Or,
    Pattern,
    PatternNode,
    ValueConstraint,
    Variable,
    Wildcard,
)
from axlog.query.query import parse_query

LIMIT = 20_000
"""Largest number of models to match: a few seconds for patterns of a dozen nodes."""


class Verdict(Enum):
    """The possible verdicts on two queries."""

    CONTAINED = "contained"
    NOT_CONTAINED = "not contained"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Containment:
    """A verdict with its reason. `bool()` of it is the answer, and raises if it is undecided."""

    verdict: Verdict
    reason: str
    witness: Witness | None = None
    models: int = field(default=0, compare=False)
    code: str = field(default="AX502", compare=False)

    def __bool__(self) -> bool:
        if self.verdict is Verdict.UNDECIDED:
            raise UndecidedError(
                self.code,
                f"containment of the queries is undecided: {self.reason}",
                advice="use `.verdict`, or pass a larger limit"
                if self.code == "AX502"
                else "use `.verdict`",
            )
        return self.verdict is Verdict.CONTAINED


def contains(q1: str | Pattern, q2: str | Pattern, *, limit: int = LIMIT) -> Containment:
    """Return whether every row of one query is a row of another, on every document.

    Parameters:
        q1: The query whose rows are compared.
        q2: The query that should have all these rows.
        limit: Models to try before the question is undecided.

    >>> contains("match /a/b", "match //b").verdict
    <Verdict.CONTAINED: 'contained'>
    >>> found = contains("match //b", "match /a/b")
    >>> found.verdict, found.witness.document
    (<Verdict.NOT_CONTAINED: 'not contained'>, '<b/>')
    """
    first, second = _pattern(q1), _pattern(q2)
    check_positive(first, "the first query", is_first=True)
    check_positive(second, "the second query")
    _check_outputs(first, second)
    return _Search(normalise(first), normalise(second), limit).verdict()


def _pattern(query: str | Pattern) -> Pattern:
    return query if isinstance(query, Pattern) else parse_query(query).only_pattern


def _check_outputs(first: Pattern, second: Pattern) -> None:
    one, other = ([_kind(output.kind) for output in p.outputs] for p in (first, second))
    if one != other:
        raise QueryError(
            "AX214",
            f"the first query returns ({', '.join(one) or 'nothing'}),"
            f" the second ({', '.join(other) or 'nothing'})",
            expected="the same kinds of outputs in the same order",
        )


def _kind(kind: Kind) -> str:
    return "string" if kind in (Kind.VARIABLE, Kind.LABEL) else kind.value


# The search ---------------------------------------------------------------------------------------


class _LimitReached(Exception):
    """The search has matched as many models as it may."""


class _Search:
    """One question."""

    def __init__(self, first: Pattern, second: Pattern, limit: int) -> None:
        self.first = first
        self.limit = limit
        self.tried = 0
        self.models = 0
        self.inner = Matcher(first, lambda: None)
        self.outer = Matcher(second, self._count)
        self.prefix = _prefix(first, second)
        self.is_exact = not (_tests_values(first) or _tests_values(second))
        self.lengths = chain_lengths(second, bool(self.outer.joins))
        self.unclear = False
        self.path = PathAutomaton.of(second)

    def _count(self) -> None:
        self.tried += 1
        if self.tried > self.limit:
            raise _LimitReached

    def _count_set(self) -> None:
        self.models += 1
        self._count()

    def verdict(self) -> Containment:
        ways = disjunct_count(self.first)
        if ways > self.limit:
            return self._undecided(
                f"the first query has {ways:,} combinations of `or` alternatives"
            )
        any_answer = False
        by_homomorphism = True
        try:
            for disjunct in disjuncts(self.first):
                any_answer = True
                canon = Canon(disjunct, self.prefix)
                row = canon.row()
                models = self.models
                witness = self._uncovered(canon, row, {}, {})
                by_homomorphism &= self.models == models + 1
                if witness is not None:
                    reason = (
                        "the first query has a row on the witness that the second does not have"
                    )
                    return Containment(Verdict.NOT_CONTAINED, reason, witness, self.models)
        except _LimitReached:
            return self._undecided(f"more than {self.limit:,} models would have to be matched")
        if self.unclear:
            reason = "element values are tested, and no simple document is a witness"
            return Containment(Verdict.UNDECIDED, reason, None, self.models, "AX503")
        if not any_answer:
            reason = "the first query has no row on any document"
        elif by_homomorphism:
            reason = "there is a homomorphism from the second query to the first"
        else:
            matched = "canonical models" if self.path is None else "sets of canonical models"
            reason = f"the second query matches all {self.models:,} {matched}"
        return Containment(Verdict.CONTAINED, reason, None, self.models)

    def _undecided(self, reason: str) -> Containment:
        return Containment(Verdict.UNDECIDED, reason, None, self.models)

    def _uncovered(
        self,
        canon: Canon,
        row: list[str | Twig],
        chains: dict[Twig, int],
        leaves: dict[Twig, int],
    ) -> Witness | None:
        """A witness among the documents with these choices; None if q2 covers them all."""
        sketch = canon.sketch(chains, leaves)
        if self._covers(sketch, row):
            return None
        if not chains and self.path is not None and canon.chains:
            twigs = twigs_of(canon)
            if twigs is not None:
                made = uncovered_chains(canon, twigs, self.path, self._count_set)
                return None if made is None else self._witness(canon.sketch(made, leaves), row)
        for twig in canon.chains:
            if twig not in chains:
                for length in self.lengths:
                    found = self._uncovered(canon, row, {**chains, twig: length}, leaves)
                    if found is not None:
                        return found
                return None
        for twig in canon.leaves:
            if twig not in leaves:
                for is_text in (0, 1):
                    found = self._uncovered(canon, row, chains, {**leaves, twig: is_text})
                    if found is not None:
                        return found
                return None
        return self._witness(sketch, row)

    def _covers(self, sketch: Sketch, row: list[str | Twig]) -> bool:
        self.models += 1
        model = Model.of_sketch(sketch)
        shown = [value if isinstance(value, str) else model.number[value] for value in row]
        return self.outer.matches(model, shown)

    def _witness(self, sketch: Sketch, row: list[str | Twig]) -> Witness | None:
        variants = [sketch] if self.is_exact else attempts(sketch, self.prefix)
        for variant in variants:
            witness = witness_from(variant, row, self.inner, self.outer)
            if witness is not None:
                return witness
        self.unclear = True
        return None


# Chain lengths ------------------------------------------------------------------------------------


def chain_lengths(pattern: Pattern, has_joins: bool) -> list[int]:
    """The numbers of fresh elements to try on a descendant edge, the likeliest to fail first."""
    deepest = max((_levels(branch) for branch in pattern.branches), default=0)
    if deepest == 0:
        return [1]
    most = deepest + 1
    if has_joins:
        most = max(most, _free_steps(pattern.branches, False))
    return sorted(range(most + 1), key=lambda length: (length != 1, length))


def _levels(branch: Branch) -> int:
    """The longest chain of child steps that fresh elements match, in this branch or below."""
    return max(_chain(branch), max((_levels(below) for below in _below(branch)), default=0))


def _chain(branch: Branch) -> int:
    """The length of the longest such chain that starts here."""
    if isinstance(branch, Or):
        return max(_chain(below) for below in _below(branch))
    assert isinstance(branch, PatternNode)
    if not _is_free(branch):
        return 0
    longest = 1
    for below in _nodes(branch.branches):
        longest = max(longest, _chain(below) + (1 if below.axis is Axis.CHILD else 0))
    return longest


def _nodes(branches: tuple[Branch, ...]) -> Iterator[PatternNode]:
    """The pattern nodes directly below, looking through `or`s."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            yield branch
        else:
            yield from _nodes(tuple(_below(branch)))


def _below(branch: Branch) -> list[Branch]:
    if isinstance(branch, Or):
        return [below for inside in branch.alternatives for below in inside]
    assert isinstance(branch, PatternNode)
    return list(branch.branches)


def _is_free(node: PatternNode) -> bool:
    """Whether an element with a fresh label can pass the test."""
    return node.axis is not Axis.ATTRIBUTE and isinstance(node.test, Wildcard | AnyNode | Variable)


def _free_steps(branches: tuple[Branch, ...], above_is_free: bool) -> int:
    """The number of child steps with a fresh element at one or both ends."""
    steps = 0
    for node in _nodes(branches):
        is_free = _is_free(node)
        if node.axis is Axis.CHILD and (is_free or above_is_free):
            steps += 1
        steps += _free_steps(node.branches, is_free)
    return steps


def _tests_values(pattern: Pattern) -> bool:
    """Whether the string value of an element matters; that of a text or attribute is its label."""
    uses = Matcher(pattern, lambda: None).uses
    shown = {output.of for output in pattern.outputs}
    for node in pattern.nodes():
        if node.axis is Axis.ATTRIBUTE or isinstance(node.test, Literal | AnyText):
            continue
        for comparison in node.comparisons:
            operand = comparison.operand
            if isinstance(operand, str) or pattern.where:
                return True
            if isinstance(operand, Variable) and (uses[operand.name] > 1 or operand.name in shown):
                return True
    return False


def _prefix(*patterns: Pattern) -> str:
    """A name that is no prefix of any string in the patterns."""
    strings: set[str] = set()
    for pattern in patterns:
        for node in pattern.nodes():
            if isinstance(node.test, Name):
                strings.add(node.test.label)
            if isinstance(node.test, Literal):
                strings.add(node.test.text)
            strings |= {c.operand for c in node.comparisons if isinstance(c.operand, str)}
        for constraint in pattern.where:
            if isinstance(constraint, ValueConstraint) and isinstance(constraint.right, str):
                strings.add(constraint.right)
    prefix = "z"
    while any(string.startswith(prefix) for string in strings):
        prefix += "z"
    return prefix
