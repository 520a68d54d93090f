"""Posts changes to an address that others may have supplied, signed, in a chosen envelope.

The sink `http` posts to an address of the file's owner. This one uses the guarded client (private
ranges refused unless allowed, sizes and times limited) and signs the body with a shared secret
(`X-Hub-Signature: sha256=...`), so that receivers can authenticate it. A batch without a success
response is retried with the same `Idempotency-Key`: delivery is at least once, and duplicates have
the same id.

A part of a batch is a request of its own, whose key also has the number of the part. A task posts
its part; one that is not accepted is posted again when the batch is committed.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from axlog.connect.http import Client, shown_address
from axlog.connect.kinds import Origin, Secret, SinkKind
from axlog.connect.protocol import PartNumber, SinkPart
from axlog.connect.sinks.envelopes import ENVELOPES
from axlog.connect.sources.fetch import AddressOptions
from axlog.errors import ConnectorError
from axlog.views.change import Change

_TYPES = {"cloudevents": "application/cloudevents-batch+json"}


class WebhookOptions(AddressOptions):
    """Options of `webhook`."""

    url: Secret = Field(description="The address that batches are posted to.")
    secret: Secret | None = Field(default=None, description="The secret that signs the bodies.")
    envelope: Literal["native", "debezium", "feldera", "subscribe", "cloudevents"] = Field(
        default="native", description="The envelope of the changes."
    )


class CloudEventsOptions(WebhookOptions):
    """Options of `cloudevents`."""

    envelope: Literal["cloudevents"] = Field(default="cloudevents", description="CloudEvents 1.0.")


class WebhookSink:
    """Posts changes to a web service that verifies signatures."""

    exactly_once = False  # the receiver drops duplicates by the key

    def __init__(self, options: WebhookOptions, origin: Origin) -> None:
        self._url = options.url.reveal()
        self.run = origin.run
        self.views = "+".join(view.name for view in origin.views)
        self._secret = None if options.secret is None else options.secret.reveal().encode()
        self._envelope = ENVELOPES[options.envelope]
        self._type = _TYPES.get(options.envelope, "application/json")
        self._client = Client(options.allowance())
        self._last = -1

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Post a batch, unless it is empty or was accepted before."""
        if batch <= self._last:
            return
        body = self._body(batch, PartNumber(), changes)
        if body:
            self._post(batch, 0, body)
        self._last = batch

    def part(self, batch: int, part: PartNumber, changes: Sequence[Change]) -> bytes:
        """Post a part of a batch; return its body if it was not accepted."""
        body = self._body(batch, part, changes)
        if body:
            try:
                self._post(batch, part.number, body)
            except ConnectorError:
                return body
        return b""

    def commit(self, batch: int, parts: Sequence[SinkPart]) -> None:
        """Post the parts of a batch that were not accepted before."""
        if batch <= self._last:
            return
        for part in parts:
            body = part.read()
            if body:
                self._post(batch, part.number, body)
        self._last = batch

    def _body(self, batch: int, part: PartNumber, changes: Sequence[Change]) -> bytes:
        written = list(self._envelope(self.run, batch, changes, part.first))
        return json.dumps(written, ensure_ascii=False).encode() if written else b""

    def _post(self, batch: int, part: int, body: bytes) -> None:
        key = f"{self.run}-{batch}-{self.views}" + (f"-{part}" if part else "")
        headers = {"Content-Type": self._type, "Idempotency-Key": key}
        if self._secret is not None:
            headers["X-Hub-Signature"] = (
                "sha256=" + hmac.new(self._secret, body, "sha256").hexdigest()
            )
        try:
            answer = self._client.send("POST", self._url, headers=headers, content=body)
        except ConnectorError as error:  # the path alone may authorize posting, so it is not shown
            message = error.message.replace(shown_address(self._url), "the webhook")
            raise ConnectorError(error.code, message, advice=error.advice) from None
        if not answer.is_success:
            raise ConnectorError(
                "AX824", f"the webhook rejects batch {batch} with status {answer.status}"
            )

    def close(self) -> None:
        self._client.close()


WEBHOOK = SinkKind(
    "webhook",
    WebhookOptions,
    WebhookSink,
    "Batches of changes, signed, for an external address.",
    needs=("httpx",),
    parts=lambda options, origin: WebhookSink(options, origin).part,
    # `subscribe` ends every batch with a line of its own
    has_parts=lambda options: options.envelope != "subscribe",
)
CLOUDEVENTS = SinkKind(
    "cloudevents",
    CloudEventsOptions,
    WebhookSink,
    "Changes as CloudEvents 1.0, one batch per request.",
    needs=("httpx",),
    parts=lambda options, origin: WebhookSink(options, origin).part,
)
