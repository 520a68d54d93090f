"""`/metrics` and `/health` of a running process.

    GET /metrics   Prometheus' text format 0.0.4
    GET /health    JSON: ok, degraded or failed, how far each view is behind and why; 200, or 503
                   once something has failed

Both are computed in a thread on request, so that a long batch delays the response and not the
server. Neither shows rows, messages or secrets. They show names of documents, streams, views and
connectors, so both need `read` on the server. Without it `/health` returns only the status, for
supervisors that restart a failed process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from axlog.connect.channels.registry import Channels
from axlog.live.document import Document
from axlog.live.metrics import document_health, documents_samples, process_samples
from axlog.reporting import CONTENT_TYPE, Health, Sample, counter, exposition, gauge, together
from axlog.runtime.health import Report
from axlog.server.access import Access
from axlog.server.application import Doorkeeper, Settings, refreshed
from axlog.server.operations import Operation
from axlog.server.responses import answer
from axlog.server.roles import SERVER, Principal
from axlog.server.server import running


class DocumentsReport:
    """Reports documents without a pipeline, and channels."""

    def __init__(
        self, documents: Mapping[str, Document] | None = None, channels: Channels | None = None
    ) -> None:
        self._documents = documents or {}
        self._channels = channels

    def samples(self) -> Iterator[Sample]:
        """Yield samples of the process, the documents and the channels."""
        yield from process_samples()
        yield from documents_samples(self._documents)
        yield from channel_samples(self._channels)

    def health(self) -> Health:
        """Return the health of all documents."""
        return together(document_health(name, each) for name, each in self._documents.items())


class Joined:
    """Reports a run, and the channels that are served beside it."""

    def __init__(self, run: Report, channels: Channels) -> None:
        self._run, self._channels = run, channels

    def samples(self) -> Iterator[Sample]:
        """Yield the samples of the run, then those of the channels."""
        yield from self._run.samples()
        yield from channel_samples(self._channels)

    def health(self) -> Health:
        """Return the health of the run."""
        return self._run.health()


def channel_samples(channels: Channels | None) -> Iterator[Sample]:
    """Yield the samples of channels."""
    for channel in () if channels is None else channels:
        at = {"channel": channel.name}
        yield counter("axlog_channel_entries_total", channel.last, "Updates published", **at)
        yield counter("axlog_channel_dropped_total", channel.dropped,
                      "Entries dropped before a named subscription acknowledged "
                      "them", **at)  # fmt: skip
        yield gauge("axlog_channel_subscriptions", channel.readers, "Open subscriptions", **at)


def operating_operations(report: Report, access: Access) -> list[Operation]:
    """Return the operations of a report."""

    async def metrics(request: Request, caller: Principal) -> Response:
        text = await asyncio.to_thread(lambda: exposition(report.samples()))
        return Response(text, media_type=CONTENT_TYPE)

    async def health(request: Request, caller: Principal) -> Response:
        found = together([await asyncio.to_thread(report.health), access.health()])
        body = found.plain() if caller.may("read", SERVER) else {"status": found.state.value}
        return answer(body, status=found.status)

    return [
        Operation("GET", "/metrics", "Metrics for Prometheus", metrics, answers=("text/plain",)),
        Operation("GET", "/health", "How far each view is behind, and why", health, "own"),
    ]


@contextmanager
def serving_report(report: Report, settings: Settings) -> Iterator[str]:
    """Serve only a report, in a thread, while the block runs; yield the address."""
    settings.check()
    access = settings.access
    app = Starlette(
        routes=[one.route(access) for one in operating_operations(report, access)],
        lifespan=lambda app: refreshed(access),
    )
    app.add_middleware(Doorkeeper, settings=settings)
    with running(app, settings) as address:
        yield address
