"""The client of the process that runs Saxon: one for each Python process, started on first use.

Saxon runs in a process of its own because a query is input. A query may recurse without end, loop,
or take all memory; Saxon cannot be interrupted, and an overflow of its stack ends the process that
it is in. Here it ends the worker: the query gets an error, and the next question starts a new one.

Any thread may ask; one question is answered at a time. A forked process has its own worker.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any

from axlog.errors import QueryError, ValueProblem
from axlog.extras import not_installed
from axlog.query.positions import place_at
from axlog.views.saxon.worker import HEADER

SECONDS = 30.0
"""Seconds that one evaluation may take."""
BYTES_PER_SECOND = 500_000
"""A document may take so much longer to build, in addition."""
MEGABYTES = 4096
"""Memory of the worker; its documents and results are in it."""
_CODE = re.compile(r"\b([A-Z]{4}\d{4})\b\s*")
_LINE = re.compile(r"line (\d+)(?: column (\d+))?")
_HEAD = re.compile(r"^\s*(?:Static error|Error)(?: [^\n]*)?\n")
_STATIC = ("XPST", "XQST", "XTSE")


def is_installed() -> bool:
    """Whether the extra `xquery` is installed."""
    return _saxonche() is not None


def _saxonche() -> Path | None:
    """The folder of the module; None if it is not installed."""
    try:
        spec = find_spec("saxonche")
    except ModuleNotFoundError:
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as the worker gets it."""

    text: str
    language: str
    namespaces: tuple[tuple[str, str], ...] = ()


class SaxonProcess:
    """Starts the worker and asks it questions."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._released: list[int] = []  # documents to drop with the next question
        self._process: subprocess.Popen[bytes] | None = None
        self.epoch = 0  # number of workers that ended: their documents are gone
        self.seconds = SECONDS

    def load(self, name: int, xml: str) -> None:
        """Build a document in the worker."""
        with self.lock:
            found, _ = self._exchange({"do": "document", "name": name}, xml.encode())
        if "error" in found:
            raise QueryError("AX217", f"Saxon cannot read the document: {found['error'].strip()}")

    def release(self, name: int) -> None:
        """Free a document with the next question: a finalizer must not wait for an answer."""
        self._released.append(name)

    def run(self, asked: Asked, name: int) -> list[tuple[str, str]]:
        """The items of a query on a document: pairs of kind and text."""
        with self.lock:
            found, rest = self._exchange(
                {
                    "do": "run", "name": name, "query": asked.text, "language": asked.language,
                    "namespaces": dict(asked.namespaces),
                }
            )  # fmt: skip
        if "error" in found:
            raise _problem(found["error"], asked.text)
        flat = json.loads(rest)
        return list(zip(flat[::2], flat[1::2], strict=True))

    def close(self) -> None:
        """End the worker."""
        with self.lock:
            process, self._process = self._process, None
            if process is not None:
                self.epoch += 1
                process.kill()
                process.wait()
                for stream in (process.stdin, process.stdout):
                    assert stream is not None
                    with contextlib.suppress(OSError):
                        stream.close()

    def forget(self) -> None:
        """In a forked process: leave the worker to the parent."""
        process, self._process = self._process, None
        self.lock = RLock()
        if process is not None:
            self.epoch += 1
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with contextlib.suppress(OSError):
                    os.close(stream.fileno())
            process.returncode = 0  # it is not a child of this process

    # Messages -------------------------------------------------------------------------------------

    def _exchange(self, message: Mapping[str, Any], rest: bytes = b"") -> tuple[Any, bytes]:
        process = self._process or self._started()
        until = time.monotonic() + self.seconds + len(rest) / BYTES_PER_SECOND
        assert process.stdin is not None
        try:
            released, self._released = self._released, []
            written = json.dumps({**message, "drop": released}).encode()
            process.stdin.write(HEADER.pack(len(written), len(rest)) + written)
            process.stdin.write(rest)
            process.stdin.flush()
            return self._received(process, until)
        except OSError:
            self.close()
            raise _ended() from None
        except BaseException:  # also an interrupt: the answer would be taken for the next one
            self.close()
            raise

    def _received(self, process: subprocess.Popen[bytes], until: float) -> tuple[Any, bytes]:
        header = self._bytes(process, HEADER.size, until)
        length, more = HEADER.unpack(header)
        found = json.loads(self._bytes(process, length, until))
        return found, self._bytes(process, more, until)

    def _bytes(self, process: subprocess.Popen[bytes], count: int, until: float) -> bytes:
        assert process.stdout is not None
        parts, missing = [], count
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while missing:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise QueryError(
                        "AX216",
                        f"the query took more than {self.seconds:g} seconds",
                        advice="a query that reads less",
                    )
                part = os.read(process.stdout.fileno(), min(missing, 1 << 20))
                if not part:
                    raise _ended()
                parts.append(part)
                missing -= len(part)
        return b"".join(parts)

    def _started(self) -> subprocess.Popen[bytes]:
        folder = _saxonche()
        if folder is None:
            raise not_installed("saxonche")
        script = Path(__file__).with_name("worker.py")
        process = subprocess.Popen(
            [sys.executable, "-I", str(script), str(folder), str(MEGABYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            cwd="/",
        )
        self._process = process
        try:
            self._received(process, time.monotonic() + self.seconds)
        except QueryError:
            self.close()
            raise QueryError(
                "AX217", "saxonche is installed but does not start", advice="axlog doctor"
            ) from None
        return process


def _ended() -> QueryError:
    return QueryError(
        "AX216",
        "Saxon ended while it evaluated the query: it recursed too deeply or took too much memory",
        advice="a query with less recursion, or with smaller intermediate results",
    )


def _problem(message: str, text: str) -> QueryError:
    """The error that Saxon reports: in the query itself, or for the data of the document."""
    code = _CODE.search(message)
    line = _LINE.search(message)
    said = " ".join(_HEAD.sub("", message[code.end() :] if code else message).split())
    place = None
    if line is not None:
        lines = text.split("\n")
        number = min(int(line[1]), len(lines)) - 1
        column = int(line[2] or 1) - 1
        offset = sum(len(each) + 1 for each in lines[:number]) + min(column, len(lines[number]))
        place = place_at(text, min(offset, len(text)))
    is_static = "Static error" in message or (code is not None and code[1].startswith(_STATIC))
    said = f"{code[1]}: {said}" if code else said
    if is_static:
        return QueryError("AX201", f"Saxon refuses the query: {said}", place=place)
    return ValueProblem("AX217", f"Saxon has no value for the query: {said}", place=place)


PROCESS = SaxonProcess()
"""The client of this Python process."""
atexit.register(PROCESS.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.forget)
