"""Random cases for the laws: a document, views over it, and updates in order.

A case is data: it can be repeated, reduced, and written as a fixture file. Its updates are drawn on
a document that applies them, so that most of them are valid; some are invalid on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from axlog.errors import AxlogError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Keep, Validate
from axlog.query.pattern import Kind, Name, Pattern
from lab.laws import small_cases
from lab.laws.edits import Edit, carry_out, edit_of
from lab.laws.small_cases import DOWNWARD, LABELS, VALUES, fragment, markup

Step = tuple[Edit, ...]
BLOCKS = (1, 3, 64)
DEFAULT = "default"
"""The maintainer of cases that leave the choice to axlog."""
_KEEPERS = (
    DEFAULT,
    "counting",
    "counting",
    "algebraic",
    "algebraic",
    "adaptive",
    "records",
)
DELETES = ' deletes="yes"'
"""How a call declares that its stream may delete."""
WITHOUT_NODES = replace(DOWNWARD, outputs=(Kind.VARIABLE, Kind.LABEL, Kind.TIME), collects=False)
_NAMES_ONLY = replace(
    WITHOUT_NODES,
    values=False,
    formulas=False,
    partial_names=False,
    outputs=(Kind.VARIABLE, Kind.LABEL, Kind.TIME, Kind.ID),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One random case.

    `since` is the step before which each view is created, `until` the step after which it is
    removed. `maintainer`, `block`, `keep`, `validate` and `memory` (of a cache on disk) change how
    the engine works, never the answers.
    """

    document: str
    patterns: tuple[Pattern, ...]
    steps: tuple[Step, ...] = ()
    since: tuple[int, ...] = ()
    until: tuple[int | None, ...] = ()
    block: int = 64
    keep: Keep = "all"
    validate: Validate = "all"
    memory: int | None = None
    maintainer: str = "counting"  # or another that supports the pattern, or DEFAULT
    facts: tuple[str, ...] = ()  # declared facts about future data (law 4)
    types: str | None = None
    at_source: bool = False  # filters run at the sources of streams (law 5)


@dataclass(slots=True)
class _Making:
    """A case under construction: the document its updates apply to, and the parts so far."""

    random: Random
    doc: Document
    steps: list[Step] = field(default_factory=list)
    streams: int = 0
    refused: int = 0

    def add(self, step: Step) -> None:
        try:
            carry_out(self.doc, step)
        except AxlogError:
            if self.random.random() < 0.7:  # others stay: a refused update must change nothing
                return
            self.refused += 1
        self.steps.append(step)


def make_case(random: Random) -> Case:
    """Any case: a document with edits, or with streams, or with both."""
    pick = random.random()
    streams = 0 if pick < 0.5 else random.randint(1, 3)
    text = _document(random, streams)
    features = WITHOUT_NODES if streams and random.random() < 0.6 else DOWNWARD
    only_fed = bool(streams) and random.random() < 0.4
    count = random.choice((1, 1, 2, 3))
    patterns = tuple(small_cases.pattern(random, features) for _ in range(count))
    making = _Making(random, Document(text), streams=streams)
    for _ in range(random.randint(1, 6)):
        fed = streams and (only_fed or random.random() < 0.7)
        making.add(_message(making) if fed else _edits(making))
    steps = tuple(making.steps)
    # Messages that are not kept, or not even parsed, are missing for deletions and later views, and
    # their errors are not seen.
    may_drop = only_fed and _only_inserts(steps) and not making.refused
    since = [0 if may_drop else _moment(random, 0.2, len(steps)) or 0 for _ in patterns]
    made = Case(
        text,
        patterns,
        steps,
        since=tuple(since),
        until=tuple(_moment(random, 0.1, len(steps)) for _ in patterns),
        block=random.choice(BLOCKS),
        keep=random.choice(("all", "needed")) if may_drop else "all",
        validate=random.choice(("all", "wanted")) if may_drop else "all",
        memory=random.choice((0, 1000, 1 << 20)) if random.random() < 0.1 else None,
    )
    if may_drop:  # only counting works without the dropped data
        return made
    return replace(made, maintainer=random.choice(_KEEPERS))


def make_deaf_case(random: Random) -> Case:
    """A case whose views match the labels of `small_cases` only, with a call to feed."""
    patterns: list[Pattern] = []
    while len(patterns) < 2:
        made = small_cases.pattern(random, _NAMES_ONLY)
        if all(isinstance(node.test, Name) for node in made.nodes()):
            patterns.append(made)
    streams = random.randint(1, 3)
    text = _document(random, streams)
    making = _Making(random, Document(text), streams=streams)
    for _ in range(random.randint(0, 3)):
        making.add(_message(making))
    return Case(text, tuple(patterns), tuple(making.steps), block=random.choice(BLOCKS))


