"""The questions of docs/questions.md on Spark: the same changes as the embedded engine's.

Totals, counts, differences, latest, the first ones, dates and words, from streams, and the same in
XQuery; in small batches, and all in one.
"""

from typing import Any

import pytest

from axlog.connect.sinks.memory import MemorySink
from axlog.connect.sources.memory import MemorySource
from axlog.document.stream_update import StreamUpdate
from axlog.live.document import Document
from axlog.runtime.definition import Definition
from axlog.spark import maintain
from axlog.views.change import Change

pytestmark = [pytest.mark.spark, pytest.mark.system]

DOCUMENT = "<data>{}</data>".format(
    "".join(
        f'<{name}><ax:call xmlns:ax="urn:axlog" stream="{name}"/></{name}>'
        for name in ("orders", "invoices", "positions")
    )
)
VIEWS = {
    "totals": """match //order[supplier/$s]/total/$t
                 return $s, count() as orders, sum($t) as total having total > 1000""",
    "open": "match //order[buyer/$b][not(paid)] return $b, count() as open",
    "differs": """match //order[oid/$o]/total/$t, //invoice[oid/$o]/amount/$a
                  where abs($a - $t) > $t * 0.02 return $o, $a - $t as difference""",
    "where": "match //position[vehicle/$v][at/$t]/place/$p return $v, latest($p by $t) as place",
    "largest": """match //order[oid/$o]/total/$t
                  return $o, $t order by number($t) descending limit 2""",
    "all": "match //order/total/$t return count() as orders, sum($t) as total, avg($t) as mean",
    "billed": """match //order[oid/$o]/buyer/$b, //invoice[oid/$o]/amount/$a
                 return $b, sum($a) as billed order by billed descending limit 1""",
    "reminder": "match //order[oid/$o]/due/$d return $o, $d + 30d as remind",
    "gold": 'match //order[oid/$o]/note/$n where contains(lower-case($n), "gold") return $o',
    "count": "count(//order)",
    "clients": "for $o in //order group by $b := $o/buyer return <b n='{$b}'>{sum($o/total)}</b>",
}
MESSAGES = [
    StreamUpdate(stream, "insert", content, at)
    for at, (stream, content) in enumerate(
        [
            ("orders", "<order><oid>1</oid><supplier>Acme</supplier><buyer>Ada</buyer>"
             "<total>900.50</total><due>2024-01-30</due><note>Gold ring</note></order>"),
            ("orders", "<order><oid>2</oid><supplier>Acme</supplier><buyer>Ada</buyer>"
             "<total>250.25</total><due>2024-02-10</due><note>Ink</note></order>"),
            ("invoices", "<invoice><oid>2</oid><amount>260.25</amount></invoice>"),
            ("positions", "<position><vehicle>v1</vehicle><at>10:00</at><place>Lyon</place>"
             "</position>"),
            ("positions", "<position><vehicle>v1</vehicle><at>10:05</at><place>Vienne</place>"
             "</position>"),
            ("orders", "<order><oid>3</oid><supplier>Zeta</supplier><buyer>Bob</buyer>"
             "<total>1300</total></order>"),
            ("invoices", "<invoice><oid>3</oid><amount>1300</amount></invoice>"),
        ],
        1,
    )
]  # fmt: skip


def plain(changes: list[Change]) -> list[str]:
    return sorted(
        repr((c.view, c.op, c.row.to_dict(), None if c.before is None else c.before.to_dict()))
        for c in changes
    )


@pytest.mark.parametrize(("state", "limit"), [("driver", 2), ("driver", 100), ("executors", 4)])
def test_the_questions_have_the_same_changes(spark: Any, state: str, limit: int) -> None:
    doc = Document(DOCUMENT, views=VIEWS)
    expected: list[Change] = []
    for view in doc.views.values():
        view.subscribe(expected.append)
    for start in range(0, len(MESSAGES), limit):
        with doc.batch():
            for update in MESSAGES[start : start + limit]:
                doc.take(update)
    sink = MemorySink()
    query = maintain(
        spark, Definition(DOCUMENT, {name: (query, None) for name, query in VIEWS.items()}),
        [lambda: MemorySource(MESSAGES)], [sink], once=True, limit=limit, buckets=2, hold=0,
        state=state,
    )  # fmt: skip
    query.wait()
    assert plain(list(sink.changes)) == plain(expected)
    told = str(query.plan)
    assert "the first 2 rows of each bucket are merged on the driver" in told
    assert "partial aggregates are merged on the driver" in told
    assert "count is kept by dataflow, over the document" in told
