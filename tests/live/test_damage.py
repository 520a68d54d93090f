"""Damaged stores: the state is the same, or the store is refused; never silently shorter."""

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

import axlog
from axlog.cli.application import application
from axlog.errors import StoreError
from axlog.live.store import start
from axlog.live.verification import verify
from axlog.store.files import DiskFiles
from axlog.store.log import POLICIES, Log
from axlog.store.log_reader import VERSION, read_log, segment_name, segments
from axlog.store.manifest import NAME, Manifest, read_manifest, write_manifest
from lab.laws.damage_law import (
    Damage,
    Stored,
    all_damage,
    check_damage,
    check_damage_case,
    make_damage_case,
    make_stored,
)
from lab.stress.faulty_disk import FaultyFiles

DOCUMENT = '<r><ax:call xmlns:ax="urn:axlog" stream="f"/></r>'
VIEWS = {"v": "match /r/a/$x return $x"}
GOLDEN = Path(__file__).parents[1] / "golden" / "store-1"


def tried(stored: Stored, bits: int) -> Counter[str]:
    damages = enumerate(all_damage(stored.files, bits))
    return Counter(check_damage(stored, one, number % 11 == 0) for number, one in damages)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("snapshot_after", [None, 2])
def test_every_byte_and_every_length_of_a_closed_store(policy, snapshot_after):
    """Before there was a manifest, 383 of 673 flips in a log lost records without a word."""
    stored = make_stored(policy, True, 3, snapshot_after)
    found = tried(stored, 3)
    assert set(found) <= {"same", "refused"}
    # All but the removal of the manifest can be seen in the files.
    assert found["same"] == 1


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("snapshot_after", [None, 2])
def test_every_byte_and_every_length_of_a_store_that_was_killed(policy, snapshot_after):
    stored = make_stored(policy, False, 3, snapshot_after)
    found = tried(stored, 1)
    assert set(found) == {"prefix", "refused", "same"}


def test_an_older_snapshot_and_the_log_do_for_a_damaged_one():
    stored = make_stored("off", True, 3, 2, retain=True)
    name = next(name for name in stored.files if name.startswith("snapshot"))
    for at in range(0, len(stored.files[name]), 7):
        assert check_damage(stored, Damage(name, "flip", at)) == "same"


def test_a_snapshot_that_nothing_follows_has_to_be_there():
    """Found by `python -m lab fuzz --law damage`: an empty log looked like no store at all."""
    stored = make_stored("off", True, 1, 1)
    name = next(name for name in stored.files if name.startswith("snapshot"))
    assert check_damage(stored, Damage(name, "remove")) == "refused"


def test_fuzzed_stores():
    for seed in range(30):
        check_damage_case(make_damage_case(Random(f"damage:{seed}")))


def test_records_that_were_acknowledged_are_not_truncated_after_a_close(tmp_path: Path):
    """The report that started it: 2,000 rows, sync="off", one bit."""
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS, sync="off") as doc:
        doc.compact_after = None
        for number in range(2000):
            doc.feed("f", f"<a>{number}</a>")
    path = tmp_path / segment_name(1)
    whole = bytearray(path.read_bytes())
    whole[4000] ^= 16
    path.write_bytes(whole)
    with pytest.raises(StoreError) as refused:
        axlog.open(tmp_path, sync="off")
    assert refused.value.code == "AX871"
    assert "is damaged at byte 39" in refused.value.message
    assert path.read_bytes() == whole
    shown = CliRunner().invoke(application(), ["verify", str(tmp_path)])
    assert isinstance(shown.exception, StoreError) or shown.exit_code == 2


def test_a_torn_end_is_reported(tmp_path: Path, caplog):
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        doc.feed("f", "<a>1</a>")
        end = (tmp_path / segment_name(1)).stat().st_size
        doc.feed("f", "<a>2</a>")
        killed = {name: DiskFiles(tmp_path).read(name) for name in (segment_name(1), NAME)}
    for name, data in killed.items():
        (tmp_path / name).write_bytes(data)
    path = tmp_path / segment_name(1)
    path.write_bytes(path.read_bytes()[:-3])
    left = path.stat().st_size - end
    shown = CliRunner().invoke(application(), ["verify", str(tmp_path)])
    torn = f'"torn": {{"segment": "{segment_name(1)}", "at": {end}, "bytes": {left}}}'
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0] == f'{{"log": {{"record": 3, "closed": false, {torn}}}}}'
    with axlog.open(tmp_path) as again:
        assert again.torn is not None
        assert (again.torn.start, again.torn.size) == (end, left)
        assert [row["x"] for row in again.view("v").rows()] == ["1"]
    assert "torn end cut" in caplog.text
    with axlog.open(tmp_path) as again:
        assert again.torn is None
    found = verify(DiskFiles(tmp_path))
    assert (found.is_closed, found.torn, found.is_right) == (True, None, True)


def test_a_store_whose_log_is_missing_is_refused(tmp_path: Path):
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        doc.feed("f", "<a>1</a>")
        doc.snapshot()
        doc.feed("f", "<a>2</a>")
    for path in tmp_path.glob("log-*"):
        path.unlink()
    for source in (None, DOCUMENT):
        with pytest.raises(StoreError) as refused:
            axlog.open(tmp_path, source, views=VIEWS)
        assert refused.value.code == "AX878"
    (tmp_path / NAME).unlink()
    with pytest.raises(StoreError) as refused:
        axlog.open(tmp_path, DOCUMENT, views=VIEWS)
    assert refused.value.code == "AX878"
    for path in tmp_path.glob("snapshot-*"):
        path.unlink()
    axlog.open(tmp_path, DOCUMENT, views=VIEWS).close()  # nothing of a store is left: a new one


