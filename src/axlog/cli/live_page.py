"""Serve the live page of a run on this machine, if the server is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axlog.cli import admission
from axlog.errors import ChannelError, SetupError

if TYPE_CHECKING:  # starlette and uvicorn come with the extra `server`
    from axlog.pipeline.model import PipelineModel
    from axlog.runtime.embedded import Runner
    from axlog.runtime.health import Report
    from axlog.server.reports import Reported
    from axlog.server.summaries import Observed

PORT = 8040
POSSIBLE = 50
"""Possible rows that each bucket of a distributed run reports to the page."""


def observed(runner: Runner) -> Observed:
    """Return the page's model of a pipeline that runs in this process."""
    from axlog.server.pipelines import observe_runner

    return observe_runner(runner)


def documents(runner: Runner) -> dict[str, Any]:
    """Return the documents of a run to which views can be added."""
    from axlog.server.pipelines import single_documents

    return single_documents(runner)


def reported(model: PipelineModel, engine: str) -> tuple[Reported, Callable[[str, Any], None]]:
    """Return the page's model of a pipeline that runs elsewhere, and the callback for batch
    reports.
    """
    from axlog.runtime.replay import Replay
    from axlog.server.reports import BatchSummary, Outlook, Reported

    shown = Reported(model, engine, Replay(model))

    def take(document: str, report: Any) -> None:
        outlooks = {
            view: Outlook(one.count, one.rows, one.reason) for view, one in report.outlooks.items()
        }
        shown.take(
            BatchSummary(
                document,
                report.changes,
                report.refused,
                report.streams,
                report.state,
                report.microseconds,
                outlooks,
                report.batch,
            )
        )

    return shown, take


@contextmanager
def page(
    observed: Observed,
    port: int | None,
    report: Report | None = None,
    roles: Path | None = None,
    documents: MutableMapping[str, Any] | None = None,
) -> Iterator[str]:
    """Serve a page while the block runs, and yield a link to it.

    Without a port, use the default one, or any free one. With a report, also serve its metrics and
    health; with documents, let principals add views to them. Without roles the link signs in.
    """
    from axlog.connect.channels.registry import Channels
    from axlog.server.application import Settings, make_application
    from axlog.server.monitoring import operating_operations
    from axlog.server.page import page_operations
    from axlog.server.server import running

    admitted = admission.admitted(roles)
    operations = list(page_operations(observed, admitted.access, documents or ()))
    if report is not None:
        operations += operating_operations(report, admitted.access)

    def started(at: int) -> Any:
        settings = Settings(port=at, access=admitted.access)
        app = make_application(Channels(), settings, operations, documents=documents)
        return running(app, settings)

    try:
        opened = started(PORT if port is None else port)
        address = opened.__enter__()
    except ChannelError:
        if port is not None:
            raise
        opened = started(0)
        address = opened.__enter__()
    try:
        yield admitted.link(address)
    finally:
        opened.__exit__(None, None, None)


def is_there() -> bool:
    """Whether the server is installed."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("starlette", "uvicorn"))


def need_server() -> None:
    """Raise AX901 if the server is not installed."""
    if not is_there():
        raise SetupError(
            "AX901",
            "the live page needs the server",
            advice="pip install 'axlog[server]', or pass --no-page",
        )
