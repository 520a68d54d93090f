"""What verbs that run for long have in common: logs, stopping, and the report that they serve.

The first SIGTERM or SIGINT asks the run to stop: nothing more is taken, what was taken is finished
and delivered, and the exit code is 0. A second one ends the process at once, with 128 and its
number, as shells count; what was acknowledged is in the logs and checkpoints either way.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import INFO, getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axlog.cli import admission
from axlog.errors import SetupError
from axlog.reporting import FORMATS, LEVELS, configure_logs, report

if TYPE_CHECKING:
    from axlog.runtime.health import Report

LogFormat = Annotated[
    str | None,
    typer.Option(
        "--log-format",
        help="text or json: events, one a line on standard error; only warnings without it.",
    ),
]
LogLevel = Annotated[
    str, typer.Option("--log-level", help="debug, info, warning or error; with --log-format.")
]
Listen = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Serve /metrics and /health there; port 0 takes a free one."
    ),
]

_events = getLogger("axlog.process")


def set_up_logs(form: str | None, level: str) -> None:
    """Configure the events of this process: those asked for, else warnings as lines of text.

    Messages that are refused go to the dead letters and are counted: they are no lines by default.
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
    """SIGTERM and SIGINT stop what runs in the block; a second one ends the process at once."""
    asked = False

    def handle(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            os._exit(128 + number)
        asked = True
        report(_events, INFO, "stop asked", signal=signal.Signals(number).name)
        stop()

    before = {each: signal.signal(each, handle) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Stopping:
    """A stop that may be asked for before there is anything to stop."""

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
def reported(listen: str | None, said: Report, roles: Path | None = None) -> Iterator[None]:
    """Serve a report while the block runs, where one is asked for."""
    if listen is None:
        yield
        return
    host, _, port = listen.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter("HOST:PORT", param_hint="--listen")
    admitted = admission.admitted(roles, host)
    serving, settings = _server()
    with serving(said, settings(host=host, port=int(port), access=admitted.access)) as address:
        told = f"metrics at {address}/metrics, health at {address}/health"
        typer.echo(told, err=True)
        if admitted.token is not None:
            typer.echo(f"the token for them, shown once: {admitted.token}", err=True)
        yield


def _server() -> tuple[Any, Any]:
    try:
        from axlog.server.application import Settings
        from axlog.server.monitoring import serving_report
    except ImportError as error:
        raise SetupError(
            "AX901",
            f"the server is not there: {error}",
            advice="pip install 'axlog[server]', or leave out --listen",
        ) from None
    return serving_report, Settings
