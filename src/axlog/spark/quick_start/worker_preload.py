"""A process that has imported what Spark's Python processes need, and forks into each of them.

To start a query Spark starts eight Python processes on the driver's machine, most of them one after
the other, and each imports pyspark, pyarrow, pandas and axlog: 1.5 seconds of processor time each.
Here this is done once, while Java starts. Spark gets `worker_launcher.py` as its Python, which asks
this process to fork. The child takes over the arguments, environment, directory and standard files
that Spark passed, and runs the module that Spark named. A worker then starts in milliseconds.

It is used only for a session on one machine that this process starts, and only for modules of
pyspark. In all other cases, and if forking fails, Spark's own way is used silently. The process
ends with its parent: its standard input is a pipe from there.

Forking is safe because the process has no Python threads: BLAS is limited to one (as in Spark's
workers); pyarrow's allocators are reset in the child by their own handlers. Not handled: Windows; a
worker environment with another PYTHONHASHSEED.
"""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from axlog.spark.quick_start.worker_launcher import NUMBER

MODULES = (
    "numpy", "pandas", "pyarrow", "pyspark.worker", "pyspark.daemon",
    "pyspark.sql.worker.lookup_data_sources", "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read", "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "axlog.spark.streaming_query", "axlog.spark.processor", "axlog.runtime.connections",
)  # fmt: skip
"""Modules imported in advance; one that fails is left to the processes that need it."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_HASHES = {"PYTHONHASHSEED": "0"}
"""As in Spark's start script: hashes of texts are the same in all workers."""


class Preloaded:
    """The preloaded process, from its parent's side; `python` is the program for Spark."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="axlog-python-"))
        place = self._directory / "line"
        self.python = self._directory / "python"
        launching = Path(__file__).with_name("worker_launcher.py")
        words = [sys.executable, "-S", "-E", "-s", launching, place, sys.executable]
        script = " ".join(shlex.quote(str(word)) for word in words)
        self.python.write_text(f'#!/bin/sh\nexec {script} "$@"\n', encoding="utf-8")
        self.python.chmod(0o700)
        environment = {**os.environ, **dict.fromkeys(_THREADS, "1"), **_HASHES}
        code = f"from {__name__} import main; main()"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.bind(str(place))
            line.listen(64)  # requests before the imports are done wait in the queue
            self._process = subprocess.Popen(
                [sys.executable, "-c", code, str(line.fileno())],
                env=environment, stdin=subprocess.PIPE, pass_fds=[line.fileno()],
            )  # fmt: skip

    @property
    def number(self) -> int:
        """The id of the process."""
        return self._process.pid

    def close(self) -> None:
        """End it; its forked children live as long as Spark needs them."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)


_started: list[Preloaded] = []


def preloaded() -> Preloaded | None:
    """Return the one preloaded process, started if necessary; None if it is not possible."""
    if os.name != "posix":
        return None
    if not _started:
        try:
            _started.append(Preloaded())
        except OSError:
            return None
        atexit.register(_started[0].close)
    return _started[0]


class _Server:
    """The process itself: forks on request."""

    def __init__(self, listening: int) -> None:
        self._listening = socket.socket(fileno=listening)
        self._lines: dict[int, socket.socket] = {}  # by the id of the forked process
        self._selector = selectors.DefaultSelector()
        self._woken, self._wakes = os.pipe()
        for end in (self._woken, self._wakes):
            os.set_blocking(end, False)

    def serve(self) -> None:
        """Fork on request, until standard input ends."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        for each in (0, self._listening, self._woken):
            self._selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    return
                if key.fileobj is self._listening:
                    self._take(self._listening.accept()[0])
                elif key.fileobj == self._woken:
                    os.read(self._woken, 4096)
                    self._reap()
                else:
                    self._lost(key.data)

    def _take(self, line: socket.socket) -> None:
        with line:
            try:
                (arguments, environment, directory), files = _asked(line)
            except (OSError, ValueError, EOFError):
                return  # the launcher then does it alone
            try:
                if _is_ours(arguments, environment):
                    self._fork(line, arguments, environment, directory, files)
            except OSError:
                pass
            finally:
                for each in files:
                    os.close(each)

    def _fork(
        self,
        line: socket.socket,
        arguments: list[str],
        environment: dict[str, str],
        directory: str,
        files: list[int],
    ) -> None:
        process = os.fork()
        if not process:
            signal.set_wakeup_fd(-1)
            for each in (signal.SIGCHLD, signal.SIGINT):
                signal.signal(each, signal.SIG_DFL)
            self._selector.close()
            for open_line in (line, self._listening, *self._lines.values()):
                open_line.close()
            for end in (self._woken, self._wakes):
                os.close(end)
            _become(arguments, environment, directory, files)
        kept = line.dup()
        self._lines[process] = kept
        self._selector.register(kept, selectors.EVENT_READ, process)
        kept.sendall(process.to_bytes(NUMBER, "big"))

    def _reap(self) -> None:
        """Send the exit status of ended children to their launchers."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            line = self._lines.pop(process, None)
            if line is None:
                continue
            self._selector.unregister(line)
            code = os.waitstatus_to_exitcode(status)
            with line:
                try:
                    line.sendall((code if code >= 0 else 128 - code).to_bytes(NUMBER, "big"))
                except OSError:
                    continue  # the launcher has ended

    def _lost(self, process: int) -> None:
        """A launcher was killed: kill the process that it stands for."""
        line = self._lines.pop(process, None)
        if line is not None:
            self._selector.unregister(line)
            line.close()
            os.kill(process, signal.SIGKILL)


def _asked(line: socket.socket) -> tuple[tuple[list[str], dict[str, str], str], list[int]]:
    """A request: a command, and its standard files."""
    head, files, *_ = socket.recv_fds(line, NUMBER, 3)
    left = int.from_bytes(head, "big")
    request = bytearray()
    while len(request) < left:
        more = line.recv(left - len(request))
        if not more:
            raise EOFError
        request += more
    directory, count, *rest = map(os.fsdecode, bytes(request).split(b"\0"))
    arguments, variables = rest[: int(count)], rest[int(count) :]
    environment = dict(each.split("=", 1) for each in variables)
    return (arguments, environment, directory), list(files)


def _is_ours(arguments: list[str], environment: dict[str, str]) -> bool:
    """Whether a fork of this process is equivalent to a new one."""
    is_module = arguments[:1] == ["-m"] and arguments[1].startswith("pyspark.")
    return is_module and _HASHES.items() <= environment.items()


def _become(
    arguments: list[str], environment: dict[str, str], directory: str, files: list[int]
) -> NoReturn:
    """Run the requested command, in the forked child."""
    code: Any = 1
    try:
        for at, each in enumerate(files):
            os.dup2(each, at)
            os.close(each)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(directory)
        paths = environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:] = ["", *(path for path in paths if path and path not in sys.path), *sys.path]
        sys.argv = arguments[1:]
        sys.modules["numpy"].random.seed()  # random state must differ between processes
        sys.modules.pop(arguments[1], None)  # it is run again, as `python -m` would
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue  # Spark has closed it
        os._exit(code & 0xFF)


def main() -> None:
    """Import what is needed, then fork on request."""
    for name in MODULES:
        try:
            import_module(name)
        except ImportError:
            continue
    # Newer Pythons warn of threads that they see but that are not Python's.
    warnings.filterwarnings("ignore", message=".*multi-threaded", category=DeprecationWarning)
    gc.collect()
    gc.freeze()
    _Server(int(sys.argv[1])).serve()
