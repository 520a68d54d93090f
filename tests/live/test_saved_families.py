"""Saved states of views that shared other plans, as older versions did, are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import axlog
from axlog.errors import StoreError
from axlog.live import families
from axlog.live.family_shapes import Candidate, Shape, candidate_of, digest
from axlog.live.internals import maintained, streams_of
from axlog.query.query import Query
from axlog.views.step_rows import Stepping

TEXT = '<r><p><ax:call xmlns:ax="urn:axlog" stream="p"/></p></r>'
QUERY = 'match /r/p/a[k/"{}"]/x/$x return $x, count() as n having n >= {}'


def without_steps(query: Query, stepping: Stepping, is_wide: bool) -> Candidate | None:
    """Views with steps shared no plan before their constants were parameters."""
    return None if query.steps else candidate_of(query, stepping, is_wide)


def other_digest(shape: Shape) -> str:
    return digest((*shape, "another layout"))


def filled(doc: axlog.Document) -> axlog.Document:
    for number in range(10):
        doc.watch(QUERY.format(number % 3, number % 2 + 1), f"v{number}")
    for number in range(6):
        doc.feed("p", f"<a><k>{number % 3}</k><x>{number % 2}</x></a>", at=number)
    return doc


def made() -> axlog.Document:
    return filled(axlog.Document(TEXT, options=axlog.Options(keep="needed", share="always")))


@pytest.mark.parametrize(
    ("name", "layout"), [("candidate_of", without_steps), ("digest", other_digest)]
)
@pytest.mark.parametrize("is_older", [True, False])
def test_saved_rows_of_another_layout_are_refused(
    name: str, layout: object, is_older: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(families, name, layout)
    other = made()
    monkeypatch.undo()
    doc = made()
    saved, restored = (other, doc) if is_older else (doc, other)
    rows = [row.values_ for row in restored.view("v3").rows()]
    with pytest.raises(StoreError) as refused:
        streams_of(restored).engine.restore(streams_of(saved).engine.state())
    assert refused.value.code == "AX872"
    assert [row.values_ for row in restored.view("v3").rows()] == rows


def test_a_snapshot_of_a_store_says_which_views_share_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(families, "candidate_of", without_steps)
    with axlog.open(tmp_path / "store", TEXT) as doc:
        filled(doc)
        doc.snapshot()
        rows = {view.name: [row.values_ for row in view.rows()] for view in doc.views.values()}
    monkeypatch.undo()
    with axlog.open(tmp_path / "store") as doc:
        assert not maintained(doc).families.members
        found = {view.name: [row.values_ for row in view.rows()] for view in doc.views.values()}
        assert found == rows
