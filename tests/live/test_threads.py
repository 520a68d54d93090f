"""Readers beside writers: every public method that reads, while other threads change the document.

The methods are found by looking at the classes, so that a new one has to be put into one of the
tables below: it reads and is called here, or it writes.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest

from axlog.document.tree import Tree
from axlog.errors import AxlogError, UndecidedError
from axlog.extras import is_installed
from axlog.future import truth
from axlog.future.capacity import fits
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.maintained import MaintainedTree
from axlog.live.metrics import document_health, document_samples
from axlog.live.options import Options
from axlog.live.view import View
from axlog.server.row_lists import Asked
from axlog.server.summaries import Observer

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
CALLING = CALL.format("h").replace("/>", ' calls="yes"/>')
DOCUMENT = f"<r><p>{CALL.format('f')}</p><q>{CALL.format('g')}</q><s>{CALLING}</s></r>"
QUERIES = {
    "pair": "match /r[p/a/$x#t1][q/b/$x#t2] where t2 - t1 <= 50us return $x",
    "three": "match /r[p/a/$x#t1][q/b/$x#t2][s/c#t3] where 2*t3 - t1 <= 90us return $x, t1.time",
    "nodes": "match /r/p/a#t return t.id, t.val",
    "alternative": "match /r[p/a/$x or q/b][s/c]",
    "without": "match /r[p/a][not(s/d)]",
    "constructed": "for $a in /r/p/a return <found>{string($a)}</found>",
}
UPDATES = 15
ACCEPTED = {"AX307", "AX501", "AX502", "AX503"}
"""What a question may be refused with: undecided, or of a document that is not whole."""

Read = Callable[[Any], object]


def _row(view: View) -> dict[str, Any]:
    found = view.head(1)
    return dict(found[0]) if found else dict.fromkeys(view.columns, "0")


READS: dict[type, dict[str, Read]] = {
    View: {
        "rows": lambda view: view.rows(),
        "head": lambda view: view.head(3),
        "items": lambda view: view.query.language == "pattern" or view.items(),
        "holds": lambda view: view.holds(),
        "truth": lambda view: view.truth,
        "possible": lambda view: view.possible(),
        "status": lambda view: view.status({}),
        "why": lambda view: view.why(_row(view)),
        "why_not": lambda view: view.why_not(_row(view)),
        "explain": lambda view: str(view.explain()),
        "xml": lambda view: view.query.template and [view.xml(row) for row in view.rows()],
        "to_arrow": lambda view: view.to_arrow(),
        "to_pandas": lambda view: view.to_pandas(),
        "to_polars": lambda view: is_installed("polars") and view.to_polars(),
        "json": lambda view: view.query.template and [view.json(row) for row in view.rows()],
        "broken": lambda view: view.broken,
        "columns": lambda view: view.columns,
        "query": lambda view: view.query.pattern,
        "name": lambda view: view.name,
        "key": lambda view: view.key,
        "work": lambda view: view.work,
        "position": lambda view: view.position,
        "retained": lambda view: view.retained,
        "snapshot": lambda view: view.snapshot(),
        "changes_since": lambda view: view.retained and view.changes_since(view.position),
        "is_deferred": lambda view: view.is_deferred,
        "__len__": len,
        "__iter__": list,
        "__repr__": repr,
        "_repr_html_": lambda view: view._repr_html_(),
    },
    MaintainedTree: {
        "xml": lambda document: document.xml(),
        "element": lambda document: document.element(),
        "nodes": lambda document: document.nodes(),
        "nodes_left": lambda document: document.nodes_left(),
        "clock": lambda document: document.clock,
        "lacks_messages": lambda document: document.lacks_messages,
        "engines": lambda document: document.engines,
        "parse": lambda document: document.parse("//a"),
        "parse_view": lambda document: document.parse_view("//a"),
        "next_moment": lambda document: document.next_moment(),
        "nodes_since": lambda document: len(document.nodes_since("start")),
        "new_name": lambda document: document.new_name(),
        "__len__": len,
    },
    Document: {
        "view": lambda doc: doc.view("pair"),
        "views": lambda doc: [str(view.query.pattern) for view in doc.views.values()],
        "streams": lambda doc: [s.wanted for s in doc.streams().values()],
        "state_sizes": lambda doc: doc.state_sizes(),
        "code": lambda doc: doc.code("f"),
        "clock": lambda doc: doc.clock,
        "collected": lambda doc: doc.collected,
        "xml": lambda doc: doc.xml(),
        "element": lambda doc: doc.element(),
        "dead_letters": lambda doc: doc.dead_letters,
        "options": lambda doc: doc.options,
        "changes": lambda doc: doc.changes("pair").close(),
        "violations": lambda doc: doc.violations,
        "filter": lambda doc: doc.filter("f"),
        "tune": lambda doc: doc.tune(),
        "__len__": len,
        "__str__": str,
        "__repr__": repr,
    },
}
WRITES: dict[type, set[str]] = {
    View: {"subscribe", "retain", "defer", "refresh"},
    MaintainedTree: {
        "watch", "unwatch", "insert", "delete", "update", "apply", "apply_at", "emitting_at_end",
        "netted", "drop", "as_one", "make_engines", "announce", "carry_out", "settle", "untune",
        "pass_time",
    },
    Document: {
        "feed", "delete", "end", "collect", "update", "take", "advance", "watch", "unwatch",
        "batch", "afeed", "apply", "retract", "change", "feed_many", "profile",
    },
}  # fmt: skip
OUTSIDE: dict[str, Read] = {
    "metrics": lambda doc: list(document_samples("w", doc)),
    "health": lambda doc: document_health("w", doc),
}


@pytest.mark.parametrize("of", list(READS), ids=lambda of: of.__name__)
def test_every_public_method_is_in_a_table(of: type) -> None:
    """A new method must be called by the readers below, or be said to write."""
    found = {name for name, _ in inspect.getmembers(of) if not name.startswith("_")}
    known = {name for name in READS[of] if not name.startswith("_")} | WRITES[of]
    assert found == known


class Readers:
    """Threads that read until they are told to stop; what they raised."""

    def __init__(self, reads: dict[str, Callable[[], object]]) -> None:
        self.raised: list[str] = []
        self.count = dict.fromkeys(reads, 0)
        self._done = Event()
        names = list(reads)
        self._threads = [
            Thread(target=self._read, args=({n: reads[n] for n in names[k::2]},)) for k in range(2)
        ]

    def _read(self, reads: dict[str, Callable[[], object]]) -> None:
        is_first = True
        while is_first or not self._done.is_set():  # each at least once
            for name, read in reads.items():
                try:
                    read()
                except AxlogError as error:
                    if error.code not in ACCEPTED:
                        self.raised.append(f"{name}: {error!r}")
                except Exception as error:
                    self.raised.append(f"{name}: {error!r}")
                self.count[name] += 1
            is_first = False

    def __enter__(self) -> "Readers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def switching() -> Iterator[None]:
    """Let threads take turns much more often than they do by themselves."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def reads_of(doc: Document) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}

    def add(name: str, read: Read, of: object) -> None:
        found[name] = lambda: read(of)

    for name, view in doc.views.items():
        for method, read in READS[View].items():
            add(f"view {name}: {method}", read, view)
    for method, read in READS[MaintainedTree].items():
        add(f"tree: {method}", read, maintained(doc))
    for method, read in READS[Document].items():
        add(f"document: {method}", read, doc)
    for what, read in OUTSIDE.items():
        add(what, read, doc)
    observer = Observer({"w": doc})
    for name in QUERIES:
        asked = Asked("w", name)
        add(f"page of {name}", lambda one: one[0].state(one[1]), (observer, asked))
    add("page: tree", lambda one: one.tree("w"), observer)
    return found


