"""Random documents with an exact number of elements, streamed.

A size alone does not determine a shape. Depth, fan-out, labels, the share of leaves with text and
the share of elements with an attribute are therefore parameters too. The tree is written depth
first from budgets: a node with a budget of n descendants distributes it over its children, one
child at a time. Memory is one pair of numbers per level, whatever the size.

There is no whitespace between elements. Texts are in leaves or (with `mixed`) before the first
child, so texts are never adjacent.

Not handled: namespaces, comments and processing instructions.

(Documents of a given size: paper 3, section 5.4.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from axlog.errors import WorkloadError
from axlog.samples.chance import Chance

AX = "urn:axlog"
_CHUNK = 256


def refuse(message: str, expected: str, advice: str | None = None) -> WorkloadError:
    """The error for parameters that no workload can satisfy."""
    return WorkloadError("AX601", message, expected=expected, advice=advice)


def alphabet(labels: int | Sequence[str]) -> tuple[str, ...]:
    """The given labels, or that many generated ones.

    >>> alphabet(3)
    ('a', 'b', 'c')
    """
    if isinstance(labels, int):
        letters = "abcdefghijklmnopqrstuvwxyz"
        names = tuple(letters[i % 26] + (str(i // 26) if i >= 26 else "") for i in range(labels))
    else:
        names = tuple(labels)
    if not names:
        raise refuse("there is no label to name elements with", "one label or more")
    return names


def capacity(depth: int, fanout: int) -> int:
    """The number of elements that a tree of this depth and fan-out can hold.

    >>> capacity(3, 2)
    7
    """
    if fanout == 1:
        return depth
    return int((fanout**depth - 1) // (fanout - 1))


def document(
    size: int = 1000,
    depth: int = 8,
    fanout: int = 10,
    labels: int | Sequence[str] = 20,
    seed: int = 0,
    text_ratio: float = 0.5,
    attributes: float = 0.1,
    values: int = 100,
    mixed: float = 0.0,
    calls: int = 0,
    root: str = "r",
) -> Iterator[str]:
    """A document of exactly `size` elements, as pieces of text to write one after the other.

    `text_ratio` is the share of leaves with a text, `attributes` the share of elements with an
    attribute `k`, and `mixed` the share of inner elements that start with a text. Texts and
    attributes have one of `values` values. `calls` calls of streams `f0`, `f1`, ... are the last
    children of as many random elements (`size` does not count them).

    >>> "".join(document(size=3, depth=2, labels=2, seed=1, text_ratio=0, attributes=0))
    '<r><b/><b/></r>'
    """
    names = alphabet(labels)
    _check(size, depth, fanout, calls, values)
    return _Writer(names, seed, text_ratio, attributes, values, mixed).document(
        size, depth, fanout, calls, root
    )


def _check(size: int, depth: int, fanout: int, calls: int, values: int) -> None:
    if size < 1 or depth < 1 or fanout < 1 or values < 1:
        raise refuse("a document has a size, a depth, a fan-out and values", "numbers from 1 on")
    if size > capacity(depth, fanout):
        raise refuse(
            f"{size} elements do not fit in depth {depth} with fan-out {fanout}",
            f"a size of at most {capacity(depth, fanout)}",
            "raise depth or fanout",
        )
    if not 0 <= calls <= size:
        raise refuse(f"{size} elements cannot hold {calls} calls", "one call an element at most")


class _Writer:
    """Writes the elements of one document."""

    def __init__(
        self,
        names: tuple[str, ...],
        seed: int,
        text_ratio: float,
        attributes: float,
        values: int,
        mixed: float,
    ) -> None:
        self._names = names
        self._seed = seed
        self._chance = Chance(seed, "document")
        self._text_ratio = text_ratio
        self._attributes = attributes
        self._values = values
        self._mixed = mixed

    def document(self, size: int, depth: int, fanout: int, calls: int, root: str) -> Iterator[str]:
        pieces: list[str] = []
        called = iter(_ordinals(size, calls, self._seed))
        next_called, stream = next(called, -1), 0
        open_tags: list[str] = []
        for ordinal, (level, below) in enumerate(self._shape(size, depth, fanout)):
            while len(open_tags) > level:
                pieces.append(open_tags.pop())
            name = self._chance.choose(self._names) if level else root
            call = ""
            if ordinal == next_called:
                call = f'<ax:call stream="f{stream}"/>'
                next_called, stream = next(called, -1), stream + 1
            declared = f' xmlns:ax="{AX}"' if calls and not level else ""
            text = self._text(below)
            head = f"<{name}{declared}{self._attribute()}"
            if below:
                pieces.append(f"{head}>{text}")
                open_tags.append(f"{call}</{name}>")
            else:
                pieces.append(f"{head}>{text}{call}</{name}>" if text or call else f"{head}/>")
            if len(pieces) >= _CHUNK:
                yield "".join(pieces)
                pieces.clear()
        pieces.extend(reversed(open_tags))
        yield "".join(pieces)

    def _shape(self, size: int, depth: int, fanout: int) -> Iterator[tuple[int, int]]:
        """(level, elements below) of every element, in document order."""
        room = [capacity(depth - level, fanout) for level in range(depth)]
        chance = self._chance
        dealing: list[tuple[int, int]] = []  # per open level: children and elements left to deal
        yield 0, size - 1
        budget = size - 1
        while True:
            level = len(dealing) + 1
            if budget:
                least = -(-budget // room[level])
                most = min(fanout, budget)
                children = min(most, max(least, 1 + int(chance.exponential(fanout / 2))))
                dealing.append((children, budget))
            else:
                while dealing and not dealing[-1][0]:
                    dealing.pop()
                if not dealing:
                    return
                level = len(dealing)
            children, left = dealing[-1]
            share = _share(chance, children, left, room[level])
            dealing[-1] = (children - 1, left - share)
            budget = share - 1
            yield level, budget

    def _text(self, below: int) -> str:
        ratio = self._mixed if below else self._text_ratio
        return self._value() if self._chance.happens(ratio) else ""

    def _attribute(self) -> str:
        return f' k="{self._value()}"' if self._chance.happens(self._attributes) else ""

    def _value(self) -> str:
        return f"v{self._chance.below(self._values)}"


def _share(chance: Chance, children: int, left: int, room: int) -> int:
    """The number of `left` elements for the next of `children` subtrees; each takes 1 to `room`."""
    least = max(1, left - (children - 1) * room)
    most = min(room, left - (children - 1))
    return min(most, max(least, int(left / children * (0.5 + chance.random()))))


def _ordinals(size: int, count: int, seed: int) -> list[int]:
    """The positions in document order of `count` distinct elements, ascending."""
    chance = Chance(seed, "calls")
    chosen: set[int] = set()
    while len(chosen) < count:
        chosen.add(chance.below(size))
    return sorted(chosen)
