"""The live page in a real Chromium: rows come, turn never, say why; errors and streams show."""

import shutil
from collections.abc import Iterator

import pytest

import axlog
from axlog.channels.naming import Channels
from axlog.cli.demo import Chain
from axlog.server.application import Settings, make_application
from axlog.server.observing import Observer
from axlog.server.page import page_operations
from axlog.server.running import running

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def served(widgets):
    settings = Settings(port=0)
    app = make_application(Channels(), settings, page_operations(Observer(widgets)))
    return running(app, settings)


def _is_ours(address: str) -> bool:
    return address.startswith(("http://127.0.0.1", "data:"))


@pytest.fixture
def page(browser):
    """A page on which no script fails and nothing is fetched from elsewhere."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    opened = context.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    opened.on("request", lambda r: None if _is_ours(r.url) else faults.append(r.url))
    yield opened
    context.close()
    assert faults == []


def test_the_supply_chain_on_the_page(page) -> None:
    chain = Chain(seed=1, rate=4, faults=0.3)
    with served(chain.widgets) as address:
        chain.until(3 * 86400)
        page.goto(address)
        page.wait_for_selector("#rows tbody tr")
        assert "waited_for_bank" in page.inner_text("#graph")
        chain.until(6 * 86400)
        page.wait_for_selector("#changes .badge.never")
        page.wait_for_selector("#errors .error")
        page.focus("#rows tbody tr")
        page.keyboard.press("Enter")
        page.wait_for_selector("#why td")
        said = page.inner_text("#why")
        assert "$order#placed" in said
        assert "of 'orders'" in said
        page.keyboard.press("Escape")
        page.click("#widgets button:has-text('stock')")
        page.wait_for_selector("#views button:has-text('low_parts')")


def test_outlook_ends_and_hostile_text(page) -> None:
    widget = axlog.Widget(
        f"<r><a>{CALL.format('f')}</a><b>{CALL.format('g')}</b></r>",
        views={"v": "match /r[a/x/$x][b/y/$x] return $x"},
    )
    with served({"w": widget}) as address:
        page.goto(address)
        page.wait_for_selector("#outlook .possible")
        widget.feed("f", "<x>&lt;img src=x onerror=alert(1)&gt;</x>")
        widget.feed("g", "<y>&lt;img src=x onerror=alert(1)&gt;</y>")
        page.wait_for_selector("#rows td:has-text('onerror')")
        assert page.query_selector("#rows img") is None
        page.wait_for_selector("#outlook .true")
        widget.end("g")
        page.wait_for_selector("#streams .badge.ended")


def test_many_rows_stay_usable(page) -> None:
    items = "".join(f"<a>{n}</a>" for n in range(10_000))
    widget = axlog.Widget(
        f"<r>{items}{CALL.format('f')}</r>", views={"v": "match /r/a/$x return $x"}
    )
    with served({"w": widget}) as address:
        page.goto(address)
        page.wait_for_selector("#rows td:has-text('and 9800 more')")
        for n in range(1000):
            widget.feed("f", f"<a>new {n}</a>")
        page.wait_for_selector("#changes li:has-text('new 999')")
        assert page.evaluate("document.querySelectorAll('#rows tr').length") < 300
        assert page.evaluate("document.querySelectorAll('#changes li').length") <= 200
