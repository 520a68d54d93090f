"""What a small command imports. Nothing else is guarded: times depend on the machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_SCRIPT = """
import json, sys
sys.argv = ["axlog", *json.loads(sys.argv[1])]
from axlog.cli import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""
UNNEEDED = (
    "asyncio", "axlog.future.truth", "axlog.live.collector", "axlog.live.streams",
    "axlog.live.tuner", "axlog.match.filters", "axlog.pipeline", "axlog.server",
    "axlog.views.algebraic", "axlog.views.explanation", "axlog.views.records",
    "importlib.metadata", "pydantic", "rich", "ssl", "urllib.request",
)  # fmt: skip


def _imported(*arguments: str) -> tuple[list[str], set[str]]:
    command = [sys.executable, "-c", _SCRIPT, json.dumps(arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    *lines, modules = done.stdout.splitlines()
    return lines, set(json.loads(modules))


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("//b", ["<b>1</b>"]),
        ("match /a/b/$x return $x", ['{"row": {"x": "1"}, "count": 1}']),
    ],
)
def test_a_small_query_imports_what_it_needs(query: str, lines: list[str]) -> None:
    answer, modules = _imported("query", "<a><b>1</b></a>", query)
    assert answer == lines
    assert not modules & set(UNNEEDED)
    assert "lark" not in modules or query.startswith("match")
    assert sum(name.startswith("axlog.") for name in modules) < 260


def test_values_that_need_a_conversion_are_converted() -> None:
    answer, modules = _imported(
        "query", "<a><b>1</b></a>", "//b", "--limit-depth", "7", "--show", "val", "-n", "p=u"
    )
    assert answer == ["1"]
    assert "pydantic" in modules
