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
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parent.parent


def build(place: Path, kind: str = "wheel") -> Path:
    """Build axlog from the sources: a wheel or an sdist."""
    # No isolation: the lock pins the build backend, and it is installed here.
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(place)]
    built = subprocess.run([*command, REPOSITORY], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = place.glob("axlog-*.whl" if kind == "wheel" else "axlog-*.tar.gz")
    return found


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


@dataclass(frozen=True)
class Clean:
    """A virtual environment, and a directory to work in, that know nothing of this repository."""

    place: Path
    wheels: Path

    @classmethod
    def make(cls, place: Path, wheels: Path) -> Clean:
        command = [sys.executable, "-m", "venv", "--without-pip", str(place / "env")]
        subprocess.run(command, check=True)
        return cls(place, wheels)

    def install(self, *wanted: str | Path) -> None:
        """`pip install` from the wheelhouse alone."""
        here = self.place / "env" / "bin" / "python"
        local = ("--no-index", f"--{'find'}-links", self.wheels, "--no-compile", "--quiet")
        self.call(sys.executable, "-m", "pip", "--python", here, "install", *local, *wanted)

    def run(self, program: str, *arguments: str | Path, code: int = 0) -> str:
        """Run a program of the environment; return what it printed."""
        return self.call(self.place / "env" / "bin" / program, *arguments, code=code)

    def environment(self) -> dict[str, str]:
        """The variables for its programs: nothing of the tests' own environment leaks in."""
        unwanted = ("PYTHON", "PYTEST", "VIRTUAL_ENV", "PIP_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
        return {**kept, "PATH": f"{self.place / 'env' / 'bin'}{os.pathsep}{kept['PATH']}"}

    def call(self, *command: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            command,
            cwd=self.place,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")
