"""`copy $x := node modify updates return value`: updates of copies, which change no document.

The copies are trees of their own. The updates see them as they were copied, and become one pending
update list for each tree, with the rules and conflicts of a statement. A target outside the copies
raises XUDY0014. (XQuery Update Facility, section 2.4.5.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axlog.errors import InputError, StreamError, UpdateError, ValueProblem
from axlog.evaluate.items import Items, New, Node
from axlog.evaluate.made_nodes import copy_of, place_of
from axlog.evaluate.updates import UpdateCollector
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Transform

if TYPE_CHECKING:
    from axlog.evaluate.expressions import Evaluator, Scope


def transformed(evaluator: Evaluator, given: Transform, scope: Scope) -> Items:
    """The value of a transform expression; raises `ValueProblem` if it has none."""
    try:
        return _value(evaluator, given, scope)
    except (UpdateError, StreamError, InputError) as error:
        raise ValueProblem(
            error.code,
            error.message,
            place=error.place or place_at(evaluator.statement.text, given.at),
        ) from error


def _value(evaluator: Evaluator, given: Transform, scope: Scope) -> Items:
    copies: dict[str, New] = {}
    for clause in given.copies:
        items = evaluator.value(clause.value, scope)
        if len(items) != 1 or not isinstance(items[0], Node | New):
            raise _refused(evaluator, "XUTY0013", "`copy` needs one node", clause.at)
        copies[clause.variable] = copy_of(evaluator, items[0], clause.at)
        scope = scope.binding(clause.variable, [copies[clause.variable]])
    collector = UpdateCollector(evaluator)
    collector.update(given.modified, scope)
    if collector.collected():
        outside = "the target of an update in `modify` is a node of the document"
        raise _refused(evaluator, "XUDY0014", outside, given.modified.at)
    collector.apply_to({place_of(evaluator, copy, given.at).number for copy in copies.values()})
    for name, copy in copies.items():
        scope = scope.binding(name, [_changed(evaluator, copy, given.at)])
    return evaluator.value(given.returned, scope)


def _changed(evaluator: Evaluator, copy: New, at: int) -> New:
    """A copy after the updates."""
    place = place_of(evaluator, copy, at)
    if copy.kind == "text" and not place.tree.is_alive(place.node):
        return New("text", ("",))  # its value was replaced with the empty string
    return place.at(place.node)


def _refused(evaluator: Evaluator, code: str, message: str, at: int) -> ValueProblem:
    return ValueProblem(code, message, place=place_at(evaluator.statement.text, at))
