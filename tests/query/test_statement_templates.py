"""Statements that differ in their strings are parsed once, and do what they do alone."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from lxml import etree

import axlog
from axlog.document.loader import load
from axlog.document.parser import DEFAULT_LIMITS
from axlog.document.tree import Tree
from axlog.errors import AxlogError
from axlog.evaluate.statements import operations_of
from axlog.query.statement_templates import OFTEN, instance_of
from axlog.query.syntax_tree import Statement
from axlog.query.update_parser import parse_statements

TEXTS = (
    'replace value of node /r/a[@k = "{0}"] with "{1}"',
    "insert node <n v='{0}' w=\"{1}\">{2}</n> into /r/a[@k = '{0}']",
    'for $a in /r/a where $a/@k != "{0}" return rename node $a as "z{1}"',
    'delete nodes /r/a[starts-with(@k, "{0}")]',
    'if (/r/a = "{0}") then delete nodes /r/a[. = "{1}"] else insert node "{2}" into /r',
    'insert node attribute m {{"{0}"}} into /r/a[1]',
    'insert node <n>{{"{0}", "{1}"}}<o p="{2}"/></n> into /r',
    'let $x := "{0}" return insert node <n>{{concat($x, "{1}")}}</n> into /r',
    'delete nodes /r/a[@k > "{0}"]',
)
WORDS = ("1", "2", "x", "", " y ", "a b", "10")


@pytest.mark.parametrize("text", TEXTS)
def test_a_template_does_what_its_statements_do(text: str) -> None:
    random = Random(1)
    used = 0
    for _ in range(25):
        statement = text.format(*(random.choice(WORDS) for _ in range(3)))
        document = "<r><a k='1'>x</a><a k='2'>2</a><a k='10'/></r>"
        tree = load(document)
        (alone,) = parse_statements(statement)
        found = instance_of(statement, (), DEFAULT_LIMITS)
        if found is None:  # an empty text is no text of the constructor
            continue
        used += 1
        ((instance,), strings) = found
        by_template = _outcome(tree, instance, strings)
        assert by_template == _outcome(tree, alone, {}), statement
    assert used > 5


def _outcome(tree: Tree, statement: Statement, strings: dict[str, str]) -> list[str] | str:
    try:
        return _shown(operations_of(tree, statement, None, strings))
    except AxlogError as error:
        return error.code


def _shown(operations: Iterable[object]) -> list[str]:
    def piece(value: Any) -> str:
        return etree.tostring(value).decode() if hasattr(value, "tag") else repr(value)

    found = []
    for operation in operations:
        content = [piece(each) for each in getattr(operation, "content", ())]
        names = ("where", "target", "label", "value")
        found.append(f"{type(operation).__name__} {content} "
                     + " ".join(str(getattr(operation, name, "")) for name in names))  # fmt: skip
    return found


def test_a_text_that_is_used_often_is_parsed_as_it_is() -> None:
    text = 'insert node <often w="1">{$v}</often> into /r/a[@k = $k]'
    tree = load("<r><a k='1'/><a k='2'/></r>")
    for use in range(2 * OFTEN):
        found = instance_of(text, (), DEFAULT_LIMITS)
        assert found is not None
        ((statement,), strings) = found
        assert len(strings) == (1 if use < OFTEN else 0)
        given = {**strings, "v": str(use), "k": "2"}
        assert f'<often w="1">{use}</often>' in "".join(_outcome(tree, statement, given))
    assert instance_of(text, (("p", "u"),), DEFAULT_LIMITS) is not found


@pytest.mark.parametrize(
    "statement",
    [
        'delete node /a[. = "a""b"]',
        'delete node //a[processing-instruction("x")]',
        'declare namespace p = "u"; delete node //p:a[. = "z"]',
        'delete node /a[matches(., "[")]',
        'delete node /a (: "x" :)',
        'insert node <n a="&lt;"/> into /a',
    ],
)
def test_texts_without_a_template(statement: str) -> None:
    for _ in range(OFTEN):
        assert instance_of(statement, (), DEFAULT_LIMITS) is None


@pytest.mark.parametrize(
    "statement",
    ["delete node //a", "insert node <n> </n> into /a"],
)
def test_texts_without_strings_are_parsed_once(statement: str) -> None:
    first, again = (instance_of(statement, (), DEFAULT_LIMITS) for _ in range(2))
    assert first is not None
    assert again is not None
    assert first[0] is again[0]
    assert not first[1]


def test_a_text_without_a_template_is_parsed_as_it_is_if_it_is_used_often() -> None:
    text = "delete node /r/a[matches(., '^x')]"
    found = [instance_of(text, (), DEFAULT_LIMITS) for _ in range(OFTEN + 2)]
    assert found[OFTEN - 1] is None
    assert found[OFTEN] is not None
    kept = [each for each in found if each is not None]
    assert kept[0][0] is kept[1][0]
    document = axlog.parse("<r><a>xy</a><a>y</a></r>")
    document.update(text)
    assert document.xml() == "<r><a>y</a></r>"


def test_texts_over_several_lines_have_a_template() -> None:
    tree = load("<r/>")
    for word in ("one", "two"):
        text = f"insert node <n>\n  <m>\n\t{word} \n</m>\n</n> into /r"
        found = instance_of(text, (), DEFAULT_LIMITS)
        assert found is not None
        ((statement,), strings) = found
        assert list(strings.values()) == [f"\n\t{word} \n"]
        (alone,) = parse_statements(text)
        assert _outcome(tree, statement, strings) == _outcome(tree, alone, {})


def test_errors_have_the_places_of_their_own_text() -> None:
    document = axlog.parse("<r><a/></r>")
    document.update('rename node /r/a as "b"')
    with pytest.raises(AxlogError) as caught:
        document.update('rename node /r/b as    "1 2 3"')
    assert caught.value.code == "XQDY0074"
    assert caught.value.place is not None
    assert caught.value.place.column == 24
    assert document.xml() == "<r><b/></r>"


def test_given_variables_and_strings_do_not_meet() -> None:
    document = axlog.parse("<r><a k='1'/></r>")
    document.update('insert node <n v="x">{$t}</n> into /r/a[@k = "1"]', variables={"t": "y"})
    assert document.xml() == '<r><a k="1"><n v="x">y</n></a></r>'
