"""Bytes at a path or an address, asked for only if they are others than last time.

An address is asked with what it said last (`ETag`, `Last-Modified`); a path is looked at for its
time and size first. What comes back with the same digest is not new either.
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
    """Options of whatever is fetched from an address."""

    allow: list[str] = Field(
        default=[], description="Hosts and networks that may be used although they are private."
    )
    timeout: Seconds = Field(default=30.0, gt=0, description="For one request, all in all.")
    size: int = Field(default=32 * 1024 * 1024, ge=1, description="Bytes of an answer, at most.")
    redirects: int = Field(default=5, ge=0, description="At most so many.")

    def allowance(self) -> Allowance:
        return Allowance(tuple(self.allow), self.redirects, self.size, self.timeout)


class Fetching:
    """One path or address, and how it was the last time."""

    def __init__(self, where: str, options: AddressOptions, origin: Origin) -> None:
        self.where = where
        self.is_address = where.startswith(("http://", "https://"))
        self.path = Path() if self.is_address else origin.path(where)
        self.size = min(options.size, DEFAULT_LIMITS.size)
        self._client = Client(options.allowance()) if self.is_address else None

    def fetch(self, before: dict[str, Any]) -> tuple[bytes | None, dict[str, Any]]:
        """The bytes, None if they are as before; and what to know the next time."""
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
            raise ConnectorError("AX824", f"{self.where} answers with status {answer.status}")
        return answer.content, {
            "etag": answer.headers.get("etag"),
            "modified": answer.headers.get("last-modified"),
        }

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
