"""Fetch bytes from a path or an address, only if they have changed.

An address is requested with its last validators (`ETag`, `Last-Modified`). For a path the
modification time and size are checked first. Content with the same digest is not new either.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import Field

from axlog.connect.http import Allowance, Client
from axlog.connect.kinds import Options, Origin, Seconds
from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import ConnectorError

_NOT_MODIFIED = 304


class AddressOptions(Options):
    """Options for fetching from an address."""

    allow: list[str] = Field(default=[], description="Private hosts and networks that may be used.")
    timeout: Seconds = Field(default=30.0, gt=0, description="Timeout for one request in total.")
    size: int = Field(
        default=32 * 1024 * 1024, ge=1, description="Maximum size of a response in bytes."
    )
    redirects: int = Field(default=5, ge=0, description="Maximum number of redirects.")

    def allowance(self) -> Allowance:
        return Allowance(tuple(self.allow), self.redirects, self.size, self.timeout)


class Fetching:
    """A path or address, and its state at the last fetch."""

    def __init__(self, where: str, options: AddressOptions, origin: Origin) -> None:
        self.where = where
        self.is_address = where.startswith(("http://", "https://"))
        self.path = Path() if self.is_address else origin.path(where)
        self.size = min(options.size, DEFAULT_LIMITS.size)
        self._client = Client(options.allowance()) if self.is_address else None

    def fetch(self, before: dict[str, Any]) -> tuple[bytes | None, dict[str, Any]]:
        """Return the bytes, or None if they are unchanged; and the state for the next fetch."""
        if self._client is None:
            content, known = self._from_path(before)
        else:
            content, known = self._from_address(self._client, before)
        if content is None:
            return None, {**before, **known}
        known["digest"] = blake2b(content, digest_size=16).hexdigest()
        return (None if known["digest"] == before.get("digest") else content), known

    def _from_path(self, before: dict[str, Any]) -> tuple[bytes | None, dict[str, Any]]:
        try:
            found = self.path.stat()
            known = {"stamp": [found.st_mtime_ns, found.st_size, found.st_ino]}
            if known["stamp"] == before.get("stamp"):
                return None, known
            with self.path.open("rb") as file:
                content = file.read(self.size + 1)
        except OSError as error:
            raise ConnectorError("AX858", f"{self.where}: {error.strerror or error}") from error
        if len(content) > self.size:
            raise ConnectorError("AX823", f"{self.where} has more than {self.size} bytes")
        return content, known

    def _from_address(
        self, client: Client, before: dict[str, Any]
    ) -> tuple[bytes | None, dict[str, Any]]:
        headers = {}
        if before.get("etag"):
            headers["If-None-Match"] = before["etag"]
        if before.get("modified"):
            headers["If-Modified-Since"] = before["modified"]
        answer = client.send("GET", self.where, headers=headers)
        if answer.status == _NOT_MODIFIED:
            return None, {}
        if not answer.is_success:
            raise ConnectorError("AX824", f"{self.where} returned status {answer.status}")
        return answer.content, {
            "etag": answer.headers.get("etag"),
            "modified": answer.headers.get("last-modified"),
        }

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
