"""Pushing to the addresses of subscribers: the web services that widgets name (P3 2.3).

As WebSub has it: before anything is sent, the address must show that it wants it, by echoing a
challenge; every delivery is signed with the subscription's secret (`X-Hub-Signature: sha256=...`);
a lease ends by itself unless renewed. Beyond WebSub, a delivery carries the numbers of its updates
and is acknowledged by its answer: what was not answered with success is sent again, after ever
longer pauses, for as long as the channel keeps it. 410 Gone unsubscribes.

Each address is served by a task of its own, so a slow one slows no other. All requests go through
the guarded client: private ranges are refused unless allowed.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from dataclasses import asdict, dataclass
from random import Random
from secrets import token_urlsafe
from time import time
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from axlog.channels.channel import LocalChannel, LocalSubscription
from axlog.channels.naming import Channels
from axlog.channels.protocol import Delivery
from axlog.connectors.http import Client
from axlog.document.times import plain
from axlog.errors import AxlogError, ChannelError, ConnectorError
from axlog.matching.filters import Filter
from axlog.server.answers import wrong
from axlog.server.pulses import Pulses

LEASE = 10 * 24 * 3600
AT_ONCE = 100
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before sending again, the last for ever."""

_log = logging.getLogger("axlog.webhooks")


@dataclass(frozen=True, slots=True)
class Hook:
    """Where a subscription's updates are sent."""

    callback: str
    secret: str
    expires: float  # seconds since 1970


@dataclass(slots=True)
class _Served:
    hook: Hook
    task: asyncio.Task[None]
    failures: int = 0
    error: str | None = None


def signature(secret: str, body: bytes) -> str:
    """What the header `X-Hub-Signature` has for a body."""
    return "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()


def is_signed(secret: str, body: bytes, given: str) -> bool:
    """Whether a receiver can trust a body."""
    return hmac.compare_digest(signature(secret, body), given)


def _path_of(address: str) -> str | None:
    """The path of an address; None if it is none."""
    try:
        return urlsplit(address).path
    except ValueError:
        return None


