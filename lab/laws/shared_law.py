"""Law 9: a view that shares a plan has what it has alone.

    document with many views  =  one document for each view, fed with the same updates

Compared after every step, for each view: its rows with their counts, its changes (operation, row,
row before, time, cause, position, finality), and at some steps its truth and the status of rows.

A case is one shape or several (paths from streams, joins, times, `or`, `not`, aggregates, order,
nodes in rows) that have parts or groups in common, constants for its members, and steps: watching,
unwatching, another query for a view, feeding, statements, ends of streams, calls for further
streams, the clock, batches that are kept or rolled back, and messages that replace others, delete
others or are taken back. The shared document shares plans from two views on; in some cases because
the user asks for it. In some cases it starts again from a snapshot between two steps, which the
others never do; nor do these see batches that are rolled back. In some cases it finds the relations
that a message concerns by an automaton, and has the deadlines of all joins in one heap, as
documents with many views do. The others never do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import AxlogError, UndecidedError, UpdateError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.log_records import settings_of
from axlog.live.options import Options
from axlog.live.recovery import load_parts, snapshot_parts
from axlog.views.change import Change
from lab.laws.shared_cases import TEXTS, SharedCase, Step


class _Side:
    """A document, and what its views emit."""

    def __init__(self, case: SharedCase, share_from: int | None) -> None:
        self.doc = Document(
            case.document,
            facts=case.facts,
            options=Options(**dict(case.options)),  # type: ignore[arg-type]
        )
        self._case = case
        self._share_from = share_from
        self._set()
        self.emitted: dict[str, list[Any]] = {}

    def _set(self) -> None:
        inside, share_from = maintained(self.doc), self._share_from
        inside.families.share_from = share_from
        inside.families.is_requested = self._case.is_requested and share_from is not None
        if share_from is not None and self._case.is_many:
            inside.many_relations, inside.few_joins = 1, 0

    def apply(self, step: Step) -> str:
        """Apply a step; the code of the error if it is refused."""
        try:
            self._apply(step)
        except AxlogError as error:
            return error.code
        return ""

    def _apply(self, step: Step) -> None:
        doc = self.doc
        match step:
            case "watch", name, query, *parameters:
                doc.watch(query, name, parameters=dict(*parameters))
                self._subscribe(name)
            case "unwatch", name:
                doc.unwatch(name)
            case "change", name, query:
                self._note(doc.change(name, query))
            case "feed", stream, message, time:
                self._note(doc.feed(stream, message, at=time))
            case "end", stream, time:
                self._note(doc.end(stream, at=time))
            case "open", stream:
                self._note(doc.update(f"insert node {self._case.call(stream)} into /r/{stream}"))
            case "advance", time:
                self._note(doc.advance(time))
            case "update", statement:
                self._note(doc.update(statement))
            case "delete", stream, query, time:
                self._note(doc.delete(stream, query, at=time))
            case "retract", stream, number:
                self._note(doc.retract(stream, number))
            case ("restart",):
                self._restart()
            case "batch", is_kept, feeds:
                self._batch(is_kept, feeds)

    def _subscribe(self, name: str) -> None:
        emitted = self.emitted.setdefault(name, [])
        if self._case.is_heard:
            self.doc.view(name).subscribe(lambda change: emitted.append(_plain(change)))

    def _note(self, changes: list[Change]) -> None:
        """Note what an update returns, if nobody subscribes: no view is made for that."""
        for change in changes if not self._case.is_heard else ():
            assert change.view is not None
            self.emitted[change.view].append(_plain(change))

    def _restart(self) -> None:
        """Continue with a document that is loaded from a snapshot of this one."""
        options = dict(self._case.options) | {"facts": list(self._case.facts)}
        if self._case.is_requested:
            options["share"] = "always"
        settings = settings_of("", options, asdict(DEFAULT_LIMITS))
        self.doc = load_parts(snapshot_parts(self.doc, settings, {}), 1).document
        self._set()
        for name in self.doc.views:
            self._subscribe(name)

    def _batch(self, is_kept: bool, feeds: tuple[Step, ...]) -> None:
        try:
            with self.doc.batch():
                for _, stream, message, time in feeds:
                    self.doc.feed(stream, message, at=time)
                if not is_kept:
                    raise _RolledBackError
        except _RolledBackError:
            pass

    def rows(self, name: str) -> Any:
        try:
            return [(tuple(row.values_), row.key, row.count) for row in self.doc.view(name).rows()]
        except AxlogError as error:
            return error.code

    def asked(self, name: str, texts: Sequence[str]) -> Any:
        """The truth of a view, and the status of rows with these values."""
        view = self.doc.view(name)
        rows = [{column: value} for column in view.columns for value in texts]
        found: list[Any] = []
        for row in (None, *rows):
            try:
                found.append(view.truth if row is None else view.status(row))
            except UndecidedError:
                found.append("undecided")
            except UpdateError as error:
                found.append(error.code)
        return found


class _RolledBackError(Exception):
    pass


def _plain(change: Change) -> Any:
    values = tuple(change.row.values_)
    before = None if change.before is None else (change.before.values_, change.before.count)
    return (change.op, values, change.key, change.row.count, before, change.microseconds,
            change.origin, change.position, change.final)  # fmt: skip


def check_shared(case: SharedCase) -> Counter[str]:
    """Compare a document with many views and documents with one view each."""
    pair = _Pair(case)
    for step in case.steps:
        pair.take(step)
        pair.compare(step)
    return pair.summary()


class _Pair:
    """The shared document, and one document for each view."""

    def __init__(self, case: SharedCase) -> None:
        self._case = case
        self._shared = _Side(case, 2)
        self._alone: dict[str, _Side] = {}
        self._done: list[Step] = []
        self._seen: Counter[str] = Counter()
        self._lacks_messages = dict(case.options).get("keep") == "needed"

    def take(self, step: Step) -> None:
        match step[0]:
            case "ask":
                self._ask(step)
            case "watch":
                self._watch(step)
            case "unwatch":
                if self._alone.pop(step[1], None) is not None:
                    assert self._shared.apply(step) == ""
            case "restart":
                assert self._shared.apply(step) == ""
                self._seen["restarts"] += 1
            case "change":
                if step[1] in self._alone:
                    one, other = self._shared.apply(step), self._alone[step[1]].apply(step)
                    assert one == other, f"{step}: {one!r} != {other!r}"
            case "batch", False, _:  # a view alone never sees what is rolled back
                self._shared.apply(step)
                self._seen["batches rolled back"] += 1
            case _:
                self._done.append(step)
                refused = self._shared.apply(step)
                for name, side in self._alone.items():
                    other = side.apply(step)
                    assert refused == other, f"{step} {name}: {refused!r} != {other!r}"

    def _ask(self, step: Step) -> None:
        names = list(self._alone)
        texts: Sequence[str] = TEXTS
        if len(step) > 1:  # one view and one value; questions cost more than all else
            names = names[step[1] % max(len(names), 1) :][:1]
            texts = TEXTS[step[1] // 5 % 3 :][:1]
        for name in names:
            side = self._alone[name]
            found, alone = self._shared.asked(name, texts), side.asked(name, texts)
            if found != alone and self._lacks_messages:
                # the tables of the plan may decide more, as a document with all messages does
                exact = self._with_messages(name).asked(name, texts)
                alone = [
                    right if one == right else other
                    for one, other, right in zip(found, alone, exact, strict=True)
                ]
            for one, other in zip(found, alone, strict=True):
                is_refused = other == "AX307"
                if one == "AX307" and self._lacks_messages and self._seen["restarts"]:
                    continue  # saved states do not say which key values were forgotten
                assert one == other or is_refused, f"{step} {name}: {one} != {other}"

    def _with_messages(self, name: str) -> _Side:
        """A document with this view alone that keeps all messages."""
        options = dict(self._case.options) | {"keep": "all"}
        side = _Side(replace(self._case, options=tuple(options.items())), None)
        for step in self._case.steps:
            if step[:2] == ("watch", name):
                side.apply(step)
        for step in self._done:
            side.apply(step)
        return side

    def _watch(self, step: Step) -> None:
        side = _Side(self._case, None)
        for before in self._done:
            side.apply(before)
        one, other = self._shared.apply(step), side.apply(step)
        if one == "" and other == "AX307":
            self._shared.apply(("unwatch", step[1]))  # more than a view alone can do
        else:
            assert one == other, f"{step}: {one!r} != {other!r}"
            if not one:
                self._alone[step[1]] = side
                self._seen["views compared"] += 1
        self._seen[f"watch {one}"] += 1

    def compare(self, step: Step) -> None:
        """Compare the rows and the changes of every view."""
        self._seen["comparisons"] += len(self._alone)
        for name, side in self._alone.items():
            assert self._shared.rows(name) == side.rows(name), f"{step} {name}"
            one, other = self._shared.emitted[name], side.emitted[name]
            assert one == other, f"{step} {name}: {one} != {other}"

    def summary(self) -> Counter[str]:
        """What the case had: the views that were compared with themselves alone, and how often."""
        families = maintained(self._shared.doc).families
        self._seen["histories"] += 1
        self._seen["members"] += len(families.members)
        arrangements = maintained(self._shared.doc).engine.arrangements or {}
        self._seen["shared groups"] += sum(len(one.users) > 1 for one in arrangements.values())
        self._seen.update(f"family {family.how}" for family in families.by_shape.values())
        every_family = families.by_shape.values()
        self._seen["families with groups"] += sum(
            one.kept.groups is not None for one in every_family
        )
        for side in self._alone.values():
            every = (change for changes in side.emitted.values() for change in changes)
            self._seen.update(f"emitted {change[0]}" for change in every)
        return self._seen
