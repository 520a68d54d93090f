"""Families on the live page: one entry for many views, members found by a search."""

from __future__ import annotations

import json
from pathlib import Path

from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.metrics import document_health, document_samples
from axlog.live.options import Options
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.server.pipelines import observe_runner
from axlog.server.row_lists import Asked
from axlog.server.summaries import Observer

PIPELINE = """engine: embedded
streams: {orders: {source: {kind: jsonl, path: orders.jsonl}}}
views:
  late:
    query: match /document/orders/order[client/$client]/oid/$x return $x
    for_each: {kind: csv, path: table.csv}
"""


def test_a_family_of_a_pipeline_is_one_entry(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "table.csv").write_text("client,mail\nINRIA,a@b\nENS,c@d\nMIT,e@f\n")
    order = "<order><oid>{}</oid><client>{}</client></order>"
    (tmp_path / "orders.jsonl").write_text(
        "".join(
            json.dumps({"stream": "orders", "insert": order.format(oid, client)}) + "\n"
            for oid, client in ((1, "INRIA"), (2, "INRIA"), (3, "ENS"), (4, "CNRS"))
        )
    )
    runner = Runner(load(str(tmp_path / "p.yaml")), once=True)
    observer = observe_runner(runner)
    runner.run()
    state = observer.state(Asked("document", "late"))
    (entry,) = state["documents"][0]["views"]
    assert (entry["name"], entry["members"], entry["count"]) == ("late", 3, 3)
    assert {change["view"] for change in state["changes"]} == {"late"}
    shown = state["shown"]
    assert shown["columns"] == ["client", "mail", "x"]
    assert shown["members"]["count"] == 3
    assert [line["row"] for line in shown["lines"]] == [
        {"client": "INRIA", "mail": "a@b", "x": "1"},
        {"client": "INRIA", "mail": "a@b", "x": "2"},
        {"client": "ENS", "mail": "c@d", "x": "3"},
    ]
    found = observer.shown(Asked("document", "late", find="mit")) or {}
    assert found["members"] == {"count": 3, "found": 1, "names": ['late["MIT", "e@f"]']}
    assert found["lines"] == []
    one = observer.shown(Asked("document", 'late["ENS", "c@d"]')) or {}
    assert [line["row"] for line in one["lines"] if line["truth"] == "true"] == [{"x": "3"}]
    why = observer.why("document", "late", {"client": "ENS", "mail": "c@d", "x": "3"})
    assert why["derivations"]
    families = maintained(runner.instances["document"].documents[""]).families
    assert families.members['late["MIT", "e@f"]'].view is None, "the page opened an idle member"
    observer.close()
    runner.close()


def test_metrics_and_health_have_a_family_once(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    clients = "".join(f"C{number},c@d\n" for number in range(50))
    (tmp_path / "table.csv").write_text(f"client,mail\nINRIA,a@b\n{clients}")
    order = {"stream": "orders", "insert": "<order><oid>1</oid><client>INRIA</client></order>"}
    (tmp_path / "orders.jsonl").write_text(json.dumps(order) + "\n")
    runner = Runner(load(str(tmp_path / "p.yaml")), once=True)
    runner.run()
    document = runner.instances["document"].documents[""]
    found = {
        (sample.name, sample.labels["view"]): sample.value
        for sample in document_samples("document", document)
        if "view" in sample.labels
    }
    assert found == {
        ("axlog_view_aside", "late"): 0,
        ("axlog_view_rows", "late"): 1,
        ("axlog_view_changes_total", "late"): 1,
        ("axlog_view_never_total", "late"): 0,
        ("axlog_view_deferred", "late"): 0,
        ("axlog_family_members", "late"): 51,
    }
    health = document_health("document", document)
    assert [view.view for view in health.views] == ['late["INRIA", "a@b"]']
    families = maintained(document).families
    assert [view.name for view in families.opened()] == ['late["INRIA", "a@b"]'], "no idle member"
    document.unwatch('late["INRIA", "a@b"]')
    left = {each.name: each.value for each in document_samples("document", document)}
    assert (left["axlog_view_rows"], left["axlog_family_members"]) == (0, 50)
    assert left["axlog_view_changes_total"] == 1, "a counter does not fall"
    runner.close()


def test_views_that_share_a_plan_are_one_entry() -> None:
    doc = Document(streams=["s"], options=Options(share="always"))
    doc.watch("match //s/a#t return t.val", "all")
    for number in range(20):
        doc.watch(f'match //s/a[k/"{number}"]/x/$x return $x', f"v{number}")
    observer = Observer({"w": doc})
    doc.feed("s", "<a><k>3</k><x>17</x></a>")
    views = observer.state(Asked("w", "v0"))["documents"][0]["views"]
    assert [(view["name"], view.get("members")) for view in views] == [("all", None), ("v0", 20)]
    shown = observer.shown(Asked("w", "v0")) or {}
    assert [line["row"] for line in shown["lines"]] == [{"view": "v3", "x": "17"}]
    assert {c["view"] for c in observer.state(Asked("w", "v0"))["changes"]} == {"all", "v3"}
    observer.close()
