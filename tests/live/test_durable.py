"""Durable documents: what was acknowledged is there after any crash, and publishers get it once."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

import axlog
from axlog.cli.application import application
from axlog.errors import AxlogError, QueryError, StoreError
from axlog.live.internals import maintained, maintained_view
from axlog.live.options import Keep
from axlog.live.store import open_store
from axlog.live.verification import history, verify
from axlog.store.files import DiskFiles
from axlog.store.log_reader import read_log
from axlog.views.counting.maintainer import Counting
from lab.stress.torture import MOMENTS, by_killing, on_faulty_disk
from tests.amounts import cases

DOCUMENT = '<r><ax:call xmlns:ax="urn:axlog" stream="f" deletes="yes"/></r>'
INSERTING = DOCUMENT.replace(' deletes="yes"', "")
VIEWS = {"v": "match /r/a/$x return $x"}


class Sink:
    """Takes a batch once; fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.batches: list[int] = []
        self.rows: list[str] = []

    def write(self, batch, changes) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("not now")
        if not self.batches or batch > self.batches[-1]:
            self.batches.append(batch)
            self.rows += [change.row["x"] for change in changes]


def feed(doc, *values: str) -> None:
    for value in values:
        doc.feed("f", f"<a>{value}</a>")


def rows(doc, view: str = "v") -> list[str]:
    return [row["x"] for row in doc.view(view).rows()]


def ids_of(doc) -> list[axlog.Id]:
    tree = maintained(doc).nodes()
    return [tree.id(node) for node in tree.subtree(0)]


def test_a_store_opens_with_everything(tmp_path: Path) -> None:
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        feed(doc, "1", "2")
        doc.delete("f", 'match /a/"1"', at=5)
        doc.update("insert node <a>3</a> as last into /r", at=7)
        doc.advance(9.5)
        xml, ids = (
            doc.xml(),
            [maintained(doc).tree.id(n) for n in maintained(doc).tree.subtree(0)],
        )
    with axlog.open(tmp_path) as again:
        assert rows(again) == ["2", "3"]
        assert again.xml() == xml
        assert ids_of(again) == ids
        assert again.clock == 9.5
        assert again.view("v").position == 4
        assert again.streams()["f"].messages == 3


def test_refused_updates_leave_no_trace(tmp_path: Path) -> None:
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        before = doc.record
        for wrong in ("<a>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"):
            with pytest.raises(AxlogError):
                doc.feed("f", wrong)
        with pytest.raises(AxlogError):
            doc.update("delete node /r/nothing, rename node /r as")
        with pytest.raises(AxlogError):
            doc.watch("match /r[", "w")
        assert doc.record == before
    assert len(list(read_log(DiskFiles(tmp_path)))) == before


def test_every_way_to_change_the_document_is_logged(tmp_path: Path) -> None:
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as document:
        changes: list[Callable[[], object]] = [
            lambda: document.feed("f", "<a>1</a>"),
            lambda: document.update("insert node <a>2</a> as last into /r"),
            lambda: document.watch("match /r/a/$x return $x", "w"),
            lambda: document.unwatch("v"),
            lambda: document.delete("f", 'match /a/"1"'),
            lambda: document.advance(7),
            lambda: document.tune(),
            lambda: document.end("f"),
        ]
        for change in changes:
            before = document.record
            change()
            assert document.record == before + 1
        text, found = document.xml(), rows(document, "w")
    with axlog.open(tmp_path) as again:
        assert (again.xml(), rows(again, "w")) == (text, found)
        assert (again.clock, list(again.views)) == (7, ["w"])


def test_a_batch_survives_whole_and_is_emitted_once(tmp_path: Path) -> None:
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        told: list[str] = []
        doc.view("v").subscribe(lambda change: told.append(f"{change.op} {change.row['x']}"))
        with doc.batch():
            feed(doc, "1", "2")
            doc.delete("f", 'match /a/"1"')
            assert told == []
        assert told == ["insert 2"]
        record = doc.record
        with suppress(ZeroDivisionError), doc.batch():
            feed(doc, "3")
            raise ZeroDivisionError
        assert told == ["insert 2"]  # all or nothing, in the log too
        assert doc.record == record
    with axlog.open(tmp_path) as again:
        assert rows(again) == ["2"]


def test_views_come_and_go(tmp_path: Path) -> None:
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        feed(doc, "1")
        doc.watch("match /r/a#n return n.val", "w")
        doc.unwatch("v")
    with axlog.open(tmp_path, views={"third": "match /r/a"}) as again:
        assert sorted(again.views) == ["third", "w"]
        assert again.view("third").holds()
    with pytest.raises(StoreError) as refused:
        axlog.open(tmp_path, views={"w": "match /r/b"})
    assert refused.value.code == "AX875"


