"""EXAMPLES 18 (P4 figure 1): the pattern kept through each of P4's updates, against lxml."""

from __future__ import annotations

from contextlib import suppress

import pytest
from lxml import etree

import axlog
from axlog.errors import UpdateError
from axlog.live.internals import maintained, maintained_view
from lab.laws.xpath_law import positions_of_tree, selected_by_lxml

QUERY = "/a[.//b or not(./c)]/*//d"
DOCUMENTS = (
    "<a><x><b/><y><d/></y></x></a>",  # by its first branch
    "<a><x><y><d/></y></x></a>",  # by its second
    "<a><c/><x><y><d/></y></x></a>",  # by neither
)
STATEMENTS = (
    "rename node /a/*[last()] as 'c'",
    "insert node <c/> after /a/x",
    "insert node <b/> as first into /a/*[last()]",
    "insert node <d/> as first into //y",
    "delete nodes //b",
    "delete nodes /a/c",
    "delete node (//y)[1]",
)


@pytest.mark.parametrize("text", DOCUMENTS)
@pytest.mark.parametrize("first", range(len(STATEMENTS)))
def test_differential_figure_1_after_every_update(text: str, first: int) -> None:
    document = axlog.parse(text)
    view = document.watch(QUERY)
    assert maintained_view(view).chosen.name == "counting"
    for statement in STATEMENTS[first:] + STATEMENTS[:first]:
        with suppress(UpdateError):  # its target may not be there
            document.update(statement)
        nodes = positions_of_tree(maintained(document).tree)
        positions = {
            maintained(document).tree.id(node): position for node, position in nodes.items()
        }
        found = [positions[row["node.id"]] for row in view.rows()]
        assert len(found) == len(set(found)), statement
        assert set(found) == selected_by_lxml(etree.fromstring(document.xml()), QUERY), statement
