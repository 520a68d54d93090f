"""One regular expression for several layouts: it checks a message and finds its values.

The layouts are put together in a trie of their tokens, so that common markup is compared once. The
places of values that are used are groups; an empty group at the end of each layout says which one
was found (`re.Match.lastindex`).

A match takes time linear in the message: values end at the next `<` or quote, possessively, and the
branches of the trie differ in their next tag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from axlog.match.message_layout import VALUES, Layout, Place, Token
from axlog.match.message_limits import DECLARATION

Match: TypeAlias = "re.Match[str]"


@dataclass(eq=False, slots=True)
class _Branch:
    """A node of the trie: the token that leads to it, and what follows."""

    token: Token
    follows: dict[Token, _Branch] = field(default_factory=dict)
    is_used: bool = False  # whether the value of this place is read
    is_end: bool = False
    group: int = 0  # of a place that is used
    end: int = 0  # the group of a layout that ends here


class Expression(NamedTuple):
    """The compiled expression, with the groups of each layout."""

    fullmatch: Callable[[str], Match | None]
    ends: list[int]
    """For each layout the group that is the last one of a message with it."""
    groups: list[dict[Place, int]]
    """For each layout the groups of its places that are used."""


def expression_of(layouts: Sequence[tuple[Layout, Collection[Place]]]) -> Expression:
    """The expression of different layouts, each with the places that are used."""
    top = _Branch("")
    paths = [_enter(top, layout, used) for layout, used in layouts]
    compiled = re.compile(f"(?:{DECLARATION})?{_Writer().written(top)}")
    groups = []
    for (_, used), path in zip(layouts, paths, strict=True):
        places = [each for each in path if not isinstance(each.token, str)]
        groups.append({number: places[number].group for number in used})
    return Expression(compiled.fullmatch, [path[-1].end for path in paths], groups)


def _enter(top: _Branch, layout: Layout, used: Collection[Place]) -> list[_Branch]:
    """Add a layout to the trie; the nodes on its path."""
    at, path, number = top, list[_Branch](), 0
    for token in layout.tokens:
        at = at.follows.setdefault(token, _Branch(token))
        path.append(at)
        if not isinstance(token, str):
            at.is_used = at.is_used or number in used
            number += 1
    at.is_end = True
    return path


class _Writer:
    """Writes the trie as a regular expression, and numbers the groups."""

    def __init__(self) -> None:
        self._groups = 0
        self._parts: list[str] = []

    def written(self, top: _Branch) -> str:
        self._follow(top)
        return "".join(self._parts)

    def _group(self) -> int:
        self._groups += 1
        return self._groups

    def _follow(self, at: _Branch) -> None:
        """Write what follows a node: a chain in a loop, since it is long, and its branches."""
        while len(at.follows) == 1 and not at.is_end:
            (at,) = at.follows.values()
            self._token(at)
        if at.is_end and not at.follows:
            self._end(at)
            return
        self._parts.append("(?:")
        for number, each in enumerate(at.follows.values()):
            self._parts.append("|" if number else "")
            self._token(each)
            self._follow(each)
        if at.is_end:
            self._parts.append("|")
            self._end(at)
        self._parts.append(")")

    def _end(self, at: _Branch) -> None:
        at.end = self._group()
        self._parts.append("()")

    def _token(self, at: _Branch) -> None:
        if isinstance(at.token, str):
            self._parts.append(re.escape(at.token))
        elif at.is_used:
            at.group = self._group()
            self._parts.append(f"({VALUES[at.token]})")
        else:
            self._parts.append(VALUES[at.token])
