"""The document face: `parse`, `watch`, and updates that tell every view.

One writer at a time; readers see the views before or after an update, never in between. An update
that cannot be applied raises and changes nothing. A listener that raises does so after the update
is done: the document and all views are consistent, later listeners were still told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock

from axlog.document import pending
from axlog.document.delta import Delta
from axlog.document.loader import load, read_forest
from axlog.document.operations import Content, Delete, Insert, Operation, Where
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits, Source
from axlog.document.schema import TypeGuard
from axlog.document.schema_sources import Types, read_types
from axlog.document.serializer import serialise
from axlog.document.times import (
    Shown,
    Time,
    Times,
    checked_times,
    microseconds,
    shown,
    start_of,
)
from axlog.document.tree import NONE, Tree
from axlog.errors import QueryError, UpdateError
from axlog.evaluate.select import select
from axlog.evaluate.statements import operations_of
from axlog.evaluate.value_index import ValueIndex
from axlog.future.verdict_cache import only_adds
from axlog.live.callbacks import not_kept, not_noted, not_told, nothing, unknown
from axlog.live.savepoint import Savepoint
from axlog.query.query import Query, parse_query
from axlog.query.update_parser import parse_statements
from axlog.reporting import report
from axlog.views.algebraic.engine import AlgebraicEngine
from axlog.views.change import Change
from axlog.views.choose import DEFAULT_THRESHOLDS, Engines, choice, make
from axlog.views.counting.disk_tables import Shelf
from axlog.views.counting.engine import BLOCK, CountingEngine
from axlog.views.counting.prospects import Prospects
from axlog.views.maintainer import PutAside
from axlog.views.net_changes import net
from axlog.views.view import View

log = logging.getLogger(__name__)

Told = list[tuple[View, list[Change]]]
"""Each view with the changes that one update made to it."""


def parse(
    source: Source,
    *,
    limits: Limits = DEFAULT_LIMITS,
    keep_whitespace: bool = False,
    namespaces: Mapping[str, str] | None = None,
    types: Types | Iterable[Types] | None = None,
    times: Times = "seconds",
    at: Time | None = None,
) -> Document:
    """A document from XML: text, bytes, a path, a file, or an lxml or ElementTree element.

    With `types` (see `document.schema_sources`) it must have its type, and an update that would
    break it is refused. `times` says how times are returned: as `seconds` or as `dates`. `at` is
    the time at which the document starts, which its nodes have: 0, or the first of all dates.

    >>> doc = parse("<orders><order><oid>17</oid></order></orders>")
    >>> ids = doc.watch("match //order/oid/$x return $x")
    >>> doc.insert("match /orders#o return o.id", "<order><oid>18</oid></order>")
    [Change('insert', Row(x='18'))]
    """
    start = start_of(at, checked_times(times))
    tree = load(source, limits=limits, keep_whitespace=keep_whitespace, time=start)
    return Document(
        tree,
        limits=limits,
        keep_whitespace=keep_whitespace,
        namespaces=namespaces,
        types=types,
        times=times,
    )


class Document:
    """A document with views over it."""

    def __init__(
        self,
        tree: Tree,
        *,
        limits: Limits = DEFAULT_LIMITS,
        keep_whitespace: bool = False,
        namespaces: Mapping[str, str] | None = None,
        shelf: Shelf | None = None,
        types: Types | Iterable[Types] | None = None,
        times: Times = "seconds",
    ) -> None:
        self.tree = tree
        self.times: Times = checked_times(times)
        self._type_guard: TypeGuard | None = None
        if types is not None:
            root = "" if tree.root == NONE else tree.label(tree.root)
            tree.types = read_types(types, root)
            self._type_guard = TypeGuard(tree, tree.types)
        self.limits = limits
        self.keep_whitespace = keep_whitespace
        self.namespaces = dict(namespaces or {})
        self.views: dict[str, View] = {}
        self.thresholds = DEFAULT_THRESHOLDS  # of the choice of maintainers
        self.make_engines(shelf)
        self._lock = RLock()
        self._held: Told | None = None
        self.sealed: str | None = None  # why the document is not changed by its own methods
        self.forgotten = 0  # messages that no view needed and nobody kept
        self.collected = 0  # nodes and streams that no view needed, gone by proof
        self.settle: Callable[[], None] = nothing
        """Called before the document's own nodes are needed: what was put aside becomes nodes."""
        self.untune: Callable[[], None] = nothing
        """Called before anything but a stream changes the document, and before a view is added:
        filters hold for what streams bring and for the views that there are."""
        self.brought: Callable[[Delta, str | None, bool], None] = not_noted
        """Called with what an update did, the stream that brought it, or None, and whether the
        views have had it before: a message that was put aside."""
        self.may_come: Callable[[View], bool | None] = not_kept
        """Whether scenarios that are kept as data arrives say that a row of a view may come."""
        self.how_never: Callable[[View], str] = not_told
        """How a view is told what never comes, or why it is not."""
        self.prospects: Callable[[View], Prospects | None] = unknown
        """What is known of a view's rows to come without a walk over the document."""

    def make_engines(self, shelf: Shelf | None, block: int = BLOCK) -> None:
        """Set up what views share, for the tree as it is."""
        tree, limits = self.tree, self.limits
        self.engine = CountingEngine(tree, block, shelf, limits.rows, limits.work)
        self.engine.told_aside = self._note_aside
        self.algebra = AlgebraicEngine(tree)
        self._values = ValueIndex(tree)

    @property
    def engines(self) -> Engines:
        """What maintainers are made with."""
        return Engines(self.engine, self.algebra, self.thresholds.prices)

    # Views ----------------------------------------------------------------------------------------

    def watch(
        self,
        query: str | Query,
        name: str | None = None,
        *,
        language: str | None = None,
        maintainer: str | None = None,
        work: int | None = None,
    ) -> View:
        """Keep the rows of a query from now on.

        `work` is the number of rows that one update may make the view look at; a view that exceeds
        it is set aside with AX216. Without it `Limits.work` holds.
        """
        asked = self._parse(query, language)
        name = name if name is not None else self._new_name()
        if name in self.views:
            raise QueryError("AX202", f"there is already a view {name!r}")
        self._refuse_if_sealed()
        with self._lock:
            chosen = choice(asked.pattern, maintainer, self.tree, self.thresholds)
            self.untune()
            kept = make(self.nodes(), asked.pattern, chosen.name, self.engines, work)
            view = self.views[name] = View(
                name, asked, kept, chosen, self._lock, self.nodes, self.times
            )
            view.work = work
            view.prospects = lambda: self.prospects(view)
            view.standing.may_come = lambda: self.may_come(view)
            view.how_never = lambda: self.how_never(view)
            view.nodes_left, view.is_whole = self.nodes_left, lambda: not self.collected
            if self.engine.is_built:  # the next update shall not pay for the new view
                self.engine.build()
        return view

    def forget(self, name: str) -> None:
        """Stop keeping a view."""
        self._refuse_if_sealed()
        if name not in self.views:
            raise QueryError("AX203", f"there is no view {name!r}")
        with self._lock:
            self.settle()  # the other views are set up anew from the document
            self.views.pop(name).maintainer.close()

    def _note_aside(self) -> None:
        """Set aside the views that exceeded a limit, and log it; the others go on."""
        for view in self.views.values():
            error = view.maintainer.broken
            if error is not None and not isinstance(view.maintainer, PutAside):
                self._set_aside(view, error)

    @contextmanager
    def _setting_aside(self, view: View) -> Iterator[None]:
        """An update that exceeds a limit of one view sets that view aside and is applied."""
        try:
            yield
        except QueryError as error:
            self._set_aside(view, error)

    @staticmethod
    def _set_aside(view: View, error: QueryError) -> None:
        view.put_aside(error)
        report(log, logging.WARNING, "view set aside", view=view.name, code=error.code,
               reason=error.message)  # fmt: skip

    def _refuse_if_sealed(self) -> None:
        if self.sealed is not None:
            raise UpdateError("AX876", self.sealed, advice="use the widget's own methods")

    def _parse(self, query: str | Query, language: str | None = None) -> Query:
        if isinstance(query, Query):
            return query
        return parse_query(query, self.namespaces, language, limits=self.limits)

    def _new_name(self) -> str:
        number = len(self.views) + 1
        while f"view{number}" in self.views:
            number += 1
        return f"view{number}"

    # Updates --------------------------------------------------------------------------------------

    def insert(
        self,
        target: str,
        content: str | bytes | Element,
        where: str = "last",
        at: Time | None = None,
    ) -> list[Change]:
        """Insert XML at every node that a pattern selects: first, last, before or after it."""
        try:
            place = Where(where)
        except ValueError:
            expected = ", ".join(one.value for one in Where)
            raise UpdateError("AX302", f"there is no place {where!r}", expected=expected) from None
        forest: Content = tuple(read_forest(content, self.limits))
        with self._lock:
            nodes = select(self.nodes(), self._parse(target).pattern, self._values)
            return self.apply([Insert(place, node, forest) for node in nodes], at)

    def delete(self, target: str, at: Time | None = None) -> list[Change]:
        """Delete every node that a pattern selects."""
        with self._lock:
            nodes = select(self.nodes(), self._parse(target).pattern, self._values)
            return self.apply([Delete(node) for node in nodes], at)

    def update(
        self,
        statement: str,
        at: Time | None = None,
        variables: Mapping[str, str | float | bool] | None = None,
    ) -> list[Change]:
        """Carry out a statement of XQuery Update, or several separated by `;`, one by one.

        `variables` are values for variables of the statement; a statement that is used again with
        other values is parsed once.

        >>> doc = parse("<people><person id='1'><phone/></person><person id='2'/></people>")
        >>> doc.update("delete nodes //person[phone]")
        []
        >>> doc.update("rename node //person[@id = $id] as 'user'", variables={"id": "2"})
        []
        >>> print(doc)
        <people><user id="2"/></people>
        """
        changes: list[Change] = []
        for one in parse_statements(statement, self.namespaces, self.limits):
            with self._lock:
                operations = operations_of(self.nodes(), one, self._values, variables)
                changes += self.apply(operations, at)
        return changes

    def apply(self, operations: Sequence[Operation], at: Time | None = None) -> list[Change]:
        """Carry out a pending update list, and return the changes of all views."""
        return self._apply(operations, None if at is None else microseconds(at))

    def _apply(self, operations: Sequence[Operation], time: int | None) -> list[Change]:
        with self._lock:
            return self._announce(self._carry_out(operations, time))

    def _carry_out(
        self,
        operations: Sequence[Operation],
        time: int | None,
        origin: tuple[str, int] | None = None,
    ) -> Told:
        """Apply a pending update list, or raise and change nothing; no listener is told yet.

        `origin` is the stream and the number of the message that it came from.
        """
        self._refuse_if_sealed()
        self.settle()
        if origin is None:
            self._refuse_if_collected()
            self.untune()
        plan = pending.planned(
            self.tree, operations, time, limits=self.limits, keep_whitespace=self.keep_whitespace
        )
        views = list(self.views.values())
        guard = self._type_guard
        try:
            if guard is not None:  # before all others: nobody sees what it refuses
                with guard.bringing(None if origin is None else origin[0]):
                    guard.before(plan.delta)
            for view in views:
                with self._setting_aside(view):
                    view.before(plan.delta)
            self._values.before(plan.delta)
        except BaseException:
            plan.abandon()
            raise
        plan.commit()
        if origin is not None:
            self.tree.record_origin(plan.delta.added, *origin)
        self.brought(plan.delta, None if origin is None else origin[0], False)
        self._values.after(plan.delta)
        if origin is None or not only_adds(plan.delta):
            for view in views:
                view.standing.forget()
        if guard is not None:
            guard.after(plan.delta)
        told: Told = []
        for view in views:
            with self._setting_aside(view):
                told.append((view, view.after(plan.delta)))
        return told

    def _announce(self, each: Told) -> list[Change]:
        """Tell the listeners of every view, or keep it for the end of the batch; all changes."""
        if self._held is None:
            tell(each)
        else:
            self._held += each
        return [change for _, told in each for change in told]

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Carry out the updates inside as one: all of them, or none if the body raises.

        Listeners are told what they come to, when the batch ends. Batches nest: an inner one that
        raises takes back its own part.

        >>> doc = parse("<orders/>")
        >>> with doc.batch():
        ...     changes = doc.update("insert node <order/> into /orders")
        ...     raise ValueError
        Traceback (most recent call last):
        ...
        ValueError
        >>> print(doc)
        <orders/>
        """
        with self._lock, self.as_one(Savepoint(self)):
            yield

    @contextmanager
    def as_one(self, savepoint: Savepoint) -> Iterator[None]:
        """All updates inside, told at the end; or back to the savepoint if the body raises."""
        if self._held is not None:  # an outer batch tells
            with savepoint.all_or_nothing():
                yield
            return
        with self.netted() as told, savepoint.all_or_nothing():
            yield
        tell(told)  # what a listener raises takes nothing back

    @contextmanager
    def told_at_the_end(self) -> Iterator[None]:
        """Tell the views' listeners only what the updates inside come to, each view once.

        What was done stays done if the body raises, and is not told then.
        """
        with self._lock:
            if self._held is not None:  # an outer batch tells
                yield
                return
            with self.netted() as told:
                yield
            tell(told)

    @contextmanager
    def netted(self) -> Iterator[Told]:
        """What the updates inside come to, each view once; listeners are not told."""
        with self._lock:
            outer, self._held = self._held, []
            told: Told = []
            try:
                yield told
            finally:
                held, self._held = self._held, outer
                by_view: dict[View, list[Change]] = {}
                for view, changes in held:
                    by_view.setdefault(view, []).extend(changes)
                told += [(view, net(changes)) for view, changes in by_view.items()]

    # Reading --------------------------------------------------------------------------------------

    def xml(self) -> str:
        """The document as XML text."""
        with self._lock:
            return serialise(self.nodes())

    def element(self) -> Element:
        """The root as an lxml element of its own: what is done to it leaves the document alone."""
        with self._lock:
            tree = self.nodes()
            text = serialise(tree, tree.root)
        return read_forest(text, self.limits)[0]

    def nodes(self) -> Tree:
        """The tree with everything in it that has arrived; an error if some was not kept."""
        with self._lock:
            self.settle()
            if self.forgotten:
                raise UpdateError(
                    "AX307",
                    f"{self.forgotten} messages were not kept, so the document is not whole",
                    advice='make the widget with keep="all"',
                )
            self._refuse_if_collected()
        return self.tree

    def _refuse_if_collected(self) -> None:
        if self.collected:
            raise UpdateError(
                "AX307",
                "finished streams or nodes were collected, so the document is not whole",
                advice='make the widget with collect="state"',
            )

    def nodes_left(self) -> Tree:
        """The tree without what was collected: what may still come, comes of it alone."""
        with self._lock:
            if not self.collected or self.forgotten or self.tree.facts:
                return self.nodes()  # a key's values may be gone: refused
            self.settle()
        return self.tree

    def drop(self, tops: Sequence[int]) -> None:
        """Take subtrees away that no view will look at again; their rows stay."""
        self.collected += len(tops)
        plan = pending.planned(self.tree, [Delete(top) for top in tops], keep_whitespace=True)
        self._values.before(plan.delta)
        self.engine.leave(tops)
        plan.commit()
        for view in self.views.values():
            view.standing.forget()
        self._values.after(plan.delta)

    @property
    def clock(self) -> Shown:
        """The latest time seen."""
        return shown(self.tree.clock, self.times)

    def __len__(self) -> int:
        """How many nodes the document has, of what was kept."""
        with self._lock:
            self.settle()
            return len(self.tree)

    def __str__(self) -> str:
        return self.xml()

    def __repr__(self) -> str:
        return f"Document({len(self)} nodes, {len(self.views)} views)"


def tell(each: Told) -> None:
    """Tell the listeners of every view; what the first of them raised is raised when all know."""
    raised: list[Exception] = []
    for view, changes in each:
        raised += view.tell(changes)
    if raised:
        raise raised[0]
