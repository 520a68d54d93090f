"""The whole public API gives the same rows and changes, whatever the face of a document.

    document, document with streams, durable store
    x  every maintainer, forced, or as axlog chooses on small and on large documents
    x  both caches, views read at once or deferred

All faces process the same statements and messages. After every step they have the same rows with
counts, emit the same changes, refuse the same updates for the same reason, and have the same
document. The rows also equal those of the definitions: on small documents the reference
re-evaluates the views of one more document after every step; on large ones the views of that
document are maintained by counting. All rows are evaluated again at the end.

Not compared: counts in changes of `records`, which has none; single changes of deferred views,
whose sum is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from axlog.document.loader import load
from axlog.errors import AxlogError, QueryError
from axlog.live.document import Document
from axlog.live.durable import DurableDocument
from axlog.live.internals import maintained
from axlog.live.maintained import MaintainedTree
from axlog.live.options import Options
from axlog.live.store import start
from axlog.query.query import Query, parse_query
from axlog.store.keyvalue import KeyValueStore
from axlog.views.algebraic.maintainer import Algebraic
from axlog.views.change import Change, Row
from axlog.views.choose import Thresholds, maintainer_named
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.maintainer import Counting
from axlog.views.net_changes import net
from axlog.views.operators.disk_table import Shelf
from axlog.views.records.maintainer import Records
from axlog.views.view import MaintainedView
from lab.laws.differential_cases import DifferentialCase, Face, Step
from lab.laws.exact_law import RESTLESS, Broken, replayed
from lab.laws.fuzz_cases import DEFAULT
from lab.stress.faulty_disk import FaultyFiles

_MEMORY = 1000
"""Bytes of rows that a cache on disk holds in memory."""
ViewChanges = dict[str, list[Change]]
Outcome = ViewChanges | str
"""The changes of each view, or the code of the error that an update is refused with."""


def check_differential(case: DifferentialCase) -> None:
    """All faces of a case agree after every step."""
    queries = _accepted(case)
    if not queries:
        return
    is_small = case.padding == 0
    try:
        base = _Run(case, Face(maintainer="reevaluate" if is_small else "counting"), queries)
    except QueryError as error:
        if error.code == "AX216":  # too many combinations to try
            return
        raise
    others = [_Run(case, face, queries) for face in case.faces]
    for other in others:
        other.compare_rows(base)
    for number, step in enumerate(case.steps):
        wanted = base.take(step)
        if base.is_broken:  # too many combinations to try
            return
        for other in others:
            other.compare(other.take(step), wanted, base, number)
    for other in others:
        other.compare_at_the_end(base)
    if not is_small:
        base.compare_with_evaluation()


def _accepted(case: DifferentialCase) -> dict[str, Query]:
    """The accepted queries, by the names of their views."""
    found: dict[str, Query] = {}
    for number, text in enumerate(case.queries):
        try:
            found[f"view{number + 1}"] = parse_query(text)
        except QueryError:
            continue
    return found


@dataclass(slots=True)
class _Run:
    """A case run by one face."""

    case: DifferentialCase
    face: Face
    queries: dict[str, Query]
    heard: ViewChanges = field(default_factory=dict)
    _shown: dict[str, Counter[Any]] = field(default_factory=dict)  # at the last read, if deferred
    _files: FaultyFiles | None = None
    _doc: Document | None = None
    tree: MaintainedTree = field(init=False)

    def __post_init__(self) -> None:
        self._open()
        for name, query in self.queries.items():
            self._watch(query.text, name, self._maintainer(query))
        self._listen()

    # Setting up -----------------------------------------------------------------------------------

    def _open(self) -> None:
        text, cache = self.case.text, self.face.cache
        if self.face.kind == "tree":
            shelf = Shelf(KeyValueStore(), _MEMORY) if cache == "disk" else None
            self.tree = MaintainedTree(load(text), shelf=shelf)
        elif self.face.kind == "document":
            self._doc = Document(text, options=Options(never="off", cache=cache, memory=_MEMORY))
            self.tree = maintained(self._doc)
        else:
            # A store keeps its rows in memory, whatever the face says.
            self._files = FaultyFiles(Random(0)) if self._files is None else self._files.killed()
            options = Options(never="off")
            self._doc = start(self._files, text, {}, "always", False, options=options)
            self.tree = maintained(self._doc)
        if self.face.is_restless:
            self.tree.thresholds = Thresholds(1, RESTLESS)

    def _maintainer(self, query: Query) -> str | None:
        wanted = self.face.maintainer
        if wanted == DEFAULT or query.plan is not None:
            return None
        if maintainer_named(wanted).refusal(query.pattern) is not None:
            return None
        return wanted

    def _watch(self, text: str, name: str, maintainer: str | None) -> None:
        if self._doc is None:
            self.tree.watch(text, name, maintainer=maintainer)
        else:
            self._doc.watch(text, name, maintainer=maintainer)

    def _listen(self) -> None:
        for name in self.queries:
            view = self.view(name)
            self.heard[name] = []
            view.subscribe(self.heard[name].append)
            if self.face.is_deferred:
                view.defer()
                self._shown[name] = _values(view)

    def view(self, name: str) -> MaintainedView:
        return self.tree.views[name]

    @property
    def is_broken(self) -> bool:
        """Whether a view was set aside: re-evaluation stops where it would take too long."""
        return any(self.view(name).broken is not None for name in self.queries)

    # A step ---------------------------------------------------------------------------------------

    def take(self, step: Step) -> Outcome:
        """Run a step; return its changes, or the reason why it is refused."""
        for told in self.heard.values():
            told.clear()
        if step.get("reopen"):
            if isinstance(self._doc, DurableDocument):
                if "snapshot" in step["reopen"]:
                    self._doc.snapshot()
                self._open()
                self._listen()
            return {}
        if "batch" not in step:
            return self._one(step)
        if self._doc is None:
            with self.tree.emitting_at_end():
                outcomes = [self._one(each) for each in step["batch"]]
        else:
            with self._doc.batch():
                outcomes = [self._one(each) for each in step["batch"]]
        refused = [outcome for outcome in outcomes if isinstance(outcome, str)]
        every: ViewChanges = {name: [] for name in self.queries}
        for outcome in outcomes:
            for name, changes in outcome.items() if isinstance(outcome, dict) else ():
                every[name] += changes
        return ",".join(refused) or {name: net(changes) for name, changes in every.items()}

    def _one(self, step: Step) -> Outcome:
        at = None
        if "ahead" in step:
            at = (self.tree.tree.clock + step["ahead"]) / 1_000_000
        try:
            changes = self._carried_out(step, at)
        except AxlogError as error:
            return error.code
        told: ViewChanges = {name: [] for name in self.queries}
        for change in changes:
            told[str(change.view)].append(change)
        return told

    def _carried_out(self, step: Step, at: float | None) -> list[Change]:
        if "update" in step:
            update = self.tree.update if self._doc is None else self._doc.update
            return update(step["update"], at)
        assert self._doc is not None, "a bare tree has no streams"
        stream = step["stream"]
        if "insert" in step:
            return self._doc.feed(stream, step["insert"], at)
        if "delete" in step:
            return self._doc.delete(stream, step["delete"], at)
        return self._doc.end(stream, at)

    # Comparing ------------------------------------------------------------------------------------

    def compare(self, found: Outcome, wanted: Outcome, base: _Run, number: int) -> None:
        """A step has the same result on both sides."""
        if isinstance(found, str) or isinstance(wanted, str):
            self._same("what an update is refused for", found, wanted)
        elif self.face.is_deferred:
            self._compare_deferred(base, number)
            return
        else:
            for name in wanted:
                is_counted = self.view(name).chosen.name != Records.name
                sides = [_told(each.get(name, []), is_counted) for each in (found, wanted)]
                self._same(f"the changes of {name}", *sides)
                heard = _told(self.heard[name], is_counted)
                self._same(f"what listeners to {name} heard", heard, sides[1])
        if not self.face.is_deferred:
            self.compare_rows(base)

    def _compare_deferred(self, base: _Run, number: int) -> None:
        """Deferred views are read after every other step."""
        if number % 2:
            return
        self.compare_rows(base)
        for name in self.queries:
            now = _values(self.view(name))
            after = replayed(self._shown[name], self.heard[name])
            self._same(f"what is told of {name} when it is read", after, now)
            self._shown[name] = now

    def compare_rows(self, base: _Run) -> None:
        """The same rows with the same counts."""
        for name in self.queries:
            rows = [_rows(run.view(name)) for run in (self, base)]
            self._same(f"the rows of {name}", *rows)
            if not self.face.is_deferred:
                numbers = [run.view(name).position for run in (self, base)]
                self._same(f"the number of the last change of {name}", *numbers)

    def compare_at_the_end(self, base: _Run) -> None:
        """The same document, and the rows that evaluation finds in it."""
        self._same("the document", self.tree.xml(), base.tree.xml())
        if self.face.is_deferred:
            self.compare_rows(base)

    def compare_with_evaluation(self) -> None:
        """The maintained rows equal those of newly created views."""
        tree = self.tree.nodes()
        for name, query in self.queries.items():
            found = _rows(self.view(name))
            if Counting.refusal(query.pattern) is None:
                fresh = Counting(tree, query.pattern, CountingEngine(tree))
                self._same(f"the rows of {name}, counted anew", found, _counted(fresh.rows()))
            if Algebraic.refusal(query.pattern) is None:
                anew = _counted(Algebraic(tree, query.pattern).rows())
                self._same(f"the rows of {name}, evaluated anew", found, anew)

    def _same(self, what: str, found: Any, wanted: Any) -> None:
        if found == wanted:
            return
        if isinstance(found, Counter) and isinstance(wanted, Counter):
            found, wanted = found - wanted, wanted - found
            raise Broken(f"{self.face}: {what}: {_few(found)} too many, {_few(wanted)} missing")
        raise Broken(f"{self.face}: {what}: found {found!r}, wanted {wanted!r}"[:1000])


def _few(rows: Counter[Any]) -> list[Any]:
    return list(rows)[:5]


def _rows(view: MaintainedView) -> Counter[Any]:
    return _counted(view.rows())


def _counted(rows: Any) -> Counter[Any]:
    return Counter((row.values_, row.count) for row in rows)


def _values(view: MaintainedView) -> Counter[Any]:
    return Counter(row.values_ for row in view.rows())


def _told(changes: list[Change], is_counted: bool) -> Counter[Any]:
    def shown(row: Row | None) -> object:
        if row is None:
            return None
        return (row.values_, row.count) if is_counted else row.values_

    return Counter((c.op, shown(c.row), shown(c.before), c.time) for c in changes)


# Reduction ----------------------------------------------------------------------------------------


def smaller_differential(case: DifferentialCase) -> Iterator[DifferentialCase]:
    """Reduced cases, the greatest reductions first."""
    cuts: tuple[tuple[str, Callable[[Any], Iterator[Any]]], ...] = (
        ("faces", _shorter),
        ("queries", _shorter),
        ("steps", _shorter),
    )
    if case.padding:
        yield replace(case, padding=0)
        yield replace(case, padding=case.padding // 2)
    for name, cut in cuts:
        for fewer in cut(getattr(case, name)):
            if fewer:
                yield replace(case, **{name: fewer})
    for number, step in enumerate(case.steps):
        for inside in filter(None, _shorter(tuple(step.get("batch", ())))):
            steps = (*case.steps[:number], {"batch": list(inside)}, *case.steps[number + 1 :])
            yield replace(case, steps=steps)
    for number, face in enumerate(case.faces):
        for simpler in (
            replace(face, cache="memory"),
            replace(face, is_deferred=False),
            replace(face, kind="document"),
        ):
            if simpler != face:
                faces = (*case.faces[:number], simpler, *case.faces[number + 1 :])
                yield replace(case, faces=faces)


def _shorter(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for number in reversed(range(len(items))):
        yield (*items[:number], *items[number + 1 :])
