"""The web application: channels, webhooks, the description, and the checks of all requests."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from axlog.channels.naming import Channels
from axlog.connectors.http import Allowance, Client
from axlog.errors import AccessError, ChannelError
from axlog.server.access import Access, Token, is_loopback
from axlog.server.answers import answer, problem
from axlog.server.operations import Operation, description
from axlog.server.pulses import Pulses
from axlog.server.serving import Serving
from axlog.server.views import Views
from axlog.server.webhooks import Webhooks
from axlog.widgets.widget import Widget


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server is set up."""

    host: str = "127.0.0.1"
    port: int = 8040
    tokens: tuple[Token, ...] = ()
    open_reading: bool = True
    allowance: Allowance = field(default_factory=Allowance)
    pulse: float = 0.02  # seconds: readers are woken no more often
    longest_pause: float = 60.0  # between attempts to reach a webhook

    def check(self) -> None:
        """Refuse what would let anybody write."""
        if not self.tokens and not is_loopback(self.host):
            raise ChannelError(
                "AX807",
                f"a server on {self.host!r} can be reached by others and has no tokens",
                advice="give it tokens, or let it listen on 127.0.0.1",
            )


def make_application(
    channels: Channels,
    settings: Settings | None = None,
    more: Iterable[Operation] = (),
    routes: Iterable[BaseRoute] = (),
    *,
    widgets: Mapping[str, Widget] | None = None,
) -> Starlette:
    """The application that serves channels, and widgets if there are any.

    `more` operations and plain routes can be added.
    """
    settings = settings or Settings()
    settings.check()
    access = Access(settings.tokens, open_reading=settings.open_reading)
    pulses = Pulses(settings.pulse)
    client = Client(settings.allowance)
    webhooks = Webhooks(
        client, pulses, f"http://{settings.host}:{settings.port}/hub", settings.longest_pause
    )
    operations = Serving(channels, access, pulses, webhooks).operations()
    if widgets is not None:
        operations += Views(widgets, access).operations()
    operations += more

    async def describe(request: Request, token: Token) -> Response:
        return answer(description(operations, version("axlog")))

    described = Operation("GET", "/openapi.json", "This description", describe)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        webhooks.resume(channels)
        yield
        webhooks.close()
        pulses.close()
        client.close()

    made = Starlette(
        routes=[*(one.route(access) for one in [*operations, described]), *routes],
        lifespan=lifespan,
    )
    made.add_middleware(Doorkeeper, is_open=not settings.tokens)
    return made


class Doorkeeper:
    """Refuses what a page of another site makes a browser ask.

    Without tokens the server trusts whoever reaches it on this machine, so a request must name this
    machine as its host; with or without, one that says it comes from another site may not write.
    """

    def __init__(self, app: ASGIApp, is_open: bool) -> None:
        self.app = app
        self.is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            host = request.headers.get("host", "")
            said = self._fault(request, host)
            if said is not None:
                await problem(AccessError("AX811", said))(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _fault(self, request: Request, host: str) -> str | None:
        name = _part(f"//{host}", "hostname")
        if self.is_open and not is_loopback(name):
            return f"the host {host[:100]!r} is not this machine, and there are no tokens"
        origin = request.headers.get("origin")
        if origin is not None and request.method != "GET" and _part(origin, "netloc") != host:
            return f"the request comes from {origin[:100]!r}"
        return None


def _part(address: str, name: str) -> str:
    """A part of an address; nothing if it is none."""
    try:
        return getattr(urlsplit(address), name) or ""
    except ValueError:
        return ""
