"""The law of damaged stores: acknowledged updates are there, or the store is refused.

A small store is created with one of the sync policies and then closed, or left as a killed process
leaves it. Bits of its files are flipped, files are truncated, extended and removed, and the store
is opened again:

- after a close the state is the same, or the store is refused;
- after a kill it may also be the state after an earlier record, and then the cut is reported;
- a refused store is not changed, and the error names the file with an offset, or the missing file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from axlog.errors import StoreError
from axlog.live.durable import DurableDocument
from axlog.live.store import start
from axlog.store.log import POLICIES
from axlog.store.log_reader import LogReader
from lab.stress.faulty_disk import FaultyFiles

REFUSED = ("AX871", "AX872", "AX878")
"""Damaged, of another version, or missing."""

_DOCUMENT = '<r><ax:call xmlns:ax="urn:axlog" stream="f" deletes="yes"/></r>'
_VIEW = "match /r/a/$x return $x"


@dataclass(frozen=True, slots=True)
class Stored:
    """The files of a store, and the states they represent."""

    policy: str
    is_closed: bool
    files: Mapping[str, bytes]
    states: Mapping[int, object]  # after each record
    last: int


@dataclass(frozen=True, slots=True)
class Damage:
    """One damage to a file: a flipped bit, a truncation, an extension, a removal."""

    name: str
    kind: str  # flip, cut, add, remove
    at: int = 0
    bit: int = 0

    def done(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """The files after the damage."""
        after = dict(files)
        data = bytearray(after.pop(self.name))
        if self.kind == "remove":
            return after
        if self.kind == "flip":
            data[self.at] ^= 1 << self.bit
        elif self.kind == "cut":
            del data[self.at :]
        else:
            data += bytes([self.bit]) * (self.at + 1)
        return {**after, self.name: bytes(data)}


def make_stored(
    policy: str, is_closed: bool, updates: int = 4, snapshot_after: int | None = None,
    retain: bool = False, seed: int = 0,
) -> Stored:  # fmt: skip
    """A store after a few updates."""
    draw = Random(f"damage:{seed}")
    files = FaultyFiles(Random(0))
    doc = start(files, _DOCUMENT, {}, policy, retain)
    states = {doc.record: _state(doc)}
    doc.watch(_VIEW, "v")
    states[doc.record] = _state(doc)
    for number in range(updates):
        if draw.random() < 0.2:
            doc.delete("f", f'match /a/"{draw.randrange(4)}"', at=number)
        else:
            doc.feed("f", f"<a>{draw.randrange(4)}</a>", at=number)
        states[doc.record] = _state(doc)
        if number + 1 == snapshot_after:
            doc.snapshot()
    kept = None if is_closed else files.killed()
    doc.close()
    kept = kept or files
    return Stored(policy, is_closed, {name: kept.read(name) for name in kept.names()}, states,
                  doc.record)  # fmt: skip


def _state(doc: DurableDocument) -> object:
    views = [
        (view.position, [(row.to_dict(), row.count) for row in view.rows()])
        for view in doc.views.values()
    ]
    return doc.xml(), views, doc.clock


def all_damage(files: Mapping[str, bytes], bits: int) -> Iterator[Damage]:
    """Every byte of every file with some bits flipped, every truncation, every file removed."""
    for name, data in files.items():
        yield Damage(name, "remove")
        for at in range(len(data)):
            yield Damage(name, "cut", at)
            for number in range(bits):
                yield Damage(name, "flip", at, (at + number * 3) % 8)
        for byte in (0, 255):
            yield Damage(name, "add", 40, byte)


def check_damage(stored: Stored, damage: Damage, opens: bool = True) -> str:
    """Open the damaged store and return the outcome: same, refused or prefix.

    Raises an error if the outcome violates the law. `opens`: apply the records even where the bytes
    of the log alone already show that the store is refused.
    """
    damaged = damage.done(stored.files)
    files = FaultyFiles.holding(damaged)
    try:
        if not opens:
            for _ in LogReader(files).frames():
                pass
        doc = start(files, None, {}, stored.policy, False)
    except StoreError as error:
        _check_refusal(error, damage, damaged, files)
        return "refused"
    try:
        return _check_opened(doc, stored, damage)
    finally:
        doc.close()


def _check_refusal(
    error: StoreError, damage: Damage, damaged: Mapping[str, bytes], files: FaultyFiles
) -> None:
    assert error.code in REFUSED, f"{damage}: {error}"
    assert {name: files.read(name) for name in files.names()} == damaged, f"{damage}: changed"
    text = str(error)
    if error.code == "AX871":
        assert re.search(r"byte \d+|behind the end of the log", text), (
            f"{damage}: no offset: {text}"
        )


def _check_opened(doc: DurableDocument, stored: Stored, damage: Damage) -> str:
    what = f"{damage} of {stored.policy}, closed: {stored.is_closed}"
    assert doc.record in stored.states, f"{what}: record {doc.record} was never written"
    assert _state(doc) == stored.states[doc.record], f"{what}: another state"
    if doc.record == stored.last:
        return "same"
    assert not stored.is_closed, f"{what}: {doc.record} of {stored.last} records"
    is_cut = damage.kind == "cut"
    assert doc.torn is not None or is_cut, f"{what}: shorter, and nothing is reported"
    return "prefix"


# Random cases -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DamageCase:
    """A store, given by its seed and settings, and the damage to it."""

    policy: str
    is_closed: bool
    updates: int
    snapshot_after: int | None
    retain: bool
    seed: int
    hits: tuple[float, ...]  # positions, as a share of all possible damage


def make_damage_case(random: Random) -> DamageCase:
    """A random store and a few damages; each is tried separately."""
    updates = random.randrange(1, 12)
    after = random.choice((None, random.randrange(1, updates + 1)))
    return DamageCase(
        random.choice(POLICIES), random.random() < 0.7, updates, after, random.random() < 0.3,
        random.getrandbits(30), tuple(random.random() for _ in range(8)),
    )  # fmt: skip


def check_damage_case(case: DamageCase) -> None:
    """Try each damage on the store separately."""
    stored = make_stored(case.policy, case.is_closed, case.updates, case.snapshot_after,
                         case.retain, case.seed)  # fmt: skip
    possible = list(all_damage(stored.files, 3))
    for hit in case.hits:
        check_damage(stored, possible[int(hit * len(possible))])
