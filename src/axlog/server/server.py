"""A running server: until it is stopped, or in a thread of the program that started it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread, Timer
from time import monotonic, sleep

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from axlog.errors import ChannelError
from axlog.server.application import Settings
from axlog.server.connections import (
    HEAD_SECONDS,
    LARGEST_HEAD,
    AcceptErrors,
    Connections,
    protocol,
)

BACKLOG = 128
"""The listen backlog; when descriptors run out, asyncio retries this many accepts."""


def listening(settings: Settings) -> socket.socket:
    """Return a socket bound by the settings; port 0 chooses a free port."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio disables Nagle's algorithm only where it is: without
    # that, a client on this machine waits 40 ms for the body of each answer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise ChannelError(
            "AX807",
            f"{settings.host}:{settings.port} cannot be bound:"
            f" {getattr(error, 'strerror', None) or error}",
            advice="choose another port; 0 chooses a free one",
        ) from None
    bound.listen(BACKLOG)
    return bound


class Serving:
    """A server in this thread, until it is stopped; its caller handles signals."""

    def __init__(self, app: Starlette, bound: socket.socket, settings: Settings) -> None:
        self._server = _server(app, settings)
        self._bound = bound

    def stop(self) -> None:
        """Stop accepting requests, answer the pending ones, and end. Callable from any thread or
        signal.
        """
        self._server.should_exit = True

    def run(self, seconds: float | None = None) -> None:
        """Serve until stopped, or for a time."""
        if seconds is not None:
            timer = Timer(seconds, self.stop)
            timer.daemon = True
            timer.start()
        self._server.run(sockets=[self._bound])


class CutOff:
    """An application whose requests may be cancelled when the server ends.

    uvicorn cancels running requests a second after a stop (an event stream never ends by itself)
    and would log a traceback for each. Here a request without a response gets a 503, and a response
    that has begun ends where it is.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        begun: list[Message] = []

        async def sent(message: Message) -> None:
            begun[:] = begun or [message]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            if not begun:
                response = Response("the server is ending\n", 503, {"Retry-After": "1"})
                await response(scope, receive, send)
            elif not any(name == b"content-length" for name, _ in begun[0].get("headers", ())):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            # otherwise its length was sent: the client sees that it is incomplete


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to its caller.

    uvicorn would handle signals and raise them again when it is done, which would end the process
    before anything else is finished.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; errors of the listening socket are logged once a minute."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(AcceptErrors())
        if self.config.ssl is not None:  # uvicorn has no option for the handshake timeout
            loop.create_server = partial(  # type: ignore[method-assign]
                loop.create_server, ssl_handshake_timeout=HEAD_SECONDS
            )
        await super().startup(sockets)


def _server(app: Starlette, settings: Settings) -> uvicorn.Server:
    config = uvicorn.Config(
        CutOff(app),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,  # event streams never end by themselves
        http=protocol(Connections()),
        loop="asyncio",
        backlog=BACKLOG,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        lifespan="on",
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    return _Server(config)


def _is_news(record: logging.LogRecord) -> bool:
    """Suppress the message about requests cancelled at the end: event streams end this way."""
    return not str(record.msg).startswith("Cancel %s running task(s)")


@contextmanager
def running(app: Starlette, settings: Settings | None = None) -> Iterator[str]:
    """Serve in a thread while the block runs; yield the server's address."""
    settings = settings or Settings(port=0)
    bound = listening(settings)
    server = _server(app, settings)
    thread = Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    until = monotonic() + 30
    while not server.started and thread.is_alive() and monotonic() < until:
        sleep(0.005)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    try:
        yield f"{settings.scheme}://{host}:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=15)
        bound.close()
