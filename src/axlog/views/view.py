"""The inside of a view: a query, its rows, and the changes that it emits.

`axlog.View` (`live/view.py`) is the public face of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Any

from axlog.document.delta import Delta
from axlog.document.times import Times
from axlog.errors import QueryError, UndecidedError
from axlog.evaluate.sort_keys import exact_row_key
from axlog.query.columns import Columns, refuse_unknown_columns
from axlog.query.query import Query
from axlog.views.change import (
    CLOCK,
    Change,
    From,
    Row,
    timed_change,
    timed_row,
)
from axlog.views.change_buffer import ChangeBuffer, not_retained
from axlog.views.change_order import by_operation, by_typed_values, by_values, paired
from axlog.views.choose import Chosen
from axlog.views.future_rows import FutureRows
from axlog.views.key_form import KeyForm
from axlog.views.maintainer import Maintainer, PutAside
from axlog.views.net_changes import net
from axlog.views.step_rows import Stepping
from axlog.views.surroundings import Surroundings

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from axlog.future.verdict_cache import TruthCache
    from axlog.views.counting.join_prospects import AnyProspects
    from axlog.views.explanation import Explanation
    from axlog.views.items import ItemReader
    from axlog.views.member_prospects import MemberProspects
    from axlog.views.why import Derivation, Matched

Listener = Callable[[Change], None]


class MaintainedView(FutureRows):
    """The rows of a query over a changing document. Any thread may read them.

    Readers see the rows before or after an update, never in between: all reads hold the lock of the
    writer. Long computations (`possible`, `status`, `why`) run on a copy of the document that is
    made under the lock, so that updates do not wait for them. `why` reads the document itself where
    the values of the row lead to few nodes.
    """

    def __init__(
        self,
        name: str,
        query: Query | Callable[[], Query],
        maintainer: Maintainer,
        chosen: Chosen,
        lock: RLock,
        around: Surroundings,
        times: Times = "seconds",
        stepping: Stepping | None = None,
        form: KeyForm | None = None,
    ) -> None:
        self.name = name
        self._query = query  # of a member of a family: a function, called when it is first needed
        self.maintainer = maintainer
        self.chosen = chosen
        self.times: Times = times
        self.stepping = stepping or Stepping(self.query.row_key, self.query.text)
        self.rejects = False  # whether it refuses updates with values that it cannot compute
        self.work: int | None = None  # rows that an update may make it read; None: the default
        self.position = 0  # of the last change
        self.never = 0  # number of `never` changes emitted
        self._lock = lock
        self.around = around
        self._listeners: list[Listener] = []
        self.is_heard = False  # whether it ever had subscribers or retained changes
        self._is_deferred = False
        self._held: list[Change] = []
        self._is_due = False  # whether there were updates since the view was last read
        self.owed = 0  # number of these updates
        self._key = self.stepping.key
        if form is None:
            form = KeyForm(self._key)
        self.reads_clock = form.reads_clock
        is_ordered, has_steps = maintainer.is_ordered, bool(self._key.steps)
        self._change_order: Callable[[Change], Any] = (
            by_operation if is_ordered else by_typed_values if has_steps else by_values
        )
        self._order, self._splits = form.order, form.splits
        # Whether an update may keep the key of a row; steps and plans pair their own changes.
        is_pattern = isinstance(query, Query) and query.is_pattern
        if not isinstance(query, Query):
            is_pattern = not self._key.steps
        self._is_plain = not self._splits and times == "seconds"
        self._pairs = is_pattern and (self._splits or form.shows_ids)
        self._pick, self._split = form.pick, form.split
        self._buffer: ChangeBuffer | None = None
        self.public: object | None = None  # the `axlog.View` of it, once it was requested

    @property
    def query(self) -> Query:
        """The parsed query."""
        if not isinstance(self._query, Query):
            self._query = self._query()
        return self._query

    def prospects(self) -> AnyProspects | MemberProspects | None:
        return self.around.prospects(self)

    def how_never(self) -> str:
        """How `never` changes are found, or why they are not."""
        return self.around.how_never(self)

    @cached_property
    def truth_cache(self) -> TruthCache:
        """The truth of the view between updates."""
        from axlog.future.verdict_cache import TruthCache

        around = self.around
        cache = TruthCache(self.query.pattern, around.nodes_left, around.revisions)
        cache.may_come = lambda: around.may_come(self)
        return cache

    @cached_property
    def _reader(self) -> ItemReader:
        from axlog.views.items import ItemReader

        return ItemReader(self.query)

    @property
    def columns(self) -> Columns:
        return self._key.columns

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the columns that identify a row. `Row.key` and `Change.key` have the values.

        The key has the id of a node in place of its value or content, even if the id is not shown.
        """
        return self._key.names

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
            rows = self.maintainer.rows()
            is_ordered = self.maintainer.is_ordered
            return self._shown(list(rows) if is_ordered else sorted(rows, key=self._by_values))

    def whole_rows(self) -> list[Row]:
        """The current rows as changes have them before `number`: with the values of their keys."""
        with self._lock:
            self.refresh()
            return list(self.maintainer.rows())

    def _by_values(self, row: Row) -> tuple[Any, ...]:
        """The place of a row: by the order of the query, then by its values."""
        if not self._key.steps:
            return row.values_
        place = () if self._order is None else self._order(row.values_)
        return place, exact_row_key(row.values_)

    def items(self) -> list[Any]:
        """The result of an XPath or XQuery view, in its order; see the public `View.items`."""
        with self._lock:
            self.refresh()
            broken = self.maintainer.broken
            if broken is not None:
                raise broken
            if self.maintainer.has_items:
                return self.maintainer.items()
            return self._reader.items(self.around.nodes(), self.stepping.on_value_error == "reject")

    def head(self, n: int = 5) -> list[Row]:
        """Return at most `n` rows, in no particular order, without sorting a large view."""
        with self._lock:
            self.refresh()
            return self._shown(list(islice(self.maintainer.rows(), n)))

    def _shown(self, rows: list[Row]) -> list[Row]:
        """Rows of the maintainer as the view returns them: with their key and their times."""
        if self._splits:
            rows = list(map(self._split, rows))
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

    def why(self, row: Mapping[str, Any]) -> list[Derivation]:
        """The derivations of a row: the document node that each pattern node matched.

        A column that is left out may have any value.
        """
        from axlog.views.dataflow.maintainer import Dataflow
        from axlog.views.why import (
            derivations,
            has_values,
            is_found_by_values,
            step_derivations,
        )

        refuse_unknown_columns(self.columns, row)
        with self._lock:
            if isinstance(self.maintainer, Dataflow):
                return self.maintainer.why(row, self.times)
            if self.query.foreign is not None:
                raise UndecidedError(
                    "AX502",
                    "the nodes behind a row that Saxon gives are not known",
                    advice="a query that axlog keeps itself: explain() says why it does not",
                )
            tree, pattern = self.around.nodes(), self.query.pattern
            if not self._key.steps and is_found_by_values(tree, pattern):
                return derivations(tree, pattern, row, self.times, self.around.value_index())
            tree = tree.copied()
        if self._key.steps:
            stepping = replace(self.stepping, key=self.query.row_key)
            is_whole = row.keys() >= set(self.columns)
            asked = [row] if is_whole else [each for each in self.rows() if has_values(each, row)]
            return [
                found
                for each in asked
                for found in step_derivations(tree, stepping, each, self.times)
            ]
        return derivations(tree, pattern, row, self.times)

    def parts(self, row: Mapping[str, Any]) -> list[Matched]:
        """The nodes that have a value of a row where the query binds it, also of an absent row."""
        from axlog.views.dataflow.maintainer import Dataflow
        from axlog.views.why import present_parts

        if isinstance(self.maintainer, Dataflow) or self.query.foreign is not None:
            return []
        with self._lock:
            tree = self.around.nodes().copied()
        pattern = self._key.pattern if self._key.steps else self.query.pattern
        return present_parts(tree, pattern, row, self.times)

    def explain(self) -> Explanation:
        """How the view is kept: the program, the terms, the maintainer and the reason for it."""
        from axlog.views.explanation import explain, how_decided

        with self._lock:
            truth = how_decided(self.maintainer.tree, lambda: self.truth)
            never = self.how_never()
            found = explain(self.query, self.chosen, self.maintainer, never, truth)
            around, parts = self.around, self.around.shared_parts(self)
            shared, apart = around.shared(self), around.apart(self)
            return replace(found, shared=shared, apart=apart, shared_parts=parts)

    def xml(self, row: Mapping[str, Any]) -> str:
        """The row as XML, in the form of the constructor of the query."""
        from axlog.query.template import rendered

        return rendered(self.query.template, row, self.name)

    def to_arrow(self) -> pyarrow.Table:
        """The rows and their counts as an Arrow table (with the `arrow` extra).

        Times are 64-bit floats of seconds, or timestamps in UTC where times are dates. Counts are
        integers, sums are decimals (`arrow_table.py`).
        """
        from axlog.views.arrow_table import arrow_table

        return arrow_table(self.rows(), self.columns, self.times)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows and their counts as a pandas data frame (with pandas and `arrow`)."""
        from axlog.views.arrow_table import pandas_frame

        return pandas_frame(self.to_arrow())

    def html(self) -> str:
        """Return the rows as a table for a notebook."""
        from axlog.views.html_table import html_table

        return html_table(self.columns, self.rows())

    def __repr__(self) -> str:
        with self._lock:
            broken = self.broken
            size = f"{len(self)} rows" if broken is None else f"set aside, {broken.code}"
        return f"View({self.name!r}, {size}, {self.chosen.name})"

    # Changing -------------------------------------------------------------------------------------

    def subscribe(
        self, callback: Listener, *, since: int | None = None, snapshot: bool = False
    ) -> Callable[[], None]:
        """Call a function with every change, in order; see the public `View.subscribe`."""
        self.is_heard = True
        if since is None and not snapshot:
            self._listeners.append(callback)
            return lambda: self._listeners.remove(callback)
        if since is not None and snapshot:
            raise QueryError("AX211", "both since and snapshot", expected="one of the two")
        with self._lock:
            self.refresh()
            self._refuse_batched()
            start = self.position
            first = self.snapshot()[1] if since is None else self.changes_since(since)

            def later(change: Change) -> None:
                if change.position > start:  # others may not have been emitted yet
                    callback(change)

            for change in first:
                callback(change)
            self._listeners.append(later)
        return lambda: self._listeners.remove(later)

    def snapshot(self) -> tuple[int, list[Change]]:
        """The current position, and the rows as `insert` changes at this position.

        `changes_since` and `subscribe` with this position continue without a gap or an overlap.
        """
        with self._lock:
            self.refresh()
            self._refuse_batched()
            clock, position = self.maintainer.tree.clock, self.position
            rows = self.rows()
            return position, [
                Change("insert", row, None, self.name, clock, position) for row in rows
            ]

    def _refuse_batched(self) -> None:
        """Inside a batch the rows are ahead of the emitted changes, which are netted at its end."""
        if self.around.is_batched():
            raise QueryError("AX211", "a snapshot or a position inside a batch")

    def retain(self, most: int) -> None:
        """From now on, retain at most this many of the newest changes for `subscribe(since=...)`.

        A number below the current one drops nothing that is retained already, until a change comes.
        """
        with self._lock:
            self.is_heard = True
            if self._buffer is None:
                self._buffer = ChangeBuffer(most, self.position)
            self._buffer.most = most

    @property
    def retained(self) -> int:
        """The number of changes that the view retains at most; 0: none."""
        return 0 if self._buffer is None else self._buffer.most

    def resume(self, position: int) -> None:
        """Continue after a position. Changes before it were emitted elsewhere and not retained."""
        self.position = position
        if self._buffer is not None:
            self._buffer = ChangeBuffer(self._buffer.most, position)

    def continue_from(self, other: MaintainedView) -> None:
        """Take over the position, the subscribers and the retained changes of another view."""
        self.position, self.never = other.position, other.never
        self._listeners, self._buffer, self.is_heard = other._listeners, other._buffer, True

    def changes_since(self, position: int) -> list[Change]:
        """The emitted changes after a position. AX803 if they are not retained."""
        with self._lock:
            if position == self.position:
                return []
            buffer = self._buffer
            first = None if buffer is None else buffer.first
            if buffer is None or not buffer.first <= position <= self.position:
                raise not_retained(self.name, position, first, self.position)
            return buffer.after(position)

    def put_aside(self, error: QueryError) -> None:
        """Set the view aside: raise this error on reads and follow no updates."""
        self.maintainer.close()
        self.maintainer = PutAside(self.maintainer.tree, self.query.pattern, error.kept())
        self._held, self._is_due, self.owed = [], False, 0

    def before(self, delta: Delta) -> None:
        self.maintainer.before(delta)

    def defer(self, is_deferred: bool = True) -> None:
        """From now on, follow updates when the view is read, and emit their net changes then.

        Nodes that are inserted and deleted between two reads are not matched, and rows that come
        and go between two reads emit no changes.
        """
        with self._lock:
            self.refresh()
            self._is_deferred = is_deferred

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
            changes = net([*held, *self.maintainer.catch_up()])
            changes = self.number(changes, self.around.nodes().clock, is_deferred=True)
        for error in self.emit(changes):
            raise error
        return changes

    def after(self, delta: Delta) -> list[Change]:
        """The changes of an applied delta, numbered but not emitted yet."""
        if self._is_deferred:
            return self.taken(self.maintainer.later(delta), delta.time)
        return self.number(self.maintainer.after(delta), delta.time)

    def passed(self, clock: int) -> list[Change]:
        """The changes that time alone causes up to a clock, numbered but not emitted yet."""
        changes = self.maintainer.pass_time(clock)
        for change in changes if self._is_deferred else ():
            change.origin = None  # netted like the others
        return self.taken(changes, clock) if changes else []

    @staticmethod
    def taken_of_each(
        moves: Iterable[tuple[MaintainedView, list[Change] | Row]], time: int, origin: From
    ) -> list[tuple[MaintainedView, list[Change]]]:
        """`taken` for different views; a row stands for its insertion.

        `origin`: the update that is being applied.
        """
        found: list[tuple[MaintainedView, list[Change]]] = []
        for view, moved in moves:
            if type(moved) is Row and view._is_plain and not view._is_deferred:
                view.position = position = view.position + 1
                changes = [Change("insert", moved, None, view.name, time, position, origin)]
                found.append((view, changes))
                continue
            given = moved if isinstance(moved, list) else [Change("insert", moved)]
            changes = view.taken(given, time)
            if changes:
                found.append((view, changes))
        return found

    def taken(self, changes: list[Change], time: int) -> list[Change]:
        """Number the changes of the maintainer; a deferred view holds them until it is read."""
        if not self._is_deferred:
            return self.number(changes, time)
        self._held += changes
        self._is_due = True
        self.owed += 1
        return []

    def number(
        self, changes: list[Change], time: int, *, is_deferred: bool = False
    ) -> list[Change]:
        """Sort changes by their rows, deletions first, and complete their envelopes.

        All changes pass here before they leave the view, once: the envelope is written into the
        changes of the maintainer. Changes of the clock have their own times and come first, in
        the order of these. The changes of a deferred view have no cause.
        """
        if len(changes) > 1:
            if self._pairs:
                changes = paired(changes, self._pick)
            changes = sorted(changes, key=self._change_order)
        origin = None if is_deferred else self.around.current.origin
        name, position, splits = self.name, self.position, self._splits
        for change in changes:
            position += 1
            change.view, change.position = name, position
            if change.origin != CLOCK:
                change.origin, change.microseconds = origin, time
            if splits and change.row.key_ is None:
                change.row = self._split(change.row)
                if change.before is not None:
                    change.before = self._split(change.before)
            op = change.op
            if op == "insert" or op == "update":
                continue
            if op == "never":
                change.final = True
                self.never += 1
            else:
                change.final = self._is_final(change)
        self.position = position
        if self.times == "dates":
            return [timed_change(change, self.times) for change in changes]
        return changes

    def _is_final(self, change: Change) -> bool:
        """Whether a deleted row can never return: a stream or the clock deleted it, and no stream
        is open, or what had to be absent came and stays. A statement can be undone by another.
        """
        if not isinstance(change.origin, tuple | str):
            return False  # a statement deleted it
        is_moved = change.origin == CLOCK or self.maintainer.next_moment() is not None
        is_over = (
            not (self.reads_clock and is_moved) and self.around.is_over()
        )  # time may bring it back
        if is_over or change.origin == CLOCK or not self._is_lasting:
            return is_over
        if self.around.current.is_deletion:
            return False  # of its own data, perhaps, which may come again
        from axlog.future.finality import may_return

        return not may_return(self.maintainer.tree, self.query.pattern)

    @cached_property
    def _is_lasting(self) -> bool:
        """Whether rows that data removes cannot return, if nothing is deleted."""
        from axlog.future.finality import is_lasting_query

        return is_lasting_query(self.query)

    def add_never(self, changes: list[Change], never: list[Change], time: int) -> None:
        """Add `never` changes to the numbered changes of the same update.

        Changes of the clock come first, by their times: these are before that of the update.
        """
        if not changes:
            changes += self.number(never, time)
            return
        early = [change for change in never if change.origin == CLOCK]
        late = [change for change in never if change.origin != CLOCK]
        if early:
            first = self.position - len(changes)
            early = self.number(early, time)
            passed = [change for change in changes if change.origin == CLOCK]
            rest = changes[len(passed) :]
            passed = sorted([*passed, *early], key=self._change_order)
            changes[:] = [*passed, *rest]
            for position, change in enumerate(changes, first + 1):
                change.position = position
        changes += self.number(late, time)

    def emit(self, changes: list[Change]) -> list[Exception]:
        """Pass every change to every subscriber; return the exceptions that they raised.

        An exception of one subscriber does not stop the others.
        """
        raised: list[Exception] = []
        if not self._listeners and self._buffer is None:
            return raised
        if self._buffer is not None:
            self._buffer.add(changes)
        if not self._listeners:
            return raised
        for change in changes:
            for listener in tuple(self._listeners):
                try:
                    listener(change)
                except Exception as error:
                    raised.append(error)
        return raised
