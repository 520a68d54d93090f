"""`python -m lab generate`: random documents, patterns and active documents with their updates."""

from __future__ import annotations

from typing import Annotated

import typer

from axlog.cli.generate import Into, Out, Seed, Share, write, write_files
from lab.generators import active, random_documents, random_patterns

generate = typer.Typer(
    name="generate",
    help="Write random documents, patterns and update streams. The same seed gives the same "
    "output.",
    no_args_is_help=True,
    epilog="Example: python -m lab generate workload --into random --updates 1000",
)


def register(app: typer.Typer) -> None:
    """Add the verb and its subcommands."""
    app.add_typer(generate)


Labels = Annotated[int, typer.Option(help="Number of different labels.", min=1)]


@generate.command()
def document(
    size: Annotated[int, typer.Argument(help="Number of elements.", min=1)] = 1000,
    depth: Annotated[int, typer.Option(help="Greatest depth.", min=1)] = 8,
    fanout: Annotated[
        int, typer.Option(help="Maximum number of children of an element.", min=1)
    ] = 10,
    labels: Labels = 20,
    text: Annotated[float, Share] = 0.5,
    attributes: Annotated[float, Share] = 0.1,
    mixed: Annotated[float, Share] = 0.0,
    values: Annotated[int, typer.Option(help="Different texts.", min=1)] = 100,
    calls: Annotated[int, typer.Option(help="Calls in the document.", min=0)] = 0,
    seed: Seed = 0,
    out: Out = None,
) -> None:
    """Write a random document."""
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
    """Write a random tree pattern in the native text."""
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
def workload(
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
    """Write an active document, a pattern it can satisfy, and updates for its calls."""
    made = active.workload(
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
    write_files(into, made.chunks(), {"pattern.axlog": made.pattern}, stream)
