"""Files of earlier formats: opened with everything, or refused by code and left as they are."""

import json
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


@pytest.mark.parametrize("written", ["pipeline-0.1", "pipeline-format-2"])
def test_a_checkpoint_of_an_earlier_format_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """The sinks of 0.1 wrote microseconds: going on would mix two units of time in one file."""
    place = tmp_path / "run"
    shutil.copytree(GOLDEN / written, place)
    monkeypatch.chdir(place)
    before = contents(place)
    done = CliRunner().invoke(application(), ["run", "pipeline.yaml", "--once", "--no-page"])
    assert done.exit_code == 2
    assert "AX855" in done.stderr
    assert "start with a new checkpoint" in done.stderr
    after = contents(place)
    assert {name: after[name] for name in before} == before


def test_a_checkpoint_of_format_3_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "run"
    shutil.copytree(GOLDEN / "pipeline-format-3", place)
    monkeypatch.chdir(place)
    with (place / "in.jsonl").open("a") as lines:
        insert = "<order><oid>19</oid></order>"
        lines.write(json.dumps({"stream": "orders", "insert": insert, "at": 3}) + "\n")
    done = CliRunner().invoke(application(), ["run", "pipeline.yaml", "--once", "--no-page"])
    assert done.exit_code == 0
    shown = [json.loads(line) for line in (place / "out.jsonl").read_text().splitlines()]
    assert [(line["batch"], line["op"], line["row"]) for line in shown] == [
        (1, "insert", {"x": "17"}),
        (2, "insert", {"x": "18"}),
        (3, "insert", {"x": "19"}),
    ]


def test_a_journal_of_version_2_opens_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "orders.channel"
    shutil.copytree(GOLDEN / "journal-2" / "orders.channel", path)
    channel = LocalChannel("orders", journal=Journal(path))
    assert (channel.first, channel.last) == (1, 2)
    (entry,) = channel.subscribe("reader").read().entries  # the first one was acknowledged
    assert (entry.sequence, entry.update.content) == (2, "<order><oid>18</oid></order>")
    assert channel.publish(entry.update, ("shop", 18)) == 2  # its producer is known
    channel.close()


def test_a_journal_of_0_1_opens_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "orders.journal"
    shutil.copy(GOLDEN / "channel-0.1" / "orders.journal", path)
    channel = LocalChannel("orders", journal=Journal(path))
    assert (channel.first, channel.last) == (1, 2)
    subscription = channel.subscribe("reader")
    (entry,) = subscription.read().entries  # the first one was acknowledged
    assert (entry.sequence, entry.update.content) == (2, "<order><oid>18</oid></order>")
    channel.close()
    old = tmp_path / "orders.journal.version-1"
    assert old.read_bytes() == (GOLDEN / "channel-0.1" / "orders.journal").read_bytes()
    again = LocalChannel("orders", journal=Journal(path))
    assert (again.first, again.last) == (1, 2)
    again.close()
