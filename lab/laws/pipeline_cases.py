"""Random pipelines: a document with streams, views, and the message sequences of sources.

A case has sources, each with one or several partitions, and a sequence of messages for every
partition: insertions, deletions, ends. Some messages are late, without a time, malformed, for an
unknown stream or after the end of their stream. A case is run in two parts. The first run processes
the messages up to a point and stops; a second run continues with the rest.

`reference` is written from the definitions (docs/meaning.md, Time): the sequences of a part are
merged by time, stream, source and partition, and fed to a document one by one. A message keeps its
place after its predecessor, also after one of the first part. A message that the document rejects
is a dead letter.

Not handled:

- messages that insert calls (on Spark they need views whose messages travel whole);
- a message that is rejected for another reason than its time and has a later time than all before
  it: the engines may order it differently;
- a message without a time at the beginning of a sequence: its place among others of the clock's
  time differs;
- a message after the end of its stream in the part of the end: Spark may have removed its content
  before the end was known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import itemgetter
from random import Random
from typing import Any

from axlog.connect.protocol import Refusal
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.errors import AxlogError, ValueProblem
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.runtime.definition import Definition
from axlog.views.change import CLOCK, Change, Row
from axlog.views.net_changes import net
from axlog.views.step_chain import OnValueError
from lab.laws import tuning_law
from lab.laws.chain_cases import make_chains
from lab.laws.pipeline_steps import make_steps
from lab.laws.prospects_law import make_prospects_case
from lab.laws.shared_cases import make_shared_case, query_of
from lab.laws.tuning_law import make_joined_case

Sequence_ = tuple[StreamUpdate, ...]
_FIRST = -(1 << 62)
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
_SHOP = "<shop><a>{}</a><b>{}</b><static><item><k>k1</k></item></static></shop>"
_SHOP_VIEWS = (
    "match /shop[a/item/k/$x][b/item/k/$x] return $x",
    "match /shop/a/item[k]/v/$y return $y",
    "match /shop[a/item/k/$x][not(b/item/k/$x)] return $x",
    "match /shop[a/item/k/$x#s][b/item/k/$x#t] where t - s <= 3us return $x, t.time",
    "match /shop[a/item/k/$x#s] where s >= 7us return $x",
    "match /shop[a/item/k/$x][b/item/v/$y] return $x, $y",
    "match /shop[a/item/k/$x][b/item/v] return $x",
    "match /shop[a/item/k/$x][b/item/k/$x]",
    "match /shop/a/item#i[k] return i.cont",
    "match /shop/b/item/v#v return v.id, v.val",
    "match /shop[static/item/k/$x][b/item/k/$x] return $x",
)
_DELETING = re.compile(r'stream="(\w+)"[^>]* deletes="yes"')
_COMPUTES = "<static><order>"
"""In documents whose views compute (`pipeline_steps.py`)."""
_ODD = ("<item>", "no element", "<item><k>k1</k></item>\x01")


@dataclass(frozen=True, slots=True)
class PipelineCase:
    """A random pipeline."""

    document: str
    views: tuple[str, ...]
    sources: tuple[tuple[Sequence_, ...], ...]  # by source and partition
    first: tuple[tuple[int, ...], ...]  # messages of each partition before the restart
    batch: int = 7
    rejecting: tuple[int, ...] = ()  # the places of views that refuse values
    facts: tuple[str, ...] = ()

    def parts(self) -> Iterator[tuple[tuple[Sequence_, ...], ...]]:
        """The messages before the restart, and after it."""
        both = [
            [(sequence[:count], sequence[count:]) for sequence, count in zip(*each, strict=True)]
            for each in zip(self.sources, self.first, strict=True)
        ]
        for part in (0, 1):
            yield tuple(tuple(one[part] for one in source) for source in both)

    def named(self) -> dict[str, str]:
        """The views by name."""
        return {f"view{number}": query for number, query in enumerate(self.views, 1)}

    def policies(self) -> dict[str, OnValueError]:
        """What happens with values that cannot be computed, by view."""
        names = enumerate(self.named())
        return {name: "reject" if at in self.rejecting else "null" for at, name in names}

    def definition(self) -> Definition:
        """The document and its views, for the runtime."""
        rejecting = tuple(name for name, policy in self.policies().items() if policy == "reject")
        views = {name: (query, None) for name, query in self.named().items()}
        return Definition(self.document, views, self.facts, rejecting=rejecting)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a run of a pipeline.

    It omits the details that may differ: batches, counts and the times of changes that updates
    cause. `moments` are the changes of the clock, which no batch may net.
    """

    rows: Counter[tuple[Any, ...]]
    changes: Counter[tuple[Any, ...]]
    refused: Counter[tuple[str, str]]
    moments: Counter[tuple[Any, ...]]

    @classmethod
    def of(cls, changes: Sequence[Change], refused: Iterable[Refusal]) -> Answer:
        """The answer from the changes of all views, in their order."""
        follow(changes)
        views = {change.view for change in changes}
        single = [one for change in changes for one in _alike(change)]
        netted = [c for view in views for c in net(one for one in single if one.view == view)]
        rows: Counter[tuple[Any, ...]] = Counter()
        for change in changes:
            if change.op == "never":
                continue
            if change.op != "insert":
                old = change.row if change.before is None else change.before
                rows[change.view, *_values(old)] -= 1
            if change.op != "delete":
                rows[change.view, *_values(change.row)] += 1
        return cls(
            +rows,
            Counter((c.view, c.op, *_values(c.row)) for c in netted),
            Counter((one.stream, _text(one.content)) for one in refused),
            Counter(
                (c.view, c.microseconds, c.op, *_values(c.row))
                for c in changes
                if c.origin == CLOCK and c.op != "never"
            ),
        )

    def difference(self, other: Answer) -> str | None:
        """A description of the difference to another answer; None if they are equal."""
        for what in ("rows", "changes", "refused", "moments"):
            mine, others = getattr(self, what), getattr(other, what)
            if mine != others:
                return (
                    f"{what}: lacks {dict(mine - others)!r}, has too much {dict(others - mine)!r}"
                )
        return None


