"""An outlook for one row answers about it as the outlook for all rows does."""

from random import Random

import pytest

import axlog
from axlog.future.truth import Outlook
from axlog.live.internals import maintained
from axlog.query.query import parse_query

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
SHOP = f"<shop><orders>{CALL.format('orders')}</orders><paid>{CALL.format('paid')}</paid></shop>"
QUERIES = (
    "match /shop[orders/order/oid/$x][paid/p/$x] return $x",
    "match /shop[orders/order[client/$c]/oid/$x][paid/p/$x] return $x, $c",
    "match /shop[(orders/order/oid/$x or paid/p/$x)] return $x",
    "match /shop[orders/order/oid/$x#o][paid/p/$x#p] where p - o <= 3 return $x",
    "match /shop[//order/$y/$x][paid/p/$x] return $x, $y",
    "match /shop[orders/order/oid/$x][paid/p/$y] return $x, $y",
)
KEYS = ("key orders/order by oid trusted", "key paid/p by . trusted")
FACTS = ((), KEYS, KEYS[:1])


@pytest.mark.parametrize("seed", range(24))
def test_rows_with_other_strings_make_no_difference(seed: int) -> None:
    random = Random(seed)
    doc = axlog.parse(SHOP, facts=FACTS[seed % len(FACTS)])
    fed: set[tuple[str, str]] = set()
    for time in range(random.randint(0, 8)):
        stream, oid = random.choice(("orders", "paid")), random.choice("abcd")
        if (stream, oid) in fed:
            continue  # it might break a key
        fed.add((stream, oid))
        client = f"<client>{random.choice('ab')}</client>" if random.random() < 0.7 else ""
        order = f"<order>{client}<oid>{oid}</oid></order>"
        doc.feed(stream, order if stream == "orders" else f"<p>{oid}</p>", at=time)
    if random.random() < 0.4:
        doc.end(random.choice(("orders", "paid")))
    tree = maintained(doc).nodes_left()
    for text in QUERIES:
        pattern = parse_query(text, None, None).only_pattern
        whole = Outlook(tree, pattern)
        for value in "abcde":
            for row in ({"x": value}, dict.fromkeys(pattern.columns, value)):
                one = Outlook(tree, pattern, row=row)
                assert one.status(row) is whole.status(row), (text, row)
                assert one.ways(row) == whole.ways(row), (text, row)
