"""Subscriptions as web services: by name, by webhook, by WebSub. Each has an owner.

    PUT    /channels/NAME/subscriptions/PEER       subscribe, with a filter and an address
    POST   /channels/NAME/subscriptions/PEER/acknowledge
    DELETE /channels/NAME/subscriptions/PEER       unsubscribe
    POST   /hub                                    the same for an address, by WebSub

A filter is the output of `Filter.to_json`; it runs where messages are published. An administrator
of a channel may also delete the subscriptions of others (`PEER` is then `PRINCIPAL%2FNAME`, as in
the listing), but not those of the pipeline.
"""

from __future__ import annotations

import hmac
import json
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.journal import Remembered
from axlog.connect.channels.registry import Channels
from axlog.errors import ChannelError
from axlog.server.access import Access, used_up
from axlog.server.channel_routes import Serving, channel_of, filter_of, text_of
from axlog.server.operations import Operation
from axlog.server.ownership import check_free, count_of, key_of, options_of, owned, owner_of
from axlog.server.responses import answer, body_of, json_of, wrong
from axlog.server.roles import Principal
from axlog.server.roles import channel as resource
from axlog.server.webhooks import LEASE, Webhooks, path_of

LARGEST_FORM = 100_000
_JSON = ("application/json",)


class Subscribing:
    """Return the operations of subscriptions."""

    def __init__(
        self, channels: Channels, access: Access, webhooks: Webhooks, serving: Serving
    ) -> None:
        self.channels = channels
        self.access = access
        self.webhooks = webhooks
        self.serving = serving

    def operations(self) -> list[Operation]:
        """Return the table of operations."""
        peer = "/channels/{channel}/subscriptions/{subscription}"
        return [
            Operation("PUT", peer, "Subscribe by name", self._subscribe, "subscribe", body=_JSON),
            Operation(
                "DELETE",
                "/channels/{channel}/subscriptions/{subscription:path}",
                "Unsubscribe",
                self._unsubscribe,
                "subscribe",
                success="204",
            ),
            Operation(
                "POST",
                f"{peer}/acknowledge",
                "Acknowledge up to a number",
                self._acknowledge,
                "subscribe",
                body=_JSON,
            ),
            Operation(
                "POST",
                "/hub",
                "Subscribe or unsubscribe an address (WebSub)",
                self._hub,
                "own",
                body=("application/x-www-form-urlencoded",),
                success="202",
            ),
        ]

    def _channel(self, request: Request) -> LocalChannel:
        return channel_of(self.channels, request.path_params["channel"])

    async def _subscribe(self, request: Request, caller: Principal) -> Response:
        channel, name = self._channel(request), request.path_params["subscription"]
        given = await json_of(request, caller.limits.size)
        unknown = set(given) - {"filter", "after", "callback", "secret", "lease"}
        if unknown:
            raise wrong(f"unknown key {min(unknown)!r}", "filter, after, callback, secret, lease")
        after, wanted = given.get("after"), given.get("filter")
        if isinstance(after, bool) or not isinstance(after, int | None):
            raise wrong("after is not a number")
        filter_ = None if wanted is None else await filter_of(json.dumps(wanted))
        key = self._claimed(channel, name, caller)
        if given.get("callback") is not None:
            await self.webhooks.subscribe(channel, key, caller.name, given, filter_, after)
        else:
            self.webhooks.stop(channel, key)
            subscription = channel.subscribe(
                key, wanted=filter_, after=after, options={"owner": caller.name}
            )
            subscription.install(filter_)
            subscription.close()
        return answer(self.serving.describe(channel, caller)["subscriptions"][name])

    def _claimed(self, channel: LocalChannel, name: str, caller: Principal) -> str:
        """Return the key of a subscription that the principal has or may create."""
        key = key_of(caller, name)
        if not check_free(channel, key, caller):
            used_up(caller, "subscriptions", count_of(self.channels, caller))
        return key

    async def _unsubscribe(self, request: Request, caller: Principal) -> Response:
        channel = self._channel(request)
        known = self._removable(channel, request.path_params["subscription"], caller)
        self.webhooks.stop(channel, known.name)
        channel.unsubscribe(known.name)
        return Response(status_code=204)

    def _removable(self, channel: LocalChannel, name: str, caller: Principal) -> Remembered:
        if "/" not in name:
            return owned(channel, caller, name)
        self.access.check(caller, "administer", resource(channel.name))
        known = channel.subscriptions().get(name)
        is_old_webhook = known is not None and "hook" in options_of(known)
        if known is None or not (owner_of(known) or is_old_webhook):
            raise ChannelError("AX805", f"there is no client subscription {name[:100]!r}")
        return known

    async def _acknowledge(self, request: Request, caller: Principal) -> Response:
        channel = self._channel(request)
        known = owned(channel, caller, request.path_params["subscription"])
        sequence = (await json_of(request, caller.limits.size)).get("sequence")
        if isinstance(sequence, bool) or not isinstance(sequence, int):
            raise wrong("sequence is not a number", '{"sequence": 17}')
        channel.acknowledge(known.name, sequence)
        return answer({"acknowledged": sequence})

    async def _hub(self, request: Request, caller: Principal) -> Response:
        """Handle a WebSub request to subscribe or unsubscribe."""
        body = await body_of(request, min(caller.limits.size, LARGEST_FORM))
        try:
            given = parse_qs(text_of(body), max_num_fields=20)
        except ValueError as error:
            raise wrong(f"invalid form: {error}") from None
        fields = {name: values[-1] for name, values in given.items()}
        mode, topic = fields.get("hub.mode", ""), fields.get("hub.topic", "")
        callback = fields.get("hub.callback", "")
        if mode not in ("subscribe", "unsubscribe") or not topic or not callback:
            raise wrong("hub.mode, hub.topic and hub.callback are needed")
        path = path_of(topic)
        if path is None or path_of(callback) is None:
            raise wrong("hub.topic or hub.callback is not a valid address")
        about = path.rstrip("/").rpartition("/")[2] or topic
        self.access.check(caller, "subscribe", resource(about))
        channel = channel_of(self.channels, about)
        name = "hub." + hmac.digest(caller.name.encode(), callback.encode(), "sha256").hex()[:32]
        if mode == "unsubscribe":
            known = owned(channel, caller, name)
            await self.webhooks.verify(mode, callback, topic, 0)
            self.webhooks.stop(channel, known.name)
            channel.unsubscribe(known.name)
            return Response(status_code=202)
        lease = fields.get("hub.lease_seconds", str(LEASE))
        if not lease.isdecimal():
            raise wrong("hub.lease_seconds is not a number")
        asked = {
            "callback": callback,
            "secret": fields.get("hub.secret"),
            "lease": float(lease[:12]),
        }
        key = self._claimed(channel, name, caller)
        await self.webhooks.subscribe(channel, key, caller.name, asked, None)
        return Response(status_code=202)
