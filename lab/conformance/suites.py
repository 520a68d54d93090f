"""The suites of the report, in its order; a suite without data is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.conformance import libxml2, patching, qt3, update, xmark
from lab.conformance.cases import Case, Result, run


@dataclass(frozen=True, slots=True)
class Suite:
    """The location of a suite's data, and the outcomes of its cases."""

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
    """Return the suites that this data has."""
    return [suite for suite in SUITES if (data / suite.folder).is_dir()]
