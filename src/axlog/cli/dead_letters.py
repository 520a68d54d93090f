"""`axlog dead-letters PIPELINE`: list rejected messages, show one, correct and replay it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from axlog.cli import options
from axlog.cli.check import missing
from axlog.cli.output import Lines, is_json
from axlog.reporting import counted


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("dead-letters", epilog="Example: axlog dead-letters pipeline.yaml --replay 3")(
        dead_letters
    )


def dead_letters(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline file.")],
    show: Annotated[
        int | None, typer.Option(metavar="N", help="Print the message of one dead letter.")
    ] = None,
    replay: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="Put a message back at its source; repeatable."),
    ] = None,
    corrected: Annotated[
        str | None,
        typer.Option(
            "--with", metavar="FILE", help="The corrected message to replay; - for stdin."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List those that were replayed, too.")
    ] = False,
    json: options.Json = None,
) -> None:
    """List the rejected messages of a pipeline; show one, or put it back, corrected.

    The pipeline keeps them with `dead_letters: {kind: jsonl, path: ...}`. A replayed message is
    written to the directory or file that the source of its stream reads.
    """
    try:
        from axlog.pipeline.loader import load
        from axlog.runtime.dead_letter_file import DeadLetterFile
    except ImportError as error:
        raise missing(error) from None
    letters = DeadLetterFile(load(pipeline))
    if show is not None:
        typer.echo(letters.letter(show).content)
        return
    if replay:
        if corrected is not None and len(replay) > 1:
            raise typer.BadParameter("--with is for one message", param_hint="--with")
        content = None
        if corrected is not None:
            stdin = corrected == "-"
            content = sys.stdin.read() if stdin else Path(corrected).read_text(encoding="utf-8")
        for number in replay:
            typer.echo(f"replayed {number}: {letters.replay(number, content)}")
        return
    found = [letter for letter in letters.letters() if every or not letter.is_replayed]
    if is_json(json):
        lines = Lines()
        for letter in found:
            lines.thing(letter.plain())
        return
    console = Console(highlight=False)
    table = Table("number", "stream", "origin", "error")
    for letter in found:
        cells = (str(letter.number), letter.stream, letter.origin, letter.error.splitlines()[0])
        table.add_row(*(Text(cell) for cell in cells))
    if found:
        console.print(table)
    console.print(counted(len(found), "dead letter"), style="dim")
