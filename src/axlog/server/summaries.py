"""The live page's model of documents in this process: small summaries, computed on request.

An `Observer` subscribes to views and keeps a bounded history. Rows, trees and possible
rows are truncated for display, so that a page over a view with a million rows costs as much as one
with a hundred. Possible rows are computed for the selected view only, and less often if they are
expensive; not at all if they need a scan of a large document.

A row is explained on request: its truth, the reasons for it or its derivations, and its history.
`Observed` is the interface between the page and any engine; `reports.py` implements it for an
engine that runs elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from threading import Lock
from time import monotonic
from typing import Any, Protocol

from axlog.connect.protocol import Refusal
from axlog.document.times import microseconds, plain
from axlog.document.tree import CALL, DOCUMENT_NODE, ELEMENT, TEXT, Tree
from axlog.errors import AxlogError, QueryError
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view
from axlog.live.streams import DeadLetter
from axlog.live.view import View
from axlog.query.columns import Columns
from axlog.runtime.family_members import FamilyMembers
from axlog.runtime.replay import Replay, plain_parts
from axlog.runtime.system_truth import ViewOutlook
from axlog.server.family_entries import (
    FamilyEntry,
    entries_of,
    entry_shown,
    entry_summary,
    rows_of,
)
from axlog.server.history import History
from axlog.server.plots import plotted
from axlog.server.row_history import row_name, with_parts
from axlog.server.row_lists import Asked, Listing, Prospect, by_deadline
from axlog.views.change import Change, Row
from axlog.views.family_names import is_member, is_pilot
from axlog.views.view import MaintainedView

NODES, POSSIBLE = 400, 1000
LARGEST = 20_000
"""Maximum number of rows that are sorted for the page."""
WALKED = 3_000
"""Maximum number of nodes of a document that is scanned for possible rows."""
_SHARE = 20
"""At most one part in this many of the time is spent on possible rows and on a search."""
_SEARCHES = 16
"""Maximum number of searches in large views whose results are kept."""
_MEMBERS = ""
"""The place of the subscription to members of families, which no view has as its name."""

Documents = Mapping[str, Document] | Callable[[], Mapping[str, Document]]


class Observed(Protocol):
    """An engine as the page sees it."""

    def state(self, asked: Asked) -> dict[str, Any]:
        """Return everything that the page shows without a click."""

    def shown(self, asked: Asked) -> dict[str, Any] | None:
        """Return one view with its rows; None if there is no such view."""

    def why(self, document: str, view: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the derivations of a row: the matched nodes, their times and messages."""

    def tree(self, document: str) -> dict[str, Any]:
        """Return the top of a document's tree, as nested lists."""

    def lines(self, asked: Asked) -> Iterable[dict[str, Any]]:
        """Return all lines of a view that the selection has, for an export."""

    def plot(self, document: str, view: str) -> dict[str, Any]:
        """Return the computed numbers of a view over time."""

    @property
    def sinks(self) -> Callable[[], Iterable[Mapping[str, Any]]]:
        """The sinks of the pipeline: name, changes written, and the seconds that it took."""

    @property
    def letters(self) -> Letters | None:
        """The dead letters that can be replayed; None if the pipeline keeps none."""

    def live(self, document: str) -> Document | None:
        """Return the document itself; None if it is in another process."""


class Letters(Protocol):
    """Dead letters that can be listed and replayed (`runtime/dead_letter_file.py`)."""

    def letters(self) -> Sequence[Letter]: ...

    def replay(self, number: int, content: str | None = None) -> object: ...


class Letter(Protocol):
    """A dead letter."""

    def plain(self) -> dict[str, Any]: ...


