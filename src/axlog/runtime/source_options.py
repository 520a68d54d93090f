"""Sources named by plain options: `format("axlog")` for notebooks and SQL.

    axlog.spark.register(spark)
    spark.readStream.format("axlog").option("kind", "jsonl").option("path", "in.jsonl").load()

`kind` is that of a pipeline file, and the other options are the kind's own, as texts. `stream`
names the stream of messages that do not name theirs, and `directory` the base of relative paths.
The rows are messages with the columns that `maintain`, `changes` and `view` take from a DataFrame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import ValidationError

from axlog.connect.kinds import Origin
from axlog.connect.protocol import Source
from axlog.errors import PipelineError
from axlog.pipeline.kinds import source_kind
from axlog.runtime.message_rows import SCHEMA, Values

if TYPE_CHECKING:
    from collections.abc import Callable

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
        return found.options.model_validate(given, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise PipelineError(
            "AX852", f"option {where!r} of the source {kind!r}: {first['msg']}"
        ) from None


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
