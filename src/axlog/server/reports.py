"""The live page's model of a pipeline that runs elsewhere, from the reports of its batches.

The driver of a distributed run sees every change, every dead letter and counts, but not the
documents. Rows are accumulated from the changes (a bounded number is kept; the counts stay exact),
possible rows are those that the engines report, and "why" reads the input again
(`runtime/replay.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from threading import RLock
from typing import Any

from lxml import etree

from axlog.connect.kinds import ViewShape
from axlog.connect.protocol import Refusal
from axlog.document.times import plain, shown
from axlog.errors import QueryError
from axlog.live.document import Document
from axlog.pipeline.documents import document_of
from axlog.pipeline.families import FamilyView, view_query
from axlog.pipeline.model import PipelineModel
from axlog.query.columns import Columns
from axlog.runtime.instances import Instances
from axlog.runtime.progress import Lagging
from axlog.runtime.replay import Replay
from axlog.server.history import History
from axlog.server.pipelines import good_of, letters_of, system_of
from axlog.server.plots import plotted
from axlog.server.row_history import row_name, with_parts
from axlog.server.row_lists import Asked, Listing, Prospect, by_deadline
from axlog.server.summaries import LARGEST, NODES, POSSIBLE, Letters, types_of
from axlog.views.change import Change

_CALL = "{urn:axlog}call"
_NOTE = "this run resumed from a checkpoint: rows from before it are not listed here"


@dataclass(slots=True)
class Outlook:
    """The possible rows of a view, as reported by engines."""

    count: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    reason: str | None = None


@dataclass(slots=True)
class BatchSummary:
    """The report of one batch of one document."""

    document: str
    changes: Iterable[Change] = ()
    refused: Iterable[Refusal] = ()
    streams: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # messages, kept
    state: int = 0
    microseconds: int = 0  # its clock
    outlooks: Mapping[str, Outlook] = field(default_factory=dict)
    batch: int = (
        1  # of the run; if the first reported batch is later, the run resumed from a checkpoint
    )


@dataclass(slots=True)
class _View:
    query: str
    columns: tuple[str, ...]
    types: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    typed: Columns | None = None
    rows: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    count: int = 0
    outlook: Outlook | None = None

    def take(self, change: Change) -> None:
        key = tuple(map(str, change.row.values_))
        if change.op == "delete":
            self.count -= 1
            self.rows.pop(key, None)
            return
        if change.op == "update" and change.before is not None:
            self.rows.pop(tuple(map(str, change.before.values_)), None)
        self.count += change.op == "insert"
        if change.op != "never" and len(self.rows) < LARGEST:
            self.rows[key] = change.row.to_dict()


@dataclass(slots=True)
class _Document:
    views: dict[str, _View]
    streams: dict[str, list[int]]  # messages, kept, refused
    state: int = 0
    microseconds: int = 0  # its clock
    first: int | None = None  # the first reported batch
    wanted: dict[str, list[str]] = field(default_factory=dict)  # by stream


class Reported:
    """A pipeline known by its reports."""

    def __init__(self, model: PipelineModel, engine: str, replay: Replay | None = None) -> None:
        self.engine = engine
        self.activity = ""  # its activity, while there is nothing to show yet
        self.lagging: Sequence[Lagging] = ()  # unreachable sources and sinks
        self.held = 0  # updates that wait for a slower stream
        self.letters: Letters | None = letters_of(model)
        self.sinks: Callable[[], Iterable[Mapping[str, Any]]] = tuple  # in other processes
        self.good = good_of(model)
        self.history = History()
        self.system = system_of(model)
        self._model = model
        self._replay = replay
        self._lock = RLock()
        self._documents = {name: self._made(name) for name in model.documents}

    def _made(self, name: str) -> _Document:
        written = self._model.documents[name]
        many = written.document_key is not None
        views = {}
        for view, one in written.views.items():
            query = view_query(view, one, self._model.namespaces, self._model.directory)
            head = (
                () if one.for_each is None else FamilyView(view, one, self._model.directory).shown
            )
            shape = ViewShape.of(view, query, many, parameters=head)
            names = tuple(c.name for c in shape.columns)
            known = types_of(query.columns)
            types = tuple(known.get(name, "any") for name in names)
            views[view] = _View(one.query.strip(), names, types, tuple(query.key), query.columns)
        root = document_of(written, self._model.directory)
        streams = [str(call.get("stream")) for call in root.iter(_CALL)]
        made = _Document(views, {stream: [0, 0, 0] for stream in streams})
        instances = Instances(self._model, name)
        for change in instances.rows():  # the initial rows of the document
            views[_short(name, change)].take(change)
        for kept in instances.documents.values():
            made.wanted = {stream: list(status.wanted) for stream, status in kept.streams().items()}
        return made

    def take(self, report: BatchSummary) -> None:
        """Add a batch."""
        with self._lock:
            document = self._documents[report.document]
            for change in sorted(report.changes, key=lambda change: change.microseconds):
                name = _short(report.document, change)
                view = document.views[name]
                self.history.record(report.document, change, name, view.typed, view.key)
                view.take(change)
            for stream, (messages, kept) in report.streams.items():
                counts = document.streams.setdefault(stream, [0, 0, 0])
                counts[0] += messages
                counts[1] += kept
            for refused in report.refused:
                document.streams.setdefault(refused.stream, [0, 0, 0])[2] += 1
                self.history.refuse(refused)
            document.first = report.batch if document.first is None else document.first
            document.state = report.state
            document.microseconds = max(document.microseconds, report.microseconds)
            clock = self._clock(document)
            for name, outlook in report.outlooks.items():
                view = document.views[name]
                view.outlook = outlook
                rows = [one["row"] for one in outlook.rows]
                self.history.see_possible(report.document, name, view.key, rows, clock)
            self.history.measure(report.document, report.state)

    # What the page asks for -----------------------------------------------------------------------

    def state(self, asked: Asked) -> dict[str, Any]:
        """Return everything that the page shows without a click."""
        changes, count = self.history.changes()
        letters, refused = self.history.letters()
        with self._lock:
            return {
                "engine": self.engine,
                "says": self.activity,
                "seconds": round(self.history.seconds, 1),
                "changes": changes[:100],
                "changed": count,
                "rate": self.history.rate("changes", count),
                "documents": [self._document(name, one) for name, one in self._documents.items()],
                "shown": self.shown(asked),
                "letters": letters,
                "refused": refused,
                "lagging": [asdict(one) for one in self.lagging],
                "pressure": [{"source": "all sources", "waiting": self.held, "full": False}]
                if self.held
                else [],
                "can_replay": self.letters is not None,
                "system": self.system,
            }

    def _clock(self, document: _Document) -> Any:
        return plain(shown(document.microseconds, self._model.settings.times))

    def _document(self, name: str, document: _Document) -> dict[str, Any]:
        return {
            "name": name,
            "clock": self._clock(document),
            "nodes": None,
            "state": document.state,
            "unit": "bytes in the state store",
            "sizes": self.history.sizes(name),
            "streams": [
                self._stream(name, stream, *counts) for stream, counts in document.streams.items()
            ],
            "views": [
                {"name": view, "count": one.count, "never": self.history.nevers(name, view)[1],
                 "good": self.good.get((name, view)),
                 "types": dict(zip(one.columns, one.types, strict=True))}
                for view, one in document.views.items()
            ],
        }  # fmt: skip

    def _stream(
        self, document: str, name: str, messages: int, kept: int, refused: int
    ) -> dict[str, Any]:
        dropped = max(0, messages - kept - refused)
        return {
            "name": name, "state": "filtered" if dropped else "relevant", "messages": messages,
            "kept": kept, "dropped": dropped, "refused": refused,
            "wanted": self._documents[document].wanted.get(name, []), "last": None,
            "rate": self.history.rate(f"{document}/{name}", messages),
        }  # fmt: skip

    def shown(self, asked: Asked) -> dict[str, Any] | None:
        """Return one view with its rows; None if there is no such view."""
        with self._lock:
            return self._listed(asked)

    def _listed(self, asked: Asked) -> dict[str, Any] | None:
        document = self._documents.get(asked.document)
        view = None if document is None else document.views.get(asked.view)
        if document is None or view is None:
            return None
        listing = self._listing(asked, view)
        return {
            "document": asked.document,
            "view": asked.view,
            "query": view.query,
            "columns": list(view.columns),
            "types": list(view.types),
            "key": list(view.key),
            "good": self.good.get((asked.document, asked.view)),
            "numbers": [] if view.typed is None else list(plotted(view.typed, view.key)),
            "maintainer": self.engine,
            "note": _NOTE if (document.first or 0) > 1 else "",
            **listing.plain(asked),
        }

    def _listing(self, asked: Asked, view: _View) -> Listing:
        never, count = self.history.nevers(asked.document, asked.view)
        rows = [view.rows[key] for key in sorted(view.rows)]
        return Listing(rows, {"true": view.count, "never": count}, _prospect(view), never)

    def lines(self, asked: Asked) -> Iterator[dict[str, Any]]:
        """Yield all lines of a view that the selection has, for an export."""
        with self._lock:
            listing = self._listing(asked, self._view(asked.document, asked.view))
        yield from listing.selected(asked)

    def plot(self, document: str, view: str) -> dict[str, Any]:
        """Return the computed numbers of a view over time."""
        return self.history.plot(document, view)

    def live(self, document: str) -> Document | None:
        """Return None: documents are in other processes."""
        return None

    def _view(self, document: str, view: str) -> _View:
        found = self._documents.get(document)
        if found is None or view not in found.views:
            raise QueryError("AX203", f"there is no view {view[:100]!r}")
        return found.views[view]

    def why(self, document: str, view: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the truth of a row, why, and its history; derivations by reading the input
        again.
        """
        with self._lock:
            kept = self._view(document, view)
            events = self.history.events(document, view, row_name(row, kept.key))
            listing = self._listing(Asked(document, view), kept)
            lines = (line for name in ("true", "never", "possible") for line in listing.each(name))
            found = next((line for line in lines if _has(line["row"], row)), None)
            clock = shown(self._documents[document].microseconds, self._model.settings.times)
        if self._replay is None:
            reason = f"the engine {self.engine} keeps no documents to explain rows"
            known = found or {"row": dict(row), "truth": None}
            return {**known, "reason": reason, "history": events}
        if found is None or found["truth"] != "true":
            said = self._replay.absent(document, view, row, clock)
            history = with_parts(events, said.pop("parts", ()))
            # The run knows more than the input that was read again, and the other way round.
            verdict = said["truth"] or (found or {}).get("truth")
            return {"row": dict(row), **(found or {}), **said, "truth": verdict, "history": history}
        said = self._replay.plain(document, view, found["row"])
        matched = [one for each in said.get("derivations", ())[:1] for one in each]
        return {**found, **said, "history": with_parts(events, matched, is_true=True)}

    def tree(self, document: str) -> dict[str, Any]:
        """Return the document of the file with its calls: messages are kept as bindings only."""
        if document not in self._documents:
            raise QueryError(
                "AX203", f"there is no document {document!r}", expected=", ".join(self._documents)
            )
        root = document_of(self._model.documents[document], self._model.directory)
        left = [NODES]
        return {"root": _element(root, left), "cut": left[0] <= 0}


