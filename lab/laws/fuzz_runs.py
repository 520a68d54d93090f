"""Runs of the fuzzer: many cases of one law or of all, in several processes, resumable.

A run is a start seed and a number of cases for each law; with all laws, a total that is divided by
their shares. It is split into chunks of seeds, the laws in turn, so that a run that is stopped
early has covered all of them evenly. Finished chunks are recorded in a file (`State`), written
beside and renamed, so that a killed run loses a few seconds of work and never its file; `resume`
continues with the rest. The process and the order of a chunk have no effect.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, process_time
from typing import Any

import axlog
from axlog.errors import InputError
from lab.laws.fuzzing import LAWS, Failure, run_case
from lab.laws.table import PARTS

CHUNK = 50
"""Seeds that a process takes at a time."""
SAVE_EVERY = 5.0
"""Seconds between two writings of the state's file."""
_FORMAT = 1


@dataclass(slots=True)
class LawRun:
    """The chunks of one law, and its progress."""

    cases: int
    done: list[list[int]] = field(default_factory=list)  # [first, past the last], merged
    seconds: float = 0.0  # of the processor
    failures: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)  # comparisons, by name

    @property
    def count(self) -> int:
        """The number of cases that were run."""
        return sum(stop - start for start, stop in self.done)

    def note(self, start: int, stop: int) -> None:
        """Record a finished chunk."""
        merged: list[list[int]] = []
        for one in sorted([*self.done, [start, stop]]):
            if merged and one[0] <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], one[1])
            else:
                merged.append(list(one))
        self.done = merged

    def has(self, start: int, stop: int) -> bool:
        return any(first <= start and stop <= past for first, past in self.done)


@dataclass(slots=True)
class State:
    """A run, as recorded in its file."""

    seed: int
    laws: dict[str, LawRun]
    commits: list[str] = field(default_factory=list)  # of the source, for each part of the run
    version: str = axlog.__version__
    seconds: float = 0.0  # by the clock, over all parts of the run

    @property
    def total(self) -> int:
        return sum(law.cases for law in self.laws.values())

    @property
    def count(self) -> int:
        return sum(law.count for law in self.laws.values())

    @property
    def failures(self) -> int:
        return sum(len(law.failures) for law in self.laws.values())

    def chunks(self) -> Iterator[tuple[str, int, int]]:
        """The remaining chunks: the laws in turn, at the same pace."""
        every: list[tuple[float, str, int, int]] = []
        for name, law in self.laws.items():
            for start in range(0, law.cases, CHUNK):
                stop = min(start + CHUNK, law.cases)
                seeds = (self.seed + start, self.seed + stop)
                if not law.has(*seeds):
                    every.append((stop / law.cases, name, *seeds))
        for _, name, start, stop in sorted(every):
            yield name, start, stop

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        laws = {
            name: {
                "says": LAWS[name].says,
                "cases": law.count,
                "of": law.cases,
                "seeds": law.done,
                "failures": len(law.failures),
                "seconds": round(law.seconds, 1),
                "failed": law.failures,
                "seen": dict(sorted((str(key), count) for key, count in law.seen.items())),
            }
            for name, law in self.laws.items()
        }
        return {
            "axlog-fuzz": _FORMAT,
            "version": self.version,
            "commits": self.commits,
            "seed": self.seed,
            "cases": self.count,
            "of": self.total,
            "failures": self.failures,
            "seconds": round(self.seconds, 1),
            "laws": laws,
        }

    def save(self, path: Path) -> None:
        """Write the file atomically."""
        beside = path.with_name(f"{path.name}.new")
        with beside.open("w", encoding="utf-8") as file:
            json.dump(self.plain(), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    @classmethod
    def load(cls, path: Path) -> State:
        """The state in a file."""
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            if said["axlog-fuzz"] != _FORMAT:
                raise ValueError(f"format {said['axlog-fuzz']}")
            laws = {name: _law_of(each) for name, each in said["laws"].items() if name in LAWS}
            commits = [str(each) for each in said["commits"]]
            found = cls(int(said["seed"]), laws, commits, str(said["version"]))
            found.seconds = float(said["seconds"])
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise InputError(
                "AX103", f"{path} says no run of the fuzzer: {error}", advice="leave out --resume"
            ) from None
        return found


def _law_of(said: Mapping[str, Any]) -> LawRun:
    done = [[int(start), int(stop)] for start, stop in said["seeds"]]
    failed, seen = [str(each) for each in said["failed"]], Counter(said.get("seen", {}))
    return LawRun(int(said["of"]), done, float(said["seconds"]), failed, seen)


def new_run(law: str, cases: int, seed: int) -> State:
    """A run of a law with its parts, or of `all`: `cases` in total, at least one of each law."""
    names = tuple(LAWS) if law == "all" else PARTS.get(law, (law,))
    whole = sum(LAWS[name].share for name in names)
    rest = max(0, cases - len(names))
    dealt = {name: 1 + rest * LAWS[name].share // whole for name in names}
    most = max(dealt, key=lambda name: dealt[name])
    dealt[most] += max(0, cases - sum(dealt.values()))
    return State(seed, {name: LawRun(count) for name, count in dealt.items()})


def commit_of_source() -> str | None:
    """The commit of this source; None where it is installed without one."""
    here = Path(__file__).resolve().parents[2]
    if not (here / ".git").exists():
        return None
    command = ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() or None


# Running ------------------------------------------------------------------------------------------


def run_chunk(law: str, start: int, stop: int) -> tuple[list[Failure], float, Counter[str]]:
    """The failures for some seeds, their processor time in seconds, and what was compared."""
    began, seen = process_time(), Counter[str]()
    found = [f for seed in range(start, stop) if (f := run_case(seed, law, seen)) is not None]
    return found, process_time() - began, seen


def run(state: State, jobs: int = 1, file: Path | None = None) -> Iterator[list[Failure]]:
    """Continue a run; yield the failures after each chunk. The file is kept up to date."""
    commit = commit_of_source()
    if commit is not None and commit not in state.commits:
        state.commits.append(commit)
    saved = began = monotonic()
    before = state.seconds
    try:
        for name, start, stop, (failures, seconds, seen) in _results(state, jobs):
            law = state.laws[name]
            law.seen.update(seen)
            law.note(start, stop)
            law.seconds += seconds
            law.failures += [str(failure) for failure in failures]
            state.seconds = before + monotonic() - began
            if file is not None and (failures or monotonic() - saved > SAVE_EVERY):
                state.save(file)
                saved = monotonic()
            yield failures
    finally:
        if file is not None:
            state.save(file)


Chunk = tuple[list[Failure], float, Counter[str]]
Result = tuple[str, int, int, Chunk]


def _results(state: State, jobs: int) -> Iterator[Result]:
    if jobs == 1:
        for chunk in state.chunks():
            yield (*chunk, run_chunk(*chunk))
        return
    # Fresh processes: a forked one would share the progress display's thread and locks.
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, fresh)
    try:
        yield from _shared(pool, state.chunks(), 2 * jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def _shared(
    pool: ProcessPoolExecutor, chunks: Iterator[tuple[str, int, int]], most: int
) -> Iterator[Result]:
    under_way: dict[Future[Chunk], tuple[str, int, int]] = {}
    while True:
        while len(under_way) < most and (chunk := next(chunks, None)) is not None:
            under_way[pool.submit(run_chunk, *chunk)] = chunk
        if not under_way:
            return
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            yield (*under_way.pop(future), future.result())
