"""Spark's `hash` of a string (Murmur3 in Spark's variant), computed without Spark.

Spark partitions rows by this hash. Bucket keys are chosen such that it distributes them evenly.
Asking Spark itself would cost a job and two Python processes at every start.
"""

from __future__ import annotations

_WORD = 0xFFFFFFFF
_SEED = 42


def hashed(text: str) -> int:
    """Return Spark's `hash(text)`; `hashed(text) % n` is its partition of `n`."""
    data = text.encode()
    whole = len(data) & ~3
    state = _SEED
    for at in range(0, whole, 4):
        state = _mixed(state, int.from_bytes(data[at : at + 4], "little"))
    for byte in data[whole:]:  # Spark processes the remaining bytes one by one, with their signs
        state = _mixed(state, byte - 256 if byte > 127 else byte)
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _WORD
    state = (state ^ state >> 13) * 0xC2B2AE35 & _WORD
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _mixed(state: int, word: int) -> int:
    word = _turned(word * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    return (_turned(state ^ word, 13) * 5 + 0xE6546B64) & _WORD


def _turned(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _WORD
