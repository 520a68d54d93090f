"""A directory of wheels, made from what is installed here: `pip install` without a package index.

A wheel is a zip of what its installation wrote, so the installed files, by their RECORD, give the
wheel back. The wheelhouse has axlog, built from the sources, and everything that some of its extras
need.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parent.parent
NO_BYTECODE = {"PIP_COMPILE": "0"}
"""Modules are compiled when they are imported: most never are, also in pip's build environments."""


def build(place: Path) -> Path:
    """Build axlog: the source distribution, and from it, as pip does, the wheel."""
    # No isolation: the lock pins the build backend, and it is installed here.
    _call(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", place, REPOSITORY)
    (source,) = place.glob("axlog-*.tar.gz")
    options = ("--no-deps", *_local(place), "--wheel-dir", place)
    _call(sys.executable, "-m", "pip", "wheel", *options, source)
    (wheel,) = place.glob("axlog-*.whl")
    return wheel


def _local(wheels: Path) -> tuple[str | Path, ...]:
    """The options of pip that have it look into the wheelhouse alone."""
    return ("--no-index", f"--{'find'}-links", wheels, "--quiet")


def _call(*command: str | Path) -> None:
    environment = {**os.environ, **NO_BYTECODE}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def fill(place: Path, extras: Iterable[str] = (), others: Iterable[str] = ()) -> Path:
    """Put the wheels of axlog's dependencies, with these extras, and of others into a directory."""
    roots = [f"axlog[{','.join(extras)}]", *others]
    for found in _needed(roots):
        if canonicalize_name(found.name) != "axlog":
            _repack(found, place)
    return place


def _needed(roots: Iterable[str]) -> Iterator[Distribution]:
    """Yield the installed distributions that some requirements need, each once."""
    seen: set[tuple[str, frozenset[str]]] = set()
    given: set[str] = set()
    waiting = [Requirement(root) for root in roots]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in seen:
            continue
        seen.add((name, frozenset(wanted.extras)))
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # optional for this platform
        if name not in given:
            given.add(name)
            yield found
        for text in found.requires or ():
            needed = Requirement(text)
            contexts = [{"extra": extra} for extra in ("", *wanted.extras)]
            if needed.marker is None or any(needed.marker.evaluate(c) for c in contexts):
                waiting.append(needed)


def _repack(found: Distribution, place: Path) -> None:
    """Write the wheel of an installed distribution."""
    tags = [
        line.partition(":")[2].strip()
        for line in (found.read_text("WHEEL") or "").splitlines()
        if line.startswith("Tag:")
    ]
    pythons, abis, platforms = (".".join(dict.fromkeys(p)) for p in zip(
        *(tag.split("-") for tag in tags), strict=True
    ))  # fmt: skip
    name = found.name.replace("-", "_").replace(".", "_")
    target = place / f"{name}-{found.version}-{pythons}-{abis}-{platforms}.whl"
    rows: list[tuple[str, str, str]] = []
    record = ""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as made:
        for file in found.files or ():
            written, at = str(file), Path(str(file.locate()))
            if written.endswith(".dist-info/RECORD") and written.count("/") == 1:  # no vendored one
                record = written
                continue
            leaves = (
                written.startswith("..") or Path(written).is_absolute()
            )  # scripts: pip makes them
            skipped = written.endswith((".pyc", "/INSTALLER", "/REQUESTED", "/direct_url.json"))
            if leaves or skipped or not at.is_file():
                continue
            data = at.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            made.writestr(written, data)
            rows.append((written, f"sha256={digest}", str(len(data))))
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (record, "", "")])
        made.writestr(record, text.getvalue())


class Environments:
    """Virtual environments that know nothing of this repository, by the extras of axlog that pip
    installed into them. Tests share them: each is made once.
    """

    def __init__(self, place: Path, wheels: Path) -> None:
        self.wheels = wheels
        self._place = place
        self._made: dict[frozenset[str] | None, Path] = {}

    def of(self, extras: frozenset[str] | None) -> Path:
        """The environment with these extras; `None`: without axlog."""
        if extras not in self._made:
            made = self._place / "-".join(
                sorted(extras or {"plain" if extras is None else "axlog"})
            )
            _call(sys.executable, "-m", "venv", "--without-pip", made)
            if extras is not None:
                self.install(made, f"axlog[{','.join(sorted(extras))}]")
            self._made[extras] = made
        return self._made[extras]

    def install(self, environment: Path, *wanted: str | Path, at: Path | None = None) -> None:
        """`pip install` from the wheelhouse alone, in a directory."""
        pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python")
        done = subprocess.run(
            [*pip, "install", *_local(self.wheels), *wanted],
            cwd=at,
            env={**_variables(environment), **NO_BYTECODE},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _variables(environment: Path) -> dict[str, str]:
    """Variables for programs of an environment: nothing of the tests' own environment leaks in."""
    unwanted = ("PYTHON", "PYTEST", "VIRTUAL_ENV", "PIP_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    return {**kept, "PATH": f"{environment / 'bin'}{os.pathsep}{kept['PATH']}"}


@dataclass
class Clean:
    """A directory to work in, and what pip installs there: at first, nothing."""

    place: Path
    environments: Environments
    extras: frozenset[str] | None = None
    _added: list[Path] = field(default_factory=list)

    @property
    def environment(self) -> Path:
        return self.environments.of(self.extras)

    def install(self, *wanted: str) -> None:
        """`pip install` of axlog with extras, or of the package in the directory (`--editable .`):
        it goes into an environment that has what it depends on, and out of it in `close`.
        """
        if wanted == ("--editable", "."):
            project = tomllib.loads((self.place / "pyproject.toml").read_text(encoding="utf-8"))
            self._want(*project["project"].get("dependencies", ()))
            (packages,) = self.environment.glob("lib/python*/site-packages")
            before = set(packages.iterdir())
            self.environments.install(self.environment, *wanted, at=self.place)
            self._added += set(packages.iterdir()) - before
            assert self._added
        else:
            self._want(*wanted)

    def _want(self, *requirements: str) -> None:
        for requirement in map(Requirement, requirements):
            assert canonicalize_name(requirement.name) == "axlog", requirement
            self.extras = frozenset({*(self.extras or ()), *requirement.extras})

    def close(self) -> None:
        """Take the package of the directory out of the environment."""
        for path in self._added:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._added.clear()

    def variables(self) -> dict[str, str]:
        """The environment variables for its programs."""
        return _variables(self.environment)

    def run(self, program: str, *arguments: str | Path, code: int = 0) -> str:
        """Run a program of the environment; return what it printed."""
        done = subprocess.run(
            [self.environment / "bin" / program, *arguments],
            cwd=self.place,
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")
