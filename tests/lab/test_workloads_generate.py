"""`axlog generate` and `python -m lab generate` write what the generators give."""

import json

import pytest
from lxml import etree
from typer.testing import CliRunner

from axlog.cli.generate import generate as samples
from axlog.samples import orders
from axlog.samples.auction import auction
from lab.cli.generate import generate as generators
from lab.generators import active
from lab.generators.random_documents import document
from lab.generators.random_patterns import pattern


def run(*arguments: object) -> str:
    words = [str(each) for each in arguments]
    app = samples if words[0] in ("auction", "orders") else generators
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_auction_to_a_file(tmp_path):
    out = tmp_path / "auction.xml"
    assert run("auction", "0.001", "--seed", 3, "--out", out) == ""
    assert out.read_text() == "".join(auction(0.001, 3))


def test_document_to_standard_output():
    assert run("document", 50, "--seed", 2, "--calls", 2) == "".join(document(50, seed=2, calls=2))


def test_pattern_is_one_line():
    assert run("pattern", 12, "--joins", 2, "--times", 1) == pattern(12, joins=2, times=1) + "\n"


def test_workload_writes_three_files(tmp_path):
    into = tmp_path / "new" / "workload"
    said = run("workload", "--into", into, "--document-size", 600, "--updates", 30, "--seed", 5)
    made = active.workload(600, seed=5)
    assert (into / "document.xml").read_text() == made.document
    assert (into / "pattern.axlog").read_text() == made.pattern + "\n"
    lines = (into / "updates.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(active.updates(made, 30, seed=5))
    assert said.startswith("axlog maintain ")


def test_workload_with_deletions_declares_them(tmp_path):
    run("workload", "--into", tmp_path, "--deletions", 0.3, "--updates", 40)
    assert 'deletes="yes"' in (tmp_path / "document.xml").read_text()
    assert '"delete"' in (tmp_path / "updates.jsonl").read_text()


def test_orders_write_both_queries(tmp_path):
    run("orders", "--into", tmp_path, "--count", 25, "--no-keyed")
    assert etree.parse(str(tmp_path / "document.xml")).getroot().tag == "management"
    assert (tmp_path / "late.axlog").read_text() == orders.LATE + "\n"
    assert (tmp_path / "on-time.axlog").read_text() == orders.ON_TIME + "\n"
    lines = (tmp_path / "updates.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(orders.messages(25, keyed=False))


@pytest.mark.parametrize("arguments", [["auction", "no"], ["document", "0"], ["workload"]])
def test_bad_usage_has_its_own_exit_code(arguments):
    assert CliRunner().invoke(generators, arguments).exit_code == 2
