"""The live page in a real Chromium: links, history, searches, exports, plots, queries, letters."""

import csv
import io
import json
from pathlib import Path

import httpx
import pytest

import axlog
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.server.pipelines import observe_runner
from axlog.server.summaries import Observer
from tests.browsing import CALL, opened, served
from tests.server_access import BEARER, TOKEN

pytestmark = pytest.mark.system

MONITOR = f"""<m><web>{CALL.format("orders")}</web><ship>{CALL.format("shipments")}</ship></m>"""
ON_TIME = (
    "match /m[web/order/oid/$x#t1][ship/order/oid/$x#t2]"
    " where t2 - t1 >= 0 and t2 - t1 <= 50 return $x"
)
KEYS = ["key web/order by oid trusted", "key ship/order by oid trusted"]


def order(number: object) -> str:
    return f"<order><oid>{number}</oid></order>"


def monitor() -> axlog.Document:
    return axlog.parse(MONITOR, views={"on_time": ON_TIME}, facts=KEYS)


def test_the_history_of_a_row_and_a_link_to_it(page) -> None:
    """Possible, true and never, each with its time and cause; the address opens the same row."""
    doc = monitor()
    with served(Observer({"m": doc})) as address:
        doc.feed("orders", order(17), at=0)
        doc.feed("orders", order(18), at=5)
        page.goto(address)
        page.click("#rows tr:has-text('17')")
        page.wait_for_selector("#why .reasons:has-text('shipments')")
        history = "[...document.querySelectorAll('#why .history li')].map((one) => one.innerText)"
        (possible,) = page.evaluate(history)
        assert "possible" in possible
        assert "message 1 of 'orders'" in possible
        assert 'row={"x":"17"}' in page.evaluate("decodeURIComponent(location.search)")
        link = page.url
        page.keyboard.press("Escape")
        page.wait_for_function("!location.search.includes('row=')")
        doc.feed("shipments", order(17), at=30)
        doc.advance(56)
        page.goto(link)  # a new visit, signed in by its cookie
        page.wait_for_selector("#why:has-text('The row is there')")
        possible, true = page.evaluate(history)
        assert "message 1 of 'orders'" in possible
        assert "00:00:30" in true
        assert "message 1 of shipments" in true
        page.keyboard.press("Escape")
        page.click("#rows tr:has-text('18')")
        page.wait_for_selector("#why:has-text('The row can never come')")
        possible, never = page.evaluate(history)
        assert "message 2 of 'orders'" in possible
        assert "by the clock" in never
        assert "its deadline passed at 00:00:55" in page.inner_text("#why .reasons")


def test_colours_say_what_the_view_calls_good(page, tmp_path: Path) -> None:
    written = f"""
    engine: embedded
    document: {MONITOR}
    sources: [{{kind: jsonl, path: in.jsonl}}]
    views:
      plain: {{query: "{ON_TIME}"}}
      on_time: {{query: "{ON_TIME}", good: true}}
      late: {{query: "{ON_TIME}", good: never}}
    facts: {KEYS}
    """
    (tmp_path / "p.yaml").write_text(written, encoding="utf-8")
    lines = [{"stream": "orders", "insert": order(n), "at": n} for n in (1, 2)]
    lines += [{"stream": "shipments", "insert": order(1), "at": 10}]
    lines += [{"stream": "orders", "insert": order(3), "at": 90}]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    runner = Runner(load(str(tmp_path / "p.yaml")), once=True)
    colours = {}
    with served(observe_runner(runner)) as address:
        runner.run()
        page.goto(address)
        for view in ("plain", "on_time", "late"):
            page.click(f"#graph button[title^='View {view}:']")  # the graph leads to the view
            page.wait_for_selector(f"#views [aria-selected=true]:has-text('{view}')")
            good = {"on_time": "true", "late": "never"}.get(view, "")
            page.wait_for_selector(f"#panel[data-good='{good}'] #rows .badge.never")
            for truth in ("true", "never"):
                style = f"getComputedStyle(document.querySelector('#rows .badge.{truth}')).color"
                colours[view, truth] = page.evaluate(style)
    runner.close()
    assert colours["on_time", "true"] == colours["late", "never"]
    assert colours["on_time", "never"] == colours["late", "true"]
    assert len({*colours.values()}) == 4  # and neither colour is used where nothing is good or bad


