"""Filters that the tuner finds while a query runs: law 5 over buckets, executors and files."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axlog.live import collector
from axlog.runtime import bucket, bucket_state
from axlog.runtime.bucket_tuner import Tuned, Tuning, forget, tuned_at
from axlog.runtime.definition import Definition
from axlog.runtime.extraction import Extractor, Message
from axlog.runtime.plan import make_plan
from tests.amounts import cases
from tests.runtime.test_spark_bucket import (
    by_document,
    cut,
    definition_of,
    plain,
    run,
    updates,
)

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


DELETING = """<r xmlns:ax="urn:axlog">
  <feed><ax:call stream="d" deletes="yes"/></feed>
  <o><ax:call stream="o"/></o>
  <p><ax:call stream="p"/></p>
</r>"""


def test_a_stream_that_deletes_restricts_only_what_it_reaches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sources of the other streams are filtered, and messages that no deletion reaches are rows."""
    monkeypatch.setattr(bucket, "TUNE_EVERY", 1)
    monkeypatch.setattr(bucket_state, "SMALLEST_LOG", 1)
    monkeypatch.setattr(bucket_state, "LONGEST_LOG", 0)
    views = {
        "some": "match /r[o/a][p/a]",
        "of feed": "match /r/feed/b/$x return $x",
        "both": "match /r[feed/b/$x][o/a/$x] return $x",
    }
    definition = Definition(DELETING, {name: (text, None) for name, text in views.items()})
    plan = make_plan(definition, buckets=2)
    assert [(unit.views, unit.kind) for unit in plan.units] == [
        (("some",), "bindings"),
        (("of feed", "both"), "messages"),
    ]
    sizes: list[int] = []
    state = bucket.Instance.state

    def noted(self: bucket.Instance) -> dict[str, object]:
        if self.unit.kind == "messages":
            sizes.append(len(self.doc))
        return state(self)

    monkeypatch.setattr(bucket.Instance, "state", noted)
    said = [("o", "<a>1</a>"), ("p", "<a>1</a>"), ("d", "<b>1</b>"), ("o", "<a>2</a>")]
    said += [("o", f"<a>{n}</a>") for n in range(3, 9)]
    batches = [
        [[Message(0, stream, "insert", content.encode(), n, n, f"m{n}")]]
        for n, (stream, content) in enumerate(said)
    ]
    gone = Message(0, "d", "delete", b"match /b", 99, 99, "m99")
    again = Message(0, "d", "insert", b"<b>5</b>", 100, 100, "m100")
    told, refused = run(
        definition, plan, [*batches, [[gone]], [[again]]], forgets=Random(1), place=str(tmp_path)
    )
    assert not refused
    rows = [
        sorted((str(c.view), c.op, c.row["x"]) for c in batch if c.view != "some") for batch in told
    ]
    assert [each for each in rows if each] == [
        [("both", op, x), ("of feed", op, x)]
        for op, x in (("insert", "1"), ("delete", "1"), ("insert", "5"))
    ]
    assert tuned_at(str(tmp_path)).patterns == {"d": ["/*"], "o": ["a/$x"], "p": []}
    assert max(sizes) == len(definition.make()) + 2  # one <b> with its text, and none of o


@pytest.mark.parametrize("negated", ["", "[not(p/a/$x)]"])
def test_buckets_collect_what_no_row_can_use(negated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also beside a `not`: what is blocked goes with what blocks it."""
    monkeypatch.setattr(bucket_state, "SMALLEST_LOG", 1)
    monkeypatch.setattr(bucket_state, "LONGEST_LOG", 0)
    monkeypatch.setattr(collector, "EVERY", 4)
    source = DELETING.replace(' deletes="yes"', "")
    text = f"match /r[feed/b][o/a#t/$x]{negated} return $x, t.id"
    said = [(stream, f"<a>{n}</a>") for n in range(10) for stream in "op"]
    messages = [
        Message(0, stream, "insert", content.encode(), n, n, f"m{n}")
        for n, (stream, content) in enumerate(said)
    ]
    end = Message(0, "d", "end", b"", 100, 100, "end")
    rest = [messages[0]._replace(time=101 + n, number=101 + n) for n in range(9)]
    sizes: dict[str, list[int]] = {"auto": [], "off": []}
    told, state = {}, bucket.Instance.state
    for collect, seen in sizes.items():
        definition = Definition(source, {"v": (text, None)}, collect=collect)  # type: ignore[arg-type]
        plan = make_plan(definition, buckets=2)
        assert [unit.kind for unit in plan.units] == ["messages"]

        def noted(self: bucket.Instance, seen: list[int] = seen) -> dict[str, object]:
            seen.append(len(self.doc))
            return state(self)

        with monkeypatch.context() as patched:
            patched.setattr(bucket.Instance, "state", noted)
            batches = [[[each]] for each in (*messages, end, *rest)]
            told[collect] = run(definition, plan, batches, forgets=Random(2))
    wanted = [plain(one) for one in by_document(definition, batches)]
    assert [plain(one) for one in told["auto"][0]] == wanted
    assert [plain(one) for one in told["off"][0]] == wanted
    assert sizes["off"][-1] > 40
    assert sizes["auto"][-1] < 16
