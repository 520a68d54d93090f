"""`axlog truth DOC QUERY`: whether the query holds now, may still hold, or never will.

`axlog truth PIPELINE --view NAME` asks the same of a view of a pipeline before its first message,
with all documents that feed it.

Also lists the rows that may still come, with the patterns that each needs, the streams they must
come from, and the deadline.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from axlog.cli import options
from axlog.cli.check import missing
from axlog.cli.output import Lines, in_time, in_words, is_json, source_of
from axlog.document.stream_update import read_line
from axlog.document.times import checked_times
from axlog.errors import AxlogError, UndecidedError
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
    text: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="The query: match ..., XPath, or XQuery."),
    ] = None,
    view_name: Annotated[
        str | None,
        typer.Option(
            "--view",
            metavar="NAME",
            help="A view of a pipeline file, which is then given in place of DOC and QUERY.",
        ),
    ] = None,
    after: After = None,
    types: options.TypeFiles = None,
    fact: options.Facts = None,
    namespace: options.Namespaces = None,
    language: options.Language = None,
    times: options.TimesShown = "seconds",
    json: options.Json = None,
) -> None:
    """Write TRUE, POSSIBLE or NEVER, and the rows that may still come, as one JSON object."""
    if view_name is not None:
        if text is not None or after is not None or types or fact:
            raise typer.BadParameter("--view takes a pipeline file, and no query, facts or updates")
        answer = _of_pipeline(document, view_name)
    elif text is None:
        raise typer.BadParameter("give a query, or --view with a pipeline file")
    else:
        _, view = watched(document, text, after, namespace, language, types, fact, times)
        answer = {"truth": view.truth.value, **_possible(view)}
    if is_json(json):
        Lines().thing(answer)
        return
    typer.echo(answer["truth"] or "undecided")
    for one in answer["possible"] or ():
        needs = ", ".join(f"{need['pattern']} from {need['stream']}" for need in one["needs"])
        until = f", until {in_time(one['deadline'])}" if "deadline" in one else ""
        typer.echo(f"? {in_words(one['row'])}  needs {needs}{until}")
    if "reason" in answer:
        typer.echo(answer["reason"])
    for reason in answer.get("reasons", ()):
        typer.echo(f"  {reason}")


def _of_pipeline(path: str, name: str) -> dict[str, Any]:
    """Return the truth of a view of a pipeline, the rows that may come, and why none can."""
    try:
        from axlog.pipeline.loader import load
        from axlog.runtime.system_truth import SystemTruth
    except ImportError as error:
        raise missing(error) from None
    system = SystemTruth(load(path))
    answer = system.verdict(name).to_dict()
    possible: list[Any] = []
    try:
        for one in system.outlooks(name):
            possible += [each.to_dict() for each in one.possible()]
    except AxlogError as error:
        return {**answer, "possible": None, "reason": error.message}
    return {**answer, "possible": possible}


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