def _has(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in row and row[name] == value for name, value in wanted.items())


def _short(document: str, change: Change) -> str:
    """Return the name of a change's view within its document."""
    return (change.view or "").removeprefix(f"{document}.")


def _prospect(view: _View) -> Prospect:
    outlook = view.outlook
    if outlook is None:
        return Prospect("true" if view.count else None, reason="not requested yet")
    if outlook.reason is not None:
        return Prospect("true" if view.count else None, reason=outlook.reason)
    truth = "true" if view.count else "possible" if outlook.count else "never"
    return Prospect(truth, outlook.count, sorted(outlook.rows, key=by_deadline)[:POSSIBLE])


def _element(element: Any, left: list[int]) -> dict[str, Any] | None:
    """Return an element of a document that was only parsed."""
    if left[0] <= 0 or not isinstance(element.tag, str):
        return None
    left[0] -= 1
    if element.tag == _CALL:
        return {"call": str(element.get("stream"))}
    below: list[dict[str, Any]] = []
    if element.text and element.text.strip():
        below.append({"text": element.text.strip()[:200]})
    for child in element:
        found = _element(child, left)
        if found is not None:
            below.append(found)
    return {
        "name": etree.QName(element).localname,
        "attributes": [[etree.QName(k).localname, v[:100]] for k, v in element.attrib.items()],
        "below": below,
        "more": False,
    }
