"""`axlog verify STORE`: recompute the views of a store and compare."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from axlog.live.verification import Verified
from axlog.live.verification import verify as verified
from axlog.store.files import DiskFiles


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("verify", epilog="Example: axlog verify /var/lib/orders")(verify)


def verify(
    store: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="The store's directory.")
    ],
) -> None:
    """Check a store: its files, then every view against its document.

    The first line describes the log: its last record, whether it was closed, and the unfinished end
    that a crash left, if any. Exit code 0 if everything is correct, 1 if a view is wrong or cannot
    be recomputed, 2 if a file is damaged or missing.
    """
    result = verified(DiskFiles(store))
    log: dict[str, object] = {"record": result.record, "closed": result.is_closed}
    if result.torn is not None:
        log["torn"] = result.torn.plain()
    typer.echo(json_text.dumps({"log": log}))
    for view in result.views:
        typer.echo(json_text.dumps(_plain(view), ensure_ascii=False))
    if not result.is_right:
        raise typer.Exit(1)


def _plain(result: Verified) -> dict[str, object]:
    fields: dict[str, object] = {"view": result.view, "rows": result.rows, "right": result.is_right}
    if result.reason is not None:
        fields["reason"] = result.reason
    for name in ("missing", "extra"):
        rows = getattr(result, name)
        if rows:
            fields[name] = [row.to_dict() for row in rows[:10]]
    return fields
