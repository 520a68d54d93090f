"""The datalog program of a pattern: the papers' programs as golden texts, and laws.

- Programs are compared as printed, up to the order of body atoms and the names of variables: the
  papers write t, t', t'' for the times of one rule where ours keep the query's t1, t2.
- Under integers a program counts what the reference counts; MagicSet, in any order of the branches,
  changes nothing.
"""

import re
from collections import Counter
from random import Random

import pytest

from axlog.document.loader import load
from axlog.document.pending import apply
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import AxlogError, QueryError, UnsupportedError
from axlog.query.atoms import Rules
from axlog.query.compile import Program, compile_pattern
from axlog.query.native import parse_pattern
from axlog.query.pattern import Kind, Pattern, nodes_of
from axlog.query.rules import explain_program, output_columns, rules_of
from lab.datalog.annotations import BOOLEANS, INTEGERS
from lab.datalog.evaluate import Evaluation, evaluate
from lab.datalog.magic import folded, magic
from lab.laws import small_cases
from lab.reference import rows
from tests.accepted_errors import accept
from tests.amounts import cases, chunks
from tests.papers import document, feed

MONITOR = (
    'match /management[webstore/orders/order[client/"INRIA"][oid/$x#t1][details/computer]]'
    "[shipping/orders/order/oid/$x#t2] where t2 - t1 >= 50000 return $x"
)
FIGURE_4 = "match /a[d/y]/b/c/$x return $x"


def program_of(query: str) -> Rules:
    return rules_of(compile_pattern(parse_pattern(query)))


# Golden programs ----------------------------------------------------------------------------------

P3_PROGRAM_1 = """
q(x) <- R_p1(n, x)
R_p1(n, x) <- root(n), label(management, n), child(n, n'), R_p2(n', x, t'), child(n, n''),
    R_p11(n'', x, t''), t'' - t' >= 50000
R_p2(n, x, t) <- label(webstore, n), child(n, n'), R_p3(n', x, t)
R_p3(n, x, t) <- label(orders, n), child(n, n'), R_p4(n', x, t)
R_p4(n, x, t) <- label(order, n), child(n, n'), R_p5(n'), child(n, n''), R_p7(n'', x, t),
    child(n, n'''), R_p9(n''')
R_p5(n) <- label(client, n), child(n, n'), R_p6(n')
R_p6(n) <- label(INRIA, n)
R_p7(n, x, t) <- label(oid, n), child(n, n'), R_p8(n', x, t)
R_p8(n, x, t) <- label(x, n), time(t, n)
R_p9(n) <- label(details, n), child(n, n'), R_p10(n')
R_p10(n) <- label(computer, n)
R_p11(n, x, t) <- label(shipping, n), child(n, n'), R_p12(n', x, t)
R_p12(n, x, t) <- label(orders, n), child(n, n'), R_p13(n', x, t)
R_p13(n, x, t) <- label(order, n), child(n, n'), R_p14(n', x, t)
R_p14(n, x, t) <- label(oid, n), child(n, n'), R_p15(n', x, t)
R_p15(n, x, t) <- label(x, n), time(t, n)
"""

P3_PROGRAM_2 = """
q(x) <- R_p1(n, x)
R_p1(n, x) <- root(n), label(a, n), child(n, n'), child(n, n''), R_p2(n'), R_p4(n'', x)
R_p2(n) <- child(n, n'), label(d, n), R_p3(n')
R_p3(n) <- label(y, n)
R_p4(n, x) <- label(b, n), child(n, n'), R_p5(n', x)
R_p5(n, x) <- label(c, n), child(n, n'), R_p6(n', x)
R_p6(n, x) <- label(x, n)
"""

# Rules 1 to 6, which compute satisfaction; p with a hat is written R_p.
P2_ALGORITHM_1 = """
q(x, y) <- R_p1(n, x, y)
R_p1(n, x, z) <- root(n), label(a, n), child(n, n'), child(n, n''), R_p2(n', x), R_p4(n'', y, z),
    x = y
R_p2(n, x) <- child(n, n'), label(b, n), R_p3(n', x)
R_p3(n, x) <- label(x, n)
R_p4(n, x, y) <- label(x, n), child(n, n'), R_p5(n', y)
R_p5(n, y) <- label(y, n)
"""