def check_batch(changes: Iterable[Change]) -> None:
    """Check that a batch has one change for each row of a view with keys.

    Nothing is netted across a change of the clock.
    """
    seen: set[tuple[Any, ...]] = set()
    for change in changes:
        if change.op != "never" and change.row.key_ is not None:
            key = change.view, *change.row.key_
            if change.origin == CLOCK:
                seen.discard(key)
                continue
            if key in seen:
                raise AssertionError(f"two changes of {change.view!r} in a batch: {change!r}")
            seen.add(key)


def follow(changes: Iterable[Change]) -> None:
    """Check that every change fits the rows that the changes before it leave, by their keys."""
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for change in changes:
        if change.op == "never":
            continue
        key = change.view, change.row.key_text  # Spark has ids as texts
        old = change.row if change.op == "delete" else change.before
        wanted = None if old is None else _values(old)
        if rows.get(key) != wanted:
            raise AssertionError(f"{change!r} of {change.view!r} follows {rows.get(key)!r}")
        if change.op == "delete":
            del rows[key]
        else:
            rows[key] = _values(change.row)


def _alike(change: Change) -> Iterator[Change]:
    """A change whose row is identified by its values alone: several nodes may show them.

    An update is a deletion and an insertion: whether a row was gone in between depends on batches.
    """
    if change.before is not None:
        yield replace(change, op="delete", row=_shown(change.before), before=None)
        change = replace(change, op="insert", before=None)
    yield replace(change, row=_shown(change.row))


def _shown(row: Row) -> Row:
    return Row(row.columns, _values(row))


def _values(row: Row) -> tuple[Any, ...]:
    """The values of a row, in a hashable form."""
    return tuple(tuple(v) if isinstance(v, list) else v for v in row.to_dict().values())


def _text(content: str | bytes) -> str:
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else content


# The reference ------------------------------------------------------------------------------------


Places = dict[tuple[int, int], tuple[int, str]]
"""By source and partition, the place of its last update: time and stream."""


def merged(part: Sequence[Sequence[Sequence_]], places: Places) -> list[tuple[int, StreamUpdate]]:
    """The updates of all sequences in the order of application, with the times of their places.

    They are ordered by place, source and partition. The place of an update is its time and stream,
    or that of its predecessor in its sequence, if that is later. `places` are those of the last
    updates before this part; they are advanced.
    """
    found: list[tuple[tuple[int, str], tuple[int, int], StreamUpdate]] = []
    for source, partitions in enumerate(part):
        for partition, sequence in enumerate(partitions):
            mine = source, partition
            for update in sequence:
                before = places.get(mine, (_FIRST, ""))
                time = before[0] if update.at is None else microseconds(update.at)
                places[mine] = max(before, (max(time, before[0]), update.stream))
                found.append((places[mine], mine, update))
    return [(place[0], update) for place, _, update in sorted(found, key=itemgetter(0, 1))]


def first_rows(doc: Document) -> list[Change]:
    """The initial rows of a document, as changes."""
    return [
        Change("insert", row, view=name) for name, view in doc.views.items() for row in view.rows()
    ]


