"""The maintainer of queries that Saxon evaluates: again after every update that may concern them.

An update is proved to be outside of what the query reads (`relevance.py`), or the query is
evaluated on the new document and its items are compared with those before. The document is built
once for all views (`documents.py`).

A row is an item. Its key is the item itself, as kind and value (of a long one the digest), and its
number among equal items. So the changes of an update are the difference of two bags: an item that
stays is no change, wherever it stands. An order that changes alone is none either; `items` has the
new one.

Law: `items()` is Saxon's answer on the document, and the rows before with the changes merged by key
are the rows now (`python -m lab fuzz --law saxon`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from hashlib import blake2b
from time import perf_counter
from typing import Any

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.errors import QueryError, ValueProblem
from axlog.evaluate.casts import cast
from axlog.query.query import Query
from axlog.views.change import Change, Row, Values
from axlog.views.maintainer import Maintainer
from axlog.views.measured_cost import MeasuredCost
from axlog.views.saxon.documents import SaxonDocument
from axlog.views.saxon.process import Asked
from axlog.views.saxon.relevance import PathAutomaton
from axlog.views.value_codec import python_value

_LONGEST_KEY = 60
_FAILED = ("none", "")
"""The one item of a query that has no value for the document."""
_Item = tuple[str, str]


class Saxon(Maintainer):
    """Keeps the items of a foreign query."""

    name = "saxon"
    is_ordered = True
    has_items = True

    def __init__(
        self, tree: Tree, query: Query, document: SaxonDocument, rejects: bool = False
    ) -> None:
        """`rejects`: refuse an update after which the query has no value."""
        super().__init__(tree, query.pattern)
        assert query.foreign is not None
        self._foreign = query.foreign
        self._asked = Asked(query.text, self._foreign.language, self._foreign.namespaces)
        self._columns = query.row_key.kept
        self._document = document
        self._rejects = rejects
        projection = self._foreign.projection
        self._automaton = None if projection is None else PathAutomaton(tree, projection)
        self._found: list[_Item] | None = None
        self._rows: dict[str, Row] = {}
        self._is_stale = False
        self._refused: QueryError | None = None
        self.problem: ValueProblem | None = None
        """The error for which the query has no value now; None if it has one."""
        self.skipped = 0  # updates that were proved to be outside
        self._cost = MeasuredCost()

    # Reading --------------------------------------------------------------------------------------

    def load(self) -> None:
        if self._refused is not None:
            raise self._refused
        if self._found is None:
            self._found = self._evaluated()
            self._rows = self._rows_of(self._found)

    def rows(self) -> Iterable[Row]:
        self.load()
        return list(self._rows.values())

    def size(self) -> int:
        self.load()
        return len(self._rows)

    def items(self) -> list[Any]:
        self.load()
        return [python_value(_value(item)) for item in self._found or ()]

    @property
    def evaluations(self) -> int:
        """The number of evaluations so far."""
        return self._cost.evaluations

    @property
    def broken(self) -> QueryError | None:
        return self._refused

    # Updates --------------------------------------------------------------------------------------

    def before(self, delta: Delta) -> None:
        self.load()
        automaton = self._automaton
        self._is_stale = self._is_stale or automaton is None or automaton.removes(delta)

    def after(self, delta: Delta) -> list[Change]:
        self.later(delta)
        return self.catch_up()

    def later(self, delta: Delta) -> list[Change]:
        automaton = self._automaton
        if not self._is_stale and automaton is not None and not automaton.adds(delta):
            self.skipped += 1
        else:
            self._is_stale = True
        return []

    @property
    def is_behind(self) -> bool:
        return self._is_stale

    def catch_up(self) -> list[Change]:
        if not self._is_stale or self._refused is not None:
            return []
        try:
            found = self._evaluated()
        except ValueProblem:
            raise
        except QueryError as error:
            self._refused = error.kept()
            return []
        self._is_stale = False
        if found == self._found:
            return []
        old, self._found = self._rows, found
        new = self._rows = self._rows_of(found)
        changes = [Change("delete", row) for key, row in old.items() if key not in new]
        changes += [Change("insert", row) for key, row in new.items() if key not in old]
        return changes

    def _evaluated(self) -> list[_Item]:
        began = perf_counter()
        try:
            found = self._document.run(self.tree, self._asked)
            self.problem = None
        except ValueProblem as problem:
            if self._rejects:
                raise
            self.problem = problem.kept()
            found = [_FAILED]
        self._cost.note(perf_counter() - began)
        return found

    def _rows_of(self, items: list[_Item]) -> dict[str, Row]:
        numbers: Counter[_Item] = Counter()
        found: dict[str, Row] = {}
        for item in items:
            numbers[item] += 1
            key = f"{_name(item)}#{numbers[item]}"
            values: Values = (_value(item), key)
            found[key] = Row(self._columns, values)
        return found

    # Explanations ---------------------------------------------------------------------------------

    def operators(self) -> tuple[str, ...]:
        """What the query reads, and what updates have cost so far."""
        projection = self._foreign.projection
        if projection is None:
            lines = ["reads: not known, so every update evaluates the query again"]
        else:
            lines = [f"reads {line}" for line in projection.lines()]
        lines.append(f"{self._cost}; {self.skipped} updates proved to be outside")
        if self.problem is not None:
            lines.append(f"no value now: {self.problem.message}")
        return tuple(lines)


def _name(item: _Item) -> str:
    """An item in a key: short ones as they are."""
    kind, text = item
    if len(text) > _LONGEST_KEY:
        text = blake2b(text.encode(), digest_size=16).hexdigest()
        kind = f"{kind}-digest"
    return f"{kind} {text}"


def _value(item: _Item) -> Any:
    """The value of an item: XML and strings as texts, other values as values."""
    kind, text = item
    try:
        match kind:
            case "none":
                return None
            case "integer":
                return int(text)
            case "decimal":
                return Decimal(text)
            case "double" | "float":
                return float(text)
            case "boolean":
                return text == "true"
            case (
                "date" | "dateTime" | "time" | "duration" | "dayTimeDuration" | "yearMonthDuration"
            ):
                return cast(text, f"xs:{kind}")
    except (ValueError, ValueProblem):
        return text  # such as a number of thousands of digits, or a year that we do not have
    return text
