"""`axlog explain QUERY [DOC]`: how a query is kept: its program, its maintainer, generated code."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from axlog.cli import options
from axlog.cli.output import Lines, is_json, source_of
from axlog.widgets.widget import Widget


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "explain", epilog="Example: axlog explain 'match //order[not(paid)]/oid/$x return $x'"
    )(explain)


def explain(
    text: options.QueryText,
    document: Annotated[
        str | None,
        typer.Argument(metavar="[DOC]", help="A document, for its streams and its size."),
    ] = None,
    code: Annotated[
        bool, typer.Option("--code", help="Show the code generated for the document's streams.")
    ] = False,
    namespace: options.Namespaces = None,
    language: options.Language = None,
    maintainer: options.MaintainerName = None,
    json: options.Json = None,
) -> None:
    """How a query is kept: its pattern, its datalog program, the maintainer and the reason."""
    if code and document is None:
        raise typer.BadParameter("--code needs DOC: code is made for its streams")
    widget = Widget(
        source_of(document) if document is not None else "<_/>",
        namespaces=options.namespaces_of(namespace),
    )
    view = widget.watch(text, language=language, maintainer=maintainer)
    explained = view.explain()
    about = _about(widget, len(view)) if document is not None else {}
    sources = {name: widget.code(name) for name in widget.streams()} if code else {}
    if is_json(json):
        Lines().thing({**asdict(explained), **about, **({"code": sources} if code else {})})
        return
    typer.echo(str(explained))
    for key, value in about.items():
        typer.echo(f"{key:<11} {', '.join(value) if isinstance(value, list) else value}")
    for name, source in sources.items():
        typer.echo(f"\n# code for stream {name}")
        typer.echo(source or "# none: its messages go through the document")


def _about(widget: Widget, rows: int) -> dict[str, Any]:
    return {"nodes": len(widget.document), "rows": rows, "streams": sorted(widget.streams())}