@pytest.mark.parametrize("is_closed", [True, False])
def test_every_segment_of_a_log_has_to_be_there(is_closed):
    files = FaultyFiles(Random(0))
    log = Log(files)
    for record in (b"a", b"b", b"c"):
        log.append([record])
        log.rotate()
    log.append([b"d"])
    log.drop_before(0)
    kept = None if is_closed else files.killed()
    log.close()
    kept = kept or files
    whole = {name: kept.read(name) for name in kept.names()}
    for number, first in enumerate(segments(files)):
        left = FaultyFiles.holding({n: d for n, d in whole.items() if n != segment_name(first)})
        if number == 0:  # that is the business of whoever knows where it starts
            assert next(read_log(left))[0] == 2
            continue
        with pytest.raises(StoreError) as refused:
            list(read_log(left))
        assert refused.value.code in ("AX871", "AX878")


def test_a_forked_child_cannot_write(tmp_path: Path):
    """It shares the parent's files: what it wrote would stand in the middle of the parent's log."""
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS, sync="batch") as doc:
        doc.feed("f", "<a>1</a>")
        reading, writing = os.pipe()
        child = os.fork()
        if not child:  # no assertion here: it would run the rest of the tests
            codes = [_code(lambda: doc.feed("f", "<a>2</a>")), _code(doc.snapshot)]
            codes += [_code(lambda: doc.batch().__enter__()), _code(doc.compact)]
            rows = [row["x"] for row in doc.view("v").rows()]
            doc.close()
            os.write(writing, repr((codes, rows)).encode())
            os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        assert os.read(reading, 1000).decode() == repr((["AX879"] * 4, ["1"]))
        os.close(reading)
        doc.feed("f", "<a>3</a>")
        assert not verify(DiskFiles(tmp_path)).is_closed
    with axlog.open(tmp_path) as again:
        assert [row["x"] for row in again.view("v").rows()] == ["1", "3"]


def _code(act) -> str:
    try:
        act()
    except StoreError as error:
        return error.code
    return "done"


def test_a_directory_that_cannot_be_used_has_a_code(tmp_path: Path, monkeypatch):
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(StoreError) as refused:
        axlog.open(tmp_path / "file" / "store", DOCUMENT)
    assert refused.value.code == "AX880"
    axlog.open(tmp_path / "store", DOCUMENT).close()

    def read_only(self, name):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(DiskFiles, "append_to", read_only)
    with pytest.raises(StoreError) as refused:
        axlog.open(tmp_path / "store")
    assert refused.value.code == "AX880"
    assert "Permission denied" in refused.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_a_read_only_directory_has_a_code(tmp_path: Path):
    """As a user who may read the directory and not write it; root may always write."""
    place = tmp_path / "store"
    axlog.open(place, DOCUMENT).close()
    place.chmod(0o555)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.chdir(tmp_path)
        os.setuid(65534)
        os.write(writing, _code(lambda: axlog.open("store")).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert os.read(reading, 1000) == b"AX880"
    os.close(reading)


def test_files_of_version_1_are_read_and_followed_by_version_2(tmp_path: Path):
    for file in GOLDEN.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with axlog.open(tmp_path) as doc:
        rows = [row["x"] for row in doc.view("v").rows()]
        assert len(segments(DiskFiles(tmp_path))) == 2
        doc.feed("f", "<a>new</a>")
    with axlog.open(tmp_path) as again:
        assert [row["x"] for row in again.view("v").rows()] == sorted([*rows, "new"])
    head = DiskFiles(tmp_path).read(segment_name(segments(DiskFiles(tmp_path))[-1]))
    assert int.from_bytes(head[10:12], "big") == VERSION == 2


@pytest.mark.parametrize("version", [0, 3])
def test_a_later_version_is_refused_by_its_code(tmp_path: Path, version, monkeypatch):
    files = DiskFiles(tmp_path)
    monkeypatch.setattr("axlog.store.manifest.VERSION", version)
    write_manifest(files, Manifest(True, 1, 1, 1))
    monkeypatch.undo()
    with pytest.raises(StoreError) as refused:
        read_manifest(files)
    assert refused.value.code == "AX872"


def test_a_store_that_was_refused_opens_as_before(tmp_path: Path):
    """An open that fails after the log was opened leaves a log that was closed."""
    axlog.open(tmp_path, DOCUMENT, views=VIEWS).close()
    with pytest.raises(axlog.AxlogError):
        axlog.open(tmp_path, views={"w": "match /r["})
    assert verify(DiskFiles(tmp_path)).is_closed


def test_a_reader_beside_the_writer_sees_a_whole_log():
    """What is read while another process goes on is no damage."""
    files = FaultyFiles(Random(0))
    doc = start(files, DOCUMENT, VIEWS, "always", False)
    for number in range(5):
        doc.feed("f", f"<a>{number}</a>")
        found = verify(files)
        assert (found.record, found.is_closed, found.torn) == (doc.record, False, None)
        if number == 2:
            doc.snapshot()
    doc.close()
    assert verify(files).is_closed
