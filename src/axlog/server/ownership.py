"""The owners of subscriptions.

The channel knows a principal's subscription as `PRINCIPAL/NAME`, and its options name the owner:
two principals can use the same name independently. A subscription without an owner belongs to the
pipeline: no request can reach it, whatever name it uses.
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
    """Return the internal name of a principal's subscription."""
    if not _NAME.fullmatch(name):
        raise wrong("invalid name of a subscription", "1 to 200 characters, no '/'")
    return f"{owner.name}/{name}"


def options_of(known: Remembered) -> dict[str, Any]:
    """The options that the server stores with a subscription."""
    try:
        options = json.loads(known.options)
    except (RecursionError, ValueError):
        options = None
    return options if isinstance(options, dict) else {}


def owner_of(known: Remembered) -> str | None:
    """Return the owner of a subscription; None for the pipeline's own."""
    owner = options_of(known).get("owner")
    return owner if isinstance(owner, str) and known.name.startswith(f"{owner}/") else None


def owned(channel: LocalChannel, owner: Principal, name: str) -> Remembered:
    """Return a principal's subscription; those of others do not exist for it."""
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
    """Return the names of a principal's subscriptions."""
    found = channel.subscriptions().values()
    start = len(owner.name) + 1
    return [each.name[start:] for each in found if owner_of(each) == owner.name]


def check_free(channel: LocalChannel, key: str, owner: Principal) -> bool:
    """Refuse a key of another owner; return whether the principal already has it."""
    known = channel.subscriptions().get(key)
    if known is not None and owner_of(known) != owner.name:
        raise AccessError("AX817", "this name is in use", advice="use another name")
    return known is not None


def count_of(channels: Channels, owner: Principal) -> int:
    """Return how many subscriptions a principal has."""
    return sum(len(names_of(channel, owner)) for channel in channels)
