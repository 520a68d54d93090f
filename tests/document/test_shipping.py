"""Lists of updates as JSON and XML: what is read is what was written, ids included."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from lxml import etree

from axlog.document.ids import Id
from axlog.document.list_codec import from_json, from_xml, read_lists, to_json, to_xml
from axlog.document.loader import load
from axlog.document.operations import Attribute
from axlog.document.update_lists import Edit, EditKind, Markup, UpdateList, record
from axlog.errors import AxlogError, UpdateError
from lab.laws import small_cases
from tests.accepted_errors import accept


def canonical(edit: Edit) -> Edit:
    """The edit with the canonical text of its content."""
    content = tuple(
        Markup(etree.canonicalize(f"<_>{each.xml}</_>")) if isinstance(each, Markup) else each
        for each in edit.content
    )
    return replace(edit, content=content)


def everything(given: UpdateList) -> object:
    """A list with what equality leaves out, and without declarations that are repeated."""
    return (
        [canonical(edit) for edit in given],
        [edit.known_roots() for edit in given],
        given.created,
    )


def test_oracle_reading_gives_what_was_written() -> None:
    shipped = 0
    for seed in range(300):
        random = Random(seed)
        tree = load(small_cases.document(random, 14))
        try:
            _, made = record(tree, small_cases.operations(random, tree, 5))
        except AxlogError as error:
            accept(error)
            continue
        shipped += 1
        assert everything(from_json(to_json(made))) == everything(made), seed
        (again,) = from_xml(to_xml(made))
        assert everything(again) == everything(made), seed
        for both in (to_xml([made, made]), "\n".join([to_json(made), "", to_json(made)])):
            assert [everything(one) for one in read_lists(both)] == [everything(made)] * 2
    assert shipped > 100


@pytest.mark.parametrize(
    "piece",
    [
        "  white space \n\t",
        "<&>\"'",
        Attribute("{urn:x}k", "a\nb"),
        Markup('<p:a xmlns:p="urn:p" p:k="1"> <b/> </p:a>'),
        Markup('<a xmlns="urn:d"><b/></a>'),
        Markup('<a xmlns:unused="urn:u"/>'),
        Markup("<!--a comment-->"),
        Markup("<?target data?>"),
        Markup('<ax:call xmlns:ax="urn:axlog" stream="s"/>'),
    ],
)
def test_pieces_survive(piece) -> None:
    made = UpdateList((Edit(EditKind.INSERT_BEFORE, Id.parse("1.2^0.@1"), (piece, piece)),))
    assert from_json(to_json(made)) == made
    assert from_xml(to_xml(made)) == [made]


def test_what_xml_cannot_hold_is_refused_there() -> None:
    made = UpdateList((Edit(EditKind.REPLACE_VALUE, Id.parse("1"), text="\x00"),))
    assert from_json(to_json(made)) == made
    with pytest.raises(UpdateError) as caught:
        to_xml(made)
    assert caught.value.code == "AX306"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "the JSON cannot be read"),
        ("[]", "the list is not an object"),
        ("{}", "has no 'updates'"),
        ('{"updates": 1}', "'updates' is not a list"),
        ('{"updates": [{"op": "move", "target": "1"}]}', "update 1: there is no operation 'move'"),
        ('{"updates": [{"op": "delete"}]}', "update 1 has no 'target'"),
        ('{"updates": [{"op": "delete", "target": "x"}]}', "'x' is not an identifier"),
        ('{"updates": [{"op": "rename", "target": "1"}]}', "update 1 has no 'name'"),
        (
            '{"updates": [{"op": "insert-last", "target": "1", "content": [{"tree": "<a"}]}]}',
            "a tree is not well-formed",
        ),
        (
            '{"updates": [{"op": "insert-last", "target": "1", "content": [{}]}]}',
            "update 1 has no 'text'",
        ),
        (
            '{"updates": [{"op": "insert-last", "target": "1", "content": [], "ids": ["1"]}]}',
            "ids that do not belong to its content",
        ),
        ("<updates/>", "the root is updates"),
        ('<ax:updates xmlns:ax="urn:axlog"><ax:delete/></ax:updates>', "update 1 has no target"),
        (
            '<ax:updates xmlns:ax="urn:axlog"><ax:insert-last target="1">x</ax:insert-last>'
            "</ax:updates>",
            "there is text outside of ax:text",
        ),
    ],
)
def test_what_is_no_list_is_refused(text: str, what: str) -> None:
    with pytest.raises(UpdateError) as caught:
        read_lists(text)
    assert what in caught.value.message
    assert caught.value.code in ("AX305", "AX306")


def test_the_json_is_one_plain_object() -> None:
    made = UpdateList((Edit(EditKind.INSERT_LAST, Id.parse("1"), (Markup("<b/>"), "é")),))
    assert json.loads(to_json(made)) == {
        "updates": [
            {"op": "insert-last", "target": "1", "content": [{"tree": "<b/>"}, {"text": "é"}]}
        ]
    }
