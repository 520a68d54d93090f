"""A small forwarding proxy, for programs that middleware cannot be added to.

It passes every request on to one address, and the answer back, part by part. `CallMiddleware`
around it publishes the calls: `in-call` if the proxy stands before a server, `out-call` if a
program uses its address in place of a service's. The operator gives the address, so a client cannot
choose where its requests go. Redirects are passed back, not followed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from axlog.connect.alerters.asgi import Message, Receive, Send
from axlog.errors import ConnectorError
from axlog.extras import import_extra

if TYPE_CHECKING:
    import httpx

_HOP_BY_HOP = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
        b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip


class ForwardingApplication:
    """An ASGI application that passes requests on to an address.

    Parameters:
        target: The address, such as `http://127.0.0.1:9000` or `https://example.org/api`.
        seconds: Longest wait for the target to send something.
    """

    def __init__(self, target: str, seconds: float = 60.0) -> None:
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise ConnectorError(
                "AX821", f"{target!r} is not an address", expected="http://HOST:PORT/PATH"
            )
        self.target = target.rstrip("/")
        self.host = parts.netloc.rpartition("@")[2]
        self._seconds = seconds
        self._client: httpx.AsyncClient | None = None

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            import_extra("httpx")
            import httpx

            self._client = httpx.AsyncClient(
                timeout=self._seconds, follow_redirects=False, trust_env=False
            )
            self._client.headers.clear()
        return self._client

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._forward(scope, receive, send)
        else:  # web sockets are not passed on
            await send({"type": "websocket.close", "code": 1003})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                if self._client is not None:
                    await self._client.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _forward(self, scope: Message, receive: Receive, send: Send) -> None:
        client = self._opened()
        import httpx

        path = scope.get("raw_path") or scope["path"].encode()
        query = scope.get("query_string", b"")
        url = (
            self.target + path.decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
        )
        given = [(n, v) for n, v in scope["headers"] if n.lower() not in _HOP_BY_HOP | {b"host"}]
        has_body = any(n.lower() in (b"content-length", b"transfer-encoding")
                       for n, _ in scope["headers"])  # fmt: skip
        request = client.build_request(
            scope["method"],
            url,
            headers=[(b"host", self.host.encode()), *given],
            content=_received(receive) if has_body else None,
        )
        started = False
        try:
            response = await client.send(request, stream=True)
            try:
                headers = [
                    (n.lower(), v) for n, v in response.headers.raw if n.lower() not in _HOP_BY_HOP
                ]
                started = True
                await send(
                    {"type": "http.response.start", "status": response.status_code,
                     "headers": headers}
                )  # fmt: skip
                async for part in response.aiter_raw():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            finally:
                await response.aclose()
        except (httpx.HTTPError, OSError) as error:
            if started:
                raise  # the server cuts the answer off
            status = 504 if isinstance(error, httpx.TimeoutException) else 502
            text = f"{self.host} cannot be reached: {type(error).__name__}\n".encode()
            kind = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": status, "headers": kind})
            await send({"type": "http.response.body", "body": text})


async def _received(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return
