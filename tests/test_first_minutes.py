"""The first minutes of a new user: an empty directory, `pip install`, three messages, an alert."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.wheelhouse import Clean

pytestmark = pytest.mark.system

MESSAGES = {
    "order-17.xml": "<order><oid>17</oid><placed>2026-11-01T10:00:00Z</placed></order>",
    "order-18.xml": "<order><oid>18</oid><placed>2026-11-01T11:00:00Z</placed></order>",
    "shipment.xml": "<shipment><order>17</order><at>2026-11-02T09:00:00Z</at></shipment>",
}


def test_from_an_empty_directory_to_the_first_alert(clean: Clean) -> None:
    clean.install("axlog")
    for name, message in MESSAGES.items():
        (clean.place / name).write_text(message, encoding="utf-8")
    written = clean.run("axlog", "init", *MESSAGES)
    assert "orders: 2 messages, key oid, time placed" in written
    assert "next: axlog run pipeline.yaml --once" in written
    # What a plain install lacks is named with its command, not shown as a traceback.
    refused = clean.run("axlog", "run", "pipeline.yaml", "--once", code=2)
    assert "pip install 'axlog[pipeline]'" in refused
    assert "Traceback" not in refused
    clean.install("axlog[pipeline]")
    assert "Traceback" not in clean.run("axlog", "check", "pipeline.yaml")
    printed = clean.run("axlog", "run", "pipeline.yaml", "--once")
    changes = [json.loads(line) for line in printed.splitlines()]
    assert [(c["op"], c["row"]) for c in changes if c["view"] == "orders_without_shipments"] == [
        ("insert", {"oid": "17"}),
        ("insert", {"oid": "18"}),
        ("delete", {"oid": "17"}),
    ]
    joined = Path(clean.place / "out" / "orders_with_shipments.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["row"]["oid"] for line in joined.splitlines()] == ["17"]


def test_the_source_distribution_installs(wheels: Path, clean: Clean) -> None:
    """The wheel that is installed is made from it."""
    (source,) = wheels.glob("axlog-*.tar.gz")
    with tarfile.open(source) as made:
        names = {name.partition("/")[2] for name in made.getnames()}
    assert not any(name.startswith(("tests/", "lab/", "docs/")) for name in names)
    clean.install("axlog")
    assert clean.run("axlog", "query", "<a><b>1</b></a>", "//b/text()") == "1\n"
