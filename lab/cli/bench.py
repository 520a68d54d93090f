"""`python -m lab bench`: run benchmarks, print both sides of every ratio, write JSON, plot."""

from __future__ import annotations

import json as json_text
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from axlog.errors import SetupError, WorkloadError
from lab.benchmarks.measuring import Result
from lab.benchmarks.running import BENCHMARKS, chosen, run, versions, written
from lab.benchmarks.tods_page import page as page_of_pairs


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("bench", epilog="Example: python -m lab bench message flat --json results.json")(
        bench
    )


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"Any of {', '.join(BENCHMARKS)} (default: all)."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Use the sizes of the goals (slow).")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Write the results to this file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the results to this file (PNG, SVG, PDF).")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Record finished parts in this file, and resume from it"
            " (tods, xmark, spark, spark-documents)."
        ),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="Write all pairs of view and update, as Markdown (tods).")
    ] = None,
) -> None:
    """Run benchmarks; each prints both sides of its ratio, measured alternately in one run."""
    wanted = chosen(names or ())
    typer.echo(", ".join(f"{name} {number}" for name, number in versions().items()))
    results = []
    shows = sys.stderr.isatty() or resume is not None
    tell = partial(typer.echo, err=True) if shows else None
    for result in run(wanted, "full" if full else "quick", resume, tell):
        results.append(result)
        typer.echo("\n".join(lines(result)))
    if json is not None:
        json.write_text(json_text.dumps(written(results), indent=1) + "\n", encoding="utf-8")
    if table is not None:
        pairs = [pair for result in results for pair in result.pairs]
        table.write_text(page_of_pairs(pairs) + "\n", encoding="utf-8")
    if plot is not None:
        draw(results, plot)


def lines(result: Result) -> list[str]:
    """Format a result for people."""
    said = ["", f"{result.name}: {result.about}"]
    if result.skipped is not None:
        return [*said, f"  skipped: {result.skipped}"]
    said.append("  " + ", ".join(f"{name} {size}" for name, size in result.sizes.items()))
    said += [f"  {name}: {value:.2f}" for name, value in result.figures.items()]
    for ratio in result.ratios:
        goal = f", goal {ratio.goal}" if ratio.goal else ""
        said.append(
            f"  {ratio.what}: {ratio.sides} = {ratio.least:.2f} x (median {ratio.median:.2f}){goal}"
        )
    return said + [f"  ({remark})" for remark in result.remarks]


def draw(results: list[Result], path: Path) -> None:
    """Draw every plot of the results into one picture."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SetupError(
            "AX901", "matplotlib is not installed", advice="pip install 'axlog[bench]'"
        ) from None
    plots = [plot for result in results for plot in result.plots]
    if not plots:
        names = ", ".join(result.name for result in results)
        raise WorkloadError("AX601", f"there is nothing to plot in {names}")
    across = 1 if len(plots) < 4 else 2
    down = -(-len(plots) // across)
    figure = Figure(figsize=(7 * across, 3.2 * down), layout="constrained")
    for at, each in enumerate(plots):
        axes = figure.add_subplot(down, across, at + 1)
        for name, points in each.lines.items():
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
        axes.set(title=each.title, xlabel=each.x, ylabel=each.y)
        if each.log_x:
            axes.set_xscale("log")
        if each.log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        if len(each.lines) > 1:
            axes.legend(fontsize="small")
        if each.note:
            axes.annotate(
                each.note, (0.02, 0.96), xycoords="axes fraction", va="top", fontsize="x-small"
            )
    figure.savefig(path)
