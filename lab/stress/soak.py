"""A soak test: well-behaved principals beside hostile ones, on one server.

A server runs in a separate process (`axlog serve` with a pipeline and a roles file). Forty
principals publish orders at a fixed rate, follow a channel and read a view, first alone (`quiet`),
then beside the others (`hostile`):

    slow readers     open event streams and never read them
    slow clients     open more connections than allowed and send a byte now and then
    bad messages     not well-formed, with entities, with long namespaces, dated in the year 9999
    greedy views     watch queries whose branches multiply, again and again
    floods           more requests than their limits allow
    strangers        no token, a wrong token, the names of others

Reported for each phase: the latencies of the well-behaved requests, and the server's memory, file
descriptors and threads at its beginning and its end. `SoakReport.faults` lists the faults: a
well-behaved request that failed, a hostile one that succeeded. All traffic stays on loopback. No
time is asserted; the ratio of the two 99th percentiles is reported.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread
from time import perf_counter, sleep
from typing import Any

import httpx

from axlog.server.roles import new_token, written_hash
from lab.stress.latencies import Latencies

PIPELINE = """
engine: embedded
name: soak
documents:
  shop:
    document: <shop><ax:call xmlns:ax="urn:axlog" stream="orders"/></shop>
    streams:
      orders: {channel: orders}
    views:
      large: match /shop/order[price > 990]/oid/$x return $x
    settings: {keep: needed}
  board:
    document: <board><ax:call xmlns:ax="urn:axlog" stream="notes"/></board>
    streams:
      notes: {channel: notes}
    views:
      words: match /board/note/$x return $x
channels:
  orders: {kind: memory}
  notes: {kind: memory}
settings: {trigger: 20ms, hold: 0, times: dates}
"""
NOTE_EVERY = 20
"""Requests between two notes: the board keeps them all, so that views can be added to it."""
GREEDY = (
    "match /board" + "".join(f"[note/$x{i}]" for i in range(6)) + " where "
    + " and ".join(f"$x{i} != $x{j}" for i in range(6) for j in range(i)) + " return $x0"
)  # fmt: skip
HOSTILE_MESSAGES: dict[str, bytes] = {
    "not well-formed": b"<order><oid>1</order>",
    "entities": b'<!DOCTYPE a [<!ENTITY x "yyyyyyyyyy">]><order>&x;&x;</order>',
    "deep": b"<order>" * 3000 + b"</order>" * 3000,
    "namespaces": b'<o xmlns="urn:' + b"n" * 200_000 + b'">' + b"<o/>" * 3000 + b"</o>",
    "calls": b'<order><ax:call xmlns:ax="urn:axlog" stream="evil"/></order>',
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a soak test."""

    publishers: int = 40
    rate: float = 40.0  # well-behaved requests per second, of all principals together
    slow_readers: int = 20
    slow_clients: int = 1100
    hostile: int = 10  # principals that misbehave


@dataclass(slots=True)
class Usage:
    """The resources of the server's process."""

    memory: int
    files: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> Usage:
        status = Path(f"/proc/{pid}/status").read_text()
        found = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", status, re.MULTILINE))
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        return cls(int(found["VmRSS"]) * 1024, files, int(found["Threads"]))

    def plain(self) -> dict[str, Any]:
        return {"memory MB": round(self.memory / 1e6, 1), "files": self.files,
                "threads": self.threads}  # fmt: skip


@dataclass(slots=True)
class Phase:
    """The result of one phase."""

    name: str
    seconds: float = 0.0
    latencies: Latencies = field(default_factory=Latencies)
    usages: list[Usage] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """For JSON; `half` is the middle of the phase: a flat resource does not grow after it."""
        names = ("start", "half", "end")
        places = (0, len(self.usages) // 2, -1)
        return {
            "phase": self.name,
            "seconds": round(self.seconds, 1),
            "latency ms": self.latencies.plain(),
            **{n: self.usages[at].plain() for n, at in zip(names, places, strict=True)},
        }


@dataclass(slots=True)
class SoakReport:
    """The result of a soak test."""

    phases: list[Phase]
    attacks: Counter[str]  # by kind, how often
    answers: Counter[str]  # to attacks, by kind and status
    set_aside: int
    faults: list[str]

    @property
    def ratio(self) -> float:
        """The 99th percentile beside hostile principals relative to that without."""
        quiet, hostile = (phase.latencies.plain()["p99"] for phase in self.phases)
        return float(hostile / quiet) if quiet else 0.0

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "phases": [phase.plain() for phase in self.phases],
            "p99 ratio": round(self.ratio, 2),
            "attacks": dict(sorted(self.attacks.items())),
            "answers": dict(sorted(self.answers.items())),
            "views set aside": self.set_aside,
            "faults": self.faults,
        }


