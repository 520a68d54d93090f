"""The native text: what parses, to which pattern, and what is refused where.

Law: `parse_pattern(str(p)) == p` for every valid pattern, and `str` of that is the same text.
"""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axlog.query.native import parse_pattern
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Kind,
    Literal,
    Moment,
    Name,
    Not,
    Number,
    Or,
    Output,
    Pattern,
    PatternNode,
    Test,
    TimeConstraint,
    ValueConstraint,
    Variable,
    Wildcard,
)
from axlog.query.time_literals import EARLIEST, LATEST
from tests.amounts import cases
from tests.strategies.patterns import moments, patterns

LATE = (
    'match /management[webstore/orders/order[client/"INRIA"][details/computer]/oid/$x#t1]'
    "[shipping/orders/order/oid/$x#t2] where t2 - t1 >= 50000 return $x"
)
# The native texts of EXAMPLES.md, by its numbers; `$x+` there is `return $x` here.
EXAMPLES = {
    "1": "match /a[b][c]",
    "2": "match /r[p[$x]][q[$y]][w[s]] return $x, $y",
    "3": "match /r[u[$x]][v[$x]][w[$x]][z[$x]]",
    "4": "match /r[b[e]][c]",
    "7": "match /a[b[$x]][$x[$y]] return $x, $y",
    "8": "match /a[b[c]][d]",
    "9": "match /r[//c][d[c]]",
    "9 strict": "match /r[a[$y][k]][z[b[$y]]]",
    "11": "match /r[p[a#t1]][q[d#t2]] where t2 - t1 <= 3",
    "11 deadline": "match /r[a#t] where t <= 100",
    "12": "match /r[a[$x]][not(b[$x])] return $x",
    "12 without joins": "match /r[not(b)]",
    "12 never": "match /r[a][not(a)]",
    "13": LATE,
    "14": "match /a[d[y]][b[c[$x]]] return $x",
    "16": "match /r[s[$x]][m[u]][n[v]] return $x",
    "17": "match /r[a[b[c[$x]]]] return $x",
    "18": "match /a[.//b or not(./c)]/*//d",
    "19": "match /c[following-sibling::c[next-sibling::a][following-sibling::*]][next-sibling::c]",
    "20": "match //a#x//b#y//c#z return x.id, y.id, z.id",
    "20 value": "match //a[val = 5]//b",
    "20 own value": "match //a[. = 5]//b",
    "22": "match /a/b//c#z return z.id, z.cont",
    "23": "match //a#x//b#y return x.id, y.id",
    "23 branch": "match //a#x[//b] return x.id",
    "24": "match //a#x[//c#z]//b#y return x.id, z.id, y.id",
    "24 counts": "match //a#x[//c][//b] return x.id",
}


def child(test: str | Test, *branches: Branch, name: str | None = None) -> PatternNode:
    test = Name(test) if isinstance(test, str) else test
    return PatternNode(Axis.CHILD, test, name, (), branches)


def below(test: str | Test, *branches: Branch, name: str | None = None) -> PatternNode:
    test = Name(test) if isinstance(test, str) else test
    return PatternNode(Axis.DESCENDANT, test, name, (), branches)


def only(text: str) -> Branch:
    """The one branch below `/a` in `match /a[text]`."""
    (root,) = parse_pattern(f"match /a[{text}]").branches
    assert isinstance(root, PatternNode)
    (branch,) = root.branches
    return branch


# The law ------------------------------------------------------------------------------------------

LABELS = ("a", "b-c.d", "{urn:x}a", "or", "match", "not", "text", "é")
WILD = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-(10**12), 10**12, allow_nan=False, places=8).map(Number),
    moments(st.integers(-(10**9), 10**15)),
    moments(st.sampled_from((EARLIEST, LATEST))),
)
TEXTS = ("1", "", 'say "hi"', "it's", "\\", "a\nb", "`]")


@settings(max_examples=cases(250))
@given(
    patterns(
        labels=LABELS,
        texts=TEXTS,
        constants=WILD,
        selves=True,
        siblings=True,
        reverse=True,
        collect=True,
    )
)
def test_printing_and_parsing_are_inverse(pattern: Pattern) -> None:
    text = str(pattern)
    again = parse_pattern(text)
    assert again == pattern
    assert str(again) == text


@settings(max_examples=cases(150))
@given(patterns(max_nodes=12, selves=True, siblings=True, collect=True))
def test_larger_patterns_survive_printing(pattern: Pattern) -> None:
    assert parse_pattern(str(pattern)) == pattern


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_examples_parse_and_print(text: str) -> None:
    pattern = parse_pattern(text)
    assert parse_pattern(str(pattern)) == pattern
    normalise(pattern)


