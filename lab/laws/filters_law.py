"""Filters find the rows of evaluation: every pattern on every message, in every mode.

    Filter.match(message) == {key: rows of the pattern on the message}, and `matches` its keys

Each case has several patterns and messages. The modes: the automaton with room for all its states,
with almost none, patterns tested one by one in Python or together in C; with and without the bytes
of the message; and a filter that was written as JSON and read again. Patterns are removed between
messages. (Paper 3, section 3.5.)
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from axlog.document.loader import load
from axlog.document.parser import parse
from axlog.evaluate.answers import answers
from axlog.match.few_patterns import ways_of
from axlog.match.filters import Filter
from axlog.query.compile import compile_pattern
from axlog.query.pattern import Pattern
from lab.laws.small_cases import fragment, pattern

ALWAYS, NEVER = 0, 1 << 30  # number of patterns from which the automaton is used
_TIME = 3


@dataclass(frozen=True, slots=True)
class FilterCase:
    """Patterns, messages, and the mode of the filter."""

    patterns: tuple[Pattern, ...]
    messages: tuple[str, ...]
    automaton_from: int
    most_states: int
    with_bytes: bool
    written: bool
    gone: int | None  # the pattern removed after the first message
    in_c: int | None = None  # which of the ways to test patterns in C; None: in Python


def decorate(random: Random, text: str) -> str:
    """Insert markup that matchers must skip: white space, comments, instructions, CDATA."""
    for extra in ("<!--a-->", "<?a 1?>", "<![CDATA[1]]>", " \n ", "&#49;", "<a/>"):
        if random.random() < 0.2:
            ends = [at for at in range(len(text)) if text.startswith("</", at)]
            at = random.choice(ends)
            text = text[:at] + extra + text[at:]
    return text


def message(random: Random) -> str:
    """A message; some are of a kind that only a tree represents correctly."""
    text = decorate(random, fragment(random, random.randint(1, 14)))
    pick = random.random()
    if pick < 0.1:
        return f'<a xml:space="preserve"> <b> {text} </b> </a>'
    if pick < 0.2:
        return f'<a> <ax:call xmlns:ax="urn:axlog" stream="s"> </ax:call>{text}</a>'
    return text


def make_filter_case(random: Random) -> FilterCase:
    """A random case."""
    found: list[Pattern] = []
    while len(found) < random.choice((1, 3, 8)):
        drawn = pattern(random)
        if compile_pattern(drawn).refusal is None:
            found.append(drawn)
    return FilterCase(
        patterns=tuple(found),
        messages=tuple(message(random) for _ in range(3)),
        automaton_from=random.choice((ALWAYS, NEVER)),
        most_states=random.choice((4, 6, 8192)),
        with_bytes=random.random() < 0.5,
        written=random.random() < 0.3,
        gone=random.randrange(len(found)) if random.random() < 0.5 else None,
        in_c=random.choice((None, 0, 1)),
    )


def check_filter(case: FilterCase) -> None:
    """Check for the same rows for every pattern and message."""
    wanted = {f"k{number}": one for number, one in enumerate(case.patterns)}
    made = Filter(case.automaton_from, case.most_states)
    for key, one in wanted.items():
        made.add(key, one)
    if case.written:
        made = Filter.from_json(made.to_json())
    for number, text in enumerate(case.messages):
        if number == 1 and case.gone is not None:
            made.remove(f"k{case.gone}")
            del wanted[f"k{case.gone}"]
        if case.in_c is not None:
            few = made.few_patterns()
            few.test_in_c([ways[case.in_c] for each in few.patterns if (ways := ways_of(each))])
        tree, root = load(text, time=_TIME), parse(text).root
        content = text.encode() if case.with_bytes else None
        expected = {key: bag for key, one in wanted.items() if (bag := answers(tree, one))}
        _same(f"the rows on {text}", made.match(root, _TIME, content), expected)
        _same(f"what matches {text}", made.matches(root, _TIME, content), set(expected))


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
