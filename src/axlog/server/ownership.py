"""Who a subscription belongs to.

A subscription that a principal makes is known to its channel as `PRINCIPAL/NAME` and says so in its
options: two principals can use one name, and neither meets the other's. One without an owner is the
pipeline's own: no request reaches it, whatever name it asks for.
"""

from __future__ import annotations

import json
import re
from typing import Any

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.journal import Remembered
from axlog.connect.channels.registry import Channels
from axlog.errors import AccessError, ChannelError
from axlog.server.responses import wrong
from axlog.server.roles import Principal

_NAME = re.compile(r"[^\x00-\x1f\x7f/]{1,200}")


def key_of(owner: Principal, name: str) -> str:
    """What a principal's subscription is called inside."""
    if not _NAME.fullmatch(name):
        raise wrong("this cannot be the name of a subscription", "1 to 200 characters, no '/'")
    return f"{owner.name}/{name}"


def options_of(known: Remembered) -> dict[str, Any]:
    """What the server remembers with a subscription."""
    try:
        options = json.loads(known.options)
    except (RecursionError, ValueError):
        options = None
    return options if isinstance(options, dict) else {}


def owner_of(known: Remembered) -> str | None:
    """Whose a subscription is; None for the pipeline's own."""
    owner = options_of(known).get("owner")
    return owner if isinstance(owner, str) and known.name.startswith(f"{owner}/") else None


def owned(channel: LocalChannel, owner: Principal, name: str) -> Remembered:
    """A principal's subscription; those of others are not there for it."""
    known = channel.subscriptions().get(key_of(owner, name))
    if known is None or owner_of(known) != owner.name:
        mine = sorted(names_of(channel, owner))
        raise ChannelError(
            "AX805",
            f"{owner.name!r} has no subscription {name[:100]!r} to the channel {channel.name!r}",
            expected=", ".join(mine[:20]) or "none",
        )
    return known


def names_of(channel: LocalChannel, owner: Principal) -> list[str]:
    """The names of a principal's subscriptions."""
    found = channel.subscriptions().values()
    start = len(owner.name) + 1
    return [each.name[start:] for each in found if owner_of(each) == owner.name]


def check_free(channel: LocalChannel, key: str, owner: Principal) -> bool:
    """Refuse a key that is somebody else's; whether the principal has it already."""
    known = channel.subscriptions().get(key)
    if known is not None and owner_of(known) != owner.name:
        raise AccessError("AX817", "this name is taken", advice="use another name")
    return known is not None


def count_of(channels: Channels, owner: Principal) -> int:
    """How many subscriptions a principal has."""
    return sum(len(names_of(channel, owner)) for channel in channels)
