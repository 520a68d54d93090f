"""`axlog rescale PIPELINE`: change the state partitions of a stopped pipeline on Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from axlog.cli.check import missing
from axlog.cli.run import spark_engine


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("rescale", epilog="Example: axlog rescale pipeline.yaml --partitions 16")(rescale)


def rescale(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline file.")],
    partitions: Annotated[
        int, typer.Option(help="The new number of state partitions, at most one per bucket.", min=1)
    ],
    master: Annotated[
        str | None, typer.Option(help="The cluster that moves the state (default: the file's).")
    ] = None,
) -> None:
    """Change the number of state partitions of a stopped pipeline on Spark.

    The pipeline continues from its checkpoint with the new number. Exit code 2 if it has no
    checkpoint, if its last batch is not finished, or if it has fewer buckets.
    """
    try:
        from axlog.pipeline.loader import load
    except ImportError as error:
        raise missing(error) from None
    model = load(pipeline)
    before = spark_engine().rescale_pipeline(model, partitions, master)
    for document, number in before.items():
        typer.echo(f"{document}: {number} -> {partitions} partitions")
    stated = model.settings.partitions
    if stated is not None and stated != partitions:
        typer.echo(f"now change `partitions: {stated}` in {pipeline} to {partitions}")
