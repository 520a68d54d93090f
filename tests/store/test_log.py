"""The log and the snapshots: what was synced survives, torn ends go, damage is refused."""

import random
from pathlib import Path

import pytest

from axlog.errors import StoreError
from axlog.store.files import DiskFiles
from axlog.store.log import Log
from axlog.store.log_reader import HEAD_SIZE, Torn, read_log, segment_name, segments
from axlog.store.snapshots import read_snapshot, remove_snapshots, snapshots, write_snapshot
from lab.stress.faulty_disk import Crashed, FaultyFiles

GOLDEN = Path(__file__).parents[1] / "golden"


def records(files, after: int = 0) -> list[bytes]:
    return [record for _, batch in read_log(files, after) for record in batch]


def written(files, count: int, policy: str = "always") -> list[bytes]:
    log = Log(files, policy)
    expected = [f"record {n}".encode() * (n % 4) for n in range(count)]
    for record in expected:
        log.append([record])
    log.close()
    return expected


def kill(log) -> None:
    """Leave a log as a killed process does."""
    log._file.close()


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    log = Log(files)
    assert log.append([b"one", b"", b"three"]) == 1
    assert log.append([b"four"]) == 4
    assert log.synced == 4
    assert list(read_log(files)) == [(1, (b"one", b"", b"three")), (4, (b"four",))]
    assert records(files, after=3) == [b"four"]
    log.close()
    again = Log(files)
    assert again.append([b"five"]) == 5
    again.close()
    assert records(files) == [b"one", b"", b"three", b"four", b"five"]


