"""The JSON schema of pipeline files for editors, and the reference page; both from the model.

Sources and sinks have one object schema for each kind, so that an editor completes the options of
the kind. The short form and the long form are both allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel

from axlog.connect.kinds import ChannelKind, SinkKind, SourceKind
from axlog.pipeline import kinds
from axlog.pipeline.model import (
    DOCUMENT_KEYS,
    DocumentModel,
    PipelineModel,
    SinkModel,
    StreamModel,
    ViewModel,
)
from axlog.pipeline.settings import Settings

_TITLE = "axlog pipeline"


def json_schema() -> dict[str, Any]:
    """Return the schema of a pipeline file."""
    schema = PipelineModel.model_json_schema(by_alias=True)
    defs = schema["$defs"]
    ops = defs["SinkModel"]["properties"]["ops"]
    for name, names, find in (
        ("SourceModel", kinds.source_names(), kinds.source_kind),
        ("SinkModel", kinds.sink_names(), kinds.sink_kind),
    ):
        defs[name] = {"title": name, "oneOf": list(_kinds(names, find, defs))}
    defs["Connector"] = {  # only channels are plain connectors
        "title": "ChannelModel",
        "oneOf": list(_kinds(kinds.channel_names(), kinds.channel_kind, defs)),
    }
    for sink in defs["SinkModel"]["oneOf"]:
        sink["properties"]["ops"] = ops
    document = defs["DocumentModel"]
    top = {key: document["properties"][key] for key in DOCUMENT_KEYS}
    schema["properties"] |= top
    schema["required"] = []
    schema["oneOf"] = [{"required": ["documents"]}, {"required": ["views"]}]
    view = defs["ViewModel"]
    view["properties"] = dict(view["properties"])
    defs["ViewModel"] = {"anyOf": [{"type": "string"}, view]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": _TITLE}


def _kinds(
    names: Iterable[str],
    find: Callable[[str], SourceKind[Any] | SinkKind[Any] | ChannelKind[Any]],
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


def described(model: type[BaseModel]) -> list[tuple[str, str, str, str]]:
    """Return the keys of a part of the file: name, values, default (or `needed`), meaning."""
    schema = model.model_json_schema(by_alias=True)
    rows = []
    for name, field in model.model_fields.items():
        if field.is_required():
            default = "needed"
        else:
            given = field.get_default(call_default_factory=True)
            default = "" if given in (None, [], {}) or isinstance(given, BaseModel) else str(given)
        key = field.alias or name
        allowed = allowed_values(schema["properties"].get(key, {}), schema.get("$defs", {}))
        rows.append((key, allowed, default, field.description or ""))
    return rows


_WORDS = {"string": "text", "boolean": "true or false", "integer": "a whole number",
          "number": "a number", "object": "a mapping", "array": "a list"}  # fmt: skip
_LIMITS = {"minimum": "from {}", "exclusiveMinimum": "over {}", "maximum": "to {}"}


def allowed_values(schema: dict[str, Any], defs: dict[str, Any]) -> str:
    """Describe the values of a JSON schema in words: `all or needed`, `a whole number from 1`.

    >>> allowed_values({"enum": ["all", "needed"]}, {})
    '`all` or `needed`'
    >>> allowed_values({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, {})
    'a whole number from 1'
    """
    if "anyOf" in schema or "oneOf" in schema:
        given = schema.get("anyOf") or schema["oneOf"]
        each = list(dict.fromkeys(allowed_values(one, defs) for one in given))
        if any(one.startswith("`") for one in each):  # `yes` is also true, for other YAML readers
            each = [one for one in each if one != _WORDS["boolean"]]
        each = [one.removeprefix("a list: ") if one[8:] in each else one for one in each]
        is_listed = len(set(each)) < len(each)
        words = " or ".join(dict.fromkeys(one for one in each if one))
        return f"{words}, or a list" if is_listed else words
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        found = defs.get(name, {})
        known = {"SourceModel": "a source", "SinkModel": "a sink", "Connector": "a channel"}
        return known.get(name) or allowed_values(found, defs)
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(dict.fromkeys(f"`{'true' if one is True else one}`" for one in values))
    kind = schema.get("type")
    if kind == "array":
        inside = allowed_values(schema.get("items", {}), defs)
        return f"a list: {inside}" if inside else "a list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        inside = allowed_values(schema["additionalProperties"], defs)
        return "a mapping of texts" if inside == "text" else "a mapping"
    if kind == "string" and "ms|s|min" in schema.get("pattern", ""):
        return "a duration (`500ms`, `10s`, `2h`)"
    words = _WORDS.get(str(kind), "")
    bounds = [text.format(schema[key]) for key, text in _LIMITS.items() if key in schema]
    return " ".join([words, *bounds]).strip()


_PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("The file", PipelineModel),
    ("A document (at the top level if there is only one)", DocumentModel),
    ("A stream", StreamModel),
    ("A view", ViewModel),
    ("Every sink", SinkModel),
    ("`settings`", Settings),
)


def reference() -> str:
    """Return every key of pipeline files and every kind of source and sink, as Markdown."""
    lines = [
        "# Pipeline files: reference",
        "",
        "Generated by `make docs` from the model; `axlog check --reference` prints the same. "
        "See also",
        "[pipelines](pipeline.md).",
    ]
    for title, model in _PARTS:
        lines += ["", f"## {title}", "", *_table(model)]
    for role, names, find in (
        ("Sources", kinds.source_names(), kinds.source_kind),
        ("Sinks", kinds.sink_names(), kinds.sink_kind),
        ("Channels", kinds.channel_names(), kinds.channel_kind),
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
    head = ["| key | value | default | |", "|---|---|---|---|"]
    return [
        *head,
        *(
            f"| `{key}` | {allowed} | {f'`{default}`' if default else ''} | {says} |"
            for key, allowed, default, says in rows
        ),
    ]
