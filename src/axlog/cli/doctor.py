"""`axlog doctor`: report what this machine has, what is missing, and the command that installs it.

Without options the command starts nothing and changes nothing. `--spark` starts a session and sends
one row through a Python worker, which finds problems that files do not show.
"""

from __future__ import annotations

import json as json_text
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from axlog.cli import options
from axlog.cli.live_page import PORT
from axlog.cli.output import is_json
from axlog.errors import AxlogError
from axlog.extras import PARTS, is_installed

VERBS = {
    "axlog run": ("pipeline",),
    "on Spark": ("pipeline", "spark"),
    "axlog serve": ("pipeline", "server"),
    "axlog demo": ("pipeline", "server", "spark"),
}
"""The commands that users run, and the extras that each needs."""

_MEMORY, _FREE = 4, 2
"""GB of memory, and of free disk space for checkpoints, that Spark needs to run well."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: `ok`, `missing` (an optional part) or `bad`."""

    what: str
    state: str
    found: str
    advice: str = ""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("doctor", epilog="Example: axlog doctor")(doctor)


def doctor(
    json: options.Json = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also start Spark, and report how long that takes.")
    ] = False,
) -> None:
    """Report what is missing on this machine, and the command that installs it.

    The exit code is 1 if something that axlog itself needs is wrong. Optional parts may be missing.
    """
    is_bad = False
    for finding in chain(examine(), [_started()] if spark else []):
        is_bad |= finding.state == "bad"
        if is_json(json):
            typer.echo(json_text.dumps(asdict(finding)))
        else:
            _show(finding)
    if is_bad:
        raise typer.Exit(1)


def _show(finding: Finding) -> None:
    colour = {"ok": typer.colors.GREEN, "missing": typer.colors.YELLOW, "bad": typer.colors.RED}
    state = typer.style(f"{finding.state:8}", fg=colour[finding.state])
    typer.echo(f"{state}{finding.what:16}{finding.found}")
    if finding.advice:
        typer.echo(f"{'':24}{finding.advice}")


def examine() -> Iterator[Finding]:
    """Run every check that changes nothing."""
    yield _python()
    yield Finding("axlog", "ok", version("axlog"))
    yield _machine()
    yield from (_part(name, modules) for name, modules in PARTS.items())
    yield _java()
    yield from _environment()
    yield _port()
    yield _browser()
    yield _disk()
    yield _space()
    yield from (_verb(name, parts) for name, parts in VERBS.items())


def _python() -> Finding:
    return Finding("python", "ok", f"{platform.python_version()}, {sys.executable}")


def _machine() -> Finding:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (OSError, ValueError):  # not available on every system
        return Finding("machine", "ok", machine)
    advice = "" if memory >= _MEMORY else f"Spark needs {_MEMORY} GB or more; everything else runs"
    return Finding("machine", "ok", f"{machine}, {memory:.1f} GB of memory", advice)


def _environment() -> Iterator[Finding]:
    """Check the variables that make Spark use another Python or Spark than the installed one."""
    if "SPARK_HOME" in os.environ:
        advice = "unset SPARK_HOME, or set it to the same version of Spark"
        yield Finding("SPARK_HOME", "missing", os.environ["SPARK_HOME"], advice)
    python = os.environ.get("PYSPARK_PYTHON")
    if python is not None and shutil.which(python) is None:
        advice = "unset PYSPARK_PYTHON: axlog passes the running Python to Spark"
        yield Finding("PYSPARK_PYTHON", "missing", f"{python} does not exist", advice)


def _port() -> Finding:
    """Check whether the default port of the live page is free."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", PORT))
        except OSError as error:
            advice = f"--port N chooses another; the default is then a free port ({error.strerror})"
            return Finding("page", "ok", f"port {PORT} is in use", advice)
    return Finding("page", "ok", f"port {PORT} is free")


def _verb(name: str, parts: tuple[str, ...]) -> Finding:
    """Check whether a command can run: whether the extras that it needs are installed."""
    lacking = [part for part in parts if any(not is_installed(m) for m in PARTS[part])]
    if not lacking:
        return Finding(name, "ok", "can run")
    return Finding(
        name, "missing", f"needs {', '.join(lacking)}", f"pip install 'axlog[{','.join(lacking)}]'"
    )


def _started() -> Finding:
    """Start Spark and run one Python worker."""
    begun = perf_counter()
    try:
        from axlog.spark import session

        started = session()
        try:
            rows = started.range(1).mapInArrow(lambda batches: batches, "id long").collect()
        finally:
            started.stop()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Finding(
            "start", "bad", lines[0][:200], "`axlog run --engine embedded` needs no Spark"
        )
    taken = perf_counter() - begun
    return Finding("start", "ok", f"Spark returned {len(rows)} row after {taken:.1f} s")


def _part(name: str, modules: tuple[str, ...]) -> Finding:
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        what = f"not installed: {', '.join(missing)}"
        return Finding(name, "missing", what, f"pip install 'axlog[{name}]'")
    return Finding(name, "ok", ", ".join(f"{m} {_version(m)}".strip() for m in modules))


def _version(module: str) -> str:
    distribution = {"yaml": "pyyaml", "google.protobuf": "protobuf"}.get(module, module)
    try:
        return version(distribution.replace("_", "-"))
    except PackageNotFoundError:
        return ""


def _java() -> Finding:
    if not is_installed("pyspark"):
        return Finding("java", "missing", "needed for Spark only", "pip install 'axlog[spark]'")
    from axlog.spark.java import find_java

    try:
        found = find_java()
    except AxlogError as error:
        return Finding("java", "missing", error.message, error.advice or "")
    return Finding("java", "ok", str(found))


def _browser() -> Finding:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (path := shutil.which(name)) is not None:
            return Finding("browser", "ok", path)
    advice = "apt-get install chromium: only the tests of the live page need it"
    return Finding("browser", "missing", "no Chromium on the path", advice)


def _disk() -> Finding:
    """Measure how long an update waits for the disk with `axlog.open(sync="always")`."""
    times = []
    try:
        with tempfile.TemporaryFile(dir=Path.cwd(), buffering=0) as file:
            for _ in range(5):
                start = perf_counter()
                file.write(b"x" * 512)
                os.fsync(file.fileno())
                times.append(perf_counter() - start)
    except OSError as error:
        return Finding("disk", "bad", f"this directory is not writable: {error.strerror}")
    return Finding("disk", "ok", f"{1000 * sorted(times)[2]:.1f} ms per sync in this directory")


def _space() -> Finding:
    """Check the free disk space for checkpoints and for Spark's temporary files."""
    free = min(shutil.disk_usage(place).free for place in (Path.cwd(), tempfile.gettempdir()))
    space = f"{free / 2**30:.1f} GB free here and in {tempfile.gettempdir()}"
    if free < _FREE * 2**30:
        return Finding("space", "missing", space, "Spark's checkpoints may not fit")
    return Finding("space", "ok", space)
