"""Batches of several queries in one sink, and sinks and sources that cannot be reached."""

import threading
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axlog.connect.protocol import Reading
from axlog.connect.sources.memory import MemorySource
from axlog.errors import ConnectorError, PipelineError
from axlog.retry import Backoff
from axlog.runtime.shared_sinks import Numbering
from axlog.runtime.unreachable import Patience, clear_failure, lagging, record_failure
from tests.amounts import cases


class Cut(BaseException):
    """The process dies."""


@settings(max_examples=cases(25))
@given(st.integers(0, 10_000))
def test_every_batch_comes_once_whatever_is_cut(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Two writers, a sink that is idempotent by number, processes that die anywhere."""
    random = Random(seed)
    path = tmp_path_factory.mktemp("sharing") / "sharing.json"
    sink: dict[int, str] = {}
    done = {"a": 0, "b": 0}  # what each query has committed
    numbering = Numbering(path)
    while min(done.values()) < 5:
        order = random.sample(sorted(done), 2)
        cut = numbering._state["open"]
        if cut is not None:  # Spark repeats what was cut before anything else
            order = [cut[0]]
        for writer in order:
            batch = done[writer]
            try:
                with numbering.turn(writer, batch) as number:
                    if random.random() < 0.2:
                        raise Cut
                    if number is not None and number > max(sink, default=-1):
                        sink[number] = f"{writer}{batch}"
                    if random.random() < 0.2:
                        raise Cut
                if random.random() < 0.2:
                    raise Cut  # before the query has noted that it is done
            except Cut:
                numbering = Numbering(path)
                break
            done[writer] += 1
    told = list(sink.values())
    assert len(told) == len(set(told))
    assert {f"{w}{n}" for w in "ab" for n in range(5)} <= set(told)
    assert list(sink) == sorted(sink)


def test_another_writer_waits_for_the_batch_that_was_cut(tmp_path: Path) -> None:
    first = Numbering(tmp_path / "s.json")
    with pytest.raises(Cut), first.turn("a", 1):
        raise Cut
    again = Numbering(tmp_path / "s.json")
    assert again.run == first.run
    seen: list[tuple[str, int | None]] = []

    def other() -> None:
        with again.turn("b", 1) as number:
            seen.append(("b", number))

    thread = threading.Thread(target=other)
    thread.start()
    time.sleep(0.05)
    assert seen == []
    with again.turn("a", 1) as number:
        seen.append(("a", number))
    thread.join(60)
    assert seen == [("a", 0), ("b", 1)]
    with again.turn("a", 1) as number:
        assert number is None


def test_a_sink_that_cannot_be_reached_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axlog.runtime.unreachable.BACKOFF", Backoff(0.001))
    patience, tries = Patience(once=True), []

    def write() -> None:
        tries.append(patience.lagging())
        if len(tries) < 4:
            raise ConnectorError("AX859", "it is away")

    patience.write("table", write)
    assert [len(each) for each in tries] == [0, 1, 1, 1]
    assert (tries[3][0].name, tries[3][0].tries) == ("table", 3)
    assert patience.lagging() == []

    def never() -> None:
        raise ConnectorError("AX859", "it is away")

    with pytest.raises(PipelineError, match="it is away"):
        patience.write("table", never)
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(PipelineError, match="stopped while table was lagging"):
        Patience(stopping=stopping).write("table", never)


def test_sources_report_that_they_lag_by_files(tmp_path: Path) -> None:
    place = str(tmp_path)
    assert lagging(place, ["one", "two"]) == []
    record_failure(place, 1, "it is away", time.time() - 5, 3)
    (found,) = lagging(place, ["one", "two"])
    assert (found.name, found.error, found.tries) == ("two", "it is away", 3)
    assert found.seconds >= 5
    clear_failure(place, 1)
    assert lagging(place, ["one", "two"]) == []


class Away(MemorySource):
    """A source that cannot be read while a file is not there."""

    def __init__(self, path: str) -> None:
        super().__init__([{"stream": "a", "insert": "<item><k>1</k></item>", "at": 1}])
        self.path = path

    def read(self, position: object, limit: int) -> Reading:
        if not Path(self.path).exists():
            raise ConnectorError("AX858", "it is away")
        return super().read(position, limit)


def test_a_reader_waits_for_its_source_and_says_so(tmp_path: Path) -> None:
    """The reader as Spark's process has it, without Spark."""
    import base64

    from pyspark import cloudpickle
    from pyspark.sql.streaming.datasource import ReadMaxRows

    from axlog.spark.sources import SourceReader

    there = tmp_path / "there"
    written = str(there)
    pickled = base64.b64encode(cloudpickle.dumps(lambda: Away(written))).decode()
    reader = SourceReader({"source": pickled, "index": "0", "place": str(tmp_path)})
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(10)) == start
    assert [one.error for one in lagging(str(tmp_path), ["in"])] == ["it is away"]
    there.touch()
    until = time.monotonic() + 60
    while (end := reader.latestOffset(start, ReadMaxRows(10))) == start:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert end["number"] == 1
    assert lagging(str(tmp_path), ["in"]) == []
    there.unlink()
    reader.prepareForTriggerAvailableNow()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("axlog.runtime.unreachable.BACKOFF", Backoff(0.001))
        with pytest.raises(PipelineError, match="it is away"):
            reader.latestOffset({**end}, ReadMaxRows(10))


class Busy(MemorySource):
    """A source that says it has more and gives nothing, every other time: a broker under load."""

    def __init__(self) -> None:
        super().__init__(
            {"stream": "a", "insert": f"<item><k>{n}</k></item>", "at": n} for n in range(5)
        )
        self.asked = 0

    def read(self, position: object, limit: int) -> Reading:
        self.asked += 1
        if self.asked % 2:
            return Reading([], position, more=True)
        return super().read(position, min(limit, 2))


class Mute(Busy):
    """A source that never gives what it says it has."""

    def read(self, position: object, limit: int) -> Reading:
        return Reading([], position, more=True)


def test_a_run_that_ends_does_not_end_before_a_busy_source_gave_all() -> None:
    """Nothing at the moment is not the end: what is there is read, or the run fails."""
    import base64

    from pyspark import cloudpickle
    from pyspark.sql.streaming.datasource import ReadMaxRows

    from axlog.spark.sources import Cut, SourceReader, read_part

    def reader_of(kind: type[MemorySource]) -> SourceReader:
        pickled = base64.b64encode(cloudpickle.dumps(kind)).decode()
        reader = SourceReader({"source": pickled, "index": "0"})
        reader.prepareForTriggerAvailableNow()
        return reader

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("axlog.runtime.unreachable.BACKOFF", Backoff(0.001))
        reader = reader_of(Busy)
        start, rows = reader.initialOffset(), 0
        while (end := reader.latestOffset(start, ReadMaxRows(10))) != start:
            for part in reader.partitions(start, end):
                assert isinstance(part, Cut)
                rows += sum(len(some) for some in read_part(Busy, 0, part))
            start = end
        assert (rows, end["number"]) == (5, 5)
        patched.setattr("axlog.spark.sources.SLOWEST", 0.01)
        reader = reader_of(Mute)
        with pytest.raises(PipelineError, match="has more after None and returned nothing"):
            reader.latestOffset(reader.initialOffset(), ReadMaxRows(10))
