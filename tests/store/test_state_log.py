"""State logs: the last whole state and the changes after it, whatever fails."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from axlog.errors import StoreError
from axlog.store.files import DiskFiles
from axlog.store.state_log import StateLog
from lab.stress.faulty_disk import Crashed, FaultyFiles


def total(log: StateLog) -> list[bytes]:
    return [record for records in log.changes() for record in records]


def opened(files: DiskFiles | FaultyFiles) -> StateLog:
    log = StateLog(files, "numbers", 1)
    if log.is_new:
        log.replace([])
    return log


def test_the_whole_state_replaces_its_changes(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    log = opened(files)
    log.append([b"1", b"2"])
    log.append([b"3"])
    assert total(log) == [b"1", b"2", b"3"]
    log.replace([b"123"])
    log.append([b"4"])
    assert total(log) == [b"123", b"4"]
    log.close()
    again = opened(files)
    assert total(again) == [b"123", b"4"]
    again.replace([b"1234"], retains=True)
    again.append([b"5"])
    assert total(again) == [b"1234", b"5"]
    every = [record for records in again.changes(retained=True) for record in records]
    assert every == [b"123", b"4", b"1234", b"5"]
    again.close()


def test_other_kinds_and_versions_are_refused(tmp_path: Path) -> None:
    opened(DiskFiles(tmp_path)).close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for kind, version in (("letters", 1), ("numbers", 2)):
        with pytest.raises(StoreError) as refused:
            StateLog(DiskFiles(tmp_path), kind, version)
        assert refused.value.code == "AX872"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    log = opened(DiskFiles(tmp_path))
    assert total(log) == []
    log.close()


@pytest.mark.parametrize("seed", range(150))
def test_acknowledged_changes_survive_a_power_failure(seed: int) -> None:
    """The crash comes at any operation, several times in one history."""
    random = Random(seed)
    files = FaultyFiles(random)
    accepted: list[int] = []
    attempted = 0
    for _ in range(4):
        files.stop_at(files.operations + random.randrange(1, 60))
        with suppress(Crashed):
            log = opened(files)
            found = [int(number) for record in total(log) for number in record.split()]
            assert found[: len(accepted)] == accepted
            assert found == list(range(len(found)))
            assert len(found) <= attempted
            accepted = found
            while True:
                attempted = max(attempted, len(accepted) + 1)
                log.append([str(len(accepted)).encode()])
                accepted.append(len(accepted))
                if random.random() < 0.3:
                    log.replace([" ".join(map(str, accepted)).encode()])
        files = files.crash()
    found = [int(number) for record in total(opened(files)) for number in record.split()]
    assert found[: len(accepted)] == accepted
