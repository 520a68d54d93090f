"""State on the driver: durable by batches, and where it is chosen.

What the disk has is compared with a plain dictionary for every version, on a disk that loses what
was not synced; what buckets say, with the document's own changes (law 7), across starts and batches
that are heard twice. Streaming queries of both ways are in `test_spark_streaming.py`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axlog.errors import ConnectorError, PipelineError
from axlog.runtime import batch_state
from axlog.runtime import bucket_state as keeping
from axlog.runtime.batch_state import DurableState
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import Extractor, Message
from axlog.runtime.packet_rows import packed
from axlog.runtime.plan import make_plan
from axlog.runtime.state_placement import Asked, placed
from axlog.samples import orders
from axlog.spark.batch_result import Delivery
from axlog.store.files import DiskFiles
from axlog.views.change import Change
from lab.stress.faulty_disk import Crashed, FaultyFiles
from tests.amounts import cases
from tests.runtime.test_spark_bucket import (
    VIEWS,
    by_document,
    cut,
    definition_of,
    plain,
    run,
    started,
    updates,
)

QUIET = [HealthCheck.function_scoped_fixture]
Maps = dict[tuple[str, str], bytes]


def held(state: DurableState) -> Maps:
    return {(b, k): value for b, values in state._maps.items() for k, value in values.items()}


def write(random: Random, state: DurableState, now: Maps) -> None:
    """Some writes of a batch, to the state and to a dictionary."""
    for _ in range(random.randrange(6)):
        bucket, key = random.choice("ab"), random.choice("uvwxyz")
        if random.random() < 0.6:
            now[bucket, key] = random.randbytes(random.randrange(40))
            state.store(bucket).put(key, now[bucket, key])
        elif (bucket, key) in now:
            del now[bucket, key]
            state.store(bucket).remove(key)
    if random.random() < 0.05:
        for key in list(state.store("a").keys()):
            state.store("a").remove(key)
        for found in [each for each in now if each[0] == "a"]:
            del now[found]


@settings(max_examples=cases(50), suppress_health_check=QUIET)
@given(st.integers(0, 100_000))
def test_every_batch_finds_the_state_that_the_one_before_it_left(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Processes that die anywhere, with the power or without; batches that Spark repeats."""
    random, crashes = Random(seed), 0

    def fault(_: str) -> str | None:
        return "crash" if random.random() < 0.04 else None

    with monkeypatch.context() as patched:
        patched.setattr(batch_state, "SMALLEST", random.choice([1, 60, 400]))
        patched.setattr(batch_state, "PIECE", random.choice([1, 30, 1000]))
        patched.setattr(batch_state, "KEPT", random.choice([1, 2, 4]))
        disk = FaultyFiles(random, fault)
        after: dict[int, Maps] = {-1: {}}
        state, batch, noted = DurableState(disk), 0, -1
        while batch < 25:
            now = dict(after[batch - 1])
            try:
                state.begin(batch, [("a", b"%d" % batch)])
                noted = random.choice([noted, batch])  # Spark has got so far, if it dies now
                assert held(state) == now
                assert state.size == sum(map(len, now.values()))
                write(random, state, now)
                after[batch] = now
                state.commit()
                noted, batch = batch, batch + 1
                if random.random() < 0.2:
                    raise Crashed
            except Crashed:
                disk, crashes = disk.crash(), crashes + 1
                state, batch = went_on(DurableState(disk), noted, after, random), noted + 1
                disk._fault = fault
    assert crashes


def went_on(
    state: DurableState, noted: int, after: dict[int, Maps], random: Random
) -> DurableState:
    """The state with which a process goes on once Spark has noted so many batches."""
    if noted < 0:
        return state
    found = state.unfinished()
    if found is not None:
        batch, rows = found
        assert batch in (noted, noted + 1)  # Spark repeats the latter, and it is begun again
        assert rows == [("a", b"%d" % batch)]
        now = dict(after[batch - 1])
        assert held(state) == now
        write(random, state, now)
        after[batch] = now
        state.commit()
    assert state.version in (noted, noted + 1)
    assert held(state) == after[state.version]
    return state


