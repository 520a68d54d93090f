"""The live page in a real Chromium: rows come, turn never, say why; errors and streams show."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest

import axlog
from axlog.connect.protocol import Refusal
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.runtime.progress import Lagging
from axlog.samples import supply_chain
from axlog.server.pipelines import observe_runner
from axlog.server.reports import BatchSummary, Outlook, Reported
from axlog.server.summaries import Observer
from axlog.views.change import Change, Row
from tests.browsing import CALL, ESCAPED, HOSTILE, opened, served

pytestmark = pytest.mark.system


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[tuple[Runner, supply_chain.Simulator]]:
    simulator = supply_chain.Simulator(tmp_path, seed=1, rate=4, faults=0.3)
    (tmp_path / "chain.yaml").write_text(supply_chain.pipeline(), encoding="utf-8")
    runner = Runner(load(str(tmp_path / "chain.yaml")), once=True)
    yield runner, simulator
    runner.close()


def test_the_supply_chain_on_the_page(page, chain) -> None:
    runner, simulator = chain
    with served(observe_runner(runner)) as address:
        simulator.until(2 * 86400)
        runner.run()
        page.goto(address)
        page.wait_for_selector("#rows .badge.true")
        page.wait_for_selector("#rows .badge.possible")
        assert "waited_for_bank" in page.inner_text("#graph")
        assert "directory in" in page.inner_text("#graph")
        assert page.query_selector("#rows .badge.never") is None
        simulator.until(4 * 86400)
        runner.run()
        page.wait_for_selector("#rows .badge.never")  # the clock made it so
        page.wait_for_selector("#changes .badge.never")
        page.wait_for_selector("#errors .error")
        page.wait_for_selector("#streams tr:has-text('despatches') .share:not([title^='0 of'])")
        assert page.wait_for_selector("#state .curve") is not None
        page.click("#truths button[data-truth=true]")
        page.wait_for_selector("#rows:not(:has(.badge.possible)) .badge.true")
        page.focus("#rows tbody tr")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector("#why td")
        said = page.inner_text("#why")
        assert "$order#placed" in said
        assert "orders/0" in said  # the file, read again
        page.keyboard.press("Escape")
        page.click("#truths button[data-truth=possible]")
        page.click("#rows tr:has(.badge.possible)")
        page.wait_for_selector("#why:has-text('DespatchAdvice')")
        page.keyboard.press("Escape")
        page.click("#documents button:has-text('stock')")
        page.wait_for_selector("#views button:has-text('low_parts')")


def test_keys_lead_through_tabs_and_find_rows(page) -> None:
    doc = axlog.parse(
        f"<r><a>one</a><a>two</a>{CALL.format('f')}</r>",
        views={"all": "match /r/a/$x return $x", "none": "match /r/b/$x return $x"},
    )
    with served(Observer({"w": doc})) as address:
        page.goto(address)
        page.focus("#views [aria-selected=true]")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#views [aria-selected=true]:has-text('none')")
        assert page.evaluate("document.activeElement.id") == "tab-none"
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("#rows td:has-text('two')")
        page.keyboard.press("/")
        page.keyboard.type("TWO")
        page.wait_for_selector("#rows:not(:has-text('one')) td:has-text('two')")


def test_outlook_unsubscribed_ended_and_hostile_texts(page) -> None:
    """A stream that nobody can use any more is unsubscribed; whatever texts say stays text."""
    doc = axlog.parse(
        f'<r t="{ESCAPED}"><n>{ESCAPED}</n><a>{CALL.format("f")}</a><b>{CALL.format("g")}</b></r>',
        views={
            "v": "match /r[a/x/$x][b/y/$x] return $x",
            "once": 'match /r[a/x/"stop"]',
        },
        options=axlog.Options(on_error="dead-letter"),
    )
    with served(Observer({HOSTILE: doc})) as address:
        page.goto(address)
        page.wait_for_selector("#outlook .possible")
        doc.feed("f", f"<x>{ESCAPED}</x>")
        doc.feed("g", f"<y>{ESCAPED}</y>")
        page.wait_for_selector("#rows td:has-text('onerror')")
        page.wait_for_selector("#outlook .true")
        page.wait_for_selector("#tree :text('onerror')")
        doc.feed("f", f"<x>{HOSTILE}")  # no XML: its text is in the error
        page.wait_for_selector("#errors .error")
        page.click("#rows tr:has(.badge.true)")
        page.wait_for_selector("#why:has-text('onerror') td")
        page.keyboard.press("Escape")
        doc.unwatch("v")
        doc.feed("f", "<x>stop</x>")
        doc.tune()
        page.wait_for_selector("#streams .badge.unsubscribed")
        page.wait_for_selector("#graph .dot.unsubscribed")
        page.wait_for_selector("#tree .call.unsubscribed")
        doc.end("g")
        page.wait_for_selector("#streams .badge.ended")
        for part in ("rows", "changes", "errors", "tree", "why", "graph", "documents", "streams"):
            assert page.query_selector(f"#{part} img") is None, part


def test_groups_order_and_values_with_their_types(page) -> None:
    """Numbers are numbers, a moved total is one row, the rows behind a group are its reason."""
    order = "<o><c>{}</c><t>{}</t></o>"
    doc = axlog.Document(
        streams=["s"],
        views={
            "totals": "match //o[c/$c]/t/$t "
            "return $c, count() as n, sum($t) as total, avg($t) as m",
            "top": "match //o[c/$c]/t/$t return $c, $t order by number($t) descending limit 2",
            "number": "count(//o)",
        },
    )
    for client, total in (("A", "1.5"), ("B", "2000"), ("A", "2"), ("A", "1")):
        doc.feed("s", order.format(client, total))
    rows = "[...document.querySelectorAll('#rows tbody tr')].map((r) => r.innerText.split('\\t'))"
    with served(Observer({"d": doc})) as address:
        page.goto(address)
        page.wait_for_selector("#rows td.number:has-text('4.5')")
        assert page.evaluate(rows) == [
            ["possible", "?", "?", "?", "?"],
            ["true", "A", "3", "4.5", "1.5"],
            ["true", "B", "1", "2,000", "2,000"],
        ]
        doc.feed("s", order.format("A", "2.5"))
        page.wait_for_selector("#rows tr.new td.number:has-text('7')")
        assert page.evaluate(rows)[1][:4] == ["true", "A", "4", "7"]
        page.wait_for_selector("#changes li:has-text('total 4.5 → 7')")
        page.click("#rows tr[tabindex]:has(.badge.true)")
        page.wait_for_selector("#why:has-text('made of 4 matches')")
        page.keyboard.press("Escape")
        page.click("#views button:has-text('top')")
        page.wait_for_selector("#rows td:has-text('2000')")
        assert page.evaluate(rows) == [["true", "B", "2000"], ["true", "A", "2.5"]]
        page.click("#views button:has-text('number')")
        page.wait_for_selector("#rows td:text-is('5')")
        assert page.evaluate(rows) == [["true", "5"]]


def test_ten_thousand_rows_and_a_thousand_changes_a_second(page) -> None:
    """Rows are cut to what is shown; the page answers while a thousand changes a second come."""
    items = "".join(f"<a>{n}</a>" for n in range(10_000))
    doc = axlog.parse(f"<r>{items}{CALL.format('f')}</r>", views={"v": "match /r/a/$x return $x"})
    stopped = Event()
    fed = [0]

    def feed() -> None:
        started = monotonic()
        while not stopped.wait(0.02):
            for _ in range(int((monotonic() - started) * 1000) - fed[0]):
                doc.feed("f", f"<a>new {fed[0]}</a>")
                fed[0] += 1

    work = Thread(target=feed)
    with served(Observer({"w": doc})) as address:
        work.start()
        try:
            page.goto(address)
            page.wait_for_selector("#range:has-text('are not shown')")
            page.wait_for_selector("#changes li:has-text('new 1')")
            page.fill("#find", "9999")
            page.wait_for_selector("#rows td:has-text('9999')")
            page.fill("#find", "new 77")
            page.wait_for_selector("#rows td:has-text('new 77')")
            page.click("#changes")
            page.evaluate("new Promise((done) => requestAnimationFrame(done))")
            assert page.evaluate("document.querySelectorAll('#rows tr').length") < 300
            assert page.evaluate("document.querySelectorAll('#changes li').length") <= 200
            while fed[0] < 1000 and work.is_alive():  # however slow the machine is
                page.wait_for_timeout(50)
        finally:
            stopped.set()
            work.join()
    assert fed[0] >= 1000


PIPELINE = """
engine: spark
document: <r><a><ax:call xmlns:ax="urn:axlog" stream="f"/></a></r>
sources: [{kind: jsonl, path: in.jsonl}]
views: {v: "match /r/a/x/$x return $x"}
"""


def test_what_an_engine_elsewhere_reports(page, tmp_path: Path) -> None:
    """The page of a distributed run: rows from changes, outlooks, dead letters, why by replay."""
    from axlog.runtime.replay import Replay

    (tmp_path / "p.yaml").write_text(PIPELINE, encoding="utf-8")
    (tmp_path / "in.jsonl").write_text('{"stream": "f", "insert": "<x>17</x>", "at": 5}\n')
    model = load(str(tmp_path / "p.yaml"))
    reported = Reported(model, "spark", Replay(model))
    reported.activity = "starting"
    row = Row(("x",), ("17",))
    with served(reported) as address:
        page.goto(address)
        page.wait_for_selector("#status:has-text('starting')")
        page.wait_for_selector("#tree .call:has-text('f')")
        reported.activity = ""
        outlook = Outlook(1, [{"row": {"x": None}, "needs": [{"stream": "f", "pattern": "x/$x"}]}])
        refused = [Refusal("f", HOSTILE, "in.jsonl:2", f"AX101: {HOSTILE}")]
        change = Change("insert", row, view="v", microseconds=5_000_000)
        reported.take(
            BatchSummary(
                "document", [change], refused, {"f": (3, 1)}, 120, 5_000_000, {"v": outlook}
            )
        )
        page.wait_for_selector("#rows .badge.true")
        page.wait_for_selector("#rows .badge.possible")
        page.wait_for_selector("#errors :text('onerror')")
        assert "120 bytes in the state store" in page.inner_text("#state")
        page.click("#rows tr:has(.badge.true)")
        page.wait_for_selector("#why td:has-text('in.jsonl:1')")
        page.keyboard.press("Escape")
        reported.lagging = [Lagging("in.jsonl", HOSTILE, 3.0, 2)]
        page.wait_for_selector("#errors .lagging")
        never = Change("never", Row(("x",), ("18",)), view="v", microseconds=6_000_000)
        gone = Change("delete", row, view="v", microseconds=6_000_000)
        reported.take(BatchSummary("document", [gone, never], microseconds=6_000_000))
        page.wait_for_selector("#rows .badge.never")
        assert page.query_selector("#rows .badge.true") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_on_a_phone(browser, chain, scheme: str) -> None:
    runner, simulator = chain
    simulator.until(2 * 86400)
    runner.run()
    page, faults = opened(
        browser, viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True
    )
    with served(observe_runner(runner)) as address:
        page.goto(address)
        page.wait_for_selector("#rows td")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(int(n) for n in ground[4:-1].split(",")) > 380
        assert light == (scheme == "light")
    page.context.close()
    assert faults == []