def test_searches_are_counted_saved_and_exported(page) -> None:
    doc = axlog.parse(f"<r>{CALL.format('f')}</r>", views={"v": "match /r/a/$x return $x"})
    for text in ("one", "two", 'three, "3"', "=1+1"):
        doc.feed("f", f"<a>{text}</a>")
    count = "[...document.querySelectorAll('#truths .n')].map((one) => one.innerText)"
    with served(Observer({"w": doc})) as address:
        page.goto(address)
        page.wait_for_selector("#truths [data-truth=all]:has-text('5')")
        page.fill("#find", "t")
        page.wait_for_selector("#truths [data-truth=all]:has-text('2')")
        assert page.evaluate(count) == ["2", "2", "0", "0"]
        assert "2 rows found" in page.inner_text("#outlook")
        page.click("#save")
        page.fill("#find", "")
        page.reload()  # saved searches outlive the page
        page.click("#saved button:has-text('“t”')")
        page.wait_for_selector("#rows:not(:has-text('one')) td:has-text('two')")
        assert "find=t" in page.url
        with page.expect_download() as began:
            page.click("#export-csv")
        assert began.value.suggested_filename == "w-v.csv"
        rows = list(csv.reader(io.StringIO(Path(began.value.path()).read_text("utf-8"))))
        assert rows == [["truth", "x", "until", "since"], *([t, x, "", ""] for t, x in
                        [("true", 'three, "3"'), ("true", "two")])]  # fmt: skip
        page.click("#saved [aria-label^='Delete']")
        page.wait_for_selector("#saved:empty", state="attached")
        page.fill("#find", "")
        page.click("#truths [data-truth=true]")
        with page.expect_download() as began:
            page.click("#export-json")
        found = json.loads(Path(began.value.path()).read_text("utf-8"))
        assert [one["row"]["x"] for one in found] == ["=1+1", "one", 'three, "3"', "two"]


def test_the_server_goes_away_and_comes_back(browser) -> None:
    doc = monitor()
    page, _ = opened(browser)
    with served(Observer({"m": doc})) as address:
        port = int(address.split(":")[2].split("/")[0])
        page.goto(address)
        page.wait_for_selector("#rows td")
    page.wait_for_selector("#stale:has-text('has not answered since')")
    page.wait_for_function("getComputedStyle(document.querySelector('main')).opacity !== '1'")
    assert page.get_attribute("#stale", "role") == "alert"
    with served(Observer({"m": doc}), port=port):
        page.fill("#token", TOKEN)  # sessions end with their server
        page.press("#token", "Enter")
        page.wait_for_selector("#stale", state="hidden")
        assert page.evaluate("document.body.className") == ""
    page.context.close()


def test_plots_of_groups_over_time(page) -> None:
    query = "match //o[c/$c]/t/$t return $c, count() as n, sum($t) as total"
    doc = axlog.Document(
        streams=["s"], views={"totals": query, "plain": "match //o/c/$c return $c"}
    )
    with served(Observer({"d": doc})) as address:
        for at, (client, total) in enumerate((("A", 5), ("B", 3), ("A", 4), ("ج", 1))):
            doc.feed("s", f"<o><c>{client}</c><t>{total}</t></o>", at=60 * at)
        page.goto(address)
        page.click("#plot summary")
        page.wait_for_selector("#plot-said path.line")
        assert page.locator("#plot-said path.line").count() == 3
        page.select_option("#plot-number", "total")
        page.wait_for_selector("#plot-said .legend li:has-text('9')")  # drawn again
        assert page.inner_text("#plot-said .legend li >> nth=0").split() == ["A", "9"]
        doc.feed("s", "<o><c>B</c><t>70</t></o>", at=300)
        page.wait_for_selector("#plot-said .legend li:has-text('73')")
        page.click("#views button:has-text('plain')")
        page.wait_for_selector("#plot", state="hidden")


