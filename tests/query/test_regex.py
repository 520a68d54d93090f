"""Regular expressions of XPath: their syntax, what they match, and their time."""

from __future__ import annotations

import re
from random import Random

import pytest

from axlog.errors import QueryError, UnsupportedError, ValueProblem
from axlog.query.regex_matcher import Regex, regex
from axlog.query.update_parser import parse_statements


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "is_match"),
    [
        ("a.c", "", "a\nc", False),
        ("a.c", "s", "a\nc", True),
        ("^b$", "", "a\nb", False),
        ("^b$", "m", "a\nb\nc", True),
        ("$", "m", "a\n", True),
        ("[a-z-[aeiou]]", "", "aei", False),
        ("[^a-c]", "", "abc", False),
        ("[\\d.-]+x", "", "1.-x", True),
        ("\\p{Lu}\\p{IsGreek}", "", "AΩ", True),
        ("\\P{L}", "", "ab", False),
        ("\\i\\c*", "", "9a", True),
        ("^\\i\\c*$", "", "a:b-9", True),
        ("a b", "x", "ab", True),
        ("a[ ]b", "x", "a b", True),
        ("a.b", "q", "axb", False),
        ("STRASSE", "i", "strasse", True),
        ("[A-F]", "i", "c", True),
        ("a{2,3}b", "", "aab", True),
        ("(?:a|b){2}$", "", "cab", True),
        ("", "", "", True),
    ],
)
def test_matching(pattern: str, flags: str, text: str, is_match: bool) -> None:
    assert regex(pattern, flags).matches(text) is is_match


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[", "a]", "[]", "a{", "a{2,1}", "*a", "a**", "\\q", "\\p{Xx}", "[z-a]", "(?=a)",
     "a{b}", "\\", "[a-z-[b]c]", "(a)\\1", "{", "}"],
)  # fmt: skip
def test_texts_that_are_no_regular_expressions(pattern: str) -> None:
    with pytest.raises(ValueProblem) as caught:
        Regex(pattern)
    assert caught.value.code == "FORX0002"


def test_flags_are_checked() -> None:
    with pytest.raises(ValueProblem) as caught:
        Regex("a", "g")
    assert caught.value.code == "FORX0001"


@pytest.mark.parametrize(
    "pattern",
    ["(a{1000}){1000}", "(?:(?:(?:){1000}){1000}){1000}", "a{1001}", "(" * 60 + ")" * 60,
     "a" * 3000],
)  # fmt: skip
def test_large_expressions_are_refused(pattern: str) -> None:
    with pytest.raises(QueryError) as caught:
        Regex(pattern)
    assert caught.value.code == "AX213"


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*)(.*)(.*)(.*)c", "a?" * 40 + "a" * 40]
)
def test_hostile_expressions_end(pattern: str) -> None:
    """Steps are counted, not seconds: the automaton has few states."""
    found = Regex(pattern)
    assert found.matches("a" * 20_000) is not pattern.endswith(("b", "c"))
    assert found.kept < 5_000


def test_a_search_that_looks_ahead_too_often_is_refused() -> None:
    with pytest.raises(ValueProblem) as caught:
        list(regex("a.*b|a").spans("a" * 30_000))
    assert caught.value.code == "AX216"


def test_spans_and_groups_are_those_of_python() -> None:
    """On the common subset of both syntaxes, Python's backtracking defines the choice."""
    random = Random(4)
    atoms = ("a", "b", "[ab]", ".", "(a|b)", "(ab|a)", "(?:b|bc)", "(?:(a)(b)?)", "c")
    for _ in range(1500):
        parts = [
            random.choice(atoms) + random.choice(("", "", "?", "+", "*", "??", "+?", "{1,2}"))
            for _ in range(random.randint(1, 3))
        ]
        pattern = random.choice(("", "", "^")) + "".join(parts) + random.choice(("", "", "$"))
        text = "".join(random.choice("abc") for _ in range(random.randint(0, 8)))
        found = [spans[:2] for spans in regex(pattern).spans(text)]
        wanted = [list(each.span()) for each in re.finditer(pattern.replace("$", r"\Z"), text)]
        if regex(pattern).matches_empty:  # Python finds an empty match after another one
            assert bool(found) == bool(wanted), (pattern, text)
        else:
            assert found == wanted, (pattern, text)
        if found and "*" not in pattern and "?" not in pattern:
            first = next(iter(regex(pattern).spans(text)))
            python = re.search(pattern.replace("$", r"\Z"), text)
            assert python is not None
            groups = [
                at for group in range(1, regex(pattern).groups + 1) for at in python.span(group)
            ]
            assert first[2:] == groups, (pattern, text)


def test_a_constant_pattern_is_checked_when_a_statement_is_parsed() -> None:
    with pytest.raises(ValueProblem) as caught:
        parse_statements("delete nodes //a[matches(., '(')]")
    assert caught.value.code == "FORX0002"
    assert caught.value.place is not None
    assert caught.value.place.column == 29


def test_the_clock_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse_statements("delete nodes //a[@due < current-dateTime()]")
    assert "current-dateTime()" in caught.value.message