@pytest.mark.parametrize("size", [1_000, 300_000])
def test_the_directory_has_at_most_twice_the_state(tmp_path: Path, size: int) -> None:
    """But for a few batches after a whole state; a restart changes nothing of it."""
    random = Random(1)
    state = DurableState(DiskFiles(tmp_path))
    sizes: list[int] = []
    for batch in range(400):
        state.begin(batch, [("a", random.randbytes(10_000))])
        state.store("a").put(f"k{random.randrange(100)}", random.randbytes(size // 10))
        state.commit()
        if batch % 97 == 96:
            state.close()
            state = DurableState(DiskFiles(tmp_path))
        sizes.append(sum(path.stat().st_size for path in tmp_path.rglob("*")))
    bound = state.size + max(state.size, batch_state.SMALLEST) + 100_000
    assert sum(each > bound for each in sizes[200:]) < 60
    assert max(sizes[200:]) < 2 * bound
    state.close()


def test_what_does_not_lead_to_the_batch_is_refused(tmp_path: Path) -> None:
    state = DurableState(DiskFiles(tmp_path))
    for batch in range(3):
        state.begin(batch, [])
        state.store("a").put("k", bytes([batch]))
        state.commit()
    state.close()
    for asked in (4, 9):
        other = DurableState(DiskFiles(tmp_path))
        with pytest.raises(PipelineError, match=f"does not lead to batch {asked}") as refused:
            other.begin(asked, [])
        assert refused.value.code == "AX855"
        other.close()
    back = DurableState(DiskFiles(tmp_path))
    back.begin(2, [])  # as Spark asks that lost its own last notes
    assert held(back) == {("a", "k"): b"\1"}
    back.close()


@settings(max_examples=cases(6), suppress_health_check=QUIET)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 3))
def test_law_7_the_driver_says_what_the_document_says(
    monkeypatch: pytest.MonkeyPatch, seed: int, batches: int, buckets: int
) -> None:
    random = Random(seed)
    definition = definition_of(*random.sample(list(VIEWS), 3))
    parts = list(cut(random, updates(random, 30), batches))
    plan = make_plan(definition, buckets=buckets)
    with TemporaryDirectory() as place, monkeypatch.context() as patched:
        patched.setattr(batch_state, "SMALLEST", random.choice([1, 1 << 20]))
        patched.setattr(keeping, "SMALLEST_LOG", random.choice([1, 1 << 16]))
        told, refused = run(definition, plan, parts, forgets=random, driver=Path(place))
    assert [plain(one) for one in told] == [plain(one) for one in by_document(definition, parts)]
    malformed = [m.origin for b in parts for p in b for m in p if m.content == b"<item>"]
    assert set(refused) == set(malformed)


@pytest.mark.parametrize("many", [False, True])
def test_the_driver_says_what_executors_say(tmp_path: Path, many: bool) -> None:
    """Held back, tuned, with documents: the same changes and refusals."""
    random = Random(8)
    definition = definition_of("join", "time", "some", facts=("key a/item by k trusted",))
    messages = updates(random, 60, documents=5 if many else 1)
    parts = list(cut(random, messages, 10))
    plan = make_plan(definition, buckets=2, documents=many)
    key = "k" if many else None
    (tmp_path / "tuned").mkdir()
    expected = run(definition, plan, parts, None if not many else 0, key)
    found = run(
        definition, plan, parts, None if not many else 0, key, forgets=random,
        place=str(tmp_path / "tuned"), driver=tmp_path,
    )  # fmt: skip
    assert [plain(one) for one in found[0]] == [plain(one) for one in expected[0]]
    assert found[1] == expected[1]


