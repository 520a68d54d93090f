"""Arguments and options that several verbs take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from axlog.document.parser import DEFAULT_LIMITS, Limits

Doc = Annotated[
    str,
    typer.Argument(metavar="DOC", help="The document: a path, XML text, or - for standard input."),
]
QueryText = Annotated[
    str, typer.Argument(metavar="QUERY", help="The query: match ..., XPath, or XQuery.")
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", metavar="PREFIX=URI", help="Declare a prefix; repeatable."),
]
Language = Annotated[
    str | None, typer.Option(help="pattern, xpath or xquery; by its first word without it.")
]
KeepWhitespace = Annotated[
    bool, typer.Option("--keep-whitespace", help="Keep texts that are white space alone.")
]
TypeFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--types",
        metavar="FILE",
        help="The document's type: an unordered DTD, a .dtd or a .xsd; repeatable, to add calls.",
        exists=True,
        dir_okay=False,
    ),
]
Facts = Annotated[
    list[str] | None,
    typer.Option("--fact", metavar="FACT", help="`key PATH by PATH trusted`; repeatable."),
]
TimesShown = Annotated[
    str, typer.Option("--times", help="How times are written: seconds (since 1970) or dates.")
]
Json = Annotated[
    bool | None,
    typer.Option(
        "--json/--table", help="JSON lines or tables; by default tables on a terminal only."
    ),
]
MaintainerName = Annotated[
    str | None,
    typer.Option(
        help="counting, algebraic, adaptive, records, reevaluate or ivma; else axlog chooses."
    ),
]
LimitDepth = Annotated[int, typer.Option(help="Deepest nesting taken.", min=1)]
LimitSize = Annotated[int, typer.Option(help="Most bytes of a document or message.", min=1)]
LimitText = Annotated[int, typer.Option(help="Longest text in characters.", min=1)]

DEPTH, SIZE, TEXT = DEFAULT_LIMITS.depth, DEFAULT_LIMITS.size, DEFAULT_LIMITS.text


def limits_of(depth: int, size: int, text: int) -> Limits:
    """The limits that the options ask for."""
    return Limits(depth=depth, size=size, text=text, name=DEFAULT_LIMITS.name)


def namespaces_of(declared: Sequence[str] | None) -> dict[str, str]:
    """The prefixes that the options declare; `=URI` is the default namespace of elements."""
    found: dict[str, str] = {}
    for one in declared or ():
        prefix, equals, address = one.partition("=")
        if not equals or not address:
            raise typer.BadParameter(f"{one!r} is not PREFIX=URI", param_hint="--namespace")
        found[prefix] = address
    return found
