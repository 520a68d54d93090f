"""Messages that were set aside become nodes, when the document is read."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from lxml.etree import fromstring

from axlog.document.loader import read_forest, with_surroundings
from axlog.document.message_insertion import Arrived, insert_all
from axlog.document.operations import insert_at_call
from axlog.document.parser import Element, make_parser
from axlog.document.pending import commit, planned
from axlog.document.record_templates import RecordTemplates
from axlog.live.maintained import MaintainedTree
from axlog.match.message_limits import without_declaration
from axlog.match.message_values import may_have_markup

Aside: TypeAlias = tuple[str, bytes, int, int]
"""A message that was set aside: its stream, its text, its time and its number in the stream."""
TOGETHER = 4096
"""The most messages whose nodes are made together."""


def make_nodes(document: MaintainedTree, aside: Sequence[Aside]) -> None:
    """Make nodes of messages that the views have already processed."""
    tree = document.tree
    clock = tree.clock
    is_together = all(tree.call(each).replace is None for each in tree.calls_by_stream.values())
    if is_together and len(aside) > 1:
        _insert_together(document, aside)
    else:
        for stream, message, time, number in aside:
            tree.clock = time
            operations = insert_at_call(tree, stream, read_forest(message, document.limits))
            plan = planned(tree, operations, time, limits=document.limits)
            commit(plan, document.value_index)
            document.hooks.brought(plan.delta, stream, True)
            tree.record_origin(plan.delta.added, stream, number)
    tree.clock = clock


def _insert_together(document: MaintainedTree, aside: Sequence[Aside]) -> None:
    """Make nodes of messages that took the short path, in one pass over the columns."""
    tree = document.tree
    templates = document.record_templates
    if templates is None or not templates.fits(tree):
        templates = document.record_templates = RecordTemplates(tree)
    is_collecting = gc.isenabled()
    gc.disable()  # many fresh objects, none of them garbage
    try:
        for start in range(0, len(aside), TOGETHER):
            arrived = [
                Arrived(stream, without_declaration(message), time, number)
                for stream, message, time, number in aside[start : start + TOGETHER]
            ]
            deltas = insert_all(tree, arrived, document.limits, _trees, templates)
            document.value_index.follow(deltas)
            for message, delta in zip(arrived, deltas, strict=True):
                document.hooks.brought(delta, message.stream, True)
                tree.record_origin(delta.added, message.stream, message.number)
    finally:
        if is_collecting:
            gc.enable()


_parser = lru_cache(maxsize=1)(make_parser)


def _trees(message: bytes) -> list[Element]:
    """The trees of a message that took the short path: it was parsed and checked already."""
    root = fromstring(message, _parser())
    return with_surroundings(root) if may_have_markup(message) else [root]
