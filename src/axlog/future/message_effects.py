"""What a single message can make impossible.

A message rules a scenario out through the clock, the number of trees that are left (`most`), or the
value of a key that it brings. A key value does so only if the scenario knows the value: from data
that is there already, or as a constant of the query. Where a stream brings all that a pattern binds
in one message, a scenario knows no value, so keys make nothing impossible: `match
/shop/orders/order/id/$x` with `key orders/order by id` can lose rows only when the stream ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.evaluate.interpreter import Interpreter
from axlog.future.keys import constant_of, keyed_relations
from axlog.future.scenario_tracker import with_key_variables
from axlog.future.scenarios import is_limited
from axlog.query.compile import Program, Relation, compile_pattern
from axlog.query.pattern import Constraint, Pattern, TimeConstraint


def may_fall_by_message(tree: Tree, pattern: Pattern) -> bool:
    """Whether a single message can rule scenarios out: by the clock, a key, or `most`."""
    is_timed = any(_may_pass(constraint) for constraint in pattern.where)
    return is_timed or is_limited(tree) or _may_fall_by_key(tree, pattern)


def is_in_one_message(tree: Tree, pattern: Pattern) -> bool:
    """Whether every scenario needs all that the pattern binds, from one message."""
    return _joins_nothing(tree, compile_pattern(pattern))


def _may_pass(constraint: Constraint) -> bool:
    """Whether the clock can rule out a constraint: not where one time must only be late enough."""
    if not isinstance(constraint, TimeConstraint):
        return False
    is_single = len(constraint.terms) == 1 and constraint.terms[0][0] > 0
    return not (is_single and constraint.operator in (">", ">="))


def _may_fall_by_key(tree: Tree, pattern: Pattern) -> bool:
    if not tree.facts:
        return False
    program = compile_pattern(with_key_variables(tree, pattern))
    keyed = keyed_relations(program.root, tree.facts)
    if not keyed:
        return False
    has_constant = any(constant_of(column) for pairs in keyed.values() for column, _ in pairs)
    return has_constant or not _joins_nothing(tree, program, apart=frozenset(keyed))


def _joins_nothing(tree: Tree, program: Program, apart: frozenset[Relation] = frozenset()) -> bool:
    """Whether no relation joins its parts at a node below which a stream delivers.

    `apart`: relations that must not match such a node at all.
    """
    if any(tree.call(node).calls for node in tree.calls().values()):
        return False  # messages may bring nodes below which others deliver
    return all(
        len(relation.edges) <= 1 and not relation.choices and relation not in apart
        for relation in _above_calls(tree, program)
    )


def _above_calls(tree: Tree, program: Program) -> Iterator[Relation]:
    """The relations that may match nodes with open calls below them."""
    yield program.root
    interpreter = Interpreter(program.relations)
    seen: set[int] = {DOCUMENT_NODE}
    for call in tree.calls().values():
        for node in tree.ancestors(call):
            if node not in seen:
                seen.add(node)
                yield from interpreter.candidates(tree, node)
