"""`/metrics` and `/health`: what a running process says to those who operate it.

    GET /metrics   Prometheus' text format 0.0.4
    GET /health    JSON: ok, degraded or failed, how far each view is behind and why; 200, or 503
                   once something has failed

Both are worked out in a thread when they are asked for, so a widget in the middle of a batch delays
the answer and not the server. Neither shows rows, messages or secrets; names of widgets, streams,
views and connectors are shown, so both need `read` on the server. Without it `/health` says the
status alone, for those who restart what has failed.
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
from axlog.live.metrics import process_samples, widget_health, widgets_samples
from axlog.reporting import CONTENT_TYPE, Health, Sample, counter, exposition, gauge, together
from axlog.runtime.health import Report
from axlog.server.access import Access
from axlog.server.application import Doorkeeper, Settings, refreshed
from axlog.server.operations import Operation
from axlog.server.responses import answer
from axlog.server.roles import SERVER, Principal
from axlog.server.server import running


class WidgetsReport:
    """Widgets that no pipeline runs, and channels."""

    def __init__(
        self, widgets: Mapping[str, Document] | None = None, channels: Channels | None = None
    ) -> None:
        self._widgets = widgets or {}
        self._channels = channels

    def samples(self) -> Iterator[Sample]:
        """Process, widgets, channels."""
        yield from process_samples()
        yield from widgets_samples(self._widgets)
        yield from channel_samples(self._channels)

    def health(self) -> Health:
        """The health of all widgets."""
        return together(widget_health(name, each) for name, each in self._widgets.items())


class Joined:
    """A run, and the channels that are served beside it."""

    def __init__(self, run: Report, channels: Channels) -> None:
        self._run, self._channels = run, channels

    def samples(self) -> Iterator[Sample]:
        """Those of the run, then the channels'."""
        yield from self._run.samples()
        yield from channel_samples(self._channels)

    def health(self) -> Health:
        """The run's."""
        return self._run.health()


def channel_samples(channels: Channels | None) -> Iterator[Sample]:
    """The numbers of channels."""
    for channel in () if channels is None else channels:
        at = {"channel": channel.name}
        yield counter("axlog_channel_entries_total", channel.last, "Updates published", **at)
        yield counter("axlog_channel_dropped_total", channel.dropped,
                      "Entries that left before a named subscription had them", **at)  # fmt: skip
        yield gauge("axlog_channel_subscriptions", channel.readers, "Open subscriptions", **at)


def operating_operations(report: Report, access: Access) -> list[Operation]:
    """The operations of a report."""

    async def metrics(request: Request, who: Principal) -> Response:
        text = await asyncio.to_thread(lambda: exposition(report.samples()))
        return Response(text, media_type=CONTENT_TYPE)

    async def health(request: Request, who: Principal) -> Response:
        found = together([await asyncio.to_thread(report.health), access.health()])
        said = found.plain() if who.may("read", SERVER) else {"status": found.state.value}
        return answer(said, status=found.status)

    return [
        Operation("GET", "/metrics", "Numbers for Prometheus", metrics, answers=("text/plain",)),
        Operation("GET", "/health", "How far each view is behind, and why", health, "own"),
    ]


@contextmanager
def serving_report(report: Report, settings: Settings) -> Iterator[str]:
    """Serve a report alone, in a thread, while the block runs; gives the address."""
    settings.check()
    access = settings.access
    app = Starlette(
        routes=[one.route(access) for one in operating_operations(report, access)],
        lifespan=lambda app: refreshed(access),
    )
    app.add_middleware(Doorkeeper, settings=settings)
    with running(app, settings) as address:
        yield address
