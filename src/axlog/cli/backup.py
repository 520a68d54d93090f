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


Unchecked = Annotated[
    bool, typer.Option("--unchecked", help="Copy the files as they are, also if they are damaged.")
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("backup", epilog="Example: axlog backup out/state copies/monday")(backup)


def backup(store: Place, copy: Copy, unchecked: Unchecked = False) -> None:
    """Copy a store or a checkpoint at a point in time, also while it is in use.

    The copy has every update up to that point. Its checksums are compared: a damaged store is
    refused. `axlog restore` puts the copy back; `axlog verify` also recomputes the views of a
    store.
    """
    _report(copy_store(store, copy, check=not unchecked), copy)


def restore(copy: Copy, store: Place, unchecked: Unchecked = False) -> None:
    """Put a copy back as a store or a checkpoint, into a directory that is new or empty.

    Stop the process that uses the old directory, and move that directory away first.
    """
    _report(copy_store(copy, store, check=not unchecked), store)


def _report(size: int, place: Path) -> None:
    typer.echo(f"{size:,} bytes in {place}")
