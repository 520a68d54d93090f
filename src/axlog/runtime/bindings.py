"""The bindings of a message, and the buckets that get them.

Used where messages are read (`extraction.py`), and in buckets for messages whose bindings depend on
a time that they get there (`bucket.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from lxml import etree

from axlog.document.loader import graft, read_forest
from axlog.document.parser import Element
from axlog.document.tree import Tree
from axlog.errors import StreamError
from axlog.evaluate.joins import Bag, Value, add_all
from axlog.match.message_values import may_have_markup
from axlog.match.stream_plan import MessagePlan
from axlog.runtime.grid import ALL
from axlog.runtime.order import BINDINGS
from axlog.runtime.plan import Unit

_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def text_of(content: bytes) -> str:
    """Return a message as text; a declared encoding is decoded first."""
    if not content.lstrip(b"\xef\xbb\xbf").startswith(b"<?xml"):
        try:
            return content.decode()
        except UnicodeDecodeError:
            pass
    trees = read_forest(content)
    return "".join(etree.tostring(tree, encoding="unicode", with_tail=False) for tree in trees)


def bags_of(
    plan: MessagePlan, content: bytes, time: int, root: Element | None = None
) -> tuple[Bag, ...]:
    """Return the bindings of a message, in any of its forms."""
    bags = plan.bags(content, time, root)
    if bags is not None:
        return bags
    forest = read_forest(content, plan.limits)
    tree = Tree()
    tops = graft(tree, forest, time, limits=plan.limits, above=plan.depth)  # checks every limit
    if tree.calls_by_node or any(
        e.get(_SPACE) is not None for t in forest for e in t.iter(etree.Element)
    ):
        raise StreamError(
            "AX862",
            "the message has calls or significant white space, and needs the document",
            advice="use the embedded engine, or partition it by documents",
        )
    if plan.sees_markup:
        return plan.bags_on(tree, tops)
    found: tuple[Bag, ...] = tuple({} for _ in (*plan.here, *plan.everywhere))
    for root in forest:
        if isinstance(root.tag, str):
            for into, bag in zip(found, plan.matcher.run(root, time, b""), strict=True):
                add_all(into, bag)
    return found


def key_of(plan: MessagePlan, content: bytes, root: Element | None = None) -> str:
    """Return the key of a message of a stream that replaces; raises AX420 if it has none."""
    assert plan.replace is not None
    if root is None or may_have_markup(content):
        return plan.replace.value_of(read_forest(content, plan.limits))
    return plan.replace.value(root)


Keyed = tuple[str, tuple[Bag, ...]]
"""The bindings of a message that replaces the earlier one with its key."""


def by_bucket(
    unit: Unit, stream: str, bags: tuple[Bag, ...], key: str | None = None, message: int = 0
) -> Iterable[tuple[int, str, tuple[Bag, ...] | Keyed]]:
    """Split bindings by the bucket of their key; those without a key go to all.

    A message that replaces another goes with its `key` to all buckets that may have rows of the
    other: if the key of messages is that of buckets, to one. `message` identifies the message,
    for units whose messages are spread whatever their values.
    """
    if unit.by_message:
        at = bucket_of(unit, key, message)
        if key is not None:
            return [(at, BINDINGS, (key, bags))]
        return [(at, BINDINGS, bags)] if any(bags) else []
    split = _split(unit, stream, bags)
    if key is None:
        return [(bucket, BINDINGS, mine) for bucket, mine in split]
    found, nothing = dict(split), tuple(_NOTHING for _ in bags)
    every = [unit.bucket_of(key)] if stream in unit.replacing else range(unit.buckets)
    return [(bucket, BINDINGS, (key, found.get(bucket, nothing))) for bucket in every]


_NOTHING: Bag = {}


def bucket_of(unit: Unit, key: str | None, message: int) -> int:
    """Return the bucket of a message: that of the message which it replaces, or any."""
    return message % unit.buckets if key is None else unit.bucket_of(key)


def _split(unit: Unit, stream: str, bags: tuple[Bag, ...]) -> list[tuple[int, tuple[Bag, ...]]]:
    if unit.buckets == 1:
        return [(0, bags)] if any(bags) else []
    positions = [each.positions.get(stream) or (ALL,) * len(bags) for each in unit.grid]
    if len(positions) == 1:
        only = _only_value(bags, positions[0])
        if only is not None:
            return [(unit.bucket_of(only), bags)]
    found: dict[int, list[Bag]] = {}
    for number, (bag, *places) in enumerate(zip(bags, *positions, strict=True)):
        for row, count in bag.items():
            for bucket in unit.cells([None if at == ALL else row[at] for at in places]):
                mine = found.setdefault(bucket, [{} for _ in bags])
                mine[number][row] = count
    return [(bucket, tuple(mine)) for bucket, mine in found.items()]


def _only_value(bags: tuple[Bag, ...], positions: tuple[int, ...]) -> Value | None:
    """Return the key's value, if all rows have the same: most messages are about one thing."""
    found: Value | None = None
    for bag, at in zip(bags, positions, strict=True):
        for row in bag:
            if at == ALL or (found is not None and row[at] != found):
                return None
            found = row[at]
    return found
