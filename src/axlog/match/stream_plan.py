"""The message plan of a stream: reads messages without storing them, and gives their bags.

The plan holds no state and refers to no document: it can be pickled, sent to where messages arrive
and used there. It turns a message into one bag of bindings for each relation that the stream feeds,
in the order `here`, `everywhere`. The document joins them (`live/stream_engine.py`).

    bags = plan.bags(message, time)        stateless, anywhere
    changes = streaming.apply_all([(stream, bags, time)])      where the joins' state is

Law: the bags are those of the interpreter on the message's tree (`bags_on`).

Not handled (None): several trees, calls inside, a DOCTYPE, another encoding than UTF-8,
`xml:space`, messages near a limit, malformed messages; comments and processing instructions, if a
relation may find them. Such a message goes through the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from functools import cached_property

from lxml.etree import XMLParser, XMLSyntaxError, fromstring

from axlog.document.message_key import KeyPath
from axlog.document.parser import Element, Limits, make_parser
from axlog.document.tree import Tree
from axlog.evaluate.interpreter import Interpreter
from axlog.evaluate.joins import Bag
from axlog.match.byte_generator import LONGEST, Read, as_bags, generate_reader
from axlog.match.filters import Filter
from axlog.match.linear_paths import AUTOMATON_FROM
from axlog.match.matcher_generator import Match, Matcher, generate
from axlog.match.message_limits import MessageLimits, without_declaration
from axlog.match.message_values import finds_markup, may_have_markup
from axlog.query.compile import Relation

_OPEN = ord("<")
ODD_START = b"!?\0"
"""The character after `<` in a message that does not start with its root, or is in UTF-16."""
SHORTEST = len("<a/>")
_NOTHING: Bag = {}
EVERYWHERE = 1 << 32
"""The number of the first relation that is matched anywhere in a message.

