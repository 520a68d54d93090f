"""`docs/papers.md` names modules, tests, commands and sections that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from axlog.cli.application import VERBS
from lab.__main__ import VERBS as LAB_VERBS
from lab.benchmarks.running import BENCHMARKS
from lab.cli.paper import PAPERS

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
ROOT = PAGE.parents[1]
QUOTED = re.findall(r"`([^`\n]+)`", PAGE.read_text(encoding="utf-8"))
PATHS = sorted({each for each in QUOTED if re.fullmatch(r"[\w/.\-]+(?:\.py|/[a-z_]+)", each)})
COMMANDS = sorted({each for each in QUOTED if each.startswith(("axlog ", "python -m lab "))})


def test_the_page_names_many() -> None:
    assert len(PATHS) > 90
    assert len(COMMANDS) > 12
    papers = re.findall(r"^### (P\d)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert papers == ["P1", "P2", "P3", "P4", "P5"]


@pytest.mark.parametrize("path", PATHS)
def test_a_named_module_or_test_exists(path: str) -> None:
    if path.startswith(("tests/", "lab/", "examples/")):
        assert (ROOT / path).exists()
    elif path.endswith(".py"):
        assert (ROOT / "src" / "axlog" / path).exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_named_command_exists(command: str) -> None:
    words = command.split()
    if words[0] == "axlog":
        assert words[1] in VERBS
        return
    verb = words[3]
    assert verb in LAB_VERBS
    if verb == "bench":
        assert words[4] in BENCHMARKS
    if verb == "paper":
        assert words[4] in PAPERS
        assert set(PAPERS[words[4]]) <= set(BENCHMARKS)


def test_links_of_the_page_lead_to_its_headings() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w\- ]", "", each).strip().lower().replace(" ", "-")
        for each in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([\w\-]+)\)", text)) <= headings
