"""A whole server with everything it can have, and all that a request could change of it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any
from urllib.parse import parse_qs, urlsplit

from axlog.connect.channels.registry import Channels
from axlog.connect.http import LOOPBACK, Allowance
from axlog.document.stream_update import StreamUpdate
from axlog.live.document import Document
from axlog.match.filters import Filter
from axlog.server.application import make_application
from axlog.server.monitoring import DocumentsReport, operating_operations
from axlog.server.operations import Operation
from axlog.server.page import page_operations
from axlog.server.roles import Grant, Principal
from axlog.server.server import running
from axlog.server.summaries import Observer
from tests.server_access import client_of, principal, secured, token_of

DOCUMENT = '<a><b>1</b><ax:call xmlns:ax="urn:axlog" stream="s"/></a>'
OWN = "pipeline.w.s"
"""The pipeline's own subscription."""
HIDDEN = "a-part-of-the-address-that-nobody-else-may-know"
SECRET = "what-the-bodies-are-signed-with"


def pattern(text: str) -> Filter:
    made = Filter()
    made.add("it", text)
    return made


PRINCIPALS: dict[str, tuple[Grant | str, ...]] = {
    "nobody": (),
    "reader": ("read",),
    "publisher": ("publish",),
    "subscriber": ("subscribe",),
    "watcher": ("watch",),
    "giver": ("deploy",),
    "ann": ("subscribe", "watch"),
    "elsewhere": (Grant(may=("administer",), channels=("other",), documents=("other",)),),
}


class World:
    """One server: channels with journals, subscriptions, webhooks, documents, views, sessions."""

    def __init__(self, place: Path, more: list[Operation] | None = None) -> None:
        self.place = place
        self.channels = Channels(place)
        orders = self.channels.make("orders")
        own = orders.subscribe(OWN, wanted=pattern("match /order[late]"), after=0)
        own.close()
        orders.subscribe("ann/taken", after=0).close()  # of a pipeline whose name is like this
        for number in range(3):
            xml = f"<order><oid>{number}</oid></order>"
            orders.publish(StreamUpdate("orders", "insert", xml, number), ("pipeline", number))
        self.doc = Document(DOCUMENT, views={"v": "match /a/b/$x return $x"})
        principals = [principal(name, *grants) for name, grants in PRINCIPALS.items()]
        self.settings = secured(
            *principals, allowance=Allowance(hosts=LOOPBACK, seconds=30), longest_pause=0.05
        )
        self.access = self.settings.access
        self.observer = Observer({"w": self.doc})
        operations = [
            *page_operations(self.observer, self.access),
            *operating_operations(DocumentsReport({"w": self.doc}, self.channels), self.access),
            *(more or []),
        ]
        self.app: Any = make_application(
            self.channels, self.settings, operations, documents={"w": self.doc}
        )

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve it; ann has a subscription, a webhook and a view."""
        with running(self.app, self.settings) as address, receiver() as callback:
            with client_of(address, token_of("ann")) as ann:
                path = "/channels/orders/subscriptions"
                wanted = {"filter": json.loads(pattern("match /order[oid]").to_json()), "after": 0}
                assert ann.put(f"{path}/mine", json=wanted).status_code == 200
                hook = {"callback": callback, "secret": SECRET}
                assert ann.put(f"{path}/hook", json=hook).status_code == 200
                view = {"query": "match /a/b"}
                assert ann.put("/documents/w/views/added", json=view).status_code == 201
            yield address
        self.channels.close()

    def principal(self, name: str) -> Principal:
        found = self.access.named(name)
        assert found is not None
        return found

    def settle(self) -> None:
        """Wait until the webhook has what was published."""
        orders = self.channels["orders"]
        until = monotonic() + 60
        while monotonic() < until:
            hook = orders.subscriptions().get("ann/hook")
            if hook is None or hook.acknowledged == orders.last:
                return
            sleep(0.01)

    def state(self) -> dict[str, Any]:
        """Everything that a request could change, but for what is counted of requests."""
        self.settle()
        webhooks = self.app.state.webhooks
        return {
            "channels": {each.name: self._channel(each) for each in self.channels},
            "files": {path.name: _file(path) for path in sorted(self.place.iterdir())},
            "webhooks": {key: served.hook for key, served in webhooks._served.items()},
            "owners": dict(self.app.state.views._owners),
            "document": self.doc.xml(),
            "views": {name: str(one.rows()) for name, one in self.doc.views.items()},
            "streams": {name: str(one) for name, one in self.doc.streams().items()},
            "letters": list(self.doc.dead_letters),
            "sessions": dict(self.access.sessions._by_key),
            "roles": self.access.roles,
            "history": (self.observer.history.changes(), self.observer.history.sizes("w")),
        }

    def _channel(self, channel: Any) -> dict[str, Any]:
        return {
            "entries": [(entry.sequence, entry.text) for entry in channel._retained],
            "subscriptions": channel.subscriptions(),
            "filters": {name: each.text for name, each in channel._installed.items()},
            "judged": {name: list(keys) for name, keys in channel._wanting._keys.items()},
            "open": set(channel._open),
            "readers": channel.readers,
            "producers": dict(channel._producers),
            "notes": dict(channel._notes),
            "dropped": channel.dropped,
            "closed": channel.is_closed,
        }


def _file(path: Path) -> tuple[int, object]:
    """The mode of a file and what is in it; of a journal its files."""
    mode = path.stat().st_mode & 0o777
    if path.is_dir():
        return mode, {each.name: _file(each) for each in sorted(path.iterdir())}
    return mode, path.read_bytes()


@contextmanager
def receiver(take: Callable[[bytes], object] = bytes) -> Iterator[str]:
    """An address that takes webhooks."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = parse_qs(urlsplit(self.path).query)["hub.challenge"][0].encode()
            self.answer(said)

        def do_POST(self) -> None:
            take(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(b"")

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/{HIDDEN}?key={HIDDEN}"
    server.shutdown()
    server.server_close()
    thread.join()
