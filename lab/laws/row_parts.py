"""The part of a document for a row gives the answers of the whole document (`row_part.py`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from axlog.document.tree import Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import UndecidedError
from axlog.future.reasons import WhyNot, why_not
from axlog.future.row_part import part_for
from axlog.future.search_budget import LEAST, Effort, within
from axlog.query.pattern import Pattern


def compare_part(tree: Tree, pattern: Pattern, row: Mapping[str, Any], seen: Counter[str]) -> None:
    """Compare the reasons in the part for a row with those in the whole document."""
    part = part_for(tree, pattern, row, ValueIndex(tree))
    if part is None:
        return
    try:
        found, whole = _asked(part, pattern, row), _asked(tree, pattern, row)
    except UndecidedError:  # the view asks the whole document
        seen["refused in a part"] += 1
        return
    if _said(found) != _said(whole):
        raise AssertionError(f"{row} in a part: {found}, in the whole document: {whole}")
    seen["answered in a part"] += 1
    seen["answered in a smaller part"] += len(part) < len(tree)


def _asked(tree: Tree, pattern: Pattern, row: Mapping[str, Any]) -> WhyNot:
    """The answer with a budget of its own."""
    with within(Effort(LEAST)):
        return why_not(tree, pattern, row)


def _said(answer: WhyNot) -> tuple[Any, ...]:
    """The truth and the reasons, without the examples of values that nothing determines."""
    reasons = {(each.kind, each.stream, each.deadline) for each in answer.reasons}
    return answer.truth, reasons
