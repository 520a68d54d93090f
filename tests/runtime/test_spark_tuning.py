"""Filters that the tuner finds while a query runs: law 5 over buckets, executors and files."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axlog.runtime import bucket, bucket_state
from axlog.runtime.bucket_tuner import Tuned, Tuning, forget, tuned_at
from axlog.runtime.extraction import Extractor, Message
from axlog.runtime.plan import make_plan
from tests.amounts import cases
from tests.runtime.test_spark_bucket import cut, definition_of, plain, run, updates

QUIET = [HealthCheck.function_scoped_fixture]


@settings(max_examples=cases(6), suppress_health_check=QUIET)
@given(st.integers(0, 10_000))
def test_tuned_buckets_emit_the_same_changes(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Changes and dead letters are those without tuning; nothing more is kept."""
    random = Random(seed)
    views = random.sample(["join", "some", "boolean", "cross", "time", "not", "static"], 3)
    definition = definition_of(*views)
    messages = updates(random, 50)
    if random.random() < 0.5:
        last = messages[random.randrange(20, 40)]
        end = last._replace(action="end", content=b"", number=1000)
        rest = [m for m in messages[last.number + 1 :] if m.stream != last.stream]
        messages = [*messages[: last.number + 1], end, *rest]
    parts = list(cut(random, messages, 8))
    plan = make_plan(definition, buckets=random.choice([1, 3]))
    before: list[int] = []
    expected = run(definition, plan, parts, kept=before)
    after: list[int] = []
    with monkeypatch.context() as patched, TemporaryDirectory() as place:
        patched.setattr(bucket, "TUNE_EVERY", 1)
        if seed % 2:  # engines that are made again from snapshots know nothing of filters
            patched.setattr(bucket_state, "SMALLEST_LOG", 1)
            patched.setattr(bucket_state, "LONGEST_LOG", 0)
        found = run(definition, plan, parts, forgets=random, place=place, kept=after)
    assert [plain(one) for one in found[0]] == [plain(one) for one in expected[0]]
    assert sorted(found[1]) == sorted(expected[1])
    assert sum(after) <= sum(before)


def test_a_stream_that_can_add_nothing_more_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once some b has a v, no other b matters to the view; bad messages are still told."""
    monkeypatch.setattr(bucket, "TUNE_EVERY", 1)
    definition = definition_of("some")
    plan = make_plan(definition, buckets=2)
    said = [
        ("b", "<item><v>1</v></item>"),
        ("a", "<item><k>1</k></item>"),
        ("b", "<item><v>2</v></item>"),
        ("b", "<item>"),
        ("a", "<item><k>2</k></item>"),
    ]
    batches = [
        [[Message(0, stream, "insert", content.encode(), n, n, f"m{n}")]]
        for n, (stream, content) in enumerate(said)
    ]
    kept: list[int] = []
    told, refused = run(definition, plan, batches, place=str(tmp_path), kept=kept)
    assert kept == [1, 1, 0, 0, 1]
    assert refused == ["m3"]
    assert [[change.row["x"] for change in batch] for batch in told] == [[], ["1"], [], [], ["2"]]
    assert tuned_at(str(tmp_path)).patterns["b"] == []
    assert tuned_at(str(tmp_path), 0) == Tuned()  # a batch that is repeated reads as it did
    forget(str(tmp_path))
    assert tuned_at(str(tmp_path)) == Tuned()


def test_nothing_is_said_of_a_unit_before_all_its_buckets_have(tmp_path: Path) -> None:
    definition = definition_of("some", "content")
    plan = make_plan(definition, buckets=2)
    tuning = Tuning(plan, str(tmp_path))
    nothing: bucket.Claim = {"a": ([], []), "b": ([0], ["/item/v"])}
    assert not tuning.receive(3, {("view some", 0): nothing})
    assert tuning.receive(4, {("view some", 1): {"a": ([0], ["/item/k"]), "b": ([], [])}})
    assert tuning.now.units == {"view some": {"a": [0], "b": [0]}}
    assert tuning.now.patterns == {}  # of the view of contents nothing is known
    extractor = Extractor(definition, plan)
    extractor.tune(Tuned({"view some": {"a": [], "b": [0]}}))
    out = extractor.extract([Message(0, "a", "insert", b"<item><k>1</k></item>", 1, 1, "m")])
    assert {unit for unit, _ in out.items} == {"messages"}
