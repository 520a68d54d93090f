"""Pipeline files of version 0.1: their keys mean the same and are reported with their places."""

import logging
from pathlib import Path

import pytest

from axlog.pipeline.loader import check_text, load

NEW = """\
engine: embedded
documents:
  shop:
    document: <a xmlns:ax="urn:axlog"><ax:call stream="s"/></a>
    document_key: "@of"
    streams: {s: {source: {kind: jsonl, path: in.jsonl}}}
    views: {v: match /a/b/$x return $x}
"""
OLD = NEW.replace("documents:", "widgets:").replace(
    'document_key: "@of"', 'documents: {key: "@of"}'
)
SHORT = """\
engine: embedded
document: <a xmlns:ax="urn:axlog"><ax:call stream="s"/></a>
documents: {key: KEY}
streams: {s: {source: {kind: jsonl, path: in.jsonl}}}
views: {v: match /a/b/$x return $x}
"""


def reported(text: str) -> list[tuple[int, str, str, str]]:
    """Line, level, code and advice of all problems of a text."""
    return [
        (problem.order[0], problem.level, problem.error.code, problem.error.advice or "")
        for problem in check_text(text).problems
    ]


def test_old_keys_mean_the_same_and_are_warned_of() -> None:
    old, new = check_text(OLD).model, check_text(NEW).model
    assert old is not None
    assert old == new
    assert reported(NEW) == []
    assert reported(OLD) == [
        (2, "warning", "AX850", "write `documents:`"),
        (5, "warning", "AX850", "write `document_key: ...`"),
    ]


def test_the_key_at_the_top_level() -> None:
    model = check_text(SHORT.replace("KEY", "k")).model
    assert model is not None
    assert model.documents["document"].document_key == "k"
    assert [name.full for name in model.view_names()] == ["v"]


def test_errors_below_old_keys_are_at_their_places() -> None:
    assert reported(SHORT.replace("KEY", "a//b")) == [
        (3, "warning", "AX850", "write `document_key: ...`"),
        (3, "error", "AX852", ""),
    ]
    assert (7, "error", "AX201") in [
        each[:3] for each in reported(OLD.replace("match /a/b/$x return $x", "match ("))
    ]


def test_a_document_named_key_is_no_old_key() -> None:
    model = check_text(NEW.replace("shop:", "key:")).model
    assert model is not None
    assert list(model.documents) == ["key"]


def test_both_spellings_at_once_are_an_error() -> None:
    both = NEW + "widgets: {}\n"
    assert [each for each in reported(both) if each[1] == "error"] == [(8, "error", "AX852", "")]


def test_loading_logs_the_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "old.yaml").write_text(OLD)
    with caplog.at_level(logging.WARNING, logger="axlog.pipeline"):
        load(tmp_path / "old.yaml")
    assert [record.getMessage() for record in caplog.records] == [
        "`widgets:` is the spelling of version 0.1",
        "`documents: {key: ...}` is the spelling of version 0.1",
    ]
