"""Shared by the verbs that run for long: logs, stopping, and the served metrics and health.

The first SIGTERM or SIGINT stops the run gracefully: it accepts no more input, finishes and
delivers the input that it accepted, and exits with 0. A second signal ends the process at once with
exit code 128 plus the signal's number. Acknowledged data is in the logs and checkpoints either way.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from logging import INFO, getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axlog.cli import admission
from axlog.errors import SetupError
from axlog.reporting import FORMATS, LEVELS, configure_logs, report
from axlog.telemetry import exported

if TYPE_CHECKING:
    from axlog.runtime.health import Report

LogFormat = Annotated[
    str | None,
    typer.Option(
        "--log-format",
        help="Write events to standard error, one per line: text or json (default: warnings "
        "only, as text).",
    ),
]
LogLevel = Annotated[
    str,
    typer.Option(
        "--log-level",
        help="Lowest level to write: debug, info, warning or error. Needs --log-format.",
    ),
]
Listen = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Serve /metrics and /health at this address; port 0 chooses a free port.",
    ),
]

Telemetry = Annotated[
    bool,
    typer.Option(
        "--telemetry",
        help="Export traces and metrics with OpenTelemetry, as OTEL_EXPORTER_OTLP_ENDPOINT says.",
    ),
]

events = getLogger("axlog.cli")


def set_up_logs(form: str | None, level: str) -> None:
    """Configure the log of this process: as requested, otherwise warnings as lines of text.

    Rejected messages are counted and go to the dead letters. By default they are not logged.
    """
    if level not in LEVELS:
        raise typer.BadParameter(" or ".join(LEVELS), param_hint="--log-level")
    if form is None:
        configure_logs("text", "warning", without=("refused",))
        return
    if form not in FORMATS:
        raise typer.BadParameter(" or ".join(FORMATS), param_hint="--log-format")
    configure_logs(form, level)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop the block on SIGTERM or SIGINT; a second signal ends the process at once."""
    asked = False

    def handle(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            os._exit(128 + number)
        asked = True
        report(events, INFO, "stop requested", signal=signal.Signals(number).name)
        stop()

    before = {each: signal.signal(each, handle) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Stopping:
    """A stop request that may arrive before there is anything to stop."""

    def __init__(self) -> None:
        self._is_asked = False
        self._stop: Callable[[], None] | None = None

    def ask(self) -> None:
        self._is_asked = True
        if self._stop is not None:
            self._stop()

    def of(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        if self._is_asked:
            stop()


@contextmanager
def reported(listen: str | None, report: Report, roles: Path | None = None) -> Iterator[None]:
    """Serve a report while the block runs, if an address was given."""
    if listen is None:
        yield
        return
    host, _, port = listen.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter("HOST:PORT", param_hint="--listen")
    admitted = admission.admitted(roles, host)
    serving, settings = _server()
    with serving(report, settings(host=host, port=int(port), access=admitted.access)) as address:
        addresses = f"metrics at {address}/metrics, health at {address}/health"
        typer.echo(addresses, err=True)
        if admitted.token is not None:
            typer.echo(f"token for metrics and health (shown once): {admitted.token}", err=True)
        yield


def telemetry(asked: bool, report: Report) -> AbstractContextManager[None]:
    """Export traces and the metrics of a report while the block runs, if it was asked for."""
    return exported(report.samples) if asked else nullcontext()


def _server() -> tuple[Any, Any]:
    try:
        from axlog.server.application import Settings
        from axlog.server.monitoring import serving_report
    except ImportError as error:
        raise SetupError(
            "AX901",
            f"the server is not installed: {error}",
            advice="pip install 'axlog[server]', or leave out --listen",
        ) from None
    return serving_report, Settings
