"""Families on the live page, in a real Chromium: one entry, members found by a search."""

from __future__ import annotations

import json
from pathlib import Path

from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.server.pipelines import observe_runner
from tests.browsing import ESCAPED, HOSTILE, served
from tests.server.test_family_entries import PIPELINE

ROWS = "[...document.querySelectorAll('#rows tbody tr')].map((row) => row.innerText)"


def test_a_family_is_one_entry_with_members_to_search(page, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    clients = ["INRIA", "ENS", HOSTILE, *(f"c{number}" for number in range(60))]
    (tmp_path / "table.csv").write_text("".join(f"{each}\n" for each in ("client", *clients)))
    order = "<order><oid>{}</oid><client>{}</client></order>"
    written = [(1, "INRIA"), (2, "INRIA"), (3, "ENS"), (4, ESCAPED), (5, "nobody")]
    (tmp_path / "orders.jsonl").write_text(
        "".join(
            json.dumps({"stream": "orders", "insert": order.format(oid, client)}) + "\n"
            for oid, client in written
        )
    )
    runner = Runner(load(str(tmp_path / "p.yaml")), once=True)
    observer = observe_runner(runner)
    runner.run()
    with served(observer) as address:
        page.goto(address)
        page.wait_for_selector("#views [role=tab]:has-text('late')")
        tabs = "[...document.querySelectorAll('#views [role=tab]')].map((tab) => tab.innerText)"
        (tab,) = page.evaluate(tabs)
        assert "× 63" in tab
        page.wait_for_selector("#members:has-text('63 members')")
        page.wait_for_selector("#rows tbody tr:has-text('INRIA')")
        assert len(page.evaluate(ROWS)) == 4
        page.fill("#find", "inria")
        page.wait_for_selector("#members:has-text('1 of 63 members')")
        page.wait_for_function(f"{ROWS}.length === 2")
        page.click("#members button:has-text('INRIA')")
        page.wait_for_selector("#members button:has-text('all of late')")
        page.wait_for_function(f"!{ROWS}.join().includes('INRIA')")
        page.click("#members button:has-text('all of late')")
        page.wait_for_selector("#members:has-text('members')")
        page.fill("#find", "onerror")
        page.wait_for_selector("#members:has-text('1 of 63 members')")
        page.wait_for_function(f"{ROWS}.length === 1")
        page.fill("#find", "no such member")
        page.wait_for_selector("#members:has-text('0 of 63 members')")
    observer.close()
    runner.close()
