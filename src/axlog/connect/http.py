"""The guarded HTTP client: every request to an address that somebody else may have written.

Feeds, documents, webhooks and channels at other peers are all fetched through here:

- an address in a range that is not public (`addresses.py`) is refused unless `Allowance.hosts`
  names it; the address that was checked is the one that is connected to, so a name cannot resolve
  to another one in between (DNS rebinding);
- redirects are counted, and every hop is checked as the first address was;
- a request has one deadline for all of it, and an answer one size, counted while it is unpacked:
  a few bytes that would become gigabytes are never unpacked further than that, and what is packed
  twice, or in a way that was not asked for, is refused.

The work runs on one event loop in a thread of its own, so that the deadline holds whatever the
other side does; `send` is for threads, `ask` for coroutines of any loop. Proxies of the environment
are not used: they would connect to what was not checked.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from axlog.connect.addresses import Address, is_in, is_public, parsed, range_of
from axlog.errors import ConnectorError
from axlog.extras import import_extra

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True)
class Allowance:
    """Where requests may go, and what an answer may cost.

    `hosts` are names, addresses or networks (`10.1.0.0/16`) that may be used although they are
    not public.
    """

    hosts: tuple[str, ...] = ()
    redirects: int = 5
    size: int = 32 * 1024 * 1024
    seconds: float = 30.0


LOOPBACK = ("localhost", "127.0.0.0/8", "::1")
"""For `Allowance.hosts`: this machine."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: header names are in lower case."""

    status: int
    content: bytes
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def shown_address(url: str) -> str:
    """An address as errors show it: without user, password, query and fragment, often secret.

    >>> shown_address("https://ann:secret@host.example:8443/feed?key=secret#x")
    'https://host.example:8443/feed'
    """
    try:
        parts = urlsplit(url)
        return parts._replace(
            netloc=parts.netloc.rpartition("@")[2], query="", fragment=""
        ).geturl()
    except ValueError:
        return "the address"


class Guard:
    """Judges addresses by an allowance."""

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self._names = {host.lower().rstrip(".") for host in allowance.hosts}
        self._networks = []
        for host in allowance.hosts:
            try:
                self._networks.append(ip_network(host, strict=False))
            except ValueError:
                continue  # a name

    def may_use(self, host: str, address: Address) -> bool:
        """Whether a host may be connected to at an address it resolved to."""
        return (
            is_public(address)
            or host.lower().rstrip(".") in self._names
            or any(is_in(address, network) for network in self._networks)
        )

    async def resolve(self, host: str, port: int) -> str:
        """The address to connect to, checked; all that the name resolves to must be allowed."""
        try:
            found = [parsed(host.strip("[]"))]
        except ValueError:
            found = await self._look_up(host, port)
        for address in found:
            if not self.may_use(host, address):
                raise ConnectorError(
                    "AX821",
                    f"{host!r} is at {address}, which is not public: {range_of(address)}",
                    advice="name the host or its network under allow, if it is meant",
                )
        return str(found[0])

    async def _look_up(self, host: str, port: int) -> list[Address]:
        loop = asyncio.get_running_loop()
        try:
            infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ConnectorError("AX822", f"{host!r} has no address: {error}") from None
        return [parsed(str(info[4][0])) for info in infos]


class Client:
    """Sends requests under an allowance; connections are kept and shared by threads."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance = allowance or Allowance()
        self._client: httpx.AsyncClient | None = None

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        seconds: float | None = None,
    ) -> Answer:
        """The answer to a request; from a thread."""
        wanted = self._send(method, url, dict(headers or {}), content, seconds)
        return asyncio.run_coroutine_threadsafe(wanted, _loop()).result()

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        seconds: float | None = None,
    ) -> Answer:
        """The answer to a request; from a coroutine."""
        wanted = self._send(method, url, dict(headers or {}), content, seconds)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(wanted, _loop()))

    async def _send(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        content: bytes | None,
        seconds: float | None,
    ) -> Answer:
        import httpx

        within = self.allowance.seconds if seconds is None else seconds
        said = shown_address(url)
        if self._client is None:
            self._client = _make_client(self.allowance)
        try:
            async with asyncio.timeout(within):
                stream = self._client.stream(
                    method, url, headers=headers, content=content, timeout=within
                )
                async with stream as response:
                    body = await self._body(response, said)
        except (TimeoutError, httpx.TimeoutException):
            raise ConnectorError("AX823", f"{said} took more than {within} seconds") from None
        except httpx.TooManyRedirects:
            most = self.allowance.redirects
            raise ConnectorError("AX823", f"{said} redirects more than {most} times") from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise ConnectorError(
                "AX821", f"{said!r} is no address: {error}", expected="http:// or https://"
            ) from None
        except (httpx.HTTPError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ConnectorError("AX822", f"{said} cannot be reached: {reason}") from None
        found = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status_code, body, str(response.url), found)

    async def _body(self, response: httpx.Response, url: str) -> bytes:
        most = self.allowance.size
        body = bytearray()
        unpacking = _unpacking(response.headers.get("content-encoding", ""), url)
        async for part in response.aiter_raw():
            try:
                body += part if unpacking is None else unpacking.decompress(part, most + 1)
            except zlib.error as error:
                raise ConnectorError("AX824", f"{url} cannot be unpacked: {error}") from None
            if len(body) > most or (unpacking is not None and unpacking.unconsumed_tail):
                raise ConnectorError("AX823", f"{url} answers with more than {most} bytes")
        if unpacking is not None and not unpacking.eof:
            raise ConnectorError("AX824", f"{url} answers with less than it began to pack")
        return bytes(body)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            asyncio.run_coroutine_threadsafe(client.aclose(), _loop()).result()


def _unpacking(encoding: str, url: str) -> Any:
    """What unpacks an answer, a piece at a time; None if it is not packed."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "x-gzip"):
        raise ConnectorError(
            "AX824", f"{url} answers with the encoding {name[:50]!r}", expected="gzip, or none"
        )
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _make_client(allowance: Allowance) -> httpx.AsyncClient:
    import_extra("httpx")
    import httpx

    class Pinned(httpx.AsyncBaseTransport):
        """Connects to the address that was checked; the host stays in the headers and in TLS."""

        def __init__(self) -> None:
            self._guard = Guard(allowance)
            self._inner = httpx.AsyncHTTPTransport(retries=0)

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            host = request.url.host
            port = request.url.port or (443 if request.url.scheme == "https" else 80)
            asked = request.url
            request.headers.setdefault("Host", asked.netloc.decode("ascii"))
            request.url = asked.copy_with(host=await self._guard.resolve(host, port))
            request.extensions = {**request.extensions, "sni_hostname": host}
            try:
                return await self._inner.handle_async_request(request)
            finally:
                request.url = asked  # redirects and errors are about what was asked for

        async def aclose(self) -> None:
            await self._inner.aclose()

    return httpx.AsyncClient(
        transport=Pinned(),
        trust_env=False,
        follow_redirects=True,
        max_redirects=allowance.redirects,
        headers={"User-Agent": "axlog", "Accept-Encoding": "gzip"},
    )


_starting = Lock()
_running: list[asyncio.AbstractEventLoop] = []


def _loop() -> asyncio.AbstractEventLoop:
    """The loop of all clients of this process, in a thread that ends with it."""
    with _starting:
        if not _running:
            loop = asyncio.new_event_loop()
            Thread(target=_run, args=(loop,), name="axlog-http", daemon=True).start()
            _running.append(loop)
        return _running[0]


def _run(loop: asyncio.AbstractEventLoop) -> Any:
    asyncio.set_event_loop(loop)
    loop.run_forever()
