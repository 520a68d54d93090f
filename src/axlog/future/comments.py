"""Rejection of queries that test for comments and processing instructions.

The analyses model future data as elements and texts. A message may also hold comments and
processing instructions, and messages of these alone do not count as trees. Tests for them are
therefore rejected (AX503). `node()` is covered where a future element can stand in for every future
comment. That is not so beside `not`, under types, and where a stream may deliver a limited number
of trees.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.errors import UndecidedError
from axlog.query.pattern import AnyComment, AnyInstruction, Pattern, PatternNode, sees_markup


def refuse_markup_tests(nodes: Iterable[PatternNode]) -> None:
    """Reject tests for comments and processing instructions."""
    for node in nodes:
        if isinstance(node.test, AnyComment | AnyInstruction):
            raise _refused(node, "")


def refuse_any_node(pattern: Pattern, where: str) -> None:
    """Reject `node()` too, where a comment could pass it and an element could not replace it."""
    for node in pattern.nodes():
        if sees_markup(node):
            raise _refused(node, f" {where}")


def _refused(node: PatternNode, where: str) -> UndecidedError:
    bare = PatternNode(node.axis, node.test)
    return UndecidedError(
        "AX503",
        f"the analyses do not cover `{bare}`{where}: a comment or processing instruction passes it",
        advice="test for elements by name or `*`, and for texts by `text()`; rows are still exact",
    )