def test_a_query_is_checked_explained_and_watched(page) -> None:
    doc = monitor()
    with served(Observer({"m": doc}), {"m": doc}) as address:
        doc.feed("orders", order(17), at=0)
        page.goto(address)
        page.wait_for_selector("#rows td")
        page.fill("#ask", "match /m/web/order[oid/$x return $x")
        page.wait_for_selector("#ask[aria-invalid=true]")
        assert "line 1, column" in page.inner_text("#ask-said")
        page.fill("#ask-name", "mine")
        assert page.is_disabled("#ask-watch")
        page.fill("#ask", "match /m/web/order/oid/$x return $x")
        page.wait_for_selector("#ask-said .valid")
        assert "columns: x (text)" in page.inner_text("#ask-said")
        assert "maintained incrementally, by counting" in page.inner_text("#ask-said")
        page.click("#ask-watch")
        page.wait_for_selector("#views [aria-selected=true]:has-text('mine')")
        page.wait_for_selector("#rows td:has-text('17')")
        doc.feed("orders", order(18), at=1)
        page.wait_for_selector("#rows td:has-text('18')")
        page.wait_for_selector("#changes li:has-text('mine')")
        page.go_back()
        page.wait_for_selector("#views [aria-selected=true]:has-text('on_time')")
        page.click("#views button:has-text('mine')")
        page.click("#drop")
        page.wait_for_selector("#views:not(:has-text('mine'))")
    assert list(doc.views) == ["on_time"]


LETTERS = """
engine: embedded
document: <r><ax:call xmlns:ax="urn:axlog" stream="f"/></r>
streams: {f: {source: {kind: directory, path: in}}}
views: {v: "match /r/a/$x return $x"}
dead_letters: {kind: jsonl, path: out/dead.jsonl}
"""


