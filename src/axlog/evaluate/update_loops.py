"""Loops of updates as searches: `for $x in path where condition return delete node $x`.

A loop over one path whose updates refer to the loop's node only as their target becomes one search
for all nodes, and the content is built once.
"""

from __future__ import annotations

from dataclasses import replace

from axlog.query.pattern import AnyNode
from axlog.query.syntax_tree import (
    Expression,
    Flwor,
    For,
    ForAt,
    Let,
    Path,
    Predicate,
    Reference,
    Step,
    Update,
    Where,
)
from axlog.query.syntax_tree import (
    Sequence as Listed,
)


class Loop:
    """A loop as one search: the number of `let`s before it, and its updates without it."""

    __slots__ = ("lets", "updates")

    def __init__(self, lets: int, updates: list[Update]) -> None:
        self.lets = lets
        self.updates = updates


_LOOPS: dict[int, tuple[Flwor, Loop | None]] = {}


def loop_of(flwor: Flwor) -> Loop | None:
    """The loop as a search; cached by identity, like paths."""
    known = _LOOPS.get(id(flwor))
    if known is None:
        if len(_LOOPS) > 1024:
            _LOOPS.clear()
        known = _LOOPS[id(flwor)] = (flwor, _as_search(flwor))
    return known[1]


def _as_search(flwor: Flwor) -> Loop | None:
    clauses = flwor.clauses
    lets = next((at for at, clause in enumerate(clauses) if not isinstance(clause, Let)), 0)
    rest = clauses[lets:]
    if not rest or type(rest[0]) is not For or isinstance(rest[0], ForAt):
        return None
    loop, conditions = rest[0], rest[1:]
    if not isinstance(loop.source, Path) or not all(isinstance(c, Where) for c in conditions):
        return None
    steps = loop.source.steps
    for where in conditions:
        assert isinstance(where, Where)
        predicate = Predicate(where.condition, loop.variable)
        steps = (*steps, Step("self", AnyNode(), (predicate,), where.at, is_filter=True))
    source = replace(loop.source, steps=steps)
    returned = flwor.returned
    updates = returned.items if isinstance(returned, Listed) else (returned,)
    found = [_without_loop(update, loop.variable, source) for update in updates]
    made = [update for update in found if update is not None]
    return Loop(lets, made) if made and len(made) == len(found) else None


def _without_loop(update: Expression, variable: str, source: Path) -> Update | None:
    """The update without the loop, if it refers to the loop's node only as its target."""
    if not isinstance(update, Update) or _mentions(update.arguments[:-1], variable):
        return None
    target = update.arguments[-1]
    if not isinstance(target, Path) or not isinstance(target.start, Reference):
        return None
    if target.start.name != variable or _mentions(target.steps, variable):
        return None
    if target.steps and not (update.name == "delete" and all(map(_is_plain, target.steps))):
        return None  # the recommendation requires one target for each node of the loop
    path = replace(source, steps=(*source.steps, *target.steps))
    return replace(update, arguments=(*update.arguments[:-1], path), is_each=True)


def _is_plain(step: object) -> bool:
    return isinstance(step, Step) and not step.is_filter


def _mentions(value: object, variable: str) -> bool:
    """Whether a variable of this name occurs."""
    if isinstance(value, tuple):
        return any(_mentions(one, variable) for one in value)
    if isinstance(value, Reference):
        return value.name == variable
    slots = getattr(value, "__dataclass_fields__", {})
    return any(_mentions(getattr(value, name), variable) for name in slots)
