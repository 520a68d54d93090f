"""The guarded HTTP client, for every request to an address that others may have supplied.

Feeds, documents, webhooks and channels of peers are fetched through this client:

- An address in a non-public range (`addresses.py`) is refused unless `Allowance.hosts` names it.
  The client connects to the address that it checked, so a name cannot resolve to another one in
  between (DNS rebinding).
- Redirects are counted, and every hop is checked like the first address.
- A request has one deadline in total. A response has one size limit, counted while it is unpacked:
  a decompression bomb is never unpacked beyond the limit. A response that is compressed twice, or
  with an encoding that was not requested, is refused.

Requests run on one event loop in a separate thread, so that the deadline holds whatever the server
does. `send` is for threads, `ask` for coroutines of any loop. Proxies from the environment are
ignored: they would connect to unchecked addresses.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
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
    """The hosts that requests may reach, and the limits of a response.

    `hosts` are names, addresses or networks (`10.1.0.0/16`) that are allowed although they are not
    public.
    """

    hosts: tuple[str, ...] = ()
    redirects: int = 5
    size: int = 32 * 1024 * 1024
    seconds: float = 30.0


LOOPBACK = ("localhost", "127.0.0.0/8", "::1")
"""A value for `Allowance.hosts`: this machine."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. Header names are in lower case."""

    status: int
    content: bytes
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def shown_address(url: str) -> str:
    """Return an address for error messages: without user, password, query and fragment.

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
    """Checks addresses against an allowance."""

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
        """Whether a host may be connected to at an address that it resolved to."""
        return (
            is_public(address)
            or host.lower().rstrip(".") in self._names
            or any(is_in(address, network) for network in self._networks)
        )

    async def resolve(self, host: str, port: int) -> str:
        """Return the checked address to connect to; every address of the name must be allowed."""
        try:
            found = [parsed(host.strip("[]"))]
        except ValueError:
            found = await self._look_up(host, port)
        for address in found:
            if not self.may_use(host, address):
                raise ConnectorError(
                    "AX821",
                    f"{host!r} is at {address}, which is not public: {range_of(address)}",
                    advice="add the host or its network to `allow` if this is intended",
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
    """Sends requests under an allowance; threads share its connections."""

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
        """Return the response to a request. For threads."""
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
        """Return the response to a request. For coroutines."""
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
        address = shown_address(url)
        if self._client is None:
            self._client = _make_client(self.allowance)
        try:
            async with asyncio.timeout(within):
                stream = self._client.stream(
                    method, url, headers=headers, content=content, timeout=within
                )
                async with stream as response:
                    body = await self._body(response, address)
        except (TimeoutError, httpx.TimeoutException):
            raise ConnectorError("AX823", f"{address} took more than {within} seconds") from None
        except httpx.TooManyRedirects:
            most = self.allowance.redirects
            raise ConnectorError("AX823", f"{address} redirects more than {most} times") from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise ConnectorError(
                "AX821",
                f"{address!r} is not a valid address: {error}",
                expected="http:// or https://",
            ) from None
        except (httpx.HTTPError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ConnectorError("AX822", f"{address} cannot be reached: {reason}") from None
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
                raise ConnectorError("AX823", f"{url} returned more than {most} bytes")
        if unpacking is not None and not unpacking.eof:
            raise ConnectorError("AX824", f"{url} returned an incomplete compressed response")
        return bytes(body)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            asyncio.run_coroutine_threadsafe(client.aclose(), _loop()).result()


def _unpacking(encoding: str, url: str) -> Any:
    """Return the incremental decompressor of a response; None if it is not compressed."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "x-gzip"):
        raise ConnectorError(
            "AX824", f"{url} returned the encoding {name[:50]!r}", expected="gzip, or none"
        )
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _make_client(allowance: Allowance) -> httpx.AsyncClient:
    import_extra("httpx")
    import httpx

    class Pinned(httpx.AsyncBaseTransport):
        """Connects to the checked address; headers and TLS keep the host name."""

        def __init__(self) -> None:
            self._guard = Guard(allowance)
            self._inner = httpx.AsyncHTTPTransport(retries=0, verify=_tls_context())

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
                request.url = asked  # redirects and errors refer to the requested address

        async def aclose(self) -> None:
            await self._inner.aclose()

    return httpx.AsyncClient(
        transport=Pinned(),
        trust_env=False,
        follow_redirects=True,
        max_redirects=allowance.redirects,
        headers={"User-Agent": "axlog", "Accept-Encoding": "gzip"},
    )


@cache
def _tls_context() -> ssl.SSLContext:
    """One for all clients of this process: reading the certificate authorities takes 50 ms."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


_starting = Lock()
_running: list[asyncio.AbstractEventLoop] = []


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all clients of this process, in a daemon thread."""
    with _starting:
        if not _running:
            loop = asyncio.new_event_loop()
            Thread(target=_run, args=(loop,), name="axlog-http", daemon=True).start()
            _running.append(loop)
        return _running[0]


def _run(loop: asyncio.AbstractEventLoop) -> Any:
    asyncio.set_event_loop(loop)
    loop.run_forever()
