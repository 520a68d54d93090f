"""Other people's XPath and XQuery cases: none fails, and what is outside says why.

The numbers are those of the given data; with more data they can only be a lower bound, so the tests
ask for shares and for reasons, not for exact counts.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from rich.console import Console

import axlog
from axlog.query.template import Piece, PieceKind
from lab.conformance import Case, Outcome, Result, libxml2, qt3, report, run, xmark
from lab.conformance.__main__ import main
from lab.conformance.answering import Answer, answer
from lab.conformance.judging import judge_of, literals
from lab.conformance.report import share, why
from lab.conformance.suites import given
from lab.reference.saxon import saxon_items

pytestmark = pytest.mark.system

SUITES = {"QT3": qt3.cases, "libxml2": libxml2.cases, "XPathMark": xmark.cases}


SLOW = ("XPathMark", "factor 0.01", "E5")
"""This case takes more time than all others together; `make conformance` runs it."""


@lru_cache
def results(suite: str, data: Path) -> list[Result]:
    made = SUITES[suite](data)
    return [run(case) for case in made if (case.suite, case.part, case.name) != SLOW]


@pytest.fixture
def data(conformance: Callable[[str], Path]) -> Path:
    return conformance(".")


@pytest.mark.parametrize("suite", SUITES)
def test_no_case_fails(suite: str, data: Path) -> None:
    found = results(suite, data)
    failed = [f"{each.case.name}: {each.reason}" for each in found if _is(each, Outcome.FAILED)]
    assert failed == []
    assert sum(_is(each, Outcome.PASSED) for each in found) >= 30


@pytest.mark.parametrize("suite", SUITES)
def test_cases_that_expect_an_error_raise(suite: str, data: Path) -> None:
    for each in results(suite, data):
        if each.case.expects_error:
            assert each.outcome in (Outcome.RAISED, Outcome.OUTSIDE), each.case.name


@pytest.mark.parametrize("suite", SUITES)
def test_what_is_outside_says_why(suite: str, data: Path) -> None:
    found = why(results(suite, data), Outcome.OUTSIDE)
    assert found or suite == "XPathMark", "a fragment has an outside"
    unnamed = [reason for reason in found if "unexpected `" in reason or not reason]
    assert unnamed == [], "valid texts are refused by name, not as if they did not parse"


def test_the_core_tier_is_answered(data: Path) -> None:
    core = [each for each in results("QT3", data) if each.case.part == "T0-core"]
    answered = [each for each in core if each.outcome in (Outcome.PASSED, Outcome.RAISED)]
    assert len(answered) >= 0.85 * len(core)


def test_shares_of_the_given_cases(data: Path) -> None:
    """Without the extra, and with it."""
    every = [each for suite in SUITES for each in results(suite, data)]
    assert share([each.alone for each in every]) >= 0.93
    assert share(every) >= 0.97
    assert any(each.alone is not each for each in every)


def test_oracle_what_raises_for_its_data_raises_in_saxon(data: Path) -> None:
    """Cases of XPath 1.0, where nothing raises: XPath 3.1 has an error, says Saxon too."""
    pytest.importorskip("saxonche")
    raised = [e for e in results("libxml2", data) if e.reason.startswith("XPath 3.1 raises")]
    assert len(raised) > 50
    for each in raised:
        assert each.case.document is not None
        xml = axlog.parse(each.case.document).xml()
        assert saxon_items(each.case.text, xml) is None, each.case.text


def test_xmark_queries_have_the_expected_answers(data: Path) -> None:
    found = {each.case.name: each.outcome for each in results("QT3", data)}
    assert found["XMark-Q15"] is found["XMark-Q17"] is Outcome.PASSED


def test_oracle_xpathmark_selects_the_nodes_of_lxml(data: Path) -> None:
    """By identity, not only by number: the string values in document order."""
    path = data / "xmark-xpathmark" / "docs" / "auction-0.001.xml"
    doc = axlog.parse(path, options=axlog.Options(keep_whitespace=True))
    parsed: Any = etree.parse(path)
    texts = {each.case.text for each in results("XPathMark", data) if _is(each, Outcome.PASSED)}
    for text in texts:
        expected = ["".join(node.itertext()) for node in parsed.xpath(text)]
        assert answer(text, doc).values() == expected, text


def _is(result: Result, outcome: Outcome) -> bool:
    return result.outcome is outcome


# The report -----------------------------------------------------------------------------------


def test_the_report_is_printed_and_written(data: Path) -> None:
    few = [*results("libxml2", data)]
    console = Console(width=120, record=True, file=StringIO())
    report(few, console)
    text = console.export_text()
    assert "libxml2" in text
    assert "axlog alone: " in text
    assert "with the extra xquery: " in text
    assert all(json.loads(json.dumps(each.plain()))["suite"] == "libxml2" for each in few)


def test_suites_without_data_are_left_out(tmp_path: Path) -> None:
    (tmp_path / xmark.FOLDER).mkdir()
    assert [suite.name for suite in given(tmp_path)] == ["XPathMark"]


def test_the_report_without_data_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AXLOG_CONFORMANCE", raising=False)
    assert main([]) == 2
    assert "AXLOG_CONFORMANCE" in capsys.readouterr().err


# The adapter can tell right from wrong ------------------------------------------------------------


def _piece(xml: str) -> Piece:
    return Piece(PieceKind.XML, xml)


@pytest.mark.parametrize(
    ("assertion", "found", "verdict"),
    [
        ("<assert-true/>", Answer(truth=True), True),
        ("<assert-true/>", Answer(truth=False), False),
        ("<assert-false/>", Answer(truth=False), True),
        ("<assert-eq>2</assert-eq>", Answer(number=2), True),
        ("<assert-eq>2</assert-eq>", Answer(number=3), False),
        ("<assert-eq>'x'</assert-eq>", Answer((_piece("<a>x</a>"),)), True),
        ("<assert-eq>1 to 3</assert-eq>", Answer(number=3), None),
        ("<assert-count>1</assert-count>", Answer((_piece("<a/>"),)), True),
        ("<assert-empty/>", Answer(), True),
        ("<assert-empty/>", Answer((_piece("<a/>"),)), False),
        ("<assert-empty/>", Answer(truth=False), True),
        ("<assert-string-value>x y</assert-string-value>",
         Answer((_piece("<a>x</a>"), _piece("<b>y</b>"))), True),
        ("<assert-xml>&lt;a  k='1'/></assert-xml>", Answer((_piece('<a k="1"></a>'),)), True),
        ("<assert-xml>&lt;a/></assert-xml>", Answer((_piece("<a> </a>"),)), False),
        ("<assert-deep-eq>'x', 2</assert-deep-eq>",
         Answer((_piece("<a>x</a>"), _piece("<a>2.0</a>"))), True),
        ("<assert>$result</assert>", Answer(), None),
        ("<any-of><assert-true/><assert-false/></any-of>", Answer(truth=False), True),
        ("<any-of><assert-true/><error code='X'/></any-of>", Answer(truth=False), False),
        ("<all-of><assert>x</assert><assert-true/></all-of>", Answer(truth=True), True),
        ("<all-of><assert-type>x</assert-type></all-of>", Answer(truth=True), None),
    ],
)  # fmt: skip
def test_judges(assertion: str, found: Answer, verdict: bool | None) -> None:
    assert judge_of(assertion, lambda name: None)(found) is verdict


def test_a_wrong_answer_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<a><b/></a>")

    def case(text: str, expected: int) -> Case:
        return Case("s", "p", "n", text, path, lambda found: len(found.items) == expected)

    assert run(case("//b", 1)).outcome is Outcome.PASSED
    assert run(case("//b", 2)).outcome is Outcome.FAILED
    assert run(case("//b[", 0)).outcome is Outcome.OUTSIDE


def test_count_is_a_number() -> None:
    assert answer("count(//b)", axlog.parse("<a><b/><b/></a>")).number == 2
    assert literals("'a', \"b,c\", -1.5") == ["a", "b,c", -1.5]
