"""`axlog explain QUERY [DOC]`: how a query is maintained.

Prints the program, the maintainer and the generated code. With a document, prints for each stream
the patterns that the view needs and the message counters. With `--profile`, prints where the time
of the messages goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from axlog.cli import options
from axlog.cli.output import Lines, is_json, source_of
from axlog.cli.server_profile import server_profile, shown
from axlog.cli.truth import After, take_updates
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.live.profile import Profile
from axlog.live.stream_status import StreamStatus
from axlog.live.view import View
from axlog.query.query import checked_language
from axlog.runtime.definition import Definition
from axlog.runtime.plan import make_plan
from axlog.runtime.state_placement import Asked, placed


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "explain", epilog="Example: axlog explain 'match //order[not(paid)]/oid/$x return $x'"
    )(explain)


def explain(
    text: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="The query: match ..., XPath, or XQuery.")
    ] = None,
    document: Annotated[
        str | None,
        typer.Argument(metavar="[DOC]", help="A document; adds its streams and its size."),
    ] = None,
    code: Annotated[
        bool, typer.Option("--code", help="Show the code generated for the document's streams.")
    ] = False,
    after: After = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune", help="Run the tuner before and after the updates, to see what it drops."
        ),
    ] = False,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Show where the time of the messages of --after, or of a server, goes, by stage.",
        ),
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="ADDRESS",
            help="With --profile: measure a running server (token: AXLOG_TOKEN) and no query."
            " The argument is then the name of a document, if it has several.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="With --server: how long to measure.", min=0.1, max=60)
    ] = 5.0,
    namespace: options.Namespaces = None,
    language: options.Language = None,
    maintainer: options.MaintainerName = None,
    json: options.Json = None,
) -> None:
    """Show how a query is maintained: its pattern, its datalog program, and the maintainer with the
    reason for its choice.
    """
    if server is not None:
        if not profile or document is not None:
            raise typer.BadParameter("--server measures: write --profile, and no document")
        _show_server(server_profile(server, text, seconds), json)
        return
    text = _query(text)
    _check_needs(document, after, code=code, tune=tune, profile=profile)
    doc = Document(
        source_of(document) if document is not None else "<_/>",
        options=Options(namespaces=options.namespaces_of(namespace)),
    )
    view = doc.watch(text, language=checked_language(language), maintainer=maintainer)
    if tune:
        doc.tune()
    measured = Profile()
    if profile:
        with doc.profile() as measured:
            take_updates(doc, after)
    else:
        take_updates(doc, after)
    if tune:
        doc.tune()
    explained = view.explain()
    about = _about(doc, len(view)) if document is not None else {}
    if about.get("streams"):
        about["spark"] = _spark_plan(source_of(str(document)), view, maintained(doc).namespaces)
    sources = {name: doc.code(name) for name in doc.streams()} if code else {}
    if is_json(json):
        more: dict[str, Any] = {"code": sources} if code else {}
        if profile:
            more["profile"] = measured.to_dict()
        Lines().thing({**asdict(explained), **about, **more})
        return
    typer.echo(str(explained))
    for key, value in about.items():
        if key == "streams":
            _print_streams(value)
        elif key == "spark":
            typer.echo(f"Spark plan  {value}")
        else:
            typer.echo(f"{key:<11} {value}")
    if profile:
        typer.echo(f"profile     {measured}")
    for name, source in sources.items():
        typer.echo(f"\n# code for stream {name}")
        typer.echo(source or "# none: its messages are applied to the document")


def _show_server(found: dict[str, Any], json: bool | None) -> None:
    """Show the profile of a running server."""
    if is_json(json):
        Lines().thing(found)
    else:
        typer.echo(shown(found))


def _check_needs(
    document: str | None, after: Path | None, *, code: bool, tune: bool, profile: bool
) -> None:
    """Refuse options without what they need."""
    if code and document is None:
        raise typer.BadParameter("--code needs DOC: code is generated for its streams")
    if (tune or after is not None) and document is None:
        raise typer.BadParameter("--after and --tune need DOC: updates belong to its streams")
    if profile and after is None:
        raise typer.BadParameter("--profile needs --after or --server: it measures messages")


def _about(doc: Document, rows: int) -> dict[str, Any]:
    streams = {name: _stream(status) for name, status in doc.streams().items()}
    return {"nodes": len(doc), "rows": rows, "streams": streams}


def _query(text: str | None) -> str:
    """Check that there is a query, and that it is none of the files that others explain."""
    if text is None:
        raise typer.BadParameter("a query is needed", param_hint="QUERY")
    if Path(text).suffix in (".yaml", ".yml") and Path(text).is_file():
        raise typer.BadParameter(
            f"{text} is a file: `axlog check {text}` shows the plans of a pipeline",
            param_hint="QUERY",
        )
    return text


def _spark_plan(source: Any, view: View, namespaces: Mapping[str, str]) -> str:
    """Describe how Spark would partition the view over two cores, and where its state would
    live.
    """
    fresh = Document(source, views={view.name: view.query}, options=Options(namespaces=namespaces))
    definition = Definition.of(fresh)
    (unit,) = make_plan(definition).units
    here, there = (placed(Asked(master=master), definition) for master in ("local[2]", "cluster"))
    return f"{unit}; state lives {here}, {there}"


def _stream(status: StreamStatus) -> dict[str, Any]:
    """The patterns that a stream is read for, and its message counters."""
    return {
        "wanted": list(status.wanted),
        "filter": f"automaton of {status.nodes} nodes" if status.nodes else "one by one",
        "tuned": status.is_tuned,
        "unsubscribed": status.is_unsubscribed,
        "messages": status.messages,
        "dropped": status.dropped,
        "kept": status.kept,
        "ended": status.ended,
    }


def _print_streams(streams: dict[str, dict[str, Any]]) -> None:
    typer.echo(f"{'streams':<11} {', '.join(streams)}")
    for name, each in streams.items():
        state = "ended" if each["ended"] else "unsubscribed" if each["unsubscribed"] else "open"
        wanted = ", ".join(each["wanted"]) or "nothing"
        typer.echo(f"  {name}: {state}, wanted: {wanted} ({each['filter']})")
        counted = ", ".join(f"{each[key]} {key}" for key in ("messages", "dropped", "kept"))
        typer.echo(f"    {counted}")
