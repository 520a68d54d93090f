"""`python -m lab grammar`: compute the parse tables of the native grammar and write their file."""

from __future__ import annotations

from pathlib import Path

import typer

import axlog
from axlog.query.grammar_tables import dump
from axlog.query.native_parser import GRAMMAR


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("grammar", epilog="Example: python -m lab grammar")(grammar)


def grammar() -> None:
    """Write the parse tables that axlog loads, after a change of the grammar or of lark."""
    path = Path(axlog.__file__).parent / "query" / GRAMMAR.tables.name
    path.write_text(dump(GRAMMAR.source), encoding="utf-8")
    typer.echo(path)