Relations at the root are numbered from 0 on. So both can be added to without changing a number.
"""


@dataclass(frozen=True)
class MessagePlan:
    """The plan of one stream to read messages without storing them."""

    here: tuple[Relation, ...]  # matched at the message's root
    everywhere: tuple[Relation, ...]  # matched anywhere in it
    limits: Limits
    depth: int  # the depth of the call
    wanted: tuple[tuple[bytes, ...], ...] | None = (
        None  # groups of names; some group must occur whole
    )
    replace: KeyPath | None = None  # the key of messages that replace earlier ones
    automaton_from: int = AUTOMATON_FROM  # the number of relations that pays for an automaton

    def __getstate__(self) -> dict[str, object]:
        """The state without compiled code, which the receiver compiles again."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def matcher(self) -> Matcher:
        return generate(self.here, self.everywhere, self.limits)

    @cached_property
    def shared(self) -> Filter | None:
        """One automaton for all relations, if there are enough for it to pay off."""
        if len(self.here) + len(self.everywhere) < self.automaton_from:
            return None
        return filter_of(self.here, self.everywhere, self.automaton_from)

    @cached_property
    def match(self) -> Match:
        """The bags of a message, in the order of the relations."""
        if self.shared is None:
            return self.matcher.run
        find, nothing = self.found, [_NOTHING] * (len(self.here) + len(self.everywhere))
        behind = EVERYWHERE - len(self.here)

        def run(root: Element, time: int, message: bytes) -> tuple[Bag, ...]:
            bags = nothing.copy()
            for number, bag in find(root, time, message).items():
                bags[number if number < EVERYWHERE else number - behind] = bag
            return tuple(bags)

        return run

    @cached_property
    def found(self) -> Callable[[Element, int, bytes], dict[int, Bag]]:
        """The bags of a message by the number of their relation, without the empty ones.

        By the automaton: a message costs the relations that it matches, however many there are.
        """
        assert self.shared is not None
        match, numbers = self.shared.match, self._numbers

        def run(root: Element, time: int, message: bytes) -> dict[int, Bag]:
            return {numbers[key]: bag for key, bag in match(root, time, message).items()}

        return run

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The numbers of the relations by their keys in the filter."""
        numbers = self._all_numbers(self.here, self.everywhere)
        return {str(at): number for at, number in enumerate(numbers)}

    @staticmethod
    def _all_numbers(here: Sized, everywhere: Sized) -> Iterator[int]:
        yield from range(len(here))
        yield from range(EVERYWHERE, EVERYWHERE + len(everywhere))

    def adopt(self, kept: RelationFilter) -> None:
        """Use a filter that other plans have used: most relations are in it already."""
        if len(self.here) + len(self.everywhere) >= self.automaton_from:
            keys = kept.follow(self.here, self.everywhere)
            numbers = self._all_numbers(self.here, self.everywhere)
            self.__dict__["shared"] = kept.filter
            self.__dict__["_numbers"] = dict(zip(keys, numbers, strict=True))

    def grown(
        self,
        here: tuple[Relation, ...],
        everywhere: tuple[Relation, ...],
        wanted: tuple[tuple[bytes, ...], ...] | None,
        kept: RelationFilter,
    ) -> MessagePlan:
        """The plan for these relations, which begin with those of this plan.

        `kept` is the filter that this plan has adopted. This plan must not be used any more.
        """
        made = replace(self, here=here, everywhere=everywhere, wanted=wanted)
        more, deeper = here[len(self.here) :], everywhere[len(self.everywhere) :]
        numbers = [*range(len(self.here), len(here))]
        start = EVERYWHERE + len(self.everywhere)
        numbers += range(start, start + len(deeper))
        known = self._numbers
        known.update(zip(kept.add(more, deeper), numbers, strict=True))
        sees_markup = self.sees_markup or any(map(finds_markup, more + deeper))
        known_parts = {"shared": kept.filter, "_numbers": known, "parser": self.parser}
        made.__dict__.update(known_parts, sees_markup=sees_markup)
        return made

    @cached_property
    def unread(self) -> tuple[Bag, ...]:
        """The bags of a message that no view wants, by its raw bytes: it is not parsed."""
        return tuple({} for _ in (*self.here, *self.everywhere))

    @cached_property
    def sees_markup(self) -> bool:
        """Whether some relation may find comments or processing instructions."""
        return any(finds_markup(relation) for relation in (*self.here, *self.everywhere))

    @cached_property
    def parser(self) -> XMLParser:
        return make_parser()

    @cached_property
    def bounds(self) -> MessageLimits:
        """The limits of the stream's messages."""
        return MessageLimits(self.limits, self.depth)

    def declines(self, message: bytes) -> bool:
        """Whether a message must go through the document, by its raw bytes."""
        return (
            len(message) < SHORTEST
            or message[0] != _OPEN
            or message[1] in ODD_START
            or (self.sees_markup and may_have_markup(message))
            or (message.find(b"=") > 0 and b"xml" in message and may_need_tree(message))
            or (len(message) > self.bounds.safe and not self.bounds.admits(message))
        )

    def _parsed(self, message: bytes) -> Element | None:
        """The root of a message; None: the document reports the error."""
        try:
            root = fromstring(message, self.parser)
        except XMLSyntaxError:
            return None
        is_long = len(message) > self.bounds.safe
        return None if is_long and self.bounds.may_be_too_deep(message, root) else root

    @cached_property
    def _interpreter(self) -> Interpreter:
        wanted = (*self.here, *self.everywhere)
        made = Interpreter(each for relation in wanted for each in relation.walk())
        made.look_anywhere(self.everywhere)
        return made

    def bags_on(self, tree: Tree, tops: Iterable[int]) -> tuple[Bag, ...]:
        """The bags of subtrees of a tree, by the interpreter."""
        below = self._interpreter.gathered(tree, tops)
        here = [below.children.get(relation, {}) for relation in self.here]
        return (*here, *(below.descendants.get(relation, {}) for relation in self.everywhere))

    def bags(
        self, message: bytes, time: int, root: Element | None = None
    ) -> tuple[Bag, ...] | None:
        """The bags of a message; None if it must go through the document.

        `root` is the message's root, if it was parsed with others (`batch_parser.py`).
        """
        message = without_declaration(message)
        if self.declines(message):
            return None
        if self.wanted is not None and not may_want(message, self.wanted):
            return self.unread
        if root is None:
            root = self._parsed(message)
        return None if root is None else self.match(root, time, message)

    @cached_property
    def width(self) -> int:
        """The number of bags of a message."""
        return len(self.here) + len(self.everywhere)

    @cached_property
    def _reader(self) -> Read | None:
        made = generate_reader(self.here, self.everywhere, self.limits)
        return None if made is None else made[0]

    def bags_of_known(self, message: bytes, time: int) -> tuple[Bag, ...] | None:
        """`bags` for a message that was accepted before: its form is not checked again."""
        if self.shared is None and self._reader is not None and len(message) <= LONGEST:
            found = self._reader(message, time, len(message))
            if found is not None:
                return as_bags(found)
        return self.bags(message, time)

    def keyed_bags(self, message: bytes, time: int) -> tuple[str, tuple[Bag, ...]] | None:
        """The key and the bags of a message of a stream that replaces.

        None if it must go through the document. Raises AX420 if it has no key.
        """
        assert self.replace is not None
        message = without_declaration(message)
        if self.declines(message) or may_have_markup(message):
            return None
        root = self._parsed(message)
        if root is None:
            return None
        return self.replace.value(root), self.match(root, time, message)

    @cached_property
    def _test(self) -> Filter:
        return filter_of(self.here, self.everywhere)

    def bags_if_unwanted(self, message: bytes, time: int) -> tuple[Bag, ...] | None:
        """Empty bags for a message that no relation matches; None for any other.

        For streams whose messages become nodes if a view wants them.
        """
        message = without_declaration(message)
        if self.declines(message):
            return None
        if self.wanted is not None and not may_want(message, self.wanted):
            return self.unread
        root = self._parsed(message)
        return None if root is None or self._test.matches(root, time, message) else ()


