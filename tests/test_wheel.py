"""The wheel, built and used as a user would: in a clean environment, without extras."""

import json
import zipfile
from pathlib import Path

import pytest

from tests.wheelhouse import Clean

pytestmark = pytest.mark.system

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


@pytest.fixture(scope="module")
def wheel(wheels: Path) -> Path:
    (found,) = wheels.glob("axlog-*.whl")
    return found


@pytest.fixture
def clean(clean: Clean) -> Clean:
    clean.install("axlog")
    return clean


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
