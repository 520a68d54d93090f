"""Law 7, embedded: a run that is killed anywhere and restarted equals an undisturbed run.

A case is one of law 1 with streams. It runs on a durable document over a directory in memory
(`lab/stress/faulty_disk.py`) beside a plain document. Between the steps the store takes a snapshot,
or its process is killed, or the power fails (synced bytes survive, others at random), and it is
opened again. Compared after every step: rejections, the changes with their numbers, the rows, the
clock; at the end the document with its ids, the undelivered changes of sinks, and the result of
`verify`.

One case in ten has joins that wait under declared keys (`never_law.py`): their knowledge of keys
and deadlines has to survive as well, so truth and possible rows are compared too. One case in three
is a run of `lab/stress/torture.py`, with a disk that fails during operations. In both kinds some
views compute, group and order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError, StoreError
from axlog.live.document import Document
from axlog.live.durable import DurableDocument
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.live.store import start
from axlog.live.verification import verify
from axlog.live.view import View
from axlog.query.query import parse_query
from axlog.views.change import Change
from axlog.views.counting.maintainer import Counting
from lab.laws.aggregates_cases import make_query
from lab.laws.fuzz_cases import Case, less_of, make_case
from lab.laws.never_law import NeverCase, make_never_case, take
from lab.stress.faulty_disk import FaultyFiles
from lab.stress.torture import on_faulty_disk

_TORTURED = 12  # operations of a run on a failing disk


@dataclass(frozen=True, slots=True)
class ReplayCase:
    """A case of law 1, and the events of the store before each of its steps."""

    case: Case | NeverCase | None
    events: tuple[str, ...] = ()
    seed: int = 0  # of the disk
    texts: tuple[str, ...] = ()  # of views that compute, group and order


def make_replay_case(random: Random) -> ReplayCase:
    """A random case."""
    seed = random.getrandbits(32)
    kinds = ("", "", "killed", "power", "snapshot", "snapshot and killed")
    pick = random.random()
    if pick < 0.33:
        return ReplayCase(None, seed=seed)
    if pick < 0.43:
        joined = make_never_case(random)
        return ReplayCase(joined, tuple(random.choice(kinds) for _ in joined.steps), seed)
    while True:
        made = make_case(random)
        steps = tuple(step for step in made.steps if "stream" in step[0])
        if steps:
            break
    patterns = tuple(p for p in made.patterns if Counting.refusal(p) is None)
    case = replace(made, steps=steps, patterns=patterns, since=(), until=(), maintainer="counting")
    queries = (make_query(random, case) for _ in range(random.choice((0, 1, 2))))
    texts = tuple(q for q in queries if Counting.refusal(parse_query(q).row_key.pattern) is None)
    return ReplayCase(case, tuple(random.choice(kinds) for _ in steps), seed, texts)


def check_replay(made: ReplayCase) -> None:
    """Check law 7 on one case."""
    if made.case is None:
        on_faulty_disk(made.seed, _TORTURED)
        return
    if isinstance(made.case, NeverCase):
        _check_joins(made.case, made.events, made.seed)
        return
    views = {f"view{n + 1}": str(p) for n, p in enumerate(made.case.patterns)}
    views |= {f"computed{n + 1}": text for n, text in enumerate(made.texts)}
    options = Options(keep=made.case.keep, validate=made.case.validate)
    run = _Run(made.case.document, views, options, made.seed)
    for event, step in zip(made.events, made.case.steps, strict=True):
        run.happen(event)
        run.take(StreamUpdate.of(step[0]))
    run.happen("power")
    run.compare_at_the_end()


def _check_joins(case: NeverCase, events: tuple[str, ...], seed: int) -> None:
    for keep in ("all", "needed"):
        run = _Run(case.document, {"v": case.query}, Options(keep=keep), seed, case.facts)
        for event, step in zip(events, case.steps, strict=True):
            run.happen(event)
            run.both(str(step), lambda doc, step=step: take(doc, step))  # type: ignore[misc]
            run.compare_outlooks()


def smaller_replays(made: ReplayCase) -> Iterator[ReplayCase]:
    """The case with fewer events, steps or views."""
    if not isinstance(made.case, Case):
        return
    for number, event in enumerate(made.events):
        if event:
            fewer = (*made.events[:number], "", *made.events[number + 1 :])
            yield replace(made, events=fewer)
    for case in less_of(made.case):
        if len(case.steps) < len(made.events):
            gone = next(
                (n for n, step in enumerate(case.steps) if step != made.case.steps[n]),
                len(case.steps),
            )
            events = (*made.events[:gone], *made.events[gone + 1 :])
            yield replace(made, case=case, events=events)
        else:
            yield replace(made, case=case)


class _Run:
    """The durable document and the plain one side by side."""

    def __init__(
        self,
        document: str,
        views: dict[str, str],
        options: Options,
        seed: int,
        facts: tuple[str, ...] = (),
    ) -> None:
        self._options, self._source, self._views = options, document, views
        self._facts = facts
        self._files = FaultyFiles(Random(seed))
        self._plain = Document(document, views=views, facts=facts, options=options)
        self._durable = self._open()

    def _open(self) -> DurableDocument:
        return start(
            self._files, self._source, self._views, "always", False, self._facts, self._options
        )

    def happen(self, event: str) -> None:
        """Run an event that must have no visible effect."""
        if "snapshot" in event:
            self._durable.snapshot()
        if "killed" in event:
            self._files = self._files.killed()
            self._durable = self._open()
        elif event == "power":
            self._files = self._files.crash()
            self._durable = self._open()

    def take(self, update: StreamUpdate) -> None:
        self.both(str(update), lambda doc: doc.take(update))

    def both(self, what: str, do: Callable[[Document], list[Change]]) -> None:
        """Run a function on both sides and compare."""
        told, wanted = _tried(self._durable, do), _tried(self._plain, do)
        _same(f"what {what} does", _said(told), _said(wanted))
        _same("the clock", self._durable.clock, self._plain.clock)
        self.compare()

    def compare(self) -> None:
        for name in self._views:
            view, plain = self._durable.view(name), self._plain.view(name)
            rows = [Counter((r.values_, r.count) for r in each.rows()) for each in (view, plain)]
            _same(f"the rows of {name}", rows[0], rows[1])
            _same(f"the number of {name}", view.position, plain.position)

    def compare_outlooks(self) -> None:
        for name in self._views:
            said = [_outlook(doc.view(name)) for doc in (self._durable, self._plain)]
            _same(f"what may come to {name}", said[0], said[1])

    def compare_at_the_end(self) -> None:
        self.compare()
        if maintained(self._plain).forgotten == 0:
            _same("the document", self._durable.xml(), self._plain.xml())
            _same("the ids", _ids(self._durable), _ids(self._plain))
        for found in verify(self._files).views:
            if found.missing or found.extra:
                raise AssertionError(f"verify says of {found.view}: {found}")


def _outlook(view: View) -> object:
    try:
        return view.truth, sorted(str(one.to_dict()) for one in view.possible())
    except AxlogError as error:
        return error.code


def _tried(doc: Document, do: Callable[[Document], list[Change]]) -> list[Change] | str:
    try:
        return do(doc)
    except StoreError:
        raise
    except AxlogError as error:
        return error.code


def _said(told: list[Change] | str) -> Any:
    if isinstance(told, str):
        return told
    return [(c.view, c.op, c.position, c.row.values_, c.time) for c in told]


def _ids(doc: Document) -> list[object]:
    tree = maintained(doc).nodes()
    return [tree.id(node) for node in tree.subtree(0)]


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, wanted {wanted!r}")
