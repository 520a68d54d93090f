"""Slow clients are disconnected, and however many they are, others are served."""

import asyncio
import logging
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from threading import Event, Thread

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from axlog.server import connections
from axlog.server import server as server
from axlog.server.application import Settings
from axlog.server.connections import AcceptErrors, Connections

MOST = 60


def application(released: Event) -> Starlette:
    """Answers at once; answers before the body has come; an answer that goes on."""

    async def health(request: Request) -> Response:
        return Response("ok")

    async def early(request: Request) -> Response:
        return Response("no", 401)

    async def whole(request: Request) -> Response:
        return Response(str(len(await request.body())))

    async def stream(request: Request) -> Response:
        async def parts() -> AsyncIterator[bytes]:
            yield b"first"
            while not released.is_set():
                await asyncio.sleep(0.02)

        return StreamingResponse(parts())

    return Starlette(
        routes=[
            Route("/health", health),
            Route("/early", early, methods=["POST"]),
            Route("/whole", whole, methods=["POST"]),
            Route("/stream", stream),
        ]
    )


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(connections, "MOST_OF_ADDRESS", MOST)
    monkeypatch.setattr(server, "Connections", lambda: Connections(4 * MOST, MOST))
    released = Event()
    with server.running(application(released)) as found:
        host, port = re.fullmatch(r"http://(.*):(\d+)", found).groups()  # type: ignore[union-attr]
        yield host, int(port)
        released.set()


def connected(address: tuple[str, int], said: bytes) -> socket.socket:
    made = socket.create_connection(address, timeout=60)
    made.sendall(said)
    return made


def is_closed(client: socket.socket) -> bool:
    """Read to the end of the connection, which the server must bring about."""
    with suppress(ConnectionError):
        while client.recv(10_000):
            pass
    return True


def trickle(client: socket.socket, ended: Event) -> None:
    """Send a byte now and then, whatever the server answers."""
    with suppress(OSError):
        while not ended.wait(0.02):
            client.sendall(b"x")


def test_answers_are_sent_at_once() -> None:
    """Without Nagle's algorithm, which holds a body back until the head is acknowledged."""

    async def option() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            taken = writer.get_extra_info("socket")
            found.set_result(taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        bound = server.listening(Settings(port=0))
        async with await asyncio.start_server(take, sock=bound):
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            await reader.read()
            writer.close()
            await writer.wait_closed()
        return found.result()

    assert asyncio.run(option()) != 0


SLOW = {
    "a head": ("head", b"GET /health HTTP/1.1\r\nHost: x\r\nA: "),
    "nothing": ("head", b""),
    "a body": ("body", b"POST /whole HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"),
    "a body in chunks": (
        "body",
        b"POST /whole HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n",
    ),
    "a body that was answered": (
        "rest",
        b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
    ),
}


@pytest.mark.parametrize("what", SLOW)
def test_a_client_that_trickles_is_disconnected(
    what: str, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    phase, said = SLOW[what]
    for each in connections.SECONDS:
        monkeypatch.setitem(connections.SECONDS, each, 0.3 if each == phase else 600.0)
    ended = Event()
    with closing(connected(address, said)) as client:
        Thread(target=trickle, args=(client, ended), daemon=True).start()
        assert is_closed(client)
        ended.set()


def test_a_second_request_has_its_own_time(address: tuple[str, int]) -> None:
    """Phases begin anew: a connection that is used properly stays."""
    with closing(HTTPConnection(*address, timeout=60)) as client:
        client.connect()
        first = client.sock
        for _ in range(3):
            client.request("POST", "/whole", body=b"abc")
            assert client.getresponse().read() == b"3"
            assert client.sock is first


def test_slow_clients_make_room_for_others(address: tuple[str, int]) -> None:
    """Far more connections than there may be, none of which says what it wants."""
    with ExitStack() as open_:
        slow = [
            open_.enter_context(closing(connected(address, b"GET /health HT")))
            for _ in range(3 * MOST)
        ]
        for _ in range(5):
            assert httpx.get(f"http://{address[0]}:{address[1]}/health").text == "ok"
        assert is_closed(slow[0])  # the one that waited longest


def test_connections_that_are_served_are_not_given_up(address: tuple[str, int]) -> None:
    with ExitStack() as open_:
        request = b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"
        served = [open_.enter_context(closing(connected(address, request))) for _ in range(MOST)]
        for one in served:
            assert b"200" in one.recv(10_000)
        with closing(connected(address, b"")) as refused:
            assert is_closed(refused)
        served.pop().close()
        for _ in range(100):  # until the server has noticed that one is gone
            with suppress(httpx.TransportError):
                assert httpx.get(f"http://{address[0]}:{address[1]}/health").text == "ok"
                break
        else:
            pytest.fail("the place was not given free")


def test_addresses_are_counted_apart() -> None:
    class Fake:
        def __init__(self, address: str) -> None:
            self.address = address

    found = Connections(most=16, most_of_address=3)
    mine = [Fake("a") for _ in range(3)]
    assert all(found.admit(one) for one in mine)  # type: ignore[arg-type]
    assert not found.admit(Fake("a"))  # type: ignore[arg-type]
    assert found.admit(Fake("b"))  # type: ignore[arg-type]
    found.release(mine[0])  # type: ignore[arg-type]
    found.release(mine[0])  # type: ignore[arg-type]
    assert found.count == 3
    assert found.admit(Fake("a"))  # type: ignore[arg-type]
    assert found.refused == 1


def test_errors_at_accept_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[dict[str, object]] = []

    class Loop:
        def default_exception_handler(self, context: dict[str, object]) -> None:
            heard.append(context)

    handler = AcceptErrors()
    for _ in range(1000):
        error = {"message": "socket.accept() out of system resource", "exception": OSError(24)}
        handler(Loop(), error)  # type: ignore[arg-type]
    handler(Loop(), {"message": "something else"})  # type: ignore[arg-type]
    assert len([r for r in caplog.records if r.levelno == logging.ERROR]) == 1
    assert [context["message"] for context in heard] == ["something else"]


STARVED = """
import os, resource, sys
from axlog.server import server
from tests.server.test_connections import application
from threading import Event
import logging
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, (120, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
with server.running(application(Event())) as address:
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        os.close(held.pop())
    print(address, flush=True)
    sys.stdin.readline()
    for each in held:
        os.close(each)
    print("free", flush=True)
    sys.stdin.readline()
"""


def test_a_process_without_descriptors_recovers(repository) -> None:
    """The real thing: a server whose process has no descriptor left for a connection."""
    with (
        subprocess.Popen(
            [sys.executable, "-c", STARVED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=repository,
        ) as child,
        ExitStack() as open_,
    ):
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        url = child.stdout.readline().strip()
        host, port = re.fullmatch(r"http://(.*):(\d+)", url).groups()  # type: ignore[union-attr]
        for _ in range(20):
            open_.enter_context(closing(connected((host, int(port)), b"")))
        said = child.stderr.readline()
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "free\n"
        assert httpx.get(f"{url}/health", timeout=60).text == "ok"
        child.stdin.write("\n")
        child.stdin.flush()
        rest = child.stderr.read()
    assert "cannot be accepted" in said
    assert rest == ""
