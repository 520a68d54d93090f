"""A channel in a Redis stream, through the `redis` client.

The id of an entry is `NUMBER-0`. One script increments the number, checks it against the producer
and adds the entry, so that numbers have no gaps and repetitions of a producer are not added.
`messages` limits the stream (Redis drops the oldest). An entry whose id has another form was added
by a foreign client and is not a message of the channel. The position of a named subscription is in
a hash beside the stream. Redis cannot run filters; a subscription's filter runs in the reading
client.
"""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING, Any

from pydantic import Field

from axlog.connect.channels.broker_subscription import Placed, read_body
from axlog.connect.channels.entries import Entry, Unreadable, plain
from axlog.connect.channels.protocol import Channel, Delivery
from axlog.connect.kinds import ChannelKind, Options, Origin, Secret
from axlog.document.stream_update import StreamUpdate
from axlog.errors import ConnectorError
from axlog.extras import import_extra
from axlog.match.filters import Filter

if TYPE_CHECKING:
    import redis

_LAST = 2**64 - 1
"""The second part of an id greater than all ids of the same number: ours have 0."""
_PUBLISH = """
if ARGV[3] ~= '' then
  local known = redis.call('HGET', KEYS[2], 'p:' .. ARGV[3])
  if known then
    local number, sequence = known:match('^(%d+):(%d+)$')
    if tonumber(ARGV[4]) <= tonumber(number) then return tonumber(sequence) end
  end
end
local n = redis.call('HINCRBY', KEYS[2], 'last', 1)
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], n .. '-0', 'update', ARGV[1])
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[2], 'p:' .. ARGV[3], ARGV[4] .. ':' .. n)
end
return n
"""


class RedisChannelOptions(Options):
    """Options of the channel `redis`."""

    url: Secret = Field(description="The server's address: redis://host:6379/0")
    stream: str = Field(description="The key of the Redis stream.")
    messages: int = Field(
        default=100_000, ge=1, description="Approximate number of retained messages."
    )


class RedisChannel:
    """A channel stored by a Redis server."""

    def __init__(self, client: redis.Redis, stream: str, messages: int = 100_000) -> None:
        self.name = stream
        self.messages = messages
        self._client = client
        self._publish = client.register_script(_PUBLISH)

    @property
    def _state(self) -> str:
        return f"{self.name}:axlog"

    def publish(self, update: StreamUpdate, producer: tuple[str, int] | None = None) -> int:
        """Append to the stream; see `channels.protocol.Channel`."""
        name, number = producer or ("", 0)
        body = json.dumps(plain(update), ensure_ascii=False)
        arguments = [body, self.messages, name, number]
        return int(self._reached(self._publish, keys=[self.name, self._state], args=arguments))

    def subscribe(
        self, name: str | None = None, *, wanted: Filter | None = None, after: int | None = None
    ) -> RedisSubscription:
        """Subscribe; a named subscription resumes after its acknowledged number."""
        if after is None and name is not None:
            known = self._reached(self._client.hget, self._state, f"s:{name}")
            after = None if known is None else int(known)
        if after is None:
            after = self.last
        if name is not None:
            self._reached(self._client.hsetnx, self._state, f"s:{name}", after)
        return RedisSubscription(self, name, wanted, after)

    @property
    def last(self) -> int:
        return int(self._reached(self._client.hget, self._state, "last") or 0)

    def _reached(self, ask: Any, *arguments: Any, **named: Any) -> Any:
        import redis

        try:
            return ask(*arguments, **named)
        except redis.RedisError as error:
            raise ConnectorError("AX822", f"Redis: {error}") from None

    def close(self) -> None:
        self._client.close()


class RedisSubscription(Placed):
    """A reader of a Redis stream."""

    def __init__(
        self, channel: RedisChannel, name: str | None, wanted: Filter | None, after: int
    ) -> None:
        super().__init__(name, wanted, after)
        self.channel = channel

    def fetch(self, limit: int, timeout: float) -> list[Entry | Unreadable]:
        channel, client = self.channel, self.channel._client
        block = None if timeout <= 0 else max(1, int(timeout * 1000))
        found = channel._reached(
            client.xread, {channel.name: f"{self.seen}-{_LAST}"}, count=limit, block=block
        )
        if isinstance(found, dict):  # the client's newer protocol
            found = [(key, lists[0] if lists else []) for key, lists in found.items()]
        entries: list[Entry | Unreadable] = []
        for _, added in found or ():
            for key, fields in added:
                number, _, rest = _text(key).partition("-")
                if rest == "0":
                    body = fields.get(b"update", fields.get("update"))
                    entries.append(read_body(body, int(number)))
        return entries

    def read(self, limit: int = 1000, timeout: float = 0.0) -> Delivery:
        return self.looked(limit, monotonic() + timeout)

    def acknowledge(self, sequence: int) -> None:
        if self.lasts:
            state, key = self.channel._state, f"s:{self.name}"
            self.channel._reached(self.channel._client.hset, state, key, sequence)

    def close(self, *, forget: bool = False) -> None:
        if forget and self.lasts:
            self.channel._reached(self.channel._client.hdel, self.channel._state, f"s:{self.name}")


def _text(given: bytes | str) -> str:
    return given.decode() if isinstance(given, bytes) else given


def _make(options: RedisChannelOptions, origin: Origin) -> Channel:
    redis = import_extra("redis")
    client = redis.Redis.from_url(options.url.reveal())
    return RedisChannel(client, options.stream, options.messages)


REDIS = ChannelKind(
    "redis", RedisChannelOptions, _make, "A channel in a Redis stream.", needs=("redis",)
)
