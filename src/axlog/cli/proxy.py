"""`axlog proxy --to ADDRESS`: forward HTTP requests, and publish the calls as messages of a stream.

Without `--channel` they are written to standard output, one JSON object per line, as `axlog
maintain` reads them. Secrets are masked by their names (`connect/alerters/secrets.py`).
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from axlog.cli import options
from axlog.connect.alerters.asgi import CallMiddleware
from axlog.connect.alerters.calls import CallOptions
from axlog.connect.alerters.proxy import ForwardingApplication
from axlog.connect.alerters.publisher import CallPublisher
from axlog.connect.alerters.secrets import Masks
from axlog.connect.channels.http import HttpChannel
from axlog.connect.channels.protocol import Channel, Subscription
from axlog.connect.http import LOOPBACK, Allowance
from axlog.connect.kinds import Secret
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ChannelError
from axlog.extras import import_extra
from axlog.match.filters import Filter


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "proxy",
        epilog="Example: axlog proxy --to http://127.0.0.1:9000 --filter 'match /in-call[status >="
        " 500]' | axlog maintain doc.xml 'match //path/$x return $x' -",
    )(proxy)


def proxy(
    to: Annotated[str, typer.Option("--to", metavar="ADDRESS", help="Where requests go.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8780,
    calls: Annotated[
        str,
        typer.Option(help="in: it stands before a server; out: a program uses it for a service."),
    ] = "in",
    channel: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Publish on this channel (default: standard output)."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Token for the channel; '${NAME}' reads an environment variable."),
    ] = None,
    stream: Annotated[str, typer.Option(help="Name of the stream.")] = "calls",
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Publish this header; repeatable.")
    ] = None,
    bodies: Annotated[bool, typer.Option("--bodies/--no-bodies", help="Publish bodies.")] = True,
    show: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="This name is no secret; repeatable."),
    ] = None,
    hide: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="This name is a secret, too; repeatable."),
    ] = None,
    filter: Annotated[
        list[str] | None,
        typer.Option(metavar="QUERY", help="Publish only calls that match; repeatable."),
    ] = None,
    namespace: options.Namespaces = None,
) -> None:
    """Forward HTTP requests to ADDRESS, and publish the calls as messages of a stream."""
    if calls not in ("in", "out"):
        raise typer.BadParameter("in or out", param_hint="--calls")
    import_extra("uvicorn")
    from axlog.server.proxy import serve_proxy

    target: Channel = _Lines()
    if channel is not None:
        given = None if token is None else Secret(token).reveal()
        target = HttpChannel(channel, given, Allowance(hosts=LOOPBACK))
    wanted: Filter | None = None
    for number, text in enumerate(filter or ()):
        wanted = wanted or Filter()
        wanted.add(str(number), text, namespaces=options.namespaces_of(namespace))
    parts = CallOptions(tuple(header or ()), bodies, masks=Masks(show or (), hide or ()))
    publisher = CallPublisher(target, stream, parts, wanted)
    forwarding = ForwardingApplication(to)
    callee = forwarding.host if calls == "out" else None
    app = CallMiddleware(forwarding, publisher, callee)
    try:
        serve_proxy(app, host, port)
    finally:
        publisher.close()
        target.close()


class _Lines:
    """Standard output as a channel that is only published to."""

    name = "-"

    def publish(self, update: StreamUpdate, producer: tuple[str, int] | None = None) -> int:
        sys.stdout.write(json.dumps(update.plain(), ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return 0

    def subscribe(
        self, name: str | None = None, *, wanted: Filter | None = None, after: int | None = None
    ) -> Subscription:
        raise ChannelError("AX811", "standard output cannot be subscribed to")

    def close(self) -> None:
        """Standard output stays open."""
