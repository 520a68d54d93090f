"""The screenshots of the README and the docs: `python -m lab.cli.screenshots DIRECTORY`.

The supply chain runs in this process for a few seconds of real time and five days of simulated
time. Its page is rendered in Chromium, wide and narrow, light and dark; so are pages of the docs,
and the tables of `axlog demo`. `make screenshots` runs it; it needs playwright, Chromium, mkdocs
and Pillow, which reduces the file sizes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO, StringIO
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.terminal_theme import MONOKAI

from axlog.cli import live_page
from axlog.cli.demo_tables import tables
from axlog.errors import SetupError
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.samples import supply_chain

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDE, NARROW = (1280, 960), (390, 844)
REPOSITORY = Path(__file__).parents[2]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_COLOURS = 256
_HOURS_A_STEP, _STEP = 1.0, 0.2


def main(into: Path) -> None:
    """Create all screenshots."""
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        simulator = supply_chain.Simulator(place, seed=4, rate=4, faults=0.12)
        (place / "supply-chain.yaml").write_text(supply_chain.pipeline(), encoding="utf-8")
        simulator.until(70 * supply_chain.HOUR)
        runner = Runner(load(str(place / "supply-chain.yaml")))
        observed = live_page.observed(runner)
        site = _site(place / "site")
        stopping = Event()
        work = [Thread(target=runner.run), Thread(target=_simulate, args=(simulator, stopping))]
        work[0].start()

        def go_on() -> str:
            """Start the simulation; return the tables of the terminal after a while."""
            work[1].start()
            return _terminal(observed, stopping)

        try:
            documents = live_page.documents(runner)
            with live_page.page(observed, 0, documents=documents) as address:
                _take_all(into, address, go_on, site)
        finally:
            stopping.set()
            runner.stop()
            for each in work:
                if each.ident is not None:
                    each.join()
            runner.close()


def _simulate(simulator: supply_chain.Simulator, stopping: Event) -> None:
    hours = 70.0
    while not stopping.wait(_STEP):
        hours += _HOURS_A_STEP
        simulator.until(hours * supply_chain.HOUR)


def _terminal(observed: Any, stopping: Event) -> str:
    """Return the tables of `axlog demo` as a page."""
    stopping.wait(12)
    console = Console(record=True, width=152, file=StringIO(), force_terminal=True)
    console.print(tables(observed, "engine embedded", "http://127.0.0.1:8040"))
    form = (
        "<html><style>{stylesheet} body {{ background: #12161c; color: #d7dee8; margin: 12px;"
        " font: 13px/15.13px 'DejaVu Sans Mono', monospace }} a {{ color: inherit }}</style>"
        "<body><pre style='font: inherit; margin: 0'>{code}</pre></body></html>"
    )
    return console.export_html(code_format=form, inline_styles=True, theme=MONOKAI)


def _site(into: Path) -> Path:
    """Build the site of the docs; return its directory."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(into)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)
    return into


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def _served(site: Path) -> Iterator[str]:
    """Serve the site on loopback: its search works only over HTTP. Yield its address."""
    handler = partial(_Quiet, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _take_all(into: Path, address: str, go_on: Callable[[], str], site: Path) -> None:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SetupError("AX901", "no Chromium is on the path", advice="apt-get install chromium")
    with sync_playwright() as started, _served(site) as docs:
        browser = started.chromium.launch(executable_path=chromium, args=FLAGS)
        take = partial(_take, browser)
        # First, while there are few messages to read again.
        take(address, into / "why.png", WIDE, "light", _open_row)
        terminal = go_on()
        for scheme in ("light", "dark"):
            take(address, into / f"page-{scheme}.png", WIDE, scheme, _wait_for_rows)
            take(address, into / f"phone-{scheme}.png", NARROW, scheme, _wait_for_rows)
            for name, size in (("docs", WIDE), ("docs-phone", NARROW)):
                path = into / f"{name}-{scheme}.png"
                take(f"{docs}/concepts.html", path, size, scheme, None)
        take(address, into / "plot.png", WIDE, "light", _open_plot)
        take(address, into / "ask.png", WIDE, "light", _type_query)
        page = browser.new_page(viewport={"width": 1220, "height": 300})
        page.set_content(terminal)
        _save(page.screenshot(full_page=True), into / "terminal.png")
        browser.close()


def _take(
    browser: Browser,
    address: str,
    path: Path,
    size: tuple[int, int],
    scheme: Any,
    act: Callable[[Page], None] | None,
) -> None:
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(address)
    if act is not None:
        act(page)
    page.wait_for_timeout(1500)
    _save(page.screenshot(), path)
    context.close()


def _wait_for_rows(page: Page) -> None:
    page.wait_for_selector("#rows .badge.never")
    page.wait_for_timeout(1500)


def _open_row(page: Page) -> None:
    """An order that can never be on time: why, and since when."""
    _wait_for_rows(page)
    page.click("#truths [data-truth=never]")
    page.wait_for_selector("#rows:not(:has(.badge.possible)) .badge.never")
    page.click("#rows tr:has(.badge.never) >> nth=1")
    page.wait_for_selector("#why .history", timeout=300_000)  # messages are read again


def _open_plot(page: Page) -> None:
    """The orders by supplier over time."""
    _wait_for_rows(page)
    page.click("#graph button[title^='View late_by_supplier']")
    page.click("#plot summary")
    page.select_option("#plot-number", "orders")
    page.wait_for_selector("#plot-said path.line")
    page.evaluate("scrollTo(0, 0)")


def _type_query(page: Page) -> None:
    """A query with an error, while it is typed."""
    _wait_for_rows(page)
    page.fill("#ask", "match /chain/store/o:Order[cbc:ID/$order return $order")
    page.wait_for_selector("#ask-said .error")
    page.locator("#ask").scroll_into_view_if_needed()


def _save(taken: bytes, path: Path) -> None:
    """Write a picture with few colours: a fifth of the size, without a visible difference."""
    from PIL import Image

    few = Image.open(BytesIO(taken)).convert("RGB")
    few = few.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE)
    few.save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
