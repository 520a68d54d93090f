"""Which addresses are public: IANA's registries block by block, embeddings, random addresses.

Addresses are judged here, never connected to.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from random import Random

import pytest

from axlog.connect.addresses import NOT_PUBLIC, is_in, is_public, range_of
from axlog.connect.http import LOOPBACK, Allowance, Guard

# The registries as IANA publishes them, and the ranges beside them that are no one's either.
REGISTRY_4 = """
0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24
192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24
198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 255.255.255.255/32 224.0.0.0/4
""".split()
REGISTRY_6 = """
::1/128 ::/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128
2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28
2001:30::/28 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10
fec0::/10 ff00::/8 ::/96 ::ffff:0:0:0/96 200::/7 400::/6 800::/5 1000::/4 4000::/3 6000::/3 8000::/3
a000::/3 c000::/3 e000::/4 f000::/5 f800::/6 fe00::/9
""".split()


@pytest.mark.parametrize("block", [*REGISTRY_4, *REGISTRY_6])
def test_no_address_of_a_special_block_is_public(block: str) -> None:
    network = ip_network(block)
    random = Random(block)
    first, last = int(network.network_address), int(network.broadcast_address)
    for number in (first, last, *(random.randint(first, last) for _ in range(20))):
        address = type(network.network_address)(number)
        assert not is_public(address), address


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2a00:1450::1",
        "::ffff:93.184.215.14",
        "64:ff9b::5db8:d70e",
    ],
)
def test_addresses_beside_the_blocks_are_public(address: str) -> None:
    assert is_public(address)
    assert range_of(address) is None


def standing_for(inner: IPv4Address) -> list[IPv6Address]:
    """The IPv6 addresses that stand for an IPv4 address, written from the RFCs."""
    number = int(inner)
    teredo = (0x20010000 << 96) | (number << 64) | (number ^ 0xFFFFFFFF)  # server and client
    return [
        IPv6Address((0xFFFF << 32) | number),  # mapped, RFC 4291
        IPv6Address(number),  # compatible, RFC 4291
        IPv6Address((0xFFFF << 48) | number),  # translated, RFC 2765
        IPv6Address((0x64FF9B << 96) | number),  # NAT64, RFC 6052
        IPv6Address((0x64FF9B0001 << 80) | number),  # local NAT64, RFC 8215
        IPv6Address((0x2002 << 112) | (number << 80) | 1),  # 6to4, RFC 3056
        IPv6Address(teredo),  # RFC 4380
    ]


def test_what_stands_for_an_address_is_no_more_public_than_it() -> None:
    random = Random(4)
    inside = [ip_network(block).network_address for block in REGISTRY_4]
    for inner in [*inside, *(IPv4Address(random.getrandbits(32)) for _ in range(3000))]:
        assert isinstance(inner, IPv4Address)
        for outer in standing_for(inner):
            assert not is_public(outer) or is_public(inner), (outer, inner)


def test_random_addresses_are_judged_by_the_registries() -> None:
    """IPv4 exactly as the blocks say; what is public, this Python calls global too."""
    random = Random(6)
    blocks = [ip_network(block) for block in REGISTRY_4]
    for _ in range(5000):
        four = IPv4Address(random.getrandbits(32))
        assert is_public(four) is not any(four in block for block in blocks)
        six = IPv6Address(random.getrandbits(128))
        for address in (four, six, IPv6Address(random.getrandbits(125) | 1 << 125)):
            assert not is_public(address) or (address.is_global and not address.is_multicast)


def test_every_block_of_the_table_is_a_network_with_a_use() -> None:
    for block, use in NOT_PUBLIC.items():
        assert str(ip_network(block)) == block
        assert use


def test_a_scope_does_not_hide_a_range() -> None:
    assert range_of("fe80::1%eth0") == "fe80::/10 (link-local)"
    assert not is_public("::1%lo")


def test_an_allowed_network_is_not_reached_through_a_gateway() -> None:
    """Who allows 10.1.0.0/16 allows its mapped form, which is the same; not NAT64."""
    guard = Guard(Allowance(hosts=("10.1.0.0/16",)))
    assert is_in("::ffff:10.1.2.3", ip_network("10.1.0.0/16"))
    assert guard.may_use("x", ip_address("10.1.2.3"))
    assert guard.may_use("x", ip_address("::ffff:10.1.2.3"))
    assert not guard.may_use("x", ip_address("64:ff9b::10.1.2.3"))
    assert not guard.may_use("x", ip_address("2002:a01:203::1"))
    here = Guard(Allowance(hosts=LOOPBACK))
    assert here.may_use("x", ip_address("::ffff:127.0.0.1"))
    assert not here.may_use("x", ip_address("64:ff9b::127.0.0.1"))


def test_tests_cannot_leave_this_machine() -> None:
    """The guard of all tests (`conftest.py`), which judges before anything is sent."""
    with socket.socket() as one, pytest.raises(AssertionError, match="a test connects"):
        one.connect(("192.0.2.1", 80))
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("example.org", 80)
