"""`axlog query DOC QUERY`: the rows of a query on a document, or its items."""

from __future__ import annotations

from typing import Annotated

import typer

from axlog.cli import options
from axlog.cli.output import is_json, source_of, writer
from axlog.document.times import checked_times
from axlog.evaluate.atoms import text_of
from axlog.live.document import parse
from axlog.live.options import Options
from axlog.query.query import checked_language


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("query", epilog="Example: axlog query orders.xml 'match //order/oid/$x return $x'")(
        query
    )


def query(
    document: options.Doc,
    text: options.QueryText,
    namespace: options.Namespaces = None,
    language: options.Language = None,
    maintainer: options.MaintainerName = None,
    keep_whitespace: options.KeepWhitespace = False,
    limit_depth: options.LimitDepth = options.DEPTH,
    limit_size: options.LimitSize = options.SIZE,
    limit_text: options.LimitText = options.TEXT,
    times: options.TimesShown = "seconds",
    json: options.Json = None,
    xml: Annotated[
        bool, typer.Option("--xml", help="Write each row as the XML that the XQuery constructs.")
    ] = False,
) -> None:
    """Write the rows of a query on a document: {"row": {...}, "count": n}, one per line.

    On a terminal, the result of XPath and XQuery is written as its items, one per line.
    """
    parsed = parse(
        source_of(document),
        options=Options(
            limits=options.limits_of(limit_depth, limit_size, limit_text),
            keep_whitespace=keep_whitespace,
            namespaces=options.namespaces_of(namespace),
            times=checked_times(times),
        ),
    )
    view = parsed.watch(text, language=checked_language(language), maintainer=maintainer)
    if xml:
        for row in view.rows():
            typer.echo(view.xml(row))
        return
    if view.query.language != "pattern" and not is_json(json):
        for item in view.items():
            typer.echo(item if isinstance(item, str) else text_of(item))
        return
    writer(json).rows(view.columns, view.rows())
