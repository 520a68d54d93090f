"""What a document's callbacks do while no stream feeds it."""

from __future__ import annotations

from axlog.document.delta import Delta
from axlog.views.counting.prospects import Prospects
from axlog.views.view import View


def not_noted(delta: Delta, stream: str | None, was_aside: bool) -> None:
    """Nobody follows what comes."""


def not_kept(view: View) -> bool | None:
    return None


def not_told(view: View) -> str:
    return "not reported: no stream feeds the document"


def unknown(view: View) -> Prospects | None:
    return None


def nothing() -> None:
    """Nothing was put aside."""
