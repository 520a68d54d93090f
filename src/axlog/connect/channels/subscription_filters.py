"""The filters of a channel's subscriptions, run at the source.

The patterns of all subscriptions form one shared `Filter`: a message is parsed once, and the filter
returns the subscriptions that want it. Updates that a filter cannot decide pass: deletions, ends,
and messages that contain calls, through which anything may arrive later. A message of several trees
passes if one of its trees does. A subscription without a filter receives everything; one with an
empty filter receives nothing.

A filter that exceeds its work budget on a message is removed: its subscription receives every
message from then on, and the cost of publishing stays bounded.

A message that cannot be parsed safely (not well-formed, or hostile) is rejected here, before it
gets a number. (Paper 3, sections 2.3 and 3.5.)
"""

from __future__ import annotations

from collections.abc import Iterator
from logging import WARNING, getLogger
from typing import Any

from axlog.document.loader import read_forest
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits
from axlog.document.stream_update import StreamUpdate
from axlog.document.times import microseconds
from axlog.match.filters import Filter
from axlog.reporting import report

_log = getLogger("axlog.connect.channels")
CALL = "{urn:axlog}call"
_BETWEEN = "\0"  # between the name of a subscription and the key of its pattern


def brings_calls(forest: list[Element]) -> bool:
    """Whether a message contains calls: their future messages cannot be matched now."""
    return any(True for tree in forest for _ in tree.iter(CALL))


def is_element(node: Any) -> bool:
    """Whether this is a tree, not a comment or a processing instruction beside it."""
    return isinstance(node.tag, str)


def judged(update: StreamUpdate, limits: Limits) -> list[Element] | None:
    """Return the trees that filters match; None for an update that passes every filter."""
    if update.action != "insert":
        return None
    forest = read_forest(update.content, limits)
    return None if brings_calls(forest) else forest


def passes(wanted: Filter, update: StreamUpdate, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether one filter lets an update pass.

    >>> orders = Filter()
    >>> orders.add("late", "match /order[late]")
    >>> passes(orders, StreamUpdate("orders", "insert", "<order><late/></order>"))
    True
    """
    forest = judged(update, limits)
    if forest is None:
        return True
    time = 0 if update.at is None else microseconds(update.at)
    return any(True for tree in forest if _matching(wanted, tree, time))


def _matching(wanted: Filter, tree: Element, time: int) -> set[str]:
    """Return the keys that a tree of a message matches. A comment or processing instruction beside
    it passes every pattern that can match one.
    """
    return wanted.matches(tree, time) if is_element(tree) else wanted.markup_keys()


class Wanting:
    """The filters of all subscriptions of a channel, in one automaton."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._shared = Filter()
        self._keys: dict[str, list[str]] = {}
        self.unfiltered: set[str] = set()  # subscriptions whose filter exceeded its budget

    def install(self, subscription: str, wanted: Filter) -> None:
        """Install or replace a subscription's filter."""
        self.remove(subscription)
        keys = self._keys[subscription] = []
        for key, written in wanted.written():
            if written is None:
                wanted.to_json()  # raises the reason why such a filter cannot leave its engine
                continue
            shared = f"{subscription}{_BETWEEN}{key}"
            self._shared.add(
                shared,
                written.text,
                namespaces=dict(written.namespaces),
                language=written.language,
                known=dict(written.known),
            )
            keys.append(shared)

    def remove(self, subscription: str) -> None:
        """Remove a subscription's filter."""
        self.unfiltered.discard(subscription)
        for key in self._keys.pop(subscription, ()):
            self._shared.remove(key)

    def subscribers(self, update: StreamUpdate) -> frozenset[str]:
        """Return the subscriptions with filters that want an update."""
        forest = judged(update, self.limits)
        if forest is None:
            return frozenset(self._keys)
        time = 0 if update.at is None else microseconds(update.at)
        found = frozenset(self._found(forest, time)) | self.unfiltered
        if self._shared.exceeding:
            self._give_up()
        return found

    def _give_up(self) -> None:
        """Remove the filters that exceeded their budget."""
        for key in self._shared.exceeding:
            subscription = key.partition(_BETWEEN)[0]
            if subscription not in self.unfiltered:
                report(_log, WARNING, "filter set aside", subscription=subscription,
                       reason="it exceeded its work budget on a message; all messages "
                              "pass")  # fmt: skip
                keys = self._keys.get(subscription, [])
                for each in keys:
                    self._shared.remove(each)
                keys.clear()
                self.unfiltered.add(subscription)
        self._shared.exceeding.clear()

    def _found(self, forest: list[Element], time: int) -> Iterator[str]:
        if self._keys:
            for tree in forest:
                for key in _matching(self._shared, tree, time):
                    yield key.partition(_BETWEEN)[0]

    def __len__(self) -> int:
        return len(self._keys)
