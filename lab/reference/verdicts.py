"""Truth, satisfiable rows and relevance by brute force over small futures.

- `truth`: TRUE if the query has a row now, POSSIBLE if it has one in a future within the bound,
  else NEVER.
- `satisfiable_rows`: the tuples u with u in q(ω(I)) for some future ω within the bound.
- `Outcomes`: the same rows, and the status of each, for many questions about one document.
- `relevant`: whether some ω and u exist with u in q(ω(I)) xor u in q(ω_no-f(I)).

`bounds.bound_of` returns a bound that is large enough. For all but tiny patterns that bound is too
large to enumerate. Callers therefore pass smaller bounds; NEVER and "not relevant" then mean
"within that bound".

For monotone queries (`bounds.is_monotone`), one future in which all calls insert everything
represents all futures, whatever the value of `trees_per_call`. This makes useful sizes affordable.

Not handled: the relevance of streams in documents with deletions, which raises an error.

(Paper 2, sections 3, 5 and 6; relevance is definition 7.)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from axlog.document.ids import Id
from axlog.document.operations import call_of
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers
from axlog.evaluate.definition import Key, Value, rows, valuations
from axlog.future.truth import column_of
from axlog.query.compile import compile_pattern
from axlog.query.pattern import Kind, Pattern
from axlog.query.truth import Truth
from lab.reference.bounds import is_monotone, shows_values
from lab.reference.futures import Bound, Future, allowed, futures, reachable, saturated


def truth(tree: Tree, pattern: Pattern, bound: Bound) -> Truth:
    """Whether the query has a row now, may have one later, or never has one."""
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
    """The values that rows can show, now or in some future; the id of a future node is None."""
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
    """Whether the data of a stream can ever change the rows (paper 2, definition 7)."""
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
    """Futures of the other streams, with all data that this stream can insert and without it.

    This is enough for monotone queries: a row that any part of the data adds, all of the data adds
    too.
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


class Outcomes:
    """The rows that a document has, and those that some future within a bound gives it.

    The interpreter evaluates them; law 1 checks it against the definition. `most` futures are
    tried.
    """

    def __init__(self, tree: Tree, pattern: Pattern, bound: Bound, most: int | None = None) -> None:
        self._pattern = pattern
        columns = compile_pattern(pattern).root.columns
        self._at = [(columns.index(column_of(o)), o.kind) for o in pattern.outputs]
        self._known = {tree.id(node) for node in tree.subtree(DOCUMENT_NODE)}
        self.present = set(self.rows(tree))
        self.satisfiable: set[tuple[Value | None, ...]] = set(self.present)
        self.tried = 0
        for document in islice(reachable(tree, bound), most):
            self.satisfiable |= set(self.rows(document))
            self.tried += 1

    def rows(self, document: Tree) -> Iterator[tuple[Value | None, ...]]:
        """The rows of a document; the id of a future node is None."""
        for row in answers(document, self._pattern):
            shown = (
                document.id(int(row[i])) if kind is Kind.ID else row[i] for i, kind in self._at
            )
            yield tuple(None if isinstance(v, Id) and v not in self._known else v for v in shown)

    def status(self, values: tuple[Value | None, ...]) -> Truth:
        """The truth of a row; None as a value stands for any value."""
        if any(agrees(row, values) for row in self.present):
            return Truth.TRUE
        if any(agrees(row, values) for row in self.satisfiable):
            return Truth.POSSIBLE
        return Truth.NEVER


def agrees(row: tuple[Value | None, ...], values: tuple[Value | None, ...]) -> bool:
    """Whether a row has these values; None stands for any value."""
    return all(wanted is None or found == wanted for found, wanted in zip(row, values, strict=True))
