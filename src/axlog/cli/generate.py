"""`axlog generate`: write documents, patterns and update streams to files or to standard output.

Everything is seeded and streamed. Updates are JSON lines, as `axlog maintain` reads them. A pattern
goes out as one line; `widget` and `orders` write several files into a directory, named so that the
line printed at the end can be pasted.
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

from axlog.workloads import active, orders, random_documents, random_patterns
from axlog.workloads import supply_chain as supply_chains
from axlog.workloads.auction import auction as auction_text

generate = typer.Typer(
    name="generate",
    help="Write generated documents, patterns and update streams; one seed, one output.",
    no_args_is_help=True,
    epilog="Example: axlog generate orders --into monitor --count 1000",
)


def register(app: typer.Typer) -> None:
    """Add the verb and its own verbs."""
    app.add_typer(generate)


Out = Annotated[Path | None, typer.Option("--out", "-o", help="File; standard output without it.")]
Into = Annotated[
    Path, typer.Option("--into", "-d", help="Directory for the files; made if missing.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same output.")]
Labels = Annotated[int, typer.Option(help="How many different labels.", min=1)]
Share = typer.Option(min=0.0, max=1.0)


def write(chunks: Iterable[str], out: Path | None) -> None:
    """Write the pieces one after the other, keeping none."""
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
    factor: Annotated[float, typer.Argument(help="1 is XMark's 115 MB, 0.1 a tenth of it.")] = 0.1,
    seed: Seed = 0,
    out: Out = None,
) -> None:
    """An auction document after the XMark DTD."""
    write(auction_text(factor, seed), out)


@generate.command()
def document(
    size: Annotated[int, typer.Argument(help="Number of elements.", min=1)] = 1000,
    depth: Annotated[int, typer.Option(help="Greatest depth.", min=1)] = 8,
    fanout: Annotated[int, typer.Option(help="Most children of an element.", min=1)] = 10,
    labels: Labels = 20,
    text: Annotated[float, Share] = 0.5,
    attributes: Annotated[float, Share] = 0.1,
    mixed: Annotated[float, Share] = 0.0,
    values: Annotated[int, typer.Option(help="Different texts.", min=1)] = 100,
    calls: Annotated[int, typer.Option(help="Calls in the document.", min=0)] = 0,
    seed: Seed = 0,
    out: Out = None,
) -> None:
    """A random document."""
    chunks = random_documents.document(
        size, depth, fanout, labels, seed, text, attributes, values, mixed, calls
    )
    write(chunks, out)


@generate.command()
def pattern(
    size: Annotated[int, typer.Argument(help="Number of nodes.", min=1)] = 10,
    descendants: Annotated[int, typer.Option(help="// edges.", min=0)] = 2,
    joins: Annotated[int, typer.Option(help="Value joins.", min=0)] = 1,
    paths: Annotated[int, typer.Option(help="Leaves.", min=1)] = 5,
    outputs: Annotated[int, typer.Option(help="Variables returned.", min=0)] = 1,
    ids: Annotated[int, typer.Option(help="Ids returned.", min=0)] = 0,
    constants: Annotated[int, typer.Option(help="Leaves that test a text.", min=0)] = 0,
    times: Annotated[int, typer.Option(help="Time constraints.", min=0)] = 0,
    labels: Labels = 20,
    seed: Seed = 0,
    out: Out = None,
) -> None:
    """A random tree pattern in the native text."""
    text = random_patterns.pattern(
        size,
        descendants,
        joins,
        paths,
        labels,
        seed,
        outputs=outputs,
        constants=constants,
        times=times,
        ids=ids,
    )
    write([text, "\n"], out)


@generate.command()
def widget(
    into: Into,
    document_size: Annotated[int, typer.Option(help="Elements.", min=1)] = 5000,
    pattern_size: Annotated[int, typer.Option(help="Pattern nodes.", min=1)] = 10,
    descendants: Annotated[int, typer.Option(help="// edges.", min=0)] = 2,
    joins: Annotated[int, typer.Option(help="Value joins.", min=0)] = 1,
    paths: Annotated[int, typer.Option(help="Leaves.", min=1)] = 5,
    calls: Annotated[int, typer.Option(help="Calls, one stream each.", min=1)] = 10,
    values: Annotated[int, typer.Option(help="Values of a variable.", min=1)] = 50,
    updates: Annotated[int, typer.Option(help="Number of updates.", min=0)] = 250,
    pertinence: Annotated[float, Share] = 0.7,
    message_size: Annotated[int, typer.Option(help="Elements of a message.", min=1)] = 20,
    deletions: Annotated[float, Share] = 0.0,
    seed: Seed = 0,
) -> None:
    """An active document, a pattern it can satisfy, and updates for its calls (P3 section 5.4)."""
    made = active.widget(
        document_size,
        pattern_size,
        descendants,
        joins,
        paths,
        calls,
        seed,
        values=values,
        deletes=deletions > 0,
    )
    stream = active.updates(made, updates, pertinence, message_size, seed, deletions)
    _write_widget(into, made.chunks(), {"pattern.axlog": made.pattern}, stream)


@generate.command("orders")
def order_monitor(
    into: Into,
    count: Annotated[int, typer.Option(help="Number of messages.", min=0)] = 1000,
    rate: Annotated[float, typer.Option(help="Orders a second.")] = 0.02,
    late_share: Annotated[float, Share] = 0.3,
    ship_share: Annotated[float, Share] = 0.9,
    wanted_share: Annotated[float, Share] = 0.5,
    keyed: Annotated[bool, typer.Option(help="Every oid once a stream.")] = True,
    seed: Seed = 0,
) -> None:
    """The order monitor: its document, its two queries, its messages."""
    stream = orders.messages(count, seed, rate, late_share, ship_share, wanted_share, keyed)
    queries = {"late.axlog": orders.LATE, "on-time.axlog": orders.ON_TIME}
    _write_widget(into, [orders.DOCUMENT], queries, stream)


@generate.command("supply-chain")
def supply_chain(
    into: Into,
    orders: Annotated[int, typer.Option(help="Number of orders.", min=0)] = 200,
    faults: Annotated[float, Share] = 0.1,
    seed: Seed = 0,
) -> None:
    """The supply chain: its pipeline file, and the documents that its partners publish."""
    made = supply_chains.write(into, orders=orders, seed=seed, faults=faults)
    typer.echo(f"{made} documents; axlog run {into / 'supply-chain.yaml'}")


def _write_widget(
    into: Path,
    document: Iterable[str],
    queries: Mapping[str, str],
    updates: Iterable[Mapping[str, object]],
) -> None:
    """The files of a widget, and the command that runs it."""
    into.mkdir(parents=True, exist_ok=True)
    write(document, into / "document.xml")
    for name, query in queries.items():
        write([query, "\n"], into / name)
    write(lines(updates), into / "updates.jsonl")
    first = into / next(iter(queries))
    typer.echo(f'axlog maintain {into / "document.xml"} "$(cat {first})" {into / "updates.jsonl"}')
