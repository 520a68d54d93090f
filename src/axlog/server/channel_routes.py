"""Channels as web services: create, publish, read, follow.

    PUT    /channels/NAME                          create a channel
    POST   /channels/NAME/updates                  publish: JSON, JSON lines or XML
    GET    /channels/NAME/updates?after=17&wait=20 read from a position, with long polling
    GET    /channels/NAME/events                   follow by server-sent events, and resume

Reading changes nothing: not the channel, no subscription, no filter. `filter` (the output of
`Filter.to_json`) and `match` (one pattern) apply to this request only. `subscription` reads with
the filter and from the position of one of the principal's own subscriptions and changes neither.
`Last-Event-ID` is the position to resume from, and acknowledges nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.entries import Retention
from axlog.connect.channels.journal import Remembered
from axlog.connect.channels.protocol import Delivery
from axlog.connect.channels.reader import Reader
from axlog.connect.channels.registry import Channels
from axlog.connect.sinks.feeds import FORMATS, RENDER, About, Item
from axlog.document.loader import check_forest
from axlog.document.parser import encoding_of
from axlog.document.stream_update import StreamUpdate, read_line, retracted
from axlog.document.times import plain, shown
from axlog.errors import AxlogError, ChannelError
from axlog.match.filters import Filter
from axlog.query.query import parse_query
from axlog.server.access import Access, used_up
from axlog.server.operations import Operation, address_of
from axlog.server.ownership import owned, owner_of
from axlog.server.responses import answer, body_of, json_of, number_in, wrong
from axlog.server.roles import Principal
from axlog.server.roles import channel as resource
from axlog.server.wakeups import Pulses
from axlog.server.webhooks import Webhooks

LONGEST_WAIT = 60.0
ALIVE = 15.0  # seconds of silence after which a comment keeps the connection alive
LARGE = 64 * 1024  # characters above which a message is parsed outside the event loop
NEWEST = 50  # entries of a feed
MOST_PATTERNS = 1000  # patterns of a filter in a request
AT_ONCE = 500  # entries in one chunk of an event stream
JUDGED = 200  # entries matched at once for a reader with a filter
_LAST = datetime(9999, 12, 31, tzinfo=UTC)
_JSON, _LINES, _XML = "application/json", "application/x-ndjson", "application/xml"
_AFTER = ("after", "the number of the last update seen (default: the newest)")
_FILTER = ("filter", "the output of Filter.to_json; for this request only")
_MATCH = ("match", "a single pattern as the filter")


class Serving:
    """Return the operations of channels."""

    def __init__(
        self, channels: Channels, access: Access, pulses: Pulses, webhooks: Webhooks
    ) -> None:
        self.channels = channels
        self.access = access
        self.pulses = pulses
        self.webhooks = webhooks

    def operations(self) -> list[Operation]:
        """Return the table of operations."""
        one = "/channels/{channel}"
        return [
            Operation("GET", "/channels", "The channels", self._list, "own"),
            Operation("GET", one, "A channel: numbers, size, subscriptions", self._status),
            Operation(
                "PUT", one, "Make a channel", self._make, "administer", body=(_JSON,), success="201"
            ),
            Operation(
                "POST",
                f"{one}/updates",
                "Publish updates",
                self._publish,
                "publish",
                query=(("stream", "of an XML body"), ("at", "the time of an XML body")),
                body=(_JSON, _LINES, _XML),
                headers=(
                    ("Axlog-Producer", "caller publishes"),
                    ("Axlog-Number", "the producer's own number of the first update"),
                ),
            ),
            Operation(
                "GET",
                f"{one}/updates",
                "Read from a position, with long polling",
                self._read,
                query=(
                    _AFTER,
                    ("limit", "maximum number of entries"),
                    ("wait", "seconds"),
                    (
                        "subscription",
                        "read with the filter and position of one of your subscriptions",
                    ),
                    _FILTER,
                    _MATCH,
                ),
            ),
            Operation(
                "GET",
                f"{one}/events",
                "Follow by server-sent events",
                self._events,
                query=(_AFTER, ("subscription", "follow with it"), _FILTER, _MATCH),
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
        ]

    # Channels -------------------------------------------------------------------------------------

    def _channel(self, request: Request) -> LocalChannel:
        return channel_of(self.channels, request.path_params["channel"])

    async def _list(self, request: Request, caller: Principal) -> Response:
        shown = [each for each in self.channels if caller.may("read", resource(each.name))]
        self.access.check_known(caller)
        return answer({"channels": [self.describe(each, caller) for each in shown]})

    async def _status(self, request: Request, caller: Principal) -> Response:
        return answer(self.describe(self._channel(request), caller))

    def describe(self, channel: LocalChannel, caller: Principal) -> dict[str, Any]:
        """Describe a channel to a principal: its own subscriptions; to administrators, all."""
        is_all = caller.may("administer", resource(channel.name))
        shown: dict[str, Remembered] = {}
        for each in channel.subscriptions().values():
            owner = owner_of(each)
            if owner == caller.name:
                shown[each.name.removeprefix(f"{owner}/")] = each
            elif is_all:
                shown[each.name] = each
        return {
            "name": channel.name,
            "first": channel.first,
            "last": channel.last,
            "bytes": channel.size,
            "readers": channel.readers,
            "subscriptions": {
                name: {
                    "owner": owner_of(each),
                    "acknowledged": each.acknowledged,
                    "lag": channel.last - each.acknowledged,
                    "filter": None if each.filter is None else json.loads(each.filter),
                    **self.webhooks.describe(channel.name, each.name),
                }
                for name, each in shown.items()
            },
        }

    async def _make(self, request: Request, caller: Principal) -> Response:
        given = await json_of(request, caller.limits.size)
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
        made = self.channels.make(request.path_params["channel"], retention)
        return answer(self.describe(made, caller), 201)

    # Publishing -----------------------------------------------------------------------------------

    async def _publish(self, request: Request, caller: Principal) -> Response:
        channel = self._channel(request)
        updates = await self._updates(request, caller)
        self.access.spend(caller, address_of(request), len(updates))
        for at, update in enumerate(updates):
            try:
                await _check(update)
            except AxlogError as error:
                error.within(f"update {at + 1} of {len(updates)}; none is published")
                raise
        producer = _producer(request, caller, channel)
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
        if channel.retention.when_full == "wait":  # it may block: not on the shared event loop
            return await asyncio.to_thread(channel.publish, update, producer)
        return channel.publish(update, producer)

    async def _updates(self, request: Request, caller: Principal) -> list[StreamUpdate]:
        body = await body_of(request, caller.limits.size)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in (_XML, "text/xml"):
            query = request.query_params
            stream = query.get("stream", request.path_params["channel"])
            return [StreamUpdate(stream, "insert", _xml(body), query.get("at"))]
        if kind not in (_JSON, _LINES):
            raise wrong(f"a body of {kind or 'no type'!r}", f"{_JSON}, {_LINES} or {_XML}")
        lines = [text_of(body)] if kind == _JSON else text_of(body).splitlines()
        return [
            read_line(" ".join(line.splitlines()) if kind == _JSON else line, number)
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]

    # Reading --------------------------------------------------------------------------------------

    async def _reader(self, request: Request, caller: Principal, after: int | None) -> Reader:
        """Return the reader of a request."""
        channel = self._channel(request)
        name = request.query_params.get("subscription")
        wanted = await _wanted(request)
        if name is None:
            return Reader(channel, wanted=wanted, after=after)
        if wanted is not None:
            raise wrong("a subscription has its own filter", "subscription, filter or match")
        return Reader(channel, owned(channel, caller, name).name, after=after)

    async def _read(self, request: Request, caller: Principal) -> Response:
        after = _after(request, None)
        limit = int(number_in(request, "limit", 1000, 1, 10_000))
        wait = number_in(request, "wait", 0, 0, LONGEST_WAIT)
        reader = await self._reader(request, caller, after)
        with reader, self.access.streaming(caller, address_of(request)):
            async with leaving(request) as gone:
                delivery = await self._wait(reader, caller, limit, wait, gone)
        return _delivered(delivery)

    async def _wait(
        self, reader: Reader, caller: Principal, limit: int, wait: float, gone: asyncio.Future[None]
    ) -> Delivery:
        pulse = self.pulses.of(reader.channel)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        clock: int | None = None
        while True:
            ticket = pulse.ticket()
            delivery = await _looked(reader, limit)
            times = [time for time in (clock, delivery.microseconds) if time is not None]
            clock = max(times, default=None)
            left = until - loop.time()
            is_over = gone.done() or not (left > 0 or reader.is_behind)
            if delivery.entries or delivery.is_closed or is_over:
                return Delivery(delivery.entries, delivery.upto, clock, delivery.is_closed)
            if not reader.is_behind:
                await pulse.wait(ticket, left, gone)
            self.access.check(caller, "read", resource(reader.channel.name))

    async def _events(self, request: Request, caller: Principal) -> Response:
        after = _after(request, request.headers.get("last-event-id"))
        reader = await self._reader(request, caller, after)
        with self.access.streaming(caller, address_of(request)):
            pass  # checked before streaming starts, so that it is refused with a status
        return StreamingResponse(
            self._followed(reader, caller, request),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _followed(
        self, reader: Reader, caller: Principal, request: Request
    ) -> AsyncIterator[bytes]:
        """Stream events to a reader, until it disconnects, loses its grant, or has missed entries.

        The sender waits while the connection's buffer is full, so a slow reader delays no other: it
        falls behind in the channel, and gets a gap event when its entries are no longer retained.
        """
        yield b"retry: 1000\n\n"
        try:
            async with leaving(request) as gone:
                with reader, self.access.streaming(caller, address_of(request)):
                    async for part in self._parts(reader, caller, gone):
                        yield part
        except AxlogError as error:
            content = json.dumps({"code": error.code, "detail": error.message})
            yield f"event: gap\ndata: {content}\n\n".encode()

    async def _parts(
        self, reader: Reader, caller: Principal, gone: asyncio.Future[None]
    ) -> AsyncIterator[bytes]:
        pulse = self.pulses.of(reader.channel)
        while not gone.done():
            ticket = pulse.ticket()
            self.access.check(caller, "read", resource(reader.channel.name))
            delivery = await _looked(reader, AT_ONCE)
            if delivery.entries:
                yield pulse.events(delivery.entries)
                continue
            if reader.is_behind:
                continue
            if delivery.clock is not None:
                content = json.dumps({"upto": delivery.upto, "clock": plain(delivery.clock)})
                yield f"id: {delivery.upto}\nevent: clock\ndata: {content}\n\n".encode()
            if delivery.is_closed:
                yield b"event: end\ndata: {}\n\n"
                return
            if not await pulse.wait(ticket, ALIVE, gone):
                yield b": alive\n\n"

    async def _feed(self, request: Request, caller: Principal) -> Response:
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


@asynccontextmanager
async def leaving(request: Request) -> AsyncIterator[asyncio.Future[None]]:
    """Run cleanup after the client has disconnected, without a request waiting for it."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.ensure_future(left())
    try:
        yield gone
    finally:
        gone.cancel()


