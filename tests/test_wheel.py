"""The wheel, built and used as a user would: in a clean environment, without extras.

What is installed beside it is what the lock pins, so that a release of somebody else's package does
not change this test's answer. It needs the package index, as `make test` itself does.
"""

import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

# Everything `pip install axlog` may bring: its dependencies and theirs.
LIGHT = {
    "annotated-doc",
    "annotated-types",
    "axlog",
    "lark",
    "lxml",
    "markdown-it-py",
    "mdurl",
    "numpy",
    "pip",
    "pydantic",  # typer asks for it, and loads it only for models
    "pydantic-core",
    "pygments",
    "rich",
    "setuptools",  # Python 3.11 puts it into every virtual environment
    "shellingham",
    "typer",
    "typing-extensions",
    "typing-inspection",
}

PROGRAM = """
import axlog
document = axlog.parse("<a><b>1</b></a>")
view = document.watch("match /a/b#t return t.val", name="b")
before = [dict(row) for row in view.rows()]
changes = document.update("insert node <b>2</b> into /a")
print(len(before), len(changes), len(list(view.rows())))
"""


@dataclass(frozen=True)
class Clean:
    """An environment that holds the wheel, its dependencies and nothing else."""

    place: Path

    def run(self, *command: str | Path) -> str:
        program, *arguments = command
        return self._run(self.place / "env" / "bin" / program, *arguments)

    def pip(self, *arguments: str | Path) -> str:
        """Run the pip of the tests on this environment, which needs none of its own."""
        here = self.place / "env" / "bin" / "python"
        return self._run(sys.executable, "-m", "pip", "--python", here, *arguments)

    def _run(self, *command: str | Path) -> str:
        # Nothing of the repository or of the tests' own environment may leak in.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
        done = subprocess.run(
            command,
            cwd=self.place,
            env=kept,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dist")
    # No isolation: the lock pins the build backend, and it is installed here.
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, repository],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = place.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def clean(wheel: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Clean:
    place = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "env"], check=True)
    pinned = (repository / "requirements.lock").read_text(encoding="utf-8")
    # pip would ask a hash of the wheel too, were there hashes among the constraints.
    bare = re.sub(r" *\\\n +--hash=\S+", "", pinned)
    (place / "pinned.txt").write_text(bare, encoding="utf-8")
    environment = Clean(place)
    pinned_to = ("--constraint", place / "pinned.txt")
    environment.pip("install", "--quiet", "--no-compile", *pinned_to, wheel)
    return environment


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert len(tops) == 2
    assert "axlog" in tops
    assert "axlog/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "py3-none-any" in wheel.name


def test_install_is_light(clean: Clean) -> None:
    listed = json.loads(clean.pip("list", "--format", "json"))
    installed = {entry["name"].lower().replace("_", "-") for entry in listed}
    assert "axlog" in installed
    assert installed <= LIGHT


def test_embedded_engine_works_alone(clean: Clean) -> None:
    assert clean.run("python", "-W", "error", "-c", PROGRAM).split() == ["1", "1", "2"]


def test_command_line_works_alone(clean: Clean, wheel: Path) -> None:
    version = wheel.name.split("-")[1]
    assert version in clean.run("axlog", "--version")
    (clean.place / "a.xml").write_text("<a><b>1</b></a>", encoding="utf-8")
    (line,) = clean.run("axlog", "query", "a.xml", "match /a/b/$x return $x").splitlines()
    assert json.loads(line) == {"row": {"x": "1"}, "count": 1}


def test_missing_extra_is_named(clean: Clean) -> None:
    program = (
        "from axlog.errors import SetupError\n"
        "from axlog.spark import prepare_environment\n"
        "try:\n    prepare_environment()\n"
        "except SetupError as error:\n    print(error)\n"
    )
    assert "axlog[spark]" in clean.run("python", "-c", program)
