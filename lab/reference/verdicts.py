"""Truth, satisfiable rows and relevance by brute force over small futures (P2 3, 5, 6).

- `truth`: TRUE if some row is there now, POSSIBLE if a future within the bound has one, else NEVER.
- `satisfiable_rows`: the tuples u with u in q(ω(I)) for some future ω within the bound (P2 3).
- `relevant`: P2 definition 7: some ω and u with u in q(ω(I)) xor u in q(ω_no-f(I)).

`bounds.bound_of` gives a bound that is large enough, and too large to enumerate for all but tiny
patterns: callers give smaller ones, and NEVER and "not relevant" then mean "within that bound".

Where more data never answers less (`bounds.is_monotone`), one future in which all calls bring
everything stands for all futures, whatever `trees_per_call` says; that makes useful sizes
affordable. Relevance of streams in documents with deletions is not covered: refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from axlog.document.ids import Id
from axlog.document.operations import call_of
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.definition import Key, Value, rows, valuations
from axlog.query.pattern import Pattern
from axlog.query.truth import Truth
from lab.reference.bounds import is_monotone, shows_values
from lab.reference.futures import Bound, Future, allowed, futures, reachable, saturated


def truth(tree: Tree, pattern: Pattern, bound: Bound) -> Truth:
    """Whether some row is there now, may come, or never comes."""
    if _holds(tree, pattern):
        return Truth.TRUE
    if is_monotone(tree, pattern, bound):
        documents = iter([saturated(tree, bound).applied_to(tree)])
    else:
        documents = reachable(tree, bound)
    is_possible = any(_holds(document, pattern) for document in documents)
    return Truth.POSSIBLE if is_possible else Truth.NEVER


def _holds(tree: Tree, pattern: Pattern) -> bool:
    return any(True for _ in valuations(tree, pattern))


def satisfiable_rows(tree: Tree, pattern: Pattern, bound: Bound) -> set[tuple[Value | None, ...]]:
    """What rows can show, now or in some future; the id of a node that is yet to come is None."""
    if is_monotone(tree, pattern, bound) and not shows_values(pattern):
        documents: Iterator[Tree] = iter([saturated(tree, bound).applied_to(tree)])
    else:
        documents = reachable(tree, bound)
    present = {tree.id(node) for node in tree.subtree(DOCUMENT_NODE)}
    return {
        tuple(None if isinstance(v, Id) and v not in present else v for v in answer.values)
        for document in documents
        for answer in rows(document, pattern).values()
    }


def relevant(tree: Tree, pattern: Pattern, stream: str, bound: Bound) -> bool:
    """Whether what a stream brings can ever change the rows (P2 definition 7)."""
    call_of(tree, stream)
    if bound.deletions:
        raise UndecidedError(
            "AX503",
            f"the relevance of {stream!r} is not defined where streams delete",
            advice="ask with a bound that leaves deletions out",
        )
    if is_monotone(tree, pattern, bound) and not shows_values(pattern):
        pairs = _with_all_of(tree, stream, bound)
    else:
        pairs = ((future, future.without(stream)) for future in futures(tree, bound))
    return any(_differ(tree, pattern, bound, *pair) for pair in pairs)


def _with_all_of(tree: Tree, stream: str, bound: Bound) -> Iterator[tuple[Future, Future]]:
    """Futures of the other streams with everything that this one can bring, and without it.

    Enough for monotone questions: what any part of it adds, all of it adds.
    """
    everything = saturated(tree, bound, [stream]).messages
    for future in futures(tree, bound, set(tree.calls()) - {stream}):
        messages = sorted(
            (*future.messages, *everything), key=lambda each: (each.time, each.stream)
        )
        yield Future(tuple(messages)), future


def _differ(tree: Tree, pattern: Pattern, bound: Bound, future: Future, less: Future) -> bool:
    if future == less:
        return False
    grown = allowed(future, tree, bound)
    return grown is not None and _shown(grown, pattern) != _shown(less.applied_to(tree), pattern)


def _shown(tree: Tree, pattern: Pattern) -> set[tuple[Key, tuple[Value, ...]]]:
    return {(key, answer.values) for key, answer in rows(tree, pattern).items()}
