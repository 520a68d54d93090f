"""`axlog serve`: serve channels over HTTP; with a pipeline file, also its channels, views and page.

A roles file defines what each principal may do (`--roles`, see `server/roles.py`). Without it the
server listens on loopback only, and the token of its one administrator is generated and shown once.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axlog.cli import admission, service
from axlog.cli.check import missing
from axlog.errors import AxlogError

if TYPE_CHECKING:
    from axlog.runtime.embedded import Runner
    from axlog.runtime.health import Report


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("serve", epilog="Example: axlog serve --channel orders --directory channels")(serve)


def serve(
    pipeline: Annotated[
        str | None,
        typer.Argument(metavar="[PIPELINE]", help="A pipeline to run in the same process."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 chooses a free port.", min=0)
    ] = 8040,
    channel: Annotated[
        list[str] | None, typer.Option(help="A channel to create; repeatable.")
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(help="Directory for the journals of channels and the members of families."),
    ] = None,
    roles: admission.Roles = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="Serve TLS with this certificate and its chain (PEM file).")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="The key of the certificate (PEM file).")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="A private host or network that webhooks may call; repeatable."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds.", min=0.0)
    ] = None,
    telemetry: service.Telemetry = False,
    log_format: service.LogFormat = None,
    log_level: service.LogLevel = "info",
) -> None:
    """Serve channels (publish, read, follow, filters, webhooks), /metrics and /health."""
    service.set_up_logs(log_format, log_level)
    try:
        from axlog.connect.channels.registry import Channels
        from axlog.connect.http import Allowance
        from axlog.runtime.health import RunnerReport
        from axlog.server.application import Settings, make_application
        from axlog.server.monitoring import DocumentsReport, Joined, operating_operations
        from axlog.server.page import page_operations
        from axlog.server.pipelines import observe_runner, published_families, single_documents
        from axlog.server.server import Serving, listening
    except ImportError as error:
        raise missing(error) from None
    admitted = admission.admitted(roles, host)
    access = admitted.access
    settings = Settings(
        host=host,
        port=port,
        access=access,
        certificate=None if tls_cert is None else str(tls_cert),
        key=None if tls_key is None else str(tls_key),
        allowance=Allowance(hosts=tuple(allow or ())),
    )
    settings.check()
    channels = Channels(directory)
    for name in channel or ():
        channels.make(name)
    stopping = service.Stopping()
    with service.stopped_by_signals(stopping.ask), admission.reloaded_by_signal(access):
        runner = None if pipeline is None else _runner(pipeline, channels)
        bound = listening(settings)
        documents = {} if runner is None else single_documents(runner)
        report: Report
        published = {} if runner is None else published_families(runner)
        if runner is None:
            report = DocumentsReport({}, channels)
        else:
            report = Joined(RunnerReport(runner), channels)
        more = operating_operations(report, access)
        if runner is not None:
            more += page_operations(observe_runner(runner), access, documents)
        app = make_application(channels, settings, more, documents=documents, families=published)
        server = Serving(app, bound, settings)
        stopping.of(server.stop)
        named = f"[{host}]" if ":" in host else host
        address = f"{settings.scheme}://{named}:{bound.getsockname()[1]}"
        typer.echo(f"serving {len(channels)} channels at {address}")
        _show_token(admitted, address, has_page=runner is not None)
        work = None if runner is None else Thread(target=_work, args=(runner,), daemon=True)
        try:
            if work is not None:
                work.start()
            with service.telemetry(telemetry, report):
                server.run(seconds)
        finally:  # the server accepts no more requests; finish the accepted ones
            if runner is not None and work is not None:
                runner.stop()
                work.join()
                runner.close()
            channels.close()


def _work(runner: Runner) -> None:
    """Run the pipeline. `/health` reports the error that ends it, if any."""
    with suppress(AxlogError):
        runner.run()


def _runner(pipeline: str, channels: Any) -> Runner:
    """Return the runner of the pipeline; its channels are served too."""
    from axlog.connect.channels.channel import LocalChannel
    from axlog.pipeline.loader import load
    from axlog.runtime.embedded import Runner

    runner = Runner(load(pipeline))
    for made in runner.channels.values():
        if isinstance(made, LocalChannel):
            channels.adopt(made)
    return runner


def _show_token(admitted: admission.Admission, address: str, *, has_page: bool) -> None:
    """Show a generated token, once."""
    if admitted.token is not None:
        typer.echo(f"administrator's token (shown once): {admitted.token}")
        if has_page:
            typer.echo(f"the live page is at {admitted.link(address)}")
