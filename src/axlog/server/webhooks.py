"""Delivery of updates to the webhooks of subscribers.

This follows WebSub: before anything is sent, the address must confirm the subscription by echoing a
challenge; every delivery is signed with the subscription's secret (`X-Hub-Signature: sha256=...`);
a lease expires unless renewed. Beyond WebSub, a delivery carries the sequence numbers of its
updates and is acknowledged by its response. A delivery without a success response is retried with
growing pauses, as long as the channel retains it. 410 Gone unsubscribes.

Each address has its own task, so a slow one delays no other. All requests use the guarded client:
private ranges are refused unless allowed. Deliveries pause while the owner of the subscription
lacks the grant, and resume when it is restored.

Addresses and secrets are only in the file of `webhook_secrets.py`: listings, logs and errors
contain the error code, not the address. (Paper 3, section 2.3.)
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from secrets import token_urlsafe
from time import time
from typing import Any
from urllib.parse import urlencode, urlsplit

from axlog.connect.channels.channel import LocalChannel, LocalSubscription
from axlog.connect.channels.protocol import Delivery
from axlog.connect.channels.registry import Channels
from axlog.connect.http import Client
from axlog.document.times import plain
from axlog.errors import CODES, AxlogError, ChannelError, ConnectorError
from axlog.match.filters import Filter
from axlog.retry import Backoff
from axlog.server.ownership import options_of, owner_of
from axlog.server.responses import wrong
from axlog.server.wakeups import Pulses
from axlog.server.webhook_secrets import Hook, HookFile

LEASE = 10 * 24 * 3600
AT_ONCE = 100
PAUSE_OF_GRANTS = 0.5
"""Seconds between checks whether an owner may subscribe."""

_log = logging.getLogger("axlog.server.webhooks")


@dataclass(slots=True)
class _Served:
    hook: Hook
    task: asyncio.Task[None]
    failures: int = 0
    error: str | None = None


def signature(secret: str, body: bytes) -> str:
    """Return the header `X-Hub-Signature` of a body."""
    return "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()


def is_signed(secret: str, body: bytes, given: str) -> bool:
    """Whether the signature of a body is valid."""
    return hmac.compare_digest(signature(secret, body), given)


def _without_address(error: AxlogError) -> str:
    """Describe an error without its address."""
    return f"{error.code}: {CODES[error.code]}"


def path_of(address: str) -> str | None:
    """Return the path of an address; None if it is invalid."""
    try:
        return urlsplit(address).path
    except ValueError:
        return None


class Webhooks:
    """The webhooks of all subscriptions, and the tasks that serve them."""

    def __init__(
        self,
        client: Client,
        pulses: Pulses,
        hub: str = "",
        longest: float = 60,
        may_send: Callable[[str, str], bool] = lambda owner, channel: True,
    ) -> None:
        self.client = client
        self.may_send = may_send
        self.pulses = pulses
        self.hub_address = hub
        self.backoff = Backoff(0.2, longest)
        self._served: dict[tuple[str, str], _Served] = {}
        self._files: dict[str, HookFile] = {}
        self._random = Random()

    # Subscribing ----------------------------------------------------------------------------------

    async def subscribe(
        self,
        channel: LocalChannel,
        key: str,
        owner: str,
        given: dict[str, Any],
        wanted: Filter | None,
        after: int | None = None,
    ) -> None:
        """Subscribe an address, after it has confirmed the subscription."""
        lease = given.get("lease") or LEASE
        callback, secret = given["callback"], given.get("secret") or token_urlsafe(24)
        if not isinstance(callback, str) or not isinstance(secret, str) or len(secret) > 200:
            raise wrong("callback and secret are texts, the secret below 200 bytes")
        if isinstance(lease, bool) or not isinstance(lease, int | float) or not 0 < lease <= 1e8:
            raise wrong("lease is not a number of seconds")
        if path_of(callback) is None:
            raise wrong("callback is not a valid address")
        await self.verify("subscribe", callback, channel.name, lease)
        hook = Hook(callback, secret, time() + lease)
        self.stop(channel, key)
        subscription = channel.subscribe(
            key, wanted=wanted, after=after, options={"owner": owner, "hook": True}
        )
        subscription.install(wanted)
        self._file(channel).keep(key, hook)
        self._start(subscription, hook, owner)

    async def verify(self, mode: str, callback: str, topic: str, lease: float) -> None:
        """Verify the intent: the address must echo the challenge."""
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
        try:
            answer = await self.client.ask("GET", url)
        except AxlogError as error:
            raise ConnectorError(error.code, f"the callback: {_without_address(error)}") from None
        if not answer.is_success or answer.content.decode("utf-8", "replace") != challenge:
            raise ConnectorError(
                "AX824",
                f"the callback does not confirm that it wants to {mode} (status {answer.status})",
                expected="a response of 200 with hub.challenge as its body",
            )

    def _file(self, channel: LocalChannel) -> HookFile:
        known = self._files.get(channel.name)
        if known is None:
            known = self._files[channel.name] = HookFile(channel)
        return known

    def resume(self, channels: Channels) -> None:
        """Resume the webhooks of the files."""
        for channel in channels:
            for known in channel.subscriptions().values():
                self._take_out(channel, known.name, options_of(known))
                hook = self._file(channel).hooks.get(known.name)
                if hook is not None and (channel.name, known.name) not in self._served:
                    owner = owner_of(known) or ""
                    self._start(channel.subscribe(known.name), hook, owner)

    def _take_out(self, channel: LocalChannel, key: str, options: dict[str, Any]) -> None:
        """Move addresses out of journals of version 0.1, which contain them."""
        hook = options.get("hook")
        if isinstance(hook, dict):
            try:
                made = Hook(str(hook["callback"]), str(hook["secret"]), float(hook["expires"]))
            except (KeyError, TypeError, ValueError):
                raise ChannelError("AX806", "a journal has an invalid webhook") from None
            self._file(channel).keep(key, made)
            channel.replace_options(key, {**options, "hook": True})

    def describe(self, channel: str, key: str) -> dict[str, Any]:
        """Describe a subscription's webhook, without its address and secret."""
        served = self._served.get((channel, key))
        if served is None:
            return {}
        return {
            "webhook": True,
            "expires": served.hook.expires,
            "failures": served.failures,
            "error": served.error,
        }

    def stop(self, channel: LocalChannel, key: str) -> None:
        """Stop serving a subscription's address, and remove it."""
        self._end(channel.name, key)
        self._file(channel).drop(key)

    def _end(self, channel: str, key: str) -> None:
        served = self._served.pop((channel, key), None)
        if served is not None:
            served.task.cancel()

    def close(self) -> None:
        for channel, key in list(self._served):
            self._end(channel, key)

    # Delivering -----------------------------------------------------------------------------------

    def _start(self, subscription: LocalSubscription, hook: Hook, owner: str) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(subscription, hook, owner))
        self._served[subscription.channel.name, subscription.name] = _Served(hook, task)

    async def _serve(self, subscription: LocalSubscription, hook: Hook, owner: str) -> None:
        """Send updates until the lease expires or the address is gone."""
        channel = subscription.channel
        pulse = self.pulses.of(channel)
        while time() < hook.expires:
            ticket = pulse.ticket()
            if owner and not self.may_send(owner, channel.name):
                await asyncio.sleep(PAUSE_OF_GRANTS)
                continue
            try:
                delivery = subscription.read(AT_ONCE)
            # a gap: report it, and continue with the retained entries
            except ChannelError as error:
                _log.warning("%s of %s: %s", subscription.name, channel.name, error.message)
                subscription.seek(channel.first - 1)
                continue
            if delivery.entries:
                if not await self._deliver(subscription, hook, owner, delivery):
                    break
            elif delivery.is_closed:
                return
            else:
                await pulse.wait(ticket, min(60.0, hook.expires - time()))
            subscription.acknowledge(delivery.upto)
        self._served.pop((channel.name, subscription.name), None)
        self._file(channel).drop(subscription.name)
        subscription.close(forget=True)

    async def _deliver(
        self, subscription: LocalSubscription, hook: Hook, owner: str, delivery: Delivery
    ) -> bool:
        """Send until it is accepted; return False if the address unsubscribes."""
        body, headers = self._message(subscription, hook, delivery)
        served = self._served[subscription.channel.name, subscription.name]
        attempt = 0
        while time() < hook.expires:
            if owner and not self.may_send(owner, subscription.channel.name):
                await asyncio.sleep(PAUSE_OF_GRANTS)
                continue
            try:
                answer = await self.client.ask("POST", hook.callback, headers=headers, content=body)
                if answer.is_success:
                    served.failures, served.error = 0, None
                    return True
                if answer.status == 410:
                    return False
                served.error = f"status {answer.status}"
            except AxlogError as error:
                served.error = _without_address(error)
            served.failures += 1
            attempt += 1
            pause = self.backoff.pause(attempt)
            # Jitter: many addresses may be one server that was down.
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
