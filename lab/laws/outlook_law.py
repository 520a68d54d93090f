"""Law 4: truth, possible rows and relevance against brute force over all small futures.

    law 4   truth, the status of every row, deadlines and exact relevance equal the reference;
            relevant implies axlog relevant implies lazily relevant

A case is a tiny document with open calls, some with declared facts, a few messages that have
arrived, and one pattern. The reference tries every future within the required bound (paper 2,
theorem 2). A case whose bound is too large to try is not compared, and neither is a question that
the analysis refuses with an error. `check_outlook` returns the comparisons it made, so that a test
can check that most cases were compared.

Some streams declare that their messages may contain calls; the data of these calls arrives later.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from math import comb
from random import Random
from typing import Any

from axlog.document.ids import Id
from axlog.document.tree import DOCUMENT_NODE, NodeKind, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers
from axlog.evaluate.definition import every_branch
from axlog.future.relevance import relevance
from axlog.future.relevance_search import RelevanceSearch
from axlog.future.sat import OwnSolver
from axlog.future.scenario_search import ScenarioSearch
from axlog.future.truth import Outlook, column_of
from axlog.query.compile import compile_pattern
from axlog.query.pattern import (
    AnyText,
    Axis,
    Branch,
    Kind,
    Literal,
    Name,
    Not,
    Or,
    Pattern,
    PatternNode,
    Variable,
    branches_of,
)
from axlog.query.truth import Truth
from lab import reference
from lab.laws.fuzz_cases import Case
from lab.laws.outlook_cases import document_of, make_outlook_case
from lab.laws.outlook_declared import check_declared
from lab.laws.questions import QUESTIONS
from lab.reference import Bound
from lab.reference.bounds import (
    is_monotone,
    nodes_above_late_texts,
    nodes_between,
    shown_times_of,
)

_MOST_NODES = 3000  # of a document in which calls inserted everything
_MOST_VALUATIONS = 8_000
_MOST_FUTURES = 200
_MOST_TUPLES = 400
Seen = Counter[str]


# Cases --------------------------------------------------------------------------------------------


def make_small_case(random: Random) -> Case:
    """A case that is small enough for brute force, if one of a few is."""
    for _ in range(6):
        case = make_outlook_case(random)
        is_declared = bool(case.facts) or case.types is not None
        if is_declared or bound_for(document_of(case), case.patterns[0]) is not None:
            break
    return case


# Bounds -------------------------------------------------------------------------------------------


def bound_for(tree: Tree, pattern: Pattern) -> Bound | None:
    """A bound in which every verdict shows, or None if it is too large to try."""
    is_shared = any(tree.call(call).most is not None for call in tree.calls().values())
    wanted = [below for branch in pattern.branches for below in _below_root(branch)]
    nodes = max(1, _nodes_needed(wanted, is_shared)) + nodes_above_late_texts(tree, pattern)
    if _has_not(pattern):
        # another element may have to be between a node and the target of its // edge
        nodes += sum(node.axis is Axis.DESCENDANT for node in pattern.nodes())
    trees = sum(map(_positive, wanted))
    bound = reference.bound_of(tree, pattern, min(trees, 3), nodes)
    if is_monotone(tree, pattern, kept := replace(bound, deletions=False)):
        bound = kept  # less data makes no row possible
    if _has_not(pattern) and any(output.kind in _LABELS for output in pattern.outputs):
        # a text may be a row where an element of that name is not: every string is tested
        every = dict.fromkeys((*bound.alphabet.texts, *bound.alphabet.elements))
        bound = replace(bound, alphabet=replace(bound.alphabet, texts=tuple(every)))
    if any(output.kind is Kind.TIME for output in pattern.outputs):
        # a row that shows a time fixes it: the bound needs the times around it too
        around = {t + step for t in bound.times_from(tree.clock) for step in range(-3, 4)}
        bound = replace(bound, times=tuple(sorted(around)))
    alphabet = bound.alphabet
    texts, attributes = len(alphabet.texts), len(alphabet.attributes)
    kinds = len(alphabet.elements) + texts + texts * attributes
    if nodes > 5 or kinds**nodes > (3_000 if bound.ordered else 8_000):
        return None
    if _size(tree, bound) > _MOST_NODES:
        return None
    if not is_monotone(tree, pattern, bound) and futures_of(tree, bound) > _MOST_FUTURES:
        return None
    return bound


def _size(tree: Tree, bound: Bound) -> int:
    """The number of nodes that all calls together may insert, everything at every time."""
    times = bound.times_from(tree.clock)
    size = sum(each.size for each in bound.pool("")) * len(times) * max(1, len(tree.calls()))
    calling = [stream for stream in tree.calls() if tree.may_bring_calls(stream)]
    if calling and size <= _MOST_NODES:
        # Each tree counts once for every distribution of its elements over the times.
        if size * len(times) ** min(_deepest(bound), 3) > 4 * _MOST_NODES:
            return _MOST_NODES + 1
        for stream in calling:
            every = (part for time in times for part in bound.parts(tree, stream, time))
            size += sum(each.size for each in every)
    return size


def _deepest(bound: Bound) -> int:
    return bound.nodes_per_tree - 1


def _has_not(pattern: Pattern) -> bool:
    return any(isinstance(branch, Not) for branch in every_branch(pattern))


_LABELS = (Kind.VARIABLE, Kind.LABEL)


def _wide(pattern: Pattern) -> int:
    """The number of pattern nodes that match almost any node."""
    return sum(
        node.axis is not Axis.ATTRIBUTE
        and (node.axis is Axis.DESCENDANT or not isinstance(node.test, Name | Literal))
        for node in pattern.nodes()
    )


def futures_of(tree: Tree, bound: Bound, without: str | None = None) -> int:
    """An estimate of the number of futures within the bound."""
    count = 1
    for stream, node in tree.calls().items():
        call = tree.call(node)
        if bound.deletions and call.deletes != "no":
            count *= 2 ** sum(1 for _ in tree.children(tree.parent(node)))
        room = bound.trees_per_call
        if call.most is not None:
            room = min(room, call.most - tree.brought.get(stream, 0))
        if call.deletes == "only" or stream == without:
            room = 0
        pool = sum(len(bound.parts(tree, stream, at)) for at in bound.times_from(tree.clock))
        count *= sum(pool**k if bound.ordered else comb(pool, k) for k in range(max(room, 0) + 1))
    return count


def _below_root(branch: Branch) -> tuple[Branch, ...]:
    """The parts of a branch that messages can insert: the document's root is present."""
    is_root = isinstance(branch, PatternNode) and branch.axis is Axis.CHILD
    return tuple(branches_of(branch)) if is_root else (branch,)


