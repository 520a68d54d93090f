"""The program that Spark starts instead of Python: asks the preloaded process to fork.

    python -S -E -s launching.py PLACE PYTHON -m pyspark.daemon pyspark.worker

It is run by its path and without `site`, to be fast: it imports only built-in modules. It passes
its arguments, environment, directory and standard files to the other side (`worker_preload.py`),
forwards signals, and ends as the forked process ends. If the other side does not answer or refuses,
it executes the Python that Spark asked for.
"""

from __future__ import annotations

import _socket as socket
import os
import signal
import sys

NUMBER = 4
"""Bytes of a number in the protocol."""


def main(place: str, python: str, arguments: list[str]) -> None:
    """Run what Spark asked for: by fork, or directly."""
    directory = os.getcwd()  # noqa: PTH109  # pathlib is slow to import
    fields = [
        directory,
        str(len(arguments)),
        *arguments,
        *(f"{k}={v}" for k, v in os.environ.items()),
    ]
    request = b"\0".join(map(os.fsencode, fields))  # none of them contains a NUL
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.connect(place)
        files = b"".join(each.to_bytes(NUMBER, sys.byteorder) for each in (0, 1, 2))
        line.sendmsg(
            [len(request).to_bytes(NUMBER, "big")],
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)],
        )
        line.sendall(request)
        process = received(line)
    except OSError:
        process = None
    if process is None:
        os.execv(python, [python, *arguments])

    def pass_on(number: int, _: object) -> None:
        os.kill(process, number)

    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, pass_on)
    code = received(line)
    os._exit(1 if code is None else code)


def received(line: socket.socket) -> int | None:
    """Read a number; None if the connection was closed."""
    found = b""
    while len(found) < NUMBER:
        more = line.recv(NUMBER - len(found))
        if not more:
            return None
        found += more
    return int.from_bytes(found, "big")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
