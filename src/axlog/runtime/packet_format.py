"""The form of packets and stored values as bytes: definition, and a reader and writer in Python.

A value is one byte for its type, and then:

| type | content |
|---|---|
| `N`, `T`, `F` | none: None, True, False |
| `i` | an integer, four bytes |
| `l` | a larger integer: the number of digits, four bytes, negative for a negative integer; then each digit, fifteen bits in two bytes, the least one first |
| `g` | a number with a fraction, eight bytes (IEEE 754) |
| `s` | bytes: their number, four bytes, and the bytes |
| `u`, `t` | a text: the number of bytes, four bytes, and the bytes in UTF-8 |
| `a`, `A` | the same, in ASCII |
| `z`, `Z` | the same, with one byte for the number |
| `(`, `[` | a tuple, a list: the number of values, four bytes, and the values |
| `)` | a tuple: the number of values, one byte, and the values |
| `{` | a dictionary: keys and values, and `0` after the last one |
| `r` | a value that was read before: its number, four bytes |

All numbers are little-endian. A type with its highest bit set gives the value the next number, from
zero on; a tuple, list or dictionary gets it before its own values.

This is version 4 of Python's `marshal`, which `packets.py` uses because it is fast. Python does not
promise to keep it, and this module does: what was stored stays readable.

Law: `read` and `write` agree with `marshal` on all plain data.
"""  # noqa: E501

from __future__ import annotations

import struct
from typing import Any

from axlog.errors import StoreError

_NUMBERED = 0x80
_INT = struct.Struct("<i")
_FLOAT = struct.Struct("<d")
_DIGIT = 15
_CONSTANTS = {ord("N"): None, ord("T"): True, ord("F"): False}
_TEXTS = {ord("u"): "utf-8", ord("t"): "utf-8", ord("a"): "ascii", ord("A"): "ascii"}
_SHORT = frozenset(b"zZ")
_END = object()


def read(written: bytes) -> Any:
    """Return the value that bytes contain."""
    reader = _Reader(written)
    try:
        return reader.value()
    except (IndexError, struct.error, UnicodeDecodeError):
        raise _unreadable("they end within a value, or are damaged") from None


def write(plain: Any) -> bytes:
    """Return a value as bytes."""
    into = bytearray()
    _write(plain, into)
    return bytes(into)


class _Reader:
    def __init__(self, written: bytes) -> None:
        self._written, self._at = written, 0
        self._numbered: list[Any] = []

    def _byte(self) -> int:
        self._at += 1
        return self._written[self._at - 1]

    def _int(self) -> int:
        (found,) = _INT.unpack_from(self._written, self._at)
        self._at += 4
        return int(found)

    def _bytes(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._written):
            raise IndexError
        return self._written[start : self._at]

    def value(self) -> Any:
        """Read the next value."""
        code = self._byte()
        number = -1
        if code & _NUMBERED:
            code &= ~_NUMBERED
            number = len(self._numbered)
            self._numbered.append(None)
        found = self._of(code, number)
        if number >= 0:
            self._numbered[number] = found
        return found

    def _of(self, code: int, number: int) -> Any:
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _TEXTS:
            return self._bytes(self._int()).decode(_TEXTS[code], "surrogatepass")
        if code in _SHORT:
            return self._bytes(self._byte()).decode("ascii")
        match chr(code):
            case "i":
                return self._int()
            case "l":
                return self._large()
            case "g":
                return _FLOAT.unpack(self._bytes(8))[0]
            case "s":
                return self._bytes(self._int())
            case "(":
                return tuple([self.value() for _ in range(self._int())])
            case ")":
                return tuple([self.value() for _ in range(self._byte())])
            case "[":
                return [self.value() for _ in range(self._int())]
            case "{":
                return self._dictionary()
            case "0":
                return _END
            case "r":
                return self._numbered[self._int()]
        raise _unreadable(f"{chr(code)!r} is no type of a value")

    def _large(self) -> int:
        count = self._int()
        digits = [int.from_bytes(self._bytes(2), "little") for _ in range(abs(count))]
        found = sum(digit << _DIGIT * at for at, digit in enumerate(digits))
        return -found if count < 0 else found

    def _dictionary(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        while (key := self.value()) is not _END:
            found[key] = self.value()
        return found


def _write(plain: Any, into: bytearray) -> None:
    if plain is None or plain is True or plain is False:
        into += b"N" if plain is None else b"T" if plain else b"F"
    elif type(plain) is int:
        _write_int(plain, into)
    elif type(plain) is float:
        into += b"g" + _FLOAT.pack(plain)
    elif type(plain) is bytes:
        into += b"s" + _INT.pack(len(plain)) + plain
    elif type(plain) is str:
        encoded = plain.encode("utf-8", "surrogatepass")
        into += b"u" + _INT.pack(len(encoded)) + encoded
    elif type(plain) in (tuple, list):
        into += (b"(" if type(plain) is tuple else b"[") + _INT.pack(len(plain))
        for each in plain:
            _write(each, into)
    elif type(plain) is dict:
        into += b"{"
        for key, value in plain.items():
            _write(key, into)
            _write(value, into)
        into += b"0"
    else:
        raise ValueError(f"{type(plain).__name__} is no plain data")


def _write_int(number: int, into: bytearray) -> None:
    if -(1 << 31) <= number < 1 << 31:
        into += b"i" + _INT.pack(number)
        return
    digits: list[int] = []
    left = abs(number)
    while left:
        digits.append(left & ((1 << _DIGIT) - 1))
        left >>= _DIGIT
    into += b"l" + _INT.pack(-len(digits) if number < 0 else len(digits))
    for digit in digits:
        into += digit.to_bytes(2, "little")


def _unreadable(why: str) -> StoreError:
    return StoreError(
        "AX872",
        f"stored bytes cannot be read: {why}",
        advice="start with a new checkpoint, or with the version that wrote this one",
    )
