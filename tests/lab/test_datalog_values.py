"""What facts carry: the three values against brute force, semirings, and rules that are refused.

With function rules, the greatest value of a row of q is the truth that enumerating futures gives
(P1 theorem 1), for patterns without `not`, joins and constraints; the others are refused.
"""

from collections import Counter
from itertools import product
from random import Random

import pytest

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.errors import UndecidedError, UnsupportedError
from axlog.query.atoms import NODE, Atom, Rule, Rules, Unknown
from axlog.query.compile import compile_pattern
from axlog.query.native import parse_pattern
from axlog.query.pattern import AnyText, Literal, Pattern
from axlog.query.rules import rules_of
from axlog.query.truth import Truth
from lab.datalog.annotations import BOOLEANS, INTEGERS, TRUTHS
from lab.datalog.evaluate import evaluate
from lab.datalog.functions import with_functions
from lab.datalog.magic import folded, magic
from lab.laws import small_cases
from lab.reference import Bound, bound_of, truth
from tests.amounts import cases
from tests.papers import document


def program_of(query: str) -> Rules:
    return rules_of(compile_pattern(parse_pattern(query)))


# Three values -------------------------------------------------------------------------------------


def truth_by_program(rules: Rules, tree: Tree) -> Truth:
    return max(evaluate(rules, tree, TRUTHS).values(), default=Truth.NEVER)


EXAMPLE_2 = "match /r[p/$x][q/$y]/w/s return $x, $y"


@pytest.mark.parametrize(
    ("query", "notation", "wanted"),
    [
        ("match /a[b][c]", "a[b, c]", Truth.TRUE),
        ("match /a[b][c]", "a[b]", Truth.NEVER),
        ("match /a[b][c]", "a[b, ?f1]", Truth.POSSIBLE),
        (EXAMPLE_2, "r[p[b], q[c], w[s]]", Truth.TRUE),
        (EXAMPLE_2, "r[p[b], q[?f], w[s]]", Truth.POSSIBLE),
        (EXAMPLE_2, "r[p[b], q[c], w[?f]]", Truth.POSSIBLE),
        ("match /r[b/e][c]", "r[b[e, ?g], b[?f], d[?h2], ?h]", Truth.POSSIBLE),
        ("match /r[b/e][c]", "r[b[e, ?g], b[?f], d[?h2]]", Truth.NEVER),
        ("match /a[b/c][d]", "a[b[c, ?f], ?g, e[?h]]", Truth.POSSIBLE),
        ("match /a[b/c][d]", "a[b[c, ?f], e[?h]]", Truth.NEVER),
        ('match /a/"x"', "a[?f]", Truth.NEVER),
        ('match /a//"x"', "a[?f]", Truth.POSSIBLE),
        ("match /a/@k", "a[?f]", Truth.NEVER),
        ("match //b[@k or c]", "a[?f]", Truth.POSSIBLE),
        ("match /a/b", "a[?f{deletes=only}]", Truth.NEVER),
        ("match /a/b", "a[?f{most=0}]", Truth.NEVER),
    ],
)
def test_oracle_three_values_of_examples_1_2_4_8(query: str, notation: str, wanted: Truth) -> None:
    tree, pattern = document(notation), parse_pattern(query)
    rules = with_functions(program_of(query))
    assert truth_by_program(rules, tree) is wanted
    assert truth_by_program(magic(rules), tree) is wanted
    assert truth(tree, pattern, bound_of(tree, pattern, 1, 3)) is wanted


def test_example_2_rows_with_unknowns() -> None:
    unknown = Unknown()
    rules = with_functions(program_of(EXAMPLE_2))
    true, possible = Truth.TRUE, Truth.POSSIBLE
    for notation, wanted in (
        ("r[p[b], q[c], w[s]]", {("b", "c"): true}),
        ("r[p[b], q[?f], w[s]]", {("b", unknown): possible}),
        ("r[p[b], q[c], w[?f]]", {("b", "c"): possible}),
        ("r[p[b, ?f], q[c], w[s]]", {("b", "c"): true, (unknown, "c"): possible}),
    ):
        assert evaluate(rules, document(notation), TRUTHS) == wanted
        assert evaluate(magic(rules), document(notation), TRUTHS) == wanted


def test_function_rules_are_p2s() -> None:
    added = with_functions(program_of("match /a[b/$x]/*/$y return $x, $y"))[6:]
    assert [str(rule) for rule in added] == [
        "R_p2(n, ?) <- function(n)",
        "R_p4(n, ?) <- function(n)",
        "R_p3(n, ?) <- function(n)",
        "R_p5(n, ?) <- function(n)",
    ]
    # No call brings an attribute to an element that is there, nor a text beside itself.
    added = with_functions(program_of('match /a[@k]["x"]/b'))[5:]
    assert [str(rule) for rule in added] == ["R_p4(n) <- function(n)"]


