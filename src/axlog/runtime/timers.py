"""Wall-clock time in buckets: ticks, and the due times of instances (docs/meaning.md, Time).

A tick is an empty packet with the time that has passed. It is logged like all packets, so that a
rebuilt engine gets the same ticks.

`Due` stores for each instance of a bucket the time after which it has work (a deadline, or a
message that need not wait longer). It is kept in the state store by slots of a second, because a
bucket may have a million documents, of which few are due at a time. An outdated entry stays until
its slot is due: a superfluous tick costs little and emits nothing.
"""

from __future__ import annotations

from typing import Protocol

from axlog.runtime.packets import pack, unpack

SLOT = 1_000_000
"""Microseconds of one slot."""


class Store(Protocol):
    """A map from texts to bytes."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...
    def remove(self, key: str) -> None: ...


def tick(passed: int) -> bytes:
    """Return a packet that only advances the time."""
    return pack((b"", b"", passed, b""))


class Due:
    """The instances of a bucket by the time after which they have work."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, name: str, at: int) -> None:
        """Record that an instance is due once this time has passed."""
        slot = at // SLOT
        slots = self._slots()
        if slot not in slots:
            self._store.put("due", pack(sorted([*slots, slot])))
        named = self._named(slot)
        named[name] = at
        self._store.put(f"due {slot}", pack(named))

    def take(self, passed: int) -> list[str]:
        """Remove and return the instances that are due once this time has passed."""
        slots = self._slots()
        due: list[str] = []
        left: list[int] = []
        for slot in slots:
            named = self._named(slot) if slot * SLOT < passed else {}
            mine = [name for name, at in named.items() if at < passed]
            due += mine
            if named and len(mine) == len(named):
                self._store.remove(f"due {slot}")
                continue
            left.append(slot)
            if mine:
                rest = {name: at for name, at in named.items() if at >= passed}
                self._store.put(f"due {slot}", pack(rest))
        if left != slots:
            self._store.put("due", pack(left))
        return list(dict.fromkeys(due))

    def first(self) -> int | None:
        """Return the time after which an instance is due."""
        slots = self._slots()
        return min(self._named(slots[0]).values()) if slots else None

    def _slots(self) -> list[int]:
        written = self._store.get("due")
        return [] if written is None else list(unpack(written))

    def _named(self, slot: int) -> dict[str, int]:
        written = self._store.get(f"due {slot}")
        return {} if written is None else dict(unpack(written))
