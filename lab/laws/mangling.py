"""Mangled samples: bytes as an attacker, a bad line or a bad disk would produce them.

A mutation works on bytes (flip, cut, duplicate, splice with another sample, insert a word that has
broken parsers before), or, if the sample is JSON, on its structure: a value is replaced by one of
another type. All mutations are determined by the given generator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

LONGEST = 20_000
"""Bytes that a mangled sample has at most: parsing is linear, and cases are many."""

WORDS: tuple[bytes, ...] = (
    b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\r",
    b"\n", b"<", b">", b"&", b"&x;", b"&#0;", b"&#x110000;", b"]]>", b"<![CDATA[", b"<!--", b"--",
    b"<?", b"?>", b'<!DOCTYPE a [<!ENTITY x "y">]>', b"<a>", b"</a>", b"<a/>", b' xmlns=""',
    b' xmlns:p="u"', b"p:", b'<ax:call xmlns:ax="urn:axlog" stream="s"/>', b"'", b'"', b'""',
    b"\\", b"\\u0000", b"\\ud800", b"/", b"//", b"/..", b"[", b"]", b"(", b")", b"{", b"}", b"(:",
    b":)", b"$x", b"#t", b"@", b"*", b"|", b" or ", b" and ", b"not(", b" where ", b" return ",
    b"match ", b"for $x in ", b"let $y := ", b"insert node ", b"delete node ", b" into ",
    b"position()", b"following-sibling::", b"ancestor::", b"=", b"!=", b"<=", b"- ", b"-1", b"0",
    b"1e999", b"99999999999999999999999999", b"1e-400", b"NaN", b"Infinity", b"null", b"true",
    b"[]", b"{}", b",", b":", b";", b"*x", b"&x ", b"!!python/object:", b"---", b"\xc3\xa9",
    b"\xe2\x80\xa8", b"\xf0\x9f\x92\xa3", b"\xcc\x81", b"a" * 300, b"9" * 5000, b"(" * 120,
    b"[" * 300, b"1.2.7", b"1/2", b"2026-01-01T00:00:00Z", b"9999-12-31", b"date \"0000\"", b"7d",
    b"${HOME}", b"../",
)  # fmt: skip

_STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1 << 62, 1 << 80, 1.5, float("inf"), float("nan"), "", "x", "\0",
    "\ud800", [], {}, [[]], {"": None}, [1, "a", None], "1.2", "-", "a" * 1000,
)  # fmt: skip


def mangled(random: Random, samples: Sequence[bytes]) -> bytes:
    """One of the samples after a few mutations."""
    data = random.choice(samples)
    for _ in range(random.choice((1, 1, 1, 2, 3, 5, 8))):
        data = _mutate(random, data, samples)[:LONGEST]
    return data


def smaller_bytes(data: bytes) -> Iterator[bytes]:
    """The data without a part, the largest parts first."""
    size = len(data) // 2
    while size:
        for start in range(0, len(data), size):
            yield data[:start] + data[start + size :]
        size //= 2


def _mutate(random: Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    if data[:1] in (b"{", b"[") and random.random() < 0.5:
        changed = _restructured(random, data)
        if changed is not None:
            return changed
    at, size = _span(random, data)
    return random.choice(_MUTATIONS)(random, data, at, size, samples)


def _span(random: Random, data: bytes) -> tuple[int, int]:
    at = random.randint(0, len(data))
    return at, min(len(data) - at, random.choice((0, 1, 1, 2, 4, 16, 64)))


_Mutation = Callable[[Random, bytes, int, int, Sequence[bytes]], bytes]
_MUTATIONS: tuple[_Mutation, ...] = (
    lambda r, d, at, n, s: d[:at] + d[at + n :],
    lambda r, d, at, n, s: d[:at],
    lambda r, d, at, n, s: d[:at] + d[at : at + n] * r.choice((2, 2, 3, 50)) + d[at + n :],
    lambda r, d, at, n, s: d[:at] + r.choice(WORDS) + d[at:],
    lambda r, d, at, n, s: d[:at] + r.choice(WORDS) + d[at + n :],
    lambda r, d, at, n, s: d[:at] + r.randbytes(n) + d[at + n :],
    lambda r, d, at, n, s: d[:at] + _flipped(r, d[at : at + 1]) + d[at + 1 :],
    lambda r, d, at, n, s: d[:at] + _piece(r, r.choice(s)) + d[at:],
    lambda r, d, at, n, s: d[:at] + _piece(r, d) + d[at + n :],
)  # fmt: skip


def _flipped(random: Random, data: bytes) -> bytes:
    return bytes(byte ^ (1 << random.randrange(8)) for byte in data)


def _piece(random: Random, data: bytes) -> bytes:
    start = random.randint(0, len(data))
    return data[start : start + random.choice((4, 16, 64, 200))]


def _restructured(random: Random, data: bytes) -> bytes | None:
    """JSON with one of its values or keys replaced."""
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places = list(_places([whole]))
    holder, key = random.choice(places)
    pick = random.random()
    if pick < 0.15 and isinstance(holder, dict):
        del holder[key]
    elif pick < 0.25 and isinstance(holder, dict):
        holder[random.choice(("x", "", "stream", "id", "\0"))] = holder.pop(key)
    elif pick < 0.4:
        other, where = random.choice(places)
        holder[key] = json.loads(json.dumps(other[where]))
    else:
        holder[key] = random.choice(_STRANGE)
    first = places[0][0]
    return json.dumps(first[0], ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a value, as its container and its key; the root first."""
    waiting: list[Any] = [holder]
    while waiting:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one))
        for key in keys:
            yield one, key
            if isinstance(one[key], dict | list):
                waiting.append(one[key])