def test_patterns_hold_plain_strings() -> None:
    """No token of the parser, which would drag the whole text along into pickles."""
    texts = ["match /a#t[Q{u}b/$x]['s' and c = 's' and d != $x] where t < 3 return $x as z, t.id"]
    texts += EXAMPLES.values()
    kinds = (str, int, float, Decimal, bool, type(None), Axis, Kind)
    waiting: list[object] = [parse_pattern(text) for text in texts]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, tuple):
            waiting += thing
        elif hasattr(thing, "__slots__") and not isinstance(thing, kinds):
            waiting += [getattr(thing, slot) for slot in thing.__slots__]
        else:
            assert type(thing) in kinds, repr(thing)


# What parses to what ------------------------------------------------------------------------------


def test_the_order_monitor() -> None:
    pattern = parse_pattern(LATE)
    x = Variable("x")
    order = child(
        "order",
        child("client", child(Literal("INRIA"))),
        child("details", child("computer")),
        child("oid", child(x, name="t1")),
    )
    webstore = child("webstore", child("orders", order))
    shipped = child("order", child("oid", child(x, name="t2")))
    shipping = child("shipping", child("orders", shipped))
    assert pattern == Pattern(
        (child("management", webstore, shipping),),
        (TimeConstraint(((1, "t2"), (-1, "t1")), ">=", 50_000_000_000),),
        (Output(Kind.VARIABLE, "x"),),
    )
    assert str(pattern) == LATE.replace("[shipping", "/shipping").replace("#t2]", "#t2")


STEPS = [
    ("b", child("b")),
    ("./b", child("b")),
    ("//b", below("b")),
    (".//b", below("b")),
    ("b/c", child("b", child("c"))),
    ("b//c", child("b", below("c"))),
    ("b[c]/d", child("b", child("c"), child("d"))),
    ("*", child(Wildcard())),
    ("text()", child(AnyText())),
    ("node ( )", child(AnyNode())),
    ('"v"', child(Literal("v"))),
    ("'it''s'", child(Literal("it's"))),
    ('"a\\n"', child(Literal("a\\n"))),
    ("$x", child(Variable("x"))),
    ("b#t", child("b", name="t")),
    ("$x#t/b", child(Variable("x"), child("b"), name="t")),
    ("Q{urn:x}b", child("{urn:x}b")),
    ("Q{}b", child("b")),
    ("xml:id", child("{http://www.w3.org/XML/1998/namespace}id")),
    ("@id", PatternNode(Axis.ATTRIBUTE, Name("id"))),
    ("@*", PatternNode(Axis.ATTRIBUTE, Wildcard())),
    ("attribute::id", PatternNode(Axis.ATTRIBUTE, Name("id"))),
    ("@id/$x", PatternNode(Axis.ATTRIBUTE, Name("id"), branches=(child(Variable("x")),))),
    (
        "//@id",
        PatternNode(
            Axis.DESCENDANT_OR_SELF,
            AnyNode(),
            branches=(PatternNode(Axis.ATTRIBUTE, Name("id")),),
        ),
    ),
    ("collect(b#n)", Collect(child("b", name="n"))),
    ("not(b)", Not((child("b"),))),
    ("not(b and c)", Not((child("b"), child("c")))),
    ("not(b or c)", Not((Or(((child("b"),), (child("c"),))),))),
    ("b or c and d", Or(((child("b"),), (child("c"), child("d"))))),
    ("b or (c or d)", Or(((child("b"),), (Or(((child("c"),), (child("d"),))),)))),
]
STEPS += [
    (f"{axis.value}::b", PatternNode(axis, Name("b")))
    for axis in Axis
    if axis is not Axis.ATTRIBUTE
]


@pytest.mark.parametrize(("text", "branch"), STEPS, ids=[text for text, _ in STEPS])
def test_steps(text: str, branch: Branch) -> None:
    assert only(text) == branch


def test_comparisons_belong_to_the_last_node_of_a_path() -> None:
    compared = PatternNode(
        Axis.CHILD, Name("c"), comparisons=(Comparison("<", Number(Decimal(5))),)
    )
    assert only("b/c < 5") == child("b", compared)
    assert only("b/c[. < 5]") == child("b", compared)


