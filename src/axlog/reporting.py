"""Reports of running components: events for logs, samples for metrics, and health.

This module and `errors` form the lowest layer. Every other layer may report and does not know the
receivers.

- An event is a short text with fields (`document`, `stream`, `view`, `seq`, ...), logged by
  the standard library's loggers below `axlog`. `configure_logs` is the only function that sets the
  destination and the format of events: text lines, or one JSON object per line.
- A sample is a number with a name and labels. `exposition` writes samples in the Prometheus text
  format 0.0.4. Components keep no counters for metrics alone: samples are read from their state
  when metrics are requested.
- `Durations` is the exception: it counts the durations of syncs and snapshots in buckets.
- `Health` states whether a component is ok, degraded or failed, how far each of its views is
  behind, and why.

Not handled: pushing metrics, traces, and the loggers of other libraries.
"""

from __future__ import annotations

import json
import logging
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import accumulate
from typing import IO, Any

ROOT = "axlog"
FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")


# Events -------------------------------------------------------------------------------------------


def report(logger: logging.Logger, level: int, event: str, **fields: object) -> None:
    """Log an event with its fields; omit fields that are None.

    >>> report(logging.getLogger("axlog.x"), logging.INFO, "opened", document="orders", seq=17)
    """
    if logger.isEnabledFor(level):
        given = {name: value for name, value in fields.items() if value is not None}
        logger.log(level, event, extra={"axlog_fields": given})


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, event and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= getattr(record, "axlog_fields", {})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class Words(logging.Formatter):
    """A text line: time, level, event, fields as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        fields = getattr(record, "axlog_fields", {})
        named = "".join(f" {name}={_word(value)}" for name, value in fields.items())
        line = f"{moment} {record.levelname.lower()} {record.getMessage()}{named}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _word(value: object) -> str:
    text = str(value)
    return text if text and not any(c.isspace() or c in "\"'=" for c in text) else json.dumps(text)


def configure_logs(
    form: str = "text",
    level: str = "warning",
    out: IO[str] | None = None,
    *,
    without: Collection[str] = (),
) -> None:
    """Write axlog's events to a stream (default: standard error) in one of `FORMATS`.

    Events named in `without` are omitted. A second call replaces the handler of the first. Handlers
    that other code installed stay.
    """
    logger = logging.getLogger(ROOT)
    for handler in list(logger.handlers):
        if isinstance(handler.formatter, JsonLines | Words):
            logger.removeHandler(handler)
    handler = logging.StreamHandler(out or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else Words())
    handler.addFilter(lambda record: record.getMessage() not in without)
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# Metrics ------------------------------------------------------------------------------------------


class Kind(StrEnum):
    """How the number of a sample develops over time."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Sample:
    """One number of a metric family; `suffix` distinguishes the parts of a histogram."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = Kind.GAUGE
    words: str = ""
    suffix: str = ""


def counter(name: str, value: float, words: str, **labels: str) -> Sample:
    """A number that never decreases."""
    return Sample(name, value, labels, Kind.COUNTER, words)


def gauge(name: str, value: float, words: str, **labels: str) -> Sample:
    """A number that may increase and decrease."""
    return Sample(name, value, labels, Kind.GAUGE, words)


class Durations:
    """Durations, counted in buckets; thread-safe."""

    BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

    def __init__(self) -> None:
        self.count, self.total, self.longest = 0, 0.0, 0.0
        self._buckets = [0] * (len(self.BOUNDS) + 1)

    def note(self, seconds: float) -> None:
        """Count one duration."""
        self.count += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)
        self._buckets[bisect_left(self.BOUNDS, seconds)] += 1

    def samples(self, name: str, words: str, **labels: str) -> Iterator[Sample]:
        """The durations as a histogram."""
        bounds = [*map(str, self.BOUNDS), "+Inf"]
        for bound, upto in zip(bounds, accumulate(self._buckets), strict=True):
            inside = {**labels, "le": bound}
            yield Sample(name, upto, inside, Kind.HISTOGRAM, words, "_bucket")
        yield Sample(name, self.total, labels, Kind.HISTOGRAM, words, "_sum")
        yield Sample(name, self.count, labels, Kind.HISTOGRAM, words, "_count")


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(samples: Iterable[Sample]) -> str:
    """Samples in the Prometheus text format, grouped by family, with help text and type."""
    families: dict[str, list[Sample]] = {}
    for sample in samples:
        families.setdefault(sample.name, []).append(sample)
    lines: list[str] = []
    for name, members in families.items():
        words = members[0].words.replace("\\", "\\\\").replace("\n", "\\n")
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {members[0].kind.value}"]
        lines += [f"{name}{s.suffix}{_labels(s.labels)} {_number(s.value)}" for s in members]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


# Health -------------------------------------------------------------------------------------------


class State(StrEnum):
    """The state of a component; the worst state of its parts is the state of the whole."""

    OK = "ok"
    DEGRADED = "degraded"  # it works, but is behind
    FAILED = "failed"  # it accepts no more input, or has stopped working


_WORSE = list(State)


@dataclass(frozen=True, slots=True)
class ViewHealth:
    """How far a view is behind its sources, as far as known, and why."""

    document: str
    view: str
    state: State
    position: int  # of its last change
    updates: int = 0  # accepted updates that its rows do not reflect yet
    undelivered: int = 0  # changes or batches that its readers have not received yet
    seconds: float = 0.0  # how long the oldest of these has waited
    reasons: tuple[str, ...] = ()
    truth: str | None = None  # true, possible or never; None: not decided
    never: tuple[str, ...] = ()  # why it can never have a row

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        never = {"never": list(self.never)} if self.never else {}
        return {
            "document": self.document,
            "view": self.view,
            "status": self.state.value,
            "position": self.position,
            "behind": {
                "updates": self.updates,
                "undelivered": self.undelivered,
                "seconds": round(self.seconds, 3),
            },
            "why": list(self.reasons),
            "truth": self.truth,
            **never,
        }


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a running process."""

    views: tuple[ViewHealth, ...] = ()
    failures: tuple[str, ...] = ()  # failures that concern no single view
    troubles: tuple[str, ...] = ()  # delays that concern no single view

    @property
    def state(self) -> State:
        """The worst state of all parts."""
        states = [view.state for view in self.views]
        states += [State.FAILED] if self.failures else []
        states += [State.DEGRADED] if self.troubles else []
        return max(states, key=_WORSE.index, default=State.OK)

    @property
    def status(self) -> int:
        """The HTTP status: 503 after a failure. A process that is behind still serves requests."""
        return 503 if self.state is State.FAILED else 200

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "status": self.state.value,
            "views": [view.plain() for view in self.views],
            "failures": list(self.failures),
            "troubles": list(self.troubles),
        }


def together(every: Iterable[Health]) -> Health:
    """The health of several components, combined."""
    known = list(every)
    return Health(
        tuple(view for each in known for view in each.views),
        tuple(each_one for each in known for each_one in each.failures),
        tuple(each_one for each in known for each_one in each.troubles),
    )
