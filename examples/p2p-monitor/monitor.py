"""The P2P monitor: three peers on this machine, each a process; one watches the other two.

    python examples/p2p-monitor/monitor.py

Two shops follow their access logs and publish the calls in them on channels; the monitor subscribes
to both, with a token that the shops know by its hash (`roles.yaml`). Its filter runs at the shops,
so that only failed calls travel. One shop is killed and comes back, then the monitor, and nothing
is lost. Once the other has failed, the monitor wants nothing more of it: it is unsubscribed, and
so, inside that shop, is the log.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from axlog.server.roles import new_token, written_hash

HANGS = 900
"""Seconds after which nothing is waited for any more: no measure of anything."""
HERE = Path(__file__).parent
MONITOR, OPERATOR = new_token(), new_token()
LINE = '10.0.0.1 - - [17/May/2026:10:05:03 +0000] "GET /{n} HTTP/1.1" {status} 17\n'


class Peer:
    """One peer: a directory, a port, and a process that can be killed and started again."""

    def __init__(self, directory: Path, file: str, **ports: int) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        text = (HERE / file).read_text(encoding="utf-8")
        for name, port in ports.items():
            text = text.replace(f"{{{name}}}", str(port))
        self.file = directory / file
        self.file.write_text(text, encoding="utf-8")
        self.roles = directory / "roles.yaml"
        roles = (HERE / "roles.yaml").read_text(encoding="utf-8")
        for name, token in (("{MONITOR}", MONITOR), ("{OPERATOR}", OPERATOR)):
            roles = roles.replace(name, written_hash(token))
        self.roles.write_text(roles, encoding="utf-8")
        self.port = free_port()
        self.log = directory / "access.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        axlog = "from axlog.cli import main; main()"
        options = ["--port", str(self.port), "--roles", str(self.roles)]
        command = [sys.executable, "-c", axlog, "serve", str(self.file), *options]
        known = {**os.environ, "MONITOR_TOKEN": MONITOR}
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=known)
        eventually(self.channels, self)

    def kill(self) -> None:
        """As a power cut would: no goodbye."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def serve(self, *calls: tuple[str, int]) -> None:
        """Have calls come in."""
        with self.log.open("a", encoding="utf-8") as log:
            log.write("".join(LINE.format(n=n, status=status) for n, status in calls))

    def channels(self) -> Any:
        """What the peer tells the monitor of its channels; nothing while it is not there."""
        said = self.get("/channels", MONITOR)
        return None if said is None else json.loads(said)

    def get(self, path: str, token: str) -> str | None:
        """What the peer answers; nothing while it is not there, or too busy to answer."""
        asked = Request(f"http://127.0.0.1:{self.port}{path}")
        asked.add_header("Authorization", f"Bearer {token}")
        try:
            with urlopen(asked, timeout=30) as answer:
                return str(answer.read(), "utf-8")
        except HTTPError as error:  # /health says 503 where a source cannot be reached
            return str(error.read(), "utf-8")
        except OSError:
            return None

    def views(self) -> list[str]:
        """The views that the peer still keeps."""
        said = self.get("/health", OPERATOR)
        return [] if said is None else [view["view"] for view in json.loads(said)["views"]]

    def read(self) -> int:
        """How many updates the peer has read from its log."""
        for line in (self.get("/metrics", OPERATOR) or "").splitlines():
            if line.startswith("axlog_source_updates_total"):
                return int(float(line.rpartition(" ")[2]))
        return 0

    def subscriptions(self) -> dict[str, Any]:
        said = self.channels()
        found: dict[str, Any] = said["channels"][0]["subscriptions"] if said else {}
        return found

    def filter(self) -> list[str]:
        """The patterns of the filter that a subscriber has installed here."""
        for said in self.subscriptions().values():
            if said["filter"] is not None:
                return [each["text"] for each in said["filter"]["patterns"]]
        return []

    def changes(self, name: str) -> list[dict[str, Any]]:
        """The changes that a sink of this peer has."""
        path = self.directory / name
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def eventually(holds: Callable[[], Any], *peers: Peer) -> Any:
    """Wait until something holds, however slow the machine is; an error if a peer has ended."""
    until = time.monotonic() + HANGS
    while not (found := holds()):
        for peer in peers:
            if peer.process is None or peer.process.poll() is not None:
                raise RuntimeError(f"the peer in {peer.directory} has ended")
        if time.monotonic() > until:
            raise TimeoutError(f"nothing has happened for {HANGS} seconds")
        time.sleep(0.05)
    return found


def play(directory: Path, say: Callable[[str], None] = print) -> dict[str, Any]:
    """The whole story; what was seen on the way."""
    a, b = Peer(directory / "a", "shop.yaml"), Peer(directory / "b", "shop.yaml")
    monitor = Peer(directory / "monitor", "monitor.yaml", PORT_A=a.port, PORT_B=b.port)
    seen: dict[str, Any] = {}
    try:
        for peer in (a, b):
            peer.log.touch()
            peer.start()
        monitor.start()
        b.serve(("1", 200), ("2", 500), ("3", 200))
        eventually(lambda: len(monitor.changes("failures.jsonl")) == 1, b, monitor)
        # The alarm is settled for b when it is tuned for the next time: one pattern is left.
        seen["filter"] = eventually(
            lambda: b.filter() if len(b.filter()) == 1 else None, b, monitor
        )
        say(f"the monitor's filter at b: {seen['filter']}")
        b.kill()
        b.serve(("4", 500), ("5", 200), ("6", 500))
        say("b is killed, and calls come in meanwhile")
        b.start()
        b.serve(("7", 500))
        eventually(lambda: len(monitor.changes("failures.jsonl")) >= 4, b, monitor)
        monitor.kill()
        b.serve(("8", 500))
        monitor.start()
        eventually(lambda: len(monitor.changes("failures.jsonl")) >= 5, b, monitor)
        seen["failures"] = [one["row"]["path"] for one in monitor.changes("failures.jsonl")]
        say(f"both were killed and came back; failures at b: {seen['failures']}")
        seen["before"] = sorted(a.subscriptions())
        a.serve(("9", 500))
        eventually(lambda: monitor.changes("alarm.jsonl"), a, monitor)
        eventually(lambda: not a.subscriptions(), a, monitor)
        seen["after"] = sorted(a.subscriptions())
        eventually(lambda: not a.views(), a)  # a has dropped the view without readers
        last = a.channels()["channels"][0]["last"]
        a.serve(("10", 500), ("11", 500))
        eventually(lambda: a.read() >= 3, a)
        seen["unheard"] = a.channels()["channels"][0]["last"] - last
        say(f"a has failed, and is unsubscribed: {seen['before']} became {seen['after']}")
        seen["b"] = sorted(b.subscriptions())
    finally:
        for peer in (a, b, monitor):
            peer.kill()
    return seen


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        play(Path(made))
        shutil.rmtree(made, ignore_errors=True)