def _nodes_needed(branches: Iterable[Branch], is_shared: bool, inside: bool = False) -> int:
    """The nodes of the largest tree that a message may need; siblings may arrive separately."""
    branches = list(branches)
    needed = [_nodes_of(branch, is_shared, inside) for branch in branches]
    if not needed:
        return 0
    return sum(needed) + nodes_between(branches) if inside or is_shared else max(needed)


def _nodes_of(branch: Branch, is_shared: bool, inside: bool) -> int:
    match branch:
        case PatternNode(axis=Axis.ATTRIBUTE):
            return 1
        case PatternNode():
            below = _nodes_needed(branch.branches, is_shared, True)
            is_here = branch.axis is Axis.SELF and inside
            is_text = isinstance(branch.test, Literal | AnyText | Variable)
            wrapped = not inside and branch.axis is not Axis.CHILD and is_text
            valued = 0 if isinstance(branch.test, Literal | AnyText) else len(branch.comparisons)
            return below + valued + wrapped + (not is_here)
        case Or(alternatives=alternatives):
            return max(_nodes_needed(each, is_shared, inside) for each in alternatives)
        case Not(branches=branches):  # only the content of a second `not` has to arrive
            twice = [inner for each in branches for inner in _nots(each)]
            return _nodes_needed(twice, is_shared, inside)
    return 1


def _positive(branch: Branch) -> int:
    """The number of nodes that a match may need from messages."""
    if isinstance(branch, Not):
        return sum(_positive(twice) for each in branch.branches for twice in _nots(each))
    own = isinstance(branch, PatternNode) and branch.axis is not Axis.SELF
    return own + sum(_positive(below) for below in branches_of(branch))


def _nots(branch: Branch) -> Iterator[Branch]:
    """The branches directly inside the nots of a branch."""
    for below in branches_of(branch):
        yield from branches_of(below) if isinstance(below, Not) else _nots(below)
    if isinstance(branch, Not):
        yield from branch.branches


# The law ------------------------------------------------------------------------------------------


