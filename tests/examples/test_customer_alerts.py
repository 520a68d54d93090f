"""Price and delay alerts for ten thousand customers: `examples/customer-alerts`."""

from __future__ import annotations

import shutil
from pathlib import Path

from axlog.connect.sinks.jsonl import read_log
from axlog.live.internals import maintained
from axlog.pipeline.loader import check, load
from axlog.runtime.embedded import Runner
from axlog.samples.customers import customers, expected, orders, write, write_customers

EXAMPLE = Path(__file__).parents[2] / "examples" / "customer-alerts"
CUSTOMERS, ORDERS = 10_000, 400


def found(place: Path, view: str, op: str) -> set[str]:
    """The orders of a sink, with the columns of their customer checked."""
    lines = [line for line in read_log(place / "out" / f"{view}.jsonl") if line["op"] == op]
    assert all(line["row"]["mail"] == f"{line['row']['client']}@example.org" for line in lines)
    return {line["row"]["order"] for line in lines}


def test_ten_thousand_customers_get_their_alerts(tmp_path: Path) -> None:
    file = shutil.copy(EXAMPLE / "alerts.yaml", tmp_path)
    known, made = customers(CUSTOMERS), orders(ORDERS, CUSTOMERS)
    write(tmp_path / "in", known, made)
    assert check(str(file)).problems == []
    runner = Runner(load(str(file)), once=True)
    runner.run()
    alerts = expected(known, made)
    assert found(tmp_path, "dear", "insert") == alerts["dear"]
    assert found(tmp_path, "late", "never") == alerts["late"]
    families = maintained(runner.instances["document"].documents[""]).families
    assert len(families.by_shape) == 2
    assert sum(member.view is not None for member in families.members.values()) <= 2 * ORDERS + 2
    write_customers(tmp_path / "in", [one for one in known if one.client != made[0].client])
    runner.round()
    mine = {str(one.oid) for one in made if one.client == made[0].client}
    assert found(tmp_path, "dear", "delete") == alerts["dear"] & mine
    runner.close()
