"""`axlog patch DOC PATCH`: apply a patch or lists of updates to a document, and write the result.

The patch is what `axlog diff` writes: lists of updates as JSON or XML, or a patch of RFC 5261. It
is applied as a whole, or not at all.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from axlog.cli import options
from axlog.cli.output import source_of
from axlog.document.list_codec import read_lists
from axlog.document.loader import load
from axlog.document.parser import parse
from axlog.document.pending import apply
from axlog.document.serializer import serialise
from axlog.document.tree import Tree
from axlog.document.update_lists import UpdateList, resolved
from axlog.errors import UpdateError
from axlog.evaluate.patches import read_patch

Patch = Annotated[
    str,
    typer.Argument(metavar="PATCH", help="The patch: a path, its text, or - for standard input."),
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Output file (default: standard output).")
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    example = "Example: axlog diff old.xml new.xml | axlog patch old.xml -"
    app.command("patch", epilog=example)(patch)


def patch(
    document: options.Doc,
    patch: Patch,
    out: Out = None,
    keep_whitespace: options.KeepWhitespace = False,
    limit_depth: options.LimitDepth = options.DEPTH,
    limit_size: options.LimitSize = options.SIZE,
    limit_text: options.LimitText = options.TEXT,
) -> None:
    """Apply a patch to a document: lists of updates (as `axlog diff` writes them), or RFC 5261."""
    if document == patch == "-":
        raise typer.BadParameter("the document and the patch cannot both be standard input")
    limits = options.limits_of(limit_depth, limit_size, limit_text)
    tree = load(source_of(document), limits=limits, keep_whitespace=keep_whitespace)
    for one in _lists(tree, _text(patch), keep_whitespace):
        apply(tree, resolved(tree, one, limits), limits=limits, keep_whitespace=keep_whitespace)
    written = serialise(tree)
    if out is None:
        typer.echo(written)
    else:
        out.write_text(written + "\n", encoding="utf-8")


def _text(given: str) -> str:
    if given == "-":
        return sys.stdin.read()
    return given if given.lstrip()[:1] in ("<", "{") else Path(given).read_text(encoding="utf-8")


def _lists(tree: Tree, text: str, keeps_space: bool) -> list[UpdateList]:
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if start == "<" and parse(text).root.tag == "diff":
        return read_patch(tree, text, keep_whitespace=keeps_space)
    if start not in ("<", "{"):
        raise UpdateError(
            "AX306",
            "this is no patch",
            expected="the output of axlog diff: JSON, XML, or a <diff> of RFC 5261",
        )
    return read_lists(text)