def _only_inserts(steps: tuple[Step, ...]) -> bool:
    """Whether the steps delete nothing and insert no call that may delete.

    Where messages were not kept, deletions and such calls are refused (AX307).
    """
    return all(
        "insert" in edit and "stream" in edit and "deletes=" not in edit["insert"]
        for step in steps
        for edit in step
    )


def _moment(random: Random, share: float, steps: int) -> int | None:
    return random.randint(0, steps) if random.random() < share else None


def _document(random: Random, streams: int) -> str:
    text = small_cases.document(random, random.randint(1, 16), streams)
    for number in range(streams):
        declared = random.choice(("", "", "", ' mode="one-shot"', ' most="2"', ' late="clock"'))
        deletes = random.choice(("", DELETES, DELETES))
        text = text.replace(f'stream="s{number}"', f'stream="s{number}"{declared}{deletes}')
    return text


# One update ---------------------------------------------------------------------------------------


def _edits(making: _Making) -> Step:
    """A random pending update list."""
    tree = maintained(making.doc).nodes()
    edits: list[dict[str, Any]] = []
    while not edits:
        edits = [edit_of(tree, op) for op in small_cases.operations(making.random, tree)]
    return _at(making, edits[0]), *edits[1:]


def _message(making: _Making) -> Step:
    """A random message: mostly trees for an open stream."""
    random, tree = making.random, maintained(making.doc).nodes()
    open_streams = sorted(tree.calls())
    if not open_streams or random.random() < 0.03:
        open_streams = [f"s{random.randrange(making.streams + 1)}"]
    edit: dict[str, Any] = {"stream": random.choice(open_streams)}
    pick = random.random()
    if pick < 0.8:
        edit["insert"] = _trees(making)
    elif pick < 0.95:
        edit["delete"] = random.choice(_DELETIONS)(random)
    else:
        edit["end"] = True
    return (_at(making, edit),)


def _trees(making: _Making) -> str:
    random = making.random
    trees = [fragment(random, random.randint(1, 6)) for _ in range(random.choice((1, 1, 1, 2)))]
    text = "".join(trees)
    if random.random() < 0.1:
        text = random.choice((f"{markup(random)}{text}", f"{text}{markup(random)}", markup(random)))
    if random.random() < 0.05:
        call = f'<ax:call xmlns:ax="urn:axlog" stream="s{making.streams}" deletes="yes"/>'
        text = text.replace("</", f"{call}</", 1)
        making.streams += 1
    if random.random() < 0.02:
        text = text[:-1]
    return text


_DELETIONS: tuple[Callable[[Random], str], ...] = (
    lambda random: f"match /{random.choice(LABELS)}",
    lambda random: f"match //{random.choice(LABELS)}",
    lambda random: f'match /*[. = "{random.choice(VALUES)}"]',
    lambda random: f"match /{random.choice(LABELS)}[not({random.choice(LABELS)})]",
    lambda random: f'match /"{random.choice(VALUES)}"',
    lambda random: f"match /{random.choice(('comment()', 'node()', 'node()/comment()'))}",
)


def _at(making: _Making, edit: dict[str, Any]) -> dict[str, Any]:
    """The edit with a time, some microseconds after the clock, rarely before it."""
    if making.random.random() < 0.3:
        return edit
    ahead = making.random.choice((0, 1, 1, 2, 5, -1))
    return {**edit, "at": max(0, maintained(making.doc).tree.clock + ahead) / 1_000_000}


# Reduction ----------------------------------------------------------------------------------------


def less_of(case: Case) -> Iterator[Case]:
    """Reduced cases, the greatest reductions first."""
    for number in range(len(case.patterns)):
        if len(case.patterns) > 1:
            cut = _without(case.patterns, number)
            since, until = _without(case.since, number), _without(case.until, number)
            yield replace(case, patterns=cut, since=since, until=until)
    for number in reversed(range(len(case.steps))):
        earlier = tuple(min(at, len(case.steps) - 1) for at in case.since)
        yield replace(case, steps=_without(case.steps, number), since=earlier)
    for number, step in enumerate(case.steps):
        for part in range(len(step) if len(step) > 1 else 0):
            fewer = _without(step, part)
            yield replace(case, steps=(*case.steps[:number], fewer, *case.steps[number + 1 :]))
    if any(case.since) or any(at is not None for at in case.until):
        yield replace(case, since=(), until=())
    if case.maintainer != "counting":
        yield replace(case, maintainer="counting")
    if case.keep != "all" or case.validate != "all":
        yield replace(case, keep="all", validate="all")


def _without(items: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    return (*items[:number], *items[number + 1 :])