# Without the rules for functions, and so without the column sat and Min_2.
P3_PROGRAM_3 = """
q(x) <- R_p1(n, x)
R^_p1(n) <- root(n), label(a, n)
R^_p2(n) <- R^_p1(n'), child(n', n), label(d, n)
R_p3(n) <- R^_p2(n'), child(n', n), label(y, n)
R_p2(n) <- R_p3(n'), child(n, n')
R^_p4(n) <- R^_p1(n'), child(n', n''), R_p2(n''), child(n', n), label(b, n)
R^_p5(n) <- R^_p4(n'), child(n', n), label(c, n)
R_p6(n, x) <- R^_p5(n'), child(n', n), label(x, n)
R_p5(n, x) <- R_p6(n', x), child(n, n')
R_p4(n, x) <- R_p5(n', x), child(n, n')
R_p1(n, x) <- child(n, n'), R_p2(n'), child(n, n''), R_p4(n'', x)
"""

# Without the rules for functions; a, b, c are R_p1, R_p2, R_p3, with a hat R^_p1 and so on, par is
# child, lab_a(n) is label(a, n). Mended: par(n', n'') is par(n, n''), as EXAMPLES 1 says, a_1 is a.
P1_ALGORITHM_1 = """
q() <- R_p1(n)
R^_p1(n) <- root(n), label(a, n)
R^_p2(n') <- R^_p1(n), child(n, n'), label(b, n')
R^_p3(n') <- R^_p1(n), child(n, n'), label(c, n'), R_p2(n''), child(n, n'')
R_p2(n) <- R^_p2(n)
R_p3(n) <- R^_p3(n)
R_p1(n) <- R_p2(n'), R_p3(n''), R^_p1(n), child(n, n'), child(n, n'')
"""

_ATOM = re.compile(r"\s*([\w^]+)\(([^()]*)\)|([^(),]+)")
_WORD = re.compile(r"[a-z]\w*'*")
_VARIABLE = re.compile(r"n'*|t'*|t1|t2|[xz]")
Written = tuple[str, tuple[str, ...]]


def read(text: str) -> list[list[Written]]:
    """Rules as printed: head first. Equalities are substituted, quotes of texts left out."""
    joined = re.sub(r"\n +", " ", text.strip()).replace('"', "")
    return [_read_rule(line) for line in joined.splitlines()]


def _read_rule(line: str) -> list[Written]:
    for left, right in re.findall(r", (\w) = (\w)", line):
        line = re.sub(rf"\b{right}\b", left, line.replace(f", {left} = {right}", ""))
    atoms: list[Written] = []
    for relation, terms, condition in _ATOM.findall(line.replace("<-", ",")):
        if relation:
            atoms.append((relation, tuple(terms.split(", ")) if terms else ()))
        elif condition.strip():
            atoms.append((_WORD.sub("_", condition.strip()), tuple(_WORD.findall(condition))))
    return atoms


def same(ours: list[Written], paper: list[Written], variables: re.Pattern[str] = _VARIABLE) -> bool:
    """Whether two rules are equal up to order and a one-to-one renaming of variables."""

    def meet(left: Written, right: Written, renaming: dict[str, str]) -> dict[str, str] | None:
        if left[0] != right[0] or len(left[1]) != len(right[1]):
            return None
        grown = dict(renaming)
        for a, b in zip(left[1], right[1], strict=True):
            if not (variables.fullmatch(a) and variables.fullmatch(b)):
                if a != b:
                    return None
            elif grown.setdefault(a, b) != b or list(grown.values()).count(b) > 1:
                return None
        return grown

    def search(left: list[Written], right: list[Written], renaming: dict[str, str]) -> bool:
        if not left:
            return not right
        for i, candidate in enumerate(right):
            grown = meet(left[0], candidate, renaming)
            if grown is not None and search(left[1:], right[:i] + right[i + 1 :], grown):
                return True
        return False

    heads = meet(ours[0], paper[0], {})
    return heads is not None and search(ours[1:], paper[1:], heads)


