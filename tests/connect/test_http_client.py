"""The guarded client: where it goes, what it refuses, how much it takes; on loopback."""

import gzip
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from threading import Event, Thread

import pytest

from axlog.connect.http import LOOPBACK, Allowance, Client, Guard
from axlog.errors import ConnectorError

RELEASED = Event()
"""Set when the server goes: until then `/slow` does not answer."""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/redirect/"):
            left = int(self.path.rpartition("/")[2])
            self.send_response(302)
            self.send_header("Location", f"/redirect/{left - 1}" if left else "/hello")
            self.end_headers()
            return
        if self.path == "/out":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/meta-data")
            self.end_headers()
            return
        body = {"/large": b"x" * 5000, "/bomb": gzip.compress(b"\0" * 10_000_000)}.get(
            self.path, self.headers["Host"].encode()
        )
        if self.path == "/slow":
            RELEASED.wait(60)  # longer than any client waits
        self.send_response(200)
        if self.path == "/bomb":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    RELEASED.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client(Allowance(hosts=LOOPBACK, redirects=3, size=4000, seconds=60))
    yield made
    made.close()


def test_the_host_that_was_asked_for_is_named(client: Client, port: int) -> None:
    answer = client.send("GET", f"http://localhost:{port}/hello")
    assert (answer.status, answer.content) == (200, f"localhost:{port}".encode())
    assert answer.url == f"http://localhost:{port}/hello"


def test_redirects_are_counted(client: Client, port: int) -> None:
    assert client.send("GET", f"http://127.0.0.1:{port}/redirect/2").url.endswith("/hello")
    with pytest.raises(ConnectorError, match="AX823"):
        client.send("GET", f"http://127.0.0.1:{port}/redirect/3")


def test_every_hop_is_checked(client: Client, port: int) -> None:
    with pytest.raises(ConnectorError, match="AX821"):
        client.send("GET", f"http://127.0.0.1:{port}/out")


@pytest.mark.parametrize("path", ["large", "bomb", "slow"])
def test_answers_have_a_size_and_a_time(port: int, path: str) -> None:
    seconds = 0.7 if path == "slow" else 60
    client = Client(Allowance(hosts=LOOPBACK, size=4000, seconds=seconds))
    with closing(client), pytest.raises(ConnectorError, match="AX823"):
        client.send("GET", f"http://127.0.0.1:{port}/{path}")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://[::1]:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://2130706433:{port}/",
        "http://0.0.0.0:{port}/",
        "http://169.254.169.254/",
        "http://10.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
    ],
)
def test_private_addresses_are_refused(port: int, url: str) -> None:
    with pytest.raises(ConnectorError, match=r"AX821|AX822") as told:
        Client().send("GET", url.format(port=port))
    assert told.value.code == "AX821" or "has no address" in told.value.message


def test_a_peer_that_does_not_answer(client: Client) -> None:
    with pytest.raises(ConnectorError, match="AX822"):
        client.send("GET", "http://127.0.0.1:1/")


def test_a_name_is_allowed_by_name_and_a_network_by_its_addresses() -> None:
    guard = Guard(Allowance(hosts=("intranet.example", "10.1.0.0/16")))
    assert guard.may_use("Intranet.Example.", ip_address("192.168.0.1"))
    assert guard.may_use("other.example", ip_address("10.1.2.3"))
    assert not guard.may_use("other.example", ip_address("10.2.2.3"))


def test_what_was_checked_is_what_is_connected_to(client: Client, port: int, monkeypatch) -> None:
    """A name that resolves to something else the second time is not asked a second time."""
    asked: list[str] = []

    async def look_up(self, host: str, port: int):
        asked.append(host)
        return [ip_address("127.0.0.1" if len(asked) == 1 else "10.0.0.1")]

    monkeypatch.setattr(Guard, "_look_up", look_up)
    assert client.send("GET", f"http://rebound.example:{port}/hello").status == 200
    assert asked == ["rebound.example"]
