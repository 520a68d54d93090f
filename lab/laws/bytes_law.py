"""Messages that are matched on their bytes against messages that are parsed.

A reader is generated for each relation of a random pattern, at the root of messages and anywhere in
them. What it finds in a message that the quick check accepts must be what the matcher of parsed
messages finds in it, and the parser must accept the message. Others have to be parsed.

A message is a random tree, mostly without what a reader declines, changed in its values and
damaged at random places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from lxml.etree import XMLSyntaxError, fromstring

from axlog.document.parser import Limits, make_parser
from axlog.match.byte_generator import LONGEST, as_bags, generate_reader
from axlog.match.matcher_generator import can_match, generate
from axlog.match.quick_check import form_check
from axlog.query.compile import Relation, compile_pattern
from axlog.query.pattern import Pattern
from lab.laws.layouts_law import OF_STRINGS, TIME, changed_message
from lab.laws.small_cases import fragment, pattern

_MARKUP = re.compile(r"<!--.*?-->|<\?.*?\?>| [\w:]+=\"[^\"]*\"|x:")
_EMPTY = re.compile(r"<(\w+)></\1>")
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class BytesCase:
    """A pattern and messages."""

    pattern: Pattern
    messages: tuple[str, ...]


def make_bytes_case(random: Random) -> BytesCase:
    """A random case."""
    while compile_pattern(drawn := pattern(random, OF_STRINGS)).refusal is not None:
        pass
    messages: list[str] = []
    for _ in range(8):
        text = fragment(random, random.randint(1, 24))
        if random.random() < 0.9:
            text = _MARKUP.sub("", text)
        if random.random() < 0.5:
            text = _EMPTY.sub(r"<\1/>", text)
        if random.random() < 0.1:
            text = text.replace("><", random.choice((">\n <", "> <", " ><", ">x/><")))
        messages += [text, changed_message(random, text)]
    return BytesCase(drawn, tuple(messages))


def smaller_bytes(case: BytesCase) -> Iterator[BytesCase]:
    """The case with fewer messages."""
    for at in range(len(case.messages)):
        yield replace(case, messages=case.messages[:at] + case.messages[at + 1 :])


def check_bytes(case: BytesCase) -> int:
    """Check that what is read is what is parsed; the number of rows that were read."""
    rows = 0
    for relation in compile_pattern(case.pattern).relations:
        if relation.node is not None and can_match(relation):
            rows += _check(relation, (relation,), (), case.messages)
            rows += _check(relation, (), (relation,), case.messages)
    return rows


def _check(
    relation: Relation,
    here: tuple[Relation, ...],
    everywhere: tuple[Relation, ...],
    messages: tuple[str, ...],
) -> int:
    limits, is_well_formed = Limits(), form_check()
    reader = generate_reader(here, everywhere, limits)
    if reader is None:
        return 0
    matcher = generate(here, everywhere, limits)
    rows = 0
    for text in messages:
        try:
            message = text.encode()
        except UnicodeEncodeError:
            continue
        if not _SHORTEST <= len(message) <= LONGEST or not message.startswith(b"<"):
            continue
        found = reader[0](message, TIME, len(message))
        if found is None or not is_well_formed(message):
            continue
        (bag,) = as_bags(found)
        try:
            root = fromstring(message, make_parser())
        except XMLSyntaxError as error:
            raise AssertionError(f"the parser rejects {text!r}: {error}") from error
        (expected,) = matcher.run(root, TIME, message)
        if bag != expected:
            raise AssertionError(
                f"{relation.node}, {'here' if here else 'anywhere'} in {text!r}:"
                f" found {bag}, wanted {expected}"
            )
        rows += sum(bag.values())
    return rows
