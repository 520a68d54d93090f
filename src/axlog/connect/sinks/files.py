"""Atomic replacement of files, and small state files beside growing files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from axlog.errors import ConnectorError


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically: readers see the old or the new content, also after a crash."""
    partial = path.with_name(f".{path.name}.part")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    settle_file(partial, path)


def settle_file(partial: Path, path: Path) -> None:
    """Rename a finished file to its final name, durably."""
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read_state(path: Path) -> dict[str, Any]:
    """Return the state that `replace_file` wrote; empty if there is none."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        state = json.loads(content)
        return {"run": str(state["run"]), "batch": int(state["batch"]), "size": int(state["size"])}
    except (ValueError, KeyError, TypeError):
        raise ConnectorError(
            "AX859", f"{path} is not the state of a sink", advice="remove it and the file beside it"
        ) from None


def unwritable(path: Path, error: OSError) -> ConnectorError:
    """Return the error for a file that cannot be written now."""
    return ConnectorError("AX859", f"{path}: {error.strerror or error}")
