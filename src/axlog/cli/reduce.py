"""`axlog reduce LISTS...`: reduce lists of updates, combine them, or check them for conflicts.

The lists are files of JSON lines or XML, as `axlog diff` writes them. With `--on DOC` they are
files of XQuery Update statements; each statement becomes a list on the document that the previous
statements left. Nothing else needs the document (paper 5, section 5).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from axlog.cli import options
from axlog.cli.diff import Written, write_list
from axlog.cli.output import source_of
from axlog.document.aggregation import aggregate
from axlog.document.integration import Policy, conflicts, integrate
from axlog.document.list_codec import read_lists
from axlog.document.loader import load
from axlog.document.reduction import reduce as reduced
from axlog.document.update_lists import UpdateList, record
from axlog.evaluate.statements import operations_of
from axlog.query.update_parser import parse_statements

Files = Annotated[
    list[str],
    typer.Argument(metavar="LISTS", help="Files of lists, JSON lines or XML; - for stdin."),
]
Sequential = Annotated[
    bool,
    typer.Option(
        "--sequential", help="The lists apply one after the other: combine them into one list."
    ),
]
Parallel = Annotated[
    bool,
    typer.Option(
        "--parallel", help="The lists apply to the same version: merge them and resolve conflicts."
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="N:KEEP",
        help="What list N keeps in conflicts: order, inserted, removed, separated by commas; "
        "repeatable.",
    ),
]
Conflicts = Annotated[
    bool,
    typer.Option(
        "--conflicts", help="Only print the updates that conflict; exit code 1 if there are any."
    ),
]
On = Annotated[
    str | None,
    typer.Option("--on", metavar="DOC", help="LISTS are statements on this document."),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("reduce", epilog="Example: axlog diff old.xml new.xml | axlog reduce -")(reduce)


def reduce(
    lists: Files,
    sequential: Sequential = False,
    parallel: Parallel = False,
    policy: Policies = None,
    show_conflicts: Conflicts = False,
    on: On = None,
    form: Written = None,
    namespace: options.Namespaces = None,
) -> None:
    """Reduce lists of updates; with --sequential or --parallel, also combine them."""
    if sequential and parallel:
        raise typer.BadParameter("--sequential and --parallel exclude each other")
    given = _given(lists, on, options.namespaces_of(namespace))
    if show_conflicts:
        _print_conflicts(given)
    elif parallel:
        write_list(integrate(given, _policies(policy or [], len(given))), form)
    else:
        for one in aggregate(given) if sequential else given:
            write_list(reduced(one), form)


def _given(files: list[str], document: str | None, namespaces: dict[str, str]) -> list[UpdateList]:
    texts = [sys.stdin.read() if f == "-" else Path(f).read_text(encoding="utf-8") for f in files]
    if document is None:
        return [one for text in texts for one in read_lists(text)]
    tree = load(source_of(document))
    statements = [one for text in texts for one in parse_statements(text, namespaces)]
    return [record(tree, operations_of(tree, statement))[1] for statement in statements]


def _policies(written: list[str], count: int) -> list[Policy]:
    found = [Policy()] * count
    for one in written:
        number, colon, wishes = one.partition(":")
        names = wishes.split(",")
        is_known = set(names) <= {"order", "inserted", "removed"}
        if not colon or not number.isdigit() or not 1 <= int(number) <= count or not is_known:
            raise typer.BadParameter(
                f"{one!r} is not N:KEEP for one of {count} lists", param_hint="--policy"
            )
        found[int(number) - 1] = Policy(**dict.fromkeys(names, True))
    return found


def _print_conflicts(given: list[UpdateList]) -> None:
    found = conflicts([reduced(one) for one in given])
    for conflict in found:
        sides = (conflict.first, conflict.second)
        edits = [f"list {number + 1}: {edit.kind.value} {edit.target}" for number, edit in sides]
        typer.echo(f"{conflict.kind.value}: {edits[0]}; {edits[1]}")
    if found:
        raise typer.Exit(1)
