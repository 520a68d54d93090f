"""Large documents are looked at in arrays: the same sites and rows as node by node."""

from __future__ import annotations

from random import Random

import pytest

from axlog.document.loader import load
from axlog.evaluate import interpreter
from axlog.evaluate.relevant_nodes import elements_above, large_elements
from axlog.views.counting import engine
from lab.laws.exact_law import check_exact
from lab.laws.fuzz_cases import make_case


@pytest.mark.parametrize("seed", range(60))
def test_rows_and_changes_are_exact(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "LARGE", 0)
    monkeypatch.setattr(engine, "LARGE", 0)
    check_exact(make_case(Random(9_000_000 + seed)))


def test_large_elements() -> None:
    tree = load("<a><b k='1'>x<c/><c/></b><b><c/></b></a>")
    labels = lambda nodes: sorted(tree.label(node) for node in nodes)  # noqa: E731
    found = large_elements(tree, 4)
    assert found is not None
    assert labels(found) == ["a", "b"]  # the attribute and its text count
    assert labels(large_elements(tree, 1) or ()) == ["a", "b", "b"]
    deep = load("<a>" * 120 + "</a>" * 120)
    assert large_elements(deep, 1) is None
    assert labels(elements_above(tree, tree.partition("c"))) == ["a", "b", "b"]