def test_own_comparisons_fold_into_the_node_outside_or_and_not() -> None:
    small = Comparison("<", Number(Decimal(5)))
    large = Comparison(">", Number(Decimal(1)))
    root = PatternNode(Axis.CHILD, Name("a"), comparisons=(small, large), branches=(child("b"),))
    assert parse_pattern("match /a[. < 5][b and (. > 1)]").branches == (root,)
    own = PatternNode(Axis.SELF, AnyNode(), comparisons=(small,))
    assert only(". < 5 or b") == Or(((own,), (child("b"),)))
    assert only("not(b and . < 5)") == Not((child("b"), own))


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ('"v"', "v"),
        ("5", Number(Decimal(5))),
        ("-2.5", Number(Decimal("-2.5"))),
        ("+1e3", Number(Decimal(1000))),
        ("5 as xs:double", 5.0),
        ("$x", Variable("x")),
        ('date "1970-01-02"', Moment(86_400_000_000, "")),
        ("date '1970-01-01T00:00:01.5Z'", Moment(1_500_000, "")),
        ('date "1970-01-01T02:00:00+02:00"', Moment(0, "")),
    ],
)
def test_operands(text: str, operand: object) -> None:
    (root,) = parse_pattern(f"match /a = {text}").branches
    assert isinstance(root, PatternNode)
    assert root.comparisons[0].operand == operand
    assert type(root.comparisons[0].operand) is type(operand)


def test_keywords_are_names_where_a_step_stands() -> None:
    text = "match /match/where[or or and][not/not and not(not)]/return#as return as.id as as"
    inner = child(
        "where",
        Or(((child("or"),), (child("and"),))),
        child("not", child("not")),
        Not((child("not"),)),
        child("return", name="as"),
    )
    outputs = (Output(Kind.ID, "as", "as"),)
    assert parse_pattern(text) == Pattern((child("match", inner),), (), outputs)


def test_several_roots_and_connectives_at_the_root() -> None:
    a, b, c = child("a"), child("b"), below("c")
    assert parse_pattern("match /a, //c").branches == (a, c)
    assert parse_pattern("match /a and //c").branches == (a, c)
    assert parse_pattern("match (/a or /b), not(//c)").branches == (Or(((a,), (b,))), Not((c,)))


def test_the_pattern_survives_line_breaks() -> None:
    spread = LATE.replace("[", "\n  [ ").replace(" ", "\n\t ").replace("/", " / ")
    assert parse_pattern(spread) == parse_pattern(LATE)


DAY = 86_400_000_000
CONSTRAINTS = [
    ("t <= 100", ((1, "t"),), "<=", 100_000_000),
    ("t2 - t >= 50000", ((1, "t2"), (-1, "t")), ">=", 50_000_000_000),
    ("t2-t>=0", ((1, "t2"), (-1, "t")), ">=", 0),
    ("t2 >= t + 5", ((1, "t2"), (-1, "t")), ">=", 5_000_000),
    ("5 <= t2 - t", ((1, "t2"), (-1, "t")), ">=", 5_000_000),
    ("2*t + t2 <= 10", ((2, "t"), (1, "t2")), "<=", 10_000_000),
    ("t + t < 1", ((2, "t"),), "<", 1_000_000),
    ("0.5*t <= 10", ((1, "t"),), "<=", 20_000_000),
    ("2*t <= 4", ((2, "t"),), "<=", 4_000_000),
    ("0.1*t - t2 = 0.2*t", ((-1, "t"), (-10, "t2")), "=", 0),
    ("t < 0.0000005", ((2, "t"),), "<", 1),
    ("t < 1.5s", ((1, "t"),), "<", 1_500_000),
    ("t < 7us", ((1, "t"),), "<", 7),
    ("t < 200ms", ((1, "t"),), "<", 200_000),
    ("t < 5m", ((1, "t"),), "<", 300_000_000),
    ("t < 2h + 1", ((1, "t"),), "<", 7_201_000_000),
    ("t < 3d", ((1, "t"),), "<", 3 * DAY),
    ("t != -2", ((1, "t"),), "!=", -2_000_000),
    ("-t < 2", ((-1, "t"),), "<", 2_000_000),
    ('t < date "1970-01-02" + 1', ((1, "t"),), "<", DAY + 1_000_000),
]


@pytest.mark.parametrize(
    ("text", "terms", "operator", "bound"), CONSTRAINTS, ids=[case[0] for case in CONSTRAINTS]
)
def test_time_constraints(
    text: str, terms: tuple[tuple[int, str], ...], operator: str, bound: int
) -> None:
    pattern = parse_pattern(f"match /a#t/b#t2 where {text}")
    assert pattern.where == (TimeConstraint(terms, operator, bound),)


