"""Peers that start late, in any order: nothing is lost, and what nobody wants is unsubscribed.

A shop publishes the calls of its log on a channel, a monitor reads two shops over HTTP (as in the
P2P example, in one process). Every runner goes round by round here, so that each order of events
can be played: a delay is a peer that takes part only from a later step on. No test waits for time.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.registry import Channels
from axlog.live.internals import streams_of
from axlog.pipeline.loader import load
from axlog.retry import Backoff
from axlog.runtime import unreachable
from axlog.runtime.embedded import Runner
from axlog.server.application import Settings, make_application
from axlog.server.server import listening, running
from tests.server_access import TOKEN, secured

LINE = '10.0.0.1 - - [17/May/2026:10:05:03 +0000] "GET /{n} HTTP/1.1" {status} 17\n'
SHOP = {
    "name": "shop",
    "documents": {
        "shop": {
            "document": '<shop><ax:call xmlns:ax="urn:axlog" stream="log"/></shop>',
            "streams": {"log": {"source": {"kind": "access-log", "path": "access.log"}}},
            "views": {
                "calls": {
                    "query": "match /shop/in-call[path/$path][status/$status]"
                    " return $path, $status",
                    "channel": "calls",
                }
            },
        }
    },
    "channels": {"calls": {"kind": "memory", "journal": "calls.channel", "on_demand": True}},
}
DOCUMENT = (
    '<monitor xmlns:ax="urn:axlog"><a><ax:call stream="a"/></a><b><ax:call stream="b"/></b>'
    "</monitor>"
)
LINES = {"kind": "jsonl", "path": "{view}.jsonl"}
ALARM = 'match /monitor[a/row/status/"500"][b/row/status/"500"]'
FAILURES = 'match /monitor/b/row[status/"500"]/path/$path return $path'


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connector that could not be reached is tried again in the next round."""
    monkeypatch.setattr(unreachable, "BACKOFF", Backoff(0.0, 0.0))


class Peer:
    """A pipeline in a directory of its own, that is started late, killed and started again."""

    def __init__(self, directory: Path, content: dict[str, Any]) -> None:
        self.directory = directory
        directory.mkdir()
        settings = {"checkpoint": "state", "trigger": 0, "hold": 0}
        text = yaml.safe_dump({"engine": "embedded", **content, "settings": settings})
        (directory / "pipeline.yaml").write_text(text, encoding="utf-8")
        self.runner: Runner | None = None

    def start(self) -> None:
        self.runner = Runner(load(str(self.directory / "pipeline.yaml")))

    def step(self) -> None:
        """One round, and whatever it has set going."""
        if self.runner is not None:
            self.runner.round()
            for one in self.runner.instances.values():
                for doc in one.documents.values():
                    streams_of(doc).tuner.wait()

    def stop(self) -> None:
        if self.runner is not None:
            self.runner.close()
            self.runner = None


