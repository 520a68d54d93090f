"""Many filters on one stream: the shared automaton against testing each filter with lxml (F8).

Messages of about 1.4 KB (55 elements with attributes and values, those of a kind repeated side by
side) follow a random schema. The filters are random paths of that schema, with `*`, `//`, value
tests and branches. The choice of filters decides the share that a message matches: 1 to 2 %, or 10
%, counted on the timed messages themselves. Both sides get the parsed message and return the set of
matching filters. The naive side has one compiled `boolean(...)` of lxml for each filter. The sides
alternate on different messages, because repeating one message would measure warm caches.

At small numbers of filters, the two modes of our own filter are measured too: with the automaton
and one by one. `AUTOMATON_FROM` is the number at which they cross.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from time import perf_counter, process_time

from lxml import etree

from axlog.document.parser import Element, parse
from axlog.errors import WorkloadError
from axlog.match.filters import Filter
from lab.benchmarks.measuring import Result, Side, interleave

Sent = tuple[Element, bytes]
_VALUES = 25
_WARM = 150
CHUNK = 20


# The workload -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Kind:
    """An element of the schema, and its possible content."""

    label: str
    attributes: tuple[str, ...]
    children: list[Kind] = field(default_factory=list)


def schema(random: Random, levels: int = 6, width: int = 4) -> Kind:
    """A random schema; labels repeat in several places, as in real ones."""
    labels = [
        f"{stem}{number}" for stem in ("item", "note", "part", "line") for number in range(15)
    ]

    def grow(level: int) -> Kind:
        names = tuple(random.sample(("id", "type", "ref", "lang"), random.randint(0, 2)))
        kind = Kind(random.choice(labels), names)
        if level < levels:
            count = random.randint(2, width) if level < 3 else random.randint(0, width)
            kind.children = [grow(level + 1) for _ in range(count)]
        return kind

    return grow(1)


def message(random: Random, kind: Kind, size: int = 55) -> bytes:
    """A message of about this many elements."""
    left = [size]

    def write(kind: Kind) -> str:
        left[0] -= 1
        given = "".join(f' {a}="{random.randrange(_VALUES)}"' for a in kind.attributes)
        least = min(2, len(kind.children))
        chosen = random.sample(kind.children, random.randint(least, len(kind.children)))
        again = [child for child in chosen for _ in range(random.choice((1, 1, 2, 3)))]
        inside = "".join([write(child) for child in again if left[0] > 0])
        return f"<{kind.label}{given}>{inside or random.randrange(_VALUES)}</{kind.label}>"

    return write(kind).encode()


def query(random: Random, top: Kind) -> str:
    """A random filter: a path down the schema, in a third of the cases with a predicate."""
    text, kind, is_deep = "", top, False
    steps = random.randint(2, 6)
    for level in range(steps):
        slash = "//" if is_deep or random.random() < 0.15 else "/"
        is_deep = False
        if level and slash == "/" and random.random() < 0.1 and kind.children:
            is_deep, kind = True, random.choice(kind.children)  # skip a level
            continue
        text += slash + ("*" if random.random() < 0.1 else kind.label)
        if random.random() < 0.12:
            text += _predicate(random, kind)
        if not kind.children:
            break
        kind = random.choice(kind.children)
    return text


def _predicate(random: Random, kind: Kind) -> str:
    value = random.randrange(_VALUES)
    pick = random.random()
    if kind.attributes and pick < 0.6:
        name = random.choice(kind.attributes)
        return f"[@{name} = '{value}']" if pick < 0.45 else f"[@{name} >= {value}]"
    leaves = [child.label for child in kind.children if not child.children]
    if leaves and pick < 0.8:
        return f"[{random.choice(leaves)} = '{value}']"
    if kind.children:
        one, other = random.choice(kind.children), random.choice(kind.children)
        return f"[{one.label}]" if pick < 0.9 else f"[{one.label}][.//{other.label}]"
    return f"[. = '{value}']"


@dataclass(frozen=True, slots=True)
class Case:
    """Filters, and messages that match a share of them."""

    queries: tuple[str, ...]
    sent: tuple[Sent, ...]
    share: float


def case(count: int, messages: int, share: float, seed: int = 0) -> Case:
    """`count` distinct filters; messages after the warm-up match this share on average."""
    random = Random(seed)
    top = schema(random)
    contents = [message(random, top) for _ in range(messages + _WARM)]
    sent = tuple((parse(content).root, content) for content in contents)
    pool = list(dict.fromkeys(query(random, top) for _ in range(12 * count + 400)))
    rates = _rates(pool, [element for element, _ in sent[_WARM:]])
    chosen = _choose(random, rates, count, share)
    return Case(tuple(chosen), sent, _mean(rates, chosen))


def _choose(random: Random, rates: dict[str, float], count: int, share: float) -> list[str]:
    """Filters above and below the share, in the proportion that reaches it."""
    often = [q for q, rate in rates.items() if rate > share]
    seldom = [q for q, rate in rates.items() if rate <= share]
    above, below = _mean(rates, often), _mean(rates, seldom)
    frequent = round(count * (share - below) / (above - below))
    if frequent > len(often) or count - frequent > len(seldom):
        raise WorkloadError(
            "AX601",
            f"the schema has no {count} filters of which messages match {share:.1%}",
            expected=f"at most {len(often)} that match more often, {len(seldom)} less often",
        )
    chosen = random.sample(often, frequent) + random.sample(seldom, count - frequent)
    random.shuffle(chosen)
    return chosen


def _mean(rates: dict[str, float], queries: Sequence[str]) -> float:
    return sum(rates[q] for q in queries) / max(len(queries), 1)


def _rates(queries: Sequence[str], sample: Sequence[Element]) -> dict[str, float]:
    """The share of sample messages that each filter matches."""
    tests = [(q, etree.XPath(f"boolean({q})")) for q in queries]
    return {q: sum(bool(test(e)) for e in sample) / len(sample) for q, test in tests}


# The sides ----------------------------------------------------------------------------------------


def make_filter(queries: Sequence[str], automaton_from: int | None = None) -> Filter:
    """Our side: all queries in one filter."""
    made = Filter() if automaton_from is None else Filter(automaton_from)
    for text in queries:
        made.add(text, text, language="xpath")
    return made


def shared(made: Filter) -> Side[Sent]:
    def work(chunk: Sequence[Sent]) -> None:
        for element, content in chunk:
            made.matches(element, 0, content)

    return work


def naive(queries: Sequence[str]) -> Callable[[Element], set[str]]:
    """The other side: each query a compiled XPath of lxml."""
    tests = [(text, etree.XPath(f"boolean({text})")) for text in queries]
    return lambda element: {text for text, test in tests if test(element)}


def one_by_one(test: Callable[[Element], set[str]]) -> Side[Sent]:
    def work(chunk: Sequence[Sent]) -> None:
        for element, _ in chunk:
            test(element)

    return work


def filters(
    count: int = 10_000,
    messages: int = 60,
    rounds: int = 3,
    few: Sequence[int] = (1, 2, 5, 10, 20, 50, 100, 1000),
) -> Result:
    """Measure these numbers of filters at both shares, and small numbers of them."""
    result = Result("filters", "one shared filter against lxml, a test a filter (F8)")
    result.sizes = {"filters": count, "messages": messages, "rounds": rounds}
    for share, goal in ((0.015, "35 or more"), (0.10, "10 or more")):
        made = case(count, messages, share)
        size = sum(len(content) for _, content in made.sent) / len(made.sent)
        result.sizes[f"bytes a message at {share:.1%}"] = round(size)
        result.sizes[f"matching, counted, at {share:.1%}"] = round(made.share, 4)
        _measure(result, f"{count} filters, {share:.1%} matching", made, rounds, goal)
    for number in few:
        made = case(number, 4 * messages, 0.1, seed=number)
        _measure(result, f"{number} filters", made, rounds, "1 or more")
        _measure_switch(result, number, made, rounds)
    return result


def _measure(result: Result, what: str, made: Case, rounds: int, goal: str) -> None:
    start = perf_counter()
    ours = make_filter(made.queries)
    result.figures[f"{what}: making the filter, s"] = perf_counter() - start
    theirs = naive(made.queries)
    for element, content in made.sent[:_WARM]:
        ours.matches(element, 0, content)
    before = ours.statistics()
    sides = {"naive": lambda: one_by_one(theirs), "shared": lambda: shared(ours)}
    costs = interleave(sides, made.sent[_WARM:], CHUNK, rounds, process_time)
    result.compare(what, costs, "naive", "shared", goal)
    after = ours.statistics()
    steps = after.hits + after.misses - before.hits - before.misses
    result.figures[f"{what}: states"] = after.states
    result.figures[f"{what}: trie nodes"] = after.nodes
    result.figures[f"{what}: hit rate"] = (after.hits - before.hits) / steps if steps else 1.0
    result.figures[f"{what}: left open a message"] = after.left_open / after.messages


def _measure_switch(result: Result, number: int, made: Case, rounds: int) -> None:
    """Our two modes against each other: with the automaton, and one by one."""
    if number > 200:
        return
    always, never = make_filter(made.queries, 0), make_filter(made.queries, 1 << 30)
    for element, content in made.sent[:_WARM]:
        always.matches(element, 0, content)
    sides = {"one by one": lambda: shared(never), "automaton": lambda: shared(always)}
    costs = interleave(sides, made.sent[_WARM:], CHUNK, rounds, process_time)
    result.compare(f"{number} filters, our ways", costs, "one by one", "automaton")


def same_answers(count: int, messages: int) -> bool:
    """Whether both sides find the same filters, and at least one."""
    made = case(count, messages, 0.1)
    ours, theirs = make_filter(made.queries, 0), naive(made.queries)
    few = make_filter(made.queries, 1 << 30)
    found = [(ours.matches(e, 0, c), few.matches(e, 0, c), theirs(e)) for e, c in made.sent]
    return any(one for one, _, _ in found) and all(a == b == c for a, b, c in found)
