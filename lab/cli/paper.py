"""`python -m lab paper P3|P5`: run all experiments of a paper and draw its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lab.benchmarks.running import run, written
from lab.cli.bench import draw, lines

PAPERS = {"P3": ("axlog", "magic"), "P5": ("tods", "choice")}
"""The benchmarks that repeat the experiments of a paper."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("paper", epilog="Example: python -m lab paper P3 --into figures")(paper)


def paper(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(PAPERS)}.")],
    full: Annotated[bool, typer.Option("--full", help="The sizes of the paper (slow).")] = False,
    into: Annotated[Path, typer.Option(help="Directory for the picture and the figures.")] = Path(
        "docs/figures"
    ),
    resume: Annotated[
        Path | None, typer.Option(help="Record finished parts in this file, and resume from it.")
    ] = None,
) -> None:
    """Run the experiments of a paper; writes NAME.png and NAME.json."""
    if name not in PAPERS:
        raise typer.BadParameter(f"one of {', '.join(PAPERS)}", param_hint="NAME")
    results = []
    for result in run(PAPERS[name], "full" if full else "quick", resume):
        results.append(result)
        typer.echo("\n".join(lines(result)))
    into.mkdir(parents=True, exist_ok=True)
    draw(results, into / f"{name.lower()}.png")
    figures = json.dumps(written(results), indent=1) + "\n"
    (into / f"{name.lower()}.json").write_text(figures, encoding="utf-8")
