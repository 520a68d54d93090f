"""Files written by version 0.1: opened with everything, or refused by code and left as they are."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.journal import Journal

GOLDEN = Path(__file__).parents[1] / "golden"


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_checkpoint_of_0_1_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sinks wrote microseconds: going on would mix two units of time in one file."""
    place = tmp_path / "run"
    shutil.copytree(GOLDEN / "pipeline-0.1", place)
    monkeypatch.chdir(place)
    before = contents(place)
    done = CliRunner().invoke(application(), ["run", "pipeline.yaml", "--once", "--no-page"])
    assert done.exit_code == 2
    assert "AX855" in done.stderr
    assert "start with a new checkpoint" in done.stderr
    after = contents(place)
    assert {name: after[name] for name in before} == before


def test_a_journal_of_0_1_opens_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "orders.journal"
    shutil.copy(GOLDEN / "channel-0.1" / "orders.journal", path)
    channel = LocalChannel("orders", journal=Journal(path))
    assert (channel.first, channel.last) == (1, 2)
    subscription = channel.subscribe("reader")
    (entry,) = subscription.read().entries  # the first one was acknowledged
    assert (entry.sequence, entry.update.content) == (2, "<order><oid>18</oid></order>")
    channel.close()
