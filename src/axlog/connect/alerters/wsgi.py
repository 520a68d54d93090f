"""Middleware for WSGI applications (Flask, Django, Bottle) that publishes their calls.

app.wsgi_app = CallMiddleware(app.wsgi_app, CallPublisher(channel))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any

from axlog.connect.alerters.calls import Body, Call
from axlog.connect.alerters.publisher import CallPublisher

Environment = dict[str, Any]
StartResponse = Callable[..., Callable[[bytes], object]]
Application = Callable[[Environment, StartResponse], Iterable[bytes]]


class CallMiddleware:
    """An application whose calls are published.

    Parameters:
        app: The application.
        publisher: Tells the calls.
    """

    def __init__(self, app: Application, publisher: CallPublisher) -> None:
        self.app, self.publisher = app, publisher

    def __call__(self, environ: Environment, start_response: StartResponse) -> Iterable[bytes]:
        publisher, began = self.publisher, monotonic()
        call = Call(
            name="in-call",
            method=environ["REQUEST_METHOD"],
            path=environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", ""),
            query=environ.get("QUERY_STRING", ""),
            caller=environ.get("REMOTE_ADDR"),
            callee=None,
            time=publisher.clock(),
            asked=_headers(environ),
            request=publisher.body(),
            response=publisher.body(),
        )
        environ["wsgi.input"] = _Input(environ["wsgi.input"], call.request)

        def started(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            call.status, call.answered = int(status.split(" ", 1)[0]), list(headers)
            write = start_response(status, headers, *rest)

            def written(part: bytes) -> object:
                call.response.add(part)
                return write(part)

            return written

        try:
            answer = self.app(environ, started)
        except Exception:
            call.status, call.duration = 500, monotonic() - began
            publisher.note(call)
            raise
        return _Answer(answer, call, publisher, began)


def _headers(environ: Environment) -> list[tuple[str, str]]:
    found = [
        (name[5:].replace("_", "-").lower(), str(value))
        for name, value in environ.items()
        if name.startswith("HTTP_")
    ]
    kind = environ.get("CONTENT_TYPE")
    return found + ([("content-type", str(kind))] if kind else [])


class _Input:
    """The body of a request, which is noted as the application reads it."""

    def __init__(self, inner: Any, body: Body) -> None:
        self._inner, self._body = inner, body

    def read(self, *size: int) -> bytes:
        return self._noted(self._inner.read(*size))

    def readline(self, *size: int) -> bytes:
        return self._noted(self._inner.readline(*size))

    def readlines(self, *hint: int) -> list[bytes]:
        return [self._noted(line) for line in self._inner.readlines(*hint)]

    def __iter__(self) -> Iterator[bytes]:
        for line in self._inner:
            yield self._noted(line)

    def _noted(self, part: bytes) -> bytes:
        self._body.add(part)
        return part


class _Answer:
    """The body of an answer; the call is published when the server closes it."""

    def __init__(
        self, inner: Iterable[bytes], call: Call, publisher: CallPublisher, began: float
    ) -> None:
        self._inner, self._call = inner, call
        self._publisher, self._began = publisher, began

    def __iter__(self) -> Iterator[bytes]:
        for part in self._inner:
            self._call.response.add(part)
            yield part

    def close(self) -> None:
        close = getattr(self._inner, "close", None)
        try:
            if close is not None:
                close()
        finally:
            self._call.duration = monotonic() - self._began
            self._publisher.note(self._call)
