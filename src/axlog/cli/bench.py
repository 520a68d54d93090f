"""`axlog bench`: run benchmarks, print both sides of every ratio, write JSON, draw long runs."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from axlog.errors import SetupError
from axlog.workloads.benchmarks.measuring import Result
from axlog.workloads.benchmarks.running import FULL, QUICK, chosen, run, versions, written


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("bench", epilog="Example: axlog bench message flat --json results.json")(bench)


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {', '.join(QUICK)}; all without any.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="At the goals' sizes; slow.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the results to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw what runs over time (million).")] = None,
) -> None:
    """Run benchmarks; each prints both sides of its ratio, measured in turns in one run."""
    wanted = chosen(names or ())
    typer.echo(", ".join(f"{name} {number}" for name, number in versions().items()))
    results = []
    for result in run(wanted, FULL if full else QUICK):
        results.append(result)
        typer.echo("\n".join(lines(result)))
    if json is not None:
        json.write_text(json_text.dumps(written(results), indent=1) + "\n", encoding="utf-8")
    if plot is not None:
        draw(results, plot)


def lines(result: Result) -> list[str]:
    """A result for people."""
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
    """Draw every series of the results, one under the other."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SetupError(
            "AX901", "matplotlib is not installed", advice="pip install 'axlog[bench]'"
        ) from None
    series = [(r, name, values) for r in results for name, values in r.series.items()]
    figure = Figure(figsize=(7, 2.5 * max(1, len(series))), layout="constrained")
    for at, (result, name, values) in enumerate(series):
        axes = figure.add_subplot(len(series), 1, at + 1)
        axes.plot(range(1, len(values) + 1), values, marker="o")
        axes.set(title=f"{result.name}: {name}", xlabel="slice", ylim=(0, 1.2 * max(values)))
    figure.savefig(path)
