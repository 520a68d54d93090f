"""The supply chain on a standalone cluster on this machine, by `axlog run --master`."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.samples import supply_chain as chain
from lab.stress.spark_kills import Cluster, quick_settings

pytestmark = [pytest.mark.spark, pytest.mark.system]
ORDERS = 20


def _made(place: Path, settings: str = "") -> Path:
    place.mkdir()
    chain.write(place, seed=2, orders=ORDERS, faults=0.3)
    path = place / "supply-chain.yaml"
    text = path.read_text(encoding="utf-8")
    assert "buckets: 2}" in text
    path.write_text(text.replace("buckets: 2}", f"buckets: 2{settings}}}"), encoding="utf-8")
    return path


def _rows(place: Path) -> dict[str, Counter[str]]:
    """The rows that the changes in the logs lead to, by view."""
    found: dict[str, Counter[str]] = {}
    for log in (place / "out" / "orders.jsonl", place / "out" / "statistics.jsonl"):
        for line in log.read_text(encoding="utf-8").splitlines():
            change = json.loads(line)
            rows = found.setdefault(f"{log.name} {change['view']}", Counter())
            if change["op"] in ("update", "delete"):
                rows[json.dumps(change.get("before") or change["row"], sort_keys=True)] -= 1
            if change["op"] in ("insert", "update"):
                rows[json.dumps(change["row"], sort_keys=True)] += 1
    return {view: +rows for view, rows in found.items()}


def test_the_supply_chain_on_a_cluster(tmp_path: Path, cluster: Cluster) -> None:
    """Its rows are those of the embedded engine."""
    here = _made(tmp_path / "embedded")
    done = CliRunner().invoke(application(), ["run", str(here), "--engine", "embedded", "--once"])
    assert done.exit_code == 0, done.output
    expected = _rows(tmp_path / "embedded")
    assert sum(bool(rows) for rows in expected.values()) > 10
    settings, environment = quick_settings(cores=1)
    there = _made(tmp_path / "spark", f", partitions: 1, {settings}")
    command = [sys.executable, "-c", "from axlog.cli import main; main()", "run", str(there)]
    ended = subprocess.run(
        [*command, "--master", cluster.address, "--once"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert _rows(tmp_path / "spark") == expected
