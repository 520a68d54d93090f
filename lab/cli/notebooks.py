"""Execute the notebooks of the gallery and write their outputs: `python -m lab.cli.notebooks`.

The notebooks are in `examples/notebooks`. `tests/examples/test_notebooks.py` executes them as well,
and compares what they print with what is written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parents[2] / "examples" / "notebooks"
LONGEST = 300
"""Seconds that a cell may take."""


def executed(path: Path) -> Any:
    """Return a notebook with the outputs of its cells, executed by a kernel of this Python."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=LONGEST, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
        outputs = [one for one in cell.get("outputs", ()) if one.get("name") != "stderr"]
        if cell.cell_type == "code":
            cell.outputs = outputs
    notebook.metadata.pop("language_info", None)
    return notebook


def printed(notebook: Any) -> list[list[str]]:
    """Return the outputs of each cell, as text."""
    return [
        [one.get("text") or one.get("data", {}).get("text/plain", "") for one in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def main(names: list[str]) -> None:
    """Execute some notebooks, or all."""
    import nbformat

    for path in sorted(DIRECTORY.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(executed(path), path)  # type: ignore[no-untyped-call]
            print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
