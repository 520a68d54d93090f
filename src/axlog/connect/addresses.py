"""Which network addresses are public: one table, the same on every version of Python.

The table has every block of IANA's two registries of special-purpose addresses (RFC 6890 and its
successors), and other reserved blocks: multicast, the site-local addresses of RFC 3879, and blocks
that IANA lists as deprecated. A block is refused even if its registry calls it reachable (AS112,
AMT), because it has no public service. Only 2000::/3 of IPv6 is in use for public addresses, so
everything outside of it is refused, listed or not.

An IPv6 address that represents an IPv4 address (mapped, NAT64) is public if that address is. 6to4,
Teredo and IPv4-compatible addresses are deprecated forms of the same and are refused.

>>> is_public("93.184.215.14"), is_public("::ffff:127.0.0.1"), is_public("fec0::1")
(True, False, False)
>>> range_of("64:ff9b:1::10.0.0.1")
'64:ff9b:1::/48 (local NAT64)'
"""

from __future__ import annotations

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NOT_PUBLIC: dict[str, str] = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared by a carrier's customers",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private use",
    "192.0.0.0/24": "IETF protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112",
    "192.52.193.0/24": "AMT relays",
    "192.88.99.0/24": "6to4 relays, deprecated",
    "192.168.0.0/16": "private use",
    "192.175.48.0/24": "AS112",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved, and broadcast",
    "::/128": "unspecified",
    "::1/128": "loopback",
    "::/96": "IPv4-compatible, deprecated",
    "::ffff:0:0:0/96": "IPv4-translated",
    "64:ff9b:1::/48": "local NAT64",
    "100::/64": "discard only",
    "100:0:0:1::/64": "dummy prefix",
    "2001::/23": "IETF protocol assignments, with Teredo, ORCHID and benchmarking",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4, deprecated",
    "2620:4f:8000::/48": "AS112",
    "3ffe::/16": "6bone, returned",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "unique local",
    "fe80::/10": "link-local",
    "fec0::/10": "site-local, deprecated",
    "ff00::/8": "multicast",
}
"""Blocks without public services, and their purposes."""

_BLOCKS = tuple((ip_network(block), f"{block} ({use})") for block, use in NOT_PUBLIC.items())
_IN_USE = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")


def parsed(address: str | Address) -> Address:
    """Return an address without its scope (`%eth0`), which does not affect its range."""
    return ip_address(str(address).partition("%")[0])


def is_public(address: str | Address) -> bool:
    """Whether an address is public."""
    return range_of(address) is None


def range_of(address: str | Address) -> str | None:
    """Describe the range that makes an address non-public; None if it is public."""
    found = parsed(address)
    inner = _standing_for(found)
    if inner is not None:
        return range_of(inner)
    for block, says in _BLOCKS:
        if found in block:
            return says
    if isinstance(found, IPv6Address) and found not in _IN_USE:
        return "not in use for public addresses"
    return None


def is_in(address: str | Address, network: Network) -> bool:
    """Whether an address is in a network. A mapped address counts as its IPv4 address.

    A NAT64 address does not: packets to it go to a gateway first.
    """
    found = parsed(address)
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found in network or (mapped is not None and mapped in network)


def _standing_for(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address represents, if any."""
    if isinstance(address, IPv4Address):
        return None
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
