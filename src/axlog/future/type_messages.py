"""Writes the messages of a solution: trees from their recipes, in the order in which they arrive.

A verdict that a row is possible can be demonstrated: these are the messages to feed, and each is
valid when it arrives. New calls get fresh stream names.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from lxml import etree

from axlog.document.cardinality import TEXT
from axlog.document.operations import insert_at_call
from axlog.document.parser import Element
from axlog.document.pending import apply
from axlog.document.schema import OTHER
from axlog.document.tree import CALL_LABEL, NodeKind, Tree
from axlog.future.requirements import Group, Slot, Subject
from axlog.future.type_steps import Step
from axlog.future.type_trees import Place, Recipe, Trees


class Message(NamedTuple):
    """The trees that a stream delivers in one message."""

    stream: str
    forest: list[Element]

    def __str__(self) -> str:
        trees = "".join(etree.tostring(tree, encoding="unicode") for tree in self.forest)
        return f"{self.stream}: {trees}"


def apply_messages(tree: Tree, messages: Iterable[Message]) -> Tree:
    """A copy of the document after messages; messages of calls that do not exist are skipped."""
    later = copy.deepcopy(tree)
    for message in messages:
        if message.stream in later.calls():
            operations = insert_at_call(later, message.stream, message.forest)
            apply(later, operations, later.clock + 1, keep_whitespace=True)
    return later


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
        self, steps: list[Step], groups: list[Group], streams: dict[str, str]
    ) -> Iterator[tuple[Message, list[Message]]]:
        """The message of each step, wanted trees first, with the messages of its new calls."""
        wanted = [group for group in groups if group.slot.service is not None]
        for step in steps:
            service = step.caller.service
            forest: list[Element] = []
            after: list[Message] = []
            for label, number in step.roots.items():
                for _ in range(number):
                    found = [g for g in wanted if _is_of(g, service, label)][:1]
                    wanted = [g for g in wanted if g not in found]
                    wants = found[0].wants if found else frozenset()
                    made, later = self.tree(Place(service, label, wants))
                    forest.append(made)
                    after += later
            yield Message(streams[step.caller.name], forest), after

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
