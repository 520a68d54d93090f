"""Every benchmark runs in a tiny form; its result has its shape, and both sides the same answers.

No test asserts a time.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import time
from typing import Any

import pytest
from lxml.etree import fromstring

from axlog.document.loader import load
from axlog.document.serializer import serialise
from axlog.errors import WorkloadError
from axlog.evaluate.answers import answers
from axlog.live.document import Document
from axlog.query.query import parse_query
from lab.benchmarks import spark_streams
from lab.benchmarks.flatness import orders_of
from lab.benchmarks.measuring import Parts, Result, interleave
from lab.benchmarks.messages import plain, same_answers
from lab.benchmarks.million import million
from lab.benchmarks.running import BENCHMARKS, chosen, run, written
from lab.benchmarks.spark_process import perform
from lab.benchmarks.tods import pairs_of
from lab.benchmarks.tods_page import page, table
from lab.benchmarks.tods_pairs import Run, document, statement_of
from lab.cli.bench import draw, lines
from lab.generators import active
from lab.generators.appendix import UPDATES
from lab.generators.appendix_views import VIEWS
from lab.laws.algebra_law import Watcher
from lab.reference import rows as reference_rows

pytestmark = pytest.mark.system

APART = {"pathway", "spark", "spark-cluster", "spark-documents"}
"""Run by tests of their own: they start other systems."""


@cache
def tiny(name: str) -> Result:
    (result,) = run([name], "tiny")
    return result


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in APART])
def test_benchmark_runs_and_says_both_sides(name: str, conformance: Callable[[str], Path]) -> None:
    if name == "xmark":
        conformance("xmark-xpathmark/xmark-queries")
    result = tiny(name)
    assert result.name == name
    assert result.sizes
    assert result.figures
    assert all(value >= 0 for value in result.figures.values())
    for ratio in result.ratios:
        for side in ratio.sides.split(" / "):
            assert result.figures[f"{ratio.what}: {side}, us (least)"] > 0
    json.dumps(written([result]))
    assert lines(result)[1].startswith(name)


@pytest.mark.spark
def test_differential_benchmark_on_spark_and_the_join_find_the_same_rows(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the session of the tests; the benchmark of documents starts its own."""

    def here(task: dict[str, Any]) -> dict[str, Any]:
        return perform(spark, {**task, "started": time()})

    monkeypatch.setattr(spark_streams, "apart", here)
    (result,) = run(["spark"], "tiny")
    for side in ("axlog", "axlog over DataFrames", "join"):
        assert result.figures[f"batches of 40, 2 cores: {side}, messages/s"] > 0
    assert result.remarks == []


@pytest.mark.spark
def test_benchmark_of_documents_on_spark_says_both_sides() -> None:
    (result,) = run(["spark-documents"], "tiny")
    assert result.figures["one document, factor 0.001: Spark shred to Parquet, s"] > 0
    assert [ratio.what for ratio in result.ratios] == [
        "Q1, one document, factor 0.001",
        "Q1, 3 files of 1 MB",
    ]
    assert result.remarks == []  # both sides have as many rows


def test_differential_axlog_and_pathway_name_the_same_late_orders() -> None:
    (result,) = run(["pathway"], "tiny")
    if find_spec("pathway") is None:
        assert "not installed" in str(result.skipped)
        return
    assert result.figures["late orders"] > 0
    assert result.remarks == ["both name the same late orders"]


def test_differential_all_ways_of_keeping_give_the_same_rows() -> None:
    assert same_answers(3000)


def test_oracle_maintained_rows_are_the_evaluated_ones() -> None:
    """What `reevaluation` compares the times of has the same answers."""
    made = active.workload(document_size=400, seed=1)
    doc = Document(made.document, views={"view": made.pattern})
    for stream, message, at in plain(active.updates(made, 150)):
        doc.feed(stream, message, at=at)
    pattern = parse_query(made.pattern).pattern
    wanted = sorted(answers(load(doc.xml()), pattern).items())
    assert wanted
    assert sorted((row.values_, row.count) for row in doc.view("view").rows()) == wanted


