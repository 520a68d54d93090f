"""Measure two or more sides in one run, so that noise from other processes affects them alike.

The work is split into chunks. In every round each side does a chunk before any side does the next
one. Two figures result: the sum over the chunks of the best round (`least`), and the sum of the
median rounds (`median`). It is the best of each chunk, not the best chunk, because chunks differ in
content. A side is created again for each round, because its state grows while it is measured.

Not handled: slow and fast phases of a machine that are longer than a run; compare ratios of one
run, never times of two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from axlog.errors import InputError

T = TypeVar("T")
Side: TypeAlias = Callable[[Sequence[T]], None]
"""Does a chunk of the work."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The time of one side per item, in microseconds."""

    least: float
    median: float


@dataclass(slots=True)
class Result:
    """The result of a benchmark: figures by name, ratios with their goals, sizes, remarks."""

    name: str
    about: str
    sizes: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    ratios: list[Ratio] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    pairs: list[dict[str, Any]] = field(default_factory=list)  # rows of a table, for JSON
    skipped: str | None = None  # the reason why it could not run

    def compare(
        self, what: str, costs: Mapping[str, Cost], over: str, under: str, goal: str = ""
    ) -> None:
        """Record both sides of a ratio, and the ratio by `least` and by `median`."""
        for side in (over, under):
            self.figures[f"{what}: {side}, us (least)"] = costs[side].least
            self.figures[f"{what}: {side}, us (median)"] = costs[side].median
        least = costs[over].least / costs[under].least
        middle = costs[over].median / costs[under].median
        self.ratios.append(Ratio(what, f"{over} / {under}", least, middle, goal))


class Parts:
    """The finished parts of a long benchmark, in a file; a finished part is not run again."""

    def __init__(self, path: Path | None = None, tell: Callable[[str], None] | None = None) -> None:
        """`tell` is called with the name of each part when it begins."""
        self._path, self._tell = path, tell
        self._done: dict[str, Any] = {}
        if path is not None and path.exists():
            try:
                for line in path.read_text(encoding="utf-8").splitlines():
                    one = json.loads(line)
                    self._done[one["part"]] = one["found"]
            except (KeyError, RecursionError, TypeError, ValueError) as error:
                raise InputError(
                    "AX103", f"{path} says no parts: {error}", advice="leave out --resume"
                ) from None

    def part(self, name: str, work: Callable[[], Any]) -> Any:
        """The result of a part, as JSON; computed and recorded unless it is in the file."""
        if name not in self._done:
            if self._tell is not None:
                self._tell(name)
            self._done[name] = work()
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"part": name, "found": self._done[name]}) + "\n")
        return self._done[name]


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over one axis: points (x, y) by the name of the line."""

    title: str
    x: str
    y: str
    lines: dict[str, list[tuple[float, float]]]
    log_x: bool = False
    log_y: bool = False
    note: str = ""  # a value to compare with, such as the paper's figure


@dataclass(frozen=True, slots=True)
class Ratio:
    """One side over the other."""

    what: str
    sides: str
    least: float
    median: float
    goal: str = ""


def interleave(
    sides: Mapping[str, Callable[[], Side[T]]],
    items: Sequence[T],
    chunk: int,
    rounds: int,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, Cost]:
    """The time of each side per item, measured chunk by chunk, alternating.

    `clock`: `process_time` for the processor time of this process.
    """
    chunks = [items[start : start + chunk] for start in range(0, len(items), chunk)]
    times: dict[str, list[list[float]]] = {name: [[] for _ in chunks] for name in sides}
    for number in range(rounds):
        made = [(name, make()) for name, make in sides.items()]
        if number % 2:
            made.reverse()  # no side always goes first
        for at, part in enumerate(chunks):
            for name, side in made:
                start = clock()
                side(part)
                times[name][at].append(clock() - start)
    return {name: _cost(each, len(items)) for name, each in times.items()}


def _cost(times: list[list[float]], count: int) -> Cost:
    scale = 1e6 / max(count, 1)
    return Cost(scale * sum(map(min, times)), scale * sum(map(median, times)))
