"""Kinds of values and their order: the law, Saxon's answers, what is maintained and decided."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

import axlog
from axlog.errors import AxlogError, UndecidedError
from axlog.evaluate.value_tests import comparison
from axlog.future.unknowns import is_consistent
from axlog.query.native import parse_pattern
from axlog.query.pattern import Comparison, Constant
from axlog.query.values import ValueKind, compare, key_of, sort_key
from lab.laws.values_law import (
    ALL,
    MOMENTS,
    NUMBERS,
    OPERATORS,
    TEXTS,
    TIMES,
    check_values,
    kind_of,
    make_values_case,
)

KINDS = {NUMBERS: ValueKind.NUMBER, MOMENTS: ValueKind.MOMENT, TIMES: ValueKind.TIME,
         TEXTS: ValueKind.TEXT}  # fmt: skip


def test_law_values_are_ordered_by_their_kind() -> None:
    for seed in range(150):
        check_values(make_values_case(Random(seed)))


def test_each_value_has_one_kind() -> None:
    for texts, kind in KINDS.items():
        assert {key_of(text)[0] for text in texts} == {kind}


def test_sorting_puts_numbers_before_times_before_texts() -> None:
    shuffled = Random(3).sample(ALL, len(ALL))
    ordered = sorted(shuffled, key=sort_key)
    assert [key_of(text)[0] for text in ordered] == sorted(key_of(text)[0] for text in ALL)
    for one, other in pairwise(ordered):
        assert not compare(one, ">", other)


def test_orders_of_all_pairs_are_the_definitions() -> None:
    for left in ALL:
        for right in ALL:
            (one, value), (other, bound) = kind_of(left), kind_of(right)
            wanted = one == other and value < bound
            assert compare(left, "<", right) == comparison("<", right)(left) == wanted
            assert compare(left, ">=", right) == (one == other and value >= bound)
            assert compare(left, "=", right) == (left == right)


@pytest.mark.parametrize(
    "text",
    [
        "9" * 5000,
        "1." + "9" * 5000,
        "2024-05-01T00:00:00." + "1" * 5000,
        "9" * 5000 + "-01-01",
        "1e99999",
        "-" * 5000,
        "1e9999",
    ],
)
def test_endless_values_are_read(text: str) -> None:
    assert key_of(text)[0] in ValueKind
    assert not compare(text, "<", "0")


# The examples -----------------------------------------------------------------------------


@pytest.mark.parametrize("maintainer", ["counting", "reevaluate", None])
def test_prices_and_dates_with_zones(maintainer: str | None) -> None:
    document = axlog.parse(
        "<r><o n='1' a='99.00' b='100.00'/><o n='2' a='2024-05-01T11:30+02:00'"
        " b='2024-05-01T09:31Z'/><o n='3' a='09:31Z' b='11:30+02:00'/><o n='4' a='5' b='kg'/></r>"
    )
    query = "match /r/o[@n = $n][@a = $a][@b = $b] where $b > $a return $n"
    view = document.watch(query, maintainer=maintainer)
    assert [row["n"] for row in view.rows()] == ["1", "2"]
    (change,) = document.update("replace value of node /r/o[@n = '4']/@b with '05.01'")
    assert (change.op, change.row["n"]) == ("insert", "4")


# XPath and XQuery ---------------------------------------------------------------------------------

CASTS = {
    "xs:decimal": ("0", "00.5", "-1.50", "+1", " 1 ", "100000000000000000001", "99.00", "100.0"),
    "xs:integer": ("0", "007", "-1", "+12", "100000000000000000001"),
    "xs:double": ("0", "1e1", "INF", "-INF", "NaN", "0.1", "0.10000000000000000001", "-1.5E-2"),
    "number": ("0", "1e1", "INF", "a", "", "0.1", "0.10000000000000000001", "-1.5E-2"),
    "xs:date": ("2024-05-01", "2024-05-01Z", "2024-05-01+14:00", "2024-04-30-05:00", "1969-12-31"),
    "xs:dateTime": ("2024-05-01T00:00:00", "2024-04-30T24:00:00Z", "2024-05-01T02:00:00+02:00",
                    "2024-05-01T00:00:00.25Z", "1969-12-31T23:59:59"),
    "xs:time": ("09:31:00Z", "11:30:00+02:00", "24:00:00", "00:00:00", "23:59:59.5-03:00"),
    "xs:string": ("10", "9", "", "a", "é"),
}  # fmt: skip


def _queries(random: Random) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Conditions on @a and @b of one type, with the values that they may have."""
    for name, values in CASTS.items():
        for symbol in OPERATORS:
            constant = random.choice(values[:2] if name == "number" else values)
            yield f"{name}(@a) {symbol} {name}('{constant}')", values
            yield f"not(@a/{name}(.) {symbol} {name}('{constant}'))", values
            if not (name == "number" and symbol == "!="):
                yield f"{name}(@a) {symbol} {name}(@b)", values
            if name in ("xs:date", "xs:dateTime", "xs:time", "xs:double"):
                yield f"{name}(@a) {symbol} @b", values
            if name in ("xs:decimal", "xs:double", "number"):
                yield f"{name}(@a) {symbol} 0.5", values
    for symbol in OPERATORS:
        yield f"@a {symbol} @b", ("10", "9", "a", "2024-05-01")
        yield f"@a {symbol} '9'", ("10", "9", "a", "")
        yield f"@a {symbol} 9", ("0", "1e1", "INF", "0.1", "9.0")  # Saxon has NaN > 9 here


