"""Sources named by plain options: `format("axlog")` for notebooks and SQL.

    axlog.spark.register(spark)
    spark.readStream.format("axlog").option("kind", "jsonl").option("path", "in.jsonl").load()

`kind` is that of a pipeline file, and the other options are the kind's own, as texts; a list or a
mapping is written as JSON. `stream` names the stream of messages that do not name theirs,
`directory` the base of relative paths, and `limit` the most messages of a batch. The rows are
messages with the columns that `maintain`, `changes` and `view` take from a DataFrame.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

import pyarrow as pa
from pydantic import ValidationError

from axlog.connect.kinds import Origin
from axlog.connect.protocol import Source
from axlog.errors import PipelineError, did_you_mean
from axlog.pipeline.kinds import source_kind
from axlog.runtime.message_rows import SCHEMA, Values

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic.fields import FieldInfo

COLUMNS = (
    "stream string, action string, xml string, time double, number bigint, origin string,"
    " error string"
)
_ROWS = pa.schema(
    [
        ("stream", pa.string()),
        ("action", pa.string()),
        ("xml", pa.string()),
        ("time", pa.float64()),
        ("number", pa.int64()),
        ("origin", pa.string()),
        ("error", pa.string()),
    ]
)
_OURS = ("kind", "stream", "directory", "limit", "parts", "index")
_AT = {name: at for at, name in enumerate(SCHEMA.names)}


def named_source(options: Mapping[str, str]) -> Callable[[], Source]:
    """Return the function that opens the source of plain options, on the driver or in a task."""
    given = {name: value for name, value in options.items() if name not in _OURS}
    if "kind" not in options:
        raise PipelineError(
            "AX852", "the format axlog has no option kind", expected='.option("kind", KIND)'
        )
    where = Path(options.get("directory") or Path.cwd())
    made = partial(_opened, options["kind"], given, str(where), options.get("stream"))
    _validated(options["kind"], given)
    return made


def _validated(kind: str, given: Mapping[str, str]) -> Any:
    found = source_kind(kind)
    try:
        fields = found.options.model_fields
        read = {
            name: _structured(value) if name in fields and _has_parts(fields[name]) else value
            for name, value in given.items()
        }
        return found.options.model_validate(read, strict=False)
    except ValidationError as error:
        raise _refused(kind, error.errors()[0], sorted(found.options.model_fields)) from None


def _refused(kind: str, found: Any, known: Sequence[str]) -> PipelineError:
    name = ".".join(map(str, found["loc"]))
    fault, expected, advice = f": {found['msg']}", None, None
    match found["type"]:
        case "missing":
            fault = " is missing"
        case "extra_forbidden":
            fault, expected, advice = " is unknown", ", ".join(known), did_you_mean(name, known)
        case "list_type" | "dict_type":
            fault, expected = " must be a list or a mapping", "JSON"
    where = f"option {name!r} of the source {kind!r}"
    return PipelineError("AX852", f"{where}{fault}", expected=expected, advice=advice)


def _has_parts(field: FieldInfo) -> bool:
    """Whether an option is a list or a mapping, or may be one."""
    kinds = (field.annotation, *get_args(field.annotation))
    return any(get_origin(each) in (list, dict) for each in kinds)


def _structured(written: str) -> Any:
    """Return a list or a mapping from JSON, and any other text as it is."""
    try:
        found = json.loads(written)
    except ValueError:
        return written
    return found if isinstance(found, list | dict) else written


def _opened(kind: str, given: Mapping[str, str], directory: str, stream: str | None) -> Source:
    origin = Origin(directory=Path(directory), stream=stream)
    made: Source = source_kind(kind).make(_validated(kind, given), origin)
    return made


def message_batch(rows: Sequence[Values]) -> pa.RecordBatch:
    """Return messages as rows for users."""
    seconds = [None if row[_AT["time"]] is None else row[_AT["time"]] / 1e6 for row in rows]
    text = [row[_AT["content"]].removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
            for row in rows]  # fmt: skip
    made = {"xml": text, "time": seconds}
    columns = [made.get(name, [row[_AT.get(name, 0)] for row in rows]) for name in _ROWS.names]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ROWS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ROWS)