def test_segments_follow_each_other_and_old_ones_go(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    log = Log(files, "batch")
    log.append([b"a", b"b"])
    assert log.rotate() == 3
    assert log.rotate() == 3  # an empty segment is not followed by another
    log.append([b"c"])
    log.rotate()
    log.append([b"d"])
    assert segments(files) == [1, 3, 4]
    assert records(files, after=2) == [b"c", b"d"]
    log.drop_before(4)
    assert segments(files) == [4]
    log.close()
    assert records(files, after=3) == [b"d"]


def test_a_refused_record_is_rolled_back(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    log = Log(files)
    log.append([b"kept"])
    log.take_back(log.append([b"refused"]))
    assert log.append([b"next"]) == 2
    log.close()
    assert records(files) == [b"kept", b"next"]


@pytest.mark.parametrize("size", range(90))
def test_a_torn_end_is_cut(tmp_path: Path, size: int) -> None:
    """Whatever length the last frame has reached, it is gone and the log goes on."""
    files = DiskFiles(tmp_path)
    written(files, 2)
    path = tmp_path / segment_name(1)
    whole = path.stat().st_size
    log = Log(files)
    log.append([b"torn" * 10])
    kill(log)
    cut = min(whole + size, path.stat().st_size - 1)
    path.write_bytes(path.read_bytes()[:cut])
    again = Log(files)
    assert again.next == 3
    torn = None if cut == whole else Torn(segment_name(1), whole, cut - whole)
    assert again.torn == torn
    again.append([b"after"])
    again.close()
    assert records(files) == [b"", b"record 1", b"after"]


def test_damage_is_refused_with_its_place(tmp_path: Path) -> None:
    """A bit that flips in any byte of a frame with another behind it."""
    files = DiskFiles(tmp_path)
    log = Log(files)
    log.append([b"first"])
    start = (tmp_path / segment_name(1)).stat().st_size
    log.append([b"second"])
    end = (tmp_path / segment_name(1)).stat().st_size
    log.append([b"third"])
    log.close()
    path = tmp_path / segment_name(1)
    whole = path.read_bytes()
    for at in range(start, end):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        for reads in (lambda: records(files), lambda: Log(files)):
            with pytest.raises(StoreError) as refused:
                reads()
            assert refused.value.code == "AX871"
            assert f"byte {start}" in refused.value.message
    path.write_bytes(b"something else altogether, longer than a head of a log would be")
    with pytest.raises(StoreError):
        Log(files)


def test_bytes_of_a_record_cannot_pass_for_a_frame(tmp_path: Path) -> None:
    """The salt: a record that holds frames of another log does not make a torn end look damaged."""
    files, other = DiskFiles(tmp_path / "a"), DiskFiles(tmp_path / "b")
    written(other, 5)
    frames = other.read(segment_name(1))[HEAD_SIZE:]
    log = Log(files)
    log.append([b"kept"])
    log.append([frames])
    kill(log)
    path = tmp_path / "a" / segment_name(1)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # the last frame is torn
    path.write_bytes(bytes(data))
    assert records(files) == [b"kept"]


def test_a_missing_segment_is_refused(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    log = Log(files)
    for record in (b"a", b"b", b"c"):
        log.append([record])
        log.rotate()
    log.close()
    (tmp_path / segment_name(2)).unlink()
    with pytest.raises(StoreError) as refused:
        records(files)
    assert f"{segment_name(1)} is damaged at byte" in str(refused.value)


@pytest.mark.parametrize("policy", ["always", "batch"])
def test_oracle_power_failures(policy: str) -> None:
    """At any operation, with any fault: what was synced is there, what is there was appended."""
    for seed in range(400):
        draw = random.Random(f"{policy}:{seed}")
        stop = draw.randrange(1, 40)
        kind = draw.choice(("crash", "tear", "full", "fail"))
        asked = 0

        def fault(operation: str, stop=stop, kind=kind) -> str | None:
            nonlocal asked
            asked += 1
            return kind if asked == stop else None

        files = FaultyFiles(draw, fault)
        accepted: list[bytes] = []
        synced = 0
        log = None
        try:
            log = Log(files, "off" if policy == "batch" else policy)
            for number in range(30):
                record = bytes([65 + number]) * draw.randrange(1500)
                try:
                    log.append([record])
                except StoreError:
                    continue
                accepted.append(record)
                if policy == "batch" and number % 5 == 4:
                    log.sync()
                if number % 7 == 6:
                    log.rotate()
                synced = log.synced
        except (Crashed, StoreError, OSError):
            pass
        if log is not None:
            synced = max(synced, log.synced)
        after = files.crash()
        found = records(after)
        # The record under way when it crashed may be there, whole, though nobody was told.
        assert found[: len(accepted)] == accepted[: len(found)], seed
        assert len(found) <= len(accepted) + 1, seed
        assert len(found) >= synced, seed
        log = Log(after)
        assert log.next == len(found) + 1
        log.append([b"goes on"])
        assert records(after)[-1] == b"goes on"


def test_a_full_disk_accepts_nothing_and_goes_on() -> None:
    full = False
    files = FaultyFiles(random.Random(1), lambda operation: "full" if full else None)
    log = Log(files)
    log.append([b"one"])
    full = True
    with pytest.raises(StoreError) as refused:
        log.append([b"two"])
    assert refused.value.code == "AX873"
    full = False
    log.append([b"three"])
    assert records(files) == [b"one", b"three"]


def test_after_a_failed_sync_nothing_more_is_promised() -> None:
    failing = False
    files = FaultyFiles(random.Random(1), lambda op: "fail" if failing and op == "sync" else None)
    log = Log(files)
    log.append([b"one"])
    failing = True
    with pytest.raises(StoreError):
        log.append([b"two"])
    failing = False
    with pytest.raises(StoreError):
        log.append([b"three"])
    assert log.synced == 1


def test_snapshots_are_whole_or_refused(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    parts = {"tree": b"\0\1" * 50, "views": b"", "x": b"y"}
    write_snapshot(files, 7, parts)
    write_snapshot(files, 9, {})
    assert snapshots(files) == [7, 9]
    assert read_snapshot(files, 7) == parts
    assert read_snapshot(files, 9) == {}
    path = next(tmp_path.glob("snapshot-*7.axlog"))
    whole = path.read_bytes()
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(StoreError):
            read_snapshot(files, 7)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(StoreError):
            read_snapshot(files, 7)
    remove_snapshots(files, 9)
    assert snapshots(files) == [9]


def test_a_crash_leaves_the_old_snapshot_or_the_new_one() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        files = FaultyFiles(draw)
        write_snapshot(files, 1, {"a": b"old" * 700})
        stop = files.operations + draw.randrange(1, 10)
        files.stop_at(stop)
        try:
            write_snapshot(files, 2, {"a": b"new" * 700, "b": b""})
            remove_snapshots(files, 2)
        except Crashed:
            pass
        after = files.crash()
        last = snapshots(after)[-1]
        assert read_snapshot(after, last)["a"] == (b"old" if last == 1 else b"new") * 700
