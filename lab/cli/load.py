"""`python -m lab load`: a sustained load on one process, with slow sinks and many views."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from axlog.cli import options
from axlog.cli.output import is_json
from axlog.live.store import Sync
from lab.benchmarks.measuring import Plot, Result
from lab.cli.bench import draw
from lab.stress.load import LoadReport, Moment, Sizes, run_load


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("load", epilog="Example: python -m lab load --minutes 10 --plot load.png")(load)


def load(
    minutes: Annotated[float, typer.Option(help="Duration of feeding in minutes.", min=0.01)] = 1.0,
    views: Annotated[int, typer.Option(help="Views over the document.", min=1)] = 40,
    publishers: Annotated[int, typer.Option(help="Of them published.", min=1)] = 8,
    sync: Annotated[Sync, typer.Option(help="The log's policy: always, batch or off.")] = "batch",
    directory: Annotated[
        Path | None, typer.Option(help="Directory of the store (default: a temporary one).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the report to this file, as JSON.")] = (
        None
    ),
    plot: Annotated[Path | None, typer.Option(help="Plot the run to this file (PNG, SVG).")] = None,
    json: options.Json = None,
) -> None:
    """Feed a durable document as fast as it accepts updates; one sink slows down half way.

    Prints rates, latencies and memory of each phase. Exit code 1 if sinks and views disagree at the
    end, the store does not verify, or an outbox exceeded its bound.
    """
    sizes = Sizes(views=views, publishers=min(publishers, views), sync=sync)
    console = Console(stderr=True)
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        show = (lambda moment: live.update(_now(moment))) if console.is_terminal else None
        report = run_load(60 * minutes, sizes, directory, show)
    if out is not None:
        out.write_text(json_text.dumps(report.plain(), indent=1) + "\n", encoding="utf-8")
    if plot is not None:
        draw([_result(report)], plot)
    if is_json(json):
        said = report.plain()
        del said["moments"]
        typer.echo(json_text.dumps(said))
    else:
        Console().print(_table(report))
    for fault in report.faults:
        typer.echo(f"axlog: {fault}", err=True)
    if report.faults:
        raise typer.Exit(1)


def _now(moment: Moment) -> str:
    return (
        f"{moment.phase}: {moment.updates:,} updates in {moment.seconds:.0f} s,"
        f" {moment.memory / 1e6:.0f} MB, {moment.waiting:,} changes wait, {moment.nodes:,} nodes"
    )


def _table(report: LoadReport) -> Table:
    heads = ("phase", "updates/s", "acknowledged p50", "p99", "p99.9", "max ms", "delivered p50",
             "p99 ms", "largest outbox", "memory MB")  # fmt: skip
    table = Table(*heads, title=f"{report.sizes.views} views, {report.sizes.publishers} publishers")
    for phase in report.phases:
        said = phase.plain()
        taken, brought = said["acknowledged ms"], said["delivered ms"]
        table.add_row(
            phase.name, f"{said['updates a second']:,}", *(str(taken[k]) for k in _SHOWN),
            str(brought["p50"]), str(brought["p99"]), f"{said['largest outbox']:,}",
            " to ".join(map(str, said["memory MB"])),
        )  # fmt: skip
    table.caption = (
        f"{report.snapshots} snapshots, the longest in {report.longest_snapshot:.1f} s, stopping"
        f" maintenance for {1000 * report.longest_pause:.1f} ms at most"
    )
    return table


_SHOWN = ("p50", "p99", "p99.9", "max")


def _result(report: LoadReport) -> Result:
    """Plot memory, waiting changes and the rate over time."""
    moments = report.moments
    rates = [
        (later.seconds, (later.updates - earlier.updates) / (later.seconds - earlier.seconds))
        for earlier, later in zip(moments, moments[5:], strict=False)
        if later.seconds > earlier.seconds
    ]
    lines: dict[str, tuple[str, list[tuple[float, float]]]] = {
        "memory in use": ("MB", [(m.seconds, m.memory / 1e6) for m in moments]),
        "updates accepted": ("a second", rates),
        "changes in the fullest outbox": ("changes", [(m.seconds, m.waiting) for m in moments]),
        "files of the store": ("MB", [(m.seconds, m.disk / 1e6) for m in moments]),
    }
    plots = [
        Plot(title, "seconds", unit, {title: points}) for title, (unit, points) in lines.items()
    ]
    return Result("load", "a sustained load", plots=plots)
