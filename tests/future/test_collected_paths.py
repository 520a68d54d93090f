"""The future of constructors that collect a path: such a path is no condition."""

from itertools import product
from random import Random

import pytest

import axlog
from axlog import Truth
from axlog.errors import UndecidedError
from axlog.evaluate.definition import rows
from axlog.future.truth import Outlook
from axlog.live.internals import maintained
from axlog.query.query import parse_query
from lab.reference import Alphabet, Bound
from lab.reference.fragments import attribute, element
from lab.reference.futures import reachable

_QUERY = "for $o in /document/orders/order[@i = /document/shipped/order/@i] return <r>{$o/line}</r>"
_PLAIN = "for $o in /document/orders/order return <r>{$o/@i}{$o/line}</r>"


def test_a_collected_path_is_no_condition() -> None:
    doc = axlog.Document(streams=["orders"])
    view = doc.watch(_PLAIN)
    assert view.truth is Truth.POSSIBLE
    assert [one.row for one in view.possible()] == [{"i.val": None, "line.cont": None}]
    doc.feed("orders", '<order i="1"><line/></order>')
    (row,) = view.rows()
    shown = {column: row[column] for column in view.columns}
    assert view.status(shown) is Truth.TRUE
    with pytest.raises(UndecidedError) as refused:
        view.status({**shown, "line.cont": ("<other/>",)})
    assert refused.value.code == "AX503"
    assert len(view.possible()) == 1  # another order
    doc.end("orders")
    assert (view.truth, view.possible()) == (Truth.TRUE, [])


@pytest.mark.parametrize("seed", range(12))
def test_truth_is_that_of_all_small_futures(seed: int) -> None:
    random = Random(seed)
    doc = axlog.Document(streams=["orders", "shipped"])
    for stream, value in product(("orders", "shipped"), "12"):
        if random.random() < 0.3:
            doc.feed(stream, f'<order i="{value}"/>')
    for stream in ("orders", "shipped"):
        if random.random() < 0.5:
            doc.end(stream)
    pattern = parse_query(random.choice((_QUERY, _PLAIN))).pattern
    tree = maintained(doc).nodes()
    pool = tuple(element("order", attribute("i", value)) for value in "12")
    bound = Bound(Alphabet(()), 1, 2, pools=dict.fromkeys(tree.calls(), pool))
    later = any(rows(each, pattern) for each in reachable(tree, bound))
    wanted = Truth.TRUE if rows(tree, pattern) else Truth.POSSIBLE if later else Truth.NEVER
    assert Outlook(tree, pattern).truth is wanted