def channel_of(channels: Channels, name: str) -> LocalChannel:
    """Return a channel by name; the error does not reveal other names."""
    if name not in channels:
        raise ChannelError("AX801", f"there is no channel {name[:100]!r}")
    return channels[name]


async def _looked(reader: Reader, limit: int) -> Delivery:
    """Read for a reader; in chunks outside the event loop if it must match messages."""
    if not reader.has_filter:
        return reader.read(limit)
    return await asyncio.to_thread(reader.read, min(limit, JUDGED))


async def _check(update: StreamUpdate) -> None:
    """Refuse messages that no document could accept: a channel does not forward attacks."""
    if update.action == "delete" and retracted(str(update.content)) is None:
        await asyncio.to_thread(parse_query, str(update.content))
    elif update.action == "insert" and len(update.content) > LARGE:
        await asyncio.to_thread(check_forest, update.content)
    elif update.action == "insert":
        check_forest(update.content)


def _delivered(delivery: Delivery) -> Response:
    """Return a delivery as JSON, concatenated from the texts of the entries."""
    entries = ", ".join(entry.text for entry in delivery.entries)
    clock = None if delivery.clock is None else plain(delivery.clock)
    rest = {"upto": delivery.upto, "clock": clock, "closed": delivery.is_closed}
    return Response(
        f'{{"entries": [{entries}], {json.dumps(rest)[1:]}', media_type="application/json"
    )