@pytest.mark.parametrize("retain", [True, False])
def test_a_view_added_to_what_is_not_kept_is_filled_from_the_log_or_refused(
    tmp_path: Path, retain: bool
) -> None:
    with axlog.open(
        tmp_path, INSERTING, views=VIEWS, retain=retain, options=axlog.Options(keep="needed")
    ) as doc:
        feed(doc, "1", "2")
        doc.snapshot()
        feed(doc, "3")
    more = {"w": "match /r/a/$x return $x"}
    if not retain:
        with pytest.raises(AxlogError):
            axlog.open(tmp_path, views=more)
        return
    with axlog.open(tmp_path, views=more, retain=True) as again:
        assert rows(again, "w") == rows(again) == ["1", "2", "3"]


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_snapshots_shorten_the_log_and_change_nothing(tmp_path: Path, keep: Keep) -> None:
    sink = Sink()
    with axlog.open(
        tmp_path, DOCUMENT, views=VIEWS, options=axlog.Options(keep=keep, on_error="dead-letter")
    ) as doc:
        box = doc.publish("v", sink)
        feed(doc, "1", "2")
        doc.feed("f", "<broken")
        assert box.flush(5)
        doc.compact()
        assert len(list(read_log(DiskFiles(tmp_path)))) <= 1  # a note of the publisher at most
        feed(doc, "3")
        doc.snapshot()
        assert box.flush(5)
    with axlog.open(tmp_path) as again:
        feed(again, "4")
        assert rows(again) == ["1", "2", "3", "4"]
        (letter,) = again.dead_letters
        assert (letter.stream, letter.sequence) == ("f", 3)
        again.publish("v", sink).flush(5)
    assert sink.rows == ["1", "2", "3", "4"]


def test_a_publisher_that_fails_gets_it_all_in_order(tmp_path: Path) -> None:
    sink = Sink(failures=2)
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        box = doc.publish("v", sink)
        feed(doc, "1", "2", "3")
        assert box.flush(10)
    assert sink.rows == ["1", "2", "3"]


def test_what_a_publisher_never_took_comes_after_the_restart(tmp_path: Path) -> None:
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        doc.publish("v", Sink(failures=10**9))
        feed(doc, "1", "2")
        doc.snapshot()
        feed(doc, "3")
        doc.close(flush=0.1)
    sink = Sink()
    with axlog.open(tmp_path) as again:
        assert again.publish("v", sink).flush(5)
    assert sink.rows == ["1", "2", "3"]


TUNED = (
    '<r xmlns:ax="urn:axlog"><p><a>1</a><a>2</a><a>9</a></p><q><ax:call stream="f"/></q>'
    '<s><ax:call stream="g"/></s></r>'
)


@pytest.mark.parametrize("by_snapshot", [True, False])
def test_filters_and_positions_come_back(tmp_path: Path, by_snapshot: bool) -> None:
    """What streams were tuned to, how far publishers are, what each stream has brought."""
    views = {"v": "match /r[p/a/$x][q/b/$x] return $x"}
    sink = Sink()
    with axlog.open(tmp_path, TUNED, views=views, options=axlog.Options(keep="needed")) as doc:
        assert doc.publish("v", sink).flush(5)
        doc.feed("f", "<b>1</b>")
        tuned = {stream: one.wanted for stream, one in doc.tune().streams.items()}
        doc.feed("f", "<b>2</b>")
        assert doc.outboxes["v"].flush(5)
        taken = doc.outboxes["v"].taken
        before = {s: (one.messages, one.is_tuned) for s, one in doc.streams().items()}
        if by_snapshot:
            doc.snapshot()
    with axlog.open(tmp_path) as again:
        assert {s: (one.messages, one.is_tuned) for s, one in again.streams().items()} == before
        assert {s: one.wanted for s, one in again.streams().items() if one.is_tuned} == {
            s: wanted for s, wanted in tuned.items() if before[s][1]
        }
        assert any(is_tuned for _, is_tuned in before.values())
        assert (again.outboxes["v"].taken, again.outboxes["v"].waiting) == (taken, 0)
        again.publish("v", sink)
        again.feed("f", "<b>3</b>")
        assert again.outboxes["v"].flush(5)
    assert sink.rows == ["1", "2"]


