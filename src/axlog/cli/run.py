"""`axlog run PIPELINE`: run a pipeline file, on Spark or in this process, and show it on a page.

Progress is a table on a terminal, and JSON lines with `--progress json`. It goes to standard error,
because a sink may write to standard output. `/metrics` and `/health` are served beside the page, or
at the address of `--listen`; `--log-format` writes events. SIGTERM and SIGINT finish the current
batch; a second signal ends the process at once (`service.py`).

Exit codes: 0 if the run ended or was stopped; 2 for a pipeline or checkpoint that cannot run, a
missing extra, a port in use, and, with `--once`, a source or sink that stays unreachable after a
few retries. Without `--once` the run keeps retrying, logs a warning for every attempt, and
`/health` names the source or sink.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from logging import INFO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from axlog.cli import admission, live_page, service
from axlog.cli.check import missing
from axlog.errors import SetupError
from axlog.reporting import report

if TYPE_CHECKING:  # pydantic comes with the extra `pipeline`
    from axlog.pipeline.model import PipelineModel
    from axlog.runtime.progress import Progress


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run", epilog="Example: axlog run pipeline.yaml --engine embedded --once")(run)


def run(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline file.")],
    engine: Annotated[
        str | None,
        typer.Option(help="auto, spark or embedded (default: the engine that the file names)."),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(help="Spark: the cluster, such as spark://HOST:7077 (default: the file's)."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when the sources have no more data.")
    ] = False,
    seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds.", min=0.0)
    ] = None,
    progress: Annotated[
        str | None,
        typer.Option(help="table, json or none (default: table on a terminal, otherwise none)."),
    ] = None,
    page: Annotated[
        bool | None,
        typer.Option(
            "--page/--no-page", help="Serve the live page (default: yes, except with --once)."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port of the live page (default: 8040, or a free port).", min=0),
    ] = None,
    listen: service.Listen = None,
    roles: admission.Roles = None,
    telemetry: service.Telemetry = False,
    log_format: service.LogFormat = None,
    log_level: service.LogLevel = "info",
) -> None:
    """Run a pipeline: read its sources, maintain its views, deliver their changes to its sinks."""
    try:
        from axlog.pipeline.engines import choose
        from axlog.pipeline.loader import load
    except ImportError as error:
        raise missing(error) from None
    if engine not in (None, "auto", "spark", "embedded"):
        raise typer.BadParameter("auto, spark or embedded", param_hint="--engine")
    if progress not in (None, "table", "json", "none"):
        raise typer.BadParameter("table, json or none", param_hint="--progress")
    service.set_up_logs(log_format, log_level)
    model = load(pipeline)
    if master is not None and engine == "embedded":
        raise typer.BadParameter("the engine embedded has no master", param_hint="--master")
    asked = "spark" if master is not None else engine
    chosen = choose(model.engine, asked, model.embedded_for())
    if log_format == "json":
        report(service.events, INFO, "engine chosen", **chosen.plain())
    else:
        choice = json.dumps(chosen.plain()) if progress == "json" else str(chosen)
        typer.echo(choice, err=True)
    if page:
        live_page.need_server()
    is_shown = page if page is not None else not once and live_page.is_there()
    served = _Served(port if is_shown else _NO_PAGE, listen, roles, telemetry)
    with _shown(progress) as show:
        if chosen.engine == "embedded":
            found = _run_here(model, once, seconds, show, served)
        else:
            _run_on_spark(model, once, seconds, show, served, master)
            found = ""
    if found and once and "json" not in (progress, log_format):
        typer.echo(found, err=True)


def spark_engine() -> Any:
    """Return the engine that runs pipelines on Spark."""
    try:
        return import_module("axlog.spark.pipeline")
    except ImportError as error:
        raise SetupError(
            "AX901",
            f"the engine spark is not installed: {error}",
            advice="pip install 'axlog[spark]', or run with --engine embedded",
        ) from None


_NO_PAGE = -1
"""Used instead of a port: serve no page."""


@dataclass(frozen=True, slots=True)
class _Served:
    """The HTTP endpoints beside the run."""

    port: int | None  # of the page
    listen: str | None  # of metrics and health
    roles: Path | None
    telemetry: bool = False


def _run_on_spark(
    model: PipelineModel,
    once: bool,
    seconds: float | None,
    show: Callable[[Progress], None] | None,
    served: _Served,
    master: str | None,
) -> None:
    from axlog.runtime.health import ProgressReport

    engine = spark_engine()
    progress_report = ProgressReport(show)
    with ExitStack() as stack:
        stack.enter_context(service.reported(served.listen, progress_report, served.roles))
        stack.enter_context(service.telemetry(served.telemetry, progress_report))
        on_progress: Callable[[Progress], None] = progress_report
        more: dict[str, Any] = {}
        if served.port != _NO_PAGE:
            observed, take = live_page.reported(model, "spark")
            shown = live_page.page(observed, served.port, progress_report, served.roles)
            _echo(stack.enter_context(shown))
            more = {"on_report": take, "outlook": live_page.POSSIBLE}

            def on_progress(progress: Progress) -> None:
                observed.lagging, observed.held = list(progress.lagging), progress.held
                progress_report(progress)

        engine.run(
            model, once=once, seconds=seconds, on_progress=on_progress, master=master, **more
        )


def _echo(address: str) -> None:
    typer.echo(f"the live page is at {address}", err=True)


def _run_here(
    model: PipelineModel,
    once: bool,
    seconds: float | None,
    show: Callable[[Progress], None] | None,
    served: _Served,
) -> str:
    """Run in this process; return what to say if there were no messages."""
    from axlog.runtime.embedded import Runner
    from axlog.runtime.health import RunnerReport

    stopping = service.Stopping()
    with service.stopped_by_signals(stopping.ask):
        runner = Runner(model, once=once, on_progress=show)
        stopping.of(runner.stop)
        try:
            with ExitStack() as stack:
                progress_report = RunnerReport(runner)
                stack.enter_context(service.reported(served.listen, progress_report, served.roles))
                stack.enter_context(service.telemetry(served.telemetry, progress_report))
                if served.port != _NO_PAGE:
                    observed = live_page.observed(runner)
                    shown = live_page.page(observed, served.port, progress_report, served.roles,
                                           live_page.documents(runner))  # fmt: skip
                    _echo(stack.enter_context(shown))
                before = runner.batch
                runner.run(seconds)
                if runner.batch > before:
                    return ""
                if not before:
                    return "the sources have no messages"
                place = model.settings.checkpoint
                return f"no new messages since the last run; its state is in {place}"
        finally:
            runner.close()


@contextmanager
def _shown(asked: str | None) -> Iterator[Callable[[Progress], None] | None]:
    """Yield the callback that shows the progress of a run, if any."""
    console = Console(stderr=True)
    form = asked or ("table" if console.is_terminal else "none")
    if form == "none":
        yield None
    elif form == "json":
        yield _write_line
    else:
        with Live(console=console, refresh_per_second=4, transient=False) as live:
            yield lambda progress: live.update(_table(progress.plain()))


def _write_line(progress: Progress) -> None:
    sys.stderr.write(json.dumps(progress.plain(), ensure_ascii=False) + "\n")
    sys.stderr.flush()


def _table(figures: dict[str, Any]) -> Table:
    names = ("batch", "messages", "kept", "refused", "rows", "possible", "never", "state", "held")
    table = Table(*names, title=f"{figures['seconds']:.1f} s, state {figures['lives']}")
    table.add_row(*("?" if figures[name] is None else f"{figures[name]:,}" for name in names))
    for lagging in figures["lagging"]:
        table.caption = (
            f"lagging: {lagging['name']} for {lagging['seconds']} s"
            f" ({lagging['tries']} tries): {lagging['error'][:200]}"
        )
    return table
