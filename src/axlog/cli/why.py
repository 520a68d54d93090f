"""`axlog why DOC QUERY`: explain why rows are in the answer, by what each part of the query
matched.

One line per derivation. `--row x=17` selects the rows with these values. Exit code 1 if there is no
such row. `axlog truth` explains rows that may still come.
"""

from __future__ import annotations

from typing import Annotated

import typer

from axlog.cli import options
from axlog.cli.output import Lines, in_words, is_json
from axlog.cli.truth import After, watched
from axlog.document.times import plain
from axlog.errors import AxlogError
from axlog.future.reasons import WhyNot
from axlog.views.change import Row
from axlog.views.why import Derivation

Shown = Annotated[
    list[str] | None,
    typer.Option("--row", metavar="COLUMN=VALUE", help="Only rows with this value; repeatable."),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("why", epilog="Example: axlog why orders.xml 'match //order/oid/$x return $x'")(why)


def why(
    document: options.Doc,
    text: options.QueryText,
    row: Shown = None,
    after: After = None,
    namespace: options.Namespaces = None,
    language: options.Language = None,
    times: options.TimesShown = "seconds",
    json: options.Json = None,
) -> None:
    """Explain why rows are in the answer: for each derivation, the nodes that the query matched.

    One line per derivation: {"row": {...}, "matched": [{"pattern": ..., "path": ..., "id": ...}]}.

    With --row, a row that is not there gets its truth and the reasons for it:
    {"row": {...}, "truth": "possible", "reasons": [{"kind": ..., "text": ...}]}.
    """
    _, view = watched(document, text, after, namespace, language, times=times)
    wanted = _wanted(row, view.columns)
    found = [each for each in view.rows() if wanted.items() <= _texts(each).items()]
    for each in found:
        for derivation in view.why(each):
            _print_derivation(each, derivation, is_json(json))
    if not found:
        if wanted:
            try:
                _print_reasons(wanted, view.why_not(wanted), is_json(json))
            except AxlogError as error:
                typer.echo(f"axlog: whether it can come is not decided: {error}", err=True)
        typer.echo("axlog: no such row", err=True)
        raise typer.Exit(1)


def _wanted(given: list[str] | None, columns: tuple[str, ...]) -> dict[str, str]:
    wanted: dict[str, str] = {}
    for one in given or ():
        column, equals, value = one.partition("=")
        if not equals or column not in columns:
            known = ", ".join(columns) or "none: the query is Boolean"
            raise typer.BadParameter(f"{one!r}; the columns are {known}", param_hint="--row")
        wanted[column] = value
    return wanted


def _texts(row: Row) -> dict[str, str]:
    return {column: str(value) for column, value in row.to_dict().items()}


def _print_reasons(row: dict[str, str], found: WhyNot, as_json: bool) -> None:
    if as_json:
        Lines().thing({"row": row, **found.to_dict()})
    else:
        typer.echo(f"{in_words(row)}\n{found}")


def _print_derivation(row: Row, derivation: Derivation, as_json: bool) -> None:
    if not as_json:
        typer.echo(f"{in_words(row)}\n{derivation}")
        return
    matched = []
    for match in derivation.matched:
        fields: dict[str, object] = {"pattern": match.pattern, "path": match.path}
        fields |= {"id": str(match.id), "time": plain(match.time)}
        if match.origin is not None:
            fields["from"] = match.origin
        matched.append(fields)
    Lines().thing({"row": row.to_dict(), "matched": matched})
