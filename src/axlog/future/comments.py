"""Comments and processing instructions in the analyses: refused by name where they would matter.

What streams may bring is reasoned about as elements and texts. A message may also bring comments
and processing instructions, and messages of these alone do not count as trees. So tests for them
are refused (AX503). `node()` is covered where an element to come does whatever a comment to come
could do: not beside `not`, not under types, and not where a stream may bring only so many trees.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.errors import UndecidedError
from axlog.query.pattern import AnyComment, AnyInstruction, Pattern, PatternNode, sees_markup


def refuse_markup_tests(nodes: Iterable[PatternNode]) -> None:
    """Refuse tests for comments and processing instructions."""
    for node in nodes:
        if isinstance(node.test, AnyComment | AnyInstruction):
            raise _refused(node, "")


def refuse_any_node(pattern: Pattern, where: str) -> None:
    """Refuse `node()` too, where elements and texts are not all that may pass it."""
    for node in pattern.nodes():
        if sees_markup(node):
            raise _refused(node, f" {where}")


def _refused(node: PatternNode, where: str) -> UndecidedError:
    bare = PatternNode(node.axis, node.test)
    return UndecidedError(
        "AX503",
        f"the analyses do not cover `{bare}`{where}: a comment or processing instruction passes it",
        advice="ask for elements by name or by `*`, for texts by `text()`; rows are kept exactly",
    )
