"""A channel of another peer, over HTTP: the client of `server/channel_routes.py`.

Publishing can carry a producer's number, so that a repetition after a lost response is not
published twice. A subscription has a name at the peer and belongs to the principal of this token.
Its filter runs there, and its position is stored there, so that both sides may be killed and
restarted without loss. Reading (GET) waits at the peer (`wait`) and changes nothing there.
Subscribing and filtering (PUT), acknowledging (POST) and unsubscribing (DELETE) are separate
requests.

An unreachable peer raises AX822 at once; the reader retries.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

from pydantic import Field

from axlog.connect.channels.broker_subscription import no_update
from axlog.connect.channels.entries import Entry, Unreadable, plain
from axlog.connect.channels.protocol import Channel, Delivery
from axlog.connect.http import Allowance, Answer, Client, shown_address
from axlog.connect.kinds import ChannelKind, Origin, Secret
from axlog.connect.sources.fetch import AddressOptions
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.errors import CODES, AccessError, AxlogError, ChannelError, ConnectorError, StreamError
from axlog.match.filters import Filter

_SLACK = 5.0  # seconds that a response may take beyond the requested wait


class HttpChannelOptions(AddressOptions):
    """Options of the channel `http`."""

    url: str = Field(description="The channel's address: https://peer.example/channels/orders")
    token: Secret | None = Field(default=None, description="The token for the peer.")


class HttpChannel:
    """A channel at an address."""

    def __init__(
        self, url: str, token: str | None = None, allowance: Allowance | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self.name = self.url.rpartition("/")[2]
        self._client = Client(allowance)
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def make(self, **retention: Any) -> None:
        """Create the channel at the peer, if it does not exist."""
        self.ask("PUT", "", retention)

    def publish(self, update: StreamUpdate, producer: tuple[str, int] | None = None) -> int:
        """Publish at the peer; see `channels.protocol.Channel`."""
        headers = {}
        if producer is not None:
            headers = {"Axlog-Producer": producer[0], "Axlog-Number": str(producer[1])}
        reply = self.ask("POST", "/updates", plain(update), headers)
        return int(reply["sequence"])

    def subscribe(
        self, name: str | None = None, *, wanted: Filter | None = None, after: int | None = None
    ) -> HttpSubscription:
        """Subscribe at the peer; the filter runs there."""
        made = HttpSubscription(self, name or f"anonymous-{uuid4().hex}", name is not None)
        made.start(wanted, after)
        return made

    def ask(
        self,
        method: str,
        path: str,
        body: object | None = None,
        headers: dict[str, str] | None = None,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Return the JSON of the peer's response, or raise its error."""
        answer = self._client.send(
            method,
            self.url + path,
            headers={**self._headers, **(headers or {})},
            content=None if body is None else json.dumps(body).encode(),
            seconds=seconds,
        )
        reply = _read(answer)
        if not answer.is_success:
            raise _error_of(answer, reply)
        return reply

    def close(self) -> None:
        self._client.close()


class HttpSubscription:
    """A subscription at a peer; created by `HttpChannel.subscribe`."""

    def __init__(self, channel: HttpChannel, name: str, lasts: bool) -> None:
        self.channel = channel
        self.name = name
        self.lasts = lasts
        self.seen = 0
        self._path = f"/subscriptions/{quote(name, safe='')}"

    def start(self, wanted: Filter | None, after: int | None) -> None:
        body: dict[str, Any] = {} if after is None else {"after": after}
        if wanted is not None:
            body["filter"] = json.loads(wanted.to_json())
        reply = self.channel.ask("PUT", self._path, body)
        self.seen = int(reply["acknowledged"]) if after is None else after

    def read(self, limit: int = 1000, timeout: float = 0.0) -> Delivery:
        query = urlencode(
            {
                "subscription": self.name,
                "after": self.seen,
                "limit": limit,
                "wait": min(timeout, 60.0),
            }
        )
        reply = self.channel.ask("GET", f"/updates?{query}", seconds=timeout + _SLACK)
        try:
            found = [_entry(written) for written in reply["entries"]]
            self.seen, clock = int(reply["upto"]), reply.get("clock")
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            if isinstance(error, AxlogError):
                raise
            raise ConnectorError(
                "AX824", f"the peer's response has no valid updates: {error}"
            ) from None
        try:
            clock = None if clock is None else microseconds(clock)
        except AxlogError:
            raise ConnectorError("AX824", "the peer's clock is not a time") from None
        entries = [each for each in found if isinstance(each, Entry)]
        unreadable = [each for each in found if isinstance(each, Unreadable)]
        return Delivery(entries, self.seen, clock, bool(reply.get("closed")), unreadable)

    def seek(self, sequence: int) -> None:
        self.seen = sequence

    def acknowledge(self, sequence: int) -> None:
        self.channel.ask("POST", f"{self._path}/acknowledge", {"sequence": sequence})
        self.seen = max(self.seen, sequence)

    def install(self, wanted: Filter | None) -> None:
        """Replace the filter at the peer."""
        body = {} if wanted is None else {"filter": json.loads(wanted.to_json())}
        self.channel.ask("PUT", self._path, body)

    def close(self, *, forget: bool = False) -> None:
        if forget or not self.lasts:
            self.channel.ask("DELETE", self._path)


def _entry(written: dict[str, Any]) -> Entry | Unreadable:
    number = int(written.pop("sequence"))
    try:
        return Entry(number, StreamUpdate.of(written))
    except (OverflowError, AxlogError) as error:
        return no_update(number, json.dumps(written), error)


def _read(answer: Answer) -> dict[str, Any]:
    if not answer.content:
        return {}
    try:
        reply = json.loads(answer.content)
    except (ValueError, RecursionError):
        reply = None
    if isinstance(reply, dict):
        return reply
    raise ConnectorError(
        "AX824",
        f"{shown_address(answer.url)} returned status {answer.status} without a JSON object",
    )


def _error_of(answer: Answer, reply: dict[str, Any]) -> AxlogError:
    """Return the peer's error as an error of axlog."""
    code, detail = str(reply.get("code")), str(reply.get("detail", ""))[:500]
    if code in ("AX811", "AX812", "AX814", "AX815", "AX817"):
        return AccessError(code, detail)
    if code.startswith("AX80") and code in CODES:
        return ChannelError(code, detail)
    if code in CODES:
        return StreamError("AX407", f"the peer refuses: {code}: {detail}")
    return ConnectorError("AX824", f"{shown_address(answer.url)} returned status {answer.status}")


def _make(options: HttpChannelOptions, origin: Origin) -> Channel:
    token = None if options.token is None else options.token.reveal()
    return HttpChannel(options.url, token, options.allowance())


HTTP = ChannelKind(
    "http", HttpChannelOptions, _make, "A channel of another peer, over HTTP.", needs=("httpx",)
)
