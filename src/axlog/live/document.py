"""`Document`: XML that statements and streams change, with views that follow. The public face.

    doc = axlog.parse("<orders/>")                    from XML
    doc = axlog.Document(streams=["orders"])          a skeleton for streams
    doc = axlog.open("store", "<orders/>")            durable (`store.py`)

`MaintainedTree` (tree, views, statements) and `Streams` (messages) do the work. `Streams` is made
when the document has a call or a fact, or when it is first needed. A document that only statements
change does not pay for it. Other packages of axlog access both through `internals.py`.

One writer at a time. Readers see the views before or after an update, never in between. An update
that cannot be applied raises and changes nothing. An exception of a subscriber is raised after the
update is done and the other subscribers were called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from axlog.document.loader import load
from axlog.document.messages import AnyMessage, Message, as_message
from axlog.document.operations import message_nodes
from axlog.document.parser import Element, Source
from axlog.document.stream_update import LISTS, StreamUpdate
from axlog.document.times import Shown, Time, start_of
from axlog.document.tree import NONE, Tree
from axlog.errors import AxlogError, QueryError, StreamError
from axlog.live.hooks import IDLE
from axlog.live.maintained import MaintainedTree
from axlog.live.options import DEFAULT_OPTIONS, Options
from axlog.live.view import View, public
from axlog.query.parameters import Parameters, given_parameters
from axlog.query.query import Language, Query
from axlog.reporting import counted
from axlog.views.change import Change
from axlog.views.family import Member

if TYPE_CHECKING:
    from axlog.document.schema_sources import Types
    from axlog.document.skeleton import StreamNames
    from axlog.live.change_feed import ChangeFeed
    from axlog.live.collection import Collection, Dropped
    from axlog.live.profile import Profile
    from axlog.live.savepoint import Savepoint
    from axlog.live.stream_status import StreamStatus
    from axlog.live.streams import DeadLetter, Streams
    from axlog.live.tuner import TuningReport
    from axlog.match.filters import Filter
    from axlog.views.operators.disk_table import Shelf
    from axlog.views.step_chain import OnValueError


def parse(
    source: Source | Tree,
    *,
    views: Mapping[str, str | Query] | None = None,
    facts: Iterable[str] = (),
    types: Types | Iterable[Types] | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Document:
    """Make a document from XML.

    Parameters:
        source: Text, bytes, a path, a file, or an lxml or ElementTree element. An `ax:call` element
            marks the place where a stream's messages arrive.
        views: Views to watch, by name.
        facts: Declarations about the future, such as `key orders/order by oid trusted`.
        types: Types of the document and of its services. The document must have its type, and an
            update that would break a type is rejected.
        options: How the document is kept.

    >>> doc = parse("<orders><order><oid>17</oid></order></orders>")
    >>> ids = doc.watch("match //order/oid/$x return $x")
    >>> doc.update("insert node <order><oid>18</oid></order> into /orders")
    [Change('insert', Row(x='18'))]
    """
    return Document(source, views=views, facts=facts, types=types, options=options)


class Document:
    """XML that statements and streams change, with views that follow.

    Parameters:
        source: As for `parse`. None: a skeleton for `streams`.
        streams: Names of streams, or a mapping from each name to its declarations, the attributes
            of its call (`{"positions": {"replace": "vehicle"}}`). Each stream gets an element of
            its name below the root, `document`, in which its messages arrive. Give either these
            or a source.
        views: Views to watch, by name.
        facts: Declarations about the future, such as `key orders/order by oid trusted`.
        types: Types of the document and of its services.
        options: How the document is kept.

    >>> doc = Document(streams=["orders"], views={"ids": "match //orders/order/oid/$x return $x"})
    >>> doc.feed("orders", "<order><oid>17</oid></order>", at=12.5)
    [Change('insert', Row(x='17'))]
    """

    def __init__(
        self,
        source: Source | Tree | None = None,
        *,
        streams: StreamNames = (),
        views: Mapping[str, str | Query] | None = None,
        facts: Iterable[str] = (),
        types: Types | Iterable[Types] | None = None,
        options: Options = DEFAULT_OPTIONS,
    ) -> None:
        if source is None:
            from axlog.document.skeleton import skeleton

            source = skeleton(streams, options.limits, options.namespaces)
        elif streams:
            raise QueryError("AX211", "both a source and streams", expected="one of the two")
        tree = source
        if not isinstance(tree, Tree):
            start = start_of(options.at, options.times)
            tree = load(
                tree, limits=options.limits, keep_whitespace=options.keep_whitespace, time=start
            )
        self._maintained = MaintainedTree(
            tree,
            limits=options.limits,
            keep_whitespace=options.keep_whitespace,
            namespaces=options.namespaces,
            shelf=_shelf(options) if options.cache == "disk" else None,
            types=types,
            times=options.times,
            on_violation=options.on_violation,
        )
        if options.share == "off" or (options.share == "auto" and options.keep != "all"):
            self._maintained.families.share_from = None
        self._maintained.families.is_requested = options.share == "always"
        declared = list(facts)
        if declared or tree.facts or tree.references:
            _declare(tree, declared, options, checks=tree is not source)
        self._maintained.savepoint = self._savepoint
        self._options = options
        self._dead_letters: list[DeadLetter] = []
        self._streams: Streams | None = None
        if tree.calls() or tree.facts or tree.references:
            self._start_streams()
        for name, query in (views or {}).items():
            Document.watch(self, query, name)

    def _savepoint(self) -> Savepoint:
        from axlog.live.savepoint import Savepoint

        return Savepoint(self)

    def _start_streams(self) -> Streams:
        """Return the stream machinery, made when it is first needed."""
        from axlog.live.streams import Streams

        with self._maintained.lock:
            if self._streams is None:
                self._streams = Streams(self._maintained, self._options, self._dead_letters)
            return self._streams

    def _stop_streams(self) -> None:
        """Undo `_start_streams` when the batch that called it is rolled back."""
        self._streams = None
        self._maintained.hooks = IDLE

    # Views ----------------------------------------------------------------------------------------

    def watch(
        self,
        query: str | Query,
        name: str | None = None,
        *,
        parameters: Parameters | None = None,
        language: Language | None = None,
        maintainer: str | None = None,
        work: int | None = None,
        on_value_error: OnValueError = "null",
        since: Literal["start", "now"] = "start",
    ) -> View:
        """Add a view. Its rows are those of the document now and follow every later update.

        Parameters:
            query: A tree pattern, XPath or XQuery.
            name: Name of the view; None: `view1`, `view2`, ...
            parameters: Values of the query's external variables: strings, numbers, Booleans,
                dates, durations. `$client` in a tree pattern or in XPath is one if it has a
                value here; XQuery declares it with `declare variable $client external;`. Views
                of one query with different parameters share one plan.
            language: `pattern`, `xpath` or `xquery`; None: by the query's first word.
            maintainer: Algorithm that keeps the rows; None: chosen by query and document.
            work: Rows that one update may make the view read. A view that exceeds it is set aside
                with AX216. None: `Limits.work`.
            on_value_error: What happens with a value that the query cannot compute, such as a sum
                with a text. `null`: the value is None. `reject`: the update is refused.
            since: What happens if earlier messages were not kept (`Options.keep`). `start`: AX307,
                unless views of the same query with other constants or parameters share a plan
                that has the rows. `now`: the view starts without the rows of these messages.

        >>> doc = parse("<orders><order><oid>17</oid></order></orders>")
        >>> doc.watch("match //order/oid/$x return $x", "ids").rows()
        [Row(x='17')]
        >>> doc.watch("match //order#t[oid/$id] return t.val", parameters={"id": "17"}).rows()
        [Row(t.val='17')]
        """
        query = given_parameters(query, parameters, language)
        maintained = self._maintained
        with maintained.lock:
            view = maintained.watch(
                query, name, language=language, maintainer=maintainer, work=work,
                on_value_error=on_value_error, since=since,
            )  # fmt: skip
            shown = public(view)
            if self._options.retain_changes:
                shown.retain(self._options.retain_changes)
            if self._streams is not None and not isinstance(view, Member):
                self._streams.engine.prepare()
        return shown

    def change(
        self,
        name: str,
        query: str | Query,
        *,
        parameters: Parameters | None = None,
        language: Language | None = None,
        maintainer: str | None = None,
        work: int | None = None,
        on_value_error: OnValueError = "null",
    ) -> list[Change]:
        """Give a view another query, and return the net difference of its rows.

        Subscribers stay, and get the difference as changes with the next positions. `view(name)` is
        the view with the new query. If the new query is refused, the view stays as it is.

        Parameters:
            name: Name of the view.
            query: The new query.
            parameters: As for `watch`.
            language: As for `watch`.
            maintainer: As for `watch`.
            work: As for `watch`.
            on_value_error: As for `watch`.

        >>> doc = parse("<orders><order>17</order><order>3</order></orders>")
        >>> _ = doc.watch("match //order/$x where $x > 10 return $x", "large")
        >>> doc.change("large", "match //order/$x where $x < 20 return $x")
        [Change('insert', Row(x='3'))]
        """
        from axlog.live.view_change import change_view

        self.view(name)
        text = given_parameters(query, parameters, language)
        maintained = self._maintained
        with maintained.lock:
            found = change_view(
                maintained, name, text, language=language, maintainer=maintainer, work=work,
                on_value_error=on_value_error,
            )  # fmt: skip
            if self._streams is not None:
                self._streams.engine.prepare()
        return found

    def unwatch(self, name: str) -> None:
        """Drop a view.

        Parameters:
            name: Name of the view.

        >>> doc = parse("<orders/>", views={"orders": "//order"})
        >>> doc.unwatch("orders")
        >>> doc.views
        {}
        """
        self._maintained.unwatch(name)

    def view(self, name: str) -> View:
        """Return a view. An unknown name raises `QueryError` AX203.

        Parameters:
            name: Name of the view.

        >>> parse("<orders><order/></orders>", views={"orders": "//order"}).view("orders")
        View('orders', 1 row, counting)
        """
        found = self._maintained.families.watched(name)
        if found is None:
            known = ", ".join(sorted(self.views)) or "none"
            raise QueryError("AX203", f"there is no view {name!r}", expected=known)
        return public(found)

    @property
    def views(self) -> dict[str, View]:
        """The views by name.

        >>> sorted(parse("<orders/>", views={"a": "//a", "b": "//b"}).views)
        ['a', 'b']
        """
        with self._maintained.lock:
            return {name: public(view) for name, view in self._maintained.families.every_view()}

    def changes(self, name: str, *, since: int | None = None, snapshot: bool = False) -> ChangeFeed:
        """Return a feed of a view's changes from now on, for `for` and `async for`.

        Parameters:
            name: Name of the view.
            since: Position of the last change that the reader has: the feed starts after it. AX803
                if the changes after it are not retained (`Options.retain_changes`).
            snapshot: Whether the feed starts with the current rows, as `insert` changes.

        >>> doc = parse("<orders/>", views={"orders": "match //order/$x return $x"})
        >>> feed = doc.changes("orders")
        >>> _ = doc.update("insert node <order>17</order> into /orders")
        >>> list(feed)
        [Change('insert', Row(x='17'))]
        """
        from axlog.live.change_feed import ChangeFeed

        view = self.view(name)
        return ChangeFeed(partial(view.subscribe, since=since, snapshot=snapshot))

    # Updates --------------------------------------------------------------------------------------

    def update(
        self,
        statement: str,
        at: Time | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[Change]:
        """Run a statement of XQuery Update, or several separated by `;`, one by one.

        Parameters:
            statement: The statement.
            at: Time of the update; None: the document's clock.
            variables: Values of the statement's variables: strings, numbers, Booleans, dates,
                times, XML (`Fragment`, elements, element trees), other documents, identifiers
                of nodes (`Id`), and lists of them. A string is never parsed as XML. A statement
                that is used again with other values is parsed once.

        >>> doc = parse("<people><person id='1'><phone/></person><person id='2'/></people>")
        >>> doc.update("delete nodes //person[phone]")
        []
        >>> doc.update("rename node //person[@id = $id] as 'user'", variables={"id": "2"})
        []
        >>> print(doc)
        <people><user id="2"/></people>
        """
        return self._maintained.update(statement, at, variables)

    def apply(self, updates: str, at: Time | None = None, *, reduce: bool = True) -> list[Change]:
        """Apply lists of updates, as `axlog diff` and `axlog reduce` write them, one after the
        other.

        The targets of a list are ids of nodes. Each list is checked and applied as a whole, and its
        changes are those of one update. A later list may name nodes that an earlier one inserts by
        the ids that they got where the lists were recorded.

        Parameters:
            updates: The lists: JSON, one list per line, or XML.
            at: Time of the updates; None: the document's clock.
            reduce: Reduce each list before it is applied: operations without effect are dropped,
                insertions at one place are merged.

        >>> doc = parse("<orders><order>17</order></orders>")
        >>> _ = doc.watch("match //order/$x return $x")
        >>> doc.apply('{"updates": [{"op": "delete", "target": "1.1"}]}')
        [Change('delete', Row(x='17'))]
        """
        from axlog.document.list_codec import read_lists
        from axlog.live.list_updates import apply_list

        changes: list[Change] = []
        for one in read_lists(updates, self._options.limits):
            changes += apply_list(self._maintained, one, at, reduces=reduce)
        return changes

    def feed(self, stream: str, message: AnyMessage, at: Time | None = None) -> list[Change]:
        """Apply a message of a stream: its trees are inserted just before the stream's call.

        Parameters:
            stream: Name of the stream.
            message: XML of one or more trees: text, bytes, an lxml or ElementTree element. JSON:
                text, or an object as `json.loads` returns it, becomes elements.
            at: Time of the message; None: the document's clock.

        >>> doc = Document(streams=["orders"], views={"all": "match //order/$x return $x"})
        >>> doc.feed("orders", "<order>17</order>")
        [Change('insert', Row(x='17'))]
        >>> doc.feed("orders", {"order": 18})
        [Change('insert', Row(x='18'))]
        """
        streams = self._streams or self._start_streams()
        generated = streams.engine.direct.get(stream)
        if generated is not None:
            changes = generated(message, at, None)
            if changes is not None:
                return changes
        return streams.feed(stream, as_message(message), at, streams.latest(stream, at))

    def feed_many(
        self,
        stream: str,
        messages: Iterable[AnyMessage],
        at: Time | Sequence[Time | None] | None = None,
    ) -> list[Change]:
        """Apply messages of a stream in order, as `feed`; small ones are parsed together.

        Each message is applied and emits its changes on its own. With `on_error="raise"` the first
        one that is rejected raises, and those before it stay applied.

        Parameters:
            stream: Name of the stream.
            messages: The messages, each as for `feed`.
            at: Time of all messages, or a list with the time of each; None: the document's clock.

        >>> doc = Document(streams=["orders"], views={"all": "match //order/$x return $x"})
        >>> doc.feed_many("orders", ["<order>17</order>", "<order>18</order>"], at=[1, 2])
        [Change('insert', Row(x='17')), Change('insert', Row(x='18'))]
        """
        given = list(map(as_message, messages))
        if isinstance(at, list | tuple):
            times: Sequence[Time | None] = at
            if len(times) != len(given):
                raise StreamError(
                    "AX409", f"{len(given)} messages have {len(times)} times",
                    expected="one time for all messages, or one for each",
                )  # fmt: skip
        else:
            times = [cast("Time | None", at)] * len(given)
        return self._feed_all(stream, given, times)

    def _feed_all(
        self, stream: str, messages: Sequence[Message], times: Sequence[Time | None]
    ) -> list[Change]:
        streams = self._streams or self._start_streams()
        return streams.feed_many(stream, messages, times)

    @contextmanager
    def profile(self) -> Iterator[Profile]:
        """Measure where the time of messages goes while the block runs.

        >>> doc = Document(streams=["orders"], views={"all": "match //order/$x return $x"})
        >>> with doc.profile() as found:
        ...     _ = doc.feed("orders", "<order>17</order>")
        >>> found.messages, found.changes
        (1, 1)
        """
        from axlog.live.profile import Profile

        streams = self._streams or self._start_streams()
        found = Profile()
        with self._maintained.lock:
            streams.engine.measure(found)
            streams.engine.prepare_all()
        try:
            yield found
        finally:
            with self._maintained.lock:
                streams.engine.measure(None)

    async def afeed(self, stream: str, message: AnyMessage, at: Time | None = None) -> list[Change]:
        """Apply a message of a stream, as `feed`, without blocking the event loop.

        The message is applied in a thread. Messages that are awaited one after the other are
        applied in their order.

        Parameters:
            stream: Name of the stream.
            message: As for `feed`.
            at: Time of the message; None: the document's clock.

        >>> import asyncio
        >>> doc = Document(streams=["orders"], views={"all": "match //order/$x return $x"})
        >>> asyncio.run(doc.afeed("orders", "<order>17</order>"))
        [Change('insert', Row(x='17'))]
        """
        from asyncio import to_thread

        return await to_thread(self.feed, stream, message, at)

    def delete(self, stream: str, pattern: str, at: Time | None = None) -> list[Change]:
        """Apply a deletion of a stream: drop the siblings of its call that match a pattern.

        The call must allow deletions (`deletes="yes"`). Each sibling is matched as a document.

        Parameters:
            stream: Name of the stream.
            pattern: A query; a sibling for which it has a row is deleted.
            at: Time of the message; None: the document's clock.

        >>> doc = parse('<r><a>1</a><ax:call xmlns:ax="urn:axlog" stream="s" deletes="yes"/></r>')
        >>> _ = doc.watch("match /r/a/$x return $x")
        >>> doc.delete("s", "match /a")
        [Change('delete', Row(x='1'))]
        """
        streams = self._streams or self._start_streams()
        return streams.delete(stream, pattern, at, streams.latest(stream, at))

    def retract(self, stream: str, number: int, at: Time | None = None) -> list[Change]:
        """Take back a message: delete what it inserted. Views lose the rows that needed it.

        Parameters:
            stream: Name of the stream.
            number: Number of the message in its stream, from 1. The cause of a change has it.
            at: Time of the retraction; None: the document's clock.

        >>> doc = Document(streams=["orders"], views={"all": "match //order/$x return $x"})
        >>> (change,) = doc.feed("orders", "<order>17</order>")
        >>> doc.retract("orders", 1)
        [Change('delete', Row(x='17'))]
        """
        with self._maintained.lock:
            tree = self._maintained.nodes()
            ids = [tree.id(node) for node in message_nodes(tree, stream, number)]
        return self.update("delete nodes $nodes", at, {"nodes": ids})

    def end(self, stream: str, at: Time | None = None) -> list[Change]:
        """End a stream: its call is removed, and no more of its messages are accepted.

        Parameters:
            stream: Name of the stream.
            at: Time of its end; None: the document's clock.

        >>> doc = Document(streams=["orders"], views={"any": "match //orders/order"})
        >>> doc.end("orders")
        [Change('never', Row())]
        >>> doc.view("any").truth
        <Truth.NEVER: 'never'>
        """
        streams = self._streams or self._start_streams()
        return streams.end(stream, at, streams.latest(stream, at))

    def take(self, update: StreamUpdate) -> list[Change]:
        """Apply one update of a stream, whatever its action.

        Parameters:
            update: An update, as sources and channels deliver it.

        >>> doc = Document(streams=["orders"], views={"all": "match //order/$x return $x"})
        >>> doc.take(StreamUpdate("orders", "insert", "<order>17</order>"))
        [Change('insert', Row(x='17'))]
        """
        if update.action == LISTS:
            return self.apply(str(update.content), at=update.at)
        if update.action == "insert":
            return self.feed(update.stream, update.content, at=update.at)
        if update.action == "delete":
            return self.delete(update.stream, str(update.content), at=update.at)
        return self.end(update.stream, at=update.at)

    def advance(self, to: Time) -> list[Change]:
        """Move the document's clock. Messages with an earlier time can no longer arrive.

        Rows that become impossible are reported as `never` changes.

        Parameters:
            to: The new time of the clock.

        >>> doc = Document(streams=["orders"])
        >>> doc.advance(60)
        []
        >>> doc.clock
        60
        """
        return (self._streams or self._start_streams()).advance(to)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Apply the updates inside as one: all of them, or none if the body raises.

        Subscribers get the net changes when the batch ends. Batches nest: an inner batch that
        raises rolls back its own part. A rejected message that the body handles, or that becomes a
        dead letter, does not end the batch.

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
        maintained = self._maintained
        with maintained.lock, maintained.as_one(self._savepoint()):
            yield

    # Streams --------------------------------------------------------------------------------------

    def streams(self) -> dict[str, StreamStatus]:
        """Return the status of each stream that has, or had, a call.

        >>> doc = Document(streams=["orders"])
        >>> _ = doc.feed("orders", "<order/>")
        >>> doc.streams()["orders"].messages
        1
        """
        return (self._streams or self._start_streams()).statuses()

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The latest 1,000 rejected messages, with `Options(on_error="dead-letter")`.

        >>> doc = Document(streams=["orders"], options=Options(on_error="dead-letter"))
        >>> _ = doc.feed("orders", "<order>")
        >>> doc.dead_letters[0].error.code
        'AX101'
        """
        return self._dead_letters

    @property
    def violations(self) -> list[AxlogError]:
        """The latest 1,000 violations of the types by updates that were applied all the same.

        `Options.on_violation` decides whether such updates are applied.

        >>> dtd = "<!ELEMENT r (a*)><!ELEMENT a EMPTY>"
        >>> doc = parse("<r/>", types=dtd, options=Options(on_violation="report"))
        >>> _ = doc.update("insert node <b/> into /r")
        >>> doc.violations[0].code
        'AX705'
        """
        return list(self._maintained.violations)

    def tune(self, exact: bool = False) -> TuningReport:
        """Compute which messages of each stream can still matter, and drop the others from now on.

        Rows and changes stay the same; derivation counts may differ.

        Parameters:
            exact: Decide more exactly where the document is whole and small. This costs more.

        >>> views = {"any": "match /document/orders/order"}
        >>> doc = Document(streams=["orders", "other"], views=views)
        >>> doc.tune().unsubscribed
        ('other',)
        """
        return (self._streams or self._start_streams()).tuner.tune(exact)

    def filter(self, stream: str) -> Filter | None:
        """Return a filter for the source of a stream; None: the source must send every message.

        The time of a message that is filtered out still counts: report it with `advance`. Needs
        `Options(keep="needed")`, since the document lacks the messages that are not sent: once a
        source has a filter, new views, `why` and `xml` raise AX307. Calling it again changes
        nothing. A durable document returns None: its log must have every message, so that views can
        be added later.

        Parameters:
            stream: Name of the stream.

        >>> options = Options(keep="needed")
        >>> doc = Document(streams=["s"], views={"v": "match //s/a/$x return $x"}, options=options)
        >>> doc.filter("s") is None
        False
        """
        return (self._streams or self._start_streams()).filter(stream)

    def collect(self) -> Collection:
        """Close the streams and drop the nodes that no view can need any more.

        Rows and changes stay the same. The document is not whole afterwards: statements, new views,
        `why` and `xml` raise AX307.

        >>> views = {"any": "match /document/orders/order/$x return $x"}
        >>> doc = Document(streams=["orders", "other"], views=views)
        >>> doc.collect().streams
        ('other',)
        """
        return (self._streams or self._start_streams()).collect()

    @property
    def collected(self) -> list[Dropped]:
        """The streams, nodes and rows that collection dropped, with reasons, the latest last.

        Only the latest 1,000 are remembered.

        >>> Document(streams=["orders"]).collected
        []
        """
        return [] if self._streams is None else self._streams.collected

    def code(self, stream: str) -> str | None:
        """Return the code generated for a stream's messages; None: they go through the document.

        Parameters:
            stream: Name of the stream.

        >>> Document(streams=["orders"]).code("orders") is None
        True
        """
        return (self._streams or self._start_streams()).engine.code(stream)

    # Reading --------------------------------------------------------------------------------------

    @property
    def options(self) -> Options:
        """How the document is kept.

        >>> parse("<a/>").options.keep
        'all'
        """
        return self._options

    @property
    def clock(self) -> Shown:
        """The latest time seen.

        >>> parse("<a/>").clock
        0
        """
        return self._maintained.clock

    def xml(self) -> str:
        """Return the document as XML text.

        >>> parse("<a><b/></a>").xml()
        '<a><b/></a>'
        """
        return self._maintained.xml()

    def element(self) -> Element:
        """Return a copy of the root as an lxml element.

        >>> parse("<a><b/></a>").element().tag
        'a'
        """
        return self._maintained.element()

    def state_sizes(self) -> dict[str, int]:
        """Return the number of rows kept: those that joins look up, and those of each view.

        >>> parse("<a><b/></a>", views={"v": "//b"}).state_sizes()
        {'joins': 0, 'v': 1}
        """
        from axlog.views.counting.state_codec import size_of_tables

        with self._maintained.lock:
            kept = {"joins": size_of_tables(self._maintained.engine)}
            return kept | {name: len(view) for name, view in self.views.items()}

    def __len__(self) -> int:
        """The number of nodes in the document. Messages that were not kept do not count."""
        return len(self._maintained)

    def __str__(self) -> str:
        return self.xml()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """End the block. A document in memory has nothing to close."""

    def _repr_html_(self) -> str:
        """The document in a notebook: its streams and views, and the beginning of its XML."""
        from axlog.live.html import document_html

        with self._maintained.lock:
            return document_html(repr(self), self.streams() if self._streams else {}, self.views,
                                 self._beginning())  # fmt: skip

    def _beginning(self) -> str:
        try:
            return self.xml()
        except AxlogError as error:  # not whole: messages were dropped
            return error.message

    def __repr__(self) -> str:
        with self._maintained.lock:
            nodes, streams = len(self), len(self._maintained.tree.calls())
            streams_open = counted(streams, "open stream")
            open_streams = f", {streams_open}" if self._streams is not None else ""
            views = counted(len(self.views), "view")
            return f"Document({counted(nodes, 'node')}{open_streams}, {views})"


def _shelf(options: Options) -> Shelf:
    """Return the place on disk for what does not fit into memory."""
    from axlog.store.keyvalue import KeyValueStore
    from axlog.views.operators.disk_table import Shelf

    return Shelf(KeyValueStore(options.cache_path), options.memory)


def _declare(tree: Tree, facts: Iterable[str], options: Options, *, checks: bool) -> None:
    """Declare facts. `checks` is False for a tree that is a snapshot of a checked document."""
    from axlog.future.keys import check_path
    from axlog.future.references import declare, ends_of, parse_declared

    declare(tree, [parse_declared(fact, options.namespaces) for fact in facts])
    if checks and tree.root != NONE:
        labels = [tree.label(node) for node in tree.children(tree.root)]
        for key in (*tree.facts, *ends_of(tree.references)):
            check_path(key, tree.label(tree.root), labels)
