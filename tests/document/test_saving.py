"""A tree saved and loaded again is the same tree: ids, times, and what updates do to it."""

import json
import random
from contextlib import suppress

import pytest

from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.document.tree_codec import load_tree, save_tree
from axlog.errors import AxlogError, StoreError
from axlog.live.document import Document
from axlog.live.internals import maintained
from lab.laws.edits import carry_out
from lab.laws.fuzz_cases import make_case
from tests.document_invariants import invariants


def seen(tree: Tree) -> object:
    """All that can be seen of a tree; which handles its nodes have cannot."""
    nodes = [(tree.id(n), tree.kind(n), tree.label(n), tree.time(n), (tree.origin(n) or ("",))[0])
             for n in tree.subtree(0)]  # fmt: skip
    return nodes, serialise(tree), tree.clock, tree.ended, tree.brought, sorted(tree.labels())


def test_differential_saved_and_loaded_at_any_step() -> None:
    """Updates after a load come to the same document, with the same ids."""
    for seed in range(150):
        draw = random.Random(f"saving:{seed}")
        case = make_case(draw)
        plain, saved = Document(case.document), Document(case.document)
        for step in case.steps:
            outcomes: list[str | None] = []
            for doc in (plain, saved):
                try:
                    carry_out(doc, step)
                    outcomes.append(None)
                except AxlogError as error:
                    outcomes.append(error.code)
            assert outcomes[0] == outcomes[1]
            if draw.random() < 0.5:
                saved = Document(load_tree(save_tree(maintained(saved).nodes())))
            invariants(maintained(saved).nodes())
            assert seen(maintained(saved).nodes()) == seen(maintained(plain).nodes())


def tree_parts() -> dict[str, bytes]:
    document = maintained(
        Document('<a x="1"><b>t</b><ax:call xmlns:ax="urn:axlog" stream="s" most="3"/></a>')
    )
    document.update("insert node <c>new</c> as first into /a")
    return save_tree(document.nodes())


@pytest.mark.parametrize("part", sorted(tree_parts()))
def test_parts_that_do_not_fit_are_refused(part: str) -> None:
    """Fewer bytes, other numbers, no JSON: an error of ours, never a loop or a strange tree."""
    parts = tree_parts()
    draw = random.Random(part)
    for _ in range(60):
        data = bytearray(parts[part])
        if draw.random() < 0.3:
            del data[draw.randrange(len(data) + 1) :]
        elif data:
            data[draw.randrange(len(data))] = draw.randrange(256)
        with suppress(StoreError):
            list(load_tree(parts | {part: bytes(data)}).subtree(0))


def test_a_missing_part_is_refused() -> None:
    parts = tree_parts()
    del parts["tree_next"]
    with pytest.raises(StoreError):
        load_tree(parts)


def test_the_other_byte_order_is_turned() -> None:
    parts = tree_parts()
    said = json.loads(parts["tree"])
    other = "big" if said["byteorder"] == "little" else "little"
    turned = dict(parts)
    for name, data in parts.items():
        size = {"tree": 0, "tree_bytes": 0, "tree_kind": 1, "tree_time": 8, "tree_spans": 8}
        width = size.get(name, 4)
        if width > 1:
            turned[name] = b"".join(
                data[at : at + width][::-1] for at in range(0, len(data), width)
            )
    turned["tree"] = json.dumps(said | {"byteorder": other}).encode()
    assert seen(load_tree(turned)) == seen(load_tree(parts))
