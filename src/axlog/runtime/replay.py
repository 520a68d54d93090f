"""Explain why a row is there by reading the input again, for engines that keep no documents.

Sources are read by position (`connect/protocol.py`), and what was read once can be read again from
the beginning. A document of the pipeline is fed again in this process, without sinks, up to the
present, and queried.

First it is fed only messages whose text contains a value of the row. A derivation found this way is
one of the whole input too, unless the query has a negation or something is deleted. If none is
found, or if that does not hold, everything is fed.

Not handled: sources that no longer have their beginning, or that keep a log which one process
writes; more than `MOST` messages if everything has to be fed. Both are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

from axlog.connect.protocol import Position, Reading, Source
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import Time, microseconds, plain
from axlog.errors import AxlogError, PipelineError
from axlog.future.grounding import has_not
from axlog.live.internals import maintained_view
from axlog.live.view import View
from axlog.pipeline.documents import calls_of, document_of
from axlog.pipeline.families import view_query
from axlog.pipeline.model import PipelineModel
from axlog.pipeline.settings import Settings
from axlog.runtime.embedded import Runner
from axlog.runtime.instances import Instances
from axlog.views.why import Derivation

MOST = 100_000
"""Maximum number of messages that are fed again."""
AGAIN = frozenset({"delta", "directory", "jsonl", "kafka", "parquet"})
"""Kinds of sources that any process can read again from their beginning."""


class Replay:
    """A pipeline's input, read again to answer questions."""

    def __init__(self, model: PipelineModel, most: int = MOST) -> None:
        self._model = model
        self._most = most
        self._lock = Lock()

    def why(self, document: str, view: str, row: Mapping[str, Any]) -> list[Derivation]:
        """Return the row's derivations; with many documents its first column names the document."""
        given = dict(row)
        many = self._model.documents[document].document_key is not None
        key = str(given.pop("document", "")) if many else ""
        values = {value.encode() for value in given.values() if isinstance(value, str)} - {b""}
        with self._lock:
            if values and self._only_adds(document, view):
                with self._fed(document, values) as runner:
                    found = _asked(runner, document, key, view, given)
                if found:
                    return found
            with self._fed(document, set()) as runner:
                return _asked(runner, document, key, view, given)

    def plain(self, document: str, view: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the derivations for JSON, or the reason why there are none."""
        try:
            found = self.why(document, view, row)
        except AxlogError as error:
            return {"reason": error.message}
        return {
            "derivations": [
                [{"pattern": m.pattern, "path": m.path, "time": plain(m.time), "origin": m.origin}
                 for m in one.matched]
                for one in found[:5]
            ]
        }  # fmt: skip

    def absent(
        self, document: str, view: str, row: Mapping[str, Any], clock: Time
    ) -> dict[str, Any]:
        """Return the truth of a row that is not there, the reasons, and its parts, for JSON.

        Messages that contain no value of the row are read only if the others give no verdict.
        """
        given = {name: value for name, value in row.items() if value is not None}
        many = self._model.documents[document].document_key is not None
        key = str(given.pop("document", "")) if many else ""
        values = {value.encode() for value in given.values() if isinstance(value, str)} - {b""}
        found: dict[str, Any] = {}
        try:
            with self._lock:
                for some in (values, set()) if values else (set(),):
                    with self._fed(document, some) as runner:
                        found = _why_absent(runner, document, key, view, given, clock)
                    if found.get("truth") == "never":
                        break
        except AxlogError as error:
            return {"truth": None, "reason": error.message}
        return found

    def _only_adds(self, document: str, view: str) -> bool:
        """Whether no message can remove a derivation."""
        written = self._model.documents[document]
        query = written.views[view]
        parsed = view_query(view, query, self._model.namespaces, self._model.directory)
        calls = calls_of(document_of(written, self._model.directory)).values()
        if not parsed.is_pattern:
            return False
        return not has_not(parsed.pattern) and all(
            c.get("deletes", "no") == "no" and c.get("replace") is None for c in calls
        )

    @contextmanager
    def _fed(self, document: str, values: set[bytes]) -> Iterator[Runner]:
        """Return a runner of one document that has read everything, or all messages with one of the
        values.
        """
        runner = Runner(_alone(self._model, document), once=True)
        runner.instances[document].origins = {}
        try:
            for feed in runner.feeds if values else ():
                feed.source = _With(feed.plan.open(runner.model), values)
            while runner.round() or not runner.is_done:
                if runner.progress.messages > self._most:
                    raise PipelineError(
                        "AX869", f"this would feed more than {self._most:,} messages again"
                    )
            yield runner
        finally:
            runner.close()


class _With:
    """A source without the insertions whose text contains none of some values."""

    def __init__(self, source: Source, values: set[bytes]) -> None:
        self._source = source
        self._values = values

    def read(self, position: Position, limit: int) -> Reading:
        read = self._source.read(position, limit)
        kept = [update for update in read.updates if self._has_value(update)]
        return Reading(kept, read.position, (), more=read.more or bool(read.updates))

    def close(self) -> None:
        self._source.close()

    def _has_value(self, update: StreamUpdate) -> bool:
        content = update.content
        text = content.encode() if isinstance(content, str) else content
        return update.action != "insert" or any(value in text for value in self._values)


def _asked(
    runner: Runner, document: str, key: str, view: str, row: Mapping[str, Any]
) -> list[Derivation]:
    instances = runner.instances[document]
    found = instances.documents.get(key)
    return [] if found is None else [_placed(one, instances) for one in found.view(view).why(row)]


def _why_absent(
    runner: Runner, document: str, key: str, view: str, row: Mapping[str, Any], clock: Time
) -> dict[str, Any]:
    instances = runner.instances[document]
    found = instances.documents.get(key)
    if found is None:
        return {"truth": None, "reason": "no message of this document can be read again"}
    if microseconds(clock) > microseconds(found.clock):
        found.advance(clock)
    kept = found.view(view)
    return {**kept.why_not(row).to_dict(), "parts": plain_parts(kept, row, instances.origins or {})}


def plain_parts(
    view: View, row: Mapping[str, Any], origins: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the parts of a row that are there, for JSON, with their positions in the sources."""
    known = origins or {}
    return [
        {"pattern": m.pattern, "path": m.path, "time": plain(m.time),
         "origin": known.get(m.origin or "", m.origin)}
        for m in maintained_view(view).parts(row)
    ]  # fmt: skip


def _placed(derivation: Derivation, instances: Instances) -> Derivation:
    """Return the same with the positions in the sources that messages were read from."""
    origins = instances.origins or {}
    matched = (replace(m, origin=origins.get(m.origin or "", m.origin)) for m in derivation.matched)
    return Derivation(tuple(matched))


def _alone(model: PipelineModel, name: str) -> PipelineModel:
    """Return one document of a pipeline without sinks and checkpoint, which keeps everything."""
    document = model.documents[name]
    streams = document.streams.values()
    written = [one.source for one in streams if one.source is not None] + document.sources
    odd = sorted({source.kind for source in written} - AGAIN)
    odd += ["a view" for one in streams if one.view]
    odd += ["a channel" for one in streams if one.channel]
    if odd:
        raise PipelineError("AX869", f"what came from {odd[0]} cannot be read again here")
    views = {
        view: one.model_copy(update={"sinks": [], "channel": None})
        for view, one in document.views.items()
    }
    settings = Settings(batch=model.settings.batch, tune="off", collect="off")
    return model.model_copy(
        update={
            "documents": {name: document.model_copy(update={"views": views, "settings": None})},
            "sinks": {},
            "channels": {},
            "dead_letters": None,
            "settings": settings,
        }
    )
