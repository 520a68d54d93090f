"""P4 section 5: matching triples on strings, exhaustively where they are small.

`check_strings` with four nodes, the labels `abc*` and strings up to six letters is the full set; a
fixed part of it runs here.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from random import Random

import pytest

from axlog.views.records.sequences import NONE, Sequences
from axlog.views.records.strings import StringPattern, Strings
from tests.amounts import cases
from tests.string_matching import STRINGS, has_matching, passes, patterns, printed_join, triples

NEXT, LATER = True, False


def letter(strings: Strings, labels: str, one: str) -> int:
    return strings.letter(sum(passes(label, one) << n for n, label in enumerate(labels)))


def whole(strings: Strings, labels: str, word: str) -> int:
    return reduce(strings.join, (letter(strings, labels, one) for one in word), 0)


def check_strings(pattern: StringPattern, labels: str, length: int) -> int:
    """Every string up to a length: the match, and the same triples however it is cut in two."""
    strings = Strings(pattern)
    known: dict[str, int] = {}
    for size in range(1, length + 1):
        for word in STRINGS[size]:
            first = letter(strings, labels, word[0])
            known[word] = strings.join(first, known[word[1:]]) if word[1:] else first
            where = (pattern, labels, word)
            assert strings.matches(known[word]) == has_matching(pattern, labels, word), where
            for at in range(2, size):
                assert strings.join(known[word[:at]], known[word[at:]]) == known[word], where
    return len(known)


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_oracle_every_small_pattern_on_every_small_string(nodes: int) -> None:
    for pattern in patterns(nodes):
        for labels in product("ab*", repeat=nodes):
            check_strings(pattern, "".join(labels), 4 if nodes < 3 else 3)


@pytest.mark.parametrize("part", range(cases(2)))
def test_oracle_part_of_the_patterns_with_four_nodes(part: int) -> None:
    random = Random(part)
    for _ in range(14):
        pattern = random.choice(list(patterns(4)))
        check_strings(pattern, "".join(random.choices("abc*", k=4)), 5)


@pytest.mark.parametrize("seed", range(cases(30)))
def test_oracle_triples_of_larger_patterns(seed: int) -> None:
    random = Random(seed)
    nodes = random.randint(4, 7)
    pattern = _random_pattern(random, nodes)
    labels = "".join(random.choices("ab*", k=nodes))
    strings = Strings(pattern)
    for _ in range(6):
        word = "".join(random.choices("ab", k=random.randint(1, 6)))
        found = strings.triples(whole(strings, labels, word))
        assert found == triples(pattern, labels, word), (pattern, labels, word)


def _random_pattern(random: Random, nodes: int) -> StringPattern:
    parents = [-1, *(random.randrange(max(0, n - 3), n) for n in range(1, nodes))]
    nexts = [random.random() < 0.5]
    for node in range(1, nodes):
        taken = any(nexts[n] for n in range(1, node) if parents[n] == parents[node])
        nexts.append(not taken and random.random() < 0.6)
    return StringPattern(tuple(parents), tuple(nexts))


# Where algorithm 1 as printed is wrong ------------------------------------------------------------

BROKEN = [
    (StringPattern((-1, 0, 1, 0, 1), (LATER, LATER, NEXT, LATER, LATER)), "*aa*a", "aa", "b"),
    (
        StringPattern(
            (-1, 0, 1, 0, 1, 2, 5, 5), (NEXT, LATER, NEXT, LATER, LATER, NEXT, LATER, NEXT)
        ),
        "a**baa*b", "aba", "b",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "labels", "first", "second"), BROKEN)
def test_cases_that_break_the_printed_algorithm(
    pattern: StringPattern, labels: str, first: str, second: str
) -> None:
    wanted = triples(pattern, labels, first + second)
    printed = printed_join(
        pattern, triples(pattern, labels, first), triples(pattern, labels, second)
    )
    assert printed > wanted
    strings = Strings(pattern)
    joined = strings.join(whole(strings, labels, first), whole(strings, labels, second))
    assert strings.triples(joined) == wanted


# EXAMPLES 19 --------------------------------------------------------------------------------------
#
# Example 5.2's query: edge 1 -> c, then 2 => c; from its target 3 -> a, 4 => *, and 5 => a, 6 => c,
# 7 => *. Here edge n - 1 leads to node n - 1; edges 4 and 7 are the virtual ones below the leaves.

EXAMPLE = StringPattern((-1, 0, 1, 1, 3), (NEXT, LATER, NEXT, LATER, LATER))
LABELS = "ccaac"
NUMBER = {1: 0, 2: 1, 3: 2, 4: 5, 5: 3, 6: 4, 7: 6}


def test_example_19_pairs_on_cacac() -> None:
    strings = Strings(EXAMPLE)
    found = strings.triples(whole(strings, LABELS, "cacac"))
    assert found == triples(EXAMPLE, LABELS, "cacac")
    pairs = {
        paper for paper, edge in NUMBER.items() if any((0, b, edge) in found for b in range(7))
    }
    assert pairs == {2, 3, 4, 5, 6, 7}
    assert (NUMBER[1], NUMBER[4], NUMBER[6]) in found
    assert (NUMBER[1], NUMBER[3], NUMBER[7]) not in found


def test_example_5_9_a_third_path_must_fit_the_cut() -> None:
    """Figure 5's three cases, each reached by joining every cut of a string."""
    strings = Strings(EXAMPLE)
    for word in ("cacac", "ccaacc", "ccacacac"):
        wanted = triples(EXAMPLE, LABELS, word)
        for at in range(1, len(word)):
            parts = (whole(strings, LABELS, part) for part in (word[:at], word[at:]))
            assert strings.triples(strings.join(*parts)) == wanted, (word, at)


# The balanced tree --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_oracle_edits_of_a_string_in_a_balanced_tree(seed: int) -> None:
    random = Random(seed)
    pattern, labels = _random_pattern(random, 4), "".join(random.choices("ab*", k=4))
    strings = Strings(pattern)
    tree = Sequences(strings.join)
    tree.reserve(400)
    word: list[tuple[int, str]] = []
    free = list(range(1, 400))
    for _ in range(120):
        if word and random.random() < 0.4:
            handle, _ = word.pop(random.randrange(len(word)))
            tree.remove(0, handle)
        elif word and random.random() < 0.4:
            at = random.randrange(len(word))
            word[at] = (word[at][0], random.choice("abc"))
            tree.own[word[at][0]] = letter(strings, labels, word[at][1])
            tree.climb(word[at][0])
        else:
            at, handle = random.randint(0, len(word)), free.pop(random.randrange(len(free)))
            word.insert(at, (handle, random.choice("abc")))
            tree.own[handle] = letter(strings, labels, word[at][1])
            tree.insert(0, word[at - 1][0] if at else NONE, handle)
        text = "".join(one for _, one in word)
        assert tree.below(0) == whole(strings, labels, text)
        assert strings.matches(tree.below(0)) == has_matching(pattern, labels, text)


def test_an_edit_costs_the_logarithm_of_the_string() -> None:
    """F14: nodes of the balanced tree summed again, over three decades of length."""
    costs = []
    for length in (1000, 10_000, 100_000):
        tree = Sequences(max)
        tree.reserve(length + 1)
        tree.build(0, range(1, length + 1))
        before = tree.steps
        for handle in range(1, length + 1, length // 500):
            tree.climb(handle, False)
        costs.append((tree.steps - before) / 500)
    assert costs[1] - costs[0] == pytest.approx(costs[2] - costs[1], rel=0.5)
    assert costs[2] < 45
