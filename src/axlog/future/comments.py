"""Rejection of queries that test for comments, processing instructions or parts of names.

The analyses model future data as elements and texts. A message may also hold comments and
processing instructions, and messages of these alone do not count as trees. Tests for them are
therefore rejected (AX503). `node()` is covered where a future element can stand in for every future
comment. That is not so beside `not`, under types, and where a stream may deliver a limited number
of trees.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.errors import UndecidedError
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    PartialName,
    Pattern,
    PatternNode,
    sees_markup,
)


def refuse_markup_tests(nodes: Iterable[PatternNode]) -> None:
    """Reject tests for comments, processing instructions and parts of names."""
    for node in nodes:
        if isinstance(node.test, AnyComment | AnyInstruction):
            raise _refused(node, "")
        refuse_partial_name(node)


def refuse_any_node(pattern: Pattern, where: str) -> None:
    """Reject `node()` too, where a comment could pass it and an element could not replace it."""
    for node in pattern.nodes():
        refuse_partial_name(node)
        if sees_markup(node):
            raise _refused(node, f" {where}")


def refuse_partial_name(node: PatternNode) -> None:
    """Reject names with a wildcard: future names are tried whole."""
    if isinstance(node.test, PartialName):
        raise UndecidedError(
            "AX503",
            f"the analyses do not cover `{PatternNode(node.axis, node.test)}`: a part of a name",
            advice="write the whole name; rows are still exact",
        )


def _refused(node: PatternNode, where: str) -> UndecidedError:
    bare = PatternNode(node.axis, node.test)
    return UndecidedError(
        "AX503",
        f"the analyses do not cover `{bare}`{where}: a comment or processing instruction passes it",
        advice="test for elements by name or `*`, and for texts by `text()`; rows are still exact",
    )
