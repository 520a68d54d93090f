"""One server, many subscribers: completeness, latency and memory.

There are three processes: a server (`axlog serve`), a process that follows one channel over many
connections by server-sent events, and this one, which publishes at a steady rate. Every connection
counts what it receives and must receive every number. The latest message of each chunk that arrives
is timed, from before it was published to after it was read (the clock is the machine's). In a
second run some subscribers read nothing; the ratio is the effect on the others.

Not handled: networks; everything is loopback, on one machine that all three processes share.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from time import monotonic, sleep
from typing import Any

from axlog.errors import WorkloadError
from lab.benchmarks.measuring import Cost, Result

_AXLOG = "from axlog.cli import main; main()"
_FOLLOW = "from lab.benchmarks.channels import follow_all; follow_all()"
_TOKEN = "a token of the benchmark"
_SLICE = 0.02  # seconds between two requests that publish


def channels(subscribers: int, rate: int, seconds: float, slow: int) -> Result:
    """Publish `rate` messages per second to this many subscribers, without and with slow ones."""
    result = Result(
        "channels",
        "a channel followed by many over server-sent events, on loopback",
        sizes={"subscribers": subscribers, "messages a second": rate, "seconds": seconds},
    )
    medians: dict[str, Cost] = {}
    for name, idle in (("all read", 0), (f"{slow} do not read", slow)):
        said = _measure(subscribers, rate, seconds, idle)
        for what, value in said.items():
            result.figures[f"{name}: {what}"] = value
        middle = 1000 * said["latency p50, ms"]
        medians[name] = Cost(middle, middle)
    result.compare("latency of those who read", medians, f"{slow} do not read", "all read")
    result.remarks.append("server, readers and publisher share the machine's cores")
    return result


def _measure(subscribers: int, rate: int, seconds: float, idle: int) -> dict[str, float]:
    total = int(rate * seconds)
    with _server() as (port, server):
        memory = resident(server)
        command = [
            sys.executable,
            "-c",
            _FOLLOW,
            str(port),
            str(subscribers),
            str(idle),
            str(total),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as readers:
            assert readers.stdout is not None
            if readers.stdout.readline().strip() != "ready":
                raise WorkloadError("AX601", "the subscribers could not connect")
            took = _publish(port, rate, total)
            said = json.loads(readers.stdout.readline() or "{}")
        if not said:
            raise WorkloadError("AX601", "the subscribers ended without a word")
        after = resident(server)
    return {
        "published a second": total / took,
        "deliveries": float(said["got"]),
        "lost": float(subscribers * total - said["got"]),
        **{f"latency {name}, ms": value for name, value in said["latency"].items()},
        "server before, MB": memory,
        "server after, MB": after,
    }


@contextmanager
def _server() -> Iterator[tuple[int, int]]:
    """A server with one channel: its port and its process."""
    command = [sys.executable, "-c", _AXLOG, "serve", "--port", "0", "--channel", "load"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_variables()) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            yield int(said.rstrip().rpartition(":")[2]), process.pid
        finally:
            process.kill()


def _variables() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1", "AXLOG_TOKEN": _TOKEN}


def _publish(port: int, rate: int, total: int) -> float:
    """Publish at a steady rate, and return the seconds it took."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {_TOKEN}"}
    started = monotonic()
    sent = 0
    while sent < total:
        due = min(total, int((monotonic() - started) * rate) + 1)
        if due > sent:
            lines = [
                json.dumps({"stream": "load", "insert": f'<m n="{n}" t="{monotonic():.6f}"/>'})
                for n in range(sent, due)
            ]
            connection.request("POST", "/channels/load/updates", "\n".join(lines), headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise WorkloadError("AX601", f"publishing is answered with {answer.status}")
            sent = due
        sleep(_SLICE)
    took = monotonic() - started
    connection.close()
    return took


def resident(process: int) -> float:
    """Megabytes of a process in memory; 0 where the system does not report it."""
    try:
        with open(f"/proc/{process}/status", encoding="ascii") as file:  # noqa: PTH123
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


# The process of the subscribers -------------------------------------------------------------------


def follow_all() -> None:
    """Follow a channel over many connections; print the result as one line of JSON."""
    port, subscribers, idle, total = (int(word) for word in sys.argv[1:])
    print(json.dumps(asyncio.run(_follow_all(port, subscribers, idle, total))), flush=True)


async def _follow_all(port: int, subscribers: int, idle: int, total: int) -> dict[str, Any]:
    readers = [await _connect(port) for _ in range(subscribers)]
    sleeping = [await _connect(port) for _ in range(idle)]
    print("ready", flush=True)
    late: list[float] = []
    got = await asyncio.gather(*(_follow(reader, total, late) for reader, _ in readers))
    for _, writer in [*readers, *sleeping]:
        writer.close()
    late.sort()
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    latency = {
        name: 1000 * late[min(len(late) - 1, int(part * len(late)))] for name, part in at.items()
    }
    return {"got": sum(got), "latency": latency}


async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    # A small buffer, so that the server soon has to wait for a subscriber that does not read.
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    known = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {_TOKEN}\r\n"
    asked = f"GET /channels/load/events HTTP/1.0\r\n{known}\r\n"
    writer.write(asked.encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def _follow(reader: asyncio.StreamReader, total: int, late: list[float]) -> int:
    """Read until the last number; return how many numbers arrived, one by one in order."""
    got = 0
    rest = b""
    while got < total:
        try:
            part = await asyncio.wait_for(reader.read(1 << 16), 30)
        except TimeoutError:
            return got
        if not part:
            return got
        rest += part
        whole, _, rest = rest.rpartition(b"\n\n")
        if not whole:
            continue
        events = whole.count(b"id: ")
        last = whole.rpartition(b"id: ")[2]
        if events and int(last.split(b"\n", 1)[0]) != got + events:
            return got  # a number is missing or duplicated
        got += events
        if events:
            late.append(monotonic() - float(last.rpartition(b't=\\"')[2].split(b'\\"', 1)[0]))
    return got