def run_soak(
    seconds: float, sizes: Sizes | None = None, show: Callable[[str], None] | None = None
) -> SoakReport:
    """Run both phases: a third of the time quiet, the rest beside hostile principals."""
    sizes = sizes or Sizes()
    with (
        tempfile.TemporaryDirectory(prefix="axlog-soak-") as made,
        _server(Path(made), sizes) as at,
    ):
        soak = _Soak(at, sizes, show or (lambda _: None))
        quiet = soak.phase("quiet", seconds / 3)
        with soak.hostility():
            hostile = soak.phase("hostile", seconds * 2 / 3)
        return soak.report([quiet, hostile])


@dataclass(frozen=True, slots=True)
class _Server:
    """A running server."""

    address: str
    pid: int
    tokens: dict[str, str]

    @property
    def place(self) -> tuple[str, int]:
        host, port = self.address.removeprefix("http://").split(":")
        return host, int(port)

    def client(self, who: str | None) -> httpx.Client:
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=60, trust_env=False)


@contextmanager
def _server(directory: Path, sizes: Sizes) -> Iterator[_Server]:
    tokens = {name: new_token() for name in _names(sizes)}
    (directory / "soak.yaml").write_text(PIPELINE, encoding="utf-8")
    roles = directory / "roles.json"  # YAML reads it
    roles.write_text(json.dumps(_roles(sizes, tokens)), encoding="utf-8")
    log = directory / "server.log"
    command = [
        sys.executable, "-c", "from axlog.cli import main; main()", "serve",
        str(directory / "soak.yaml"), "--roles", str(roles), "--port", "0", "--log-level", "error",
    ]  # fmt: skip
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.readline()
        found = re.search(r"http://\S+", first)
        if found is None:
            raise RuntimeError(f"the server did not start: {first}{log.read_text()[:2000]}")
        try:
            yield _Server(found.group(), process.pid, tokens)
        finally:
            process.terminate()
            process.wait(30)


def _names(sizes: Sizes) -> list[str]:
    good = [f"good{n}" for n in range(sizes.publishers)]
    return [*good, *(f"bad{n}" for n in range(sizes.hostile)), "operator"]


def _roles(sizes: Sizes, tokens: dict[str, str]) -> dict[str, Any]:
    """Return the roles: the hostile principals have every grant but low limits."""
    principals: dict[str, Any] = {}
    for name, token in tokens.items():
        may = ["publish", "subscribe"]
        entry: dict[str, Any] = {"hash": written_hash(token)}
        entry["grants"] = [
            {"may": may, "channels": ["orders", "notes"]},
            {"may": "read", "documents": ["shop", "board"]},
        ]  # fmt: skip
        if name.startswith("bad"):
            entry["grants"].append({"may": "watch", "documents": "board"})
            entry["limits"] = {"requests": 10, "rate": 50, "streams": 10, "views": 2, "work": 2000}
        if name == "operator":
            entry["grants"] = ["administer"]
        principals[name] = entry
    return {"principals": principals}