def test_casts_are_saxons() -> None:
    """Values that can be cast; for others the recommendation raises an error."""
    saxonche = pytest.importorskip("saxonche")
    random = Random(6)
    processor = saxonche.PySaxonProcessor(license=False)
    found = 0
    for condition, values in _queries(random):
        drawn = [(random.choice(values), random.choice(values)) for _ in range(6)]
        inside = "".join(f"<o n='{n}' a='{a}' b='{b}'/>" for n, (a, b) in enumerate(drawn))
        document = axlog.parse(f"<r>{inside}</r>")
        views = [document.watch(f"//o[{condition}]/@n")]
        views.append(document.watch(f"for $o in //o where $o[{condition}] return string($o/@n)"))
        for replaced in (None, random.randrange(6)):
            if replaced is not None:
                fresh = random.choice(values)
                document.update(
                    f"replace value of node //o[@n = '{replaced}']/@a with $v",
                    variables={"v": fresh},
                )
            xpath = processor.new_xpath_processor()
            xpath.set_context(xdm_item=processor.parse_xml(xml_text=str(document)))
            wanted = xpath.evaluate(f"string-join(//o[{condition}]/@n, ' ')").head.string_value
            for view in views:
                mine = sum(row.count for row in view.rows())
                assert mine == len(wanted.split()), (condition, str(document), wanted)
            ids = sorted(str(row["node.id"]) for row in views[0].rows())
            at = {n: f"1.{int(n) + 1}.@1" for n in wanted.split()}
            assert len(ids) == len(at)
            found += len(at)
    assert found > 300


def test_what_cannot_be_cast_passes_nothing() -> None:
    document = axlog.parse("<r><o d='soon'/><o d='2024-05-01'/></r>")
    for symbol in OPERATORS:
        view = document.watch(f"//o[xs:date(@d) {symbol} xs:date('2024-05-01')]")
        assert len(view) == (symbol in ("=", "<=", ">="))


def test_types_are_printed_and_read_again() -> None:
    text = 'match /r[a > 5 as xs:double][b = "1" as xs:decimal][c < $x as xs:date][d = $x]'
    assert str(parse_pattern(text)) == text
    with pytest.raises(AxlogError, match="times have no type"):
        parse_pattern("match /a#t where t < 5 as xs:double")


# What is decided ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ([("<", "5"), (">", "4.5")], True),
        ([("<", "5"), (">", "5.0")], False),
        ([("<=", "5"), (">=", "5.0")], True),
        ([("<=", "5"), (">=", "5.0"), ("!=", "5")], True),  # 5.00 is another string
        ([("<", "5"), (">", "a")], False),  # one value is of one kind
        ([("<", "b"), (">", "a")], True),
        ([("<", "2024-05-01"), (">", "2024-04-30T24:00:00Z")], False),
        ([("<=", "2024-05-01"), (">=", "2024-04-30T24:00:00Z")], True),
        ([("<", "2024-05-01"), (">", "1")], False),
        ([("<", "00:00:00+14:00")], False),  # nothing is earlier on a day
        ([(">", 5.0), ("<", 5.000000000000001)], False),  # no double lies between
        ([(">", 5.0), ("<", 5.000000000000003)], True),
        ([("<", "a")], True),
        ([("<", "")], False),
    ],
)
def test_intervals_of_kinds(asked: list[tuple[str, Constant]], wanted: bool) -> None:
    assert is_consistent([Comparison(*each) for each in asked]) is wanted


def test_types_are_not_decided() -> None:
    for one in (Comparison("< xs:date", "2024-05-01"), Comparison("= xs:decimal", "1")):
        with pytest.raises(UndecidedError) as raised:
            is_consistent([one])
        assert raised.value.code == "AX503"


def test_truth_by_kind() -> None:
    document = '<r xmlns:ax="urn:axlog"><ax:call stream="s"/></r>'
    doc = axlog.parse(document)
    assert doc.watch('match /r/a/$x where $x > "99.00", $x < "100.00"').truth is (
        axlog.Truth.POSSIBLE
    )
    assert doc.watch('match /r/a/$x where $x > "99", $x < "b"').truth is axlog.Truth.NEVER
