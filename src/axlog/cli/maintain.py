"""`axlog maintain DOC QUERY UPDATES`: write the changes of a view, one per line, as a Unix filter.

Updates are JSON lines for streams (`document/stream_update.py`), lists of updates as `axlog diff`
and `axlog reduce` write them (JSON lines or XML), or XQuery Update statements separated by `;`. The
first non-blank line decides which; JSON lines may mix messages and lists. `{"advance": 7200}` among
the JSON lines advances the clock. Lists are reduced before they are applied (`--no-reduce`: not).
The changes of an update are written and flushed before the next update is read. `--check` compares
every step with re-evaluation.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from axlog.cli import options
from axlog.cli.output import source_of, writer
from axlog.cli.self_check import Check
from axlog.cli.statements import arriving
from axlog.document.list_codec import from_xml, to_json
from axlog.document.schema import OnViolation, TypeViolation
from axlog.document.stream_update import read_line
from axlog.document.times import checked_times
from axlog.errors import AxlogError, MalformedError
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.query.query import checked_language
from axlog.reporting import counted
from axlog.views.change import Change

STDIN = "-"
TERMINAL = Path("/dev/tty")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "maintain",
        epilog="Example: tail -f updates.jsonl | axlog maintain doc.xml 'match //a/$x return $x' -",
    )(maintain)


def maintain(
    document: options.Doc,
    text: options.QueryText,
    updates: Annotated[
        str,
        typer.Argument(
            metavar="UPDATES",
            help='A file of updates, or - for standard input: {"stream": ...}, {"updates": ...},'
            " ax:updates, or statements.",
        ),
    ],
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare each step with re-evaluation; exit code 1 on a difference."
        ),
    ] = False,
    on_error: Annotated[
        str,
        typer.Option(
            help="What to do with an invalid update. raise: stop; dead-letter: report it and "
            "continue."
        ),
    ] = "raise",
    reduce: Annotated[
        bool,
        typer.Option(
            "--reduce/--no-reduce", help="Reduce lists of updates before they are applied."
        ),
    ] = True,
    types: options.TypeFiles = None,
    on_violation: Annotated[
        str,
        typer.Option(
            help="What to do with an update that breaks the type. refuse: as --on-error says;"
            " report: apply it and say so; ask: on the terminal."
        ),
    ] = "refuse",
    namespace: options.Namespaces = None,
    language: options.Language = None,
    maintainer: options.MaintainerName = None,
    keep_whitespace: options.KeepWhitespace = False,
    limit_depth: options.LimitDepth = options.DEPTH,
    limit_size: options.LimitSize = options.SIZE,
    limit_text: options.LimitText = options.TEXT,
    times: options.TimesShown = "seconds",
    json: options.Json = None,
) -> None:
    """Write the changes of a view while updates arrive: {"op": ..., "key": ...}, one per line."""
    if document == updates == STDIN:
        raise typer.BadParameter("DOC and UPDATES cannot both be standard input")
    if on_error not in ("raise", "dead-letter"):
        raise typer.BadParameter("raise or dead-letter", param_hint="--on-error")
    doc = Document(
        source_of(document),
        options=Options(
            limits=options.limits_of(limit_depth, limit_size, limit_text),
            keep_whitespace=keep_whitespace,
            namespaces=options.namespaces_of(namespace),
            times=checked_times(times),
            on_violation=_policy(on_violation),
        ),
        types=types or None,
    )
    view = doc.watch(text, "view", language=checked_language(language), maintainer=maintainer)
    out = writer(json)
    checking = Check(doc, view) if check else None
    refused = 0
    with _opened(updates) as lines:
        for place, result in _results(doc, lines, updates, reduce):
            if isinstance(result, AxlogError):
                if on_error == "raise":
                    raise result
                typer.echo(f"axlog: {result.describe()}", err=True)
                refused += 1
                continue
            out.changes(result)
            if checking is not None and not checking.holds(result):
                typer.echo(checking.difference(place), err=True)
                raise typer.Exit(1)
    if checking is not None:
        typer.echo(f"checked {counted(checking.steps, 'update')}: no difference", err=True)
    if refused:
        raise typer.Exit(2)


def _policy(name: str) -> OnViolation:
    """The policy of `--on-violation`; `ask` reads the answer from the terminal."""
    if name == "report":
        return _reported
    if name == "ask":
        return _asked
    if name != "refuse":
        raise typer.BadParameter("refuse, report or ask", param_hint="--on-violation")
    return "refuse"


def _reported(violation: TypeViolation) -> bool:
    typer.echo(f"axlog: applied: {violation.describe()}", err=True)
    return True


def _asked(violation: TypeViolation) -> bool:
    """Ask on the terminal; standard input may be the updates. Without a terminal, refuse."""
    try:
        terminal = TERMINAL.open("r+", encoding="utf-8", buffering=1)
    except OSError:
        return False
    with terminal:
        terminal.write(f"axlog: {violation.describe()}\nApply it all the same? [y/N] ")
        return terminal.readline().strip().lower() in ("y", "yes")


# Reading updates ----------------------------------------------------------------------------------


def _results(
    doc: Document, lines: Iterator[bytes], source: str, reduces: bool
) -> Iterator[tuple[str, list[Change] | AxlogError]]:
    """Yield each update with its changes, or with the error that rejected it."""
    name = "standard input" if source == STDIN else source
    blank: list[bytes] = []
    for line in lines:
        if line.strip():
            rest = chain(blank, [line], lines)
            first = line.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
            if first == b"{" or name.endswith((".jsonl", ".ndjson")):
                yield from _messages(doc, rest, name, reduces)
            elif first == b"<":
                yield from _lists(doc, b"".join(rest), name, reduces)
            else:
                yield from _statements(doc, rest, name)
            return
        blank.append(line)


def _lists(
    doc: Document, text: bytes, name: str, reduces: bool
) -> Iterator[tuple[str, list[Change] | AxlogError]]:
    """Apply lists of updates as XML, each as one update."""
    for number, one in enumerate(from_xml(_decoded(text, name)), start=1):
        place = f"list {number} of {name}"
        try:
            changes = doc.apply(to_json(one), reduce=reduces)
        except AxlogError as error:
            error.within(place)
            yield place, error
            continue
        yield place, changes


def _messages(
    doc: Document, lines: Iterable[bytes], name: str, reduces: bool
) -> Iterator[tuple[str, list[Change] | AxlogError]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"line {number} of {name}"
        try:
            text = _decoded(line, place)
            clock = _clock_in(text)
            is_list = clock is None and _is_list(text)
            update = None if clock is not None or is_list else read_line(text, number, name)
        except AxlogError as error:
            yield place, error
            continue
        try:
            if is_list:
                changes = doc.apply(text, reduce=reduces)
            else:
                changes = doc.advance(clock or 0) if update is None else doc.take(update)
        except AxlogError as error:
            error.within(place)
            yield place, error
            continue
        yield place, changes


def _clock_in(line: str) -> float | str | None:
    """The time of a line that only advances the clock, `{"advance": TIME}`; None for others."""
    written = _object_in(line)
    if written.keys() != {"advance"}:
        return None
    time = written["advance"]
    is_time = isinstance(time, int | float | str) and not isinstance(time, bool)
    return time if is_time else None


def _is_list(line: str) -> bool:
    """Whether a line is a list of updates of the document."""
    return '"updates"' in line and "updates" in _object_in(line)


def _object_in(line: str) -> dict[str, Any]:
    """The JSON object of a line; an empty one if it is none."""
    try:
        written = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return written if isinstance(written, dict) else {}


def _statements(
    doc: Document, lines: Iterable[bytes], name: str
) -> Iterator[tuple[str, list[Change] | AxlogError]]:
    texts = (_decoded(line, name) for line in lines)
    for number, statement in enumerate(arriving(texts), start=1):
        place = f"statement {number} of {name}"
        try:
            changes = doc.update(statement)
        except AxlogError as error:
            error.within(place)
            yield place, error
            continue
        yield place, changes


def _decoded(line: bytes, place: str) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedError(
            "AX113", f"{place} is not UTF-8: invalid byte at offset {error.start + 1}"
        ) from None


@contextmanager
def _opened(updates: str) -> Iterator[Iterator[bytes]]:
    """Yield the lines of the updates; show progress if they come from a file and a terminal is
    attached.
    """
    if updates == STDIN:
        yield iter(sys.stdin.buffer)
        return
    console = Console(stderr=True)
    path = Path(updates)
    with (
        path.open("rb") as file,
        Progress(
            console=console,
            transient=True,
            disable=not console.is_terminal or sys.stdout.isatty(),
        ) as progress,
    ):
        task = progress.add_task(f"applying {path.name}", total=path.stat().st_size)

        def lines() -> Iterator[bytes]:
            for line in file:
                yield line
                progress.advance(task, len(line))

        yield lines()
