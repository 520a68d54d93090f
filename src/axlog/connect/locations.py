"""Where files lie: a path of this machine, or an address in a file system of another kind.

A text with a scheme (`hdfs://host/place`, `s3://bucket/key`) is an address; `file:` addresses are
paths of this machine. Anything else is a path.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from axlog.errors import PipelineError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/|file:")


def is_address(written: str) -> bool:
    """Whether a place is an address, `file:` addresses included."""
    return _SCHEME.match(written) is not None


def local_path(written: str) -> Path | None:
    """The path that a text means on this machine; None for an address of another kind.

    >>> local_path("file:///data/in")
    PosixPath('/data/in')
    >>> local_path("s3://bucket/in") is None
    True
    """
    if not is_address(written):
        return Path(written)
    parts = urlsplit(written)
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path))


def needed_path(written: str) -> Path:
    """The path that a text means on this machine; an error for an address of another kind."""
    found = local_path(written)
    if found is None:
        raise PipelineError(
            "AX864",
            f"{written!r} is an address, and a path of this machine is needed",
            expected="a path, or file:///PATH",
        )
    return found
