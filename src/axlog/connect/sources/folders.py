"""A directory of XML or JSON files as a collection: files that are added, changed or removed.

    <file key="..." id="2026/order-17.xml"><order>...</order></file>

The source `directory` reads every file once, as a message. Here the stream follows the files: a
changed or removed file is deleted from the document. A file that cannot be parsed is reported once
and keeps its last content until it can. Names that begin with `.` or end with `.tmp` or `.part` are
ignored, and so are links that lead out of the directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lxml import etree
from pydantic import Field

from axlog.connect.kinds import LocalPath, Origin, SourceKind
from axlog.connect.protocol import Refusal
from axlog.connect.sources.formats import FormatOptions
from axlog.connect.sources.poller import (
    Alerter,
    AlerterOptions,
    Collection,
    Look,
    Thing,
    refusal,
    stream_of,
)
from axlog.document.parser import parse, read
from axlog.errors import AxlogError, ConnectorError

FILE = "file"
_UNFINISHED = (".tmp", ".part")


class FolderOptions(AlerterOptions, FormatOptions):
    """Options of `folder`."""

    path: LocalPath = Field(description="The directory.")
    pattern: str | None = Field(
        default=None,
        description="A glob pattern for its files (default: **/*.xml or **/*.json, so also those"
        " of all subdirectories).",
    )


class Folder(Collection):
    """A directory that is polled."""

    def __init__(self, options: FolderOptions, origin: Origin) -> None:
        super().__init__(stream_of(origin, "a folder"), FILE, options.only)
        self.path = origin.path(options.path)
        self.options = options
        self.pattern = options.pattern or f"**/*.{options.format}"

    def look(self, state: Any, now: float) -> Look:
        """State: for each file its modification stamp, and its digest if it could be read."""
        stamps: dict[str, list[int]] = (state or {}).get("stamps", {})
        digests: dict[str, str] = (state or {}).get("digests", {})
        found = self._files()
        changed = {name: path for name, (path, stamp) in found.items() if stamps.get(name) != stamp}
        things: dict[str, Thing] = {}
        refused: list[Refusal] = []
        for name, path in changed.items():
            try:
                things[name] = Thing(name, self._wrapped(path))
            except AxlogError as error:
                refused.append(refusal(self.stream, "", name, error))
        kept = {Thing(name, etree.Element(FILE)).key for name in found} - {
            thing.key for thing in things.values()
        }
        before = {key: was for key, was in digests.items() if key not in kept}
        updates, after = self.compared(before, things.values(), now)
        state = {
            "stamps": {name: stamp for name, (_, stamp) in found.items()},
            "digests": {**{key: was for key, was in digests.items() if key in kept}, **after},
        }
        return Look(updates, state, refused)

    def _files(self) -> dict[str, tuple[Path, list[int]]]:
        found = {}
        try:
            root = self.path.resolve(strict=True)
            for path in sorted(root.glob(self.pattern)):
                name = path.relative_to(root).as_posix()
                if self._is_wanted(path, root):
                    stat = path.stat()
                    found[name] = (path, [stat.st_mtime_ns, stat.st_size, stat.st_ino])
        except OSError as error:
            raise ConnectorError("AX858", f"{self.path}: {error.strerror or error}") from error
        return found

    def _is_wanted(self, path: Path, root: Path) -> bool:
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if hidden or path.name.endswith(_UNFINISHED) or not path.is_file():
            return False
        return path.resolve().is_relative_to(root)

    def _wrapped(self, path: Path) -> etree._Element:
        made = etree.Element(FILE)
        if self.options.format == "xml":
            made.append(read(path).root)
        else:
            content = path.read_bytes()
            made.extend(parse(one).root for one in self.options.messages(content, path.name))
        return made

    def close(self) -> None:
        """Nothing stays open between polls."""


def _make(options: FolderOptions, origin: Origin) -> Alerter:
    return Alerter(Folder(options, origin), options, origin)


FOLDER = SourceKind(
    "folder",
    FolderOptions,
    _make,
    "A directory of XML or JSON files, polled for added, changed and removed files.",
)
