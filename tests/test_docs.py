"""The docs do not lie: sessions are run, links lead somewhere, the site is built without a warning.

A session is a `pycon` block, or indented lines that begin with `>>>`: all sessions of a page are
one, and print what is shown. A `python` block with `<!-- run -->` before it is run, and prints what
the `text` block after it shows, or nothing.
"""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
PAGES = sorted(DOCS.glob("*.md"))
READ = [REPOSITORY / "README.md", *PAGES]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]\[]*\]\(([^)\s]+)\)")
RUN = re.compile(
    r"^<!-- run -->\n+```python\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)


def name(path: Path) -> str:
    return path.name


def sessions(text: str) -> str:
    """A page as doctest takes it: the end of a block is not what a session prints."""
    return re.sub(r"^```.*$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if ">>> " in p.read_text(encoding="utf-8")], ids=name
)
def test_sessions_print_what_is_shown(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    text = sessions(page.read_text(encoding="utf-8"))
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert test.examples
    told: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert failed == 0, "".join(told)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if RUN.search(p.read_text(encoding="utf-8"))], ids=name
)
def test_marked_blocks_run(page: Path, tmp_path: Path) -> None:
    for block, shown in RUN.findall(page.read_text(encoding="utf-8")):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", block],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, shown, "")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site and repositories' pages make them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", t).strip().lower()) for t in titles}


def wrong_links(page: Path) -> list[str]:
    wrong = []
    for target in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue  # an address: not looked at without a network
        path, _, anchor = target.partition("#")
        led = page.parent / path if path else page
        if not led.exists():
            wrong.append(f"{page.name}: {target} is not there")
        elif anchor and anchor not in anchors(led):
            wrong.append(f"{page.name}: {target} has no such heading")
    return wrong


@pytest.mark.parametrize("page", READ, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert wrong_links(page) == []


def test_wrong_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# A b\n[x](#a-b) [y](#c) [z](b.md) [q](https://e.example)\n```\n[n](n)\n```\n")
    assert wrong_links(page) == ["a.md: #c has no such heading", "a.md: b.md is not there"]


def in_nav(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    inside = nav.values() if isinstance(nav, dict) else nav
    return [page for each in inside for page in in_nav(each)]


def test_every_page_is_in_the_site_once() -> None:
    written = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = in_nav(written["nav"])
    assert sorted(pages) == [page.name for page in PAGES], "nav of mkdocs.yml"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "tour.html").read_text(encoding="utf-8")
    assert "one update through every layer" in page
    assert not re.findall(r'<(?:script|link)[^>]+(?:src|href)="https?://[^"]*\.(?:js|css)', page)
