"""`axlog generate`: write sample documents and update streams to files or to standard output.

Output is seeded and streamed. Updates are JSON lines, as `axlog maintain` reads them. `orders`
writes several files to a directory and prints the command that uses them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import FileSizeColumn, Progress, SpinnerColumn, TimeElapsedColumn

from axlog.reporting import counted
from axlog.samples import orders
from axlog.samples import supply_chain as supply_chains
from axlog.samples.auction import auction as auction_text

generate = typer.Typer(
    name="generate",
    help="Write sample documents and update streams. The same seed gives the same output.",
    no_args_is_help=True,
    epilog="Example: axlog generate orders --into monitor --count 1000",
)


def register(app: typer.Typer) -> None:
    """Add the verb and its subcommands."""
    app.add_typer(generate, rich_help_panel="Documents")


Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Output file (default: standard output).")
]
Into = Annotated[
    Path, typer.Option("--into", "-d", help="Directory for the files; created if missing.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same output.")]
Share = typer.Option(min=0.0, max=1.0)


def write(chunks: Iterable[str], out: Path | None) -> None:
    """Write the pieces one by one, without collecting them."""
    if out is None:
        sys.stdout.writelines(chunks)
        return
    console = Console(stderr=True)
    columns = (SpinnerColumn(), "{task.description}", FileSizeColumn(), TimeElapsedColumn())
    with (
        out.open("w", encoding="utf-8") as file,
        Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress,
    ):
        task = progress.add_task(f"writing {out.name}", total=None)
        for chunk in chunks:
            file.write(chunk)
            progress.advance(task, len(chunk))


def lines(updates: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Updates as JSON lines."""
    return (json.dumps(update) + "\n" for update in updates)


@generate.command()
def auction(
    factor: Annotated[
        float, typer.Argument(help="Size: 1 is XMark's 115 MB, 0.1 a tenth of it.")
    ] = 0.1,
    seed: Seed = 0,
    out: Out = None,
) -> None:
    """Write an auction document that follows the XMark DTD."""
    write(auction_text(factor, seed), out)


@generate.command("orders")
def order_monitor(
    into: Into,
    count: Annotated[int, typer.Option(help="Number of messages.", min=0)] = 1000,
    rate: Annotated[float, typer.Option(help="Orders a second.")] = 0.02,
    late_share: Annotated[float, Share] = 0.3,
    ship_share: Annotated[float, Share] = 0.9,
    wanted_share: Annotated[float, Share] = 0.5,
    keyed: Annotated[bool, typer.Option(help="Use each oid once per stream.")] = True,
    seed: Seed = 0,
) -> None:
    """Write the order monitor: its document, its two queries and its messages."""
    stream = orders.messages(count, seed, rate, late_share, ship_share, wanted_share, keyed)
    queries = {"late.axlog": orders.LATE, "on-time.axlog": orders.ON_TIME}
    write_files(into, [orders.DOCUMENT], queries, stream)


@generate.command("supply-chain")
def supply_chain(
    into: Into,
    orders: Annotated[int, typer.Option(help="Number of orders.", min=0)] = 200,
    faults: Annotated[float, Share] = 0.1,
    seed: Seed = 0,
) -> None:
    """Write the supply chain: its pipeline file, and the documents that its partners publish."""
    made = supply_chains.write(into, orders=orders, seed=seed, faults=faults)
    typer.echo(f"{counted(made, 'document')}; axlog run {into / 'supply-chain.yaml'}")


def write_files(
    into: Path,
    document: Iterable[str],
    queries: Mapping[str, str],
    updates: Iterable[Mapping[str, object]],
) -> None:
    """Write a document, its queries and its updates, and print the command that runs them."""
    into.mkdir(parents=True, exist_ok=True)
    write(document, into / "document.xml")
    for name, query in queries.items():
        write([query, "\n"], into / name)
    write(lines(updates), into / "updates.jsonl")
    first = into / next(iter(queries))
    typer.echo(f'axlog maintain {into / "document.xml"} "$(cat {first})" {into / "updates.jsonl"}')
