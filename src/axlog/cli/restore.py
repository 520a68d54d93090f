"""`axlog restore COPY STORE`: see `backup.py`."""

from __future__ import annotations

import typer

from axlog.cli.backup import restore


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("restore", epilog="Example: axlog restore copies/monday out/state")(restore)