def test_constraints_are_separated_by_commas_or_and() -> None:
    pattern = parse_pattern(
        "match /a#t[b/$x][c/$y] "
        'where t < 1, $x != $y and 5 < $x, "v" = $y and date "1970-01-01" > $y'
    )
    x, y = Variable("x"), Variable("y")
    assert pattern.where == (
        TimeConstraint(((1, "t"),), "<", 1_000_000),
        ValueConstraint(x, "!=", y),
        ValueConstraint(x, ">", Number(Decimal(5))),
        ValueConstraint(y, "=", "v"),
        ValueConstraint(y, "<", Moment(0, "")),
    )


def test_outputs() -> None:
    pattern = parse_pattern(
        'match /a#t/$x return $x, t.id, t.val as value, t.cont, t.time, t.label as "the label"'
    )
    assert pattern.columns == ("x", "t.id", "value", "t.cont", "t.time", "the label")
    assert [output.kind for output in pattern.outputs] == [
        Kind.VARIABLE,
        Kind.ID,
        Kind.VAL,
        Kind.CONT,
        Kind.TIME,
        Kind.LABEL,
    ]
    assert parse_pattern("match /a").is_boolean


def test_namespaces() -> None:
    namespaces = {"": "urn:default", "p": "urn:p"}
    pattern = parse_pattern("match /a[p:b][@c][@p:d]/Q{}e", namespaces)
    assert [node.test for node in pattern.nodes()] == [
        Name("{urn:default}a"),
        Name("{urn:p}b"),
        Name("c"),
        Name("{urn:p}d"),
        Name("e"),
    ]
    assert str(pattern) == "match /Q{urn:default}a[Q{urn:p}b][@c][@Q{urn:p}d]/e"


def test_parsing_the_same_text_twice_gives_the_same_object() -> None:
    namespaces = {"p": "urn:p"}
    assert parse_pattern("match /p:a", namespaces) is parse_pattern("match /p:a", dict(namespaces))
    assert parse_pattern("match /p:a", namespaces) != parse_pattern("match /p:a", {"p": "urn:q"})


# The canonical text -------------------------------------------------------------------------------

PRINTED = [
    ("match /a[b]/c", "match /a[b]/c"),
    ("match /a[b][c]", "match /a[b]/c"),
    ("match /a[b/c[d]//e]", "match /a/b/c[d]//e"),
    ("match /a[descendant::b]", "match /a//b"),
    ("match /a[b][following-sibling::c]", "match /a[b][following-sibling::c]"),
    ("match /a//@id", "match /a//@id"),
    ("match /a[oid = $x][b > 5][. = 'it''s']", 'match /a[. = "it\'s"][oid = $x][b > 5]'),
    ("match /a[$x[. = 5]][b]", "match /a[$x[. = 5]]/b"),
    ("match /a[b > 1 and b < 5.5]", "match /a[b > 1][b < 5.5]"),
    ("match /a[(b or c) and d]", "match /a[b or c]/d"),
    ("match /a[not((b or c) and . = 1)]", "match /a[not((b or c) and . = 1)]"),
    ("match /a#t where 5m > t", "match /a#t where t < 300"),
    ("match /a#t where t < 0.0015 and t > 7us", "match /a#t where t < 1500us, t > 7us"),
    ("match /a#t where -2*t > -0.5", "match /a#t where -2*t > -0.5"),
    ('match /a < date "2024-05-01T00:00+00:00"', 'match /a < date "2024-05-01"'),
    ('match /a = "say ""hi"""', 'match /a = "say ""hi"""'),
]


@pytest.mark.parametrize(("text", "printed"), PRINTED, ids=[text for text, _ in PRINTED])
def test_canonical_text(text: str, printed: str) -> None:
    assert str(parse_pattern(text)) == printed


def test_parts_print_too() -> None:
    text = "match /a#t[b = 1 or not(c)][collect(d#n)] where t < 5 return t.id as i"
    pattern = parse_pattern(text)
    (root,) = pattern.branches
    assert isinstance(root, PatternNode)
    assert [str(branch) for branch in root.branches] == ["b = 1 or not(c)", "collect(d#n)"]
    assert str(pattern.where[0]) == "t < 5"
    assert str(pattern.outputs[0]) == "t.id as i"
    assert str(Comparison(">=", Number(Decimal("2.50")))) == ">= 2.5"
    assert str(Comparison(">=", 2.5)) == ">= 2.5 as xs:double"
