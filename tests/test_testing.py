"""Stand-ins for tests: a run that is cut anywhere and goes on tells what a whole one tells."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from axlog.live.document import Document
from axlog.pipeline import kinds
from axlog.pipeline.loader import load
from axlog.runtime.embedded import run
from axlog.testing import (
    ABORT,
    END,
    Aborted,
    Collecting,
    FakeClock,
    FakeStream,
    Item,
    standing_in,
)

DOCUMENT = """<shop xmlns:ax="urn:axlog"><orders><ax:call stream="orders"/></orders>
<shipped><ax:call stream="shipments"/></shipped></shop>"""
LATE = """match /shop[orders/order/oid/$x#t1][shipped/order/oid/$x#t2]
where t2 - t1 >= 50 return $x"""
PIPELINE = f"""
engine: embedded
document: |
  {" ".join(DOCUMENT.split())}
streams:
  orders: {{source: {{kind: orders}}}}
  shipments: {{source: {{kind: shipments}}}}
facts: [key shipped/order by oid trusted]
views: {{late: {{query: "{" ".join(LATE.split())}", sinks: [{{kind: sink}}]}}}}
settings: {{batch: 1, hold: 0, checkpoint: state}}
"""


def order(number: int) -> str:
    return f"<order><oid>{number}</oid></order>"


ORDERS: list[Item] = [(0.0, order(1)), (1.0, order(2)), END]
SHIPMENTS: list[Item] = [(5.0, order(2)), (60.0, order(1)), END]
TOLD = [("never", {"x": "2"}), ("insert", {"x": "1"})]


def play(directory: Path, orders: FakeStream, shipments: FakeStream, sink: Collecting) -> int:
    """Run until it is done; how often it was cut."""
    (directory / "p.yaml").write_text(PIPELINE, encoding="utf-8")
    cuts = 0
    with standing_in(orders=orders, shipments=shipments, sink=sink):
        model = load(directory / "p.yaml")
        while True:
            try:
                run(model, once=True)
            except Aborted:
                cuts += 1
                continue
            return cuts


def test_a_pipeline_by_fakes(tmp_path: Path) -> None:
    sink = Collecting()
    assert play(tmp_path, FakeStream(*ORDERS), FakeStream(*SHIPMENTS), sink) == 0
    assert sink.received("late") == sink.received() == TOLD
    assert sink.received("other") == []
    assert "sink" not in kinds.sink_names()
    assert "orders" not in kinds.source_names()


@given(some.integers(0, 3), some.integers(0, 3))
def test_differential_a_run_that_is_cut_emits_the_same(
    tmp_path_factory: pytest.TempPathFactory, first: int, second: int
) -> None:
    orders = FakeStream(*ORDERS[:first], ABORT, *ORDERS[first:])
    shipments = FakeStream(*SHIPMENTS[:second], ABORT, *SHIPMENTS[second:])
    sink = Collecting()
    assert play(tmp_path_factory.mktemp("cut"), orders, shipments, sink) == 2
    assert sink.received() == TOLD


def test_a_publisher_that_is_down_gets_everything_later(tmp_path: Path) -> None:
    sink = Collecting()
    sink.refuse(2)
    play(tmp_path, FakeStream(*ORDERS), FakeStream(*SHIPMENTS), sink)
    assert sink.refused == 2
    assert sink.received() == TOLD


def test_fakes_feed_documents() -> None:
    doc = Document(DOCUMENT, views={"late": LATE})
    assert FakeStream(*ORDERS, ABORT).feed(doc, "orders") == []
    told = FakeStream(*SHIPMENTS[1:]).feed(doc, "shipments")
    assert [(change.op, change.row["x"]) for change in told] == [("insert", "1"), ("never", "2")]
    assert doc.streams()["orders"].ended
    with pytest.raises(TypeError, match="not an item"):
        FakeStream(7).feed(doc, "orders")  # type: ignore[arg-type]


def test_the_clock_goes_forward() -> None:
    clock = FakeClock(10)
    assert (clock(), clock.advance(2.5), clock()) == (10, 12.5, 12.5)
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)
