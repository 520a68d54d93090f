"""Joins whose branches are compared as numbers look rows up by order, and give the same rows."""

from decimal import Decimal
from operator import ge, gt, le, lt
from random import Random

import pytest

from axlog import Document
from axlog.errors import AxlogError
from axlog.live.internals import maintained_view
from axlog.query.query import parse_query
from axlog.views.step_bounds import bounded

TEXT = (
    '<r xmlns:ax="urn:axlog"><o><ax:call stream="o" deletes="yes"/></o>'
    '<p><ax:call stream="p" deletes="yes"/></p></r>'
)
QUERY = "match /r[o/a/$s][p/b/$l] where number($s) {} number($l) return $s, $l"
VALUES = (
    "1", "2", "1.0", " 2 ", "1e1", "-3", "+5", ".5", "abc", "INF", "NaN", "1_0", "2024-01-01",
    "1e999", "0.1", "0.1000000000000000055", "0.10000000000000001", "9007199254740993",
    "9007199254740992",
)  # fmt: skip
OPERATORS = {"<": lt, "<=": le, ">": gt, ">=": ge}


def number(text: str) -> Decimal | None:
    """The number that a text is, by the language's definition."""
    known = Document(f"<a>{text}</a>", views={"v": "match /a/$s return number($s) as n"})
    (row,) = known.view("v").rows()
    value: Decimal | None = row["n"]
    return value


NUMBERS = {text: number(text) for text in VALUES}


@pytest.mark.parametrize("operator", OPERATORS)
def test_differential_rows_of_pairs(operator: str) -> None:
    random, holds = Random(operator), OPERATORS[operator]
    doc = Document(TEXT, views={"v": QUERY.format(operator)})
    given: dict[str, list[str]] = {"o": [], "p": []}
    for step in range(300):
        stream = random.choice("op")
        tag = "a" if stream == "o" else "b"
        if random.random() < 0.8 or not given[stream]:
            value = random.choice((*VALUES, str(random.randrange(40))))
            NUMBERS.setdefault(value, number(value))
            given[stream].append(value)
            doc.feed(stream, f"<{tag}>{value}</{tag}>")
        else:
            value = random.choice(given[stream])
            given[stream] = [each for each in given[stream] if each != value]
            doc.delete(stream, f'match /{tag}/"{value}"')
        if step % 20 == 0:
            expected: dict[tuple[str, str], int] = {}
            for s in given["o"]:
                for each in given["p"]:
                    one, other = NUMBERS[s], NUMBERS[each]
                    if one is not None and other is not None and holds(one, other):
                        expected[s, each] = expected.get((s, each), 0) + 1
            found = {(row["s"], row["l"]): row.count for row in doc.view("v").rows()}
            assert found == expected, step


@pytest.mark.parametrize(
    ("where", "more"),
    [
        ("number($s) > number($l)", ["$s >= $l"]),
        ("number($s) < number($l) and number($l) <= number($s)", ["$s <= $l", "$l <= $s"]),
        ("number($s) = number($l)", []),
        ("number($s) > number($s)", []),
        ("number($s) > 3", []),
        ("number($s) > number($l) or number($l) > 3", []),
        ("number($s) + 1 > number($l)", []),
    ],
)
def test_only_comparisons_of_two_numbers_are_given_to_the_join(where: str, more: list[str]) -> None:
    key = parse_query(f"match /r[o/a/$s][p/b/$l] where {where} return $s, $l").row_key
    known = set(key.pattern.where)
    added = [each for each in bounded(key.pattern, key.steps).where if each not in known]
    shown = [f"${c.left.name} {c.operator} ${c.right.name}" for c in added]  # type: ignore[union-attr]
    assert shown == [each.replace("=", "= xs:double") for each in more]


def test_views_that_reject_texts_compute_every_pair() -> None:
    doc = Document(TEXT)
    view = doc.watch(QUERY.format(">"), "v", on_value_error="reject")
    assert not maintained_view(view).maintainer.pattern.where
    doc.feed("p", "<b>3</b>")
    with pytest.raises(AxlogError) as error:
        doc.feed("o", "<a>abc</a>")
    assert error.value.code == "FORG0001"
