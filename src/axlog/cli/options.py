"""Arguments and options shared by several verbs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from axlog.document.parser import DEFAULT_LIMITS, Limits

Doc = Annotated[
    str,
    typer.Argument(
        metavar="DOC", help="The document: a path (.xml, .json), its text, or - for standard input."
    ),
]
QueryText = Annotated[
    str, typer.Argument(metavar="QUERY", help="The query: match ..., XPath, or XQuery.")
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", metavar="PREFIX=URI", help="Declare a prefix; repeatable."),
]
Language = Annotated[
    str | None, typer.Option(help="pattern, xpath or xquery (default: detected from the text).")
]
KeepWhitespace = Annotated[
    bool, typer.Option("--keep-whitespace", help="Keep texts that contain only white space.")
]
TypeFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--types",
        metavar="FILE",
        help="The document's type: an unordered DTD, a .dtd or a .xsd; repeatable.",
        exists=True,
        dir_okay=False,
    ),
]
Facts = Annotated[
    list[str] | None,
    typer.Option(
        "--fact",
        metavar="FACT",
        help="A declared fact, such as `key PATH by PATH trusted`; repeatable.",
    ),
]
TimesShown = Annotated[
    str, typer.Option("--times", help="How times are written: seconds (since 1970) or dates.")
]
Json = Annotated[
    bool | None,
    typer.Option(
        "--json/--table",
        help="Write JSON lines or tables (default: tables on a terminal, JSON lines in a pipe).",
    ),
]
MaintainerName = Annotated[
    str | None,
    typer.Option(
        help="counting, algebraic, adaptive, records or reevaluate (default: axlog chooses)."
    ),
]
LimitDepth = Annotated[int, typer.Option(help="Maximum nesting depth.", min=1)]
LimitSize = Annotated[
    int, typer.Option(help="Maximum size of a document or message in bytes.", min=1)
]
LimitText = Annotated[int, typer.Option(help="Maximum length of a text in characters.", min=1)]

DEPTH, SIZE, TEXT = DEFAULT_LIMITS.depth, DEFAULT_LIMITS.size, DEFAULT_LIMITS.text


def limits_of(depth: int, size: int, text: int) -> Limits:
    """Return the limits that the options set."""
    return Limits(depth=depth, size=size, text=text, name=DEFAULT_LIMITS.name)


def namespaces_of(declared: Sequence[str] | None) -> dict[str, str]:
    """Return the declared prefixes; `=URI` sets the default namespace of elements."""
    found: dict[str, str] = {}
    for one in declared or ():
        prefix, equals, address = one.partition("=")
        if not equals or not address:
            raise typer.BadParameter(f"{one!r} is not PREFIX=URI", param_hint="--namespace")
        found[prefix] = address
    return found
