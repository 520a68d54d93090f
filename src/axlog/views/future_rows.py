"""The future of a view: its truth, its possible rows, the status of a row and the reasons for it.

`MaintainedView` has these methods. Long computations run on a copy of the document that is made
under the lock, so that updates do not wait for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from axlog.document.times import Times, microseconds
from axlog.document.tree import Tree
from axlog.errors import UndecidedError, UpdateError
from axlog.query.columns import Columns
from axlog.query.compile import compile_pattern
from axlog.query.query import Query
from axlog.query.row_key import RowKey
from axlog.query.truth import Truth
from axlog.views.change import Row
from axlog.views.maintainer import Maintainer
from axlog.views.surroundings import Surroundings

if TYPE_CHECKING:
    from axlog.future.reasons import Reason, WhyNot
    from axlog.future.truth import Possible
    from axlog.future.verdict_cache import TruthCache
    from axlog.views.clock_questions import ClockQuestions
    from axlog.views.counting.clock_prospects import ClockProspects
    from axlog.views.counting.join_prospects import AnyProspects
    from axlog.views.member_prospects import MemberProspects
    from axlog.views.step_outlook import StepOutlook
    from axlog.views.window_questions import WindowQuestions


_Answer = TypeVar("_Answer")


class FutureRows(ABC):
    """The questions about the future rows of a view."""

    times: Times
    reads_clock: bool
    maintainer: Maintainer
    around: Surroundings
    _lock: RLock
    _key: RowKey

    @abstractmethod
    def prospects(self) -> AnyProspects | MemberProspects | None:
        """The possible rows as the joins know them, if they do; avoids reading the document."""

    @property
    @abstractmethod
    def query(self) -> Query:
        """The parsed query."""

    @property
    def pattern(self) -> Any:
        return self.query.pattern

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """The columns of the rows."""

    @property
    @abstractmethod
    def truth_cache(self) -> TruthCache:
        """The truth of the view between updates."""

    @abstractmethod
    def holds(self) -> bool:
        """Whether the view has a row."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """The current rows."""

    @property
    def truth(self) -> Truth:
        """TRUE: the view has a row. POSSIBLE: it may still get one. NEVER: it cannot.

        The verdict is maintained as data arrives (`future/verdict_cache.py`). Raises
        `UndecidedError` where the analysis gives no verdict; the rows are exact all the same.
        """
        with self._lock:
            if self.query.is_pattern or self.reads_clock:
                prospects = self.prospects()
                if prospects is not None:
                    return prospects.truth
            if self.holds():
                return Truth.TRUE
            self._refuse_undecided("truth")
            if not self._key.steps:
                return self.truth_cache.truth
        return self.step_outlook().truth

    def step_outlook(self) -> StepOutlook | ClockQuestions | WindowQuestions:
        """The future of a view with steps, by a walk over the document."""
        from axlog.views.step_outlook import StepOutlook

        if self.reads_clock:
            return self.clock_questions()
        with self._lock:
            # Not `_key`: that of a member of a family has the constants of another one.
            return StepOutlook(self.around.nodes_left().copied(), self.query.row_key, self.times)

    def possible(self, limit: int | None = None, after: Possible | None = None) -> list[Possible]:
        """The rows that may still appear, sorted; with `limit` or `after`, a page of them."""
        from axlog.views.counting.possible_pages import page_of, place_of
        from axlog.views.why import shown_possible

        self._refuse_undecided("possible rows")
        if self._key.steps:
            listed = self._possible_of_clock()
            if listed is None:
                listed = self.step_outlook().possible()
            if limit is None and after is None:
                return listed
            return page_of(listed, limit, after, lambda one: place_of(self._inner(one)))
        if limit is None and after is None:
            found = self._possible()
        else:
            found = self._page(limit, None if after is None else self._inner(after))
        return [shown_possible(one, self.pattern, self.times) for one in found]

    def _possible_of_clock(self) -> list[Possible] | None:
        """The possible rows of a view about the clock, by its join; None: it does not know them."""
        from axlog.views.why import shown_possible

        with self._lock:
            prospects = self._clock_prospects()
            if prospects is None:
                return None
            pattern, found = prospects.pattern, prospects.possible()
        return [shown_possible(one, pattern, self.times) for one in found]

    def _clock_prospects(self) -> ClockProspects | None:
        from axlog.views.counting.clock_prospects import ClockProspects

        found = self.prospects() if self.reads_clock else None
        return found if isinstance(found, ClockProspects) else None

    def _page(self, limit: int | None, after: Possible | None) -> list[Possible]:
        from axlog.views.counting.possible_pages import page_of

        with self._lock:
            prospects = self.prospects()
            if prospects is not None:
                return prospects.page(limit, after)
        return page_of(self._possible(), limit, after)

    def _inner(self, one: Possible) -> Possible:
        """A possible row with its times in microseconds."""
        from axlog.future.truth import Possible
        from axlog.views.why import inward

        until = None if one.deadline is None else microseconds(one.deadline)
        return Possible(inward(self.pattern, one.row), one.needs, until)

    def clock_questions(self) -> ClockQuestions | WindowQuestions:
        """The questions about the future of a view about the clock; AX502 if none is decided."""
        from axlog.views.clock_questions import ClockQuestions
        from axlog.views.window_questions import WindowQuestions, window_of

        with self._lock:
            tree, rows = self.around.nodes_left().copied(), list(self.maintainer.rows())
        window = window_of(self.query)
        if window is not None:
            return WindowQuestions(tree, self.query, window, rows, self.times)
        return ClockQuestions(tree, self.query, rows, self.times)

    def _possible(self) -> list[Possible]:
        """`possible` with times in microseconds."""
        from axlog.future.truth import Outlook

        with self._lock:
            prospects = self.prospects()
            if prospects is not None:
                return prospects.possible()
            tree = self.around.nodes_left().copied()
            # the tree lacks rows whose nodes were garbage-collected
            there = set() if self.around.is_whole() else {row.values_ for row in self.rows()}
        possible = Outlook(tree, self.query.pattern).possible()
        return [one for one in possible if tuple(one.row.values()) not in there]

    def status(self, row: Mapping[str, Any]) -> Truth:
        """The truth of one row, given by its values; omitted values may be anything."""
        with self._lock:
            # The joins answer where they can: this is the path of most questions.
            prospects = self._clock_prospects() if self._key.steps else self.prospects()
            known = None if prospects is None else prospects.status(row)
        return self._walked_status(row) if known is None else known

    def _walked_status(self, row: Mapping[str, Any]) -> Truth:
        """`status` by a walk over the document."""
        from axlog.future.truth import Outlook
        from axlog.views.why import agrees, inward

        self._refuse_undecided("status")
        if self._key.steps:
            known = self._status_by_rows(row)
            return self.step_outlook().status(row) if known is None else known
        row, pattern = inward(self.pattern, row), self.query.pattern
        with self._lock:
            is_sure = self.around.is_whole() and not compile_pattern(pattern).gathers
            is_there = not is_sure and any(agrees(row, each) for each in self.rows())
        if is_there:
            return Truth.TRUE
        return self._judged(row, lambda tree: Outlook(tree, pattern).status(row))

    def _judged(self, row: Mapping[str, Any], ask: Callable[[Tree], _Answer]) -> _Answer:
        """Ask in the part of the document that concerns a row, or else in the whole document."""
        from axlog.future.row_part import part_for

        with self._lock:
            tree, index = self.around.nodes_left(), self.around.value_index()
            part = None if index is None else part_for(tree, self.query.pattern, row, index)
            tree = tree.copied() if part is None else part
        try:
            return ask(tree)
        except UndecidedError:
            if part is None:
                raise
        with self._lock:
            tree = self.around.nodes_left().copied()
        return ask(tree)

    def _status_by_rows(self, row: Mapping[str, Any]) -> Truth | None:
        """The truth of a row of a view with steps that needs no analysis; None: it needs one.

        A row that is there is TRUE. Where no stream is open and the clock changes nothing, every
        other row is NEVER.
        """
        from axlog.views.why import inward_by_type

        if not row.keys() <= set(self.columns):
            return None  # the analysis names the column
        wanted = {c: v for c, v in inward_by_type(self.columns, row).items() if v is not None}
        at = [(self.columns.index(column), value) for column, value in wanted.items()]
        with self._lock:
            if any(all(one.values_[i] == v for i, v in at) for one in self.maintainer.rows()):
                return Truth.TRUE
            return Truth.NEVER if self.around.is_over() and not self.reads_clock else None

    def _refuse_undecided(self, question: str) -> None:
        """The analyses of the future decide rows of patterns and their steps, not of plans."""
        if self.query.has_items:
            is_ = "are" if question == "possible rows" else "is"
            raise UndecidedError(
                "AX502",
                f"the {question} of a view that is more than a pattern {is_} not decided",
                advice="compare one node, as in `for $o in ..., $i in $o/id where not(... = $i)`, "
                "or write a tree pattern (`match ...`)",
            )

    def why_not(self, row: Mapping[str, Any]) -> WhyNot:
        """The truth of a row, and why: what can bring it, what can end it, what rules it out."""
        from axlog.future.reasons import Reason, WhyNot

        try:
            return self._walked_why_not(row)
        except (UndecidedError, UpdateError) as error:
            truth = self._status_if_decided(row)
            if truth is None:
                raise
            reasons = self._reasons_by_join(truth, row)
            if reasons is None and truth is not Truth.TRUE:
                raise error from None
        return WhyNot(truth, reasons or (Reason("holds", "the row is there"),))

    def _status_if_decided(self, row: Mapping[str, Any]) -> Truth | None:
        """The truth of a row; None: it is refused."""
        try:
            return self.status(row)
        except (UndecidedError, UpdateError):
            return None

    def _reasons_by_join(self, truth: Truth, row: Mapping[str, Any]) -> tuple[Reason, ...] | None:
        """The reasons that the state of the view's join gives; None: it does not know."""
        with self._lock:
            prospects = self._clock_prospects() if self._key.steps else self.prospects()
            return None if prospects is None else prospects.reasons(truth, row, self.times)

    def _walked_why_not(self, row: Mapping[str, Any]) -> WhyNot:
        """`why_not` by a walk over the document, or over the part of it that concerns the row."""
        from axlog.future.reasons import why_not
        from axlog.views.why import inward

        self._refuse_undecided("status")
        if self._key.steps:
            return self.step_outlook().why_not(row)
        row, pattern = inward(self.pattern, row), self.query.pattern
        return self._judged(row, lambda tree: why_not(tree, pattern, row, self.times))
