"""Channels as web services: publish, read, follow, subscribe, acknowledge (P3 2.3).

    PUT    /channels/NAME                          make a channel
    POST   /channels/NAME/updates                  publish: JSON, JSON lines or XML
    GET    /channels/NAME/updates?after=17&wait=20 read on, waiting for something
    GET    /channels/NAME/events                   follow by server-sent events, and resume
    PUT    /channels/NAME/subscriptions/PEER       subscribe by name, with a filter and an address
    POST   /channels/NAME/subscriptions/PEER/acknowledge
    DELETE /channels/NAME/subscriptions/PEER       unsubscribe

A filter is what `Filter.to_json` writes, or, for one pattern, `?match=PATTERN`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from axlog.channels.channel import LocalChannel, LocalSubscription
from axlog.channels.entries import Retention
from axlog.channels.naming import Channels
from axlog.channels.protocol import Delivery
from axlog.channels.updates import StreamUpdate, read_line
from axlog.connectors.publishers.feeds import FORMATS, RENDER, About, Item
from axlog.document.reading import encoding_of
from axlog.document.times import plain, shown
from axlog.document.xml import check_forest
from axlog.errors import AxlogError, ChannelError
from axlog.language.query import parse_query
from axlog.matching.filters import Filter
from axlog.server.access import Access, Token
from axlog.server.answers import answer, body_of, json_of, number_in, wrong
from axlog.server.operations import Operation
from axlog.server.pulses import Pulse, Pulses
from axlog.server.webhooks import Webhooks

LONGEST_WAIT = 60.0
ALIVE = 15.0  # seconds of silence after which a comment shows that the connection lives
LARGE = 64 * 1024  # characters of a message that is checked beside the loop
NEWEST = 50  # entries that a feed has
MOST_PATTERNS = 1000  # of a filter that comes in a request
AT_ONCE = 500  # entries in one piece of an event stream
_LAST = datetime(9999, 12, 31, tzinfo=UTC)
_JSON, _LINES, _XML = "application/json", "application/x-ndjson", "application/xml"
_AFTER = ("after", "the number of the last update seen; without it, from now on")
_FILTER = ("filter", "what Filter.to_json writes; installed at the source")
_MATCH = ("match", "a pattern: a filter of one")


class Serving:
    """The operations of channels."""

    def __init__(
        self, channels: Channels, access: Access, pulses: Pulses, webhooks: Webhooks
    ) -> None:
        self.channels = channels
        self.access = access
        self.pulses = pulses
        self.webhooks = webhooks

    def operations(self) -> list[Operation]:
        """The table."""
        one, peer = "/channels/{channel}", "/channels/{channel}/subscriptions/{subscription}"
        return [
            Operation("GET", "/channels", "The channels", self._list),
            Operation("GET", one, "A channel: numbers, size, subscriptions", self._status),
            Operation("PUT", one, "Make a channel", self._make, True, body=(_JSON,), success="201"),
            Operation(
                "POST",
                f"{one}/updates",
                "Publish updates",
                self._publish,
                True,
                query=(("stream", "of an XML body"), ("at", "the time of an XML body")),
                body=(_JSON, _LINES, _XML),
                headers=(
                    ("Axlog-Producer", "who publishes"),
                    ("Axlog-Number", "the producer's own number of the first update"),
                ),
            ),
            Operation(
                "GET",
                f"{one}/updates",
                "Read on, waiting for something",
                self._read,
                query=(
                    _AFTER,
                    ("limit", "at most so many"),
                    ("wait", "seconds"),
                    ("subscription", "read under this name, with its filter"),
                    _FILTER,
                    _MATCH,
                ),
            ),
            Operation(
                "GET",
                f"{one}/events",
                "Follow by server-sent events",
                self._events,
                query=(_AFTER, ("subscription", "follow under this name"), _FILTER, _MATCH),
                headers=(("Last-Event-ID", "resume after this number"),),
                answers=("text/event-stream",),
            ),
            Operation(
                "GET",
                f"{one}/feed",
                "The newest updates as a feed",
                self._feed,
                query=(("format", "rss, atom or json"),),
                answers=tuple(FORMATS.values()),
            ),
            Operation("PUT", peer, "Subscribe by name", self._subscribe, True, body=(_JSON,)),
            Operation("DELETE", peer, "Unsubscribe", self._unsubscribe, True, success="204"),
            Operation(
                "POST",
                f"{peer}/acknowledge",
                "Acknowledge up to a number",
                self._acknowledge,
                True,
                body=(_JSON,),
            ),
            Operation(
                "POST",
                "/hub",
                "Subscribe or unsubscribe an address (WebSub)",
                self._hub,
                True,
                body=("application/x-www-form-urlencoded",),
                success="202",
            ),
        ]

    # Channels -------------------------------------------------------------------------------------

    def _channel(self, request: Request) -> LocalChannel:
        return self.channels[request.path_params["channel"]]

    async def _list(self, request: Request, token: Token) -> Response:
        return answer({"channels": [self._said(channel) for channel in self.channels]})

    async def _status(self, request: Request, token: Token) -> Response:
        return answer(self._said(self._channel(request)))

    def _said(self, channel: LocalChannel) -> dict[str, Any]:
        known = channel.subscriptions().values()
        return {
            "name": channel.name,
            "first": channel.first,
            "last": channel.last,
            "bytes": channel.size,
            "readers": channel.readers,
            "subscriptions": {
                each.name: {
                    "acknowledged": each.acknowledged,
                    "lag": channel.last - each.acknowledged,
                    "filter": None if each.filter is None else json.loads(each.filter),
                    **self.webhooks.said(channel.name, each.name),
                }
                for each in known
            },
        }

    async def _make(self, request: Request, token: Token) -> Response:
        given = await json_of(request, token.size)
        unknown = set(given) - {"messages", "size", "when_full"}
        if unknown:
            raise wrong(f"unknown key {min(unknown)!r}", "messages, size, when_full")
        keep = self.channels.retention
        try:
            retention = Retention(
                int(given.get("messages", keep.messages)),
                int(given.get("size", keep.size)),
                str(given.get("when_full", keep.when_full)),
            )
        except (OverflowError, TypeError, ValueError):
            raise wrong("a retention is not a number") from None
        return answer(
            self._said(self.channels.make(request.path_params["channel"], retention)), 201
        )

    # Publishing -----------------------------------------------------------------------------------

    async def _publish(self, request: Request, token: Token) -> Response:
        channel = self._channel(request)
        updates = await self._updates(request, token)
        self.access.spend(token, len(updates))
        for at, update in enumerate(updates):
            try:
                await _check(update)
            except AxlogError as error:
                error.within(f"update {at + 1} of {len(updates)}; none is published")
                raise
        producer = _producer(request)
        last = channel.last
        for at, update in enumerate(updates):
            numbered = None if producer is None else (producer[0], producer[1] + at)
            try:
                last = await self._put(channel, update, numbered)
            except AxlogError as error:
                error.within(f"update {at + 1} of {len(updates)}; those before are published")
                raise
        return answer({"sequence": last, "published": len(updates)})

    async def _put(
        self, channel: LocalChannel, update: StreamUpdate, producer: tuple[str, int] | None
    ) -> int:
        if channel.retention.when_full == "wait":  # it may: not on the loop of all others
            return await asyncio.to_thread(channel.publish, update, producer)
        return channel.publish(update, producer)

    async def _updates(self, request: Request, token: Token) -> list[StreamUpdate]:
        body = await body_of(request, token.size)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in (_XML, "text/xml"):
            query = request.query_params
            stream = query.get("stream", request.path_params["channel"])
            return [StreamUpdate(stream, "insert", _xml(body), query.get("at"))]
        if kind not in (_JSON, _LINES):
            raise wrong(f"a body of {kind or 'no type'!r}", f"{_JSON}, {_LINES} or {_XML}")
        lines = [_text(body)] if kind == _JSON else _text(body).splitlines()
        return [
            read_line(" ".join(line.splitlines()) if kind == _JSON else line, number)
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]

    # Reading --------------------------------------------------------------------------------------

    async def _subscription(self, request: Request, after: int | None) -> LocalSubscription:
        """What a request reads by; named ones must have been subscribed before."""
        channel = self._channel(request)
        name = request.query_params.get("subscription")
        if name is not None and name not in channel.subscriptions():
            raise ChannelError("AX805", f"there is no subscription {name!r}")
        return channel.subscribe(name, wanted=await _wanted(request), after=after)

    async def _read(self, request: Request, token: Token) -> Response:
        after = _after(request, None)
        limit = int(number_in(request, "limit", 1000, 1, 10_000))
        wait = number_in(request, "wait", 0, 0, LONGEST_WAIT)
        subscription = await self._subscription(request, after)
        try:
            delivery = await self._wait(subscription, limit, wait)
        finally:
            subscription.close()
        return _delivered(delivery)

    async def _wait(self, subscription: LocalSubscription, limit: int, wait: float) -> Delivery:
        pulse = self.pulses.of(subscription.channel)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        clock: int | None = None
        while True:
            ticket = pulse.ticket()
            delivery = subscription.read(limit)
            times = [time for time in (clock, delivery.microseconds) if time is not None]
            clock = max(times, default=None)
            left = until - loop.time()
            if delivery.entries or delivery.is_closed or left <= 0:
                return Delivery(delivery.entries, delivery.upto, clock, delivery.is_closed)
            await pulse.wait(ticket, left)

    async def _events(self, request: Request, token: Token) -> Response:
        last = request.headers.get("last-event-id")
        after = _after(request, last)
        subscription = await self._subscription(request, after)
        if last is not None and subscription.lasts:
            subscription.acknowledge(min(int(last), subscription.channel.last))
        pulse = self.pulses.of(subscription.channel)
        return StreamingResponse(
            _followed(subscription, pulse),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _feed(self, request: Request, token: Token) -> Response:
        channel = self._channel(request)
        form = request.query_params.get("format", "rss")
        if form not in FORMATS:
            raise wrong(f"format={form[:20]!r}", expected=", ".join(FORMATS))
        newest = channel.newest(NEWEST)
        items = [
            Item(
                f"{channel.name}-{entry.sequence}",
                f"{channel.name} {entry.sequence}: {entry.update.action}",
                str(entry.update.plain().get(entry.update.action)),
                _moment(entry.time or 0),
            )
            for entry in reversed(newest)
        ]
        about = About(channel.name, str(request.url.replace(query="")))
        return Response(RENDER[form](about, items), media_type=FORMATS[form])

    # Subscriptions --------------------------------------------------------------------------------

    async def _subscribe(self, request: Request, token: Token) -> Response:
        channel, name = self._channel(request), request.path_params["subscription"]
        given = await json_of(request, token.size)
        unknown = set(given) - {"filter", "after", "callback", "secret", "lease"}
        if unknown:
            raise wrong(f"unknown key {min(unknown)!r}", "filter, after, callback, secret, lease")
        after, wanted = given.get("after"), given.get("filter")
        if isinstance(after, bool) or not isinstance(after, int | None):
            raise wrong("after is not a number")
        filter_ = None if wanted is None else await _filter_of(json.dumps(wanted))
        self.access.claim(token, "subscriptions", f"{channel.name}/{name}")
        if given.get("callback") is not None:
            await self.webhooks.subscribe(channel, name, given, filter_, after)
        else:
            subscription = channel.subscribe(name, wanted=filter_, after=after)
            subscription.install(filter_)
            subscription.close()
        return answer(self._said(channel)["subscriptions"][name])

    async def _unsubscribe(self, request: Request, token: Token) -> Response:
        channel, name = self._channel(request), request.path_params["subscription"]
        self.webhooks.stop(channel.name, name)
        channel.unsubscribe(name)
        self.access.release("subscriptions", f"{channel.name}/{name}")
        return Response(status_code=204)

    async def _acknowledge(self, request: Request, token: Token) -> Response:
        channel, name = self._channel(request), request.path_params["subscription"]
        sequence = (await json_of(request, token.size)).get("sequence")
        if isinstance(sequence, bool) or not isinstance(sequence, int):
            raise wrong("sequence is not a number", '{"sequence": 17}')
        channel.acknowledge(name, sequence)
        return answer({"acknowledged": sequence})

    async def _hub(self, request: Request, token: Token) -> Response:
        body = await body_of(request, min(token.size, 100_000))
        channel, name = await self.webhooks.hub(_text(body), self.channels)
        if name in self.channels[channel].subscriptions():
            self.access.claim(token, "subscriptions", f"{channel}/{name}")
        else:
            self.access.release("subscriptions", f"{channel}/{name}")
        return Response(status_code=202)


async def _followed(subscription: LocalSubscription, pulse: Pulse) -> AsyncIterator[bytes]:
    """The event stream of a subscription.

    The sender waits while the connection's buffer is full, so a slow reader holds back nobody: it
    stays behind in the channel, and is told when what it wants is not kept any more.
    """
    yield b"retry: 1000\n\n"
    try:
        while True:
            ticket = pulse.ticket()
            try:
                delivery = subscription.read(AT_ONCE)
            except AxlogError as error:
                said = json.dumps({"code": error.code, "detail": error.message})
                yield f"event: gap\ndata: {said}\n\n".encode()
                return
            if delivery.entries:
                yield pulse.events(delivery.entries)
                continue
            if delivery.clock is not None:
                said = json.dumps({"upto": delivery.upto, "clock": plain(delivery.clock)})
                yield f"id: {delivery.upto}\nevent: clock\ndata: {said}\n\n".encode()
            if delivery.is_closed:
                yield b"event: end\ndata: {}\n\n"
                return
            if not await pulse.wait(ticket, ALIVE):
                yield b": alive\n\n"
    finally:
        subscription.close()


async def _check(update: StreamUpdate) -> None:
    """Refuse what no widget could take: a channel does not pass attacks on."""
    if update.action == "delete":
        await asyncio.to_thread(parse_query, str(update.content))
    elif update.action == "insert" and len(update.content) > LARGE:
        await asyncio.to_thread(check_forest, update.content)
    elif update.action == "insert":
        check_forest(update.content)


def _delivered(delivery: Delivery) -> Response:
    """A delivery as JSON, put together from the texts that the entries have."""
    entries = ", ".join(entry.text for entry in delivery.entries)
    clock = None if delivery.clock is None else plain(delivery.clock)
    rest = {"upto": delivery.upto, "clock": clock, "closed": delivery.is_closed}
    return Response(
        f'{{"entries": [{entries}], {json.dumps(rest)[1:]}', media_type="application/json"
    )


def _moment(time: int) -> str:
    """A time as feeds write it; one that has no date stands at the end of all dates."""
    found = shown(time, "dates")
    return (found if isinstance(found, datetime) else _LAST).isoformat()


def _after(request: Request, last: str | None) -> int | None:
    given = last if last is not None else request.query_params.get("after")
    if given is None:
        return None
    if not given.isdecimal() or len(given) > 18:
        raise wrong(f"after={given[:50]!r}", expected="a sequence number")
    return int(given)


async def _wanted(request: Request) -> Filter | None:
    query = request.query_params
    if "filter" in query:
        return await _filter_of(query["filter"])
    if "match" in query:
        wanted = Filter()
        await asyncio.to_thread(wanted.add, "match", query["match"])
        return wanted
    return None


async def _filter_of(text: str) -> Filter:
    """The filter that somebody sent, of a size that holds nobody up; made beside the loop."""
    if text.count('"keys"') > MOST_PATTERNS:
        raise wrong(f"a filter of more than {MOST_PATTERNS:,} patterns", "several subscriptions")
    return await asyncio.to_thread(Filter.from_json, text)


def _producer(request: Request) -> tuple[str, int] | None:
    name, number = request.headers.get("axlog-producer"), request.headers.get("axlog-number")
    if name is None and number is None:
        return None
    if not name or not number or not number.isdecimal() or len(number) > 18:
        raise wrong("a producer needs a name and a number", "Axlog-Producer and Axlog-Number")
    return name[:200], int(number)


def _xml(body: bytes) -> str:
    """The XML of a body in the encoding that it says it is in."""
    encoding = encoding_of(body)
    if encoding == "utf-8":
        return _text(body)
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as error:
        raise wrong(
            f"the body is not in {encoding}: {error.reason} at byte {error.start}"
        ) from None


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise wrong(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
