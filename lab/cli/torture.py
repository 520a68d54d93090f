"""`python -m lab torture`: kill durable documents and pipelines on Spark, fail disks, and compare
with an undisturbed run.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from lab.stress.torture import by_killing, on_faulty_disk


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("torture", epilog="Example: python -m lab torture --rounds 1000 --kills 50")(
        torture
    )


def torture(
    rounds: Annotated[
        int, typer.Option(help="Runs on a simulated disk that loses, tears and fails writes.")
    ] = 50,
    kills: Annotated[int, typer.Option(help="Processes to kill with SIGKILL.")] = 10,
    spark: Annotated[
        int, typer.Option(help="Processes of pipelines on Spark to kill with SIGKILL.")
    ] = 0,
    start: Annotated[int, typer.Option(help="The first seed.")] = 0,
) -> None:
    """Run durable documents and pipelines through crashes; exit with 1 at the first difference.

    A run depends only on its seed: `--start SEED --rounds 1` repeats one.
    """
    crashes = 0
    killed: Counter[str] = Counter()
    on_spark: Counter[str] = Counter()
    try:
        with typer.progressbar(range(start, start + rounds), label="faulty disk") as seeds:
            for seed in seeds:
                crashes += on_faulty_disk(seed) - 1
        seed = start
        while killed.total() < kills:
            killed += by_killing(seed, kills=min(6, kills - killed.total()))
            seed += 1
            typer.echo(f"killed {killed.total()} of {kills}", err=True)
        seed = start
        while on_spark.total() < spark:
            from lab.stress import spark_kills

            new = spark_kills.on_spark(seed)
            on_spark += new
            typer.echo(f"spark, seed {seed}: {_listed(new)}; {on_spark.total()} in all", err=True)
            seed += 1
    except AssertionError as difference:
        typer.echo(f"axlog: {difference}", err=True)
        raise typer.Exit(1) from None
    inside = ", ".join(f"{number} inside {what}" for what, number in sorted(killed.items()))
    typer.echo(
        f"{rounds} runs on faulty disks, {crashes} crashes;"
        f" {killed.total()} processes killed ({inside or 'none'});"
        f" {on_spark.total()} on Spark ({_listed(on_spark) or 'none'}): ok"
    )


def _listed(killed: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in sorted(killed.items()))
