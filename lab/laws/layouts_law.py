"""Messages that are read by their layout against messages that are parsed.

A layout is learned from one message. Every text that its expression accepts must be a well-formed
message for the parser, with the tree of the layout, and the matcher of the layout must find the
bags that the matcher of parsed messages finds in it. Others are refused, and then parsed.

A case has a pattern and some messages; each is changed in its values, plain ones and odd ones, and
damaged at random places.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from unittest.mock import patch

from lxml.etree import XMLSyntaxError, fromstring

from axlog.document.parser import Element, Limits, make_parser
from axlog.match import layout_reader
from axlog.match.layout_reader import LayoutReader
from axlog.match.matcher_generator import can_match, generate
from axlog.match.message_layout import Layout, layout_of, tokens_of
from axlog.match.stream_plan import may_need_tree
from axlog.query.compile import Relation, compile_pattern
from axlog.query.pattern import Axis, Kind, Pattern
from lab.laws.filters_law import decorate
from lab.laws.small_cases import Features, fragment, pattern

OF_STRINGS = Features(outputs=(Kind.VARIABLE, Kind.LABEL, Kind.TIME), collects=False)
_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
TIME = 3
VALUES = (
    "1", "2", "a", "", " ", " 2 ", "\n", "\t1", "é", "\U0001f600", "a b", "x" * 40,
    ">", "]]>", "&amp;", "&#49;", "&", "<", "<b/>", "<!--1-->", "\r", "\x00", "\x1f", "\ufffe",
    "\ud800", '"', "'", "\x7f", "\x85", "\u2028", "=", "/", "</b>",
)  # fmt: skip
"""Values that are put into places: plain ones, odd ones, and some that end the message's sense."""


@dataclass(frozen=True, slots=True)
class LayoutsCase:
    """A pattern, messages, and the messages that are made of them."""

    pattern: Pattern
    messages: tuple[str, ...]
    others: tuple[str, ...]


def make_layouts_case(random: Random) -> LayoutsCase:
    """A random case."""
    while compile_pattern(drawn := pattern(random, OF_STRINGS)).refusal is not None:
        pass
    messages: list[str] = []
    while len(messages) < 3:
        text = fragment(random, random.randint(1, 14))
        if random.random() < 0.2:
            text = decorate(random, text)
        if random.random() < 0.2:
            text = text.replace("><", ">\n  <") + random.choice(("", "\n"))
        if random.random() < 0.1:
            text = text.replace('"', "'")
        messages.append(text)
    others = [changed_message(random, text) for text in messages for _ in range(6)]
    return LayoutsCase(drawn, tuple(messages), (*messages, *others))


def changed_message(random: Random, text: str) -> str:
    """A message with other values, or damaged."""
    tokens = tokens_of(text)
    if tokens is not None and random.random() < 0.7:
        plain = random.random() < 0.5
        among = VALUES[:9] if plain else VALUES
        return "".join(each if isinstance(each, str) else random.choice(among) for each in tokens)
    at = random.randrange(len(text) + 1)
    cut = random.randrange(3)
    return text[:at] + random.choice((*VALUES, text[at:])) + text[at + cut :]


def smaller_layouts(case: LayoutsCase) -> Iterator[LayoutsCase]:
    """The case with fewer messages."""
    for at in range(len(case.others)):
        yield LayoutsCase(case.pattern, case.messages, case.others[:at] + case.others[at + 1 :])
    for at in range(len(case.messages)):
        fewer = case.messages[:at] + case.messages[at + 1 :]
        yield LayoutsCase(case.pattern, fewer, case.others)


def check_layouts(case: LayoutsCase) -> int:
    """Check that what is read is what is parsed; the number of messages that were read."""
    here, everywhere = _relations(case.pattern)
    limits = Limits()
    layouts = [each for text in case.messages if (each := _layout(text, limits)) is not None]
    reader = LayoutReader(here, everywhere, limits)
    reader.learn(layouts)
    matcher = generate(here, everywhere, limits)
    if reader.match is None:
        return 0
    read = 0
    for text in case.others:
        found = reader.match(text)
        if found is None:
            continue
        read += 1
        root = _parsed(text)
        if root is None or may_need_tree(text.encode()):
            raise AssertionError(f"the parser rejects {text!r}")
        leaf = reader.leaves[found.lastindex or 0]
        assert leaf is not None
        bags = [
            ({(): each} if each else {}) if isinstance(each, int) else each
            for each in leaf(found, TIME, text)
        ]
        expected = list(matcher.run(root, TIME, text.encode()))
        if bags != expected:
            raise AssertionError(f"the bags of {text!r}: found {bags}, wanted {expected}")
    return read


def _relations(given: Pattern) -> tuple[tuple[Relation, ...], tuple[Relation, ...]]:
    """The relations that a message at a call may match, at its root and anywhere in it."""
    relations = compile_pattern(given).relations

    def reached(axes: tuple[Axis, ...]) -> tuple[Relation, ...]:
        found = {e.relation: None for r in relations for e in r.edges if e.axis in axes}
        return tuple(relation for relation in found if can_match(relation))

    return reached((Axis.CHILD,)), reached(_DESCENT)


def _parsed(text: str) -> Element | None:
    try:
        return fromstring(text.encode(), make_parser())
    except (XMLSyntaxError, UnicodeEncodeError):
        return None


def _layout(text: str, limits: Limits) -> Layout | None:
    root = _parsed(text)
    return None if root is None else layout_of(text, root, limits)


@contextmanager
def eager_layouts() -> Iterator[None]:
    """Let documents learn the layout of every message, so that short runs use them."""
    with patch.multiple(layout_reader, EVERY=1, SAMPLES=1, REPEATED=1, WATCHED=1):
        yield