def test_deletions_that_flatness_measures_take_one_row_each() -> None:
    document = orders_of(20)
    assert len(document.views["ids"]) == 20
    assert len(document.update("delete node /orders/order[oid = 'o7']")) == 1


def test_interleaving_gives_every_side_all_items_in_every_round() -> None:
    seen: dict[str, list[list[int]]] = {"one": [], "other": []}

    def making(name: str):
        def make():
            seen[name].append([])
            return lambda chunk: seen[name][-1].extend(chunk)

        return make

    costs = interleave({name: making(name) for name in seen}, list(range(7)), 3, 4)
    assert seen["one"] == seen["other"] == [list(range(7))] * 4
    assert all(0 <= cost.least <= cost.median for cost in costs.values())


def test_long_run_has_a_figure_for_every_slice(tmp_path: Path) -> None:
    result = million(400, 4)
    assert {len(points) for plot in result.plots for points in plot.lines.values()} == {4}
    draw([result], tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_without_names_all_benchmarks_are_meant_and_unknown_ones_refused() -> None:
    assert chosen([]) == list(BENCHMARKS)
    with pytest.raises(WorkloadError) as caught:
        chosen(["speed"])
    assert caught.value.code == "AX601"


def test_skipped_benchmark_says_why() -> None:
    said = lines(Result("pathway", "against Pathway", skipped="pathway is not installed"))
    assert "skipped: pathway is not installed" in said[-1]


def test_the_figures_and_the_table_of_p5_are_made(tmp_path: Path) -> None:
    result = tiny("tods")
    titles = " ".join(plot.title for plot in result.plots)
    for figure in range(18, 36):
        assert f"Fig. {figure}" in titles
    assert len(result.pairs) == 3 * 2 * 7  # updates, kinds, views
    assert all(pair["incremental"] > 0 for pair in result.pairs)
    assert all(pair["told"] > 0 for pair in result.pairs)
    assert any(plot.title.startswith("Snowcaps chosen by cost") for plot in result.plots)
    assert table(result.pairs).count("\n") == 2 + len(result.pairs) - 1
    assert table(result.pairs) in page(result.pairs)
    assert any(name.startswith("one target") for name in result.figures)
    draw([replace(result, plots=result.plots[:2])], tmp_path / "figures.png")
    assert (tmp_path / "figures.png").stat().st_size > 0


def test_a_long_benchmark_goes_on_from_what_was_noted(tmp_path: Path) -> None:
    path = tmp_path / "parts.jsonl"
    first = pairs_of(0.02, ("X1_L",), ("Q1", "Q2"), Parts(path))
    noted = path.read_text(encoding="utf-8")
    assert noted.count("\n") == 2
    assert pairs_of(0.02, ("X1_L",), ("Q1", "Q2"), Parts(path)) == first
    assert path.read_text(encoding="utf-8") == noted
    more = pairs_of(0.02, ("X1_L", "A6_A"), ("Q1", "Q2"), Parts(path))
    assert more[: len(first)] == first
    assert len(more) == 2 * len(first)


@pytest.mark.parametrize("kind", ["insert", "delete"])
def test_differential_appendix_views_are_kept_as_they_are_evaluated(kind: str) -> None:
    """Every appendix update on every appendix view, on a small document; lxml counts the same."""
    text = document(0.05)
    for update in UPDATES.values():
        done = Run(text, VIEWS)
        done.update(statement_of(update, kind))
        root = fromstring(serialise(done.tree).encode())
        for name, view in done.views.items():
            evaluated = reference_rows(done.tree, view.pattern)
            wanted = Counter((row.values, row.count) for row in evaluated.values())
            assert Watcher(view).rows() == wanted, (update.name, name)
            nodes: Any = root.xpath(VIEWS[name].xpath)
            assert len(nodes) == len(evaluated), (update.name, name)
