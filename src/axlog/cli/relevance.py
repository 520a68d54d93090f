"""`axlog relevance DOC QUERY`: whether each open stream can still change the answer, and how.

One line per stream: {"stream": ..., "lazy": b, "axlog": b, "relevant": b, "wanted": [patterns]}.
Where exact relevance is undecided, "relevant" is null and "reason" gives the reason.
"""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from axlog.cli import options
from axlog.cli.output import Lines, is_json
from axlog.cli.truth import After, watched
from axlog.future.relevance import Relevance
from axlog.future.relevance import relevance as relevance_of
from axlog.live.internals import maintained


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "relevance", epilog="Example: axlog relevance orders.xml 'match /orders/order[paid]'"
    )(relevance)


def relevance(
    document: options.Doc,
    text: options.QueryText,
    after: After = None,
    types: options.TypeFiles = None,
    fact: options.Facts = None,
    namespace: options.Namespaces = None,
    language: options.Language = None,
    json: options.Json = None,
) -> None:
    """Report which streams can still add or remove rows: by the lazy rule, by axlog's rule, and
    exactly.
    """
    doc, view = watched(document, text, after, namespace, language, types, fact)
    found = relevance_of(maintained(doc).nodes(), view.query.only_pattern).values()
    if is_json(json):
        lines = Lines()
        for each in found:
            lines.thing(each.to_dict())
        return
    _print(list(found))


def _print(found: list[Relevance]) -> None:
    table = Table("stream", "lazy", "axlog", "relevant", "wanted")
    for each in found:
        verdict = each.reason if each.relevant is None else _yes(each.relevant)
        cells = (each.stream, _yes(each.lazy), _yes(each.axlog), verdict, ", ".join(each.wanted))
        table.add_row(*(Text(cell or "") for cell in cells))
    Console(highlight=False).print(table)


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"
