"""Posts changes to an address, one batch per request, with an idempotency key.

The body is `{"run": ..., "batch": n, "changes": [...]}`. A request without a 2xx response is
retried with growing pauses. Then the sink raises an error, and the runner retries later with the
same batch. A batch arrives at least once; its `Idempotency-Key` is the same every time. The owner
of the pipeline file chooses the address, so private addresses are allowed.

A part of a batch is a request of its own, whose key also has the number of the part. A task posts
its part; one that is not accepted is posted again when the batch is committed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from axlog.connect.kinds import Options, Origin, Seconds, Secret, SinkKind
from axlog.connect.protocol import PartNumber, SinkPart
from axlog.connect.sinks.envelopes import logged
from axlog.errors import ConnectorError
from axlog.extras import import_extra
from axlog.retry import Backoff
from axlog.views.change import Change

BACKOFF = Backoff(0.1, 5.0)
"""The pauses between attempts within one delivery."""


class HttpOptions(Options):
    """Options of `http`."""

    url: Secret = Field(description="The address that batches are posted to.")
    token: Secret | None = Field(default=None, description="Sent as `Authorization: Bearer`.")
    timeout: Seconds = Field(default=10.0, gt=0, description="Timeout for a response.")
    retries: int = Field(default=3, ge=0, description="Retries within one delivery.")


class HttpSink:
    """Posts batches of changes to a web service."""

    exactly_once = False  # the receiver drops duplicates by the key

    def __init__(self, options: HttpOptions, origin: Origin) -> None:
        httpx = import_extra("httpx")
        headers = {}
        if options.token is not None:
            headers["Authorization"] = f"Bearer {options.token.reveal()}"
        self._package: Any = httpx
        self._client = httpx.Client(headers=headers, timeout=options.timeout)
        self._url = options.url.reveal()
        self._retries = options.retries
        self.run = origin.run
        self.views = "+".join(view.name for view in origin.views)

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Post a batch, unless it is empty."""
        if changes:
            self._deliver(batch, 0, self._body(batch, PartNumber(), changes))

    def part(self, batch: int, part: PartNumber, changes: Sequence[Change]) -> bytes:
        """Post a part of a batch; return its body if it was not accepted."""
        if not changes:
            return b""
        body = self._body(batch, part, changes)
        return b"" if self._post(body, self._key(batch, part.number)) is None else body

    def commit(self, batch: int, parts: Sequence[SinkPart]) -> None:
        """Post the parts of a batch that were not accepted before."""
        for part in parts:
            body = part.read()
            if body:
                self._deliver(batch, part.number, body)

    def _key(self, batch: int, part: int) -> str:
        return f"{self.run}-{batch}-{self.views}" + (f"-{part}" if part else "")

    def _body(self, batch: int, part: PartNumber, changes: Sequence[Change]) -> bytes:
        body: dict[str, Any] = {"run": self.run, "batch": batch}
        if part.number:
            body["part"] = part.number
        body["changes"] = [logged(batch, change) for change in changes]
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    def _deliver(self, batch: int, part: int, body: bytes) -> None:
        key = self._key(batch, part)
        for tried in range(self._retries + 1):
            refused = self._post(body, key)
            if refused is None:
                return
            if tried < self._retries:
                time.sleep(BACKOFF.pause(tried + 1))
        raise ConnectorError("AX859", f"the address rejects batch {batch}: {refused}")

    def _post(self, body: bytes, key: str) -> str | None:
        """Return why a batch was not accepted, or None if it was."""
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        try:
            answer = self._client.post(self._url, content=body, headers=headers)
        except self._package.HTTPError as error:
            return type(error).__name__
        return None if answer.is_success else f"status {answer.status_code}"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


HTTP = SinkKind(
    "http",
    HttpOptions,
    HttpSink,
    "Batches of changes posted to an address.",
    needs=("httpx",),
    parts=lambda options, origin: HttpSink(options, origin).part,
)