SIMPLE = small_cases.Features(times=False, values=False, collects=False, size=3)


def largest(pattern: Pattern) -> int:
    """How many nodes a call must bring at most: a text comes inside an element."""
    tests = [node.test for node in pattern.nodes()]
    return len(tests) + any(isinstance(test, Literal | AnyText) for test in tests)


MOST_TREES = 1_000
"""Upper estimate of the trees a call may bring; the oracle takes minutes for larger cases."""


def is_small(bound: Bound) -> bool:
    """Whether the oracle can enumerate everything that a call may bring."""
    alphabet = bound.alphabet
    texts = len(alphabet.texts)
    kinds = len(alphabet.elements) + texts + texts * len(alphabet.attributes)
    return bool(kinds**bound.nodes_per_tree <= MOST_TREES)


def test_oracle_three_values() -> None:
    seen: Counter = Counter()
    for seed in range(cases(200)):
        random = Random(seed)
        pattern = small_cases.pattern(random, SIMPLE)
        tree = load(small_cases.document(random, random.randint(2, 8), random.randint(1, 2)))
        try:
            rules = with_functions(rules_of(compile_pattern(pattern)))
        except (UndecidedError, UnsupportedError) as refused:
            if refused.code not in ("AX211", "AX503"):
                raise
            seen["refused"] += 1
            continue
        bound = bound_of(tree, pattern, 1, largest(pattern))
        if not is_small(bound):
            seen["too large"] += 1
            continue
        wanted = truth(tree, pattern, bound)
        assert truth_by_program(rules, tree) is wanted, (seed, str(pattern))
        assert truth_by_program(magic(rules), tree) is wanted, (seed, str(pattern))
        # Calls bring nothing yet: to counts the rules for them make no difference.
        plain = rules_of(compile_pattern(pattern))
        assert evaluate(rules, tree, INTEGERS) == evaluate(plain, tree, INTEGERS)
        seen[wanted] += 1
    assert min(seen[each] for each in Truth) > cases(5), seen


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("match /a[not(b)]", "not(...)"),
        ("match /a[b/$x]/c/$x", "joins"),
        ("match /a[b#t] where t > 1", "constraints"),
        ("match /a[b > 1]", "constraints"),
        ("match /a[b = $x] return $x", "tests of values"),
        ("match /a/$x/self::b", "a test on the axis self"),
        ('match /a[@k/"x"][@k/"y"]', "a pattern below an attribute or a text"),
        ("match /a/comment()", "comments"),
    ],
)
def test_three_values_refuse_what_they_do_not_decide(query: str, reason: str) -> None:
    with pytest.raises(UndecidedError) as caught:
        with_functions(program_of(query))
    assert caught.value.code == "AX503"
    assert reason in caught.value.message


# Annotations and rules ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "values"),
    [(INTEGERS, range(4)), (BOOLEANS, (False, True)), (TRUTHS, tuple(Truth))],
)
def test_annotations_are_commutative_semirings(annotation, values) -> None:
    plus, times = annotation.plus, annotation.times
    zero, one = annotation.zero, annotation.one
    for a, b, c in product(values, repeat=3):
        assert plus(a, b) == plus(b, a)
        assert times(a, b) == times(b, a)
        assert plus(a, plus(b, c)) == plus(plus(a, b), c)
        assert times(a, times(b, c)) == times(times(a, b), c)
        assert times(a, plus(b, c)) == plus(times(a, b), times(a, c))
        assert (plus(a, zero), times(a, one), times(a, zero)) == (a, a, zero)
        assert annotation.once(annotation.once(a)) == annotation.once(a)
    assert (annotation.complement(zero), annotation.complement(one)) == (one, zero)


def test_recursive_rules_are_refused() -> None:
    first, second = (Atom(f"R_{name}", (NODE,)) for name in "ab")
    rules = (Rule(first, (second,)), Rule(second, (first,)), Rule(Atom("q", ()), (first,)))
    with pytest.raises(UnsupportedError) as caught:
        evaluate(rules, document("a"), INTEGERS)
    assert caught.value.code == "AX211"
    assert "recursive" in caught.value.message


def test_a_relation_that_nothing_defines_is_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        evaluate((Rule(Atom("q", ()), (Atom("edge", (NODE,)),)),), document("a"), INTEGERS)
    assert "edge" in caught.value.message


def test_deep_patterns_do_not_exhaust_the_stack() -> None:
    depth = 150
    query = "match /" + "/".join("a" * depth)
    tree = load("<a>" * depth + "</a>" * depth)
    for rules in (program_of(query), magic(program_of(query)), folded(magic(program_of(query)))):
        assert evaluate(rules, tree, INTEGERS) == {(): 1}
