"""The suites that the report runs, in its order; one whose data is not given is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.conformance import libxml2, patching, qt3, update, xmark
from lab.conformance.cases import Case, Result, run


@dataclass(frozen=True, slots=True)
class Suite:
    """Where a suite's data lies, and what came of its cases."""

    name: str
    folder: Path
    results: Callable[[Path], Iterable[Result]]


def _running(cases: Callable[[Path], Iterator[Case]]) -> Callable[[Path], Iterable[Result]]:
    return lambda data: map(run, cases(data))


SUITES = (
    Suite("QT3", Path(qt3.FOLDER), _running(qt3.cases)),
    Suite("libxml2", libxml2.FOLDER, _running(libxml2.cases)),
    Suite("XPathMark", Path(xmark.FOLDER), _running(xmark.cases)),
    Suite("XQuery Update", Path(update.FOLDER), update.results),
    Suite("RFC 5261", patching.FOLDER, patching.results),
)


def given(data: Path) -> list[Suite]:
    """The suites that this data has."""
    return [suite for suite in SUITES if (data / suite.folder).is_dir()]
