"""`axlog diff OLD NEW`: the updates that turn one version of a document into the other.

The list is written as one JSON object (which `axlog reduce` reads), as XML, or as an RFC 5261
patch; on a terminal, as one line per operation.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from axlog.cli import options
from axlog.cli.output import is_json, source_of
from axlog.document.diff import diff as difference
from axlog.document.list_codec import to_json, to_xml
from axlog.document.loader import load
from axlog.document.operations import Attribute
from axlog.document.patch_writer import patch_of
from axlog.document.update_lists import Edit, EditKind, Markup, UpdateList, addressed
from axlog.reporting import counted


class Form(Enum):
    """The formats of an update list."""

    JSON = "json"
    XML = "xml"
    RFC5261 = "rfc5261"


New = Annotated[str, typer.Argument(metavar="NEW", help="The later version; a path or XML text.")]
Old = Annotated[str, typer.Argument(metavar="OLD", help="The earlier version; - for stdin.")]
Written = Annotated[
    Form | None,
    typer.Option(
        "--form", "-f", help="Format of the list (default: lines on a terminal, JSON in a pipe)."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("diff", epilog="Example: axlog diff '<a><b/></a>' '<a><c/></a>'")(diff)


def diff(
    old: Old,
    new: New,
    form: Written = None,
    keep_whitespace: options.KeepWhitespace = False,
    limit_depth: options.LimitDepth = options.DEPTH,
    limit_size: options.LimitSize = options.SIZE,
    limit_text: options.LimitText = options.TEXT,
) -> None:
    """Write the list of updates that turns the document OLD into NEW."""
    limits = options.limits_of(limit_depth, limit_size, limit_text)
    before, after = (
        load(source_of(one), limits=limits, keep_whitespace=keep_whitespace) for one in (old, new)
    )
    if form is Form.RFC5261:
        typer.echo(patch_of(before, after))
        return
    write_list(addressed(before, difference(before, after)), form)


def write_list(given: UpdateList, form: Form | None) -> None:
    """Write a list in the requested format; without one, as lines on a terminal and JSON in a
    pipe.
    """
    if form is Form.XML:
        typer.echo(to_xml(given))
    elif form is Form.JSON or is_json(None):
        typer.echo(to_json(given))
    else:
        console = Console(highlight=False)
        for edit in given:
            console.print(_line(edit), soft_wrap=True)
        console.print(counted(len(given), "update"), style="dim")


_STYLES = {EditKind.DELETE: "red", EditKind.RENAME: "yellow", EditKind.REPLACE_VALUE: "yellow"}


def _line(edit: Edit) -> Text:
    shown = [edit.kind.value, str(edit.target), *map(_shown, edit.content)]
    if edit.kind in (EditKind.RENAME, EditKind.REPLACE_VALUE):
        shown.append(repr(edit.text))
    return Text(" ".join(shown), style=_STYLES.get(edit.kind, "green"))


def _shown(piece: object) -> str:
    match piece:
        case Markup(xml=xml):
            return xml
        case Attribute(name=name, value=value):
            return f"@{name}={value!r}"
        case _:
            return repr(piece)
