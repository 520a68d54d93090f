"""`axlog backup STORE COPY` and `axlog restore COPY STORE`: a store at a point in time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from axlog.store.backup import copy_store

Place = Annotated[
    Path, typer.Argument(metavar="STORE", help="The directory of a store or a checkpoint.")
]
Copy = Annotated[Path, typer.Argument(metavar="COPY", help="The directory of the copy.")]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("backup", epilog="Example: axlog backup out/state copies/monday")(backup)


def backup(store: Place, copy: Copy) -> None:
    """Copy a store or a checkpoint at a point in time, also while it is in use.

    The copy has every update up to that point. `axlog restore` puts it back; `axlog verify` checks
    the copy of a store.
    """
    _report(copy_store(store, copy), copy)


def restore(copy: Copy, store: Place) -> None:
    """Put a copy back as a store or a checkpoint, into a directory that is new or empty.

    Stop the process that uses the old directory, and move that directory away first.
    """
    _report(copy_store(copy, store), store)


def _report(size: int, place: Path) -> None:
    typer.echo(f"{size:,} bytes in {place}")
