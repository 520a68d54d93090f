"""The running documents of a pipeline: apply updates, return the net changes of a batch.

An entry under `documents:` is one document, or (with `document_key`) one for every key in messages.
Each document has its own streams and clock, and is created by its first message. Rows of such views
have the key as their first column, `document`. A deletion goes to every document, and so does an
end, also to documents created later. Time advances for all documents alike: at the end of a batch
each gets the latest time of any.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import groupby
from typing import Any

from axlog.connect.kinds import DOCUMENT_COLUMN, Column, ViewShape
from axlog.connect.message_paths import MessagePath
from axlog.connect.protocol import Refusal
from axlog.document.parser import DEFAULT_LIMITS, Element, parse
from axlog.document.stream_update import LISTS, StreamUpdate, retracted
from axlog.document.times import microseconds, start_of
from axlog.errors import AxlogError, StreamError
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.log_records import settings_of
from axlog.live.options import Options
from axlog.match.batch_parser import chunks
from axlog.pipeline.documents import document_of, horizon_of, may_delete, types_of
from axlog.pipeline.families import FamilyView
from axlog.pipeline.model import PipelineModel
from axlog.runtime.checkpoint import Input
from axlog.runtime.engine import DocumentEngine, load, net_by_view
from axlog.runtime.family_members import PARAMETERS, FamilyMembers
from axlog.views.change import Change, headed_row
from axlog.views.family_names import family_of, is_member, is_pilot
from axlog.views.view_query import parse_view
from axlog.views.why import named_message

TIME = "time"
"""The action of an input that advances the time (`settings: {clock: wall}`)."""
_MANY = "documents"
"""The part of a snapshot of many documents that belongs to none of them."""


class Instances:
    """One entry under `documents:`: one document, or one for every key."""

    def __init__(
        self,
        model: PipelineModel,
        name: str,
        saved: Mapping[str, bytes] | None = None,
        gone: Iterable[str] = (),
    ) -> None:
        """`saved` is the state to resume from; `gone` are views that were dropped before."""
        self.model = model.documents[name]
        self.name = name
        self._settings = model.settings_of(name)
        self._times = model.settings.times
        self._namespaces = model.namespaces
        self._types = types_of(self.model, model.directory) or None
        self._root = document_of(self.model, model.directory)
        is_dated = model.settings.clock == "wall" or self._times == "dates"
        self.horizon = horizon_of(self.model, self._root, is_dated)
        self.full = {view: model.full_name(name, view) for view in self.model.views}
        families = {
            view: FamilyView(view, written, model.directory)
            for view, written in self.model.views.items()
            if written.for_each is not None
        }
        self.members = FamilyMembers(families, model.namespaces)
        self.queries = {
            view: self.members.queries[view]
            if view in families
            else parse_view(
                written.query, model.namespaces, written.language, maintainer=written.maintainer
            )
            for view, written in self.model.views.items()
        }
        for view in gone:
            self.queries.pop(view, None)
        key = self.model.document_key
        self._key = None if key is None else MessagePath.parse(key, model.namespaces)
        self._engines: dict[str, DocumentEngine] = {}
        self._ended: dict[str, StreamUpdate] = {}
        self.clock = start_of(None, self._times)
        self.refused = 0
        self.origins: dict[str, str] | None = None  # of messages, by their names in `why`
        if saved is not None:
            self._load(saved)
        elif self._key is None:
            self._engines[""] = self._make()

    # Shapes ---------------------------------------------------------------------------------------

    def shapes(self) -> list[ViewShape]:
        """The views as sinks see them."""
        return [
            ViewShape.of(
                self.full[view], query, self._key is not None, self._times, self._head(view)
            )
            for view, query in self.queries.items()
        ]

    def _head(self, view: str) -> Sequence[Column]:
        family = self.members.families.get(view)
        return () if family is None else family.shown

    @property
    def documents(self) -> Mapping[str, Document]:
        """The documents by their keys; a single one has the key ''."""
        return {key: engine.document for key, engine in list(self._engines.items())}

    def rows(self) -> list[Change]:
        """Return the present rows of all views, as insertions."""
        return [
            self._named(change, key)
            for key, engine in self._engines.items()
            for change in engine.rows()
        ]

    @property
    def is_single(self) -> bool:
        """Whether there is one document, not one for every key."""
        return self._key is None

    def is_open(self, stream: str) -> bool:
        """Whether a stream can still bring something."""
        if self._key is not None:
            return stream not in self._ended
        return stream not in maintained(self._engines[""].document).tree.ended

    def forget(self, full: str) -> bool:
        """Drop a view and tune the streams that feed it; return whether it existed."""
        view = next((view for view, name in self.full.items() if name == full), None)
        if view is None or view not in self.queries:
            return False
        del self.queries[view]
        for engine in self._engines.values():
            for member in [m for m in engine.members if family_of(m) == view]:
                engine.forget_member(member)
            if view not in self.members.families:
                engine.forget(view)
        self.members.rows.get(view, {}).clear()
        return True

    @property
    def due(self) -> int | None:
        """Return the time after which some open match can no longer be completed; None: never."""
        found = [engine.due for engine in self._engines.values()]
        return min((each for each in found if each is not None), default=None)

    # Feeding --------------------------------------------------------------------------------------

    def feed(self, inputs: Sequence[Input]) -> tuple[list[Change], list[Refusal]]:
        """Apply a batch of updates; return the net changes and the rejected updates.

        Rows of parameter tables cut it into parts: a member sees the updates after it.
        """
        changes: list[Change] = []
        refused: list[Refusal] = []
        count = 0
        for is_table, part in groupby(inputs, lambda one: one.update.action == PARAMETERS):
            feed = self._feed_tables if is_table else self._feed_part
            made, odd = feed(list(part))
            changes += made
            refused += odd
            count += 1
        self.refused += len(refused)
        return (list(net_by_view(changes)) if count > 1 else changes), refused

    def _feed_tables(self, inputs: Sequence[Input]) -> tuple[list[Change], list[Refusal]]:
        """Add and remove members of families."""
        refused: list[Refusal] = []
        for one in inputs:
            update = one.update
            refused += [
                Refusal(update.stream, "", update.origin, error.describe())
                for error in self.members.update(update, list(self._engines.values()))
            ]
        found = [(key, change) for key, each in self._engines.items() for change in each.changes()]
        return [self._named(change, key) for key, change in found], refused

    def _feed_part(self, inputs: Sequence[Input]) -> tuple[list[Change], list[Refusal]]:
        refused: list[Refusal] = []
        entered: dict[str, DocumentEngine] = {}
        with ExitStack() as batches:
            for one, update, root in self._parsed(inputs):
                try:
                    if update.action == TIME:
                        self.clock = max(self.clock, self.clock if one.at is None else one.at)
                        self._pass_time(batches, entered)
                        continue
                    for key in self._meant(update):
                        engine = self._entered(key, batches, entered)
                        engine.take(_at_place(one, update, engine.clock), root)
                        if self.origins is not None and update.action != LISTS:
                            status = streams_of(engine.document).engine.status(update.stream)
                            name = named_message(status.messages, update.stream)
                            self.origins[name] = update.origin
                    self._note(one)
                except AxlogError as error:
                    refused.append(
                        Refusal(update.stream, update.content, update.origin, error.describe())
                    )
            if self._key is not None:
                self._pass_time(batches, entered)
        found = [(key, change) for key, each in entered.items() for change in each.changes()]
        return [self._named(change, key) for key, change in found], refused

    def _parsed(
        self, inputs: Sequence[Input]
    ) -> Iterator[tuple[Input, StreamUpdate, Element | None]]:
        """Yield the updates with their times; of small messages, parsed together, the roots."""
        for chunk in chunks(inputs):
            updates = [_timed(one) for one in chunk]
            roots: list[Element | None] = [None] * len(chunk)
            if self._key is None and len(chunk) > 1:
                roots = self._engines[""].roots(updates)
            yield from zip(chunk, updates, roots, strict=True)

    def _entered(
        self, key: str, batches: ExitStack, entered: dict[str, DocumentEngine]
    ) -> DocumentEngine:
        """Return the engine of a document, within its batch."""
        engine = self._engines[key]
        if key not in entered:
            entered[key] = engine
            batches.enter_context(engine.batch())
        return engine

    def _note(self, one: Input) -> None:
        at = one.placed if one.at is None else one.at
        if at is not None and at > self.clock:
            self.clock = at
        if self._key is not None and one.update.action == "end":
            self._ended[one.update.stream] = _timed(one)

    def _meant(self, update: StreamUpdate) -> list[str]:
        """Return the keys of the documents of an update; a message may create its document."""
        if self._key is None:
            return [""]
        if update.action == "delete" and retracted(str(update.content)) is not None:
            raise StreamError(
                "AX422",
                "a message is retracted by its number in one document, and there is one for each"
                f" {self.model.document_key}",
                advice="delete it by a pattern",
            )
        if update.action != "insert":
            return list(self._engines)
        key = self._key.value(parse(update.content).root)
        if not key:
            raise StreamError(
                "AX407",
                "the message does not name its document",
                expected=f"a value at {self.model.document_key or ''}",
            )
        if key not in self._engines:
            self._engines[key] = engine = self._make()
            engine.begin()
        return [key]

    def _pass_time(self, batches: ExitStack, entered: dict[str, DocumentEngine]) -> None:
        """Advance every document to the latest time, and emit the resulting `never` changes."""
        for key, engine in self._engines.items():
            if engine.clock < self.clock:
                self._entered(key, batches, entered).advance(self.clock)

    # Making ---------------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        """Return the options of the document, as plain data.

        If a stream may delete, everything that arrives is checked, as on Spark. With `keep: needed`
        only the messages that a deletion can reach are kept whole.
        """
        is_checked = may_delete(self.model, self._root)
        return {
            "namespaces": dict(self._namespaces),
            "keep": self._settings.keep,
            "validate": "all" if is_checked else self._settings.validation,
            "tune": self._tuning(),
            "collect": self._settings.collect,
            "cache": self._settings.cache,
            "memory": self._settings.memory,
            "on_violation": self._settings.on_violation,
            "never": "joins",  # as emitted by all engines
            "times": self._times,
            **({"share": "always"} if self.members else {}),
        }

    def new(self) -> Document:
        """Return a document as it is created for a new key."""
        return self._make().document

    def _make(self) -> DocumentEngine:
        document = Document(
            deepcopy(self._root.getroottree()),  # with comments and instructions outside the root
            facts=self.model.facts,
            types=self._types,
            options=Options(**self._options()),
        )
        engine = self._watching(document)
        self.members.watch_all(engine)
        for update in self._ended.values():
            engine.take(update)
        return engine

    def _watching(self, document: Document) -> DocumentEngine:
        """Return the engine of a document with exactly the views of the file."""
        known = document.views
        own = [name for name in self.queries if name not in self.members.families]
        for name in own:
            query = self.queries[name]
            if name not in known:
                written = self.model.views[name]
                document.watch(
                    query,
                    name,
                    maintainer=written.maintainer,
                    work=written.work,
                    on_value_error=written.on_value_error,
                )
        if self._options()["keep"] == "needed":
            self.members.watch_pilots(document)
        mine = [name for name in known if family_of(name) in self.members.families]
        return DocumentEngine(document, own, [name for name in mine if not is_pilot(name)])

    # Saving ---------------------------------------------------------------------------------------

    def saved(self) -> dict[str, bytes]:
        """Return all documents as parts of bytes; of many, each part is named with its document's
        key.
        """
        limits = asdict(DEFAULT_LIMITS)
        made = settings_of("", {**self._options(), "facts": list(self.model.facts)}, limits)
        if self._key is None:
            return self._engines[""].parts(made)
        ended = [
            [stream, None if one.at is None else microseconds(one.at), one.origin]
            for stream, one in self._ended.items()
        ]
        parts = {
            _MANY: json.dumps(
                {"clock": self.clock, "ended": ended, "members": self.members.names()}
            ).encode()
        }
        for key, engine in self._engines.items():
            for name, data in engine.parts(made).items():
                parts[json.dumps([key, name])] = data
        return parts

    def _load(self, parts: Mapping[str, bytes]) -> None:
        """Resume from what `saved` wrote."""
        if self._key is None:
            self._engines[""] = self._watching(load(parts, self._types))
            self.members.restore(self._engines[""].members)
            self.clock = self._engines[""].clock
            return
        known = json.loads(parts[_MANY])
        self.members.restore(known.get("members", ()))
        self.clock = known["clock"]
        for stream, at, origin in known["ended"]:
            time = None if at is None else timedelta(microseconds=at)
            self._ended[stream] = StreamUpdate(stream, "end", "", time, origin)
        each: dict[str, dict[str, bytes]] = {}
        for name, data in parts.items():
            if name != _MANY:
                key, part = json.loads(name)
                each.setdefault(key, {})[part] = data
        self._engines = {key: self._watching(load(mine, self._types)) for key, mine in each.items()}

    def _tuning(self) -> str | dict[str, float | bool]:
        """Return when a document is tuned; one of many documents only if the file asks for it."""
        tune = self._settings.tune
        if isinstance(tune, str):
            return "off" if self._key is not None else tune
        given = {"messages": tune.messages, "seconds": tune.seconds}
        often: dict[str, float | bool] = {n: each for n, each in given.items() if each is not None}
        if tune.exact:
            often["exact"] = True
        return often or "off"

    def _named(self, change: Change, key: str) -> Change:
        """Return a change as it leaves the pipeline: with the view's full name, and its
        document.
        """
        if is_member(change.view or ""):
            change = self.members.headed(change)
        full = self.full[change.view or ""]
        if self._key is None:
            return replace(change, view=full)
        column, before = DOCUMENT_COLUMN.name, change.before
        old = None if before is None else headed_row(before, column, key)
        return replace(change, view=full, row=headed_row(change.row, column, key), before=old)


def _at_place(one: Input, update: StreamUpdate, clock: int) -> StreamUpdate:
    """Return an update with its time: without one it gets that of its place, or the clock's."""
    if one.at is not None or one.placed is None or one.placed <= clock:
        return update
    return replace(update, at=timedelta(microseconds=one.placed))


def _timed(one: Input) -> StreamUpdate:
    update = one.update
    at = None if one.at is None else timedelta(microseconds=one.at)
    return StreamUpdate(update.stream, update.action, update.content, at, update.origin)
