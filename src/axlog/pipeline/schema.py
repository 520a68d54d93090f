"""The JSON schema of pipeline files, for editors, and the tables of the docs: made from the model.

Sources and sinks are one object schema for each kind, so that an editor completes the options of
the kind that is being written. The short form and the long form are both allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel

from axlog.connect.kinds import SinkKind, SourceKind
from axlog.pipeline import kinds
from axlog.pipeline.model import (
    WIDGET_KEYS,
    DocumentsModel,
    PipelineModel,
    Settings,
    StreamModel,
    ViewModel,
    WidgetModel,
)

_TITLE = "axlog pipeline"


def json_schema() -> dict[str, Any]:
    """The schema of a pipeline file."""
    schema = PipelineModel.model_json_schema(by_alias=True)
    defs = schema["$defs"]
    for name, names, find in (
        ("SourceModel", kinds.source_names(), kinds.source_kind),
        ("SinkModel", kinds.sink_names(), kinds.sink_kind),
    ):
        defs[name] = {"title": name, "oneOf": list(_kinds(names, find, defs))}
    widget = defs["WidgetModel"]
    top = {key: widget["properties"][key] for key in WIDGET_KEYS}
    schema["properties"] |= top
    schema["required"] = []
    schema["oneOf"] = [{"required": ["widgets"]}, {"required": ["document", "views"]}]
    view = defs["ViewModel"]
    view["properties"] = dict(view["properties"])
    defs["ViewModel"] = {"anyOf": [{"type": "string"}, view]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": _TITLE}


def _kinds(
    names: Iterable[str],
    find: Callable[[str], SourceKind[Any] | SinkKind[Any]],
    defs: dict[str, Any],
) -> Iterable[dict[str, Any]]:
    for name in names:
        kind = find(name)
        options = kind.options.model_json_schema(by_alias=True)
        defs |= options.pop("$defs", {})
        options["properties"] = {"kind": {"const": name}, **options.get("properties", {})}
        options["required"] = ["kind", *options.get("required", [])]
        options |= {"title": name, "description": kind.says, "additionalProperties": False}
        yield options


def described(model: type[BaseModel]) -> list[tuple[str, str, str]]:
    """The keys of a part of the file: name, default (or `needed`), what it means."""
    rows = []
    for name, field in model.model_fields.items():
        if field.is_required():
            default = "needed"
        else:
            given = field.get_default(call_default_factory=True)
            default = "" if given in (None, [], {}) or isinstance(given, BaseModel) else str(given)
        rows.append((field.alias or name, default, field.description or ""))
    return rows


_PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("The file", PipelineModel),
    ("A widget (at the top of the file where there is only one)", WidgetModel),
    ("A stream", StreamModel),
    ("A view", ViewModel),
    ("`documents`", DocumentsModel),
    ("`settings`", Settings),
)


def reference() -> str:
    """Every key of pipeline files and every kind of source and sink, as Markdown."""
    lines = [
        "# Pipeline files: reference",
        "",
        "Made by `make docs` from the model, as by `axlog check --reference`; what it means is in",
        "[pipelines](pipeline.md).",
    ]
    for title, model in _PARTS:
        lines += ["", f"## {title}", "", *_table(model)]
    for role, names, find in (
        ("Sources", kinds.source_names(), kinds.source_kind),
        ("Sinks", kinds.sink_names(), kinds.sink_kind),
    ):
        lines += ["", f"## {role}"]
        for name in names:
            kind = find(name)
            lines += ["", f"### `{name}`", "", kind.says, "", *_table(kind.options)]
    return "\n".join(lines) + "\n"


def _table(model: type[BaseModel]) -> list[str]:
    rows = described(model)
    if not rows:
        return ["No options."]
    cells = [(f"`{key}`", f"`{default}`" if default else "", says) for key, default, says in rows]
    head = ["| key | default | |", "|---|---|---|"]
    return [*head, *(f"| {key} | {default} | {says} |" for key, default, says in cells)]
