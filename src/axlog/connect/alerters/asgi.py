"""Middleware for ASGI applications (Starlette, FastAPI, Django, Quart) that publishes their calls.

    app = CallMiddleware(app, CallPublisher(channel))

Bodies pass unchanged, part by part; a copy of their first bytes is kept. The call is
published when the answer is complete, or when the application fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from time import monotonic
from typing import Any

from axlog.connect.alerters.calls import Call
from axlog.connect.alerters.publisher import CallPublisher

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class CallMiddleware:
    """An application whose calls are published.

    Parameters:
        app: The application.
        publisher: Tells the calls.
        callee: The called server, if the application passes calls on; they are then `out-call`.
    """

    def __init__(
        self, app: Application, publisher: CallPublisher, callee: str | None = None
    ) -> None:
        self.app, self.publisher, self.callee = app, publisher, callee

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        publisher, began = self.publisher, monotonic()
        client = scope.get("client")
        call = Call(
            name="in-call" if self.callee is None else "out-call",
            method=scope["method"],
            path=scope["path"],
            query=scope.get("query_string", b"").decode("latin-1"),
            caller=None if client is None else str(client[0]),
            callee=self.callee,
            time=publisher.clock(),
            asked=_headers(scope["headers"]),
            request=publisher.body(),
            response=publisher.body(),
        )

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                call.request.add(message.get("body", b""))
            return message

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
                call.answered = _headers(message.get("headers", ()))
            elif message["type"] == "http.response.body":
                call.response.add(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, received, sent)
        except Exception:
            call.status = call.status or 500  # what the server answers for it
            raise
        finally:
            call.duration = monotonic() - began
            publisher.note(call)


def _headers(raw: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]