def reference(case: PipelineCase) -> Answer | None:
    """The expected result of the pipeline; None where the engines may differ (`_is_ambiguous`)."""
    doc = Document(case.document, facts=case.facts, options=Options(never="joins"))
    try:
        for name, query in case.named().items():
            doc.watch(query, name, on_value_error=case.policies()[name])
    except ValueProblem:
        return None  # the document itself has a value that a view rejects
    changes = first_rows(doc)
    refused: list[Refusal] = []
    others: set[str] = set()  # rejected for another reason than their time
    places: Places = {}
    for part in case.parts():
        for time, update in merged(part, places):
            if update.at is None and time > microseconds(doc.clock):
                update = replace(update, at=timedelta(microseconds=time))
            try:
                changes += doc.take(update)
            except AxlogError as error:
                if error.code != "AX404":
                    others.add(update.origin)
                refused.append(
                    Refusal(update.stream, update.content, update.origin, error.describe())
                )
    if _is_ambiguous(case, others):
        return None
    return Answer.of(changes, refused)


def _is_ambiguous(case: PipelineCase, refused: set[str]) -> bool:
    """Whether a message follows a later one of its sequence that was rejected.

    The earlier rejection has another reason than its time. Spark considers the message late; the
    embedded engine may not.
    """
    for sequence in (one for source in case.sources for one in source):
        latest = _FIRST
        for update in sequence:
            time = None if update.at is None else microseconds(update.at)
            if time is not None and time < latest:
                return True
            if time is not None and update.origin in refused:
                latest = max(latest, time)
    return False


# Cases --------------------------------------------------------------------------------------------


def make_pipeline_case(random: Random, *, computes: bool = True) -> PipelineCase:
    """A random pipeline; `computes`: its views may compute, group and order."""
    kinds = [_shop, _shop, make_steps, make_steps, _joined, _any, _awaited, _chained, _chained]
    computing = (make_steps, _chained)
    make = random.choice([kind for kind in kinds if computes or kind not in computing])
    return _sent(random, *make(random))


def make_members_case(random: Random) -> PipelineCase:
    """A random pipeline with views that differ in constants: the first steps of a case of law 9."""
    case = make_shared_case(random)
    views = [query_of(step) for step in case.steps if step[0] == "watch"]
    sent = [
        StreamUpdate(stream, "insert", content, time / 1e6)
        for step in case.steps
        if step[0] in ("feed", "batch")
        for _, stream, content, time in (step[2] if step[0] == "batch" else [step])
    ]
    return _sent(random, case.document, views, sent, *case.facts)


def _sent(
    random: Random, document: str, views: Sequence[str], made: Sequence[StreamUpdate], *facts: str
) -> PipelineCase:
    """The pipeline of a document, with its messages dealt to sources and partitions."""
    sent = [
        update
        for update in _spoiled(random, document, made)
        if "ax:call" not in str(update.content) and update.action != "end"
    ]
    sources: list[tuple[Sequence_, ...]] = []
    first: list[tuple[int, ...]] = []
    deal: list[list[list[StreamUpdate]]] = [
        [[] for _ in range(random.choice((1, 1, 4)))] for _ in range(random.choice((1, 1, 2, 3)))
    ]
    cut = random.randrange(len(sent) + 1)
    ends = list(_ends(random, sent[:cut], random.choice((0.25, 0.25, 0.8))))
    sent[cut:cut] = ends
    cut += len(ends)
    ended = {update.stream for update in ends}
    sent[cut:] = [replace(one, at=None) if one.stream in ended else one for one in sent[cut:]]
    counts = [[0] * len(source) for source in deal]
    latest = 1e-6
    for number, update in enumerate(sent):
        source = random.randrange(len(deal))
        partition = random.randrange(len(deal[source]))
        sequence, is_first = deal[source][partition], counts[source][partition]
        if update.at is None and (not sequence or (number >= cut and len(sequence) == is_first)):
            if update.stream in ended:
                continue
            update = replace(update, at=latest)
        latest = max(latest, float(str(update.at or 0.0)))
        sequence.append(update)
        counts[source][partition] += number < cut
    sources = [tuple(map(tuple, source)) for source in deal]
    first = [tuple(each) for each in counts]
    rejecting = tuple(
        at
        for at in range(len(views))
        if _COMPUTES in document and "now" not in views[at] and random.random() < 0.15
    )
    return PipelineCase(
        document, tuple(views), tuple(sources), tuple(first), random.choice((3, 7, 50)), rejecting,
        tuple(facts),
    )  # fmt: skip


Made = tuple[Any, ...]
"""The document, its views, the updates, and the declared facts."""


