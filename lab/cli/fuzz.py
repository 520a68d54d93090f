"""`python -m lab fuzz`: check the laws on random cases, by ranges of seeds.

A run resumes where another stopped (`--resume FILE`, or `--seed`) and can use several processes
(`--jobs`). A case is what one seed draws: several queries over one document in some laws (twelve in
`aggregates`, four on each of three documents in `xquery`, `nested` and `saxon`). A failing case is
reduced and written as a fixture file for `tests/fixtures/`, or as the case prints itself if its law
has no fixtures.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from axlog.cli import options
from axlog.cli.output import Lines, is_json
from axlog.errors import InputError
from lab.laws.fuzz_runs import State, new_run, run
from lab.laws.fuzzing import LAWS, Failure
from lab.laws.questions import QUESTIONS

SAY_EVERY = 60.0
"""Seconds between two progress lines without a terminal."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "fuzz",
        epilog="Example: python -m lab fuzz --cases 1000000 --law all --jobs 2 --resume fuzz.json",
        help="Check the laws on random cases; a failing case is reduced and written to a file.\n\n"
        + "\n\n".join(f"{name}: {law.says}" for name, law in LAWS.items()),
    )(fuzz)


def fuzz(
    cases: Annotated[
        int,
        typer.Option(help="Number of cases; with --law all, of all laws together.", min=1),
    ] = 1000,
    law: Annotated[str, typer.Option(help=f"all, or one of {', '.join(LAWS)}.")] = "1",
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    stop_after: Annotated[int, typer.Option(help="Stop after this many failures.", min=1)] = 5,
    resume: Annotated[
        Path | None,
        typer.Option(help="A file that records finished seeds; if it exists, resume its run."),
    ] = None,
    into: Annotated[Path | None, typer.Option(help="Directory for the files of failing cases.")] = (
        None
    ),
    json: options.Json = None,
) -> None:
    """Run the laws."""
    if law != "all" and law not in LAWS:
        raise InputError(
            "AX103", f"there is no law {law!r}", expected=f"all, or one of {', '.join(LAWS)}"
        )
    if resume is not None and resume.exists():
        state = State.load(resume)
    else:
        state = new_run(law, cases, seed)
    before = state.failures
    _run(state, jobs, before + stop_after, resume, into)
    _tell(state, json)
    if state.failures:
        raise typer.Exit(1)


def _run(state: State, jobs: int, most: int, file: Path | None, into: Path | None) -> None:
    console = Console(stderr=True)
    began, done, said = monotonic(), state.count, monotonic()
    with Progress(
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} cases/s"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("cases", total=state.total, completed=done, rate="")
        running = run(state, jobs, file)
        try:
            for failures in running:
                for failure in failures:
                    _write(failure, into)
                rate = (state.count - done) / max(monotonic() - began, 0.001)
                progress.update(task, completed=state.count, rate=f"{rate:,.0f}")
                if not console.is_terminal and monotonic() - said > SAY_EVERY:
                    said = monotonic()
                    typer.echo(_in_words(state, rate), err=True)
                if state.failures >= most:
                    break
        except KeyboardInterrupt:
            typer.echo(f"stopped; {_go_on(state, file)}", err=True)
        finally:
            running.close()  # type: ignore[attr-defined]  # a generator: its file is written


def _in_words(state: State, rate: float) -> str:
    left = (state.total - state.count) / rate if rate else 0.0
    return (
        f"{state.count:,} of {state.total:,} cases, {rate:,.0f}/s,"
        f" {left / 60:,.0f} minutes left, {state.failures} failures"
    )


def _go_on(state: State, file: Path | None) -> str:
    if file is not None:
        return f"go on with --resume {file}"
    last = max(law.done[-1][1] if law.done else state.seed for law in state.laws.values())
    return f"go on with --seed {last}"


def _tell(state: State, json: bool | None) -> None:
    said = state.plain()
    if is_json(json):
        lines = Lines()
        for name, law in said.pop("laws").items():
            del law["failed"]
            asked = law.pop("seen").get(QUESTIONS)
            lines.thing({"law": name, **law, **({} if asked is None else {QUESTIONS: asked})})
        lines.thing(said)
        return
    for name, law in said["laws"].items():
        ranges = ", ".join(f"{start} to {stop - 1}" for start, stop in law["seeds"]) or "none"
        asked = law["seen"].get(QUESTIONS)
        questions = "" if asked is None else f" with {asked:,} questions"
        typer.echo(
            f"law {name}: {law['cases']:,} cases{questions}, seeds {ranges},"
            f" {law['failures']} failures"
        )
    typer.echo(
        f"{said['cases']:,} cases, {said['failures']} failures, {said['seconds']:,.0f} s,"
        f" axlog {said['version']}, commit {', '.join(said['commits']) or 'unknown'}"
    )


def _write(failure: Failure, into: Path | None) -> None:
    if into is None:
        typer.echo(failure.text(), err=True)
        return
    into.mkdir(parents=True, exist_ok=True)
    path = into / f"law-{failure.law}-seed-{failure.seed}.txt"
    path.write_text(failure.text(), encoding="utf-8")
    typer.echo(f"law {failure.law}, seed {failure.seed}: {path}", err=True)
