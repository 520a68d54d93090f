"""The parse tables in the package are those of its grammar, and parse the same."""

from __future__ import annotations

import json

import pytest
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from axlog.errors import QuerySyntaxError
from axlog.query.grammar_tables import compute, dump, load
from axlog.query.native_parser import GRAMMAR

TEXTS = [
    "match /a/b/$x return $x",
    "match //order#t[oid/$x][not(paid)]/item[@k = 'v' or //c] return $x, t.val, t.id",
    'match //a/text()#t[. = "x"] where $x > 3 as xs:decimal and $y < date "2024-01-01" return $x',
    "match //c[n/$n], //o#o[c/$n][p/$p] return $n, count(*) as k, sum($p) having k > 2"
    " order by k descending limit 3",
    "match //{urn:x}a/following-sibling::b/../*:c#d return d.cont",
    "match //größe[. * 2 + 1 = if (@a) then 1 else -2] where now - t >= 5m return t.time",
    "match //a[starts-with(string-join(b, '-'), \"x\")] return 1",
]


@pytest.fixture(scope="module")
def computed() -> Lark:
    return compute(GRAMMAR.source)


def _kept() -> str:
    return GRAMMAR.tables.read_text(encoding="utf-8")


def test_the_package_has_the_tables_of_its_grammar() -> None:
    """After a change of the grammar: `python -m lab grammar`."""
    assert load(GRAMMAR.source, _kept()) is not None


def test_tables_from_the_file_parse_as_computed_ones(computed: Lark) -> None:
    kept = load(GRAMMAR.source, _kept())
    assert kept is not None
    answers = [_parsed(computed, text) for text in TEXTS]
    assert [_parsed(kept, text) for text in TEXTS] == answers
    assert sum(not isinstance(answer, str) for answer in answers) >= 5


def _parsed(parser: Lark, text: str) -> Tree[Token] | str:
    """The parse tree, or where the text is refused."""
    try:
        found: Tree[Token] = parser.parse(text)
    except UnexpectedInput as error:
        return f"refused at {error.pos_in_stream}"
    return found


def test_another_grammar_or_lark_computes_its_own_tables() -> None:
    assert load(GRAMMAR.source + "\n", _kept()) is None
    other = json.loads(_kept()) | {"lark": "0.0"}
    assert load(GRAMMAR.source, json.dumps(other)) is None


def test_a_file_can_be_written_again(computed: Lark) -> None:
    again = load(GRAMMAR.source, dump(GRAMMAR.source))
    assert again is not None
    assert again.parse(TEXTS[0]) == computed.parse(TEXTS[0])


def test_refusals_name_what_the_grammar_accepts() -> None:
    with pytest.raises(QuerySyntaxError, match="the query ends too early"):
        GRAMMAR.parse("match /a/b[")