def _shop(random: Random) -> Made:
    """Two streams that join."""
    calls = []
    for stream in "ab":
        declared = random.choice(
            ("", "", "", ' late="clock"', ' deletes="yes"', ' most="9"', *[' replace="k"'] * 3)
        )
        calls.append(_CALL.format(stream, declared))
    views = random.sample(_SHOP_VIEWS, random.choice((1, 2, 3)))
    sent: list[StreamUpdate] = []
    time = 0
    for _ in range(random.randrange(4, 30)):
        time += random.choice((0, 0, 1, 1, 2))
        stream = random.choice("ab")
        key = f"k{random.randrange(4)}"
        pick = random.random()
        at: float | None = time / 1e6
        if pick < 0.08:
            sent.append(StreamUpdate(stream, "delete", f'match /item[k/"{key}"]', at))
        else:
            inside = f"<k>{key}</k>" if random.random() < 0.85 else "<other/>"
            inside += f"<v>v{random.randrange(3)}</v>" if random.random() < 0.4 else ""
            inside += random.choice(("", "", "", "<!--c-->", "<?p i?>", "<!--<k>k1</k>-->"))
            sent.append(StreamUpdate(stream, "insert", f"<item>{inside}</item>", at))
    return _SHOP.format(*calls), views, sent


def _awaited(random: Random) -> Made:
    """Joins of one to four parts, with `not`s, keys and deadlines: rows that can never come."""
    case = make_prospects_case(random, (0, 1, 2, 4))
    sent = [
        StreamUpdate(what, "insert", content, time / 1e6)
        for what, content, time in case.steps
        if what not in ("advance", "end")
    ]
    return case.document, [case.query], sent, *case.facts


def _chained(random: Random) -> Made:
    """Joins of relations that share no column."""
    document, views, sent, fact = make_chains(random)
    return document, views, sent, *([fact] if fact else [])


def _joined(random: Random) -> Made:
    """The cases of law 5 whose rows need several streams."""
    return _of_case(make_joined_case(random))


def _any(random: Random) -> Made:
    """The cases with any document and pattern."""
    return _of_case(tuning_law._make_any_case(random))


def _of_case(case: Any) -> Made:
    sent = [StreamUpdate.of(step[0]) for step in case.steps if "stream" in step[0]]
    return case.document, [str(pattern) for pattern in case.patterns], sent


def _ends(random: Random, sent: Sequence[StreamUpdate], chance: float) -> Iterator[StreamUpdate]:
    """The ends of some streams, after all their messages."""
    latest = max((float(str(update.at)) for update in sent if update.at is not None), default=0.0)
    for stream in sorted({update.stream for update in sent} - {"unknown"}):
        if random.random() < chance:
            yield StreamUpdate(stream, "end", "", latest + 1e-6, f"end {stream}")


def _spoiled(random: Random, document: str, sent: Sequence[StreamUpdate]) -> Iterator[StreamUpdate]:
    """The messages, some of them late, without a time or malformed; each has its own origin.

    A malformed message may have the time of the next one, which then often has none: it gets the
    time of the malformed message, if it follows that in its sequence.
    """
    deleting = set(_DELETING.findall(document))
    latest = 0.0
    follows = False
    for number, update in enumerate(sent):
        origin = f"m{number}"
        pick = random.random()
        at = None if update.at is None else float(str(update.at))
        latest = max(latest, at or 0.0)
        if pick < 0.06:
            at = max(1e-6, latest - random.choice((1, 2, 5)) / 1e6)
        elif pick < (0.6 if follows else 0.1) or (
            update.action == "delete" and update.stream not in deleting
        ):
            at = None
        yield replace(update, at=at, origin=origin)
        follows = random.random() < 0.06
        if follows:
            odd = random.choice(_ODD)
            next_at = sent[number + 1].at if number + 1 < len(sent) else None
            odd_at = None if next_at is None or random.random() < 0.3 else next_at
            yield StreamUpdate(update.stream, "insert", odd, odd_at, f"{origin} odd")
        if random.random() < 0.02:
            yield StreamUpdate("unknown", "insert", "<item/>", None, f"{origin} unknown")


def smaller_pipelines(case: PipelineCase) -> Iterator[PipelineCase]:
    """Reduced cases."""
    for number in range(len(case.views)):
        if len(case.views) > 1:
            yield replace(
                case,
                views=(*case.views[:number], *case.views[number + 1 :]),
                rejecting=tuple(at - (at > number) for at in case.rejecting if at != number),
            )
    for source, partitions in enumerate(case.sources):
        for partition, sequence in enumerate(partitions):
            for number in range(len(sequence)):
                yield _without(case, source, partition, number)


def _without(case: PipelineCase, source: int, partition: int, number: int) -> PipelineCase:
    def fewer(given: tuple[Any, ...], at: int, one: Any) -> tuple[Any, ...]:
        return (*given[:at], one, *given[at + 1 :])

    partitions, counts = case.sources[source], case.first[source]
    sequence, count = partitions[partition], counts[partition]
    left = (*sequence[:number], *sequence[number + 1 :])
    return replace(
        case,
        sources=fewer(case.sources, source, fewer(partitions, partition, left)),
        first=fewer(case.first, source, fewer(counts, partition, count - (number < count))),
    )