class Shop(Peer):
    """A peer with a log; its port is known before anybody listens there."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, SHOP)
        with listening(Settings(port=0)) as free:
            self.port = int(free.getsockname()[1])
        self._serving = ExitStack()
        self.channels = Channels()

    def start(self) -> None:
        super().start()
        self.serve()
        self.adopt()

    def serve(self) -> None:
        settings = secured(port=self.port)
        self.channels = Channels()
        self._serving.enter_context(running(make_application(self.channels, settings), settings))

    def adopt(self) -> None:
        assert self.runner is not None
        self.channels.adopt(self.channel)

    @property
    def channel(self) -> LocalChannel:
        assert self.runner is not None
        channel = self.runner.channels["calls"]
        assert isinstance(channel, LocalChannel)
        return channel

    def stop(self) -> None:
        self._serving.close()
        super().stop()

    def call(self, number: int, status: int) -> None:
        with (self.directory / "access.log").open("a", encoding="utf-8") as log:
            log.write(LINE.format(n=number, status=status))


class World:
    """Two shops and a monitor."""

    def __init__(self, directory: Path) -> None:
        self.a, self.b = Shop(directory / "a"), Shop(directory / "b")
        address = "http://127.0.0.1:{}/channels/calls"
        channels = {
            name: {
                "kind": "http",
                "url": address.format(shop.port),
                "token": TOKEN,
                "allow": ["127.0.0.1"],
            }
            for name, shop in (("a", self.a), ("b", self.b))
        }
        self.monitor = Peer(
            directory / "monitor",
            {
                "name": "monitor",
                "documents": {
                    "monitor": {
                        "document": DOCUMENT,
                        "streams": {"a": {"channel": "a"}, "b": {"channel": "b"}},
                        "views": {
                            "alarm": {"query": ALARM, "sinks": [dict(LINES)]},
                            "failures": {"query": FAILURES, "sinks": [dict(LINES)]},
                        },
                        "settings": {"tune": {"messages": 1}},
                    }
                },
                "channels": channels,
            },
        )
        self.peers = (self.a, self.b, self.monitor)

    def steps(self, number: int) -> None:
        for _ in range(number):
            for peer in self.peers:
                peer.step()

    def until(self, holds: Callable[[], bool]) -> None:
        """Step until something holds: after so many rounds it never will."""
        for _ in range(50):
            if holds():
                return
            self.steps(1)
        raise AssertionError(f"it does not come to hold: {self.told()}")

    def told(self) -> dict[str, list[Any]]:
        found = {}
        for view in ("alarm", "failures"):
            path = self.monitor.directory / f"monitor.{view}.jsonl"
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            found[view] = [yaml.safe_load(line)["row"] for line in lines]
        return found

    def close(self) -> None:
        for peer in (self.monitor, self.a, self.b):
            peer.stop()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def finished(world: World) -> None:
    """What must come of the calls, whatever came late."""
    paths = [{"path": f"/{number}"} for number in (2, 4)]
    world.until(lambda: world.told() == {"alarm": [{}], "failures": paths})
    world.until(lambda: not world.a.channel.subscriptions())
    assert list(world.b.channel.subscriptions()) == ["administrator/monitor.monitor.b"]
    before = world.a.channel.last
    world.a.call(9, 500)
    world.b.call(8, 500)
    world.until(lambda: len(world.told()["failures"]) == 3)
    assert world.a.channel.last == before  # nobody wants a's calls, not even a


@pytest.mark.parametrize("order", list(permutations("abm")))
def test_peers_start_in_any_order(world: World, order: tuple[str, ...]) -> None:
    """Calls come in before, while and after the peers start, each some rounds after the other."""
    world.b.call(1, 200)
    world.b.call(2, 500)
    peers = {"a": world.a, "b": world.b, "m": world.monitor}
    for name in order:
        peers[name].start()
        world.steps(2)
    world.a.call(3, 500)
    world.b.call(4, 500)
    finished(world)


def test_a_server_that_is_there_before_its_channel(world: World) -> None:
    """The peer answers that it has no such channel: it will."""
    world.b.call(2, 500)
    world.monitor.start()
    for shop in (world.a, world.b):
        Peer.start(shop)
        shop.serve()
    world.steps(3)
    runner = world.monitor.runner
    assert runner is not None
    assert [feed.troubles is not None for feed in runner.feeds] == [True, True]
    for shop in (world.a, world.b):
        shop.adopt()
    world.a.call(3, 500)
    world.b.call(4, 500)
    finished(world)


def test_a_shop_that_comes_back_without_its_subscriptions(world: World) -> None:
    """What the owner has forgotten is subscribed again, from where the reader is."""
    for peer in world.peers:
        peer.start()
    world.b.call(2, 500)
    world.until(lambda: len(world.told()["failures"]) == 1)
    world.b.channel._named.clear()  # as if it had no journal
    world.b.call(4, 500)
    world.a.call(3, 500)
    finished(world)


@pytest.mark.parametrize("who", ["a", "b", "monitor"])
def test_a_peer_that_is_stopped_and_comes_back_late(world: World, who: str) -> None:
    for peer in world.peers:
        peer.start()
    world.b.call(2, 500)
    world.until(lambda: len(world.told()["failures"]) == 1)
    peer = {"a": world.a, "b": world.b, "monitor": world.monitor}[who]
    peer.stop()
    world.a.call(3, 500)
    world.b.call(4, 500)
    world.steps(3)
    peer.start()
    finished(world)


def test_an_unsubscription_that_did_not_reach_its_peer_is_made_up_for(world: World) -> None:
    """The monitor ends after the alarm and before a hears of it; a still keeps its calls."""
    for peer in world.peers:
        peer.start()
    world.b.call(2, 500)
    world.b.call(4, 500)
    world.a.call(3, 500)
    world.until(lambda: bool(world.told()["alarm"]) or bool(world.a.channel.subscriptions()))
    while not world.told()["alarm"]:
        world.steps(1)
    if world.a.channel.subscriptions():  # told in a round, unsubscribed in the next
        world.monitor.stop()
        world.steps(2)
        world.monitor.start()
    finished(world)
