"""Examples that Hypothesis draws depend on the test alone, not on what ran before it."""

import importlib
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers


def drawn() -> list[tuple[str, int]]:
    """The examples of a test, in order."""
    found: list[tuple[str, int]] = []

    @settings(max_examples=300, derandomize=True)
    @given(st.text(), st.integers())
    def examples(text: str, number: int) -> None:
        found.append((text, number))

    examples()
    return found


@pytest.mark.skipif(not settings().derandomize, reason="this profile searches at random")
def test_modules_that_are_imported_change_no_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn()
    monkeypatch.syspath_prepend(str(tmp_path))
    constants = [f"constant {number}" for number in range(200)] + [*range(10**6, 10**6 + 200)]
    (tmp_path / "full_of_constants.py").write_text(f"CONSTANTS = {constants}\n", encoding="utf-8")
    try:
        importlib.import_module("full_of_constants")
        providers.CONSTANTS_CACHE.cache.clear()
        assert drawn() == before
    finally:
        sys.modules.pop("full_of_constants", None)