class Observer:
    """Observes documents for a page."""

    def __init__(self, documents: Documents, *, engine: str = "embedded") -> None:
        self._given = documents
        self.engine = engine
        self.history = History()
        self.system: dict[str, Any] = {"sources": [], "wires": [], "sinks": []}
        self.lagging: Callable[[], Iterable[Mapping[str, Any]]] = tuple
        self.pressure: Callable[[], Iterable[Mapping[str, Any]]] = tuple
        self.sinks: Callable[[], Iterable[Mapping[str, Any]]] = tuple
        self.good: Mapping[tuple[str, str], str] = {}  # the good truth value, by document and view
        self.letters: Letters | None = None
        self.outlook: Callable[[str, str], ViewOutlook | None] | None = None  # in its system
        self.families: Callable[[str], FamilyMembers | None] = lambda document: None
        """The families of a pipeline's document."""
        self.replay: Replay | None = None  # explains rows where documents were not kept
        self._lock = Lock()
        self._subscriptions: dict[str, dict[str, Callable[[], None]]] = {}  # by document and view
        self._known: dict[str, Document] = {}
        self._letters: dict[str, int] = {}
        self._prospects: dict[tuple[str, str], tuple[float, Prospect]] = {}
        self._searches: dict[Asked, tuple[float, dict[str, Any]]] = {}
        self.documents()

    def documents(self) -> dict[str, Document]:
        """Return the current documents; subscribe to new views, also of known documents."""
        found = dict(self._given() if callable(self._given) else self._given)
        for name, document in found.items():
            if self._known.get(name) is not document:
                self._known[name] = document
                self._subscriptions[name] = {}
            with self._lock:  # pages ask at the same time
                self._follow_all(name, document)
        return found

    def _follow_all(self, name: str, document: Document) -> None:
        known, families = self._subscriptions[name], maintained(document).families
        if _MEMBERS not in known:
            known[_MEMBERS] = self._follow_members(name, document)
        views = {
            view for view, kept in list(families.every_view()) if isinstance(kept, MaintainedView)
        }
        for view in views - known.keys():
            known[view] = self._follow(name, document, document.view(view))
        for view in known.keys() - views - {_MEMBERS}:
            del known[view]  # it was removed, or became a member of a family

    def _follow_members(self, name: str, document: Document) -> Callable[[], None]:
        """Record the changes of members of families, each from when it gets its first row."""
        families = maintained(document).families

        def record(change: Change) -> None:
            table = self.families(name)
            if table is not None and is_member(change.view or ""):
                change = table.headed(change)
            self.history.record(name, change)

        def follow(view: MaintainedView) -> None:
            view.subscribe(record)

        with maintained(document).lock:
            families.on_open.append(follow)
            for view in families.opened():
                follow(view)
        return lambda: families.on_open.remove(follow)

    def _follow(self, name: str, document: Document, view: View) -> Callable[[], None]:
        columns, key = view.query.columns, view.key
        if view.broken is None:
            at = microseconds(document.clock) / 1e6
            self.history.begin(name, view.name, columns, key, view.head, at)
        last = 0.0

        def record(change: Change) -> None:
            nonlocal last
            self.history.record(name, change, None, columns, key)
            now = monotonic()
            if now - last > 1:  # the curve continues while the page is closed
                last = now
                self.history.measure(name, document.state_sizes()["joins"])

        return view.subscribe(record)

    def close(self) -> None:
        """Stop listening."""
        for known in self._subscriptions.values():
            for stop in known.values():
                stop()

    # What the page asks for -----------------------------------------------------------------------

    def state(self, asked: Asked) -> dict[str, Any]:
        """Return everything that the page shows without a click."""
        documents = self.documents()
        summaries = [self._document(name, document) for name, document in documents.items()]
        changes, count = self.history.changes()
        letters, refused = self.history.letters()
        return {
            "engine": self.engine,
            "seconds": round(self.history.seconds, 1),
            "changes": changes[:100],
            "changed": count,
            "rate": self.history.rate("changes", count),
            "documents": summaries,
            "shown": self.shown(asked),
            "letters": letters,
            "refused": refused,
            "lagging": [dict(one) for one in self.lagging()],
            "pressure": [dict(one) for one in self.pressure()],
            "can_replay": self.letters is not None,
            "system": self.system,
        }

    def _document(self, name: str, document: Document) -> dict[str, Any]:
        rows = document.state_sizes()["joins"]
        self._take_letters(name, document.dead_letters)
        return {
            "name": name,
            "clock": plain(document.clock),
            "nodes": len(maintained(document).tree),
            "state": rows,
            "unit": "rows in joins",
            "sizes": [*self.history.sizes(name), (round(self.history.seconds, 1), rows)],
            "streams": [self._stream(name, status) for status in document.streams().values()],
            "views": self._views(name, document),
        }

    def _views(self, name: str, document: Document) -> list[dict[str, Any]]:
        """Return the views as the page lists them: a family is one entry."""
        with maintained(document).lock:
            entries = entries_of(document, self.families(name))
            inside = {view for entry in entries.values() for view in entry.members}
            names = [view for view, _ in maintained(document).families.every_view()]
            alone = [
                document.view(view) for view in names if view not in inside and not is_pilot(view)
            ]
            listed: list[dict[str, Any]] = [
                {"name": view.name, "count": _count(view), "types": types_of(view.query.columns)}
                for view in alone
            ]
            listed += [entry_summary(document, entry) for entry in entries.values()]
        for one in listed:
            one["never"] = self.history.nevers(name, one["name"])[1]
            one["good"] = self.good.get((name, one["name"]))
        return listed

    def _stream(self, document: str, status: Any) -> dict[str, Any]:
        return {
            "name": status.stream, "state": stream_state(status), "messages": status.messages,
            "kept": status.kept, "dropped": status.dropped, "refused": status.refused,
            "wanted": list(status.wanted),
            "last": None if status.last is None else plain(status.last),
            "rate": self.history.rate(f"{document}/{status.stream}", status.messages),
        }  # fmt: skip

    def _take_letters(self, name: str, letters: list[DeadLetter]) -> None:
        for letter in letters[self._letters.get(name, 0) :]:
            origin = f"message {letter.sequence} of {letter.stream!r}"
            refused = Refusal(letter.stream, "", origin, letter.error.message)
            self.history.refuse(refused, letter.error.code)
        self._letters[name] = len(letters)

    def shown(self, asked: Asked) -> dict[str, Any] | None:
        """Return one view with its rows; None if there is no such view."""
        document = self._known.get(asked.document)
        if document is None:
            return None
        entry = self._entry(asked.document, asked.view)
        if entry is not None:
            never = self.history.nevers(asked.document, asked.view)
            good = self.good.get((asked.document, asked.view))
            with maintained(document).lock:
                return {**entry_shown(document, entry, asked, never), "good": good}
        view = document.views.get(asked.view)
        if view is None:
            return None
        key = list(view.key)
        return {
            "document": asked.document,
            "view": view.name,
            "query": view.query.text.strip(),
            "columns": list(view.columns),
            "types": list(view.query.columns.types),
            "key": key,
            "good": self.good.get((asked.document, view.name)),
            "numbers": list(plotted(view.query.columns, key)),
            "maintainer": maintained_view(view).chosen.name,
            **self._listed(asked, document, view),
        }

    def _entry(self, document: str, view: str) -> FamilyEntry | None:
        """Return a family by the name of its entry."""
        return entries_of(self._find(document), self.families(document)).get(view)

    def _listed(self, asked: Asked, document: Document, view: View) -> dict[str, Any]:
        """Return the shown lines; those of a search in a large view from a cache."""
        size = _count(view)
        if not asked.sought or size <= LARGEST:
            return self._listing(asked, document, view, size).plain(asked)
        due, known = self._searches.get(asked, (0.0, {}))
        now = monotonic()
        if now < due:
            return known
        found = self._listing(asked, document, view, size).plain(asked)
        if len(self._searches) >= _SEARCHES:
            self._searches.clear()
        self._searches[asked] = (now + max(0.5, _SHARE * (monotonic() - now)), found)
        return found

    def _listing(
        self, asked: Asked, document: Document, view: View, size: int, is_whole: bool = False
    ) -> Listing:
        never, count = self.history.nevers(asked.document, asked.view)
        rows: Iterable[Row] = ()
        if view.broken is None and size <= LARGEST:
            rows = view.rows()
        elif view.broken is None:
            rows = view.head(size if asked.sought or is_whole else asked.last)
        counts = {"true": size, "never": count}
        prospect = self._prospect(asked, document, view)
        return Listing((row.to_dict() for row in rows), counts, prospect, never)

    def lines(self, asked: Asked) -> Iterator[dict[str, Any]]:
        """Yield all lines of a view that the selection has, for an export."""
        document = self._find(asked.document)
        entry = self._entry(asked.document, asked.view)
        if entry is not None:
            rows = (row for _, _, row in rows_of(document, entry))
            yield from Listing(rows, {}).each("true", asked.sought)
            return
        view = document.view(asked.view)
        listing = self._listing(asked, document, view, _count(view), is_whole=True)
        yield from listing.selected(asked)

    def plot(self, document: str, view: str) -> dict[str, Any]:
        """Return the computed numbers of a view over time."""
        return self.history.plot(document, view)

    def live(self, document: str) -> Document | None:
        """Return the document itself."""
        return self._known.get(document)

    def _prospect(self, asked: Asked, document: Document, view: View) -> Prospect:
        """Return the possible rows, from a cache if they are expensive."""
        key = (asked.document, asked.view)
        due, known = self._prospects.get(key, (0.0, Prospect()))
        now = monotonic()
        if now < due:
            return known
        outlook = None if self.outlook is None else self.outlook(asked.document, asked.view)
        found = prospect_of(document, view) if outlook is None else system_prospect(view, outlook)
        rows = [one["row"] for one in found.rows]
        clock = plain(document.clock)
        self.history.see_possible(asked.document, view.name, view.key, rows, clock)
        self._prospects[key] = (now + max(0.5, _SHARE * (monotonic() - now)), found)
        return found

    def why(self, document: str, view: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the truth of a row, why, and its history.

        `row` has the values of some columns; a row that is there is completed.
        """
        asked = self._find(document)
        entry = self._entry(document, view)
        if entry is not None:
            wanted = {name: str(value) for name, value in row.items()}.items()
            for member, own, headed in rows_of(asked, entry):
                if wanted <= {name: str(value) for name, value in headed.items()}.items():
                    return {**self.why(document, member, own), "row": headed}
            return {"row": dict(row), "reason": "no member has this row", "history": []}
        kept = asked.view(view)
        unknown = [name for name in row if name not in kept.columns]
        if unknown:
            raise QueryError("AX203", f"the view {view!r} has no column {unknown[0]!r}",
                             expected=", ".join(kept.columns))  # fmt: skip
        name = row_name(row, kept.key)
        events = self.history.events(document, view, name)
        whole = completed(kept, row)
        again = self.replay if maintained(asked).forgotten else None
        if whole is None:
            said = (
                _absent(kept, row)
                if again is None
                else again.absent(document, view, row, asked.clock)
            )
            history = with_parts(events, said.pop("parts", ()))
            return {"row": dict(row), **said, "history": history}
        said = why_of(kept, whole) if again is None else again.plain(document, view, whole)
        matched = [one for each in said.get("derivations", ())[:1] for one in each]
        history = with_parts(events, matched, is_true=True)
        return {"row": whole, "truth": "true", **said, **_ends(kept, whole), "history": history}

    def tree(self, document: str) -> dict[str, Any]:
        """Return the top of a document's tree, as nested lists."""
        asked = self._find(document)
        with maintained(asked).lock:
            tree = maintained(asked).tree
            left = [NODES]
            return {"root": _node(tree, tree.root, left), "cut": left[0] <= 0}

    def _find(self, document: str) -> Document:
        try:
            return self._known[document]
        except KeyError:
            raise QueryError(
                "AX203", f"there is no document {document!r}", expected=", ".join(self._known)
            ) from None


DERIVATIONS = 10
"""Maximum number of derivations that the page shows of a row; a group has one for each member."""


def prospect_of(document: Document, view: View) -> Prospect:
    """Return the truth and possible rows of one view, or the reason why they are missing."""
    nodes = len(maintained(document).tree)
    if nodes > WALKED and maintained_view(view).prospects() is None:
        return Prospect(reason=f"this needs a scan of the document, which has {nodes:,} nodes")
    try:
        possible = view.possible()
        truth = "true" if len(view) else "possible" if possible else "never"
    except AxlogError as error:
        return Prospect(reason=error.message)
    rows = sorted((one.to_dict() for one in possible), key=by_deadline)
    return Prospect(truth, len(possible), rows[:POSSIBLE])


def system_prospect(view: View, outlook: ViewOutlook) -> Prospect:
    """Return the truth and possible rows of a view in its system of documents."""
    try:
        possible = outlook.possible()
        truth = "true" if len(view) else "possible" if possible else "never"
    except AxlogError as error:
        return Prospect(reason=error.message)
    rows = sorted((one.to_dict() for one in possible), key=by_deadline)
    why = "; ".join(outlook.verdict().reasons) if truth == "never" else ""
    return Prospect(truth, len(possible), rows[:POSSIBLE], note=why)


def why_of(view: View, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the derivations of a row for the page."""
    try:
        found = view.why(row)
    except AxlogError as error:
        return {"reason": error.message}
    return {
        "derivations": [
            [{"pattern": m.pattern, "path": m.path, "time": plain(m.time), "origin": m.origin}
             for m in derivation.matched]
            for derivation in found[:DERIVATIONS]
        ],
        "more": max(0, len(found) - DERIVATIONS),
    }  # fmt: skip


def completed(view: View, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the row of a view that has these values; None if there is none."""
    if view.broken is not None:
        raise view.broken
    for one in view:
        known = one.to_dict()
        if all(known[name] == value for name, value in row.items()):
            return known
    return None


def _absent(view: View, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the truth of a row that is not there, and the reasons for it."""
    known = {name: value for name, value in row.items() if value is not None}
    try:
        found = view.why_not(known).to_dict()
    except AxlogError as error:
        return {"truth": None, "reason": error.message}
    try:
        return {**found, "parts": plain_parts(view, known)}
    except AxlogError:  # messages are not kept
        return {**found, "parts": []}


def _ends(view: View, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what can end a row that is there, if the query says that something must be absent."""
    try:
        found = view.why_not(row)
    except AxlogError:
        return {}
    return {"reasons": [one.to_dict() for one in found.reasons if one.kind == "ends"]}


def types_of(columns: Columns) -> dict[str, str]:
    """Return the types of the columns by name, for the values in changes."""
    return dict(zip(columns, columns.types, strict=True))


def stream_state(status: Any) -> str:
    """Return the state of a stream's call: ended, unsubscribed, filtered, or relevant."""
    if status.ended:
        return "ended"
    if status.is_unsubscribed:
        return "unsubscribed"
    return "filtered" if status.is_tuned or status.dropped else "relevant"


def _node(tree: Tree, node: int, left: list[int]) -> dict[str, Any] | None:
    """Return a node with its subtree, truncated; large elements show their first children."""
    if node == DOCUMENT_NODE or node < 0 or left[0] <= 0:
        return None
    left[0] -= 1
    kind = tree.kind_column[node]
    if kind == TEXT:
        return {"text": tree.text(node)[:200]}
    if kind == CALL:
        return {"call": tree.call(node).stream}
    if kind != ELEMENT:
        return None
    children = list(islice(tree.children(node), 40))
    below = [each for child in children if (each := _node(tree, child, left)) is not None]
    calls = [child for child in tree.calls().values() if tree.parent(child) == node]
    below += [{"call": tree.call(call).stream} for call in calls if call not in children]
    return {
        "name": tree.label(node).rpartition("}")[2],
        "attributes": [
            [tree.label(a).lstrip("@").rpartition("}")[2], tree.string_value(a)[:100]]
            for a in tree.attributes(node)
        ],
        "below": below,
        "more": sum(1 for _ in islice(tree.children(node), 41)) > 40,
    }


def _count(view: View) -> int:
    """Return the number of rows; zero for a view that was set aside."""
    try:
        return len(view)
    except QueryError:
        return 0
