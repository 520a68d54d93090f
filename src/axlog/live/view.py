"""`View`: the rows of a query over a document that changes. The public face.

`MaintainedView` (`views/view.py`) does the work: it follows deltas, numbers changes and calls
subscribers. Other packages of axlog access it through `internals.py`.

Any thread may read a view. Readers see the rows before or after an update, never in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from axlog.document.parser import parse
from axlog.errors import QueryError
from axlog.live.subscription import Subscription, refuse_uncallable
from axlog.query.query import Query
from axlog.query.truth import Truth
from axlog.reporting import counted
from axlog.views.change import Change, Row
from axlog.views.family import Member
from axlog.views.view import MaintainedView

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from axlog.future.reasons import WhyNot
    from axlog.future.truth import Possible
    from axlog.views.explanation import Explanation
    from axlog.views.why import Derivation


class View:
    """The rows of a query, kept exact while the document changes. `Document.watch` makes it.

    >>> import axlog
    >>> doc = axlog.parse("<orders><order>17</order></orders>")
    >>> orders = doc.watch("match //order/$x return $x", "orders")
    >>> orders
    View('orders', 1 row, counting)
    >>> [row["x"] for row in orders]
    ['17']
    """

    __slots__ = ("_inside",)

    def __init__(self, inside: MaintainedView | Member) -> None:
        self._inside = inside

    @property
    def _maintained(self) -> MaintainedView:
        """The inside; of a view that shares a plan, made when it is first needed."""
        inside = self._inside
        return inside.opened() if isinstance(inside, Member) else inside

    # What it is -----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the view.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("//b", "bs").name
        'bs'
        """
        return self._inside.name

    @property
    def query(self) -> Query:
        """The parsed query; `query.text` is its text.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("//b").query.text
        '//b'
        """
        return self._maintained.query

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("match //b#t/$x return $x, t.time").columns
        ('x', 't.time')
        """
        return self._maintained.columns

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the columns that identify a row. `Row.key` and `Change.key` have the values.

        The key has the id of a node in place of its value or content, even if the id is not shown.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("match //b#t return t.val").key
        ('t.id',)
        """
        return self._maintained.key

    @property
    def work(self) -> int | None:
        """Rows that one update may make the view read; None: `Limits.work`.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("//b", work=1000).work
        1000
        """
        return self._maintained.work

    @property
    def position(self) -> int:
        """The position of the last change; 0 before the first.

        >>> import axlog
        >>> axlog.parse("<a><b/></a>").watch("//b").position
        0
        """
        return self._maintained.position

    @property
    def broken(self) -> QueryError | None:
        """The error for which the view was set aside, such as too many rows; None if it works.

        A view that was set aside raises this error on reads and emits no more changes. The document
        and the other views continue. To restore the view, unwatch it and watch it again.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("//b").broken is None
        True
        """
        inside = self._inside
        if isinstance(inside, Member) and inside.view is None:
            return inside.family.broken
        return self._maintained.broken

    # Rows -----------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Return the current rows, sorted: ids in document order, strings by code point.

        >>> import axlog
        >>> axlog.parse("<a><b>2</b><b>1</b></a>").watch("match //b/$x return $x").rows()
        [Row(x='1'), Row(x='2')]
        """
        return self._maintained.rows()

    def items(self) -> list[Any]:
        """Return the result of an XPath or XQuery view, in its order.

        Elements and constructed elements are XML text, attributes and texts their strings, atomic
        values Python values. A tree pattern has rows instead: AX211.

        >>> import axlog
        >>> doc = axlog.parse("<orders><order>17</order><order>4</order></orders>")
        >>> doc.watch("//order").items(), doc.watch("sum(//order)").items()
        (['<order>17</order>', '<order>4</order>'], [21.0])
        """
        return self._maintained.items()

    def head(self, n: int = 5) -> list[Row]:
        """Return some rows, in no particular order, without sorting a large view.

        Parameters:
            n: Maximum number of rows.

        >>> import axlog
        >>> axlog.parse("<a><b>1</b></a>").watch("match //b/$x return $x").head(1)
        [Row(x='1')]
        """
        return self._maintained.head(n)

    def holds(self) -> bool:
        """Return whether the view has a row: the answer of a Boolean view.

        >>> import axlog
        >>> axlog.parse("<a><b/></a>").watch("match //b").holds()
        True
        """
        return self._maintained.holds()

    def __iter__(self) -> Iterator[Row]:
        return iter(self._maintained)

    def __len__(self) -> int:
        inside = self._inside
        if isinstance(inside, Member) and not inside.may_have_rows():
            return 0
        return len(self._maintained)

    # The future -----------------------------------------------------------------------------------

    @property
    def truth(self) -> Truth:
        """TRUE: the view has a row. POSSIBLE: it may still get one. NEVER: it cannot.

        Raises `UndecidedError` where the analysis gives no verdict; the rows are exact all the
        same.

        >>> import axlog
        >>> doc = axlog.Document(streams=["orders"])
        >>> doc.watch("match //orders/order").truth
        <Truth.POSSIBLE: 'possible'>
        """
        return self._maintained.truth

    def possible(
        self, *, limit: int | None = None, after: Possible | None = None
    ) -> list[Possible]:
        """Return the rows that may still come, each with its known values, needs and deadline.

        All of them are sorted by their values. With `limit` or `after` they are returned page by
        page, the next deadlines first, and rows without a deadline last.

        Parameters:
            limit: Maximum number of rows.
            after: The last row of the page before.

        >>> import axlog
        >>> doc = axlog.Document(streams=["orders"])
        >>> [one.row for one in doc.watch("match /document/orders/order/$x return $x").possible()]
        [{'x': None}]
        """
        return self._maintained.possible(limit, after)

    def status(self, row: Mapping[str, Any]) -> Truth:
        """Return the truth of one row.

        Parameters:
            row: Values by column. An omitted value may be anything.

        >>> import axlog
        >>> doc = axlog.parse("<orders><order>17</order></orders>")
        >>> orders = doc.watch("match //order/$x return $x")
        >>> orders.status({"x": "17"}), orders.status({"x": "18"})
        (<Truth.TRUE: 'true'>, <Truth.NEVER: 'never'>)
        """
        return self._maintained.status(row)

    # Explanations ---------------------------------------------------------------------------------

    def why(self, row: Mapping[str, Any]) -> list[Derivation]:
        """Return the derivations of a row: the document node that each pattern node matched.

        Parameters:
            row: A row of the view, or its values by column. An omitted value may be anything.

        >>> import axlog
        >>> doc = axlog.parse("<orders><order>17</order></orders>")
        >>> len(doc.watch("match //order/$x return $x").why({"x": "17"}))
        1
        """
        return self._maintained.why(row)

    def why_not(self, row: Mapping[str, Any]) -> WhyNot:
        """Return the truth of a row, and the reasons for it.

        A possible row: what streams can still bring it, and until when. A row that can never come:
        the deadline that passed, the key value that was used up, the reference to what cannot come,
        the limit of a stream, what must be absent and is there, the condition of a group, the
        streams that ended. A row that holds: what can end it, or that nothing can.

        Parameters:
            row: Values by column. An omitted value may be anything.

        >>> import axlog
        >>> doc = axlog.Document(streams=["orders", "shipped"])
        >>> query = "match /document[orders/order/$x][not(shipped/order/$x)] return $x"
        >>> view = doc.watch(query)
        >>> _ = doc.feed("orders", "<order>17</order>")
        >>> print(view.why_not({"x": "17"}))
        true
          the row is there
          it stays until shipped brings <order>17</order>
        """
        return self._maintained.why_not(row)

    def explain(self) -> Explanation:
        """Return how the view is kept: the program, the maintainer and the reason for it.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("//b").explain().maintainer
        'counting'
        """
        return self._maintained.explain()

    # Conversions ----------------------------------------------------------------------------------

    def xml(self, row: Mapping[str, Any]) -> str:
        """Return a row as XML, in the form of the constructor of the query.

        Parameters:
            row: A row of the view, or its values by column.

        >>> import axlog
        >>> doc = axlog.parse("<orders><order>17</order></orders>")
        >>> view = doc.watch("for $o in //order return <id>{string($o)}</id>")
        >>> view.xml(view.rows()[0])
        '<id>17</id>'
        """
        return self._maintained.xml(row)

    def json(self, row: Mapping[str, Any]) -> Any:
        """Return a row as a JSON value: its XML, by the rule for JSON messages backwards.

        An element with elements is an object, repeated elements are an array, any other element is
        its text; `type="number"` (`boolean`, `null`, `array`) makes it a value of that type.

        Parameters:
            row: A row of the view, or its values by column.

        >>> import axlog
        >>> doc = axlog.parse("<orders><order>17</order></orders>")
        >>> query = "for $o in //order return <o><id type='number'>{string($o)}</id></o>"
        >>> view = doc.watch(query)
        >>> view.json(view.rows()[0])
        {'id': 17}
        """
        from axlog.document.json_messages import to_json

        return to_json(parse(self.xml(row)).root)

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows and their counts as an Arrow table (with the `arrow` extra).

        Times are 64-bit floats of seconds, or timestamps in UTC where times are dates.

        >>> import axlog
        >>> view = axlog.parse("<a><b>1</b></a>").watch("match //b/$x return $x")
        >>> view.to_arrow().to_pylist()
        [{'x': '1', 'count': 1}]
        """
        return self._maintained.to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows and their counts as a pandas data frame (with pandas and `arrow`).

        >>> import axlog
        >>> view = axlog.parse("<a><b>1</b></a>").watch("match //b/$x return $x")
        >>> list(view.to_pandas().columns)
        ['x', 'count']
        """
        return self._maintained.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the rows and their counts as a Polars data frame (with polars and `arrow`).

        `polars.DataFrame(view)` gives the same: a view is an Arrow stream.

        >>> import axlog
        >>> view = axlog.parse("<a><b>1</b></a>").watch("match //b/$x return $x")
        >>> view.to_polars().columns  # doctest: +SKIP
        ['x', 'count']
        """
        from axlog.views.arrow_table import polars_frame

        return polars_frame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows and their counts as an Arrow stream (the PyCapsule interface).

        Libraries that read Arrow take a view as it is: `pyarrow.table(view)`,
        `polars.DataFrame(view)`, `duckdb.sql("from view")`.
        """
        stream: object = self.to_arrow().__arrow_c_stream__(requested_schema)
        return stream

    # Changes --------------------------------------------------------------------------------------

    def subscribe(
        self,
        callback: Callable[[Change], None],
        *,
        since: int | None = None,
        snapshot: bool = False,
    ) -> Subscription:
        """Call a function with every change, in order.

        To unsubscribe, call the returned subscription, or use it in a `with` block.

        Parameters:
            callback: The function. It is called while the document is locked. Coroutine functions
                are refused: use `async for change in document.changes(name)`.
            since: Position of the last change that the subscriber has. It first gets the changes
                after this position. AX803 if they are not retained (`retain`).
            snapshot: Whether the subscriber first gets the current rows, as `insert` changes
                without a cause that have the current position.

        >>> import axlog
        >>> doc = axlog.parse("<orders/>", views={"orders": "match //order/$x return $x"})
        >>> unsubscribe = doc.view("orders").subscribe(lambda change: print(change.op, change.row))
        >>> _ = doc.update("insert node <order>17</order> into /orders")
        insert Row(x='17')
        >>> unsubscribe()
        """
        refuse_uncallable(callback)
        return Subscription(self._maintained.subscribe(callback, since=since, snapshot=snapshot))

    def retain(self, most: int) -> View:
        """From now on, retain the newest changes for `subscribe(since=...)`. Return the view.

        Parameters:
            most: Maximum number of changes. A lower number than before takes effect with the next
                change.

        >>> import axlog
        >>> doc = axlog.parse("<orders/>")
        >>> orders = doc.watch("match //order/$x return $x").retain(100)
        >>> _ = doc.update("insert node <order>17</order> into /orders")
        >>> orders.changes_since(0)
        [Change('insert', Row(x='17'))]
        """
        self._maintained.retain(most)
        return self

    @property
    def retained(self) -> int:
        """The maximum number of changes that the view retains; 0: none.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("//b").retained
        0
        """
        return self._maintained.retained

    def snapshot(self) -> tuple[int, list[Change]]:
        """Return the current position, and the current rows as `insert` changes at it.

        `changes_since` and `subscribe` with this position continue without a gap or an overlap.

        >>> import axlog
        >>> axlog.parse("<a><b>1</b></a>").watch("match //b/$x return $x").snapshot()
        (0, [Change('insert', Row(x='1'))])
        """
        return self._maintained.snapshot()

    def changes_since(self, position: int) -> list[Change]:
        """Return the retained changes after a position. AX803 if they are not retained.

        Parameters:
            position: Position of the last change that the caller has.

        >>> import axlog
        >>> axlog.parse("<orders/>").watch("//order").changes_since(0)
        []
        """
        return self._maintained.changes_since(position)

    def defer(self, is_deferred: bool = True) -> View:
        """From now on, follow updates when the view is read, and emit their net changes then.

        Nodes that are inserted and deleted between two reads are not matched. Rows that are
        inserted and deleted between two reads emit no changes. Returns the view.

        Parameters:
            is_deferred: False: follow every update again.

        >>> import axlog
        >>> doc = axlog.parse("<orders/>")
        >>> orders = doc.watch("match //order/$x return $x").defer()
        >>> doc.update("insert node <order>17</order> into /orders")
        []
        >>> orders.refresh()
        [Change('insert', Row(x='17'))]
        """
        self._maintained.defer(is_deferred)
        return self

    @property
    def is_deferred(self) -> bool:
        """Whether the view follows updates only when it is read.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("//b").is_deferred
        False
        """
        return self._maintained.is_deferred

    def refresh(self) -> list[Change]:
        """Bring a deferred view up to date. Return the net changes, which are emitted too.

        >>> import axlog
        >>> axlog.parse("<a/>").watch("//b").refresh()
        []
        """
        return self._maintained.refresh()

    def _repr_html_(self) -> str:
        return self._maintained.html()

    def __repr__(self) -> str:
        broken = self.broken
        size = counted(len(self), "row") if broken is None else f"set aside, {broken.code}"
        return f"View({self.name!r}, {size}, {self._maintained.chosen.name})"


def public(maintained: MaintainedView | Member) -> View:
    """Return the public object of a view; always the same one once it has been needed."""
    if isinstance(maintained, Member):
        if maintained.view is None:
            return View(maintained)
        maintained = maintained.view
    if not isinstance(maintained.public, View):
        maintained.public = View(maintained)
    return maintained.public
