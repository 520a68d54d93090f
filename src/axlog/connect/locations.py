"""Locations of files: a local path, or an address in another file system.

A text with a scheme (`hdfs://host/place`, `s3://bucket/key`) is an address. `file:` addresses are
local paths. Any other text is a local path.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from axlog.errors import PipelineError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/|file:")


def is_address(written: str) -> bool:
    """Whether a location is an address, including `file:` addresses."""
    return _SCHEME.match(written) is not None


def local_path(written: str) -> Path | None:
    """Return the local path of a location; None for an address of another file system.

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
    """Return the local path of a location; raise an error for an address of another file system."""
    found = local_path(written)
    if found is None:
        raise PipelineError(
            "AX864",
            f"{written!r} is an address; a local path is needed",
            expected="a path, or file:///PATH",
        )
    return found
