"""Traces and metrics for OpenTelemetry, where it is enabled (the extra `telemetry`).

A run records these spans, with the numbers and names of documents, sources and sinks, never with
contents of messages:

    axlog.read                  one read of a source that brought updates
    axlog.batch                 one batch; links to the reads whose updates it has
      axlog.checkpoint          writing its decision to disk
      axlog.apply               applying it to the documents and views
      axlog.deliver             writing its changes to one sink

`enable` uses the tracer of the process, whoever configured it (`opentelemetry-instrument`, or the
program that embeds axlog). `exported` configures one that exports by OTLP, as the environment says
(`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, ...), and exports the samples of a report as
metrics. Without either, a span costs one comparison.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from axlog.extras import import_extra
from axlog.reporting import Kind, Sample

_NOTHING: AbstractContextManager[Any] = nullcontext()
_tracer: Any = None


def enable(provider: Any = None) -> None:
    """Record spans with a tracer provider; None: that of the process."""
    global _tracer
    trace = import_extra("opentelemetry.trace")
    _tracer = trace.get_tracer("axlog", tracer_provider=provider)


def disable() -> None:
    """Record no more spans."""
    global _tracer
    _tracer = None


def is_enabled() -> bool:
    """Whether spans are recorded."""
    return _tracer is not None


def now() -> int:
    """The time for `finished`, in nanoseconds; 0 if no spans are recorded."""
    return time.time_ns() if _tracer is not None else 0


def span(name: str, links: Iterable[Any] = (), **fields: object) -> AbstractContextManager[Any]:
    """Record the block as a span; its links are results of `finished`."""
    if _tracer is None:
        return _NOTHING
    trace = import_extra("opentelemetry.trace")
    linked = [trace.Link(context) for context in links]
    found: AbstractContextManager[Any] = _tracer.start_as_current_span(
        name, links=linked, attributes=_attributes(fields)
    )
    return found


def finished(name: str, began: int, **fields: object) -> Any:
    """Record a span that has ended, and return its context for links; None if none is recorded."""
    if _tracer is None:
        return None
    made = _tracer.start_span(name, start_time=began, attributes=_attributes(fields))
    made.end()
    return made.get_span_context()


def _attributes(fields: Mapping[str, object]) -> dict[str, Any]:
    named = {f"axlog.{name}": value for name, value in fields.items() if value is not None}
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in named.items()
    }


# Exports ------------------------------------------------------------------------------------------


@contextmanager
def exported(
    samples: Callable[[], Iterable[Sample]],
    *,
    spans: Any = None,
    reader: Any = None,
) -> Iterator[None]:
    """Export spans and metrics while the block runs.

    `spans` and `reader` are an exporter of spans and a reader of metrics of OpenTelemetry; None:
    OTLP over HTTP, as the environment configures it.
    """
    sdk = import_extra("opentelemetry.sdk.trace")
    processing = import_extra("opentelemetry.sdk.trace.export")
    measuring = import_extra("opentelemetry.sdk.metrics")
    collecting = import_extra("opentelemetry.sdk.metrics.export")
    resources = import_extra("opentelemetry.sdk.resources")
    otlp = "opentelemetry.exporter.otlp.proto.http"
    if spans is None:
        spans = import_extra(f"{otlp}.trace_exporter").OTLPSpanExporter()
    if reader is None:
        metrics = import_extra(f"{otlp}.metric_exporter").OTLPMetricExporter()
        reader = collecting.PeriodicExportingMetricReader(metrics)
    resource = resources.Resource.create({"service.name": "axlog"}).merge(
        resources.OTELResourceDetector().detect()  # OTEL_SERVICE_NAME comes before ours
    )
    tracers = sdk.TracerProvider(resource=resource)
    tracers.add_span_processor(processing.BatchSpanProcessor(spans))
    meters = measuring.MeterProvider(metric_readers=[reader], resource=resource)
    _measure(meters.get_meter("axlog"), samples)
    enable(tracers)
    try:
        yield
    finally:
        disable()
        tracers.shutdown()
        meters.shutdown()


def _measure(meter: Any, samples: Callable[[], Iterable[Sample]]) -> None:
    """Make an instrument for each metric of a report; of histograms, for their sum and count."""
    observation = import_extra("opentelemetry.metrics").Observation
    read = _Recent(samples)
    for name, first in {_instrument(one): one for one in read()}.items():
        if first.suffix == "_bucket":
            continue

        def observe(options: object, name: str = name) -> list[Any]:
            found = [one for one in read(options) if _instrument(one) == name]
            return [observation(one.value + 0, dict(one.labels)) for one in found]  # no truths

        make = (
            meter.create_observable_gauge
            if first.kind is Kind.GAUGE
            else meter.create_observable_counter
        )
        make(name, callbacks=[observe], description=first.words)


def _instrument(sample: Sample) -> str:
    return sample.name + sample.suffix


class _Recent:
    """The samples of a report, read once for an export: every instrument asks for its own.

    All instruments of an export get the same options.
    """

    def __init__(self, samples: Callable[[], Iterable[Sample]]) -> None:
        self._samples = samples
        self._options: object = None
        self._known: list[Sample] = []

    def __call__(self, options: object = None) -> list[Sample]:
        if options is None or options is not self._options:
            self._options, self._known = options, list(self._samples())
        return self._known