def write(doc: Document) -> None:
    """Messages, deletions, statements, batches, views that come and go, and the clock."""
    for number in range(UPDATES):
        at = number / 1_000_000
        doc.feed("f", f"<a>{number % 7}</a>", at=at)
        doc.feed("g", f"<b>{number % 5}</b>", at=at)
        if number % 3 == 0:
            with doc.batch():
                doc.feed("f", f"<a>{number % 11}</a>", at=at)
                doc.feed("h", "<c/>", at=at)
        doc.feed("h", f"<c>{CALL.format(f'n{number}')}</c>", at=at)
        doc.end(f"n{number}", at=at)
        if number % 10 == 4:
            doc.update("delete nodes /r/p/a[1]", at=at)
        if number % 10 == 7:
            doc.watch("match /r/q/b/$x return $x", "other")
            doc.advance(at)
            doc.unwatch("other")


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("options", [{}, {"cache": "disk", "never": "all"}], ids=str)
def test_readers_beside_a_writer_are_never_disturbed(options: dict[str, Any]) -> None:
    pytest.importorskip("pyarrow")
    doc = Document(DOCUMENT, views=QUERIES, options=Options(**options))
    with Readers(reads_of(doc)) as readers:
        write(doc)
    assert readers.raised == []
    assert all(readers.count.values())
    alone = Document(DOCUMENT, views=QUERIES, options=Options(**options))
    write(alone)
    for name in QUERIES:
        assert doc.view(name).rows() == alone.view(name).rows()