def check_outlook(case: Case) -> Seen:
    """Compare every verdict on a case; return the number of comparisons by name."""
    seen: Seen = Counter()
    tree, (pattern,) = document_of(case), case.patterns
    if case.facts or case.types is not None:
        check_declared(tree, pattern, seen)
        return seen
    bound = bound_for(tree, pattern)
    if bound is None:
        seen["too large"] += 1
        return seen
    try:
        outlook = Outlook(tree, pattern)
        verdict = outlook.truth
    except UndecidedError as error:
        seen[f"refused {error.code}"] += 1
        return seen
    everything = _Everything(tree, pattern, bound)
    _same("the truth", verdict, everything.truth)
    seen[f"truth {verdict.value}"] += 1
    seen[QUESTIONS] += 1
    try:
        _check_rows(everything, outlook, seen)
    except UndecidedError as error:  # rows with two times, or with the value of an element
        if not _has_not(pattern):
            raise
        seen[f"rows refused {error.code}"] += 1
    if not _has_not(pattern):
        check_search(tree, pattern, everything.truth, seen)
        _check_deadline(tree, pattern, outlook, seen)
        _check_relevance(tree, pattern, bound, everything.is_small, seen)
    return seen


def check_search(tree: Tree, pattern: Pattern, wanted: Truth, seen: Seen) -> None:
    """The search for one scenario finds the same truth, with either solver."""
    try:
        search = ScenarioSearch(tree, pattern, solver=OwnSolver() if seen["tuples"] % 2 else None)
        _same("the truth by search", search.verdict(), wanted)
        seen["truth by search"] += 1
    except UndecidedError as error:
        seen[f"search refused {error.code}"] += 1


class _Everything:
    """The rows that are possible now and in any future within a bound.

    The reference evaluates them where it can try every valuation. Where a future is too large for
    that, the interpreter evaluates the rows; law 1 checks it against the reference.
    """

    def __init__(self, tree: Tree, pattern: Pattern, bound: Bound) -> None:
        self.tree, self.pattern, self.bound = tree, pattern, bound
        size = len(tree) + _size(tree, bound)
        self.is_small = size ** max(1, _wide(pattern)) <= _MOST_VALUATIONS
        self.ids = {tree.id(node) for node in tree.subtree(DOCUMENT_NODE)}
        self.present = self._rows(tree)
        self.satisfiable = {row for document in self._documents() for row in self._rows(document)}

    @property
    def truth(self) -> Truth:
        if self.present:
            return Truth.TRUE
        return Truth.POSSIBLE if self.satisfiable else Truth.NEVER

    def _documents(self) -> Iterator[Tree]:
        tree, bound = self.tree, self.bound
        if is_monotone(tree, self.pattern, bound):
            return iter([reference.saturated(tree, bound).applied_to(tree)])
        return reference.reachable(tree, bound)

    def _rows(self, document: Tree) -> set[tuple[Any, ...]]:
        """The rows of a document; the id of a future node is None."""
        if self.is_small:
            found = reference.rows(document, self.pattern).values()
            return {tuple(map(self._as_known, answer.values)) for answer in found}
        columns = compile_pattern(self.pattern).root.columns
        order = [(columns.index(column_of(output)), output) for output in self.pattern.outputs]
        return {
            tuple(
                self._as_known(document.id(int(row[at])) if output.kind is Kind.ID else row[at])
                for at, output in order
            )
            for row in answers(document, self.pattern)
        }

    def _as_known(self, value: Any) -> Any:
        return None if isinstance(value, Id) and value not in self.ids else value


def _check_rows(everything: _Everything, outlook: Outlook, seen: Seen) -> None:
    """Every tuple over the alphabet has the status that brute force finds."""
    tree, pattern, bound = everything.tree, everything.pattern, everything.bound
    satisfiable, present = everything.satisfiable, everything.present
    choices = [_values(tree, pattern, number, bound) for number in range(len(pattern.outputs))]
    shown = [one.row for one in outlook.possible()]
    for row in satisfiable - present:
        covered = any(_agree(row, tuple(one.values())) for one in shown)
        _same(f"whether a possible row covers {row}", covered, True)
    coming = satisfiable if _has_not(pattern) else satisfiable - present
    for one in shown:
        instance = any(_agree(row, tuple(one.values())) for row in coming)
        _same(f"whether the possible row {dict(one)} may come", instance, True)
    tuples = 0
    wider: _Everything | None = None
    for values in product(*choices):
        if tuples == _MOST_TUPLES:
            break
        tuples += 1
        asked = dict(zip(pattern.columns, values, strict=True))
        wanted = Truth.NEVER
        if any(_agree(one, values) for one in present):
            wanted = Truth.TRUE
        elif any(_agree(one, values) for one in satisfiable):
            wanted = Truth.POSSIBLE
        found = outlook.status(asked)
        if found is Truth.POSSIBLE and wanted is Truth.NEVER:  # does the bound omit the reason?
            wider = wider or _Everything(tree, pattern, _wider(bound))
            if any(_agree(one, values) for one in wider.satisfiable):
                wanted = Truth.POSSIBLE
        _same(f"the status of {asked}", found, wanted)
    seen["tuples"] += tuples
    seen[QUESTIONS] += tuples + 1  # the possible rows are one


