"""`axlog fuzz`: the laws on as many random cases as one likes, by ranges of seeds.

A run is a range of seeds: it goes on where another stopped (`--seed`), and can be shared between
processes (`--jobs`). What fails is cut down and written as a fixture file, ready for
`tests/fixtures/`.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from axlog.cli import options
from axlog.cli.output import Lines, is_json
from axlog.workloads.fixtures import fixture_of, write_fixture
from axlog.workloads.fuzzing import LAWS, Failure, run_case

CHUNK = 50  # seeds that a process takes at a time


class Law(StrEnum):
    """The laws of DESIGN section 8 that can be fuzzed."""

    EXACT = "1"
    BATCHES = "2"
    OUTLOOK = "4"
    TUNING = "5"
    IDLE = "8"
    RECORDS = "records"
    ALL = "all"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("fuzz", epilog="Example: axlog fuzz --cases 100000 --law 1 --seed 50000 --jobs 2")(
        fuzz
    )


def fuzz(
    cases: Annotated[int, typer.Option(help="How many cases of each law.", min=1)] = 1000,
    law: Annotated[
        Law,
        typer.Option(
            help="1 rows are exact, 2 batches, 4 truth and relevance by brute force,"
            " 8 idle updates cost nothing, records siblings and reverse axes, or all."
        ),
    ] = Law.EXACT,
    seed: Annotated[int, typer.Option(help="The first seed; a later run goes on from it.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    stop_after: Annotated[int, typer.Option(help="Stop after so many failures.", min=1)] = 5,
    into: Annotated[
        Path | None, typer.Option(help="Directory for the fixture files of failing cases.")
    ] = None,
    json: options.Json = None,
) -> None:
    """Run the laws on random cases; a case that fails is cut down and printed as a fixture file."""
    failures = 0
    for name in sorted(LAWS) if law is Law.ALL else [law.value]:
        done, found = _run(name, range(seed, seed + cases), jobs, stop_after)
        failures += len(found)
        for failure in found:
            _write(failure, into)
        said = {"law": name, "seeds": [seed, seed + done], "cases": done, "failures": len(found)}
        if is_json(json):
            Lines().thing(said)
        else:
            typer.echo(
                f"law {name}: {done:,} cases, seeds {seed} to {seed + done - 1},"
                f" {len(found)} failures; go on with --seed {seed + done}"
            )
    if failures:
        raise typer.Exit(1)


def _run(law: str, seeds: range, jobs: int, stop_after: int) -> tuple[int, list[Failure]]:
    """How many cases were run, and the failures among them."""
    console = Console(stderr=True)
    found: list[Failure] = []
    done = 0
    with Progress(
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(f"law {law}", total=len(seeds))
        try:
            for size, failures in _chunks(law, seeds, jobs):
                done += size
                found += failures
                progress.update(task, completed=done)
                if len(found) >= stop_after:
                    break
        except KeyboardInterrupt:
            typer.echo(f"stopped; go on with --law {law} --seed {seeds.start + done}", err=True)
    return done, found


def _chunks(law: str, seeds: range, jobs: int) -> Iterator[tuple[int, list[Failure]]]:
    """The results of one chunk of seeds after the other, in their order."""
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    # Fresh processes: a forked one would share the progress display's thread and locks.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, fresh) if jobs > 1 else nullcontext() as pool:
        run = map if pool is None else pool.map
        results = run(_run_chunk, [law] * len(chunks), chunks)
        for chunk, failures in zip(chunks, results, strict=True):
            yield len(chunk), failures


def _run_chunk(law: str, seeds: range) -> list[Failure]:
    return [failure for seed in seeds if (failure := run_case(seed, law)) is not None]


def _write(failure: Failure, into: Path | None) -> None:
    text = write_fixture(fixture_of(failure.case, str(failure)))
    if into is None:
        typer.echo(text)
        return
    into.mkdir(parents=True, exist_ok=True)
    path = into / f"law-{failure.law}-seed-{failure.seed}.txt"
    path.write_text(text, encoding="utf-8")
    typer.echo(f"law {failure.law}, seed {failure.seed}: {path}", err=True)
