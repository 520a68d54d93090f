"""The keys of pipeline files of version 0.1: still accepted, with a warning.

    widgets: {NAME: ...}       is now    documents: {NAME: ...}
    documents: {key: PATH}     is now    document_key: PATH

The rest of the package sees the current keys only. Positions keep pointing at the text of the file.
"""

from __future__ import annotations

from typing import Any

from axlog.errors import PipelineError
from axlog.pipeline.yaml_reader import Located, Path


def rename_old_keys(found: Located) -> list[PipelineError]:
    """Replace the old keys of a file by the current ones; return one warning for each."""
    content = found.content
    if not isinstance(content, dict):
        return []
    warnings = _rename_key(found, content, ())
    if "widgets" in content and "documents" not in content:
        warnings.append(_warning(found, ("widgets",), "widgets:", "documents:"))
        _move(found, content, (), "widgets", "documents")
    documents = content.get("documents")
    for name, written in documents.items() if isinstance(documents, dict) else ():
        if isinstance(written, dict):
            warnings += _rename_key(found, written, ("documents", name))
    return warnings


def _rename_key(found: Located, written: dict[str, Any], at: Path) -> list[PipelineError]:
    """Replace `documents: {key: PATH}` of one document."""
    old = written.get("documents")
    is_old = isinstance(old, dict) and list(old) == ["key"] and not isinstance(old["key"], dict)
    if not is_old or "document_key" in written:
        return []
    warning = _warning(found, (*at, "documents"), "documents: {key: ...}", "document_key: ...")
    key = found.keys[*at, "documents"]
    _move(found, written, at, "documents", "document_key")
    written["document_key"] = written["document_key"]["key"]
    found.nodes[*at, "document_key"] = found.nodes.pop((*at, "document_key", "key"))
    found.keys[*at, "document_key"] = key
    return [warning]


def _warning(found: Located, path: Path, old: str, new: str) -> PipelineError:
    return PipelineError(
        "AX850",
        f"`{old}` is the spelling of version 0.1",
        place=found.place(path, at_key=True),
        advice=f"write `{new}`",
    )


def _move(found: Located, written: dict[str, Any], at: Path, old: str, new: str) -> None:
    """Rename a key of a mapping, in its place, and the positions below it."""
    items = [(new if name == old else name, value) for name, value in written.items()]
    written.clear()
    written.update(items)
    before, after = (*at, old), (*at, new)
    for positions in (found.nodes, found.keys):
        for path in [path for path in positions if path[: len(before)] == before]:
            positions[(*after, *path[len(before) :])] = positions.pop(path)
