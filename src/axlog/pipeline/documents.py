"""The documents of a pipeline before the first message, with the declarations of the file.

The declarations of a stream (`mode`, `most`, `deletes`, `late`, `service`) are written to its call,
so that every engine reads them in one place. A call with a different declaration is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from axlog.connect.locations import needed_path
from axlog.document.clock_bounds import Horizon, read_ahead
from axlog.document.parser import Element, read
from axlog.document.skeleton import skeleton
from axlog.document.tree import CALL_LABEL
from axlog.errors import AxlogError, PipelineError
from axlog.pipeline.model import DocumentModel, StreamModel


def is_xml(written: str) -> bool:
    """Whether a document is written in the file itself; otherwise it is a path."""
    return written.lstrip("\ufeff \t\r\n").startswith("<")


def read_skeleton(streams: Iterable[str]) -> Element:
    """Return the root of the document of a file that has none: an element for each stream."""
    names = list(streams)
    if not names:
        raise PipelineError(
            "AX852",
            "there are neither streams nor a document",
            expected="streams: {NAME: {source: ...}}, or document: XML",
        )
    return read(skeleton({name: {} for name in names})).root


def read_document(written: str, directory: Path) -> Element:
    """Return the root of a document that the file contains or names."""
    return read(written if is_xml(written) else directory / needed_path(written)).root


def calls_of(root: Element) -> dict[str, Element]:
    """Return the calls in a document by their streams."""
    return {str(call.get("stream")): call for call in root.iter(CALL_LABEL)}


def declare(root: Element, streams: Mapping[str, StreamModel]) -> None:
    """Write the declarations of streams to their calls."""
    calls = calls_of(root)
    for name, stream in streams.items():
        if name in calls:
            for attribute, value in stream.declared.items():
                _declare(calls[name], name, attribute, value)


def horizon_of(model: DocumentModel, root: Element, is_dated: bool) -> Horizon:
    """Return how far ahead the streams of a document may be, by the file or by their calls."""
    declared = {name: call.get("ahead") for name, call in calls_of(root).items()}
    declared |= {name: s.ahead for name, s in model.streams.items() if s.ahead is not None}
    return Horizon({n: None if text is None else read_ahead(text) for n, text in declared.items()},
                   is_dated)  # fmt: skip


def _declare(call: Element, stream: str, attribute: str, value: str) -> None:
    there = call.get(attribute)
    if there is not None and there != value:
        raise PipelineError(
            "AX852",
            f"the stream {stream!r} is declared with {attribute}: {value}, its call says {there}",
            advice="declare it in one of the two places",
        )
    call.set(attribute, value)


def document_of(model: DocumentModel, directory: Path) -> Element:
    """Return the root of a document before the first message, with its streams declared."""
    try:
        root = (
            read_skeleton(model.streams)
            if model.document is None
            else read_document(model.document, directory)
        )
    except AxlogError as error:
        raise error.within("the document of the pipeline") from None
    declare(root, model.streams)
    return root


def may_delete(model: DocumentModel, root: Element) -> bool:
    """Whether a stream may delete data of other streams, now or once its call has arrived."""
    now = any(call.get("deletes", "no") != "no" for call in calls_of(root).values())
    later = (stream for stream in model.streams.values() if stream.call == "later")
    return now or any(stream.deletes != "no" for stream in later)


def types_of(model: DocumentModel, directory: Path) -> list[str | Path]:
    """Return the document's types: texts unchanged, paths relative to the file."""
    return [
        written if _is_type(written) else directory / needed_path(written)
        for written in model.types
    ]


def _is_type(written: str) -> bool:
    return "->" in written or "\n" in written or is_xml(written)
