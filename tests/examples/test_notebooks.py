"""The gallery of notebooks: every cell runs, and prints what is written below it."""

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from lab.cli.notebooks import DIRECTORY, executed, printed  # noqa: E402

NOTEBOOKS = sorted(DIRECTORY.glob("*.ipynb"))
HERE = [path for path in NOTEBOOKS if path.stem != "spark"]


def check(path: Path) -> None:
    written: Any = nbformat.read(path, as_version=4)
    nbformat.validate(written)
    assert any(printed(written)), "python -m lab.cli.notebooks"
    assert printed(executed(path)) == printed(written)


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", HERE, ids=lambda path: path.stem)
def test_notebooks_print_what_is_written(path: Path) -> None:
    check(path)


@pytest.mark.system
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_notebook_on_spark_prints_what_is_written() -> None:
    check(DIRECTORY / "spark.ipynb")


def test_the_gallery_lists_all_notebooks(repository: Path) -> None:
    page = (repository / "docs" / "notebooks.md").read_text(encoding="utf-8")
    listed = re.findall(r"examples/notebooks/(\w+)\.ipynb", page)
    assert sorted(set(listed)) == [path.stem for path in NOTEBOOKS]
    assert {"orders", "feeds", "payments", "spark"} <= set(listed)
