"""Time constraints and unknown strings: decided exactly, checked by trying all small values."""

from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axlog.errors import UndecidedError
from axlog.evaluate.value_tests import comparison
from axlog.future import linear
from axlog.future.time_constraints import (
    CLOCK,
    Inequality,
    TimeSystem,
    deadline,
    inequalities,
    not_before,
)
from axlog.future.unknowns import ValueNeeds, is_consistent
from axlog.query.pattern import Comparison, Number, TimeConstraint

NAMES = ("t", "u", "v")
RANGE = range(-4, 5)

# Times --------------------------------------------------------------------------------------------


def systems_of(factors: tuple[int, ...], most: int) -> st.SearchStrategy[list[Inequality]]:
    terms = st.lists(
        st.tuples(st.sampled_from(factors), st.sampled_from(NAMES)),
        min_size=1,
        max_size=most,
        unique_by=lambda term: term[1],
    )
    one = st.builds(lambda t, b: Inequality(tuple(sorted(t)), b), terms, st.integers(-9, 9))
    return st.lists(one, max_size=5)


systems = systems_of((-1, 1), 2) | systems_of((-5, -3, -2, -1, 1, 2, 3, 7), 3)
# every unknown stays in the range, so that trying all of it decides
BOUNDS = [Inequality(((sign, name),), 4) for name in NAMES for sign in (-1, 1)]


def solutions(system: list[Inequality]) -> list[dict[str, int]]:
    found = []
    for values in product(RANGE, repeat=len(NAMES)):
        at = dict(zip(NAMES, values, strict=True))
        if all(sum(c * at[name] for c, name in each.terms) <= each.bound for each in system):
            found.append(at)
    return found


@given(systems)
def test_oracle_a_system_is_satisfiable_iff_some_integers_are_a_solution(
    system: list[Inequality],
) -> None:
    bounded = [*system, *BOUNDS]
    assert TimeSystem(bounded).is_satisfiable == bool(solutions(bounded))


@given(systems)
def test_oracle_the_latest_value_is_the_largest_of_all_solutions(system: list[Inequality]) -> None:
    bounded = [*system, *BOUNDS]
    found = solutions(bounded)
    if found:
        closed = TimeSystem(bounded)
        for name in NAMES:
            assert closed.latest(name) == max(at[name] for at in found)


@given(systems)
def test_oracle_the_deadline_is_the_latest_clock_before_all_unknowns(
    system: list[Inequality],
) -> None:
    bounded = [*system, *BOUNDS]
    found = solutions(bounded)
    if found:
        assert deadline(bounded, NAMES) == max(min(at.values()) for at in found)


def test_integers_are_tighter_than_reals() -> None:
    """t + u <= 1 and t = u: t <= 1/2, so t <= 0 over the integers."""
    system = [
        Inequality(((1, "t"), (1, "u")), 1),
        Inequality(((-1, "u"), (1, "t")), 0),
        Inequality(((-1, "t"), (1, "u")), 0),
    ]
    assert TimeSystem(system).latest("t") == 0
    assert not TimeSystem([*system, not_before("t", 1)]).is_satisfiable


def test_without_a_bound_there_is_no_deadline() -> None:
    assert deadline([not_before("t", 5)], ["t"]) is None
    assert deadline([], []) is None
    assert TimeSystem([]).latest(CLOCK) is None


def test_equalities_without_a_coefficient_of_one() -> None:
    """7t + 12u = 1 has solutions, all far from zero or of both signs; 6t + 4u = 1 has none."""
    equal = [(((7, "t"), (12, "u")), 1), (((-7, "t"), (-12, "u")), -1)]
    system = [Inequality(terms, bound) for terms, bound in equal]
    assert TimeSystem(system).is_satisfiable
    assert TimeSystem(system).latest("t") is None
    assert not TimeSystem([*system, not_before("t", 0), not_before("u", 0)]).is_satisfiable
    bounded = TimeSystem([*system, Inequality(((1, "t"),), 10)])
    assert bounded.latest("t") == 7
    even = [Inequality(((6, "t"), (4, "u")), 1), Inequality(((-6, "t"), (-4, "u")), -1)]
    assert not TimeSystem(even).is_satisfiable


def test_times_of_distant_dates_are_not_rounded() -> None:
    """t + u <= 2c + 1 and t = u: t <= c, where c is too large for a float."""
    c = 253_402_300_799_999_999  # the end of the year 9999, in microseconds
    system = [
        Inequality(((1, "t"), (1, "u")), 2 * c + 1),
        Inequality(((-1, "u"), (1, "t")), 0),
        Inequality(((-1, "t"), (1, "u")), 0),
        not_before("v", 0),
        Inequality(((-1, "t"), (1, "v")), -1),
    ]
    assert TimeSystem(system).latest("t") == c
    assert TimeSystem(system).latest("v") == c - 1
    assert not TimeSystem([*system, not_before("t", c + 1)]).is_satisfiable