def test_a_dead_letter_is_corrected_and_replayed(page, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.xml").write_text("<a>17")
    (tmp_path / "p.yaml").write_text(LETTERS, encoding="utf-8")
    runner = Runner(load(str(tmp_path / "p.yaml")), once=True)
    with served(observe_runner(runner)) as address:
        runner.run()
        page.goto(address)
        page.click("#letters-open")
        page.click("#letters summary")
        assert page.input_value("#letters textarea") == "<a>17"
        page.fill("#letters textarea", "<a>17</a>")
        page.click("#letters button:has-text('Replay')")
        page.wait_for_selector("#letters-said:has-text('0 messages to correct, 1 replayed')")
        page.keyboard.press("Escape")
        runner.run()
        page.wait_for_selector("#rows td:has-text('17')")
        bare = address.split("#")[0].rstrip("/")
        body = {"number": 7}
        refused = httpx.post(f"{bare}/live/letters", json=body, headers=BEARER, trust_env=False)
        assert refused.json()["code"] == "AX854"
    runner.close()


def test_undecided_and_waiting_are_shown_as_such(page, tmp_path: Path) -> None:
    """A source that is ahead waits for the slower one, and the page says for which."""
    written = """
    engine: embedded
    streams:
      f: {source: {kind: jsonl, path: f.jsonl}}
      g: {source: {kind: jsonl, path: g.jsonl}}
    views: {v: "for $x in //f/x return <o>{string($x)}</o>"}
    settings: {hold: 1h}
    """
    (tmp_path / "p.yaml").write_text(written, encoding="utf-8")
    (tmp_path / "f.jsonl").write_text('{"stream": "f", "insert": "<x>1</x>", "at": 5}\n')
    (tmp_path / "g.jsonl").write_text("")
    runner = Runner(load(str(tmp_path / "p.yaml")))
    with served(observe_runner(runner)) as address:
        runner.round()
        page.goto(address)
        page.wait_for_selector("#pressure:has-text('1 update waits for')")
        assert "g" in page.inner_text("#pressure")
        assert "1 waiting" in page.inner_text("#status")
    runner.close()


NAMES = {
    "long": "a" * 120,
    "arabic": "طلب رقم ١٧",
    "emoji": "👩🏽‍🚀 delivered 🚚",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_odd_names_on_a_phone_are_readable_and_named_for_screen_readers(browser, scheme) -> None:
    view = f"orders_{'of_the_northern_region_' * 4}late"
    doc = axlog.parse(
        f"<r>{CALL.format('f')}</r>",
        views={view: "match /r/a/$x return $x", "b": "match /r/b/$x return $x"},
    )
    for text in NAMES.values():
        doc.feed("f", f"<a>{text}</a>")
    page, faults = opened(
        browser, viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True
    )
    with served(Observer({"a document with a long name " * 3: doc})) as address:
        page.goto(address)
        page.wait_for_selector("#rows td:has-text('👩🏽‍🚀')")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        cell = "[...document.querySelectorAll('#rows td')].find((one) => /طلب/.test(one.innerText))"
        direction = f"getComputedStyle({cell}).direction"
        assert page.evaluate(direction) == "rtl"
        assert page.evaluate(UNNAMED) == []
        assert page.evaluate(CONTRAST) == []
        assert page.locator("#rows tr[tabindex='0']").count() == 1  # one stop of the Tab key
        assert page.evaluate("document.querySelectorAll('h1').length") == 1
        page.click("#rows tr:has-text('طلب')")
        page.wait_for_selector("#why .badge.true")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.evaluate("document.activeElement.closest('#why') !== null")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.closest('#rows') !== null")
    page.context.close()
    assert faults == []


# Every control has a name, and every text is four and a half times as light or dark as its ground.
UNNAMED = """
[...document.querySelectorAll('button, a, input, select, textarea, [role], svg[role], table')]
  .filter((one) => one.offsetParent !== null || one instanceof SVGElement)
  .filter((one) => !(one.innerText || '').trim() && !one.getAttribute('aria-label')
    && !one.getAttribute('aria-labelledby') && !(one.labels && one.labels.length))
  .filter((one) => !['status', 'alert', 'group'].includes(one.getAttribute('role')))
  .map((one) => one.outerHTML.slice(0, 200))
"""
CONTRAST = """
(() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92
    : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const found = numbers(getComputedStyle(one).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const wrong = [];
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || one.offsetParent === null || one.closest('.hidden, .skip, :disabled')) continue;
    const a = light(numbers(getComputedStyle(one).color)), b = light(ground(one));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) wrong.push([one.tagName, one.className, one.innerText.slice(0, 40), ratio]);
  }
  return wrong;
})()
"""


def test_a_hundred_thousand_rows(page) -> None:
    """Every row can be found, and reached page by page; an answer has at most a thousand."""
    items = "".join(f"<a>{n:06}</a>" for n in range(100_000))
    doc = axlog.parse(f"<r>{items}{CALL.format('f')}</r>", views={"v": "match /r/a/$x return $x"})
    with served(Observer({"w": doc})) as address:
        page.goto(address)
        page.click("#truths [data-truth=true]")
        page.wait_for_selector("#range:has-text('rows 1 to 100 of 100,000')")
        page.click("#after")
        page.wait_for_selector("#range:has-text('rows 101 to 200 of 100,000')")
        page.fill("#find", "99999")
        page.wait_for_selector("#rows td:has-text('099999')")
        page.wait_for_selector("#truths [data-truth=true]:has-text('1')")
        assert page.evaluate("document.querySelectorAll('#rows tr').length") < 50
        page.fill("#find", "")
        with page.expect_download() as began:  # the link follows the search at once
            page.click("#export-csv")
        assert len(Path(began.value.path()).read_text("utf-8").splitlines()) == 100_001