class Sent:
    """A batch as Spark gives it."""

    def __init__(self, definition: Definition, *said: tuple[str, int]) -> None:
        plan = make_plan(definition, buckets=1)
        messages = [
            Message(0, stream, "insert", b"<item><k>k%d</k></item>" % n, n, n, f"m{n}")
            for stream, n in said
        ]
        found = packed(Extractor(definition, plan).extract(messages), plan)
        self._rows = [(f"{bucket}/0", body) for bucket, body in found]

    def collect(self) -> list[tuple[str, bytes]]:
        return self._rows


def test_a_batch_whose_sink_fails_is_emitted_at_the_next_start(tmp_path: Path) -> None:
    """Spark has noted it by then, and goes on no further."""
    definition = definition_of("join")
    plan = make_plan(definition, buckets=1)
    batches = [Sent(definition, ("a", 1), ("a", 2)), Sent(definition, ("b", 2)), Sent(definition)]
    told: dict[int, list[str]] = {}

    class Failing:
        exactly_once = True
        fails = True

        def write(self, batch: int, changes: Sequence[Change]) -> None:
            if changes and self.fails:
                raise ConnectorError("AX859", "it is gone")
            told[batch] = [change.row["x"] for change in changes]

        def close(self) -> None:
            """Nothing to let go of."""

    sink = Failing()
    local = started(definition, plan, 0, tmp_path, False)
    delivery = Delivery([sink], None, None, buckets=local)
    delivery(cast(Any, batches[0]), 0)
    delivery(cast(Any, batches[1]), 1)
    with pytest.raises(ConnectorError):
        delivery(cast(Any, batches[2]), 2)
    local.close()
    assert told == {0: []}
    sink.fails = False
    local = started(definition, plan, 0, tmp_path, False)
    delivery = Delivery([sink], None, None, buckets=local)
    delivery.catch_up()
    delivery(cast(Any, batches[2]), 2)
    assert delivery.behind.wait()
    local.close()
    assert told == {0: [], 1: ["k2"], 2: []}
    again = started(definition, plan, 0, tmp_path, False)
    assert again.unfinished() is None
    again.close()


LATE = Definition(orders.DOCUMENT, {"late": (orders.LATE, None)}, orders.KEYS)
PLAIN = Asked()


@pytest.mark.parametrize(
    ("changed", "at", "why"),
    [
        ({}, "driver", "one machine"),
        ({"cores": 16}, "executors", "16 cores"),
        ({"master": "spark://host:7077"}, "executors", "a cluster"),
        ({"master": "local-cluster[2,1,1024]"}, "executors", "a cluster"),
        ({"buckets": 3}, "executors", "3 buckets"),
        ({"documents": "k"}, "executors", "documents"),
        ({"state": "driver", "documents": "k"}, "driver", "as configured"),
        ({"state": "driver", "master": "spark://host:7077"}, "driver", "as configured"),
        ({"state": "driver", "clock": "wall"}, "executors", "timers"),
        ({"state": "driver", "place": "hdfs://there/place"}, "executors", "not a local path"),
        ({"state": "executors"}, "executors", "as configured"),
    ],
)
def test_where_the_state_lives_and_why(changed: dict[str, Any], at: str, why: str) -> None:
    lives = placed(replace(PLAIN, **changed), LATE)
    assert lives.at == at
    assert why in lives.why
    assert ("on the driver" in str(lives)) == (at == "driver")


def test_a_checkpoint_keeps_its_state_where_it_is_unless_asked() -> None:
    assert placed(PLAIN, LATE, known="executors").at == "executors"
    assert placed(replace(PLAIN, cores=16), LATE, known="driver").at == "driver"
    unspread = definition_of("boolean")
    assert placed(replace(PLAIN, cores=16), unspread).at == "driver"
    with pytest.raises(PipelineError):
        placed(replace(PLAIN, state="elsewhere"), LATE)
