"""Truth over sibling axes: decided where no call is open below the parent of the siblings.

The oracle tries small futures: what it finds is POSSIBLE, and of what it does not find some future
must be larger than those.
"""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

import axlog
from axlog import Truth
from axlog.errors import UndecidedError
from tests.accepted_errors import accept
from tests.amounts import cases

CALL = '<ax:call xmlns:ax="urn:axlog" stream="s"/>'


@pytest.mark.parametrize(
    ("xml", "query", "wanted"),
    [
        # nothing can come any more
        ("<r><c><a/></c></r>", "match /r/c/a/following-sibling::b", Truth.NEVER),
        ("<r><c><a/><b/></c></r>", "match /r/c/a/following-sibling::b", Truth.TRUE),
        # the siblings are there, and something else must come
        ("<r><c><a/><b/></c><d>%s</d></r>", "match /r[d/x]/c/a/following-sibling::b",
         Truth.POSSIBLE),
        ("<r><c><b/><a/></c><d>%s</d></r>", "match /r[d/x]/c/a/preceding-sibling::b",
         Truth.POSSIBLE),
        # the siblings are in the other order, for good
        ("<r><c><b/><a/></c><d>%s</d></r>", "match /r[d/x]/c/a/following-sibling::b", Truth.NEVER),
        ("<r><c><a/></c><d>%s</d></r>", "match /r/c/a/following-sibling::b", Truth.NEVER),
        ("<r><c><a/><z/><b/></c><d>%s</d></r>", "match /r[d/x]/c/a/next-sibling::b", Truth.NEVER),
        # what the sibling axis leads to has conditions of its own
        ("<r><c><a/><b><e>5</e></b></c><d>%s</d></r>",
         "match /r[d/x]/c/a/following-sibling::b[e > 7]", Truth.NEVER),
        ("<r><c><a/><b><e>5</e></b></c><d>%s</d></r>",
         "match /r[d/x]/c/a/following-sibling::b[e > 3]", Truth.POSSIBLE),
    ],
)  # fmt: skip
def test_truth(xml: str, query: str, wanted: Truth) -> None:
    doc = axlog.parse(xml % CALL if "%s" in xml else xml)
    assert doc.watch(query).truth is wanted


@pytest.mark.parametrize(
    "query",
    [
        "match /r/d/a/following-sibling::b",
        "match //a/following-sibling::b",
        "match /r[d/x]/c/a/following-sibling::$y, /r/d/$y",
    ],
)
def test_what_is_not_decided_is_refused(query: str) -> None:
    doc = axlog.parse(f"<r><c><a/></c><d>{CALL}</d></r>")
    with pytest.raises(UndecidedError) as caught:
        _ = doc.watch(query).truth
    assert caught.value.code == "AX503"


MESSAGES = ("<x/>", "<a/>", "<b/>", "<c><a/><b/></c>", "<c><b/><a/></c>", "<d><x/></d>", "<a/><b/>")
QUERIES = (
    "match /r[d/x]/c/a/following-sibling::b",
    "match /r[d//x]//c/a/preceding-sibling::b",
    "match /r[//x]/c/a/next-sibling::b",
    "match /r/c[//x]/a/following-sibling::b",
    "match /r//a[x]/following-sibling::b",
    "match /r[d/b]/c[b]/a/previous-sibling::b/x",
)


def test_oracle_of_small_futures() -> None:
    decided = dict.fromkeys(Truth, 0)
    for seed in range(cases(150)):
        random = Random(seed)
        parts = "".join(random.choice(("<a/>", "<b/>", "<a><x/></a>", "<b><x/></b>", "<z/>"))
                        for _ in range(random.randrange(4)))  # fmt: skip
        inside = random.choice((f"<d>{CALL}</d>", f"<d><x/>{CALL}</d>", CALL))
        xml = f"<r><c>{parts}</c>{inside}</r>"
        query = random.choice(QUERIES)
        doc = axlog.parse(xml)
        try:
            truth = doc.watch(query).truth
        except UndecidedError as error:
            accept(error, ("AX503",))
            continue
        decided[truth] += 1
        is_found = any(_holds(xml, query, future) for n in (0, 1, 2)
                       for future in product(MESSAGES, repeat=n))  # fmt: skip
        assert is_found == (truth is not Truth.NEVER), (xml, query, truth)
    assert min(decided[Truth.NEVER], decided[Truth.POSSIBLE]) > 4


def _holds(xml: str, query: str, future: tuple[str, ...]) -> bool:
    doc = axlog.parse(xml)
    for message in future:
        doc.feed("s", message)
    return bool(doc.watch(query, maintainer="reevaluate"))


def test_a_view_with_thirty_steps_that_leave_a_subtree_is_kept_by_records() -> None:
    steps = "".join(f"[following-sibling::b{n}]" for n in range(30))
    doc = axlog.parse("<r><a/>" + "".join(f"<b{n}/>" for n in range(29)) + "</r>")
    view = doc.watch(f"//a{steps}/parent::r")
    assert view.explain().maintainer == "records"
    assert len(view) == 0
    doc.update("insert node <b29/> as last into /r")
    assert len(view) == 1
    doc.update("delete node /r/b7")
    assert len(view) == 0
