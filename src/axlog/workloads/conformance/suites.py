"""The suites that the report runs, in its order. A suite gives its cases for the data's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from axlog.workloads.conformance import libxml2, qt3, xmark
from axlog.workloads.conformance.cases import Case

SUITES: tuple[Callable[[Path], Iterator[Case]], ...] = (qt3.cases, libxml2.cases, xmark.cases)
