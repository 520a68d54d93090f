"""Filters: which of many patterns a message matches, and with which bindings.

One filter holds all patterns wanted from a stream, of one document or of many. The linear paths
that the patterns need go into one shared automaton. The rest is checked afterwards, only on the
patterns that the automaton leaves open: branches that meet, values, then joins, then the values
that can still join (`known`). Below `automaton_from` patterns the automaton is not used: they are
tested one after the other (`few_patterns.py`).

    >>> from axlog.document.parser import parse
    >>> wanted = Filter()
    >>> wanted.add("inria", 'match /order[client/"INRIA"]/oid/$x return $x')
    >>> wanted.add("any", "//order[@urgent = 'yes']", language="xpath")
    >>> message = parse("<order><oid>17</oid><client>INRIA</client></order>").root
    >>> wanted.matches(message), wanted.match(message)
    ({'inria'}, {'inria': {('17',): 1}})

Law: `match` gives each key the bag that `evaluate/answers.py` gives on the message as a document,
without the empty ones; `matches` is its keys. Rows are over `columns(key)`; a node in a row is a
handle of the tree that `document.loader.load` makes from the message.

A filter consists of its texts and options: `to_json` and `from_json` send it to a stream's source,
where it runs without a document. Not handled: axes that leave the subtree, several trees in one
message. (Paper 3, section 3.5.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from axlog.document.parser import Element
from axlog.errors import QueryError, StreamError
from axlog.evaluate.joins import Bag
from axlog.evaluate.value_tests import check_formulas
from axlog.match.automaton import MOST_STATES, Automaton
from axlog.match.candidates import Candidate, Candidates
from axlog.match.few_patterns import LONGEST, FewPatterns
from axlog.match.filter_pattern import FilterPattern, Known, PatternsOnTree, known_values
from axlog.match.linear_paths import AUTOMATON_FROM, Need, Route, rarest
from axlog.match.message_forms import MessageForms, needs_tree
from axlog.match.message_values import has_markup
from axlog.query.compile import Relation
from axlog.query.pattern import Axis, Pattern
from axlog.query.query import Query, parse_query

T = TypeVar("T")


VERSION = 1
"""The version of the JSON form of filters."""


@dataclass(frozen=True, slots=True)
class Written:
    """The source of a pattern, which is sent with the filter."""

    text: str
    language: str
    namespaces: tuple[tuple[str, str], ...] = ()
    known: Known = ()

    def to_json(self) -> dict[str, object]:
        """Its fields for JSON, without the empty ones."""
        fields: dict[str, object] = {"text": self.text, "language": self.language}
        if self.namespaces:
            fields["namespaces"] = dict(self.namespaces)
        if self.known:
            fields["known"] = {name: sorted(values) for name, values in self.known}
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Written:
        spaces = tuple(sorted(fields.get("namespaces", {}).items()))
        text, language, known = fields["text"], fields["language"], fields.get("known")
        strings = [text, language, *(each for pair in spaces for each in pair)]
        strings += [each for values in (known or {}).values() for each in values]
        if not all(isinstance(each, str) for each in strings):
            raise TypeError("texts, languages, namespaces and known values are strings")
        return cls(text, language, spaces, known_values(known))


@dataclass(frozen=True, slots=True)
class Statistics:
    """The size of a filter and how its automaton was used."""

    keys: int
    patterns: int
    uses_automaton: bool
    nodes: int
    states: int
    hits: int
    misses: int
    evicted: int
    messages: int
    left_open: int  # patterns checked after the automaton
    refuted: int  # those of them that did not hold

    @property
    def hit_rate(self) -> float:
        steps = self.hits + self.misses
        return self.hits / steps if steps else 1.0


class Filter:
    """Patterns by key, tested together."""

    def __init__(
        self, automaton_from: int = AUTOMATON_FROM, most_states: int = MOST_STATES
    ) -> None:
        self.automaton_from = automaton_from
        self.most_states = most_states
        self._written: dict[str, Written | None] = {}
        self._by_key: dict[str, FilterPattern] = {}
        self._patterns: dict[object, FilterPattern] = {}
        self._automaton = Automaton(most_states)
        self._needs: dict[Need, int] = {}
        self._users: dict[int, int] = {}  # the number of patterns by need
        self._numbers = 0
        self._marks: dict[Route, int] = {}
        self._candidates = Candidates()
        self._decided: dict[int, list[FilterPattern]] = {}  # patterns that one need alone decides
        self._decided_keys: dict[int, tuple[str, ...]] = {}  # their keys, without `_stale_keys`
        self._stale_keys: set[int] = set()  # needs whose `_decided_keys` have changed
        self._triggers: dict[FilterPattern, int] = {}  # by pattern, the need that it is listed by
        self._always: dict[FilterPattern, None] = {}  # patterns without needs
        self._few: FewPatterns | None = None  # all patterns, without the automaton
        self._on_tree: dict[bool, PatternsOnTree] = {}  # by whether rows are wanted
        self._text_readers = 0  # the number of patterns that read texts
        self._markup_finders: dict[FilterPattern, None] = {}
        self._on_markup: dict[bool, PatternsOnTree] = {}  # the same for `_markup_finders`
        self.messages = self.left_open = self.refuted = 0
        self.exceeding: set[str] = set()  # keys whose pattern exceeded its budget on a message

    # Patterns -------------------------------------------------------------------------------------

    def add(
        self,
        key: str,
        query: str | Query | Pattern,
        *,
        namespaces: Mapping[str, str] | None = None,
        language: str | None = None,
        known: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """Add a pattern under a key; `known`: the strings a variable can still join with."""
        values = known_values(known)
        if isinstance(query, str):
            parsed = parse_query(query, namespaces, language)
            spaces = tuple(sorted((namespaces or {}).items()))
            written = Written(query, parsed.language, spaces, values)
            pattern = parsed.pattern
        else:
            pattern = query.only_pattern if isinstance(query, Query) else query
            written = Written(str(pattern), "pattern", (), values)
        check_formulas(pattern)
        self._add(key, written, pattern, Axis.CHILD, values)

    def add_relation(self, key: str, relation: Relation, everywhere: bool = False) -> None:
        """Add a relation of an engine, at the message's root or anywhere in it."""
        axis = Axis.DESCENDANT if everywhere else Axis.CHILD
        self._add(key, None, relation, axis, ())

    def _add(
        self,
        key: str,
        written: Written | None,
        source: Pattern | Relation,
        axis: Axis,
        known: Known,
    ) -> None:
        if key in self._by_key:
            raise QueryError(
                "AX202", f"the filter has a pattern with the key {key!r}", advice="remove it first"
            )
        same = (source, axis, known)
        pattern = self._patterns.get(same)
        if pattern is None:
            pattern = self._patterns[same] = FilterPattern(source, axis, known)
            self._enter(pattern)
        pattern.keys.add(key)
        self._note_keys(pattern)
        self._by_key[key] = pattern
        self._written[key] = written

    def remove(self, key: str) -> None:
        """Remove the pattern of a key."""
        pattern = self._of(key)
        del self._by_key[key], self._written[key]
        pattern.keys.remove(key)
        self._note_keys(pattern)
        if not pattern.keys:
            del self._patterns[pattern.source, pattern.axis, pattern.values]
            self._leave(pattern)

    def _note_keys(self, pattern: FilterPattern) -> None:
        """The keys of a pattern have changed."""
        first = self._triggers.get(pattern)
        if first in self._decided:
            self._stale_keys.add(first)

    def _of(self, key: str) -> FilterPattern:
        pattern = self._by_key.get(key)
        if pattern is None:
            raise QueryError("AX203", f"the filter has no pattern with the key {key!r}")
        return pattern

    def _enter(self, pattern: FilterPattern) -> None:
        """Register a new pattern's needs in the automaton; one of them triggers its check."""
        self._few, self._on_tree, self._on_markup = None, {}, {}
        self._text_readers += pattern.reads_texts
        if pattern.finds_markup:
            self._markup_finders[pattern] = None
        needs = pattern.needs
        if not needs.each:
            self._always[pattern] = None
            return
        numbers = [self._use(self._needs, need, self._automaton.add) for need in needs.each]
        meetings = needs.meetings if needs.are_whole else ()
        marks = [self._use(self._marks, route, self._automaton.mark) for route in meetings]
        first = self._triggers[pattern] = self._trigger(needs.each)
        others = frozenset(numbers) - {first}
        if pattern.is_settled and not others and not marks:
            self._decided.setdefault(first, []).append(pattern)
            return
        entry = Candidate(others, frozenset(marks), pattern.is_settled, pattern.keys, pattern)
        self._candidates.add(first, entry)

    def _trigger(self, needs: Iterable[Need]) -> int:
        """The need that a new pattern is considered for when it is met.

        One that few patterns have: a need of all patterns would make every message consider them
        all. Of needs that few have, the rarest.
        """

        def users(need: Need) -> int:
            return (self._users[self._needs[need]] >> 2).bit_length()

        fewest = min(map(users, needs))
        return self._needs[rarest([need for need in needs if users(need) == fewest])]

    def _leave(self, pattern: FilterPattern) -> None:
        self._few, self._on_tree, self._on_markup = None, {}, {}
        self._text_readers -= pattern.reads_texts
        self._markup_finders.pop(pattern, None)
        self._always.pop(pattern, None)
        needs = pattern.needs
        if not needs.each:
            return
        first = self._triggers.pop(pattern)
        self._candidates.remove(first, pattern)
        decided = [each for each in self._decided.pop(first, ()) if each is not pattern]
        self._stale_keys.add(first)
        if decided:
            self._decided[first] = decided
        for need in needs.each:
            self._drop(self._needs, need, self._automaton.remove)
        for route in needs.meetings if needs.are_whole else ():
            self._drop(self._marks, route, self._automaton.unmark)

    def _use(self, known: dict[T, int], what: T, enter: Callable[[T, int], None]) -> int:
        """The number of a need or a route, added to the automaton if it is new."""
        number = known.get(what)
        if number is None:
            number = known[what] = self._numbers
            self._numbers += 1
            self._users[number] = 0
            enter(what, number)
        self._users[number] += 1
        return number

    def _drop(self, known: dict[T, int], what: T, leave: Callable[[T, int], None]) -> None:
        number = known[what]
        self._users[number] -= 1
        if not self._users[number]:
            del self._users[number], known[what]
            leave(what, number)

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def columns(self, key: str) -> tuple[str, ...]:
        """The columns of a key's rows."""
        return self._of(key).program.root.columns

    def written(self) -> Iterator[tuple[str, Written | None]]:
        """Each key with its text; None for relations of an engine, which have none."""
        return iter(self._written.items())

    # Messages -------------------------------------------------------------------------------------

    def matches(self, message: Element, time: int = 0, content: bytes | None = None) -> set[str]:
        """The keys whose pattern a message matches.

        A pattern that exceeds its work budget on a message accepts it, and is in `exceeding`.
        `content`, if available, is the UTF-8 that the message was parsed from: it saves time.
        """
        self.messages += 1
        try:
            if self._text_readers and needs_tree(message, content):
                found = self._all_on_tree(with_rows=False).rows(MessageForms(message, time))
                return {key for pattern, _ in found for key in pattern.keys}
            few = self._few
            if few is not None and few.asks is not None and content and len(content) <= LONGEST:
                bits = few.asks(message)
                if not bits:
                    return set()
                keys = few.confirmed(bits, message, time, content)
                few.count(message, time, content)
            elif few is not None:
                keys = few.found(message, time, content)
            elif not self.uses_automaton:
                keys = self.few_patterns().found(message, time, content)
            else:
                keys = self._shared(message, time)
            if self._markup_finders and has_markup(message, content):
                found = self._markup_on_tree(with_rows=False).rows(MessageForms(message, time))
                keys = (keys - self.markup_keys()).union(*[each.keys for each, _ in found])
            return keys
        except QueryError:  # a pattern exceeds a limit: test each one alone
            on_tree = self._all_on_tree(with_rows=False)
            keys, exceeding = on_tree.keys(MessageForms(message, time))
            self.exceeding |= exceeding
            return keys | exceeding

    def markup_keys(self) -> set[str]:
        """The keys of the patterns that comments and processing instructions may affect."""
        return set().union(*[pattern.keys for pattern in self._markup_finders])

    def few_patterns(self) -> FewPatterns:
        """All patterns, to be tested without the automaton."""
        if self._few is None:
            self._few = FewPatterns(list(self._patterns.values()))
        return self._few

    def _shared(self, message: Element, time: int) -> set[str]:
        """The keys whose pattern matches a message, by the shared automaton."""
        needs, repeated = self._automaton.run(message)
        decided = self._decided_keys
        while self._stale_keys:
            need = self._stale_keys.pop()
            decided[need] = tuple(k for each in self._decided.get(need, ()) for k in each.keys)
            if not decided[need]:
                del decided[need]
        # Keys instead of patterns: most of ten thousand patterns are not in the CPU cache.
        found: set[str] = set()
        found.update(*[decided[need] for need in needs & decided.keys()])
        forms = MessageForms(message, time)
        keys, checked, refuted = self._candidates.kept(needs, repeated, forms)
        passed = [pattern.keys for pattern in self._always if pattern.holds(forms)]
        found.update(*keys, *passed)
        self.left_open += checked + len(self._always)
        self.refuted += refuted + len(self._always) - len(passed)
        return found

    def match(
        self, message: Element, time: int = 0, content: bytes | None = None
    ) -> dict[str, Bag]:
        """The rows of each pattern that a message matches, by key."""
        self.messages += 1
        forms = MessageForms(message, time)
        found: Iterable[tuple[FilterPattern, Bag]]
        is_on_tree = bool(self._text_readers) and needs_tree(message, content)
        if is_on_tree:
            found = self._all_on_tree(with_rows=True).rows(forms)
        elif self.uses_automaton:
            found = self._rows(forms)
        else:
            found = [(pattern, pattern.rows(forms)) for pattern in self._patterns.values()]
        if self._markup_finders and not is_on_tree and has_markup(message, content):
            others = [pair for pair in found if pair[0] not in self._markup_finders]
            found = others + self._markup_on_tree(with_rows=True).rows(forms)
        return {key: bag for pattern, bag in found if bag for key in pattern.keys}

    @property
    def uses_automaton(self) -> bool:
        """Whether there are enough patterns for the automaton to pay off."""
        return len(self._patterns) >= self.automaton_from

    def _all_on_tree(self, with_rows: bool) -> PatternsOnTree:
        """All patterns, for messages that need a tree."""
        made = self._on_tree.get(with_rows)
        if made is None:
            patterns = list(self._patterns.values())
            made = self._on_tree[with_rows] = PatternsOnTree(patterns, with_rows)
        return made

    def _markup_on_tree(self, with_rows: bool) -> PatternsOnTree:
        """The patterns that comments may affect, for messages with comments."""
        made = self._on_markup.get(with_rows)
        if made is None:
            patterns = list(self._markup_finders)
            made = self._on_markup[with_rows] = PatternsOnTree(patterns, with_rows)
        return made

    def _rows(self, message: MessageForms) -> Iterator[tuple[FilterPattern, Bag]]:
        """The rows of the patterns whose needs are met."""
        needs, repeated = self._automaton.run(message.root)
        holding, left_open = self._candidates.met(needs, repeated)
        left_open += self._always
        self.left_open += len(left_open)
        for need in needs & self._decided.keys():
            for pattern in self._decided[need]:
                yield pattern, pattern.rows(message)
        for entry in holding:
            yield entry.pattern, entry.pattern.rows(message)
        for pattern in left_open:
            if pattern.test is not None and not pattern.holds(message):
                self.refuted += 1
            else:
                yield pattern, pattern.rows(message)

    def statistics(self) -> Statistics:
        """The size of the filter and the counters of its automaton."""
        used = self._automaton.counters
        return Statistics(
            keys=len(self._by_key),
            patterns=len(self._patterns),
            uses_automaton=self.uses_automaton,
            nodes=self._automaton.nodes,
            states=self._automaton.states,
            hits=used.hits,
            misses=used.misses,
            evicted=used.evicted,
            messages=self.messages,
            left_open=self.left_open,
            refuted=self.refuted,
        )

    # Sending --------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The filter as JSON text: its patterns as written, and its options."""
        groups: dict[Written, list[str]] = {}
        for key, written in self._written.items():
            if written is None:
                raise QueryError(
                    "AX412",
                    f"{key!r} is a relation of an engine, which has no text",
                    advice="add the pattern instead of the relation",
                )
            groups.setdefault(written, []).append(key)
        patterns = [{"keys": keys, **each.to_json()} for each, keys in groups.items()]
        options = {"automaton_from": self.automaton_from, "most_states": self.most_states}
        return json.dumps({"axlog-filter": VERSION, **options, "patterns": patterns})

    @classmethod
    def from_json(cls, text: str) -> Filter:
        """Read a filter from the text of `to_json`."""
        try:
            given = json.loads(text)
            if given["axlog-filter"] != VERSION:
                raise ValueError(f"version {given['axlog-filter']}")
            made = cls(int(given["automaton_from"]), int(given["most_states"]))
            patterns = [
                (_keys(each["keys"]), Written.from_json(each)) for each in given["patterns"]
            ]
        except (
            AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError
        ) as error:  # fmt: skip
            raise StreamError(
                "AX411",
                f"this is not a filter: {type(error).__name__} {error}",
                expected=f"the output of Filter.to_json, version {VERSION}",
            ) from None
        for keys, written in patterns:
            spaces, known = dict(written.namespaces), dict(written.known)
            for key in keys:
                made.add(
                    key, written.text, namespaces=spaces, language=written.language, known=known
                )
        return made


def _keys(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(key, str) for key in given):
        raise TypeError("keys are a list of strings")
    return given
