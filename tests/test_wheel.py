"""The wheel, built and used as a user would: in a clean environment, without extras.

Beside it are the distributions that it requires, as links to those of the tests' own environment:
the ones that the lock pins. So no package index is needed.
"""

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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
    "pydantic",  # typer asks for it, and loads it only for models
    "pydantic-core",
    "pygments",
    "rich",
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
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Clean:
    place = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "env"], check=True)
    environment = Clean(place)
    environment.pip("install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel)
    (packages,) = (place / "env").glob("lib/python*/site-packages")
    (installed,) = Distribution.discover(name="axlog", path=[str(packages)])
    for each in required_by(installed):
        link(each, packages)
    return environment


def required_by(installed: Distribution) -> list[Distribution]:
    """The distributions that an installation without extras brings."""
    found: dict[str, Distribution] = {}
    waiting = [installed]
    while waiting:
        for text in waiting.pop().requires or ():
            requirement = Requirement(text)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if wanted and requirement.name not in found:
                found[requirement.name] = distribution(requirement.name)
                assert requirement.specifier.contains(found[requirement.name].version)
                waiting.append(found[requirement.name])
    return list(found.values())


def link(installed: Distribution, packages: Path) -> None:
    """Make a distribution of the tests' environment importable from another one."""
    tops = {file.parts[0] for file in installed.files or () if file.parts[0] != ".."}
    for name in tops - {"__pycache__"}:
        target = packages / name
        if not target.exists():
            target.symlink_to(Path(str(installed.locate_file(name))).resolve())


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert len(tops) == 2
    assert "axlog" in tops
    assert "axlog/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "py3-none-any" in wheel.name


def test_install_is_light(clean: Clean) -> None:
    program = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    installed = {
        name.lower().replace("_", "-") for name in clean.run("python", "-c", program).split()
    }
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
