"""Sinks that ask for `never` changes of views that emit none: alerts that would never come."""

from __future__ import annotations

from collections.abc import Iterator

from axlog.errors import PipelineError
from axlog.live.internals import maintained_view
from axlog.pipeline.model import DocumentModel, PipelineModel
from axlog.runtime.instances import Instances


def unreported_never(model: PipelineModel) -> list[PipelineError]:
    """One error for each view without `never` changes that a sink names in its `ops`."""
    return [
        PipelineError(
            "AX844",
            f"a sink of the view {full} takes `never` changes, and a pipeline emits none for it: "
            f"{reason}",
            advice="ask for a view whose rows one join of streams makes (docs/alerts.md), "
            "or ask its `status`",
        )
        for name, document in model.documents.items()
        for full, reason in _unreported(model, name, document)
    ]


def _unreported(
    model: PipelineModel, name: str, document: DocumentModel
) -> Iterator[tuple[str, str]]:
    asked = [
        view
        for view, each in document.views.items()
        for sink in (model.sinks.get(s) if isinstance(s, str) else s for s in each.sinks)
        if sink is not None and "never" in (sink.ops or ())
    ]
    if not asked:
        return
    one = Instances(model, name)
    made = next(iter(one.documents.values())) if one.is_single else one.new()
    for view in dict.fromkeys(asked):
        if view in one.queries:
            said, _, reason = maintained_view(made.view(view)).how_never().partition(": ")
            if said == "not reported":
                is_general = reason.startswith("the document has the option")
                yield one.full[view], "no join of streams makes its rows" if is_general else reason
