"""Memory of parsed documents goes back to the system where the C library can do it."""

from __future__ import annotations

import sys

import pytest

from axlog.document import free_memory, loader
from axlog.document.loader import load


@pytest.fixture(autouse=True)
def _fresh() -> None:
    free_memory._trim.cache_clear()


def test_large_documents_give_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[bool] = []
    monkeypatch.setattr(loader, "give_back", lambda: called.append(True))
    load("<a>x</a>")
    assert not called
    load("<a><b>" + "x" * free_memory.LARGE + "</b></a>")
    assert called


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc_trim")
def test_the_library_is_asked() -> None:
    assert free_memory._trim() is not None
    free_memory.give_back()


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_other_libraries_keep_their_memory(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: object) -> object:
        raise error

    monkeypatch.setattr(free_memory, "CDLL", missing)
    assert free_memory.give_back() is False