def _moment(time: int) -> str:
    """Return a time for feeds; one without a date becomes the last possible date."""
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
        return await filter_of(query["filter"])
    if "match" in query:
        wanted = Filter()
        await asyncio.to_thread(wanted.add, "match", query["match"])
        return wanted
    return None


async def filter_of(text: str) -> Filter:
    """Parse the filter of a request, with a size limit; outside the event loop."""
    if text.count('"keys"') > MOST_PATTERNS:
        raise wrong(f"a filter of more than {MOST_PATTERNS:,} patterns", "several subscriptions")
    return await asyncio.to_thread(Filter.from_json, text)


def _producer(request: Request, caller: Principal, channel: LocalChannel) -> tuple[str, int] | None:
    """Return the producer and its number; each principal has its own producers."""
    name, number = request.headers.get("axlog-producer"), request.headers.get("axlog-number")
    if name is None and number is None:
        return None
    if not name or not number or not number.isdecimal() or len(number) > 18:
        raise wrong("a producer needs a name and a number", "Axlog-Producer and Axlog-Number")
    key = f"{caller.name}/{name[:200]}"
    known = channel.producers(f"{caller.name}/")
    if key not in known:
        used_up(caller, "producers", len(known))
    return key, int(number)


def _xml(body: bytes) -> str:
    """Decode the XML of a body by its declared encoding."""
    encoding = encoding_of(body)
    if encoding == "utf-8":
        return text_of(body)
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as error:
        raise wrong(
            f"the body is not in {encoding}: {error.reason} at byte {error.start}"
        ) from None


def text_of(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise wrong(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
