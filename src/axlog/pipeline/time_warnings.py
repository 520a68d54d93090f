"""Warnings about deadlines and clocks of a pipeline: alerts that never come, or come at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axlog.errors import PipelineError
from axlog.future.deadline_keys import missing_keys
from axlog.future.keys import Key
from axlog.query.query import Query
from axlog.query.steps import clock_of


def without_key(query: Query, keys: list[Key]) -> PipelineError | None:
    """A deadline that never makes a row impossible, because the row may come again."""
    missing = missing_keys(query.pattern, keys)
    if not missing:
        return None
    facts = ", ".join(f'"{key}"' for key in missing)
    return PipelineError(
        "AX860",
        "the view has a deadline, but a row that missed it may come again with a new one, "
        "so no `never` follows before its stream ends",
        advice=f"if each value comes once, declare it: facts: [{facts}]",
    )


def without_clock(query: Query, settings: Mapping[str, Any]) -> PipelineError | None:
    """Rows about `now` that only messages bring and take."""
    if clock_of(query.steps) is None or settings.get("clock") == "wall":
        return None
    return PipelineError(
        "AX867",
        "the view is about `now`, and the clock advances with messages only",
        advice="settings: {clock: wall}, unless the messages come from the past",
    )


def without_times(source: Mapping[str, Any], settings: Mapping[str, Any]) -> PipelineError | None:
    """Messages without times beside the machine's clock: their deadlines pass at once."""
    is_timed = source.get("time") is not None or source.get("clock") != "none"
    if settings.get("clock") != "wall" or is_timed:
        return None
    return PipelineError(
        "AX870",
        "the messages have no times: they get the clock of the document, which the machine's "
        "clock moves only when a deadline passes, so their own deadlines pass at once",
        advice="leave `clock: none` out, so that they have the time of their arrival",
    )
