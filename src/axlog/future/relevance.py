"""Which streams can still matter for a query: lazy, axlog and exact relevance.

- Lazy: some scenario requires data from the stream.
- Axlog: a scenario that no other dominates does. Dominance compares output and join variables, so
  the pattern is evaluated with its join variables as outputs.
- Exact: in some future, leaving out the stream's data changes the rows. A scenario shows this if a
  row is missing from one of its most general instances without the stream (`instances.py`). The
  number of instances is limited; an undecided verdict is None, with the reason. Under types, a
  future that obeys them must show it; if none is found, only the verdict without types decides.

Exact implies axlog implies lazy. If any stream may delete, only lazy relevance is defined: a
deletion may test any data that has arrived, so whole messages matter, of all streams that deliver
data where something is deleted. A row that shows the value or content of a node changes with all
data that streams deliver below the node. The same holds if a stream replaces its messages and they
may be a part of a row: a row that exists now may be lost, so data that adds no row now may matter.
For queries with `not`, lazy and axlog relevance are one: whether something in the query can match
the stream's data. (Paper 1, section 5; paper 2, section 6 and definition 7; paper 3, section 3.4.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from axlog.document.tree import Tree
from axlog.errors import UndecidedError, UnsupportedError
from axlog.evaluate.answers import answers, holds
from axlog.future.capacity import fits
from axlog.future.deletions import loses_by
from axlog.future.generalized_rows import Need, Values
from axlog.future.grounding import has_not, loosened
from axlog.future.instances import Instances
from axlog.future.negation import Negation
from axlog.future.profiles import wanted_at_calls
from axlog.future.references import referred
from axlog.future.relevance_search import RelevanceSearch
from axlog.future.replacement import may_matter
from axlog.future.scenarios import Scenarios, can_be_met, may_bring, with_join_variables
from axlog.future.scratch_document import Scratch
from axlog.future.search_budget import FIRST
from axlog.future.type_messages import apply_messages
from axlog.future.typed_scenarios import typed_scenarios
from axlog.future.typed_truth import typed_future
from axlog.query.compile import Relation
from axlog.query.pattern import Kind, Pattern


@dataclass(frozen=True, slots=True)
class Relevance:
    """The relevance of one stream, and the sub-patterns that it is needed for."""

    stream: str
    lazy: bool
    axlog: bool
    relevant: bool | None  # None: undecided, see `reason`
    wanted: tuple[str, ...]  # the sub-patterns that undominated scenarios require
    reason: str | None = None
    whole: bool = False  # whether all of a message matters, not only `wanted`

    def to_dict(self) -> dict[str, Any]:
        """This verdict as JSON values."""
        result: dict[str, Any] = {
            "stream": self.stream,
            "lazy": self.lazy,
            "axlog": self.axlog,
            "relevant": self.relevant,
            "wanted": list(self.wanted),
        }
        if self.whole:
            result["whole"] = True
        return result if self.reason is None else {**result, "reason": self.reason}


def relevance(
    tree: Tree, pattern: Pattern, *, limit: int = 2000, together: bool = False
) -> dict[str, Relevance]:
    """The relevance of every open stream for a pattern; `together`: messages hold no calls."""
    if tree.references and (whole := referred(tree, pattern)) != pattern:
        return _with_references(tree, whole, limit, together)
    return _relevance(tree, pattern, limit, together)


def _with_references(
    tree: Tree, pattern: Pattern, limit: int, together: bool
) -> dict[str, Relevance]:
    """As for a pattern that asks for what its nodes refer to; exact only where nothing does."""
    reason = "its data may be needed only because other data refers to it"
    return {
        stream: each
        if not each.axlog or each.relevant is None
        else replace(each, relevant=None, reason=reason)
        for stream, each in _relevance(tree, pattern, limit, together).items()
    }


def _relevance(tree: Tree, pattern: Pattern, limit: int, together: bool) -> dict[str, Relevance]:
    if has_not(pattern):
        return _with_not(tree, pattern)
    lazy = lazily_wanted(tree, pattern, together=together)
    if loses_by(tree, pattern) is not None:
        return _lazy_with_deletions(tree, _asked(lazy), _matters(tree, pattern, lazy))
    replacing = _replacing(tree, pattern)
    if replacing:
        return _lazy_with_replacements(tree, _asked(lazy), replacing, _matters(tree, pattern, lazy))
    try:
        scenarios = Scenarios(tree, with_join_variables(pattern), together=together, least=FIRST)
    except UndecidedError as error:
        if error.code != "AX502":
            raise
        return _by_search(tree, pattern, lazy, limit, together)
    types = typed_scenarios(tree, pattern)
    met = [
        (values, need)
        for values, needs in scenarios.rows.items()
        for need in needs
        if fits(tree, scenarios.columns, values, need, together)
        and (types is None or types.allow(scenarios.columns, values, need))
    ]
    changing = _streams_below_outputs(tree, pattern, scenarios.columns, met)
    exact = _Exact(tree, pattern, scenarios.columns, limit, together)
    found: dict[str, Relevance] = {}
    for stream in sorted(tree.calls()):
        mine = [(v, n) for v, n in met if any(s == stream for _, s in n.brought)]
        asked = {str(r.node) for _, n in mine for r, s in n.brought if s == stream}
        relevant, reason = exact.of(stream, mine)
        if relevant is None and exact.is_exhausted:
            relevant, reason = exact.searched(stream)
        if stream in changing:
            asked.add(ANYTHING)
            relevant, reason = True, None
            if types is not None or tree.call(tree.calls()[stream]).most is not None:
                relevant, reason = (
                    None,
                    "its data may be unable to change the values that rows show",
                )
        is_lazy = stream in changing or any(s == stream for _, s in lazy)
        found[stream] = Relevance(
            stream, is_lazy, bool(mine) or stream in changing, relevant, tuple(sorted(asked)),
            reason, whole=stream in changing,
        )  # fmt: skip
    return found


def _asked(lazy: set[tuple[Relation, str]]) -> dict[str, set[str]]:
    """The patterns that are lazily wanted from each stream."""
    wanted: dict[str, set[str]] = {}
    for relation, stream in lazy:
        wanted.setdefault(stream, set()).add(str(relation.node))
    return wanted


def _matters(tree: Tree, pattern: Pattern, lazy: set[tuple[Relation, str]]) -> bool:
    """Whether a row exists that can be lost, or can come."""
    return bool(lazy) or holds(tree, pattern)


def _replacing(tree: Tree, pattern: Pattern) -> set[str]:
    """The streams that may replace a part of a row."""
    return {
        stream
        for stream, node in tree.calls().items()
        if tree.call(node).replace is not None and may_matter(tree, pattern, stream)
    }


def _with_not(tree: Tree, pattern: Pattern) -> dict[str, Relevance]:
    """The relevance for a query with `not`: data can bring rows, and end them.

    A stream is irrelevant if nothing in the query can match its data. It is relevant if a row can
    come with its data and not without. Otherwise it is wanted, and may or may not be relevant.
    """
    wanted = {s: set(asked) for s, asked in wanted_at_calls(tree, loosened(pattern)).items()}
    if any(output.kind in (Kind.VAL, Kind.CONT) for output in pattern.outputs):
        wanted = {stream: {ANYTHING} for stream in tree.calls()}
    if loses_by(tree, pattern) is not None:
        return _lazy_with_deletions(tree, wanted, is_open=True)
    replacing = _replacing(tree, pattern)
    if replacing:
        return _lazy_with_replacements(tree, wanted, replacing, is_open=True)
    negation = Negation(tree, pattern)
    found: dict[str, Relevance] = {}
    for stream in sorted(tree.calls()):
        asked = tuple(sorted(wanted.get(stream, ())))
        relevant, reason = _is_needed(tree, negation, stream) if asked else (False, None)
        whole = ANYTHING in asked
        found[stream] = Relevance(
            stream, bool(asked), bool(asked), relevant, asked, reason, whole=whole
        )
    return found


def _is_needed(tree: Tree, negation: Negation, stream: str) -> tuple[bool | None, str | None]:
    others = frozenset(tree.calls()) - {stream}
    try:
        if negation.may_come({}) and not negation.may_come({}, others):
            return True, None
    except UndecidedError as error:
        return None, error.message
    return None, "its data may bring or end rows; beside `not` that is not decided"


def _by_search(
    tree: Tree, pattern: Pattern, lazy: set[tuple[Relation, str]], limit: int, together: bool
) -> dict[str, Relevance]:
    """The relevance of streams in documents with too many scenarios to list."""
    shows_values = any(output.kind in (Kind.VAL, Kind.CONT) for output in pattern.outputs)
    if tree.types is not None or shows_values:
        return _lazy_fallback(tree, lazy, "there are too many ways in which rows can appear")
    try:
        search = RelevanceSearch(tree, pattern, limit, together=together)
        found: dict[str, Relevance] = {}
        for stream in sorted(tree.calls()):
            is_lazy = any(s == stream for _, s in lazy)
            wanted = search.wanted(stream) if is_lazy else []
            relevant, reason = search.relevant(stream) if wanted else (False, None)
            found[stream] = Relevance(
                stream, is_lazy, bool(wanted), relevant, tuple(wanted), reason
            )
    except UndecidedError as error:
        return _lazy_fallback(tree, lazy, error.message)
    return found


def _lazy_fallback(
    tree: Tree, lazy: set[tuple[Relation, str]], reason: str
) -> dict[str, Relevance]:
    """Lazy relevance alone, for documents with too many scenarios to enumerate."""
    found: dict[str, Relevance] = {}
    for stream in sorted(tree.calls()):
        asked = {str(r.node) for r, s in lazy if s == stream}
        undecided = (None, f"undecided within the limit: {reason}") if asked else (False, None)
        found[stream] = Relevance(
            stream, bool(asked), bool(asked), undecided[0], tuple(sorted(asked)), undecided[1]
        )
    return found


ANYTHING = "node()"
"""The wanted sub-pattern of a stream that changes a value or content shown in rows."""


def _lazy_with_deletions(
    tree: Tree, wanted: Mapping[str, set[str]], is_open: bool
) -> dict[str, Relevance]:
    """Lazy relevance: of streams that are required, that delete, or that deletions test.

    `is_open`: the query has rows or may get some.
    """
    calls = tree.calls()
    places = {tree.parent(c) for c in calls.values() if tree.call(c).deletes != "no"}
    found: dict[str, Relevance] = {}
    for stream, call in sorted(calls.items()):
        asked = wanted.get(stream, set())
        is_seen = is_open and not places.isdisjoint(tree.ancestors(call))
        if is_seen and not asked and tree.call(call).deletes != "only":
            asked = {ANYTHING}
        found[stream] = Relevance(
            stream, bool(asked) or is_seen, bool(asked) or is_seen, None, tuple(sorted(asked)),
            "some stream may delete: only lazy relevance is defined", whole=is_seen or bool(asked),
        )  # fmt: skip
    return found


_LAZY_ONLY = "some stream replaces its messages: only lazy relevance is defined"


def _lazy_with_replacements(
    tree: Tree, wanted: dict[str, set[str]], replacing: set[str], is_open: bool
) -> dict[str, Relevance]:
    """Lazy relevance: of streams that are required, or that may replace a part of a row."""
    found: dict[str, Relevance] = {}
    for stream in sorted(tree.calls()):
        asked = set(wanted.get(stream, ()))
        is_whole = is_open and stream in replacing
        if is_whole:
            asked.add(ANYTHING)
        undecided = (None, _LAZY_ONLY) if asked else (False, None)
        found[stream] = Relevance(
            stream, bool(asked), bool(asked), undecided[0], tuple(sorted(asked)), undecided[1],
            whole=is_whole,
        )  # fmt: skip
    return found


def _streams_below_outputs(
    tree: Tree, pattern: Pattern, columns: tuple[str, ...], met: Ways
) -> set[str]:
    """The streams that deliver data into nodes whose value or content rows show."""
    shown = {f"{o.of}.node" for o in pattern.outputs if o.kind in (Kind.VAL, Kind.CONT)}
    at = [columns.index(column) for column in sorted(shown)]
    nodes = {values[i] for values, _ in met for i in at} - {None}
    return {
        stream
        for stream, call in tree.calls().items()
        if may_bring(tree, tree.call(call)) and not nodes.isdisjoint(tree.ancestors(call))
    }


def lazily_wanted(
    tree: Tree, pattern: Pattern, *, together: bool = False
) -> set[tuple[Relation, str]]:
    """Every sub-pattern that some scenario, dominated or not, requires from a stream."""
    scenarios = Scenarios(tree, with_join_variables(pattern), together=together, prune="gathered")
    columns = scenarios.columns
    types = typed_scenarios(tree, pattern)
    found = {
        pair
        for values, needs in scenarios.rows.items()
        for need in needs
        # Requests of needs with equal conditions are united here, so the number of trees that a
        # call may deliver cannot be checked: lazy relevance is an over-approximation.
        if can_be_met(tree.clock, columns, values, need)
        for pair in need.brought
    }
    return {p for p in found if types is None or types.allow((), (), Need(frozenset({p})))}


Ways = list[tuple[Values, Need]]
"""Scenarios that no other dominates."""


# Exact relevance ----------------------------------------------------------------------------------


@dataclass
class _Exact:
    """Exact relevance of the streams of one document; all futures are tried on one copy of it."""

    tree: Tree
    pattern: Pattern
    columns: tuple[str, ...]
    limit: int
    together: bool

    @cached_property
    def _instances(self) -> Instances:
        return Instances(self.tree, self.pattern, self.together)

    @cached_property
    def _scratch(self) -> Scratch:
        return Scratch(self.tree)

    @cached_property
    def _untyped(self) -> _Exact:
        """The same for the document without its types."""
        tree = self.tree.copied()
        tree.types = None
        return _Exact(tree, self.pattern, self.columns, self.limit, self.together)

    @property
    def is_exhausted(self) -> bool:
        """Whether the last verdict is undecided only because there were too many futures."""
        return self._is_exhausted

    _is_exhausted = False

    def searched(self, stream: str) -> tuple[bool | None, str | None]:
        """The verdict by a search that learns from each future (`relevance_search.py`)."""
        try:
            return self._search.relevant(stream)
        except UndecidedError as error:
            return None, error.message

    @cached_property
    def _search(self) -> RelevanceSearch:
        return RelevanceSearch(self.tree, self.pattern, self.limit, together=self.together)

    def of(self, stream: str, ways: Ways) -> tuple[bool | None, str | None]:
        """The verdict on a stream, by the scenarios that require it, and why it is undecided."""
        self._is_exhausted = False
        if not ways:
            return False, None  # relevance implies axlog relevance
        if self.tree.types is not None:
            found = _typed(self.tree, self.pattern, self.columns, ways, stream)
            # types only exclude futures: where no future shows relevance, none of theirs does
            is_out = found[0] is None and self._untyped.of(stream, ways)[0] is False
            return (False, None) if is_out else found
        try:
            return self._by_futures(stream, ways)
        except (UndecidedError, UnsupportedError) as error:
            return None, error.message

    def _by_futures(self, stream: str, ways: Ways) -> tuple[bool | None, str | None]:
        """Try the most general futures of every scenario, with and without the stream."""
        self._instances.start()
        tried, forbidden = 0, False
        for values, need in sorted(ways, key=lambda way: len(way[1].brought)):
            for sent in self._instances.of(self.columns, values, need):
                tried += 1
                if tried > self.limit:
                    self._is_exhausted = True
                    return None, f"undecided within {self.limit} instances"
                loses = self._scratch.loses(self.pattern, sent, stream)
                if loses:
                    return True, None
                forbidden |= loses is None
        if forbidden:
            return None, "a key rules out the simplest futures, and others are not tried"
        if not self._instances.is_complete:
            return None, self._instances.reason
        return False, None


def _typed(
    tree: Tree, pattern: Pattern, columns: tuple[str, ...], ways: Ways, stream: str
) -> tuple[bool | None, str | None]:
    """Search for a future that shows relevance under types; finding none decides nothing.

    First of the stream alone, then of the streams of a scenario, then of all.
    """
    try:
        every = frozenset(tree.calls())
        for values, need in ways:
            pairs = zip(columns, values, strict=True)
            known = {c[1:]: str(v) for c, v in pairs if c.startswith("$") and v is not None}
            asked = frozenset(each for _, each in need.brought)
            for silent in dict.fromkeys((every - {stream}, every - asked, frozenset[str]())):
                found = typed_future(tree, pattern, tree.types, bindings=known, silent=silent)
                messages = found or []
                without = [message for message in messages if message.stream != stream]
                if len(without) < len(messages) and _loses_rows(
                    pattern, apply_messages(tree, messages), apply_messages(tree, without)
                ):
                    return True, None
    except UndecidedError as error:
        return None, error.message
    return None, "no future that shows relevance was found; under types that decides nothing"


def _loses_rows(pattern: Pattern, with_stream: Tree, without: Tree) -> bool:
    """Whether the first document has a row that the second does not have."""
    return bool(set(answers(with_stream, pattern)) - set(answers(without, pattern)))
