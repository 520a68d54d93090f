"""`axlog replay STORE`: write the changes in a store's log again."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from axlog.live.verification import history
from axlog.store.files import DiskFiles


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("replay", epilog="Example: axlog replay /var/lib/orders --until 1000")(replay)


def replay(
    store: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="The store's directory.")
    ],
    until: Annotated[int | None, typer.Option(help="Stop after this record.")] = None,
) -> None:
    """Write the changes of every update in a store's log again, one JSON object per line.

    The store is opened read-only. Updates before the last snapshot are available if the store was
    opened with retain=True.
    """
    for record, changes in history(DiskFiles(store), until):
        for change in changes:
            line = {"record": record, **change.to_dict()}
            typer.echo(json_text.dumps(line, ensure_ascii=False))