def _wider(bound: Bound) -> Bound:
    """The bound with every tested label as a text too, and every text as a label."""
    labels, texts = bound.alphabet.elements, bound.alphabet.texts
    names = [text for text in texts if text[:1].isalpha()]
    wide = replace(bound.alphabet, elements=_once(labels, names), texts=_once(texts, labels))
    return replace(bound, alphabet=wide)


def _once(these: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*these, *more)))


def _agree(row: tuple[Any, ...], values: tuple[Any, ...]) -> bool:
    return all(wanted is None or found == wanted for found, wanted in zip(row, values, strict=True))


def _values(tree: Tree, pattern: Pattern, number: int, bound: Bound) -> list[Any]:
    """The values that an output may show within the bound; None stands for any value."""
    nodes = list(tree.subtree(DOCUMENT_NODE))[1:]
    kind = pattern.outputs[number].kind
    if kind is Kind.ID:
        return [None, *(tree.id(n) for n in nodes if tree.kind(n) in _SHOWN)]
    if kind is Kind.TIME:
        asked = shown_times_of(tree, pattern) or (tree.clock,)
        return sorted({*asked, *(tree.time(n) for n in nodes)})
    return sorted({*bound.alphabet.elements, *bound.alphabet.texts})


_SHOWN = (NodeKind.ELEMENT, NodeKind.TEXT)


def _check_deadline(tree: Tree, pattern: Pattern, outlook: Outlook, seen: Seen) -> None:
    """At the last deadline a row is still possible, and a moment later none is."""
    deadlines = [one.deadline for one in outlook.possible()]
    known = [int(deadline) for deadline in deadlines if deadline is not None]
    if outlook.truth is not Truth.POSSIBLE or len(known) < len(deadlines):
        return
    for time, wanted in ((max(known), Truth.POSSIBLE), (max(known) + 1, Truth.NEVER)):
        later = copy.deepcopy(tree)
        later.clock = time
        bound = bound_for(later, pattern)
        if bound is not None:
            _same(f"the truth at {time}", _Everything(later, pattern, bound).truth, wanted)
            seen["deadlines"] += 1


def _check_relevance(
    tree: Tree, pattern: Pattern, bound: Bound, is_small: bool, seen: Seen
) -> None:
    try:
        found = relevance(tree, pattern)
    except UndecidedError as error:
        seen[f"relevance refused {error.code}"] += 1
        return
    for stream, each in found.items():
        _same(f"that axlog relevance of {stream} is lazy", each.axlog <= each.lazy, True)
        if each.relevant:
            _same(f"that relevance of {stream} is axlog relevance", each.axlog, True)
        is_free = is_monotone(tree, pattern, bound)
        tried = futures_of(tree, bound, stream if is_free else None)
        if tried > _MOST_FUTURES // 2 or not is_small:
            seen["relevance too large"] += 1
            continue
        if any(tree.call(call).deletes != "no" for call in tree.calls().values()):
            continue
        wanted = reference.relevant(tree, pattern, stream, bound)
        if each.relevant and not wanted and bound.times:
            # data that is too late for a constraint may be the reason why earlier data matters
            later = replace(bound, times=(*bound.times, max(bound.times) + 1))
            wanted = reference.relevant(tree, pattern, stream, later)
        _same(f"that relevance of {stream} implies axlog", wanted <= each.axlog, True)
        seen[QUESTIONS] += 1
        if not tree.facts and not any(tree.call(c).replace for c in tree.calls().values()):
            by_search, _ = RelevanceSearch(tree, pattern, 200, together=False).relevant(stream)
            _same(f"the relevance of {stream} by search", by_search in (None, wanted), True)
            seen[f"relevance by search {by_search}"] += 1
        if each.relevant is None:
            seen["relevance undecided"] += 1
            continue
        _same(f"the relevance of {stream}", each.relevant, wanted)
        seen[f"relevant {wanted}"] += 1


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
