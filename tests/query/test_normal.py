"""Validity and the normal form: scopes of names and variables, homes of constraints.

Laws: `normalise` is idempotent; after it a variable that two alternatives of an `or` share is bound
by all of them or occurs around the `or`, and a constraint of the query names nothing inside a
`not`; what is surely bound is bound in every expansion of the ors (the definition, by brute force).
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings

from axlog.errors import QueryError, UnsupportedError
from axlog.query.native import parse_pattern
from axlog.query.normalize import (
    bound_names,
    bound_variables,
    check,
    exported_names,
    exported_variables,
    names_of,
    normalise,
    variables_of,
)
from axlog.query.pattern import (
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Constraint,
    Kind,
    Literal,
    Moment,
    Name,
    Not,
    Number,
    Or,
    Pattern,
    PatternNode,
    Test,
    TimeConstraint,
    ValueConstraint,
    Variable,
    branches_of,
)
from tests.amounts import cases
from tests.strategies.patterns import patterns

A = PatternNode(Axis.CHILD, Name("a"))
X = PatternNode(Axis.CHILD, Variable("x"))


def branch(text: str) -> Branch:
    """The branch in `match /a[text]`."""
    (root,) = parse_pattern(f"match /a[{text}]").branches
    assert isinstance(root, PatternNode)
    (below,) = root.branches
    return below


def choice(text: str) -> Or:
    found = branch(text)
    assert isinstance(found, Or)
    return found


def words_of(constraint: Constraint) -> set[str]:
    if isinstance(constraint, TimeConstraint):
        return {f"#{name}" for _, name in constraint.terms}
    operands = (constraint.left, constraint.right)
    return {f"${operand.name}" for operand in operands if isinstance(operand, Variable)}


# What branches bind -------------------------------------------------------------------------------


def test_all_variables_and_names() -> None:
    found = branch("b#t[c = $x][not(d#u/$y)][e != $z or f][g/$z]")
    assert variables_of(found) == {"x", "y", "z"}
    assert names_of(found) == {"t", "u"}


def test_what_a_conjunction_surely_binds() -> None:
    found = branch("b#t[c = $x][not(d#u/$x)][e/$y#v or f[g/$y]/h#v][not(i#w/$v)]")
    assert bound_variables((found,)) == {"x", "y"}
    assert bound_names((found,)) == {"t", "v"}


def test_what_an_or_exports() -> None:
    either = choice("b#t/$x or c[d/$x or e/$x]/f#t or g#t[h = $x][i#u/$y]")
    assert exported_variables(either) == {"x"}
    assert exported_names(either) == {"t"}


def test_a_comparison_other_than_equality_binds_nothing() -> None:
    root = parse_pattern("match /a[b != $x][c < $x]/d = $x").branches
    (a,) = root
    assert isinstance(a, PatternNode)
    assert bound_variables(a.branches[:2]) == frozenset()
    assert bound_variables(root) == {"x"}


def expansions(branches: Sequence[Branch]) -> Iterator[list[PatternNode]]:
    """The positive nodes of a conjunction, for every choice of one alternative of each or."""
    if not branches:
        yield []
        return
    first, *rest = branches
    for others in expansions(rest):
        match first:
            case PatternNode():
                yield from ([first, *below, *others] for below in expansions(first.branches))
            case Or(alternatives=alternatives):
                for inside in alternatives:
                    yield from ([*below, *others] for below in expansions(inside))
            case _:
                yield others


def binds(node: PatternNode, variable: Variable) -> bool:
    return node.test == variable or Comparison("=", variable) in node.comparisons


@settings(max_examples=cases(150))
@given(patterns(collect=True))
def test_oracle_surely_bound_is_bound_in_every_expansion(pattern: Pattern) -> None:
    ways = list(expansions(pattern.branches))
    for name in ("x", "y"):
        everywhere = all(any(binds(node, Variable(name)) for node in way) for way in ways)
        assert (name in bound_variables(pattern.branches)) == everywhere
    names = set.intersection(*({node.name for node in way if node.name} for way in ways))
    assert bound_names(pattern.branches) == names


# Validity -----------------------------------------------------------------------------------------

VALID = [
    "match /a[b#t or c#t] return t.id",
    "match /a[b#t or (c#t or d#t) and e] where t < 5 return t.id",
    "match /a[b/$x or c = $x] return $x",
    "match /a[b/$x or c][d/$x] return $x",
    "match /a[b/$x or c]",
    "match /a[b/$x and c/$x or d/$x]",
    "match /a[b/$x or c/$x or d]",
    "match /a[b = $x][c != $x][not(d < $x)] return $x",
    "match /a[not(b/$x and c/$x)]",
    "match /a[not(b/$x and not(c/$x))]",
    "match /a[not(b/$x and not(c/$x) and not(d/$x))]",
    "match /a#t[not(b#u)] where u - t < 5",
    "match /a#t[not(b#u and not(c#v))] where v - u < t",
    "match /a[b#u[not(c#v)] or d] where v > u",
    "match /a[b/$x][not(c/$y)] where $x < $y return $x",
    "match /a[collect(b#n/c#m)] return n.id, m.val",
    "match /a/$x[collect(b#n = $x)] return n.id, $x",
    "match /a[collect(b#n[c/$x or not(d)][e/$x])] return n.id",
    "match /a#t/$t return $t, t.id, t.val as u",
]
INVALID = [
    ("match /a#t[b#t]", "AX202"),
    ("match /a#t[not(b#t)]", "AX202"),
    ("match /a[not(b#t)][not(c#t)]", "AX202"),
    ("match /a#t[b#t or c#t]", "AX202"),
    ("match /a[b#t or c#t or d]", "AX202"),
    ("match /a[b#t[c#t] or d#t]", "AX202"),
    ("match /a[b#t or not(c#t)]", "AX202"),
    ("match /a[collect(b#t)]/c#t", "AX202"),
    ("match /a#t return t.id, t.id", "AX202"),
    ('match /a#t return t.val, t.id as "t.val"', "AX202"),
    ("match /a where t < 5", "AX203"),
    ("match /a[b/$x] where $x < $y", "AX203"),
    ("match /a return t.time", "AX203"),
    ("match /a[b > $x]", "AX204"),
    ("match /a[b > $x][c != $x]", "AX204"),
    ("match /a[b/$x or c][d/$x or e]", "AX204"),
    ("match /a[b/$x or c][not(d/$x)]", "AX204"),
    ("match /a[b/$x or c][d != $x]", "AX204"),
    ("match /a[not(b/$x)][c != $x]", "AX204"),
    ("match /a[not(b/$x)][not(c/$x)]", "AX204"),
    ("match /a[not(not(b/$x) and not(c/$x))]", "AX204"),
    ("match /a[not(b != $x)]", "AX204"),
    ("match /a[b or c != $x]", "AX204"),
    ("match /a[b/$x or c/$x or d] where $x = 5", "AX204"),
    ("match /a[b/$x or c] where $x = 5", "AX204"),
    ("match /a[not(b/$x) or not(c/$x)] where $x = 5", "AX204"),
    ("match /a[b#t or c] where t < 5", "AX204"),
    ("match /a[collect(b#t)] where t < 5", "AX204"),
    ("match /a[collect(b/$x)] return $x", "AX204"),
    ("match /a[collect(b/$x)] where $x = 5", "AX204"),
    ("match /a[collect(b[c#t or d])] return t.id", "AX204"),
    ("match /a[not(b#t)][not(c#u)] where t < u", "AX204"),
    ("match /a[not(b/$x)][not(c/$y)] where $x < $y", "AX204"),
    ("match /a[b#t or not(c#u)] where t < u", "AX204"),
    ("match /a[not(b#t)] return t.id", "AX205"),
    ("match /a[not(b[c#t or d#t])] return t.id", "AX205"),
    ("match /a[not(b/$x)] return $x", "AX205"),
    ("match /a[b or not(c/$x)] return $x", "AX205"),
    ("match /a[collect(b[not(c#t)])] return t.id", "AX205"),
    ("match /a[collect(b[collect(c)])]", "AX211"),
    ("match /a[not(b[collect(c)])]", "AX211"),
]


@pytest.mark.parametrize("text", VALID)
def test_valid(text: str) -> None:
    normal = normalise(parse_pattern(text))
    assert normalise(normal) == normal


@pytest.mark.parametrize(("text", "code"), INVALID)
def test_invalid(text: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_pattern(text)
    assert caught.value.code == code
    assert caught.value.place is not None


def within(constraint: Constraint, *, below: Branch = A) -> Pattern:
    return Pattern((PatternNode(Axis.CHILD, Name("a"), "t"), Not((below,), (constraint,))))


def compared(value: float | Moment) -> Pattern:
    return Pattern((PatternNode(Axis.CHILD, Name("a"), comparisons=(Comparison("<", value),)),))


def attribute(test: Test) -> Pattern:
    return Pattern(
        (PatternNode(Axis.CHILD, Name("a"), None, (), (PatternNode(Axis.ATTRIBUTE, test),)),)
    )


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        (Pattern(()), "AX201"),
        (Pattern((Or(((A,), ())),)), "AX201"),
        (Pattern((Not(()),)), "AX201"),
        (Pattern((A,), (TimeConstraint((), "<", 0),)), "AX201"),
        (within(TimeConstraint(((1, "t"), (1, "t")), "<", 0)), "AX201"),
        (within(TimeConstraint(((0, "t"),), "<", 0)), "AX201"),
        (within(TimeConstraint(((1, "t"),), "<", 0)), "AX204"),
        (within(TimeConstraint(((1, "u"),), "<", 0)), "AX203"),
        (compared(float("nan")), "AX207"),
        (compared(float("-inf")), "AX207"),
        (compared(Moment(10**20, "the far future")), "AX207"),
        (attribute(Variable("x")), "AX211"),
        (attribute(Literal("v")), "AX211"),
        (attribute(AnyText()), "AX211"),
        (Pattern((Or(((Collect(A),), (A,))),)), "AX211"),
    ],
)
def test_patterns_that_no_text_writes(pattern: Pattern, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        check(pattern)
    assert caught.value.code == code
    assert (code == "AX211") == isinstance(caught.value, UnsupportedError)


def test_nesting_is_limited_for_patterns_of_every_language() -> None:
    node = A
    for _ in range(10_000):
        node = PatternNode(Axis.CHILD, Name("a"), branches=(node,))
    with pytest.raises(QueryError) as caught:
        check(Pattern((node,)))
    assert caught.value.code == "AX213"


# The normal form ----------------------------------------------------------------------------------


def test_a_normal_pattern_is_left_alone() -> None:
    pattern = parse_pattern("match /a#t[b/$x or c/$x][not(d/$y and e/$y)] where t < 5 return $x")
    assert normalise(pattern) is pattern


def test_constraints_move_into_their_not() -> None:
    pattern = parse_pattern(
        "match /a#t[not(b#u/$y and not(c#v))][d/$x] where t < 5, u < t, v < u, $x < $y, $x != 3"
    )
    normal = normalise(pattern)
    late, value = TimeConstraint(((1, "t"),), "<", 5_000_000), Variable("x")
    assert normal.where == (late, ValueConstraint(value, "!=", Number(Decimal(3))))
    (root,) = normal.branches
    assert isinstance(root, PatternNode)
    outer = root.branches[0]
    assert isinstance(outer, Not)
    inner = outer.branches[1]
    assert isinstance(inner, Not)
    assert outer.where == (
        TimeConstraint(((1, "u"), (-1, "t")), "<", 0),
        ValueConstraint(value, "<", Variable("y")),
    )
    assert inner.where == (TimeConstraint(((1, "v"), (-1, "u")), "<", 0),)
    assert sorted(str(normal).split(" where ")[1].split(", ")) == sorted(
        str(pattern).split(" where ")[1].split(", ")
    )


def test_variables_of_several_alternatives_are_renamed_apart() -> None:
    pattern = parse_pattern("match /a[b/$x and c != $x or not(d/$x) or e/$y or f]")
    either = choice("b/$p and c != $p or not(d/$q) or e/$y or f")
    root = PatternNode(Axis.CHILD, Name("a"), branches=(either,))
    expected = str(Pattern((root,))).replace("$p", "$x~1").replace("$q", "$x~2")
    assert str(normalise(pattern)) == expected


def test_renaming_reaches_into_collect_and_inner_alternatives() -> None:
    pattern = parse_pattern("match /a[collect(b#n[(c/$x or d/$x) or e/$x or f])] return n.id")
    assert str(normalise(pattern)) == (
        "match /a[collect(b#n[(c/$x~1 or d/$x~1) or e/$x~2 or f])] return n.id"
    )


def test_fresh_variables_are_fresh() -> None:
    both = Or(((X,), (X,), (A,)))
    taken = PatternNode(Axis.CHILD, Variable("x~1"))
    renamed, beside = normalise(Pattern((both, taken))).branches
    assert isinstance(renamed, Or)
    found = [variables_of(inside[0]) for inside in renamed.alternatives[:2]]
    assert found == [{"x~2"}, {"x~3"}]
    assert beside == taken


def test_a_constraint_already_inside_follows_the_renaming() -> None:
    differs = ValueConstraint(Variable("x"), "!=", "v")
    either = Or(((Not((X,), (differs,)),), (X,), (A,)))
    normal = normalise(Pattern((either,)))
    assert isinstance(normal.branches[0], Or)
    (inside,) = normal.branches[0].alternatives[0]
    renamed = Variable("x~1")
    node = PatternNode(Axis.CHILD, renamed)
    assert inside == Not((node,), (ValueConstraint(renamed, "!=", "v"),))


@settings(max_examples=cases(150))
@given(patterns(variables=("x", "y", "z"), max_nodes=9, collect=True))
def test_normalising_is_idempotent_and_keeps_the_nodes(pattern: Pattern) -> None:
    normal = normalise(pattern)
    assert normalise(normal) == normal
    assert normal.outputs == pattern.outputs
    before, after = list(pattern.nodes()), list(normal.nodes())
    assert [(node.axis, node.name) for node in before] == [(node.axis, node.name) for node in after]
    if "~" not in str(normal):
        assert normalise(parse_pattern(str(normal))) == normal


@settings(max_examples=cases(150))
@given(patterns(variables=("x", "y", "z"), max_nodes=9, collect=True))
def test_oracle_every_variable_has_one_home(pattern: Pattern) -> None:
    normal = normalise(pattern)
    for either, around in ors_with_surroundings(normal):
        inside = [set().union(*map(variables_of, branches)) for branches in either.alternatives]
        shared = {v for one, other in pairs(inside) for v in one & other}
        assert shared <= exported_variables(either) | around
    visible = {f"#{name}" for name in bound_names(normal.branches)}
    visible |= {f"${variable}" for variable in bound_variables(normal.branches)}
    assert all(words_of(constraint) <= visible for constraint in normal.where)
    for inside_not in nots(normal.branches):
        for constraint in inside_not.where:
            local = {f"#{name}" for name in bound_names(inside_not.branches)}
            local |= {f"${variable}" for variable in bound_variables(inside_not.branches)}
            assert words_of(constraint) & local


def ors_with_surroundings(pattern: Pattern) -> Iterator[tuple[Or, set[str]]]:
    """Every or, with the variables that occur in the pattern outside it."""
    waiting: list[tuple[Branch, set[str]]] = []

    def push(branches: Sequence[Branch], around: set[str]) -> None:
        for index, one in enumerate(branches):
            others = [*branches[:index], *branches[index + 1 :]]
            waiting.append((one, around.union(*map(variables_of, others))))

    push(pattern.branches, {o.of for o in pattern.outputs if o.kind is Kind.VARIABLE})
    while waiting:
        found, around = waiting.pop()
        if isinstance(found, Or):
            yield found, around
            for index, inside in enumerate(found.alternatives):
                rest = [b for i, alt in enumerate(found.alternatives) if i != index for b in alt]
                push(inside, around.union(*map(variables_of, rest)))
        elif isinstance(found, PatternNode):
            alone = PatternNode(found.axis, found.test, comparisons=found.comparisons)
            push(found.branches, around | variables_of(alone))
        else:
            push(list(branches_of(found)), around)


def pairs(sets: Sequence[set[str]]) -> Iterator[tuple[set[str], set[str]]]:
    for (i, one), (j, other) in product(enumerate(sets), enumerate(sets)):
        if i < j:
            yield one, other


def nots(branches: Sequence[Branch]) -> Iterator[Not]:
    for found in branches:
        if isinstance(found, Not):
            yield found
        yield from nots(list(branches_of(found)))
