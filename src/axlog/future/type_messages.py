"""Writes the messages of a solution: trees from their recipes, in the order in which they arrive.

A verdict that a row is possible can be demonstrated: these are the messages to feed, and each is
valid when it arrives. New calls get fresh stream names.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from itertools import count
from typing import NamedTuple

from lxml import etree

from axlog.document.cardinality import TEXT
from axlog.document.operations import Operation, delete_at_call, insert_at_call
from axlog.document.parser import Element
from axlog.document.pending import apply
from axlog.document.schema import OTHER, Schema, TypeGuard
from axlog.document.tree import CALL_LABEL, NodeKind, Tree
from axlog.future.requirements import Group, Slot, Subject
from axlog.future.type_steps import Removable, Step
from axlog.future.type_trees import Place, Recipe, Trees


class Message(NamedTuple):
    """The trees that a stream delivers in one message, or what it deletes.

    `removed` names nodes of the document, and trees of earlier messages.
    """

    stream: str
    forest: list[Element]
    removed: tuple[int | Element, ...] = ()

    def __str__(self) -> str:
        if self.removed:
            return f"{self.stream}: deletes {len(self.removed)}"
        trees = "".join(etree.tostring(tree, encoding="unicode") for tree in self.forest)
        return f"{self.stream}: {trees}"


def apply_messages(
    tree: Tree, messages: Iterable[Message], *, checked: Schema | None = None
) -> Tree:
    """A copy of the document after messages; messages of calls that do not exist are skipped.

    With `checked`, every message must be valid when it arrives (AX705, AX706).
    """
    later = copy.deepcopy(tree)
    guard = None if checked is None else TypeGuard(later, checked)
    made: dict[int, int] = {}  # nodes of delivered trees, by the identity of their elements
    for message in messages:
        if message.stream not in later.calls():
            continue
        with nullcontext() if guard is None else guard.bringing(message.stream):
            operations = _operations(later, message, made)
            time = None if message.removed else later.clock + 1
            watchers = [] if guard is None else [guard]
            delta = apply(later, operations, time, watchers=watchers, keep_whitespace=True)
        if not message.removed:
            made.update(zip(map(id, message.forest), delta.added, strict=True))
    return later


def _operations(tree: Tree, message: Message, made: Mapping[int, int]) -> list[Operation]:
    if not message.removed:
        return insert_at_call(tree, message.stream, message.forest)
    nodes = {each if isinstance(each, int) else made[id(each)] for each in message.removed}
    return delete_at_call(tree, message.stream, nodes.__contains__)


class Writer:
    """Writes trees and messages; new calls never get a stream name in `reserved`."""

    def __init__(self, trees: Trees, reserved: set[str]) -> None:
        self.trees = trees
        names = (f"new{number}" for number in count(1))
        self._names: Iterator[str] = (name for name in names if name not in reserved)

    def tree(self, place: Place) -> tuple[Element, list[Message]]:
        """The tree that fills a place, and the messages of its calls after it."""
        recipe = self.trees.recipes[place]
        made = etree.Element(place.label)
        for name, value in recipe.attributes.items():
            made.set(name, value)
        later: list[Message] = []
        for group in recipe.groups:
            if group.slot.service is None:
                append_child(made, self._child(place.service, group, later))
        self._fill(made, place, recipe, later)
        streams = self._calls(made, recipe)
        for message, after in self.messages(recipe.steps, recipe.groups, streams):
            later += [message, *after]
        return made, later

    def messages(
        self,
        steps: list[Step],
        groups: list[Group],
        streams: dict[str, str],
        removable: Mapping[Removable, list[list[int]]] | None = None,
    ) -> Iterator[tuple[Message, list[Message]]]:
        """The message of each step, wanted trees first, with the messages of its new calls."""
        wanted = [group for group in groups if group.slot.service is not None]
        left = {each: list(nodes) for each, nodes in (removable or {}).items()}
        withdrawn = _withdrawn(steps)
        there: dict[tuple[str, str], list[Element]] = {}
        for number, step in enumerate(steps):
            stream, service = streams[step.caller.name], step.caller.service
            if not step.roots:
                gone: list[int | Element] = []
                for each, count_ in step.removed.items():
                    gone += [node for _ in range(count_) for node in left[each].pop(0)]
                for key, count_ in step.withdrawn.items():
                    gone += [there[key].pop(0) for _ in range(count_)]
                yield Message(stream, [], tuple(gone)), []
                continue
            forest: list[Element] = []
            after: list[Message] = []
            for label, trees in step.roots.items():
                for at in range(trees):
                    stays = (number, label, at) not in withdrawn
                    found = [g for g in wanted if stays and _is_of(g, service, label)][:1]
                    wanted = [g for g in wanted if g not in found]
                    wants = found[0].wants if found else frozenset()
                    made, later = self.tree(Place(service, label, wants))
                    forest.append(made)
                    there.setdefault((step.caller.name, label), []).append(made)
                    after += later
            yield Message(stream, forest), after

    def _child(self, service: str, group: Group, later: list[Message]) -> Element | str:
        subject = group.slot.subject
        if subject.kind is NodeKind.TEXT:
            return subject.label
        if subject.label in self.trees.universe:
            made, after = self.tree(Place(service, subject.label, group.wants))
            later += after
            return made
        made = etree.Element(subject.label)
        for name, value in (self.trees.leaf_attributes(group) or {}).items():
            made.set(name, value)
        return made

    def _fill(self, made: Element, place: Place, recipe: Recipe, later: list[Message]) -> None:
        """Add the children and attributes that the numbers require beyond the wanted ones."""
        there = Counter(
            self.trees.kind(slot.subject) for slot, _ in recipe.groups if slot.service is None
        )
        fresh = self.trees.matcher.strings[-1]
        for kind, number in recipe.numbers.items():
            if kind.startswith("@"):
                if number and made.get(kind[1:]) is None:
                    made.set(kind[1:], fresh)
                continue
            for _ in range(0 if kind.startswith("?") else number - there[kind]):
                subject = Subject(NodeKind.ELEMENT, fresh if kind == OTHER else kind)
                if kind == TEXT:
                    subject = Subject(NodeKind.TEXT, fresh)
                append_child(
                    made, self._child(place.service, Group(Slot(subject), frozenset()), later)
                )

    def _calls(self, made: Element, recipe: Recipe) -> dict[str, str]:
        """Add the calls; return the streams of those that deliver data, by caller name."""
        callers = {step.caller.name: step for step in recipe.steps}
        streams: dict[str, str] = {}
        for kind, number in recipe.numbers.items():
            if not kind.startswith("?"):
                continue
            delivering = [name for name, step in callers.items() if step.caller.service == kind[1:]]
            for at in range(number):
                call = etree.SubElement(made, CALL_LABEL, stream=next(self._names))
                call.set("service", kind[1:])
                if at < len(delivering):
                    streams[delivering[at]] = call.get("stream") or ""
                    if callers[delivering[at]].goes:
                        call.set("mode", "one-shot")
        return streams


def _withdrawn(steps: list[Step]) -> set[tuple[int, str, int]]:
    """The delivered trees that a later step deletes: oldest first, by step, label and place."""
    there: dict[tuple[str, str], list[tuple[int, str, int]]] = {}
    found: set[tuple[int, str, int]] = set()
    for number, step in enumerate(steps):
        for label, trees in step.roots.items():
            mine = there.setdefault((step.caller.name, label), [])
            mine += [(number, label, at) for at in range(trees)]
        for key, trees in step.withdrawn.items():
            found |= {there[key].pop(0) for _ in range(trees)}
    return found


def _is_of(group: Group, service: str, label: str) -> bool:
    return group.slot.service == service and group.slot.subject.label == label


def append_child(made: Element, child: Element | str) -> None:
    """Add a child. A comment separates two adjacent texts, which would otherwise merge."""
    if not isinstance(child, str):
        made.append(child)
        return
    last = made[-1] if len(made) else None
    if (made.text if last is None else last.tail) is not None:
        last = etree.Comment("")
        made.append(last)
    if last is None:
        made.text = child
    else:
        last.tail = child
