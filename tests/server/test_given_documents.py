"""Documents that principals give to the server to keep, with their views; and who may not."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from axlog.connect.channels.registry import Channels
from axlog.document.stream_update import StreamUpdate
from axlog.live.document import Document
from axlog.server.access import Access
from axlog.server.application import Settings, make_application
from axlog.server.roles import Grant, Principal
from axlog.server.server import running
from tests.server_access import client_of, principal, secured, token_of
from tests.waiting import eventually

AX = 'xmlns:ax="urn:axlog"'
GIVEN: dict[str, Any] = {
    "document": f"<m {AX}><o><ax:call stream='orders'/></o><p><ax:call stream='paid'/></p></m>",
    "streams": {"orders": {"channel": "orders"}, "paid": {"channel": "paid"}},
    "views": {
        "done": {"query": "match /m[o/order/id/$x][p/paid/id/$x] return $x", "channel": "done"},
        "all": "match /m/o/order/id/$x return $x",
    },
}
PEER = (
    Grant(may=("deploy",), documents=("peer-*",)),
    Grant(may=("subscribe",), channels=("orders", "paid")),
    Grant(may=("publish",), channels=("done",)),
)
PRINCIPALS: dict[str, tuple[Grant | str, ...]] = {
    "peer": PEER,
    "other": PEER,
    "watcher": ("watch", "subscribe", "publish"),
    "deaf": (Grant(may=("deploy",)), Grant(may=("publish",))),
    "mute": (Grant(may=("deploy",)), Grant(may=("subscribe",))),
}


class World:
    def __init__(self, place: Path, access: Access | None = None) -> None:
        self.channels = Channels(place)
        for name in ("orders", "paid", "done", "secret"):
            self.channels.make(name)
        made = [principal(name, *grants) for name, grants in PRINCIPALS.items()]
        made.append(principal("small", *PEER, documents=0))
        self.settings = secured(*made) if access is None else Settings(port=0, access=access)
        self.access: Access = self.settings.access
        self.documents = {"own": Document("<a/>", views={"v": "match /a"})}
        app = make_application(self.channels, self.settings, documents=self.documents)
        self.app = app

    @contextmanager
    def running(self) -> Iterator[str]:
        with running(self.app, self.settings) as address:
            yield address
        self.channels.close()

    def publish(self, channel: str, content: str, at: int) -> None:
        self.channels[channel].publish(StreamUpdate(channel, "insert", content, at))

    def done(self) -> list[str]:
        return [str(entry.update.content) for entry in self.channels["done"].newest(100)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def rows(client: httpx.Client, view: str) -> list[Any]:
    answered = client.get(f"/documents/peer-1/views/{view}")
    return [one["row"]["x"] for one in answered.json()["rows"]]


def test_a_document_is_given_kept_and_ended(world: World) -> None:
    world.publish("orders", "<order><id>1</id></order>", 1)  # before it was given
    with world.running() as address, client_of(address, token_of("peer")) as peer:
        answered = peer.put("/documents/peer-1", json=GIVEN)
        assert answered.status_code == 201
        assert answered.json() == {
            "views": {"all": ["x"], "done": ["x"]}, "streams": ["orders", "paid"],
        }  # fmt: skip
        assert peer.put("/documents/peer-1", json=GIVEN).status_code == 200  # the same
        world.publish("orders", "<order><id>2</id></order>", 2)
        world.publish("paid", "<paid><id>2</id></paid>", 3)
        world.publish("orders", "<order><id>3</id></order>", 4)
        assert eventually(lambda: rows(peer, "done") == ["2"])
        assert eventually(world.done)
        assert "<x>2</x>" in world.done()[0]
        assert peer.get("/documents").json()["peer-1"]["views"] == ["all", "done"]
        changed = {**GIVEN, "views": {"all": "match /m/o"}}
        assert peer.put("/documents/peer-1", json=changed).json()["code"] == "AX817"
        assert peer.delete("/documents/peer-1").status_code == 204
        assert peer.get("/documents/peer-1/views/all").status_code == 404
        assert peer.put("/documents/peer-1", json=changed).status_code == 201


@pytest.mark.parametrize(
    ("name", "document", "status", "code"),
    [
        ("watcher", "peer-1", 403, "AX814"),  # may add views, not documents
        ("peer", "elsewhere", 403, "AX814"),  # outside its grant
        ("deaf", "peer-1", 403, "AX814"),  # may not subscribe to the channels
        ("mute", "peer-1", 403, "AX814"),  # may not publish
        ("small", "peer-1", 429, "AX812"),  # has no documents left
        ("nobody", "peer-1", 401, "AX811"),
    ],
)
def test_who_may_not_give_one(
    world: World, name: str, document: str, status: int, code: str
) -> None:
    with world.running() as address, client_of(address, token_of(name)) as client:
        refused = client.put(f"/documents/{document}", json=GIVEN)
        assert (refused.status_code, refused.json()["code"]) == (status, code)
        assert list(world.documents) == ["own"]


@pytest.mark.parametrize(
    "change",
    [
        {"document": "/etc/passwd"},
        {"document": "https://example.org/a.xml"},
        {"streams": {"orders": {"source": {"kind": "jsonl", "path": "x"}}}},
        {"streams": {"orders": {"view": "own.v"}}},
        {"views": {}},
        {"views": {"v": {"query": "match /m", "sinks": [{"kind": "jsonl", "path": "x"}]}}},
        {"views": {"v": "match /m["}},
        {"sources": [{"kind": "jsonl", "path": "x"}]},
        {"updates": []},
        {"types": ["/etc/passwd"]},
        {"document": "<m><!DOCTYPE></m>"},
    ],
)
def test_what_cannot_be_given(world: World, change: dict[str, Any]) -> None:
    with world.running() as address, client_of(address, token_of("peer")) as peer:
        refused = peer.put("/documents/peer-1", json={**GIVEN, **change})
        assert refused.status_code in (400, 422)
        assert list(world.documents) == ["own"]


def test_documents_of_others_and_of_the_pipeline_stay(world: World) -> None:
    with world.running() as address:
        with client_of(address, token_of("peer")) as peer:
            assert peer.put("/documents/peer-1", json=GIVEN).status_code == 201
        with client_of(address, token_of("other")) as other:
            assert other.put("/documents/peer-1", json=GIVEN).json()["code"] == "AX817"
            assert other.delete("/documents/peer-1").json()["code"] == "AX814"
        with client_of(address) as admin:
            assert admin.delete("/documents/own").json()["code"] == "AX814"
            assert admin.delete("/documents/nothing").status_code == 404
            assert admin.put("/documents/own", json=GIVEN).json()["code"] == "AX817"
            assert admin.delete("/documents/peer-1").status_code == 204
        assert list(world.documents) == ["own"]


def test_a_document_ends_with_the_rights_of_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "roles.yaml"

    def write(*grants: str) -> None:
        hashed = f"sha256:{Principal.of('peer', token_of('peer')).digest.hex()}"
        rights = ", ".join(grants)
        path.write_text(f'principals: {{peer: {{hash: "{hashed}", grants: [{rights}]}}}}\n')

    write("deploy", "subscribe", "publish")
    world = World(tmp_path / "journals", Access(path=path))
    with world.running() as address, client_of(address, token_of("peer")) as peer:
        assert peer.put("/documents/peer-1", json=GIVEN).status_code == 201
        write("deploy", "publish")
        world.access.reload()
        eventually(lambda: "peer-1" not in world.documents)
        assert peer.get("/documents/peer-1/views/all").status_code == 404
        world.publish("orders", "<order><id>9</id></order>", 9)
        world.publish("paid", "<paid><id>9</id></paid>", 9)
        assert world.done() == []