class Webhooks:
    """The addresses of all subscriptions, and the tasks that serve them."""

    def __init__(self, client: Client, pulses: Pulses, hub: str = "", longest: float = 60) -> None:
        self.client = client
        self.pulses = pulses
        self.hub_address = hub
        self.pauses = tuple(min(pause, longest) for pause in PAUSES)
        self._served: dict[tuple[str, str], _Served] = {}
        self._random = Random()

    # Subscribing ----------------------------------------------------------------------------------

    async def subscribe(
        self,
        channel: LocalChannel,
        name: str,
        given: dict[str, Any],
        wanted: Filter | None,
        after: int | None = None,
    ) -> None:
        """Subscribe an address, once it has shown that it wants to be."""
        lease = given.get("lease") or LEASE
        callback, secret = given["callback"], given.get("secret") or token_urlsafe(24)
        if not isinstance(callback, str) or not isinstance(secret, str) or len(secret) > 200:
            raise wrong("callback and secret are texts, the secret below 200 bytes")
        if isinstance(lease, bool) or not isinstance(lease, int | float) or not 0 < lease <= 1e8:
            raise wrong("lease is not a number of seconds")
        if _path_of(callback) is None:
            raise wrong("callback is no address")
        await self._verify("subscribe", callback, channel.name, lease)
        hook = Hook(callback, secret, time() + lease)
        self.stop(channel.name, name)
        subscription = channel.subscribe(
            name, wanted=wanted, after=after, options={"hook": asdict(hook)}
        )
        subscription.install(wanted)
        self._start(subscription, hook)

    async def _verify(self, mode: str, callback: str, topic: str, lease: float) -> None:
        """The verification of intent: the address echoes the challenge."""
        challenge = token_urlsafe(24)
        asked = {
            "hub.mode": mode,
            "hub.topic": topic,
            "hub.challenge": challenge,
            "hub.lease_seconds": str(int(lease)),
        }
        parts = urlsplit(callback)
        query = "&".join(filter(None, [parts.query, urlencode(asked)]))
        url = parts._replace(query=query, fragment="").geturl()
        answer = await self.client.ask("GET", url)
        if not answer.is_success or answer.content.decode("utf-8", "replace") != challenge:
            raise ConnectorError(
                "AX824",
                f"{callback} does not confirm that it wants to {mode} (status {answer.status})",
                expected="an answer of 200 with hub.challenge as its body",
            )

    async def hub(self, form: str, channels: Channels) -> tuple[str, str]:
        """WebSub's request to subscribe or unsubscribe: the channel and the subscription's name."""
        try:
            given = parse_qs(form, max_num_fields=20)
        except ValueError as error:
            raise wrong(f"the form cannot be read: {error}") from None
        fields = {name: values[-1] for name, values in given.items()}
        mode, topic = fields.get("hub.mode", ""), fields.get("hub.topic", "")
        callback = fields.get("hub.callback", "")
        if mode not in ("subscribe", "unsubscribe") or not topic or not callback:
            raise wrong("hub.mode, hub.topic and hub.callback are needed")
        path = _path_of(topic)
        if path is None or _path_of(callback) is None:
            raise wrong("hub.topic or hub.callback is no address")
        channel = channels[path.rstrip("/").rpartition("/")[2] or topic]
        name = "hub." + hmac.new(b"", callback.encode(), "sha256").hexdigest()[:32]
        if mode == "unsubscribe":
            await self._verify(mode, callback, topic, 0)
            self.stop(channel.name, name)
            channel.unsubscribe(name)
            return channel.name, name
        lease = fields.get("hub.lease_seconds", str(LEASE))
        if not lease.isdecimal():
            raise wrong("hub.lease_seconds is not a number")
        asked = {
            "callback": callback,
            "secret": fields.get("hub.secret"),
            "lease": float(lease[:12]),
        }
        await self.subscribe(channel, name, asked, None)
        return channel.name, name

    def resume(self, channels: Channels) -> None:
        """Serve again what the journals remember."""
        for channel in channels:
            for known in channel.subscriptions().values():
                hook = json.loads(known.options).get("hook")
                if hook is not None and (channel.name, known.name) not in self._served:
                    self._start(channel.subscribe(known.name), Hook(**hook))

    def said(self, channel: str, name: str) -> dict[str, Any]:
        """What is known of a subscription's address; not its secret."""
        served = self._served.get((channel, name))
        if served is None:
            return {}
        return {
            "callback": served.hook.callback,
            "expires": served.hook.expires,
            "failures": served.failures,
            "error": served.error,
        }

    def stop(self, channel: str, name: str) -> None:
        """Serve a subscription's address no more."""
        served = self._served.pop((channel, name), None)
        if served is not None:
            served.task.cancel()

    def close(self) -> None:
        for channel, name in list(self._served):
            self.stop(channel, name)

    # Delivering -----------------------------------------------------------------------------------

    def _start(self, subscription: LocalSubscription, hook: Hook) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(subscription, hook))
        self._served[subscription.channel.name, subscription.name] = _Served(hook, task)

    async def _serve(self, subscription: LocalSubscription, hook: Hook) -> None:
        """Send what comes until the lease ends or the address is gone."""
        channel = subscription.channel
        pulse = self.pulses.of(channel)
        while time() < hook.expires:
            ticket = pulse.ticket()
            try:
                delivery = subscription.read(AT_ONCE)
            except ChannelError as error:  # a gap: say so, and go on with what is kept
                _log.warning("%s of %s: %s", subscription.name, channel.name, error.message)
                subscription.seek(channel.first - 1)
                continue
            if delivery.entries:
                if not await self._deliver(subscription, hook, delivery):
                    break
            elif delivery.is_closed:
                return
            else:
                await pulse.wait(ticket, min(60.0, hook.expires - time()))
            subscription.acknowledge(delivery.upto)
        self._served.pop((channel.name, subscription.name), None)
        subscription.close(forget=True)

    async def _deliver(
        self, subscription: LocalSubscription, hook: Hook, delivery: Delivery
    ) -> bool:
        """Send until it is taken; False if the address wants nothing any more."""
        body, headers = self._message(subscription, hook, delivery)
        served = self._served[subscription.channel.name, subscription.name]
        attempt = 0
        while time() < hook.expires:
            try:
                answer = await self.client.ask("POST", hook.callback, headers=headers, content=body)
                if answer.is_success:
                    served.failures, served.error = 0, None
                    return True
                if answer.status == 410:
                    return False
                served.error = f"status {answer.status}"
            except AxlogError as error:
                served.error = error.message
            served.failures += 1
            pause = self.pauses[min(attempt, len(self.pauses) - 1)]
            attempt += 1
            # Not all at the same moment, where many addresses are one server that was down.
            await asyncio.sleep(pause * self._random.uniform(0.7, 1.3))
        return False

    def _message(
        self, subscription: LocalSubscription, hook: Hook, delivery: Delivery
    ) -> tuple[bytes, dict[str, str]]:
        channel = subscription.channel.name
        entries = ", ".join(entry.text for entry in delivery.entries)
        clock = None if delivery.clock is None else plain(delivery.clock)
        rest = json.dumps({"channel": channel, "upto": delivery.upto, "clock": clock})
        body = f'{rest[:-1]}, "entries": [{entries}]}}'.encode()
        topic = f"{self.hub_address.rpartition('/')[0]}/channels/{channel}"
        return body, {
            "Content-Type": "application/json",
            "X-Hub-Signature": signature(hook.secret, body),
            "Idempotency-Key": f"{channel}/{subscription.name}/{delivery.entries[-1].sequence}",
            "Link": f'<{self.hub_address or "/hub"}>; rel="hub", <{topic}>; rel="self"',
        }