def test_a_question_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    system = [Inequality(((7, "t"), (12, "u")), 1), Inequality(((-7, "t"), (-12, "u")), -1)]
    assert TimeSystem(system).is_satisfiable
    monkeypatch.setattr(linear, "LIMIT", 3)
    with pytest.raises(UndecidedError) as raised:
        TimeSystem(system)
    assert raised.value.code == "AX502"


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.sampled_from(NAMES)),
        min_size=1,
        max_size=3,
        unique_by=lambda term: term[1],
    ),
    st.sampled_from(("<", "<=", ">", ">=", "=", "!=")),
    st.integers(-3, 3),
    st.dictionaries(st.sampled_from(NAMES), st.integers(-3, 3), max_size=2),
)
def test_oracle_inequalities_say_what_the_constraint_says(
    given_terms: list[tuple[int, str]], operator: str, bound: int, known: dict[str, int]
) -> None:
    constraint = TimeConstraint(tuple(given_terms), operator, bound)
    found = inequalities(constraint, known)
    if found is None:
        assert operator == "!="
        return
    for values in product(range(-3, 4), repeat=len(NAMES)):
        at = {**dict(zip(NAMES, values, strict=True)), **known}
        left = sum(c * at[name] for c, name in given_terms)
        wanted = {
            "<": left < bound, "<=": left <= bound, ">": left > bound,
            ">=": left >= bound, "=": left == bound, "!=": left != bound,
        }[operator]  # fmt: skip
        if isinstance(found, bool):
            assert found == wanted
        else:
            holds = [sum(c * at[n] for c, n in each.terms) <= each.bound for each in found]
            assert all(holds) == wanted


# Strings ------------------------------------------------------------------------------------------

STRINGS = [
    "", "\t", "!", "a", "a\t", "a!", "b", "b\t", "b\t\t", "c", "~",
    "1", "1.5", "2", "02", "3", "-7",
]  # fmt: skip
operators = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
texts = st.builds(Comparison, operators, st.sampled_from(("a", "b", "b\t")))
numbers = st.builds(Comparison, operators, st.sampled_from((1.0, 2.0)))


def passes(text: str, comparisons: list[Comparison]) -> bool:
    return all(comparison(c.operator, c.operand)(text) for c in comparisons)  # type: ignore[arg-type]


@given(st.lists(texts, max_size=4))
def test_oracle_strings_lie_in_an_interval_or_not(comparisons: list[Comparison]) -> None:
    assert is_consistent(comparisons) == any(passes(s, comparisons) for s in STRINGS)


@given(st.lists(numbers, max_size=4))
def test_oracle_numbers_lie_in_an_interval_or_not(comparisons: list[Comparison]) -> None:
    assert is_consistent(comparisons) == any(passes(s, comparisons) for s in STRINGS)


@pytest.mark.parametrize(
    ("comparisons", "expected"),
    [
        ([("<", "5")], False),  # no name starts before A
        ([(">=", "b"), ("<", "c")], True),
        ([("=", "1")], False),
        ([("=", "order")], True),
        ([(">", Number(Decimal(5)))], False),
        ([("!=", Number(Decimal(5)))], True),
        ([(">", 5.0)], True),  # INF is a name, and a double
        ([("<", 5.0)], False),
        ([("!=", "A"), ("<=", "B")], True),
    ],
)
def test_a_name_to_come_is_a_name(
    comparisons: list[tuple[str, str | float]], expected: bool
) -> None:
    needs = ValueNeeds(
        frozenset(("$x", Comparison(o, v)) for o, v in comparisons), names=frozenset({"$x"})
    )
    assert needs.is_satisfiable({"$x": None}) is expected


def test_equal_unknowns_share_what_is_known_of_them() -> None:
    same = ValueNeeds(same=frozenset({("$x", "$y"), ("$y", "$z")}))
    assert same.is_satisfiable({"$x": "1", "$z": "1"})
    assert not same.is_satisfiable({"$x": "1", "$z": "2"})
    compared = frozenset({("$x", Comparison("<", "b")), ("$z", Comparison(">", "c"))})
    assert not same.joined(ValueNeeds(compared)).is_satisfiable({})
    assert not same.joined(ValueNeeds(different=frozenset({("$x", "$z")}))).is_satisfiable({})


def test_known_values_are_put_into_needs() -> None:
    needs = ValueNeeds(
        different=frozenset({("$x", "$y")}), names=frozenset({"$x"}), same=frozenset({("$y", "$z")})
    )
    assert needs.settled({"$x": "7"}) is None  # no element is called 7
    settled = needs.settled({"$x": "a"})
    assert settled is not None
    assert not settled.is_satisfiable({"$z": "a"})
    assert settled.is_satisfiable({"$z": "b"})
