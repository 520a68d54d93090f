"""The load, in short: what is bounded stays bounded, by counters; `lab load` measures times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.__main__ import application
from lab.stress.latencies import Latencies
from lab.stress.load import Sizes, run_load

pytestmark = pytest.mark.system

SMALL = Sizes(
    views=12, publishers=4, window=4, batch=25, outbox=5, pause=0.05, compact_after=600
)  # fmt: skip


def test_a_load_leaves_nothing_growing(tmp_path: Path) -> None:
    """Three phases of a few hundred updates; the slow publisher makes feeding wait."""
    report = run_load(600, SMALL, tmp_path, most_updates=400)
    assert report.faults == []  # publishers have the views' rows, the store verifies
    steady, slow, recovered = report.phases
    assert {phase.updates for phase in report.phases} == {400}
    assert slow.blocked > 0
    assert slow.largest_outbox >= SMALL.outbox
    assert slow.largest_outbox <= SMALL.outbox + 2 * SMALL.batch
    # A window of 4 batches and the one that comes: 25 orders of 12 nodes, as many shipments of 5.
    assert report.most_nodes <= 6 * SMALL.batch * (12 + 5) + 10
    assert steady.acknowledged.count == 400
    assert recovered.delivered.count > 0
    assert not list(tmp_path.iterdir())


def test_the_verb_writes_a_report_and_a_picture(tmp_path: Path) -> None:
    out, plot = tmp_path / "load.json", tmp_path / "load.svg"
    command = ["load", "--minutes", "0.02", "--views", "4", "--publishers", "2", "--json"]
    result = CliRunner().invoke(application(), [*command, "--out", str(out), "--plot", str(plot)])
    assert result.exit_code == 0, result.output
    said = json.loads(out.read_text())
    assert [phase["phase"] for phase in said["phases"]] == ["steady", "slow", "recovered"]
    assert json.loads(result.stdout)["faults"] == []
    assert plot.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize("percent", [0.1, 50, 95, 99.9, 100])
def test_percentiles_are_within_a_bucket(percent: float) -> None:
    durations = [0.000_003 * 1.01**n for n in range(1000)]
    found, half, other = Latencies(), Latencies(), Latencies()
    for number, each in enumerate(durations):
        found.note(each)
        (half if number % 2 else other).note(each)
    half.add(other)
    right = durations[max(0, -int(-len(durations) * percent // 100) - 1)]
    assert right <= found.percentile(percent) <= right * 1.06
    assert half.percentile(percent) == found.percentile(percent)
    assert Latencies().percentile(50) == 0
