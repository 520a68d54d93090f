"""The web application: all operations, and the checks that every request passes."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterable, MutableMapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from axlog.connect.channels.registry import Channels
from axlog.connect.http import Allowance, Client
from axlog.errors import AccessError, ChannelError
from axlog.live.document import Document
from axlog.server.access import SAFE, Access, is_loopback
from axlog.server.api_page import api_page
from axlog.server.channel_routes import Serving
from axlog.server.family_routes import FamilyRoutes, Published
from axlog.server.given_documents import GivenDocuments
from axlog.server.kept_members import KeptMembers
from axlog.server.operations import Operation, description
from axlog.server.responses import answer, problem
from axlog.server.roles import Principal
from axlog.server.roles import channel as resource
from axlog.server.sign_in import signing_operations
from axlog.server.subscription_routes import Subscribing
from axlog.server.view_routes import Views
from axlog.server.wakeups import Pulses
from axlog.server.webhooks import Webhooks

REFRESHED = 1.0
"""Seconds after which a change of the roles file is noticed."""
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""Headers of every response that does not set them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server. Without roles it answers no request."""

    host: str = "127.0.0.1"
    port: int = 8040
    access: Access = field(default_factory=Access)
    certificate: str | None = None  # files: TLS if both are given
    key: str | None = None
    allowance: Allowance = field(default_factory=Allowance)
    pulse: float = 0.02  # seconds: readers are woken at most this often
    longest_pause: float = 60.0  # between attempts to reach a webhook

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    def check(self) -> None:
        """Refuse a server that other machines can reach and that has no access policy."""
        if not self.access.roles.principals and not is_loopback(self.host):
            raise ChannelError(
                "AX807",
                f"a server on {self.host!r} is reachable from other machines and has no principals",
                advice="use a roles file, or listen on 127.0.0.1",
            )
        if (self.certificate is None) != (self.key is None):
            raise ChannelError("AX818", "TLS needs a certificate and its key")
        if self.certificate is not None:
            check_certificate(self.certificate, self.key)


def check_certificate(certificate: str, key: str | None) -> None:
    """Refuse unusable TLS files before anything starts."""

    def no_password() -> str:
        raise ValueError("the key needs a password")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, no_password)
    except FileNotFoundError:
        missing = next((each for each in (certificate, key or "") if not Path(each).exists()), "")
        raise ChannelError("AX818", f"there is no file {missing!r}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise ChannelError(
            "AX818",
            f"TLS cannot use {certificate!r} and {key!r}: {reason}",
            expected="a certificate with its chain, and its key without a password, as PEM files",
        ) from None


def make_application(
    channels: Channels,
    settings: Settings | None = None,
    more: Iterable[Operation] = (),
    routes: Iterable[BaseRoute] = (),
    *,
    documents: MutableMapping[str, Document] | None = None,
    families: Published | None = None,
) -> Starlette:
    """Return the application that serves channels, and documents if there are any.

    `families` are the queries of the documents that subscribers watch with their own parameters.

    `more` adds operations and plain routes.
    """
    settings = settings or Settings()
    settings.check()
    access = settings.access
    pulses = Pulses(settings.pulse)
    client = Client(settings.allowance)

    def may_send(owner: str, channel: str) -> bool:
        found = access.named(owner)
        return found is not None and found.may("subscribe", resource(channel))

    hub = f"{settings.scheme}://{settings.host}:{settings.port}/hub"
    webhooks = Webhooks(client, pulses, hub, settings.longest_pause, may_send)
    serving = Serving(channels, access, pulses, webhooks)
    operations = serving.operations()
    operations += Subscribing(channels, access, webhooks, serving).operations()
    operations += signing_operations(access)
    views = Views(documents or {}, access, families)
    given: GivenDocuments | None = None
    kept: KeptMembers | None = None
    if documents is not None:
        given = GivenDocuments(documents, channels, access)
        operations += views.operations()
        operations += given.operations()
        kept = KeptMembers(channels.directory)
        published = FamilyRoutes(views, families or {}, channels, access, kept)
        operations += published.operations()
    operations += more

    async def describe(request: Request, caller: Principal) -> Response:
        return answer(description([*operations, described, documented], version("axlog")))

    described = Operation("GET", "/openapi.json", "This description", describe, "")

    async def document_operations(request: Request, caller: Principal) -> Response:
        return HTMLResponse(
            api_page(description([*operations, described, documented], version("axlog")))
        )

    documented = Operation("GET", "/docs", "These operations, as a page", document_operations, "",
                           answers=("text/html",))  # fmt: skip

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        webhooks.resume(channels)
        async with refreshed(access):
            yield
        if given is not None:
            await asyncio.to_thread(given.close)
        if kept is not None:
            kept.close()
        webhooks.close()
        pulses.close()
        client.close()

    made = Starlette(
        routes=[*(one.route(access) for one in [*operations, described, documented]), *routes],
        lifespan=lifespan,
    )
    made.add_middleware(Doorkeeper, settings=settings)
    made.state.webhooks, made.state.views = webhooks, views
    return made


@contextlib.asynccontextmanager
async def refreshed(access: Access) -> AsyncIterator[None]:
    """Check the roles file periodically while the block runs."""

    async def refresh() -> None:
        while True:
            await asyncio.sleep(REFRESHED)
            await asyncio.to_thread(access.refresh)

    task = asyncio.create_task(refresh())
    try:
        yield
    finally:
        task.cancel()


class Doorkeeper:
    """Refuses cross-site requests.

    A server on loopback must be addressed by a name of this machine, or by one of its `origins`:
    otherwise a page could make its own host name resolve to this machine and become same-site (DNS
    rebinding). A request that changes something and has an origin must come from this server or its
    `origins`.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.access = settings.access
        self.is_local = is_loopback(settings.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                headers = [(name, value) for name, value in _HEADERS if name not in names]
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        if scope["type"] == "http":
            fault = self._fault(Request(scope))
            if fault is not None:
                await problem(AccessError("AX815", fault))(scope, receive, sent)
                return
        await self.app(scope, receive, sent)

    def _fault(self, request: Request) -> str | None:
        host = request.headers.get("host", "")
        known = [_part(each, "netloc") for each in self.access.roles.origins]
        if self.is_local and host not in known and not is_loopback(_part(f"//{host}", "hostname")):
            return f"the host {host[:100]!r} is not this machine"
        origin = request.headers.get("origin")
        if request.method in SAFE or origin is None or origin in self.access.roles.origins:
            return None
        if _part(origin, "netloc") != host:
            return f"the request comes from {origin[:100]!r}"
        return None


def _part(address: str, name: str) -> str:
    """Return a part of an address; empty if the address is invalid."""
    try:
        return getattr(urlsplit(address), name) or ""
    except ValueError:
        return ""
