"""`python -m lab soak`: a server with well-behaved and hostile principals at once."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from axlog.cli import options
from axlog.cli.output import is_json


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("soak", epilog="Example: python -m lab soak --minutes 10")(soak)


def soak(
    minutes: Annotated[
        float, typer.Option(help="Duration of both phases together in minutes.", min=0.05)
    ] = 1.0,
    rate: Annotated[float, typer.Option(help="Well-behaved requests per second.", min=1.0)] = 40.0,
    slow_clients: Annotated[
        int, typer.Option(help="Connections that never send a request.", min=0)
    ] = 1100,
    json: options.Json = None,
) -> None:
    """Serve 50 principals on loopback: first the well-behaved alone, then beside hostile ones.

    Prints the latencies of well-behaved requests, and the memory, file descriptors and threads of
    the server, for each phase. Exit code 1 if a well-behaved request failed, an unauthorized
    request succeeded, or the server had an internal error.
    """
    from lab.stress.soak import Sizes, run_soak

    console = Console(stderr=True)
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        show = live.update if console.is_terminal else None
        report = run_soak(60 * minutes, Sizes(rate=rate, slow_clients=slow_clients), show)
    said = report.plain()
    if is_json(json):
        typer.echo(json_text.dumps(said))
    else:
        Console().print(_table(said))
    for fault in report.faults:
        typer.echo(f"axlog: {fault}", err=True)
    if report.faults:
        raise typer.Exit(1)


def _table(said: dict[str, Any]) -> Table:
    table = Table("phase", "p50", "p99", "max ms", "memory MB", "files", "threads")
    for phase in said["phases"]:
        latency = phase["latency ms"]
        uses = [
            " to ".join(str(phase[when][what]) for when in ("start", "half", "end"))
            for what in ("memory MB", "files", "threads")
        ]
        table.add_row(phase["phase"], *(str(latency[k]) for k in ("p50", "p99", "max")), *uses)
    attacks = sum(said["attacks"].values())
    table.caption = (
        f"{attacks:,} attacks, {said['views set aside']} greedy views set aside;"
        f" p99 beside them {said['p99 ratio']} times that of the quiet phase"
    )
    return table
