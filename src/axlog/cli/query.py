"""`axlog query DOC QUERY`: the rows of a query on a document, or its items."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from lxml import etree

from axlog.cli import options
from axlog.cli.output import source_of, writer
from axlog.document.parser import Element
from axlog.document.parser import parse as read_xml
from axlog.document.times import checked_times
from axlog.errors import did_you_mean
from axlog.evaluate.atoms import text_of
from axlog.live.document import parse
from axlog.live.options import Options
from axlog.live.view import View
from axlog.query.query import Query, checked_language, language_of, parse_query

_WORDS = frozenset(
    """and ascending at by descending div else eq every for ge gt idiv if in is le let limit lt
    match mod ne not now or order return satisfies some stable then to where""".split()
)
"""Words of the languages, which are no names of elements."""


class Show(Enum):
    """What to write of a result."""

    XML = "xml"
    VAL = "val"
    ID = "id"
    JSON = "json"


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
    show: Annotated[
        Show | None,
        typer.Option(
            help="How to write the results of XPath and XQuery: xml (default), val (their strings),"
            " id (of their nodes) or json."
        ),
    ] = None,
) -> None:
    """Write the result of a query on a document.

    XPath and XQuery: the items, one per line; with --json, rows. Tree patterns: the rows, as JSON
    lines {"row": {...}, "count": n} in a pipe and as a table on a terminal. A query in XPath or
    XQuery that has no value for the document, such as the sum of a text, is an error.
    """
    _check_order(document, text)
    parsed = parse(
        source_of(document),
        options=Options(
            limits=options.limits_of(limit_depth, limit_size, limit_text),
            keep_whitespace=keep_whitespace,
            namespaces=options.namespaces_of(namespace),
            times=checked_times(times),
        ),
    )
    given = text if show is None else _showing(text, show, language, namespace)
    is_pattern = (checked_language(language) or language_of(text)) == "pattern"
    view = parsed.watch(
        given, language=checked_language(language), maintainer=maintainer,
        on_value_error="null" if is_pattern else "reject",
    )  # fmt: skip
    if not view.rows():
        _hint(parsed.element(), text)
    if xml:
        for row in view.rows():
            typer.echo(view.xml(row))
    elif show is not None:
        for line in _shown(view, show):
            typer.echo(line)
    elif view.query.language != "pattern" and not json:
        for item in view.items():
            typer.echo(_text(item))
    else:
        writer(json).rows(view.columns, view.rows())


def _showing(
    text: str, show: Show, language: str | None, namespace: list[str] | None
) -> str | Query:
    """Return a query whose rows have what is to be shown."""
    known = options.namespaces_of(namespace)
    asked = checked_language(language) or language_of(text)
    if asked == "pattern":
        raise typer.BadParameter("a tree pattern says itself what it returns", param_hint="--show")
    if show is Show.XML or show is Show.JSON:
        return text
    return parse_query(text, known, language, (show.value,))


def _shown(view: View, show: Show) -> Iterator[str]:
    from axlog.document.json_messages import json_text

    if show in (Show.XML, Show.JSON):
        for item in view.items():
            is_xml = isinstance(item, str) and item.startswith("<")
            if show is Show.JSON:
                yield json_text([read_xml(item).root]) if is_xml else _scalar(item)
            else:
                yield _text(item)
        return
    column = next((name for name in view.columns if name.endswith(f".{show.value}")), None)
    if column is None:
        if show is Show.ID:
            raise typer.BadParameter("values have no ids", param_hint="--show")
        yield from (_text(item) for item in view.items())
        return
    for row in view.rows():
        yield from [str(row.to_dict()[column])] * row.count


def _scalar(item: Any) -> str:
    return dumps(item if isinstance(item, bool | int | float | None) else _text(item))


def _text(item: Any) -> str:
    return item if isinstance(item, str) else text_of(item)


def _check_order(document: str, text: str) -> None:
    """Refuse a query in the place of the document."""
    is_document = text.lstrip().startswith("<") or Path(text).is_file()
    is_text = document == "-" or document.lstrip()[:1] in ("<", "{", "[")
    if is_document and not is_text and not Path(document).exists():
        raise typer.BadParameter("the document comes first, then the query", param_hint="DOC")


def _hint(root: Element, text: str) -> None:
    """Name a likely reason for no rows: a name that is there only in a namespace, or misspelt."""
    names = set(re.findall(r"(?<![\w:$@.'\"-])[A-Za-z_][\w.-]*(?![\w:(]|\s*\()", text))
    tags = {str(element.tag) for element in root.iter(etree.Element)}
    for name in sorted(names - tags):
        found = sorted(tag for tag in tags if tag.endswith(f"}}{name}"))
        if found:
            address = found[0][1:].partition("}")[0]
            typer.echo(
                f"hint: <{name}> is in the namespace {address}; declare a prefix with"
                f" -n p={address} and write p:{name}, or make it the default with -n ={address}",
                err=True,
            )
            return
    for name in sorted(names - tags - _WORDS):
        near = did_you_mean(name, sorted(tag for tag in tags if "}" not in tag))
        if near is not None:
            typer.echo(f"hint: no element is named {name}; {near}", err=True)
            return
