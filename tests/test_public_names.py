"""Every public name has a docstring with its parameters and an example; tests run the examples."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import axlog

CALLABLE = [name for name in axlog.__all__ if name != "__version__"]


def members() -> Iterator[tuple[str, Any]]:
    """The public names, and the public methods and properties of the public classes."""
    for name in CALLABLE:
        found = getattr(axlog, name)
        yield name, found
        if inspect.isclass(found) and not issubclass(found, Exception):
            for inner, member in vars(found).items():
                plain = getattr(member, "__func__", member)
                if not inner.startswith("_") and (
                    inspect.isfunction(plain) or isinstance(plain, property)
                ):
                    yield f"{name}.{inner}", plain


MEMBERS = dict(members())


@pytest.mark.parametrize("name", MEMBERS)
def test_a_public_name_has_an_example(name: str) -> None:
    assert ">>> " in (MEMBERS[name].__doc__ or "")


@pytest.mark.parametrize("name", MEMBERS)
def test_every_parameter_has_a_line(name: str) -> None:
    found = MEMBERS[name]
    if isinstance(found, property) or found in (axlog.View, axlog.Truth):  # users make neither
        return
    wanted = [p for p in inspect.signature(found).parameters if p not in ("self", "cls")]
    described = re.findall(r"^ +(\w+): ", inspect.getdoc(found) or "", re.M)
    assert [parameter for parameter in wanted if parameter not in described] == []


@pytest.mark.parametrize("name", ["View", "Document", "Row", "Change"])
def test_classes_show_no_internals(name: str) -> None:
    """Names that only axlog's own modules use are private, or live in `live/internals.py`."""
    inside = {
        "maintainer", "chosen", "truth_cache", "prospects", "how_never", "nodes_left", "is_whole",
        "put_aside", "before", "after", "taken", "number", "tell", "owed", "current", "add_never",
    }  # fmt: skip
    found = getattr(axlog, name)
    assert inside & set(vars(found)) <= ({"before"} if name == "Change" else set())
