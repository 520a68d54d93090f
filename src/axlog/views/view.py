"""A view: a query, its rows, and the changes that it emits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Any

from axlog.document.delta import Delta
from axlog.document.ids import Id
from axlog.document.times import Times, shown
from axlog.document.tree import Tree
from axlog.errors import QueryError, SetupError
from axlog.future.truth import Outlook, Possible
from axlog.future.verdict_cache import TruthCache
from axlog.query.pattern import Kind, Pattern
from axlog.query.query import Query
from axlog.query.truth import Truth
from axlog.views.change import Change, Row, timed_change, timed_row
from axlog.views.choose import Chosen
from axlog.views.counting.prospects import Prospects
from axlog.views.explanation import Explanation, explain
from axlog.views.maintainer import Maintainer, PutAside
from axlog.views.net_changes import net
from axlog.views.why import Derivation, derivations, inward

if TYPE_CHECKING:
    import pandas
    import pyarrow

Listener = Callable[[Change], None]


class View:
    """The rows of a query over a changing document, created by `watch`. Any thread may read it.

    Readers see the rows before or after an update, never in between: all reads hold the lock of the
    writer. Long computations (`possible`, `status`, `why`) run on a copy of the document that is
    made under the lock, so that updates do not wait for them.
    """

    def __init__(
        self,
        name: str,
        query: Query,
        maintainer: Maintainer,
        chosen: Chosen,
        lock: RLock,
        nodes: Callable[[], Tree],
        times: Times = "seconds",
    ) -> None:
        self.name = name
        self.query = query
        self.maintainer = maintainer
        self.chosen = chosen
        self.times: Times = times
        self.work: int | None = None  # rows that an update may make it read; None: the default
        self.sequence = 0
        self.never = 0  # number of `never` changes emitted
        self._lock = lock
        self._nodes = nodes
        self._listeners: list[Listener] = []
        self._is_deferred = False
        self._held: list[Change] = []
        self._is_due = False  # whether there were updates since the view was last read
        self.owed = 0  # number of these updates
        self.truth_cache = TruthCache(query.pattern, lambda: self.nodes_left())
        self.how_never: Callable[[], str] = lambda: "not reported: no stream feeds the document"
        """How `never` changes are found, or why they are not."""
        self.prospects: Callable[[], Prospects | None] = _no_prospects
        """The possible rows as the joins know them, if they do; avoids reading the document."""
        self.nodes_left = nodes
        """The document without the nodes that were garbage-collected."""
        self.is_whole: Callable[[], bool] = lambda: True

    @property
    def pattern(self) -> Any:
        return self.query.pattern

    @property
    def columns(self) -> tuple[str, ...]:
        return self.query.pattern.columns

    @property
    def broken(self) -> QueryError | None:
        """The error for which the view was set aside, such as too many rows; None if it works.

        A view that was set aside raises this error on reads and emits no more changes. The document
        and the other views continue. To restore the view, forget it and watch it again.
        """
        with self._lock:
            return self.maintainer.broken

    # Reading --------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """The current rows, sorted: ids in document order, strings by code point."""
        with self._lock:
            self.refresh()
            return self._timed(sorted(self.maintainer.rows(), key=_by_values))

    def head(self, n: int = 5) -> list[Row]:
        """Return at most `n` rows, in no particular order, without sorting a large view."""
        with self._lock:
            self.refresh()
            return self._timed(list(islice(self.maintainer.rows(), n)))

    def _timed(self, rows: list[Row]) -> list[Row]:
        return rows if self.times == "seconds" else [timed_row(row, self.times) for row in rows]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def __len__(self) -> int:
        with self._lock:
            self.refresh()
            return self.maintainer.size()

    def holds(self) -> bool:
        """Whether the view has a row: the answer of a Boolean view."""
        return len(self) > 0

    @property
    def truth(self) -> Truth:
        """TRUE: the view has a row. POSSIBLE: it may still get one. NEVER: it cannot.

        The verdict is maintained as data arrives (`future/verdict_cache.py`). Raises
        `UndecidedError` where the analysis gives no verdict; the rows are exact all the same.
        """
        with self._lock:
            prospects = self.prospects()
            if prospects is not None:
                return prospects.truth
            return Truth.TRUE if self.holds() else self.truth_cache.truth

    def possible(self) -> list[Possible]:
        """The rows that may still come, each with its known values, its needs and its deadline."""
        return [shown_possible(one, self.pattern, self.times) for one in self._possible()]

    def _possible(self) -> list[Possible]:
        """`possible` with times in microseconds."""
        with self._lock:
            prospects = self.prospects()
            if prospects is not None:
                return prospects.possible()
            tree = self.nodes_left().copied()
            # the tree lacks rows whose nodes were garbage-collected
            there = set() if self.is_whole() else {row.values_ for row in self.rows()}
        possible = Outlook(tree, self.query.pattern).possible()
        return [one for one in possible if tuple(one.row.values()) not in there]

    def status(self, row: Mapping[str, Any]) -> Truth:
        """The truth of one row, given by its values; omitted values may be anything."""
        row = inward(self.pattern, row)
        with self._lock:
            tree = self.nodes_left().copied()
            is_collected = not self.is_whole() and any(_is_of(row, each) for each in self.rows())
        status = Outlook(tree, self.query.pattern).status(row)
        return Truth.TRUE if is_collected else status

    def why(self, row: Mapping[str, Any]) -> list[Derivation]:
        """The derivations of a row: the document node that each pattern node matched."""
        with self._lock:
            tree = self._nodes().copied()
        return derivations(tree, self.query.pattern, row, self.times)

    def explain(self) -> Explanation:
        """How the view is kept: the program, the terms, the maintainer and the reason for it."""
        with self._lock:
            return explain(self.query, self.chosen, self.maintainer, self.how_never())

    def xml(self, row: Mapping[str, Any]) -> str:
        """The row as XML, in the form of the constructor of the query."""
        template = self.query.template
        if template is None:
            raise QueryError(
                "AX211",
                f"the view {self.name!r} has no constructor",
                advice="write the view in XQuery with `return <element>...</element>`",
            )
        return template.render(row)

    def to_arrow(self) -> pyarrow.Table:
        """The rows and their counts as an Arrow table (with the `arrow` extra).

        Times are 64-bit floats of seconds, or timestamps in UTC where times are dates.
        """
        try:
            import pyarrow
        except ImportError:
            raise SetupError(
                "AX901", "pyarrow is not installed", advice="pip install 'axlog[arrow]'"
            ) from None
        rows = self.rows()
        plain = [row.to_dict() for row in rows]
        data: dict[str, Any] = {column: [row[column] for row in plain] for column in self.columns}
        is_dated = self.times == "dates"
        kind = pyarrow.timestamp("us", "UTC") if is_dated else pyarrow.float64()
        for output in self.pattern.outputs:
            column = output.column
            if output.kind is Kind.TIME and not any(isinstance(v, list) for v in data[column]):
                times = [row[column] if is_dated else float(row[column]) for row in rows]
                data[column] = pyarrow.array(times, kind)
        return pyarrow.table({**data, "count": [row.count for row in rows]})

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows and their counts as a pandas data frame (with pandas and `arrow`)."""
        try:
            import pandas  # noqa: F401  # so that its absence is reported by code
        except ImportError:
            raise SetupError(
                "AX901", "pandas is not installed", advice="pip install pandas 'axlog[arrow]'"
            ) from None
        found: pandas.DataFrame = self.to_arrow().to_pandas()
        return found

    def _repr_html_(self) -> str:
        """A table in a notebook."""
        head = "".join(f"<th>{escape(c)}</th>" for c in (*self.columns, "count"))
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(str(_cell(v)))}</td>" for v in (*row.values(), row.count))
            + "</tr>"
            for row in self.rows()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        with self._lock:
            broken = self.broken
            said = f"{len(self)} rows" if broken is None else f"set aside, {broken.code}"
        return f"View({self.name!r}, {said}, {self.chosen.name})"

    # Changing -------------------------------------------------------------------------------------

    def subscribe(self, callback: Listener) -> Callable[[], None]:
        """Call a function with every change, in order. Returns a function that unsubscribes it."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def put_aside(self, error: QueryError) -> None:
        """Set the view aside: raise this error on reads and follow no updates."""
        self.maintainer.close()
        self.maintainer = PutAside(self.maintainer.tree, self.query.pattern, error.kept())
        self._held, self._is_due, self.owed = [], False, 0

    def before(self, delta: Delta) -> None:
        self.maintainer.before(delta)

    def defer(self, is_deferred: bool = True) -> View:
        """From now on, follow updates when the view is read, and emit their net changes then.

        Nodes that are inserted and deleted between two reads are not matched, and rows that come
        and go between two reads emit no changes.
        """
        with self._lock:
            self.refresh()
            self._is_deferred = is_deferred
        return self

    @property
    def is_deferred(self) -> bool:
        return self._is_deferred

    def refresh(self) -> list[Change]:
        """Follow the updates since the last read; return the net changes, which are emitted."""
        with self._lock:
            if not self._is_due:
                return []
            held, self._held, self._is_due = self._held, [], False
            self.owed = 0
            changes = self.number(net([*held, *self.maintainer.catch_up()]), self._nodes().clock)
        for error in self.tell(changes):
            raise error
        return changes

    def after(self, delta: Delta) -> list[Change]:
        """The changes of an applied delta, numbered but not emitted yet."""
        if self._is_deferred:
            return self.taken(self.maintainer.later(delta), delta.time)
        return self.number(self.maintainer.after(delta), delta.time)

    def taken(self, changes: list[Change], time: int) -> list[Change]:
        """Number the changes of the maintainer; a deferred view holds them until it is read."""
        if not self._is_deferred:
            return self.number(changes, time)
        self._held += changes
        self._is_due = True
        self.owed += 1
        return []

    def number(self, changes: list[Change], time: int) -> list[Change]:
        """Sort changes by their rows, deletions first, and number them.

        All changes pass here before they leave the view, so times become dates here if requested.
        """
        ordered = sorted(changes, key=_in_order) if len(changes) > 1 else changes
        numbered = [
            change.numbered(self.name, time, self.sequence + 1 + at)
            for at, change in enumerate(ordered)
        ]
        if self.times == "dates":
            numbered = [timed_change(change, self.times) for change in numbered]
        self.sequence += len(numbered)
        self.never += sum(change.op == "never" for change in numbered)
        return numbered

    def tell(self, changes: list[Change]) -> list[Exception]:
        """Pass every change to every subscriber; return the exceptions that they raised.

        An exception of one subscriber does not stop the others.
        """
        raised: list[Exception] = []
        for change in changes:
            for listener in tuple(self._listeners):
                try:
                    listener(change)
                except Exception as error:
                    raised.append(error)
        return raised


_OPS = {"delete": 0, "update": 1, "insert": 2, "never": 3}


def _by_values(row: Row) -> tuple[Any, ...]:
    return row.values_


def _in_order(change: Change) -> tuple[int, tuple[Any, ...]]:
    values = change.row.values_
    if change.op == "never":  # unknown values sort first
        values = tuple((value is not None, value) for value in values)
    return _OPS[change.op], values


def _is_of(wanted: Mapping[str, Any], row: Row) -> bool:
    """Whether a row has the requested values."""
    values = dict(zip(row.columns, row.values_, strict=True))
    return all(value is None or values[column] == value for column, value in wanted.items())


def shown_possible(one: Possible, pattern: Pattern, times: Times) -> Possible:
    """A possible row with its times converted to seconds or dates."""
    timed = {output.column for output in pattern.outputs if output.kind is Kind.TIME}
    row = {
        column: shown(value, times) if column in timed and value is not None else value
        for column, value in one.row.items()
    }
    until = one.deadline
    return Possible(row, one.needs, None if until is None else shown(int(until), times))


def _no_prospects() -> Prospects | None:
    return None


def _cell(value: Any) -> Any:
    return str(value) if isinstance(value, Id) else value
