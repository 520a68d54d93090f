"""The docs do not lie: what they show is run, links lead somewhere, the site is built strictly.

`pages.py` says how a page is played, and how a page says that something cannot be run.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from axlog.pipeline import kinds
from lab.cli import documentation
from lab.documentation import error_codes, patterns
from tests.pages import (
    PAGES,
    REPOSITORY,
    Play,
    blocks,
    forget_modules,
    know_command,
    know_packages,
)
from tests.wheelhouse import Clean

pytestmark = pytest.mark.system

SITE = [page for page in PAGES if page.parent == REPOSITORY / "docs"]
ON_SPARK = [page for page in SITE if "axlog.spark import" in page.read_text(encoding="utf-8")]
PACKAGES = [page for page in SITE if "pip install --editable" in page.read_text(encoding="utf-8")]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CUT_LINK = re.compile(r"\]\s+\((?:#[\w-]+|[\w./-]+\.md[^)]*)\)")
LINK = re.compile(r"(?<!!)\[[^\]\[]*\]\(([^)\s]+)\)")


def name(path: Path) -> str:
    return path.name


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A directory to play a page in; nothing of it stays in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with kinds.lent():
        yield tmp_path
    forget_modules(tmp_path)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page) and page not in (*ON_SPARK, *PACKAGES)],
    ids=name,
)
def test_pages_show_what_happens(page: Path, room: Path) -> None:
    Play(page, room).whole()


@pytest.mark.parametrize("page", [PAGES[0], REPOSITORY / "docs" / "index.md", *PACKAGES], ids=name)
def test_pages_that_install_show_what_happens(page: Path, clean: Clean) -> None:
    """In an environment with what the page has pip install, and nothing else."""
    Play(page, clean.place, clean=clean).whole()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_extras_that_prose_installs_exist(page: Path) -> None:
    for words in inline(page, "pip install"):
        know_packages([word for word in words[2:] if word != "."])


@pytest.mark.spark
@pytest.mark.parametrize("page", ON_SPARK, ids=name)
def test_pages_on_spark_show_what_happens(page: Path, room: Path, spark: Any) -> None:
    """Their `session()` is the one of all tests here."""
    Play(page, room).whole()


def test_a_page_that_lies_is_found(room: Path) -> None:
    page = room / "page.md"
    for text in (
        "```console\n$ axlog query '<a/>' 'match /b'\n{}\n```\n",
        "```console\n$ axlog query '<a/>' 'match /a['\n...\n$ true\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "    >>> 1 + 1\n    3\n",
        "```yaml\nviews: {}\n```\n",
        "```console\n$ pip install 'axlog[nothing]'\n```\n",
        "```console\n$ make nothing\n```\n",
        "    axlog query a b\n",
    ):
        page.write_text(text, encoding="utf-8")
        directory = room / f"room{len(list(room.iterdir()))}"
        directory.mkdir()
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            Play(page, directory).whole()


# What is named in prose exists -------------------------------------------------------------------


def inline(page: Path, word: str) -> list[list[str]]:
    """The commands that prose names, as words."""
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(rf"`({word} [^`]+)`", prose)
    return [shlex.split(each.replace("\n", " ").replace("'", "")) for each in found]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_verbs_options_and_files_that_prose_names_exist(page: Path) -> None:
    for words in inline(page, "axlog"):
        know_command(words)
    for path in re.findall(r"`((?:examples|tests|docs)/[\w./-]+)`", page.read_text("utf-8")):
        assert (REPOSITORY / path).exists(), path
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for _, target, *_ in inline(page, "make"):
        assert f"\n{target}:" in makefile, f"make {target}"


def test_commands_that_examples_begin_with_exist() -> None:
    written = [
        line.removeprefix("#").split("      ")[0].strip()
        for path in sorted((REPOSITORY / "examples").rglob("*.yaml"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("#   ")
    ]
    assert len(written) >= 6
    for command in written:
        words = shlex.split(command)
        if words[0] == "axlog":
            know_command(words)
        for path in (word for word in words if word.startswith("examples/")):
            assert (REPOSITORY / path).exists() or path.endswith("/in"), command


def test_tests_that_pages_name_exist() -> None:
    tests = "".join(p.read_text("utf-8") for p in (REPOSITORY / "tests").rglob("test_*.py"))
    for page in PAGES:
        for found in re.findall(r"(?:`|::)(test_\w+)`", page.read_text("utf-8")):
            assert f"def {found}(" in tests, f"{page.name}: {found}"


def test_few_things_are_not_run() -> None:
    marks = [(page.name, b.mark) for page in PAGES for b in blocks(page) if b.mark is not None]
    assert all(len(str(reason)) > 12 for _, reason in marks), "say why"
    assert len(marks) <= 12, marks


def test_parts_that_are_shown_are_parts_of_their_files() -> None:
    shown = [b for page in PAGES for b in blocks(page) if "a part of" in (b.mark or "")]
    assert len(shown) >= 4
    for block in shown:
        path = re.search(r"a part of (examples/\S+\.yaml)", str(block.mark))
        assert path is not None, block.mark
        whole = {line.strip() for line in (REPOSITORY / path[1]).read_text("utf-8").splitlines()}
        assert {line.strip() for line in block.text.splitlines()} <= whole, path[1]


# What is generated ------------------------------------------------------------------------------


@pytest.mark.parametrize("made", documentation.PAGES)
def test_made_pages_are_up_to_date(made: str) -> None:
    written = (REPOSITORY / "docs" / made).read_text(encoding="utf-8")
    assert written == documentation.PAGES[made](), "make docs"


def test_the_language_page_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert patterns.uncovered() == set()
    monkeypatch.setattr(patterns, "SECTIONS", patterns.SECTIONS[:-1])
    assert {"sort_key", "DIRECTION"} <= patterns.uncovered()
    with pytest.raises(ValueError, match="sort_key"):
        "".join(patterns.page())


def test_every_error_code_is_raised_somewhere() -> None:
    assert [code for code, names in error_codes.classes().items() if not names] == []


# Links, and the site ------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site and repositories' pages make them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", t).strip().lower()) for t in titles}


def wrong_links(page: Path) -> list[str]:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    wrong = [f"{page.name}: {each} is no link" for each in CUT_LINK.findall(text)]
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue  # an address: not looked at without a network
        path, _, anchor = target.partition("#")
        led = page.parent / path if path else page
        if not led.exists():
            wrong.append(f"{page.name}: {target} is not there")
        elif anchor and anchor not in anchors(led):
            wrong.append(f"{page.name}: {target} has no such heading")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=name)
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
    assert sorted(pages) == [page.name for page in SITE], "nav of mkdocs.yml"


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