class RelationFilter:
    """A filter for the relations of a stream, which follows them as views come and go.

    What is known of relations that stay is kept: their needs, and their generated matchers.
    """

    def __init__(self, automaton_from: int) -> None:
        self.filter = Filter(automaton_from)
        self._keys: dict[tuple[Relation, bool], str] = {}
        self._made = 0

    def follow(self, here: Iterable[Relation], everywhere: Iterable[Relation]) -> list[str]:
        """Have these relations and no others; their keys, in order."""
        wanted = dict.fromkeys([(relation, False) for relation in here])
        wanted |= dict.fromkeys([(relation, True) for relation in everywhere])
        for each in [each for each in self._keys if each not in wanted]:
            self.filter.remove(self._keys.pop(each))
        return self.add(here, everywhere)

    def add(self, here: Iterable[Relation], everywhere: Iterable[Relation]) -> list[str]:
        """Have these relations, too; their keys, in order."""
        wanted = dict.fromkeys([(relation, False) for relation in here])
        wanted |= dict.fromkeys([(relation, True) for relation in everywhere])
        for relation, is_inside in wanted:
            if (relation, is_inside) not in self._keys:
                self._made += 1
                key = self._keys[relation, is_inside] = str(self._made)
                self.filter.add_relation(key, relation, is_inside)
        return [self._keys[each] for each in wanted]


def filter_of(
    here: Iterable[Relation],
    everywhere: Iterable[Relation],
    automaton_from: int = AUTOMATON_FROM,
) -> Filter:
    """A filter for relations at the root of messages and anywhere in them, by their number."""
    made = Filter(automaton_from)
    wanted = [(relation, False) for relation in here] + [(each, True) for each in everywhere]
    for number, (relation, is_inside) in enumerate(wanted):
        made.add_relation(str(number), relation, is_inside)
    return made


def may_want(message: bytes, wanted: tuple[tuple[bytes, ...], ...]) -> bool:
    """Whether some view may want a message, by its raw bytes.

    A name can be written in only one way, in UTF-8 and in every encoding that a message without a
    declaration can have.
    """
    for names in wanted:
        for name in names:
            if message.find(name) < 0:  # faster than `in`, which first tries to convert to a number
                break
        else:
            return True
    return False


def may_need_tree(message: bytes) -> bool:
    """Whether a message with attributes may hold a call or `xml:space`.

    A call needs a namespace declaration; a namespace can be written in many ways, a name in one.
    """
    return b"xml:space" in message or (b"xmlns" in message and b"call" in message)
