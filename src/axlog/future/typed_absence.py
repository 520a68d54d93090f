"""The future of a query with `not` under types, shown by an example.

Types only forbid futures. So what no future can bring, no valid one can. A future that the analysis
without types finds is carried out: if every message and every document on the way is valid, it
shows that the row can come. If it is not valid, valid messages that bring the row of the query
without its `not`s are tried: they show it if the row is there afterwards. If neither shows it, the
question is not decided (AX503).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from lxml import etree

from axlog.document.loader import load
from axlog.document.operations import delete_at_call, insert_at_call
from axlog.document.parser import Element
from axlog.document.pending import apply
from axlog.document.schema import Schema, is_valid, service_kind
from axlog.document.tree import Tree
from axlog.errors import AxlogError, UndecidedError
from axlog.future.profile_trees import FutureTree
from axlog.future.profiles import Arrival, Events, Removal, streams_of
from axlog.future.type_messages import append_child
from axlog.future.typed_truth import typed_future
from axlog.query.pattern import Pattern, TimeConstraint


def carried_out(tree: Tree, events: Events) -> Tree | None:
    """The document after some events; None if one of them is not valid."""
    later = tree.copied()
    try:
        for stream, nodes in _removed(events).items():
            apply(later, delete_at_call(later, stream, nodes.__contains__))
            if not _is_valid(later):
                return None
        for time, stream, trees in _messages(events):
            forest = [_element(each) for each in trees]
            if not _have_type(later, stream, forest):
                return None
            apply(later, insert_at_call(later, stream, forest), time)
            if not _is_valid(later):
                return None
    except AxlogError:  # an earlier event closed the call
        return None
    return later


def _is_valid(tree: Tree) -> bool:
    return tree.types is None or is_valid(tree, tree.types)


def _have_type(tree: Tree, stream: str, forest: Iterable[Element]) -> bool:
    """Whether trees have the type of a stream's service."""
    if tree.types is None:
        return True
    type_ = Schema(tree.types.service(service_kind(tree, tree.calls()[stream])[1:]))
    return all(is_valid(load(each), type_) for each in forest)


def _removed(events: Events) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for event in events:
        if isinstance(event, Removal):
            found.setdefault(event.stream, set()).add(event.node)
    return found


def _messages(events: Events) -> Iterator[tuple[int, str, list[FutureTree]]]:
    """The messages of some events, in the order of their times."""
    arrivals = sorted(
        ((event.tree.time or 0, event.stream, event.tree)
         for event in events if isinstance(event, Arrival)),
        key=lambda each: each[:2],
    )  # fmt: skip
    for (time, stream), each in groupby(arrivals, key=lambda one: one[:2]):
        yield time, stream, [tree for *_, tree in each]


def _element(tree: FutureTree) -> Element:
    made = etree.Element(tree.label)
    for name, value in tree.attributes:
        made.set(name, value)
    for child in tree.children:
        append_child(made, child if isinstance(child, str) else _element(child))
    return made


def valid_messages(
    tree: Tree, pattern: Pattern, strings: Mapping[str, str], time: int
) -> Events | None:
    """Valid messages at a time after which a pattern without `not` has a row; None: none are known.

    `strings` are the known values of its variables.
    """
    assert tree.types is not None
    times = tuple(c for c in pattern.where if not isinstance(c, TimeConstraint))
    try:
        found = typed_future(
            tree, replace(pattern, where=times, outputs=()), tree.types, bindings=strings
        )
    except UndecidedError:
        return None
    events: list[Arrival | Removal] = []
    for message in found or ():
        if message.stream not in tree.calls():
            continue
        for node in message.removed:
            if not isinstance(node, int):
                return None  # data that comes and goes again is not an event
            events.append(Removal(message.stream, node))
        trees = [_future_tree(each)._replace(time=time) for each in message.forest]
        events += [Arrival(message.stream, each) for each in trees]
    return tuple(events)


def _future_tree(element: Element) -> FutureTree:
    texts = [element.text, *(child.tail for child in element)]
    children: list[FutureTree | str] = [texts[0]] if texts[0] else []
    for child, after in zip(element, texts[1:], strict=True):
        if isinstance(child.tag, str):
            children.append(_future_tree(child))
        if after:
            children.append(after)
    attributes = tuple((str(name), str(value)) for name, value in element.attrib.items())
    return FutureTree(str(element.tag), attributes, tuple(children), None)


def is_among(events: Events, streams: frozenset[str] | None) -> bool:
    """Whether all events are of some streams."""
    return streams is None or streams_of(events) <= streams
