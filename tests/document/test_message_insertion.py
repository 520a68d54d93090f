"""Messages that become nodes: in bulk, and by the general plan of update lists."""

from __future__ import annotations

from random import Random

import pytest

from axlog.document.loader import load, read_forest
from axlog.document.message_insertion import Arrived, insert_all, insertion_of
from axlog.document.operations import insert_at_call
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits
from axlog.document.pending import Plan, planned
from axlog.document.record_templates import RecordTemplates
from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.errors import AxlogError

DOCUMENT = (
    '<r xmlns:ax="urn:axlog" xmlns:p="urn:p"><a k="1">x<ax:call stream="s"/></a>'
    '<b><c/><ax:call stream="t"/>tail</b></r>'
)
MESSAGES = (
    "<m>1</m>",
    "<m><n k='1' l='2'>t<o/>u</n> <n/></m>",
    "<!--c--><m/><?p q?>",
    "<p:m xmlns:p='urn:p' p:k='v'><p:n/></p:m>",
    "<q:m xmlns:q='urn:p' xmlns:r='urn:p'><r:n q:k='1'/></q:m>",
    "<m xmlns='urn:d'><n xmlns=''/></m>",
    "<m>" + "<n>text</n>" * 40 + "</m>",
    "<m xml:space='preserve'> <n/> </m>",
    '<m k="{}" l=""><n>{}</n> <n>{}<o/>{}</n>\n</m>',
    '<m><n k="{}">{}</n><n/></m>',
)
STRINGS = (
    "1",
    "x y",
    " 1",
    "",
    "  ",
    "a > b",
    'say "so"',
    "é\u2028",
    "1\t2",
    "'",
    "xml",
    "5 &amp; 6",
)
"""Texts, of which some are white space, references, or read in another way than written."""


def columns(tree: Tree) -> dict[str, object]:
    """Everything that a tree stores, apart from the cache of markup and unused memory."""
    found = {name: value for name, value in vars(tree).items() if name != "tags_by_name"}
    found["texts"] = {node: tree.text(node) for node in tree.texts_by_node}
    return found


def arrivals(random: Random, count: int) -> list[tuple[str, str, int]]:
    def message() -> str:
        text = random.choice(MESSAGES)
        while "{}" in text:
            string = random.choice(STRINGS[:3] if random.random() < 0.7 else STRINGS)
            is_value = text.partition("{}")[0].endswith('="')
            text = text.replace("{}", string.replace('"', "") if is_value else string, 1)
        return text

    return [(random.choice("st"), message(), at) for at in range(count)]


@pytest.mark.parametrize("seed", range(40))
def test_differential_bulk_insertion_and_plans(seed: int) -> None:
    """One by one by the plan, one by one in bulk, all together: the same columns."""
    random = Random(seed)
    one, other, together = (load(DOCUMENT) for _ in range(3))
    arrived: list[Arrived] = []
    for number, (stream, text, time) in enumerate(arrivals(random, random.randint(2, 60))):
        operations = insert_at_call(one, stream, read_forest(text))
        Plan(one, operations, time).commit()
        again = insert_at_call(other, stream, read_forest(text))
        plan = insertion_of(other, again, time, DEFAULT_LIMITS, False)
        assert plan is not None
        plan.commit()
        arrived.append(Arrived(stream, text.encode(), time, number))
        assert columns(one) == columns(other)
    templates = RecordTemplates(together)
    deltas = [
        delta
        for start in range(0, len(arrived), 25)
        for delta in insert_all(
            together, arrived[start : start + 25], DEFAULT_LIMITS, read_forest, templates
        )
    ]
    assert columns(together) == columns(one)
    assert serialise(together) == serialise(one)
    added = [len(delta.added) for delta in deltas]
    assert added == [len(read_forest(each.text)) for each in arrived]
    ids = [[one.id(node) for node in delta.added] for delta in deltas]
    assert ids == [[together.id(node) for node in delta.added] for delta in deltas]


def test_other_operations_take_the_general_plan() -> None:
    tree = load(DOCUMENT)
    holding = insert_at_call(
        load(DOCUMENT.replace('stream="s"', 'stream="s" calls="9"')),
        "s",
        read_forest('<m><ax:call xmlns:ax="urn:axlog" stream="new"/></m>'),
    )
    assert insertion_of(tree, holding, 0, DEFAULT_LIMITS, False) is None
    assert insertion_of(tree, [], 0, DEFAULT_LIMITS, False) is None


def test_an_abandoned_insertion_leaves_the_tree_as_it_was() -> None:
    tree = load(DOCUMENT)
    before = serialise(tree), len(tree)
    plan = planned(tree, insert_at_call(tree, "s", read_forest("<m>1</m>")), 3)
    plan.abandon()
    assert (serialise(tree), len(tree)) == before
    planned(tree, insert_at_call(tree, "s", read_forest("<m>1</m>")), 3).commit()
    assert serialise(tree).count("<m>1</m>") == 1


def test_a_message_over_a_limit_is_refused_as_by_the_plan() -> None:
    tree = load(DOCUMENT)
    operations = insert_at_call(tree, "s", read_forest("<m><n><o/></n></m>"))
    with pytest.raises(AxlogError) as bulk:
        planned(tree, operations, 1, limits=Limits(depth=3))
    with pytest.raises(AxlogError) as general:
        Plan(tree, operations, 1, limits=Limits(depth=3))
    assert bulk.value.code == general.value.code


def test_messages_with_the_markup_of_others_are_not_parsed() -> None:
    tree, parsed = load(DOCUMENT), []
    messages = [Arrived("s", f'<m k="{n}"><n>a{n}</n></m>'.encode(), n, n) for n in range(10)]

    def parse(text: bytes) -> list[Element]:
        parsed.append(text)
        return list(read_forest(text))

    insert_all(tree, messages, DEFAULT_LIMITS, parse, RecordTemplates(tree))
    assert parsed == [each.text for each in messages[:3]]
    assert '<m k="9"><n>a9</n></m>' in serialise(tree)
