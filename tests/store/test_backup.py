"""Copies of stores and checkpoints that are in use, and what they restore."""

from pathlib import Path
from threading import Event, Thread

import pytest
from typer.testing import CliRunner

import axlog
from axlog.cli.application import application
from axlog.errors import StoreError
from axlog.store.backup import copy_store

SHOP = '<shop xmlns:ax="urn:axlog"><ax:call stream="orders"/></shop>'
VIEWS = {"orders": "match /shop/order/$x return $x"}


def rows(place: Path) -> list[int]:
    with axlog.open(place) as doc:
        return sorted(int(row["x"]) for row in doc.view("orders"))


def test_a_copy_of_a_store_in_use_is_a_prefix(tmp_path: Path) -> None:
    done, stop = Event(), Event()
    fed = 0
    with axlog.open(tmp_path / "store", SHOP, views=VIEWS, sync="off") as doc:

        def feed() -> None:
            nonlocal fed
            while not stop.is_set():
                doc.feed("orders", f"<order>{fed}</order>")
                fed += 1
                if fed == 20:
                    done.set()
                if fed % 50 == 0:
                    doc.compact()

        feeding = Thread(target=feed)
        feeding.start()
        done.wait()
        before = fed
        copy_store(tmp_path / "store", tmp_path / "copy")
        after = fed
        stop.set()
        feeding.join()
    found = rows(tmp_path / "copy")
    assert found == list(range(len(found)))
    assert before <= len(found) <= after + 1


def test_backup_and_restore_as_commands(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "store", SHOP, views=VIEWS) as doc:
        doc.feed("orders", "<order>1</order>")
        run = CliRunner().invoke
        said = run(application(), ["backup", str(tmp_path / "store"), str(tmp_path / "copy")])
        assert said.exit_code == 0, said.output
        doc.feed("orders", "<order>2</order>")
    said = run(application(), ["restore", str(tmp_path / "copy"), str(tmp_path / "again")])
    assert said.exit_code == 0, said.output
    assert rows(tmp_path / "again") == [1]
    assert rows(tmp_path / "store") == [1, 2]


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "file").touch()
    for source, target, code in (
        ("absent", "copy", "AX878"),
        ("store", "store", "AX875"),
        ("store", "store/inside", "AX875"),
    ):
        with pytest.raises(StoreError) as caught:
            copy_store(tmp_path / source, tmp_path / target)
        assert caught.value.code == code


@pytest.mark.parametrize("kind", ["log", "snapshot"])
def test_a_damaged_store_is_not_copied(tmp_path: Path, kind: str) -> None:
    """One flipped bit anywhere is found, in both directions; `--unchecked` copies all the same."""
    with axlog.open(tmp_path / "store", SHOP, views=VIEWS) as doc:
        for number in range(20):
            doc.feed("orders", f"<order>{number}</order>")
        if kind == "snapshot":
            doc.compact()
    (damaged, *_) = sorted((tmp_path / "store").glob(f"*{kind}*"))
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 4
    damaged.write_bytes(data)
    run = CliRunner().invoke
    for verb in ("backup", "restore"):
        said = run(application(), [verb, str(tmp_path / "store"), str(tmp_path / "copy")])
        assert said.exit_code != 0, said.output
        assert isinstance(said.exception, StoreError) or "AX871" in said.output
        assert not (tmp_path / "copy").exists()
        assert list(tmp_path.glob("*.part")) == []
    given = ["backup", "--unchecked", str(tmp_path / "store"), str(tmp_path / "copy")]
    assert run(application(), given).exit_code == 0
