"""Time that passes by itself, as buckets see it: ticks, and who is due when (DESIGN 3, Time).

A tick is a packet with nothing in it but how much time has passed; it goes the way of all packets,
through the log too, so that an engine that is made again hears the same ticks.

`Due` knows of each instance of a bucket the time after which it has something to do (a deadline
that passes, a message that need wait no longer). It is kept in the state store by slots of a
second, since a bucket may have a million documents and few are due at a time. An entry whose
instance has something earlier or nothing to do by then stays until its slot comes: a tick for
nobody costs little and says nothing.
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
    """A packet that says only that time has passed."""
    return pack(([], {}, passed))


class Due:
    """The instances of a bucket by the time after which they have something to do."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, name: str, at: int) -> None:
        """Note that an instance is due as soon as more time than this has passed."""
        slot = at // SLOT
        slots = self._slots()
        if slot not in slots:
            self._store.put("due", pack(sorted([*slots, slot])))
        named = self._named(slot)
        named[name] = at
        self._store.put(f"due {slot}", pack(named))

    def take(self, passed: int) -> list[str]:
        """The instances that are due, once so much time has passed; they are forgotten here."""
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
        """The time after which somebody is due."""
        slots = self._slots()
        return min(self._named(slots[0]).values()) if slots else None

    def _slots(self) -> list[int]:
        written = self._store.get("due")
        return [] if written is None else list(unpack(written))

    def _named(self, slot: int) -> dict[str, int]:
        written = self._store.get(f"due {slot}")
        return {} if written is None else dict(unpack(written))