class _Soak:
    """A running soak test."""

    def __init__(self, server: _Server, sizes: Sizes, show: Callable[[str], None]) -> None:
        self.server, self.sizes, self._show = server, sizes, show
        self.faults: list[str] = []
        self.attacks: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.set_aside = 0
        self._lock = Lock()
        self._number = 0

    # Well-behaved ---------------------------------------------------------------------------------

    def phase(self, name: str, seconds: float) -> Phase:
        """Run the well-behaved principals for a time."""
        phase, ended = Phase(name), Event()
        workers = 4
        threads = [
            Thread(target=self._behave, args=(phase, worker, workers, ended), daemon=True)
            for worker in range(workers)
        ]
        began = perf_counter()
        for thread in threads:
            thread.start()
        while perf_counter() - began < seconds:
            phase.usages.append(Usage.of(self.server.pid))
            self._show(f"{name}: {perf_counter() - began:.0f} of {seconds:.0f} s, "
                       f"{phase.usages[-1].plain()}")  # fmt: skip
            ended.wait(min(1.0, seconds / 10))
        ended.set()
        for thread in threads:
            thread.join()
        phase.usages.append(Usage.of(self.server.pid))
        phase.seconds = perf_counter() - began
        return phase

    def _behave(self, phase: Phase, worker: int, workers: int, ended: Event) -> None:
        """Send requests at a fixed rate, each by the next of this worker's principals."""
        names = [f"good{n}" for n in range(worker, self.sizes.publishers, workers)]
        clients = [self.server.client(name) for name in names]
        pause, turn = workers / self.sizes.rate, 0
        due = perf_counter()
        while not ended.is_set():
            due += pause
            client = clients[turn % len(clients)]
            self._request(phase, client, turn)
            turn += 1
            late = due - perf_counter()
            if late > 0:
                sleep(late)
            else:
                due = perf_counter()
        for client in clients:
            client.close()

    def _request(self, phase: Phase, client: httpx.Client, turn: int) -> None:
        with self._lock:
            self._number += 1
            number = self._number
        began = perf_counter()
        try:
            if number % NOTE_EVERY == 0:
                answer = client.post(
                    "/channels/notes/updates", content=f"<note>{number}</note>".encode(),
                    headers={"Content-Type": "application/xml"},
                )  # fmt: skip
            elif turn % 4 == 3:
                answer = client.get("/documents/shop/views/large?limit=10")
            elif turn % 4 == 2:
                answer = client.get("/channels/orders/updates?limit=10&wait=0")
            else:
                answer = client.post(
                    "/channels/orders/updates", content=order(number),
                    headers={"Content-Type": "application/xml"},
                )  # fmt: skip
            if answer.status_code >= 400:
                self._fault(f"a well-behaved request got {answer.status_code}: {answer.text[:200]}")
        except httpx.TransportError as error:
            self._fault(f"a well-behaved request failed: {error!r}")
        with self._lock:
            phase.latencies.note(perf_counter() - began)

    def _fault(self, what: str) -> None:
        with self._lock:
            if len(self.faults) < 20:
                self.faults.append(what)

    # Hostile --------------------------------------------------------------------------------------

    @contextmanager
    def hostility(self) -> Iterator[None]:
        """Attack in threads while the block runs."""
        ended = Event()
        attacks = [self._slow_readers, self._slow_clients, self._messages, self._views,
                   self._floods, self._strangers]  # fmt: skip
        threads = [Thread(target=attack, args=(ended,), daemon=True) for attack in attacks]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join(60)

    def _note(self, kind: str, answer: httpx.Response | None) -> None:
        with self._lock:
            self.attacks[kind] += 1
            if answer is not None:
                self.answers[f"{kind}: {answer.status_code}"] += 1
                if answer.status_code >= 500 and answer.status_code != 503:
                    self.faults.append(f"{kind} got {answer.status_code}: {answer.text[:200]}")

    def _slow_readers(self, ended: Event) -> None:
        """Open event streams and do not read them, each for a while."""
        open_: list[socket.socket] = []
        while not ended.wait(0.5):
            token = self.server.tokens[f"bad{len(open_) % self.sizes.hostile}"]
            head = (f"GET /channels/orders/events?after=0 HTTP/1.1\r\nHost: x\r\n"
                    f"Authorization: Bearer {token}\r\n\r\n")  # fmt: skip
            with suppress(OSError):
                made = socket.socket()
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                made.connect(self.server.place)
                made.sendall(head.encode())
                open_.append(made)
                self._note("slow reader", None)
            if len(open_) > self.sizes.slow_readers:
                open_.pop(0).close()
        for each in open_:
            each.close()

    def _slow_clients(self, ended: Event) -> None:
        """Open more connections than allowed, without sending a request."""
        open_: list[socket.socket] = []
        while not ended.wait(0.02):
            with suppress(OSError):
                made = socket.create_connection(self.server.place, timeout=5)
                made.sendall(b"GET /health HTTP/1.1\r\nX: ")
                open_.append(made)
                self._note("slow client", None)
            if len(open_) >= self.sizes.slow_clients:
                open_.pop(0).close()
            if open_:
                with suppress(OSError):
                    open_[len(open_) // 2].sendall(b"x")
        for each in open_:
            each.close()

    def _messages(self, ended: Event) -> None:
        """Send messages that must be rejected."""
        random, turn = Random(1), 0
        with self.server.client("bad0") as client:
            while not ended.wait(0.2):
                name = random.choice(list(HOSTILE_MESSAGES))
                self._ask(f"message {name}", client, "POST", "/channels/orders/updates",
                          content=HOSTILE_MESSAGES[name],
                          headers={"Content-Type": "application/xml"})  # fmt: skip
                turn += 1
                if turn % 5 == 0:
                    line = {"stream": "orders", "insert": "<order/>", "at": "9999-12-31"}
                    self._ask("message dated 9999", client, "POST", "/channels/orders/updates",
                              content=json.dumps(line) + "\n",
                              headers={"Content-Type": "application/x-ndjson"})  # fmt: skip

    def _views(self, ended: Event) -> None:
        """Add views that exceed their budget, one after the other."""
        with self.server.client("bad1") as client, self.server.client("operator") as operator:
            turn = 0
            while not ended.wait(2.0):
                turn += 1
                path = f"/documents/board/views/greedy{turn}"
                self._ask("greedy view", client, "PUT", path, json={"query": GREEDY})
                if ended.wait(2.0):
                    break
                health = operator.get("/health").json()
                if any(f"/greedy{turn}:" in said for said in health.get("troubles", ())):
                    self.set_aside += 1
                self._ask("greedy view gone", client, "DELETE", path)

    def _floods(self, ended: Event) -> None:
        """Send more requests than the limits allow."""
        with self.server.client("bad2") as client:
            while not ended.wait(0.5):
                for _ in range(40):
                    self._ask("flood", client, "GET", "/channels")

    def _strangers(self, ended: Event) -> None:
        """Send unauthorized requests."""
        tries: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", "/channels", {}),
            ("GET", "/documents/shop/views/large", {}),
            ("POST", "/channels/orders/updates", {"content": b"<order/>"}),
            ("PUT", "/channels/mine", {"json": {}}),
            ("DELETE", "/documents/shop/views/large", {}),
            ("GET", "/channels/orders/updates?subscription=good1", {}),
        ]
        random = Random(2)
        with self.server.client(None) as client:
            while not ended.wait(0.1):
                method, path, given = random.choice(tries)
                headers = {"Authorization": "Bearer axlog_wrong"} if random.random() < 0.5 else {}
                answer = self._ask("stranger", client, method, path, headers=headers, **given)
                if answer is not None and answer.status_code < 400:
                    self._fault(f"a stranger got {answer.status_code} for {method} {path}")

    def _ask(
        self, kind: str, client: httpx.Client, method: str, path: str, **given: Any
    ) -> httpx.Response | None:
        answer = None
        with suppress(httpx.TransportError):
            answer = client.request(method, path, **given)
        self._note(kind, answer)
        return answer

    def report(self, phases: list[Phase]) -> SoakReport:
        """Summarize."""
        with self.server.client("operator") as client:
            answer = client.get("/documents/shop/views/large?limit=0")
            if answer.status_code != 200:
                self.faults.append(f"the view cannot be read at the end: {answer.status_code}")
        return SoakReport(phases, self.attacks, self.answers, self.set_aside, self.faults)


def order(number: int) -> bytes:
    """One order."""
    return f"<order><oid>{number}</oid><price>{number % 1000}</price></order>".encode()
