"""Why an update may cost the whole document or a whole collection, from the plan."""

from __future__ import annotations

from collections.abc import Sequence

from axlog.query.plan import ChosenOf, Collection
from axlog.query.syntax_tree import Call, Counted, For, ForKept, Kept, Path, Root, Step, walk

AGAIN = "evaluated again with every update that may concern it"
_JOINS = "string-join"
"""Its value is all items, so it costs what it shows."""
_FAR = frozenset("ancestor ancestor-or-self following preceding".split())


def whole_reads(collections: Sequence[Collection]) -> str | None:
    """The reason why the plan evaluates more than the tuples that an update concerns; None: no."""
    for collection in collections:
        parts = (
            collection.clauses,
            collection.order,
            collection.index.values,
            tuple(output.value for output in collection.outputs),
        )
        for node in walk(parts):
            reason = _reason(node)
            if reason is not None:
                return f"{AGAIN}: {reason}"
        if isinstance(collection.source, ChosenOf) and collection.source.bounds is None:
            return f"{AGAIN}: these positions"
    return None


def _reason(node: object) -> str | None:
    match node:
        case Root():
            return "a path that no pattern expresses"
        case Call(name="root"):
            return "root()"
        case Step(axis=axis) if axis in _FAR:
            return f"the axis {axis}"
        case Counted():
            return "`count` numbers all tuples"
        case For(source=Kept(aspect="all", keys=())) | ForKept(found=Kept(keys=())):
            return "a loop over all items of another query"
        case Path(start=Kept(aspect="all", keys=()), steps=(_, *_)):
            return "a path from all items of another query"
        case Call(arguments=(Kept(aspect="all", keys=()), *_), name=name) if name != _JOINS:
            return f"{name}() of all items of another query"
    return None
