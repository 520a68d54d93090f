"""Examples in docstrings do what they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in (SOURCE / "axlog").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_do_what_they_show(module: str) -> None:
    found = import_module(module)
    tests = doctest.DocTestFinder().find(found)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    failed = sum(runner.run(test, out=said.append).failed for test in tests)
    assert failed == 0, "".join(said)