def assert_same_program(rules: Rules, paper: str, variables: re.Pattern[str] = _VARIABLE) -> None:
    ours, theirs = read("\n".join(map(str, rules))), read(paper)
    assert [rule[0][0] for rule in ours] == [rule[0][0] for rule in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert same(one, other, variables), (one, other)


def test_p3_program_1_the_order_monitor() -> None:
    assert_same_program(program_of(MONITOR), P3_PROGRAM_1)


def test_p3_program_2() -> None:
    assert_same_program(program_of(FIGURE_4), P3_PROGRAM_2)


def test_p2_algorithm_1() -> None:
    with_y = re.compile(r"n'*|[xyz]")
    assert_same_program(program_of("match /a[b/$x]/$x/$y return $x, $y"), P2_ALGORITHM_1, with_y)


def test_p3_program_3_magic_set() -> None:
    assert_same_program(folded(magic(program_of(FIGURE_4))), P3_PROGRAM_3)


def test_p1_algorithm_1_magic_set() -> None:
    ours = magic(program_of("match /a[b][c]"))
    order = [0, 1, 2, 4, 3, 5, 6]  # P1 has the top-down rules first, ours stand as evaluated
    assert_same_program(tuple(ours[i] for i in order), P1_ALGORITHM_1)


def test_the_comparison_of_programs_can_fail() -> None:
    rules = program_of(FIGURE_4)
    for wrong in (
        P3_PROGRAM_2.replace("label(d, n)", "label(e, n)"),
        P3_PROGRAM_2.replace("R_p4(n'', x)", "R_p4(n', x)"),
        P3_PROGRAM_2.replace("root(n), ", ""),
    ):
        with pytest.raises(AssertionError):
            assert_same_program(rules, wrong)
    with pytest.raises(AssertionError):
        assert_same_program(program_of(MONITOR), P3_PROGRAM_1.replace("t'' - t' >=", "t' - t'' >="))


# Printing -----------------------------------------------------------------------------------------


def lines(query: str) -> list[str]:
    return [str(rule) for rule in program_of(query)]


def test_rules_print_as_the_paper_writes_them() -> None:
    assert lines("match /a[.//b#t > 5]/@k where t >= 2 return t.id") == [
        "q(t.node) <- R_p1(n, t.node)",
        "R_p1(n, t.node) <- root(n), label(a, n), descendant(n, n'), R_p2(n', t.node),"
        " attribute(n, n''), R_p3(n'')",
        "R_p2(n, t.node) <- label(b, n), value(v, n), v > 5, id(t.node, n), time(t, n), t >= 2",
        "R_p3(n) <- label(@k, n)",
    ]
    assert program_of("match /a")[0].text("←") == "q() ← R_p1(n)"


def test_an_or_has_a_rule_for_each_alternative_and_a_not_a_negated_atom() -> None:
    assert lines("match //a[$x or b/$x][not(c/$x)] return $x") == [
        "q(x) <- document(n), descendant(n, n'), R_p1(n', x)",
        "R_p1(n, x) <- label(a, n), R_or1(n, x), not R_not1(n, x)",
        "R_or1(n, x) <- child(n, n'), R_p2(n', x)",
        "R_p2(n, x) <- label(x, n)",
        "R_or1(n, x) <- child(n, n'), R_p3(n', x)",
        "R_p3(n, x) <- label(b, n), child(n, n'), R_p4(n', x)",
        "R_p4(n, x) <- label(x, n)",
        "R_not1(n, x) <- child(n, n'), R_p5(n', x)",
        "R_p5(n, x) <- label(c, n), child(n, n'), R_p6(n', x)",
        "R_p6(n, x) <- label(x, n)",
    ]


@pytest.mark.parametrize(
    ("query", "printed"),
    [
        ("match /a/$n return $n", "q($n) <- R_p1(n, $n)"),
        ("match /x/$x return $x", "q($x) <- R_p1(n, $x)"),
        ("match /a[$t#t] where t > 1 return $t, t.time", "q(t, t.time) <- R_p1(n, t, t.time)"),
        ("match /a[$y][b#t] return t.val, $y, t.id", "q(t.node, y) <- R_p1(n, y, t.node)"),
    ],
)
def test_what_could_be_misread_keeps_its_mark(query: str, printed: str) -> None:
    assert lines(query)[0] == printed


def test_explain_numbers_the_rules_and_names_the_nodes() -> None:
    assert explain_program(
        parse_pattern('match /a[b = "1" or not(c)]//$x#t return $x')
    ) == "\n".join(
        [
            "1: q(x) <- R_p1(n, x)",
            "2: R_p1(n, x) <- root(n), label(a, n), descendant(n, n'), R_p4(n', x), R_or1(n)",
            "3: R_p4(n, x) <- label(x, n)",
            "4: R_or1(n) <- child(n, n'), R_p2(n')",
            '5: R_p2(n) <- label(b, n), value(v, n), v = "1"',
            "6: R_or1(n) <- node(n), not R_not1(n)",
            "7: R_not1(n) <- child(n, n'), R_p3(n')",
            "8: R_p3(n) <- label(c, n)",
            "",
            "q is the answers",
            "R_p1 is /a",
            "R_p4 is /a//$x#t",
            "R_or1 is the alternatives of an `or` at /a; counts once",
            'R_p2 is /a/b = "1"',
            "R_not1 is the inside of a `not` at /a",
            "R_p3 is /a/c",
        ]
    )


def test_explain_names_every_relation() -> None:
    for seed in range(300):
        text = explain_program(small_cases.pattern(Random(seed)))
        if text.startswith("no datalog program"):
            continue
        heads = set(re.findall(r"^ *\d+: ([^(]+)\(", text, re.MULTILINE))
        assert heads == set(re.findall(r"^(\S+) is ", text, re.MULTILINE))


def test_explain_and_rules_say_why_there_is_no_program() -> None:
    pattern = parse_pattern("match /a/b/parent::c")
    assert explain_program(pattern) == "no datalog program: the axis parent does not go downward"
    with pytest.raises(UnsupportedError) as caught:
        rules_of(compile_pattern(pattern))
    assert caught.value.code == "AX211"


# Counts -------------------------------------------------------------------------------------------


def keyed(tree: Tree, program: Program, facts: dict) -> dict:
    """The facts of q by the reference's keys: ids for handles, anchors for what is collected."""
    columns = output_columns(program)
    anchors = {n.name: gather.anchor for gather in program.gathers for n in nodes_of(gather.node)}
    found: Counter = Counter()
    for fact, count in facts.items():
        values = dict(zip(columns, fact, strict=True))
        key: list[object] = []
        for output in program.pattern.outputs:
            if output.kind is Kind.VARIABLE:
                key.append(values[f"${output.of}"])
            elif output.of in anchors:
                anchor = anchors[output.of]
                key.append(tree.id(DOCUMENT_NODE if anchor is None else values[anchor]))
            elif output.kind in (Kind.LABEL, Kind.TIME):
                key.append(values[f"{output.of}.{output.kind.value}"])
            else:
                key.append(tree.id(values[f"{output.of}.node"]))
        found[tuple(key)] += count
    return dict(found)


def expected(tree: Tree, pattern: Pattern) -> dict:
    return {key: answer.count for key, answer in rows(tree, pattern).items()}


def grown(random: Random, streams: int = 0) -> Tree:
    """A small document with nodes of several times."""
    tree = load(small_cases.document(random, random.randint(4, 14), streams))
    for time in (1, 2, 3):
        for operation in small_cases.operations(random, tree, 1):
            try:
                apply(tree, [operation], time)
            except AxlogError as error:
                accept(error)
                continue
    return tree


def rewritten(rules: Rules, random: Random) -> dict[str, Rules]:
    """The programs that must give the same answers."""
    names = [rule.head.relation for rule in rules]
    order = random.sample(names, random.randint(0, len(names)))
    plain, ordered = magic(rules), magic(rules, order)
    return {"magic": plain, "folded": folded(plain), "ordered": ordered, "both": folded(ordered)}


@pytest.mark.parametrize("start", chunks(350, 350))
def test_oracle_counts(start: int) -> None:
    found = 0
    for seed in range(start, start + 350):
        random = Random(seed)
        features = small_cases.Features(size=random.choice((4, 7, 12)))
        pattern = small_cases.pattern(random, features)
        program = compile_pattern(pattern)
        if program.refusal is not None:
            continue
        tree = grown(random, streams=random.choice((0, 1)))
        rules = rules_of(program)
        wanted = expected(tree, pattern)
        facts = evaluate(rules, tree, INTEGERS)
        assert keyed(tree, program, facts) == wanted, (seed, str(pattern))
        assert set(evaluate(rules, tree, BOOLEANS)) == set(facts)
        for name, other in rewritten(rules, random).items():
            assert evaluate(other, tree, INTEGERS) == facts, (seed, name, str(pattern))
        found += bool(wanted)
    assert found > 100


# `or` and `not` whose parts look at each other: rare in random patterns.
ENTANGLED = [
    "match /r[a/$x][b or c/$x] return $x",
    "match /r[a/$x or (b/$x and c/$y)][c/$y or (b/$y and a/$x)] return $x, $y",
    "match /r[a/$x or (b/$x and c/$y)][c/$y or (b/$y and a/$x)][not(a/$x#s and b/$y)] return $y",
    "match /r[a/$x#t][not(b/$x#s)] where s > t return $x",
    "match /r[a/$x#t or b/$x#t][not(c/$y#s)] where s > t, $x != $y return $x, t.time",
    "match /r[a/$x or (b/$x and c/$y)][c/$y#t or (b/$y#t and a/$x)][not(a/$z#s)] where s > t,"
    " $z < $y return $x, $y",
    "match /r[not(a/$x and b/$x)]//$y return $y",
    'match /r[not(a) or not(b)][not(a[not("1")] or b)]',
    "match /r/a[not(b) or c][$x]//$x return $x",
    "match /r[a/$x]/*[a/$x or not(c)] return $x",
]


@pytest.mark.parametrize("query", ENTANGLED)
def test_oracle_entangled_connectives(query: str) -> None:
    pattern = parse_pattern(query)
    program = compile_pattern(pattern)
    assert program.refusal is None
    rules = rules_of(program)
    found = 0
    for seed in range(cases(30)):
        random = Random(seed)
        tree = Entangled(random).tree
        facts = evaluate(rules, tree, INTEGERS)
        assert keyed(tree, program, facts) == expected(tree, pattern), seed
        for name, other in rewritten(rules, random).items():
            assert evaluate(other, tree, INTEGERS) == facts, (seed, name)
        found += bool(facts)
    assert found > 0


class Entangled:
    """A root with children a, b, c that hold values, brought at several times."""

    def __init__(self, random: Random) -> None:
        self.tree = document("r[?f]")
        for time in range(random.randint(1, 4)):
            values = f'"{random.choice("12")}", {random.choice("abc")}, "{random.choice("12")}"'
            feed(self.tree, "f", f"{random.choice('abc')}[{values}]", time)


def test_entangled_connectives_need_every_kind_of_relation() -> None:
    text = "\n".join(line for query in ENTANGLED[:6] for line in lines(query))
    for name in ("R_any", "R_whole", "R_block"):
        assert name in text


def test_a_variable_may_repeat_at_one_node_and_meet_its_value() -> None:
    tree = document('r["r", a["b", b], a["a"]]')
    for query, count in (("match //$x[. = $x] return $x", 4), ("match //a/$x return $x", 3)):
        pattern = parse_pattern(query)
        facts = evaluate(program_of(query), tree, INTEGERS)
        assert facts == expected(tree, pattern)
        assert sum(facts.values()) == count


# The work that is not done ------------------------------------------------------------------------


def test_magic_asks_for_a_branch_only_where_its_cadet_matched() -> None:
    tree = document("a[d, b[c[z]], b[c[z]]]")
    plain = Evaluation(program_of(FIGURE_4), tree, INTEGERS).facts
    asked = Evaluation(magic(program_of(FIGURE_4)), tree, INTEGERS).facts
    assert len(plain["R_p4"]) == 2
    assert [asked[name] for name in ("R^_p4", "R_p4", "R_p5", "R_p6")] == [{}] * 4
    assert len(asked["R^_p2"]) == 1
    turned = Evaluation(magic(program_of(FIGURE_4), ["R_p4"]), tree, INTEGERS).facts
    assert len(turned["R_p4"]) == 2
    assert len(turned["R^_p2"]) == 1
    assert turned["R_p2"] == {}


def test_magic_refuses_an_order_of_what_is_not_there() -> None:
    with pytest.raises(QueryError) as caught:
        magic(program_of(FIGURE_4), ["R_p9"])
    assert caught.value.code == "AX203"
