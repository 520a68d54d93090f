"""The P2P monitor: three peers on this machine, each a process; one watches the other two.

    python examples/p2p-monitor/monitor.py

Two shops follow their access logs and publish the calls in them on channels; the monitor subscribes
to both. Its filter runs at the shops, so that only failed calls travel. One shop is killed and
comes back, then the monitor, and nothing is lost. Once the other has failed, the monitor wants
nothing more of it: it is unsubscribed, and so, inside that shop, is the log.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

HERE = Path(__file__).parent
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
        self.port = free_port()
        self.log = directory / "access.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        axlog = "from axlog.cli import main; main()"
        command = [sys.executable, "-c", axlog, "serve", str(self.file), "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        eventually(self.channels)

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
        """What the peer says of its channels; nothing while it is not there."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/channels", timeout=5) as answer:
                return json.load(answer) or True
        except OSError:
            return None

    def subscriptions(self) -> dict[str, Any]:
        said = self.channels()
        found: dict[str, Any] = said["channels"][0]["subscriptions"] if said else {}
        return found

    def told(self, name: str) -> list[dict[str, Any]]:
        """The changes that a sink of this peer has."""
        path = self.directory / name
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def eventually(holds: Callable[[], Any], seconds: float = 60) -> Any:
    until = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > until:
            raise TimeoutError(f"it did not come to hold in {seconds} seconds: {holds}")
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
        eventually(lambda: len(monitor.told("failures.jsonl")) == 1)
        installed = eventually(lambda: next(s["filter"] for s in b.subscriptions().values()))
        seen["filter"] = [each["text"] for each in installed["patterns"]]
        say(f"the monitor's filter at b: {seen['filter']}")
        b.kill()
        b.serve(("4", 500), ("5", 200), ("6", 500))
        say("b is killed, and calls come in meanwhile")
        b.start()
        b.serve(("7", 500))
        eventually(lambda: len(monitor.told("failures.jsonl")) >= 4)
        monitor.kill()
        b.serve(("8", 500))
        monitor.start()
        eventually(lambda: len(monitor.told("failures.jsonl")) >= 5)
        seen["failures"] = [one["row"]["path"] for one in monitor.told("failures.jsonl")]
        say(f"both were killed and came back; failures at b: {seen['failures']}")
        seen["before"] = sorted(a.subscriptions())
        a.serve(("9", 500))
        eventually(lambda: monitor.told("alarm.jsonl"))
        eventually(lambda: not a.subscriptions())
        seen["after"] = sorted(a.subscriptions())
        time.sleep(1)  # a looks at its channel before it looks at its log again
        last = a.channels()["channels"][0]["last"]
        a.serve(("10", 500), ("11", 500))
        time.sleep(1)
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
