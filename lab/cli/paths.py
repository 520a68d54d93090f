"""`python -m lab paths`: count the functions, modules and hand-overs of the data paths."""

from __future__ import annotations

import typer

from lab.data_paths import DataPath, feed_path, update_path


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("paths", epilog="Example: python -m lab paths")(paths)


def paths() -> None:
    """Trace one message and one statement, and print every call from one package into another."""
    _print("feed", feed_path())
    _print("update", update_path())


def _print(name: str, path: DataPath) -> None:
    typer.echo(
        f"{name}: {path.functions} functions in {path.modules} modules,"
        f" {len(path.hand_overs)} hand-overs"
    )
    for above, below, function in path.hand_overs:
        typer.echo(f"  {above} -> {below}: {function}")
