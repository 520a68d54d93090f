"""What Spark starts in place of Python: asks the process that has imported everything to fork.

    python -S -E -s launching.py PLACE PYTHON -m pyspark.daemon pyspark.worker

Run by its path and without `site`, since its whole point is to be quick: it imports nothing but
what is built in. It hands over its arguments, environment, directory and standard files
(`worker_preload.py` has the other end), passes signals on, and ends as the forked process ends.
Where nobody answers, or the other end does not want to, it becomes the Python that Spark asked for.
"""

from __future__ import annotations

import _socket as socket
import os
import signal
import sys

NUMBER = 4
"""Bytes of a number on the line."""


def main(place: str, python: str, arguments: list[str]) -> None:
    """Be what Spark asked for: by fork, or by itself."""
    directory = os.getcwd()  # noqa: PTH109  # pathlib is slow to import
    said = [
        directory,
        str(len(arguments)),
        *arguments,
        *(f"{k}={v}" for k, v in os.environ.items()),
    ]
    told = b"\0".join(map(os.fsencode, said))  # none of them holds a NUL
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.connect(place)
        files = b"".join(each.to_bytes(NUMBER, sys.byteorder) for each in (0, 1, 2))
        line.sendmsg(
            [len(told).to_bytes(NUMBER, "big")],
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)],
        )
        line.sendall(told)
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
    """A number from the line; None if it was closed."""
    found = b""
    while len(found) < NUMBER:
        more = line.recv(NUMBER - len(found))
        if not more:
            return None
        found += more
    return int.from_bytes(found, "big")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
