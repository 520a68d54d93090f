"""`axlog init`: write a pipeline that runs, from sample messages or from a few answers.

    axlog init order-17.xml order-18.xml shipment-17.xml
    axlog init orders=new-orders.jsonl
    axlog init

Samples are copied to `in/`, where the pipeline reads them. Without samples the command asks.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from axlog.errors import PipelineError
from axlog.pipeline.first_file import write_pipeline
from axlog.pipeline.inference import Format, Sample, StreamGuess, guess, joins, read_sample
from axlog.reporting import counted

FILE = "pipeline.yaml"
_SUFFIXES = (".xml", ".json", ".jsonl", ".ndjson")
_NAMED = re.compile(r"([A-Za-z_][\w\-]*)=(.+)")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("init", epilog="Example: axlog init order-17.xml shipment-17.xml")(init)


def init(
    samples: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SAMPLE...]",
            help="Files with messages, XML or JSON, or directories of them; STREAM=FILE names the"
            " stream.",
        ),
    ] = None,
    into: Annotated[
        Path, typer.Option("--into", "-d", help="Directory of the pipeline; created if missing.")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing pipeline.")] = False,
) -> None:
    """Write a pipeline file from sample messages: their streams, keys and times are inferred.

    Without samples, ask for the streams. Edit the file afterwards: it is yours.
    """
    path = into / FILE
    if path.exists() and not force:
        raise PipelineError(
            "AX851", f"{path} exists already", advice="--force replaces it, --into D uses another"
        )
    streams = guess([*_samples(samples)]) if samples else _ask()
    if not streams:
        raise PipelineError("AX852", "the samples contain no messages")
    into.mkdir(parents=True, exist_ok=True)
    for stream in streams:
        _bring(stream, into)
    name = into.resolve().name or "axlog"
    path.write_text(write_pipeline(streams, name), encoding="utf-8")
    _report(streams, path)


def _samples(written: list[str]) -> Iterator[Sample]:
    """The samples that arguments name: files, directories of files, each with or without the name
    of its stream.
    """
    for each in written:
        named = None if Path(each).exists() else _NAMED.fullmatch(each)
        path, stream = (Path(each), None) if named is None else (Path(named[2]), named[1])
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        if path.is_dir():
            files = [file for file in files if file.suffix in _SUFFIXES]
        if not files:
            raise PipelineError(
                "AX102", f"{path} contains no samples", expected=f"files {', '.join(_SUFFIXES)}"
            )
        yield from (read_sample(file, stream) for file in files)


def _bring(stream: StreamGuess, into: Path) -> None:
    """Copy the samples of a stream to where its source reads, or make the empty directory."""
    if stream.format == "jsonl":
        (into / "in").mkdir(exist_ok=True)
        with (into / "in" / f"{stream.name}.jsonl").open("wb") as file:
            for sample in stream.samples:
                file.write(sample.path.read_bytes().rstrip(b"\n") + b"\n")
        return
    place = into / "in" / stream.name
    place.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(stream.samples, start=1):
        target = place / f"{sample.path.stem}.{stream.format}"
        if target.exists() and target.resolve() != sample.path.resolve():
            target = place / f"{sample.path.stem}-{number}.{stream.format}"
        if target.resolve() != sample.path.resolve():
            shutil.copyfile(sample.path, target)


def _report(streams: list[StreamGuess], path: Path) -> None:
    typer.echo(f"wrote {path}")
    for stream in streams:
        parts = [counted(len(stream.messages), "message") if stream.samples else "no messages yet"]
        parts += [f"key {_local(stream.key)}"] if stream.key else []
        parts += [f"time {_local(stream.time)}"] if stream.time else []
        typer.echo(f"  {stream.name}: {', '.join(parts)}")
    for pair in joins(streams):
        typer.echo(f"  {pair.left.name} and {pair.right.name} share {_local(pair.left_path)}")
    typer.echo(f"next: axlog run {path} --once")


def _local(path: str | None) -> str:
    return re.sub(r"\{[^}]*\}", "", path or "")


def _ask() -> list[StreamGuess]:
    """Ask for the streams, their messages, keys and times."""
    given = typer.prompt("Names of the streams, separated by commas", default="orders")
    streams = []
    for name in (each.strip() for each in given.split(",") if each.strip()):
        if re.fullmatch(r"[A-Za-z_][\w\-]*", name) is None:
            raise typer.BadParameter(f"{name!r} is not a name of a stream")
        form: Format = "json" if _prompt(f"{name}: xml or json", "xml") == "json" else "xml"
        single = name[:-1] if name.endswith("s") and len(name) > 1 else name
        element = _prompt(f"{name}: name of the element of a message", single)
        key = _prompt(f"{name}: path to the key of a message (- for none)", "id")
        time = _prompt(f"{name}: path to its time (- for none)", "-")
        made = StreamGuess(name, element, form)
        made.key = None if key == "-" else key
        made.time = None if time == "-" else time
        # Streams with the same key belong together: the shared value stands for their values.
        made.fields = {} if made.key is None else {made.key: [f"the {made.key}"]}
        streams.append(made)
    return streams


def _prompt(question: str, default: str) -> str:
    return str(typer.prompt(question, default=default)).strip()
