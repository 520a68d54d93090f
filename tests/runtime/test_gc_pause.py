"""Modules and engines are exempt from full collections, again when there are more of them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from axlog.runtime import gc_pause
from axlog.runtime.gc_pause import MOST_DROPPED, exempt_made, note_dropped, note_made


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process in which nothing was exempted yet."""
    monkeypatch.setattr(gc_pause, "_COUNTS", gc_pause._Counts())
    yield
    gc.unfreeze()


def test_modules_are_exempt_after_the_first_task_and_after_imports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert exempt_made()
    assert gc.get_freeze_count() > 0
    assert not exempt_made()
    monkeypatch.setitem(sys.modules, "imported_later", ModuleType("imported_later"))
    assert exempt_made()
    assert not exempt_made()


def test_engines_are_exempt_when_a_quarter_more_were_made() -> None:
    for _ in range(8):
        note_made()
    assert exempt_made()
    note_made()
    note_made()
    assert not exempt_made()
    note_made()
    assert exempt_made()


def test_dropped_engines_are_collected_after_some_have_gathered() -> None:
    exempt_made()
    for _ in range(MOST_DROPPED - 1):
        note_dropped()
    assert not exempt_made()
    note_dropped()
    assert exempt_made()
