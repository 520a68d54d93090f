"""The reader of a stream's messages by their layouts, learned from messages that were parsed.

    match      the expression of the known layouts; None: none are known yet, or they do not help
    leaves     by the last group of a match: the matcher of that layout
    left       messages without a known layout before `note` is called
    reads      whether messages without a known layout are matched on their bytes first

The reader takes samples of the messages that it could not read. If most of them have a few layouts,
it makes an expression for these. Later it counts how many messages still have to be parsed: it adds
layouts that became frequent, and gives up where messages differ too much. The time between two
expressions doubles, so making them costs a bounded share of the messages' time, whatever is sent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

from lxml.etree import fromstring

from axlog.document.parser import Element, Limits, make_parser
from axlog.evaluate.joins import Bag
from axlog.match.layout_expression import Match, expression_of
from axlog.match.layout_generator import LayoutWriter, TooLong
from axlog.match.message_layout import LARGEST, Layout, layout_of
from axlog.query.compile import Relation

Leaf: TypeAlias = Callable[[Match, int, bytes | str], tuple[Bag | int, ...]]
"""From the match of a message, its time and the message to a bag or a number for each relation."""

EVERY = 9
"""One in so many messages that are not read is a sample."""
SAMPLES = 16
"""The samples that a decision needs."""
REPEATED = 2
"""The samples that a layout needs."""
MOST_TOKENS = 2048
"""The most tokens of all layouts in an expression: it takes 30 us to compile one."""
WATCHED = 512
"""Messages that are not read before their layouts are looked at again; doubles each time."""
MOST_DECLINED = 32
"""Declined messages after which no others are matched on their bytes, if they are a half."""
_VALUES = re.compile(r"(?<=>)[^<]+|\"[^\"]*\"|'[^']*'")  # nearly; a layout has them exactly
_NO_MARKUP = bytes(each for each in range(256) if chr(each) not in "<>/='\"")
_PAUSE = 1 << 14  # messages before another attempt, where layouts do not help


class LayoutReader:
    """Reads the messages of a stream that have a known layout."""

    __slots__ = (
        "_can_read", "_declined", "_declined_since", "_everywhere", "_here", "_is_useless",
        "_known", "_limits", "_parsed", "_samples", "_seen", "_shapes", "_since", "_wait",
        "_waited", "leaves", "left", "longest", "match", "reads",
    )  # fmt: skip

    def __init__(
        self, here: tuple[Relation, ...], everywhere: tuple[Relation, ...], limits: Limits
    ) -> None:
        self._here, self._everywhere, self._limits = here, everywhere, limits
        self.longest = min(limits.size, limits.text) // 4  # bytes of a character
        """The most characters or bytes of a message that exceeds no limit."""
        self.match: Callable[[str], Match | None] | None = None
        self.leaves: list[Leaf | None] = []
        self.left = EVERY
        self.reads = self._can_read = False
        self._declined = self._declined_since = 0  # messages; the number of the message before them
        self._known: list[Layout] = []
        self._seen: Counter[str] = Counter()  # samples by their outlines
        self._shapes: dict[bytes, bytes] = {}  # the first sample of a shape; empty: it is counted
        self._parsed: dict[str, Layout] = {}
        self._samples = 0  # -1: none are taken now
        self._is_useless = True  # whether most messages have to be parsed all the same
        self._since = 0  # the number of the message from which on messages are counted
        self._wait = self._waited = WATCHED  # the next time, and this time

    def note(self, message: bytes, root: Element | None, number: int) -> None:
        """Take a message without a known layout into account; `number`: of the messages so far.

        `root` is None if it was matched without being parsed.
        """
        if self._samples < 0:
            self.reads = self._can_read
            self._review(number)
            return
        self.left = EVERY
        self._samples += 1
        self._sample(message, root)
        if self._samples >= SAMPLES:
            self._decide(number)

    def start_reading(self) -> None:
        """Match messages on their bytes, unless most are declined."""
        self.reads = self._can_read = True

    def decline(self, number: int) -> None:
        """Take into account that a message could not be matched on its bytes."""
        self._declined += 1
        if self._declined == MOST_DECLINED:
            self.reads = number - self._declined_since > 2 * MOST_DECLINED
            self._declined, self._declined_since = 0, number

    def _sample(self, message: bytes, root: Element | None) -> None:
        if len(message) > min(self.longest, LARGEST):
            return
        shape = message.translate(None, _NO_MARKUP)
        first = self._shapes.get(shape)
        if first is None and REPEATED > 1:  # where layouts do not repeat, most samples end here
            self._shapes[shape] = message
            return
        if first:
            self._shapes[shape] = b""
            self._count(first, None)
        self._count(message, root)

    def _count(self, message: bytes, root: Element | None) -> None:
        """Count a message whose shape repeats, by its outline, and find its layout by its root."""
        try:
            text = message.decode()
        except UnicodeDecodeError:
            return
        outline = _VALUES.sub("", text)  # at a small part of the cost of a layout
        self._seen[outline] += 1
        is_new = outline not in self._parsed and self._seen[outline] >= REPEATED
        if is_new:
            if root is None:
                root = fromstring(message, make_parser())
            layout = layout_of(text, root, self._limits)
            if layout is not None:
                self._parsed[outline] = layout

    def _decide(self, number: int) -> None:
        """Add the layouts that most samples have; give up if there are no such layouts."""
        often = [outline for outline, _ in self._seen.most_common() if outline in self._parsed]
        found = [self._parsed[outline] for outline in often]
        share = sum(self._seen[outline] for outline in often) / self._samples
        self._seen.clear()
        self._shapes.clear()
        self._parsed.clear()
        self._samples, self._since = -1, number
        if share >= 0.5:
            self.learn([*found, *self._known])
        elif self._is_useless:
            self.match, self._known = None, []
            self._wait = max(self._wait, _PAUSE)
        self.left = self._waited = self._wait
        self._wait *= 2

    def _review(self, number: int) -> None:
        """Take samples again if many messages have to be parsed."""
        share = self._waited / max(number - self._since, 1)
        self._since = number
        self._is_useless = self.match is None or share > 0.75
        if share < 0.1:
            self.left = self._waited = self._wait
        else:
            self._samples, self.left = 0, EVERY

    def learn(self, layouts: Iterable[Layout]) -> None:
        """Make the expression of different layouts, and their matchers; the first ones count."""
        made: list[tuple[Layout, LayoutWriter, str]] = []
        size = 0
        for layout in {each.tokens: each for each in layouts}.values():
            size += len(layout.tokens)
            if size > MOST_TOKENS:
                break
            writer = LayoutWriter(layout, self._limits)
            try:
                source = writer.matcher(self._here, self._everywhere)
                compile(source, "<layout>", "exec")
            except (TooLong, SyntaxError):  # Python nests at most twenty loops
                continue
            made.append((layout, writer, source))
        self._known = [layout for layout, _, _ in made]
        if not made:
            self.match = None
            return
        found = expression_of([(layout, writer.used) for layout, writer, _ in made])
        leaves: list[Leaf | None] = [None] * (max(found.ends) + 1)
        for (_, writer, source), end, groups in zip(made, found.ends, found.groups, strict=True):
            writer.constants |= {f"PLACE_{place}": group for place, group in groups.items()}
            leaves[end] = cast("Leaf", writer.compiled("match", source))
        self.leaves = leaves
        self.match = found.fullmatch
