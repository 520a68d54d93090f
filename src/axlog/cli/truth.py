"""`axlog truth DOC QUERY`: whether the query holds now, may still hold, or never will.

Also lists the rows that may still come, with the patterns that each needs, the streams they must
come from, and the deadline.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from axlog.cli import options
from axlog.cli.output import Lines, in_time, in_words, is_json, source_of
from axlog.document.stream_update import read_line
from axlog.document.times import checked_times
from axlog.errors import UndecidedError
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.live.view import View
from axlog.query.query import checked_language

After = Annotated[
    Path | None,
    typer.Option(
        "--after",
        metavar="UPDATES",
        help="JSON lines of updates to apply first, as `axlog maintain` reads them.",
        exists=True,
        dir_okay=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("truth", epilog="Example: axlog truth orders.xml 'match /orders/order[paid]'")(
        truth
    )


def truth(
    document: options.Doc,
    text: options.QueryText,
    after: After = None,
    types: options.TypeFiles = None,
    fact: options.Facts = None,
    namespace: options.Namespaces = None,
    language: options.Language = None,
    times: options.TimesShown = "seconds",
    json: options.Json = None,
) -> None:
    """Write TRUE, POSSIBLE or NEVER, and the rows that may still come, as one JSON object."""
    _, view = watched(document, text, after, namespace, language, types, fact, times)
    answer = {"truth": view.truth.value, **_possible(view)}
    if is_json(json):
        Lines().thing(answer)
        return
    typer.echo(answer["truth"])
    for one in answer["possible"] or ():
        needs = ", ".join(f"{need['pattern']} from {need['stream']}" for need in one["needs"])
        until = f", until {in_time(one['deadline'])}" if "deadline" in one else ""
        typer.echo(f"? {in_words(one['row'])}  needs {needs}{until}")
    if "reason" in answer:
        typer.echo(answer["reason"])


def watched(
    document: str,
    text: str,
    after: Path | None,
    namespace: list[str] | None,
    language: str | None,
    types: list[Path] | None = None,
    facts: list[str] | None = None,
    times: str = "seconds",
) -> tuple[Document, View]:
    """Return a document after some updates, and the view of a query over it."""
    doc = Document(
        source_of(document),
        types=types or None,
        facts=facts or (),
        options=Options(namespaces=options.namespaces_of(namespace), times=checked_times(times)),
    )
    view = doc.watch(text, language=checked_language(language))
    take_updates(doc, after)
    return doc, view


def take_updates(doc: Document, after: Path | None) -> None:
    """Apply the updates of a file to a document."""
    if after is None:
        return
    lines = after.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            doc.take(read_line(line, number, str(after)))


def _possible(view: View) -> dict[str, Any]:
    """Return the rows that may still come, or the reason why they are not listed."""
    try:
        return {"possible": [one.to_dict() for one in view.possible()]}
    except UndecidedError as error:
        return {"possible": None, "reason": error.message}