# The copy that long questions are asked of --------------------------------------------------------


QUESTIONS: dict[str, Read] = {
    "possible": lambda view: view.possible(),
    "status": lambda view: view.status({"$x": "1"} if "$x" in view.columns else {"x": "1"}),
}


@pytest.mark.parametrize("question", list(QUESTIONS))
def test_an_update_in_the_middle_of_a_question_changes_nothing(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that the rows need ends while they are worked out: it neither waits, nor is seen."""
    query = "match /r[p/a/$x#t1][q/b/$x][s/c#t3] where 2*t3 - t1 <= 90us return $x"
    doc = Document(DOCUMENT, views={"v": query})
    doc.feed("f", "<a>1</a>", at=1e-6)
    view, ask = doc.view("v"), QUESTIONS[question]
    before = ask(view)
    writers: list[Thread] = []

    def meanwhile(*given: Any) -> bool:
        if not writers and not maintained(doc).lock._is_owned():  # type: ignore[attr-defined]
            writers.append(Thread(target=doc.end, args=("h",), daemon=True))
            writers[0].start()
            writers[0].join(60)
            assert not writers[0].is_alive(), "the update had to wait for the question"
        return fits(*given)

    monkeypatch.setattr(truth, "fits", meanwhile)
    assert ask(view) == before
    assert writers
    assert ask(view) != before


def test_a_copied_document_is_the_same_and_stays() -> None:
    doc = Document(DOCUMENT, views={"v": QUERIES["nodes"]})
    doc.feed("f", "<a k='1'>x<b/></a>", at=1e-6)
    tree = maintained(doc).nodes()
    assert len(tree.inserted_by("f", 1)) == 1  # makes an index, which is copied too
    copied = tree.copied()
    text = doc.xml()
    assert Document(copied).xml() == text
    assert set(copied.__dict__) == set(Tree().__dict__)
    doc.update("delete nodes /r/p/a; insert node <z/> into /r")
    assert Document(copied).xml() == text
    shared = [
        name for name, value in tree.__dict__.items()
        if copied.__dict__[name] is value and not isinstance(value, int | str | bytes | tuple)
    ]  # fmt: skip
    assert shared in ([], ["types"])


def test_undecided_is_no_accident() -> None:
    """The codes that readers may meet are those of questions, not of races."""
    doc = Document(DOCUMENT, views={"v": "match /r[p/z][not(p/a/$x and q/b/$x)]"})
    with pytest.raises(UndecidedError, match="AX501"):
        assert doc.view("v").truth
