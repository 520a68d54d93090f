"""Patterns with collected paths, as the analyses of the future see them.

A collected path may be empty, so it is no condition: a row is there if the rest of the pattern
matches. It is identified by its plain values and by the nodes at which its paths start. A node that
arrives in such a path updates the row.
"""

from __future__ import annotations

from dataclasses import replace

from axlog.query.compile import compile_pattern
from axlog.query.pattern import Branch, Collect, Pattern, PatternNode, nodes_of
from axlog.query.row_key import row_key


def without_collected(pattern: Pattern) -> Pattern:
    """The pattern without its collected paths, with the ids of the nodes at which they start."""
    gathers = compile_pattern(pattern).gathers
    if not gathers:
        return pattern
    inside = {node.name for gather in gathers for node in nodes_of(gather.node)}
    whole = row_key(pattern).pattern
    return replace(
        whole,
        branches=_plain(whole.branches),
        outputs=tuple(output for output in whole.outputs if output.of not in inside),
    )


def _plain(branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
    return tuple(
        replace(each, branches=_plain(each.branches)) if isinstance(each, PatternNode) else each
        for each in branches
        if not isinstance(each, Collect)
    )
