"""`MaintainedTree`: a tree, the views over it, and the updates to both.

One writer at a time. Readers see the views before or after an update, never in between. An update
that cannot be applied raises and changes nothing. An exception of a subscriber is raised after the
update is done: the document and all views are consistent, and the other subscribers were called.

This is the inside of `axlog.Document`, which adds streams, options and the public face. Streams
connect to it through one slot, `hooks` (`hooks.py`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

from axlog.document import pending
from axlog.document.delta import Delta, only_adds
from axlog.document.loader import read_forest
from axlog.document.operations import Content, Delete, Insert, Operation, Where
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits
from axlog.document.record_templates import RecordTemplates
from axlog.document.serializer import serialise
from axlog.document.times import (
    Shown,
    Time,
    Times,
    checked_times,
    microseconds,
    shown,
)
from axlog.document.tree import NONE, Tree
from axlog.document.value_index import ValueIndex
from axlog.errors import QueryError, UpdateError, ValueProblem
from axlog.live.families import Families
from axlog.live.hooks import IDLE, StreamHooks
from axlog.live.join_deadlines import FEW
from axlog.live.update_changes import ViewChanges, emit, together
from axlog.live.view_parts import DocumentSurroundings, passed_of, view_of
from axlog.match.linear_paths import AUTOMATON_FROM
from axlog.query.query import Query, parse_query
from axlog.reporting import counted, report
from axlog.views.change import Change, Current
from axlog.views.choose import DEFAULT_THRESHOLDS, Engines, choice_for, make_for
from axlog.views.counting.engine import BLOCK, CountingEngine
from axlog.views.family import Member
from axlog.views.maintainer import Maintainer, PutAside
from axlog.views.net_changes import net
from axlog.views.step_rows import Stepping, checked_policy
from axlog.views.view import MaintainedView
from axlog.views.view_query import evaluated_by_saxon, parse_view

if TYPE_CHECKING:
    from axlog.document.schema import OnViolation, TypeGuard, TypeViolation
    from axlog.document.schema_sources import Types
    from axlog.live.savepoint import Savepoint
    from axlog.views.operators.disk_table import Shelf


log = logging.getLogger(__name__)

_VIOLATIONS = 1000
"""The violations of types that are remembered, the latest."""


class MaintainedTree:
    """A tree with views over it."""

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
        on_violation: OnViolation = "refuse",
    ) -> None:
        self.tree = tree
        self.times: Times = checked_times(times)
        self.type_guard: TypeGuard | None = None
        if types is not None:
            from axlog.document.schema import TypeGuard
            from axlog.document.schema_sources import read_types

            root = "" if tree.root == NONE else tree.label(tree.root)
            tree.types = read_types(types, root)
            self.type_guard = TypeGuard(tree, tree.types, on_violation)
        self.violations: deque[TypeViolation] = deque(maxlen=_VIOLATIONS)
        self.limits = limits
        self.keep_whitespace = keep_whitespace
        self.namespaces = dict(namespaces or {})
        self.namespace_items = tuple(sorted(self.namespaces.items()))
        self.views: dict[str, MaintainedView] = {}
        self.families = Families(self)
        self.clocked: list[MaintainedView] = []  # those whose rows depend on the clock
        self.thresholds = DEFAULT_THRESHOLDS  # for the choice of maintainers
        self.many_relations = AUTOMATON_FROM
        """From this many relations on, an automaton finds those that a message of a stream has."""
        self.few_joins = FEW
        """Up to this many joins are all looked at after a message with rows."""
        self.make_engines(shelf)
        self.lock = RLock()
        self.held: ViewChanges | None = None
        self.current = Current()
        self.around = DocumentSurroundings(self)  # for its views
        self.statements = 0  # number of updates that no stream brought
        self.revisions = 0  # changes other than arriving data, ends of streams, and the clock
        self.forgotten = 0  # messages that no view needed and that were not kept
        self.filtered: set[str] = set()  # streams whose sources were given a filter
        self.collected = 0  # nodes and streams that collection dropped because no view needs them
        self.hooks: StreamHooks = IDLE
        """The streams that feed the document; `IDLE` without streams."""
        self.savepoint: Callable[[], Savepoint | None] = lambda: None
        """Makes a state to return to, for updates that a view may refuse after they are applied."""

    def settle(self) -> None:
        """Turn messages that were set aside into nodes."""
        self.hooks.settle()

    def untune(self) -> None:
        """Remove the streams' filters, before a statement or a new view."""
        self.hooks.untune()

    def make_engines(self, shelf: Shelf | None, block: int = BLOCK) -> None:
        """Make the engines that views share, for the tree as it is."""
        tree, limits = self.tree, self.limits
        self.engine = CountingEngine(tree, block, shelf, limits.rows, limits.work)
        self.engine.on_set_aside = self._note_aside
        self._engines = Engines(self.engine)
        self.value_index = ValueIndex(tree)
        self.record_templates: RecordTemplates | None = None

    @property
    def engines(self) -> Engines:
        """The engines that maintainers are made with."""
        self._engines.prices = self.thresholds.prices
        return self._engines

    # Views ----------------------------------------------------------------------------------------

    def watch(
        self,
        query: str | Query,
        name: str | None = None,
        *,
        language: str | None = None,
        maintainer: str | None = None,
        work: int | None = None,
        on_value_error: str = "null",
        since: str = "start",
    ) -> MaintainedView | Member:
        """Keep the rows of a query from now on; a member of a family if others have its shape.

        `work` is the number of rows that one update may make the view read. A view that exceeds it
        is set aside with AX216. Without it `Limits.work` applies. `on_value_error` says what
        happens with a value that the query cannot compute: `null` or `reject`. `since`: see
        `Document.watch`.
        """
        name = name if name is not None else self.new_name()
        if name in self.views or name in self.families.members:
            raise QueryError("AX202", f"there is already a view {name!r}")
        is_plain = maintainer is None and work is None and on_value_error == "null"
        if isinstance(query, str) and is_plain:
            with self.lock:
                member = self.families.join_by_text(name, query, language)
                if member is not None:
                    return member
        asked = self.parse_view(query, language, maintainer)
        with self.lock:
            stepping = Stepping(asked.row_key, asked.text, checked_policy(on_value_error))
            candidate = self.families.candidate(asked, stepping, maintainer, work)
            if candidate is not None:
                member = self.families.join(name, candidate, language)
                if member is not None:
                    return member
            chosen = choice_for(asked, maintainer, self.tree, self.thresholds)
            stepping.check()
            self.hooks.before_view()
            if stepping.rejects:
                self.engine.build()  # the views before it, which must not fail with it
            nodes = self.nodes_since(since)
            kept = make_for(nodes, asked, stepping, chosen.name, self.engines, work)
            try:
                self.hooks.restore_rows(kept.relations())
            except BaseException:
                kept.close()
                raise
            try:
                kept.load()
            except QueryError as refusal:  # what an expression needs may depend on the data
                kept.close()
                other = evaluated_by_saxon(asked, refusal, maintainer)
                return self.watch(
                    other, name, work=work, on_value_error=on_value_error, since=since
                )
            if stepping.rejects:
                self._reject_now(kept)
            view = self.views[name] = view_of(self, name, asked, kept, chosen, stepping)
            view.work = work
            self.clocked += [view] if view.reads_clock else []
            view.rejects = stepping.rejects or (asked.has_items and on_value_error == "reject")
            if self.engine.is_built:  # so that the next update does not pay for the new view
                self.engine.build()
            if candidate is not None:
                self.families.note_alone(view, candidate)
        return view

    def _reject_now(self, kept: Maintainer) -> None:
        """Compute the first rows of a view that rejects values: the document may have such."""
        try:
            self.engine.build()
        except ValueProblem:
            kept.close()
            raise

    def unwatch(self, name: str) -> None:
        """Drop a view."""
        with self.lock:
            if name in self.families.members:
                self.families.leave(name)
                return
            if name not in self.views:
                raise QueryError("AX203", f"there is no view {name!r}")
            self.settle()  # the other views are set up anew from the document
            self.families.forget_alone(name)
            view = self.views.pop(name)
            view.maintainer.close()
            self.clocked = [each for each in self.clocked if each is not view]

    def _note_aside(self) -> None:
        """Set aside the views that exceeded a limit, and log it. The other views continue."""
        for view in self.views.values():
            error = view.maintainer.broken
            if error is not None and not isinstance(view.maintainer, PutAside):
                self._set_aside(view, error)

    def _set_aside_or_raise(self, view: MaintainedView, error: QueryError) -> None:
        """Set a view aside if an update exceeds its limit. The update is applied."""
        if isinstance(error, ValueProblem):
            raise error  # the view rejects the update
        self._set_aside(view, error)

    @staticmethod
    def _set_aside(view: MaintainedView, error: QueryError) -> None:
        view.put_aside(error)
        report(log, logging.WARNING, "view set aside", view=view.name, code=error.code,
               reason=error.message)  # fmt: skip

    def parse(self, query: str | Query, language: str | None = None) -> Query:
        if isinstance(query, Query):
            return query
        return parse_query(query, self.namespaces, language, limits=self.limits)

    def parse_view(
        self, query: str | Query, language: str | None = None, maintainer: str | None = None
    ) -> Query:
        """Parse the query of a view; with the extra `xquery` any XQuery."""
        if isinstance(query, Query):
            return query
        return parse_view(query, self.namespaces, language, self.limits, maintainer)

    def new_name(self) -> str:
        members = self.families.members
        number = len(self.views) + len(members) + 1
        while f"view{number}" in self.views or f"view{number}" in members:
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
        from axlog.evaluate.select import select

        try:
            place = Where(where)
        except ValueError:
            expected = ", ".join(one.value for one in Where)
            raise UpdateError("AX302", f"there is no place {where!r}", expected=expected) from None
        forest: Content = tuple(read_forest(content, self.limits))
        with self.lock:
            nodes = select(self.nodes(), self.parse(target).only_pattern, self.value_index)
            return self.apply([Insert(place, node, forest) for node in nodes], at)

    def delete(self, target: str, at: Time | None = None) -> list[Change]:
        """Delete every node that a pattern selects."""
        from axlog.evaluate.select import select

        with self.lock:
            nodes = select(self.nodes(), self.parse(target).only_pattern, self.value_index)
            return self.apply([Delete(node) for node in nodes], at)

    def update(
        self,
        statement: str,
        at: Time | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[Change]:
        """Run a statement of XQuery Update, or several separated by `;`, one by one.

        `variables` are values of the statement's variables. A statement that is used again with
        other values is parsed once.
        """
        from axlog.live.statement_operations import by_template, operations, statements_of

        with self.lock:
            found = by_template(self, statement, variables)
            if found is not None:
                return self.apply(found, at)
        changes: list[Change] = []
        for one in statements_of(self, statement):
            with self.lock:
                changes += self.apply(operations(self, one, variables), at)
        return changes

    def apply(self, operations: Sequence[Operation], at: Time | None = None) -> list[Change]:
        """Apply a pending update list, and return the changes of all views."""
        return self.apply_at(operations, None if at is None else microseconds(at))

    def _note_violation(self, found: TypeViolation) -> None:
        """Report an update that was applied although it breaks a type."""
        self.violations.append(found)
        self.revisions += 1
        self.untune()
        report(log, logging.WARNING, "type violated", code=found.code, reason=found.message)

    def apply_at(self, operations: Sequence[Operation], time: int | None) -> list[Change]:
        """Do the same as `apply`, with the time in microseconds."""
        with self.lock:
            return self.announce(self.carry_out(operations, time))

    def carry_out(
        self,
        operations: Sequence[Operation],
        time: int | None,
        origin: tuple[str, int] | None = None,
        note: Callable[[Delta], None] | None = None,
    ) -> ViewChanges:
        """Apply a pending update list, or raise and change nothing. Subscribers are not called yet.

        `origin` is the stream and the number of the message that the update came from. `note` is
        called with the delta once it is applied.
        """
        self.settle()
        if origin is None:
            self._refuse_if_collected()
            self.untune()
        savepoint = self.savepoint() if any(v.rejects for v in self.views.values()) else None
        plan = pending.planned(
            self.tree, operations, time, limits=self.limits, keep_whitespace=self.keep_whitespace
        )
        views = list(self.views.values())
        guard = self.type_guard
        try:
            if guard is not None:  # first: views must not see an update that it rejects
                with guard.bringing(None if origin is None else origin[0]):
                    guard.before(plan.delta)
            for view in views:
                try:
                    view.before(plan.delta)
                except QueryError as error:
                    self._set_aside_or_raise(view, error)
        except BaseException:
            plan.abandon()
            raise
        passed = self.pass_time(plan.delta.time)
        pending.commit(plan, self.value_index)
        if origin is None:
            self.statements += 1
        self.current.origin = self.statements if origin is None else origin
        if origin is not None:
            self.tree.record_origin(plan.delta.added, *origin)
        self.hooks.brought(plan.delta, None if origin is None else origin[0], False)
        if origin is None or not only_adds(plan.delta):
            self.revisions += 1
        if note is not None:
            note(plan.delta)
        if guard is not None:
            guard.after(plan.delta)
            if guard.found is not None:
                self._note_violation(guard.found)
        emitted: ViewChanges = []
        for view in views:
            try:
                emitted.append((view, view.after(plan.delta)))
            except ValueProblem:
                assert savepoint is not None, "only views that reject values raise them"
                savepoint.restore()
                raise
            except QueryError as error:
                self._set_aside_or_raise(view, error)
        return together(passed, emitted)

    def pass_time(self, clock: int) -> ViewChanges:
        """The changes that time alone causes until the clock has this time, before it has it.

        Rows about the clock, and rows that can no longer come. Every update calls it before it is
        applied. Subscribers are not called yet.
        """
        if clock <= self.tree.clock:
            return []
        emitted: ViewChanges = []
        for view in self.clocked:
            try:
                emitted += passed_of(view, clock)
            except QueryError as error:
                self._set_aside_or_raise(view, error)
        return self.hooks.pass_time(emitted, clock)

    def next_moment(self) -> int | None:
        """The first moment after the clock at which time alone may change rows; None: never."""
        moments = (view.maintainer.next_moment() for view in self.clocked if view.broken is None)
        return min((each for each in moments if each is not None), default=None)

    def announce(self, each: ViewChanges) -> list[Change]:
        """Call the subscribers of every view, or hold the changes until the batch ends.

        Return all changes.
        """
        if self.families:
            each = self.families.distributed(each)
        if self.held is None:
            emit(each)
            if len(each) == 1:
                return each[0][1]
        else:
            self.held += each
        return [change for _, emitted in each for change in emitted]

    @contextmanager
    def as_one(self, savepoint: Savepoint) -> Iterator[None]:
        """Emit net changes when the block ends, or restore the savepoint if the body raises."""
        if self.held is not None:  # the outer batch emits
            with savepoint.all_or_nothing():
                yield
            return
        with self.netted() as emitted, savepoint.all_or_nothing():
            yield
        emit(emitted)  # an exception of a subscriber rolls nothing back

    @contextmanager
    def emitting_at_end(self) -> Iterator[None]:
        """Emit the net changes of the updates inside when the block ends, once for each view.

        If the body raises, its updates stay applied and their changes are not emitted.
        """
        with self.lock:
            if self.held is not None:  # the outer batch emits
                yield
                return
            with self.netted() as emitted:
                yield
            emit(emitted)

    @contextmanager
    def netted(self) -> Iterator[ViewChanges]:
        """Collect the net changes of the updates inside, for each view, without emitting them."""
        with self.lock:
            outer, self.held = self.held, []
            emitted: ViewChanges = []
            try:
                yield emitted
            finally:
                held, self.held = self.held, outer
                by_view: dict[MaintainedView, list[Change]] = {}
                for view, changes in held:
                    by_view.setdefault(view, []).extend(changes)
                emitted += [(view, net(changes)) for view, changes in by_view.items()]

    # Reading --------------------------------------------------------------------------------------

    def xml(self) -> str:
        """Return the document as XML text."""
        with self.lock:
            return serialise(self.nodes())

    def element(self) -> Element:
        """Return the root as an lxml element.

        It is a copy: changing it does not change the document.
        """
        with self.lock:
            tree = self.nodes()
            text = serialise(tree, tree.root)
        return read_forest(text, self.limits)[0]

    def nodes(self) -> Tree:
        """Return the tree with all messages that have arrived. Raises if some were not kept."""
        with self.lock:
            self.settle()
            if self.lacks_messages:
                be = "was" if self.forgotten == 1 else "were"
                why = f"{counted(self.forgotten, 'message')} {be} not kept"
                if not self.forgotten:
                    why = f"the source of {min(self.filtered)!r} has a filter"
                raise UpdateError(
                    "AX307",
                    f"{why}, so the document is incomplete",
                    advice='use Options(keep="all")',
                )
            self._refuse_if_collected()
        return self.tree

    def nodes_since(self, since: str) -> Tree:
        """Return the tree for a new view: `now` accepts one from which messages are missing."""
        if since not in ("start", "now"):
            raise QueryError("AX211", f"since={since!r}", expected="start or now")
        if since == "start" or not (self.lacks_messages or self.collected):
            return self.nodes()
        self.settle()
        return self.tree

    @property
    def lacks_messages(self) -> bool:
        """Whether messages were not kept, or sources may have filtered them out."""
        return bool(self.forgotten or self.filtered)

    def _refuse_if_collected(self) -> None:
        if self.collected:
            raise UpdateError(
                "AX307",
                "finished streams or nodes were collected, so the document is incomplete",
                advice='use Options(collect="state")',
            )

    def nodes_left(self) -> Tree:
        """Return the tree without collected nodes.

        Future rows depend only on the nodes that remain.
        """
        with self.lock:
            if not self.collected or self.lacks_messages or self.tree.facts:
                return self.nodes()  # the values of a key may be gone: raises
            self.settle()
        return self.tree

    def drop(self, tops: Sequence[int]) -> None:
        """Drop subtrees that no view will read again. Their rows stay."""
        self.collected += len(tops)
        plan = pending.planned(self.tree, [Delete(top) for top in tops], keep_whitespace=True)
        self.engine.leave(tops)
        pending.commit(plan, self.value_index)
        self.revisions += 1

    @property
    def clock(self) -> Shown:
        """The latest time seen."""
        return shown(self.tree.clock, self.times)

    def __len__(self) -> int:
        """Return the number of nodes in the document. Messages that were not kept do not count."""
        with self.lock:
            self.settle()
            return len(self.tree)

    def __str__(self) -> str:
        return self.xml()
