"""The P2P monitor as three processes: filter at the source, kills without loss, unsubscription."""

import runpy
from pathlib import Path

import pytest


@pytest.mark.system
def test_the_p2p_monitor(repository: Path, tmp_path: Path) -> None:
    example = runpy.run_path(str(repository / "examples" / "p2p-monitor" / "monitor.py"))
    said: list[str] = []
    seen = example["play"](tmp_path, said.append)
    page = (repository / "docs" / "tutorial-p2p-monitor.md").read_text(encoding="utf-8")
    assert "\n".join(said) in page
    # What the alarm wanted of b is settled by then, and no part of the filter any more.
    assert seen["filter"] == ['match /row[status/"500"]/path/$path']
    assert seen["failures"] == ["/2", "/4", "/6", "/7", "/8"]  # each once, in order
    assert seen["before"] == ["monitor.monitor.a"]
    assert seen["after"] == []
    assert seen["unheard"] == 0  # the shop itself looks no more
    assert seen["b"] == ["monitor.monitor.b"]
