"""Whether a checkpoint fits a pipeline: compare its stored fingerprint with the current one.

Sinks, settings and the options of sources may change between runs. A view may be removed, and an
added view is back-filled from the retained input. Every other change that affects the meaning of
the state is refused, by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from axlog.document.loader import load
from axlog.document.serializer import serialise
from axlog.errors import PipelineError
from axlog.pipeline.documents import document_of, types_of
from axlog.pipeline.model import PipelineModel, ViewModel
from axlog.runtime.connections import source_plans

_KEYS = {"documents": "document_key"}
"""Keys of the file whose stored names differ."""


def fingerprint(model: PipelineModel) -> dict[str, Any]:
    """Return the fingerprint of a pipeline: everything its state depends on, without secrets."""
    return {
        "namespaces": dict(model.namespaces),
        "sources": {
            plan.name: plan.written.kind for plan in source_plans(model) if plan.written is not None
        },
        "widgets": {  # the stored name of the documents; "documents" is that of their key
            name: {
                "document": _hash(serialise(load(document_of(document, model.directory)))),
                "documents": document.document_key,
                "facts": sorted(document.facts),
                "types": [
                    _hash(each if isinstance(each, str) else each.read_text("utf-8"))
                    for each in types_of(document, model.directory)
                ],
                "views": {view: _view(written) for view, written in document.views.items()},
            }
            for name, document in model.documents.items()
        },
    }


def _view(written: ViewModel) -> dict[str, Any]:
    text: dict[str, Any] = {"query": written.query, "language": written.language}
    if written.for_each is not None:
        text["for_each"] = {"kind": written.for_each.kind, "columns": written.for_each.columns}
    rejects = written.on_value_error == "reject"
    return {**text, "on_value_error": "reject"} if rejects else text


@dataclass(frozen=True, slots=True)
class Fit:
    """The added and removed views of a checkpoint that fits."""

    added: list[tuple[str, str]]  # document and view
    removed: list[tuple[str, str]]

    @property
    def is_exact(self) -> bool:
        return not self.added and not self.removed


def fit(then: Mapping[str, Any], now: Mapping[str, Any]) -> Fit:
    """Compare two fingerprints, or raise an error that lists all differences."""
    changed = list(_changes(then, now))
    if changed:
        raise PipelineError(
            "AX855",
            "the checkpoint was made by another pipeline: " + "; ".join(changed),
            advice="undo the change, give the changed part another name, or use another checkpoint",
        )
    had, has = _views(then), _views(now)
    return Fit([key for key in has if key not in had], [key for key in had if key not in has])


def _views(pipeline: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (document, view)
        for document, about in pipeline["widgets"].items()
        for view in about["views"]
    ]


def _changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if then["namespaces"] != now["namespaces"]:
        yield "namespaces changed"
    for name, kind in then["sources"].items():
        if now["sources"].get(name, kind) != kind:
            yield f"the source {name} was of kind {kind} and is {now['sources'][name]}"
        elif name not in now["sources"]:
            yield f"the source {name} is gone"
    for name, old in then["widgets"].items():
        new = now["widgets"].get(name)
        if new is None:
            yield f"the document {name} is gone"
            continue
        for part in ("document", "documents", "facts", "types"):
            if old[part] != new[part]:
                yield f"{_KEYS.get(part, part)} of the document {name} changed"
        for view, written in old["views"].items():
            now_written = new["views"].get(view, written)
            if now_written != written:
                is_policy = now_written["query"] == written["query"]
                what = "on_value_error or language" if is_policy else "the query"
                yield f"{what} of the view {name}.{view} changed"
    yield from (
        f"the document {name} is new" for name in now["widgets"] if name not in then["widgets"]
    )


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
