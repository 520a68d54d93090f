"""Files that are replaced whole, and the small states beside files that grow."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from axlog.errors import ConnectorError


def replace_file(path: Path, content: bytes) -> None:
    """Put content in the place of a file: who reads sees the old or the new, also after a crash."""
    partial = path.with_name(f".{path.name}.part")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    settle_file(partial, path)


def settle_file(partial: Path, path: Path) -> None:
    """Give a finished file its name, durably."""
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read_state(path: Path) -> dict[str, Any]:
    """The state that `replace_file` wrote, or nothing if there is none."""
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
    """The error for a file that cannot be written now."""
    return ConnectorError("AX859", f"{path}: {error.strerror or error}")