def test_a_snapshot_in_the_middle_of_a_compaction(tmp_path: Path) -> None:
    """Found by `torture`: the log that the other process reads goes with the snapshot."""
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS) as doc:
        doc.compact_after = None
        feed(doc, "1", "2")
        doc.compact(wait=False)
        doc.snapshot()
        feed(doc, "3")
        doc.compact()
        assert doc.failed_snapshots == 0
        assert doc.snapshots.count == 2
    with axlog.open(tmp_path) as again:
        assert rows(again) == ["1", "2", "3"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with axlog.open(tmp_path, DOCUMENT):
        script = f"import axlog; axlog.open({str(tmp_path)!r})"
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert "AX874" in other.stderr


def test_a_directory_without_a_store_needs_a_source(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as refused:
        axlog.open(tmp_path / "new")
    assert refused.value.code == "AX875"
    with pytest.raises(StoreError):
        axlog.open(tmp_path / "new", DOCUMENT, sync="sometimes")  # type: ignore[arg-type]
    with pytest.raises(StoreError):
        axlog.open(tmp_path / "new", DOCUMENT, options=axlog.Options(cache="disk"))


@pytest.mark.parametrize(
    "query",
    [
        "match /r/a#n return n.val",
        "match /r/a#n return n.id, n.time",
        "match /r[a#n][a#m] return m.label, n.cont",
    ],
)
def test_verify_compares_what_rows_show(tmp_path: Path, query: str) -> None:
    """Found by `fuzz --law 7`: outputs are values and contents, not handles of nodes."""
    with axlog.open(tmp_path, DOCUMENT, views={"v": query}) as doc:
        feed(doc, "1", "1", "2")
        (result,) = verify(DiskFiles(tmp_path)).views
        assert result.is_right
        assert result.rows == len(doc.view("v").rows()) > 1


GOLDEN = Path(__file__).parents[1] / "golden" / "store-1"


def test_stores_of_version_1_open(tmp_path: Path) -> None:
    """Written once by the first version; every later one opens it."""
    for file in GOLDEN.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with axlog.open(tmp_path) as doc:
        assert rows(doc) == ["1", "ä", "\U0001f600"]
        assert doc.view("w").rows()[0]["n.val"] == "1"
        assert doc.outboxes["v"].waiting == 2
        assert doc.clock == 4
        assert not doc.streams()["f"].ended


def test_oracle_faulty_disks() -> None:
    """Rounds of the harness: at the end nothing differs from a quiet run."""
    assert sum(on_faulty_disk(seed) for seed in range(cases(25))) > cases(50)


@pytest.mark.system
def test_oracle_killed_processes() -> None:
    """Processes killed with SIGKILL inside each of `MOMENTS`; `lab torture` kills more."""
    killed: Counter[str] = Counter()
    for seed in range(10):
        killed += by_killing(seed, count=80, kills=5)
        if set(killed) >= set(MOMENTS):
            return
    raise AssertionError(f"processes were killed inside {killed}")


def test_the_other_policies_survive_a_kill(tmp_path: Path) -> None:
    for sync in ("batch", "off"):
        script = (
            "import axlog, os, signal\n"
            f"w = axlog.open({str(tmp_path / sync)!r}, {DOCUMENT!r}, "
            f"views={VIEWS!r}, sync={sync!r})\n"
            "for n in range(20): w.feed('f', f'<a>{n}</a>')\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        assert subprocess.run([sys.executable, "-c", script]).returncode == -9
        with open_store(tmp_path / sync) as doc:
            assert len(rows(doc)) == 20


def test_history_and_verification(tmp_path: Path) -> None:
    """`axlog replay` tells the same changes again; `axlog verify` sees a view that is wrong."""
    with axlog.open(tmp_path, DOCUMENT, views=VIEWS, retain=True) as doc:
        told: list[str] = []
        doc.view("v").subscribe(lambda change: told.append(change.row["x"]))
        feed(doc, "1", "2")
        doc.snapshot()
        feed(doc, "3")
        files = DiskFiles(tmp_path)
        again = [c.row["x"] for _, changes in history(files) for c in changes]
        assert again == told == ["1", "2", "3"]
        assert [number for number, _ in history(files, until=3)] == [3]
        assert [result.is_right for result in verify(files).views] == [True]
    shown = CliRunner().invoke(application(), ["replay", str(tmp_path), "--until", "3"])
    assert '"op": "insert", "key": ["1"], "row": {"x": "1"}' in shown.stdout
    assert CliRunner().invoke(application(), ["verify", str(tmp_path)]).exit_code == 0


@pytest.mark.parametrize("retain", [True, False])
def test_views_of_what_is_not_kept_are_verified_from_the_whole_log(
    tmp_path: Path, retain: bool
) -> None:
    with axlog.open(
        tmp_path, INSERTING, views=VIEWS, retain=retain, options=axlog.Options(keep="needed")
    ) as doc:
        feed(doc, "1", "2")
        doc.snapshot()
        (result,) = verify(DiskFiles(tmp_path)).views
        assert result.is_right == retain
        if retain:
            # A view that is wrong on purpose: the snapshot says it has a row more.
            kept = maintained_view(doc.view("v")).maintainer
            assert isinstance(kept, Counting)
            kept._counts["9",] = 1
            kept._values["9",] = ("9",)
            doc.feed("f", "<b/>")
            doc.snapshot()
            (result,) = verify(DiskFiles(tmp_path)).views
            assert [row["x"] for row in result.extra] == ["9"]


def test_a_store_is_made_from_the_names_of_its_streams(tmp_path: Path) -> None:
    for number in (1, 2):
        with axlog.open(tmp_path / "store", streams=["orders", "shipments"]) as doc:
            doc.feed("orders", f"<order>{number}</order>")
            assert list(doc.streams()) == ["orders", "shipments"]
    with axlog.open(tmp_path / "store") as doc:
        assert doc.watch("/document/orders/order/string()").items() == ["1", "2"]
    with pytest.raises(QueryError, match="both a source and streams"):
        axlog.open(tmp_path / "other", "<a/>", streams=["orders"])
    with pytest.raises(StoreError, match="a source or streams"):
        axlog.open(tmp_path / "other")
