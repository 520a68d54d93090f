"""Convert the failure of a streaming query to an error of axlog.

An error that axlog raised in a task or a source arrives as a traceback inside the message of a
`StreamingQueryException`. The last coded error in it ended the query. If there is none, Spark
itself failed (AX868).
"""

from __future__ import annotations

import re

from axlog import errors
from axlog.errors import CODES, AxlogError, PipelineError

_CODED = re.compile(r"axlog\.errors\.([A-Za-z]+): ([A-Z]{2,4}\d{3,4}): (.*)")


def failure_of(error: Exception) -> AxlogError:
    """Return the axlog error that a query failed with."""
    text = str(error)
    for name, code, message in reversed(_CODED.findall(text)):
        kind = getattr(errors, name, PipelineError)
        if code in CODES and isinstance(kind, type) and issubclass(kind, AxlogError):
            return kind(code, message)
    reason = (text.strip() or type(error).__name__).splitlines()[0]
    return PipelineError(
        "AX868", f"Spark failed: {reason[:500]}", advice="run `axlog doctor --spark`"
    )
