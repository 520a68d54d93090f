"""deep-equal() of nodes by their contents: XML texts, as rows show them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache

from axlog.document.loader import load
from axlog.errors import AxlogError
from axlog.evaluate.deep_equality import events
from axlog.evaluate.items import Node


def contents_equal(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two sequences of contents are deep-equal.

    The order of attributes, prefixes, comments and processing instructions do not matter.

    >>> contents_equal(["<a k='1' l='2'/>"], ["<a l='2' k='1'><!--x--></a>"])
    True
    >>> contents_equal(["<a/>"], ["<a/>", "<a/>"])
    False
    """
    return len(one) == len(other) and all(
        left == right or _events(left) == _events(right)
        for left, right in zip(one, other, strict=True)
    )


@lru_cache(maxsize=1024)
def _events(content: str) -> tuple[Hashable, ...]:
    """An element as the events that deep-equal() compares; other nodes as their texts."""
    if not content.startswith("<"):
        return (content,)
    try:
        tree = load(content, keep_whitespace=True)
    except AxlogError:
        return (content,)
    return tuple(events(tree, Node(tree.root)))
