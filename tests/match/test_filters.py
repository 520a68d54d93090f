"""Filters against the interpreter: the same rows for every pattern, by whatever way they are found.

The cases are small and random, each known by its seed. Every way is run on each: the automaton with
room for all states and with next to none, patterns tested one by one, with and without the bytes of
the message, for rows and for whether there are any.
"""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from axlog.document.loader import load
from axlog.document.parser import Element, parse
from axlog.errors import AxlogError, QueryError
from axlog.evaluate.answers import answers
from axlog.evaluate.interpreter import Interpreter
from axlog.evaluate.value_tests import comparison
from axlog.match.automaton import Automaton
from axlog.match.few_patterns import FIRST_REVIEW, ways_of
from axlog.match.filter_generator import can_test, generate_test
from axlog.match.filters import Filter
from axlog.match.linear_paths import Place, Watch, needs_of
from axlog.match.message_forms import needs_tree
from axlog.match.message_values import finds_markup, has_markup, has_value, short_value
from axlog.match.string_tests import StringIndex
from axlog.match.xpath_questions import questions_of
from axlog.query.compile import compile_pattern
from axlog.query.native import parse_pattern
from axlog.query.pattern import Comparison, Pattern
from lab.benchmarks.filters import same_answers
from lab.laws.filters_law import ALWAYS, NEVER, decorate, message
from lab.laws.small_cases import fragment, pattern
from tests.match.test_matcher_generator import blocks

CASES = 40


def element(text: str) -> Element:
    return parse(text).root


def patterns(random: Random, count: int) -> dict[str, Pattern]:
    found: dict[str, Pattern] = {}
    while len(found) < count:
        drawn = pattern(random)
        if compile_pattern(drawn).refusal is None:
            found[f"k{len(found)}"] = drawn
    return found


def make(wanted: dict[str, Pattern], automaton_from: int, most_states: int = 8192) -> Filter:
    made = Filter(automaton_from, most_states)
    for key, one in wanted.items():
        made.add(key, one)
    return made


# The law ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", blocks(CASES, 40), ids=str)
def test_differential_filter_and_interpreter(seeds: range) -> None:
    matched = settled = 0
    for seed in seeds:
        random = Random(seed)
        wanted = patterns(random, random.choice((1, 5, 16)))
        ways = {
            "automaton": make(wanted, ALWAYS),
            "few states": make(wanted, ALWAYS, most_states=random.choice((4, 6))),
            "one by one": make(wanted, NEVER),
        }
        for _ in range(3):
            text = message(random)
            tree, root = load(text, time=3), element(text)
            expected = {key: bag for key, one in wanted.items() if (bag := answers(tree, one))}
            for way, made in ways.items():
                content = text.encode() if random.random() < 0.5 else None
                where = f"seed {seed}, {way}: {text}"
                found = made.match(root, 3, content)
                differing = {k for k in wanted if found.get(k) != expected.get(k)}
                assert not differing, f"{where}: {[str(wanted[k]) for k in differing]}"
                differing = made.matches(root, 3, content) ^ expected.keys()
                assert not differing, f"{where}: {[str(wanted[k]) for k in differing]}"
            matched += len(expected)
            if len(wanted) > 1 and random.random() < 0.5:
                gone = random.choice(list(wanted))
                del wanted[gone]
                for made in ways.values():
                    made.remove(gone)
        settled += sum(needs_of(compile_pattern(one).root).are_enough for one in wanted.values())
    assert matched > len(seeds)  # the cases are about something
    assert settled > len(seeds) // 4


@pytest.mark.parametrize("seeds", blocks(300, 300), ids=str)
def test_differential_checks_and_interpreter(seeds: range) -> None:
    """The needs of the automaton and the generated tests, each alone."""
    counts = dict.fromkeys(("needed", "enough", "testable", "tested", "held"), 0)
    for seed in seeds:
        random = Random(seed)
        (one,) = patterns(random, 1).values()
        root_relation = compile_pattern(one).root
        needs, test = needs_of(root_relation), generate_test(root_relation)
        automaton = Automaton()
        for number, need in enumerate(needs.each):
            automaton.add(need, number)
        for number, route in enumerate(needs.meetings):
            automaton.mark(route, number)
        for _ in range(4):
            text = decorate(random, fragment(random, random.randint(1, 12)))
            root = element(text)
            if finds_markup(root_relation) and has_markup(root):
                continue  # for a tree
            holds = bool(answers(load(text), one))
            where = f"seed {seed}: {one} on {text}"
            found, repeated = automaton.run(root)
            met = len(found) == len(needs.each)
            says_all = needs.are_whole and not repeated
            assert met or not holds, where
            assert not says_all or met == holds, where
            assert test is None or test(root) == holds, where
            counts["needed"] += not met
            counts["enough"] += says_all
            counts["testable"] += can_test(root_relation)
            counts["tested"] += test is not None
            counts["held"] += holds
    assert min(counts.values()) > len(seeds) // 4, counts


@pytest.mark.parametrize("seeds", blocks(300, 300), ids=str)
def test_differential_xpath_and_interpreter(seeds: range) -> None:
    """An expression for libxml2 is true where its pattern holds; only there if it is exact."""
    counts = dict.fromkeys(("asked", "exact", "held", "refuted", "not exact"), 0)
    for seed in seeds:
        random = Random(seed)
        (one,) = patterns(random, 1).values()
        relation = compile_pattern(one).root
        for _ in range(4):
            text = message(random)
            root = element(text)
            if needs_tree(root) or (finds_markup(relation) and has_markup(root)):
                continue
            holds = bool(answers(load(text, time=3), one))
            for asked in questions_of(relation):
                where = f"seed {seed}: {one} as {asked} on {text}"
                is_true = bool(etree.XPath(f"boolean({asked.expression})")(root))
                assert is_true or not holds, where
                assert is_true == holds or not asked.is_exact, where
                counts["asked"] += 1
                counts["exact"] += asked.is_exact
                counts["held"] += holds
                counts["refuted"] += not is_true
                counts["not exact"] += is_true and not holds
    assert min(counts.values()) > len(seeds) // 10, counts


WANTED = {
    "value": "//b[. = '1 2']",
    "empty": "//b[. = '']",
    "number": "//b[. >= 24]",
    "double": "//b[@k = 1e1]",
    "any": "//b/*",
    "not": "//a[not(b)]",
    "three": "//a//b//c//d",
}


@pytest.mark.parametrize(
    "text",
    [
        "<a><b>1 2</b></a>",
        "<a><b> <c>1 2</c> </b></a>",
        "<a><b><c>1</c> <c> 2</c></b></a>",
        "<a><b>1 2<!-- --> </b></a>",
        "<a><b>24.0</b></a>",
        "<a><b> <c>2</c> <c>4</c></b></a>",
        "<a><b>23.99999999999999999999</b></a>",
        "<a><b>INF</b></a>",
        '<a><b k="10"/></a>',
        '<a><b k="1e1"> </b></a>',
        '<a><b><ax:call xmlns:ax="urn:axlog" stream="s"/></b></a>',
        "<a><b><c><d/></c></b></a>",
        "<a/>",
    ],
)
def test_patterns_tested_in_c_hold_as_in_python(text: str) -> None:
    """White space beside elements, numbers that XPath reads otherwise, calls."""
    for wanted in [WANTED, *({key: query} for key, query in WANTED.items())]:
        made = {way: Filter(NEVER) for way in ("in Python", "in C")}
        for each in made.values():
            for key, query in wanted.items():
                each.add(key, query, language="xpath")
        few = made["in C"].few_patterns()
        few.test_in_c([way for each in few.patterns for way in ways_of(each)[:1]])
        found = {way: each.matches(element(text), 3, text.encode()) for way, each in made.items()}
        assert found["in C"] == found["in Python"]


def test_ways_are_measured_and_keep_the_answers() -> None:
    made = make(
        {"k": parse_pattern("match //a//*/b"), "v": parse_pattern("match //a[b/'1']")}, NEVER
    )
    texts = ["<a><c><b>1</b></c></a>", "<a><b>1</b></a>", "<a/>"]
    expected = [{"k"}, {"v"}, set()]
    for _ in range(2 * FIRST_REVIEW):
        assert [made.matches(element(each), 3, each.encode()) for each in texts] == expected


def test_texts_count_for_any_node_at_or_below() -> None:
    """Found by `fuzz --law filters`: white space that is kept is a text like any other."""
    text = '<b xml:space="preserve"> <c/></b>'
    one = parse_pattern("match //b[descendant-or-self::node()]")
    assert make({"k": one}, ALWAYS).match(element(text)) == {"k": {(): 3}}
    assert answers(load(text), one) == {(): 3}


def test_what_is_asked_of_an_attributes_variable_is_checked() -> None:
    """Found by `fuzz --law filters`: the constraint stands below the attribute."""
    one = parse_pattern("match //c/@k/$y where $y = 2")
    made = make({"k": one}, ALWAYS)
    assert made.matches(element('<c k="1"><c k="a"/></c>')) == set()
    assert made.matches(element('<c k="1"><c k="2"/></c>')) == {"k"}


def nested(random: Random, size: int) -> str:
    """A message with more labels than the small cases have: some elements are the only ones."""
    label = random.choice("abcdef")
    given = ' k="1"' if random.random() < 0.4 else ""
    inside = ""
    while size > 1:
        part = random.randint(1, size - 1)
        inside += nested(random, part)
        size -= part
    return f"<{label}{given}>{inside}</{label}>"


def branching(random: Random) -> str:
    """A pattern whose branches meet below the root element, sometimes at two nodes."""

    def branch() -> str:
        return str(random.choice(("@k", "@k", "*", "*/@k", "//*/@k", *"abcdef")))

    start = random.choice(("//", "//", "/*/", "/*//"))
    tail = random.choice((f"/{random.choice('abcdef')}", "/@k", f"/*[{branch()}]/@k", ""))
    one, other = branch(), branch()
    return f"match {start}{random.choice('abcdef*')}[{one}][{other}]{tail}"


@pytest.mark.parametrize("seeds", blocks(240, 240), ids=str)
def test_differential_meetings_and_interpreter(seeds: range) -> None:
    """Needs that must be met below one element: settled if there is one, checked if several."""
    counts = dict.fromkeys(("one element", "several hold", "several do not"), 0)
    for seed in seeds:
        random = Random(seed)
        one = parse_pattern(branching(random))
        needs = needs_of(compile_pattern(one).root)
        automaton = Automaton()
        for number, need in enumerate(needs.each):
            automaton.add(need, number)
        for number, route in enumerate(needs.meetings):
            automaton.mark(route, number)
        made = make({"k": one}, ALWAYS)
        for _ in range(6):
            text = nested(random, random.randint(4, 14))
            root, holds = element(text), bool(answers(load(text), one))
            where = f"seed {seed}: {one} on {text}"
            assert made.matches(root) == ({"k"} if holds else set()), where
            found, repeated = automaton.run(root)
            met = len(found) == len(needs.each)
            assert met or not holds, where
            if not needs.meetings or not met:
                continue
            assert repeated or holds, where
            counts["one element"] += not repeated
            counts["several hold"] += bool(repeated) and holds
            counts["several do not"] += bool(repeated) and not holds
    assert min(counts.values()) > 10, counts


def test_differential_relations_of_an_engine() -> None:
    """At the message's root and anywhere in it, as a route asks for them."""
    found = 0
    for seed in range(100):
        random = Random(seed)
        (one,) = patterns(random, 1).values()
        relations = [edge.relation for edge in compile_pattern(one).root.edges]
        text = fragment(random, random.randint(1, 12))
        tree, root = load(text), element(text)
        for automaton_from in (ALWAYS, NEVER):
            made = Filter(automaton_from)
            for number, relation in enumerate(relations):
                made.add_relation(f"{number} here", relation)
                made.add_relation(f"{number} everywhere", relation, everywhere=True)
            rows = made.match(root)
            for number, relation in enumerate(relations):
                interpreter = Interpreter(relation.walk())
                interpreter.look_anywhere([relation])
                risen = interpreter.evaluate(tree, tree.root)
                assert rows.get(f"{number} here", {}) == risen.here.get(relation, {}), seed
                everywhere = rows.get(f"{number} everywhere", {})
                assert everywhere == risen.everywhere.get(relation, {}), seed
                assert made.columns(f"{number} here") == relation.columns
                found += bool(everywhere)
    assert found > 50


# Keys, texts, options -----------------------------------------------------------------------------

LATE = 'match /order[client/"INRIA"]/oid/$x return $x'
ORDER = "<order><oid>17</oid><client>INRIA</client><item price='8'/></order>"


def test_subscribers_with_one_pattern_share_it() -> None:
    made = Filter(ALWAYS)
    for number in range(5):
        made.add(f"document {number}", LATE)
    counted = made.statistics()
    assert (counted.keys, counted.patterns) == (5, 1)
    assert made.matches(element(ORDER)) == {f"document {number}" for number in range(5)}
    states = made.statistics().states
    made.remove("document 0")
    made.add("document 9", LATE)
    assert made.statistics().states == states  # keys alone do not touch the automaton
    assert made.match(element(ORDER))["document 9"] == {("17",): 1}
    assert "document 0" not in made.matches(element(ORDER))


def test_what_is_removed_leaves_nothing() -> None:
    random = Random(5)
    made = Filter(ALWAYS)
    empty = made.statistics().nodes
    wanted = patterns(random, 40)
    for key, one in wanted.items():
        made.add(key, one)
    assert made.statistics().nodes > empty
    for key in random.sample(list(wanted), len(wanted)):
        made.remove(key)
    assert len(made) == 0
    assert made.statistics().nodes == empty
    assert made.matches(element("<a><b/></a>")) == set()


def test_a_filter_sent_elsewhere_is_the_same_filter() -> None:
    random = Random(1)
    made = Filter(automaton_from=3, most_states=50)
    for key, one in patterns(random, 12).items():
        made.add(key, one)
    made.add("xpath", "//p:a[@k = '1'] | /b", namespaces={"p": "urn:p"}, language="xpath")
    made.add("same", "//p:a[@k = '1'] | /b", namespaces={"p": "urn:p"}, language="xpath")
    made.add("known", "match /a/$x return $x", known={"x": ["1", "2"]})
    again = Filter.from_json(made.to_json())
    assert set(again) == set(made)
    assert (again.automaton_from, again.most_states) == (3, 50)
    assert again.statistics().patterns == made.statistics().patterns
    assert json.loads(again.to_json()) == json.loads(made.to_json())
    for _ in range(50):
        root = element(fragment(random, 8))
        assert again.match(root) == made.match(root)
    assert again.matches(element("<p:a xmlns:p='urn:p' k='1'/>")) >= {"xpath", "same"}


@pytest.mark.parametrize("automaton_from", [ALWAYS, NEVER])
def test_only_values_that_can_still_join_pass(automaton_from: int) -> None:
    made = Filter(automaton_from)
    made.add("some", LATE, known={"x": {"17", "18"}})
    made.add("other", LATE, known={"x": {"99"}})
    made.add("any", LATE)
    assert made.matches(element(ORDER)) == {"some", "any"}
    assert made.match(element(ORDER)) == {"some": {("17",): 1}, "any": {("17",): 1}}
    with pytest.raises(QueryError) as raised:
        made.add("none", LATE, known={"y": {"1"}})
    assert raised.value.code == "AX204"


def test_times_and_joins_are_checked_last() -> None:
    made = Filter(ALWAYS)
    made.add("later", "match /a#t[b] where t >= 5 return t.time")
    made.add("joined", "match /a[b/$x][c/$x] return $x")
    root = element("<a><b>1</b><c>1</c><c>2</c></a>")
    assert made.matches(root, 4_000_000) == {"joined"}
    assert made.match(root, 6_000_000) == {"later": {(6_000_000,): 1}, "joined": {("1",): 1}}
    assert made.matches(element("<a><b>1</b><c>2</c></a>")) == set()
    assert made.statistics().refuted > 0


@pytest.mark.parametrize(
    ("code", "act"),
    [
        ("AX202", lambda made: made.add("late", "//b")),
        ("AX203", lambda made: made.remove("early")),
        ("AX203", lambda made: made.columns("early")),
        ("AX211", lambda made: made.add("up", "//a[parent::b]")),
        ("AX201", lambda made: made.add("broken", "match /a[")),
        ("AX411", lambda made: Filter.from_json("[]")),
        ("AX411", lambda made: Filter.from_json("{")),
        ("AX411", lambda made: Filter.from_json(made.to_json().replace(": 1,", ": 2,", 1))),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(code: str, act) -> None:
    made = Filter(ALWAYS)
    made.add("late", LATE)
    with pytest.raises(AxlogError) as raised:
        act(made)
    assert raised.value.code == code
    assert list(made) == ["late"]
    assert made.matches(element(ORDER)) == {"late"}


def test_a_relation_has_no_text_to_send() -> None:
    made = Filter()
    made.add_relation("p", compile_pattern(parse_pattern(LATE)).root.edges[0].relation)
    with pytest.raises(QueryError) as raised:
        made.to_json()
    assert raised.value.code == "AX412"


# The automaton ------------------------------------------------------------------------------------


def test_states_are_made_once_and_bounded() -> None:
    made = Filter(ALWAYS)
    for label in "abc":
        made.add(label, f"//a//{label}")
    root = element("<a><b><c/><a/></b><x><b/></x></a>")
    first = made.matches(root)
    counted = made.statistics()
    assert counted.misses > 0
    assert made.matches(root) == first == {"a", "b", "c"}
    again = made.statistics()
    made_again = again.misses - counted.misses
    assert made_again == 0
    assert again.hits == counted.hits + counted.hits + counted.misses
    assert again.hit_rate > counted.hit_rate

    random = Random(3)
    small = Filter(ALWAYS, most_states=5)
    for key, one in patterns(random, 20).items():
        small.add(key, one)
    for _ in range(60):
        small.matches(element(fragment(random, 12)))
        assert small.statistics().states <= 5
    assert small.statistics().evicted > 0


def test_what_no_pattern_can_want_is_not_walked() -> None:
    made = Filter(ALWAYS)
    made.add("b", "/a/b")
    made.matches(element("<a><c><b/><b/><b/></c><c><b/></c></a>"))
    counted = made.statistics()
    assert counted.hits + counted.misses == 3  # a and the two c: nothing below them


def test_the_switch_is_by_different_patterns() -> None:
    made = Filter(automaton_from=2)
    seen = []
    for key, text in (("one", "//a"), ("same", "//a"), ("two", "//b")):
        made.add(key, text)
        seen.append(made.uses_automaton)
    made.remove("two")
    seen.append(made.uses_automaton)
    assert seen == [False, False, True, False]
    assert made.matches(element("<a/>")) == {"one", "same"}


def test_needs_of_a_branching_pattern() -> None:
    needs = needs_of(compile_pattern(parse_pattern('match /a[b/@k = "1"]//c/"x"')).root)
    one, text = (Comparison("=", "1"),), (Comparison("=", "x"),)
    assert set(needs.each) == {
        frozenset({Place(("a", "b"), Watch("attribute", "k", one))}),
        frozenset({Place(("a", "//", "c"), Watch("text", None, text))}),
    }
    assert needs.are_enough  # they meet at the root element, and there is one
    needs = needs_of(compile_pattern(parse_pattern("match //a[b]/c[@k]/@m")).root)
    assert needs.meetings == {("//", "a"), ("//", "a", "c")}
    assert needs.are_whole
    assert not needs.are_enough
    assert needs_of(compile_pattern(parse_pattern("match //a/*//b")).root).are_enough
    assert not needs_of(compile_pattern(parse_pattern("match //a[not(b)]")).root).are_whole


# Strings ------------------------------------------------------------------------------------------

_texts = st.sampled_from(["", "1", "2", "2.0", " 2 ", "-1", "x", "10", "NaN", "1e1"])
_tests = st.tuples(
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.sampled_from(["1", "2", "x", 1.0, 2.0, 10.0]),
)


@given(st.lists(_tests, max_size=12), _texts, st.integers(0, 12))
def test_oracle_strings_are_tested_as_one_by_one(drawn, text: str, split: int) -> None:
    strings, more = StringIndex(), StringIndex()
    for need, (operator, operand) in enumerate(drawn):
        (strings if need < split else more).add((Comparison(operator, operand),), need)
    strings.update(more)
    found: set[int] = set()
    strings.find(text, found)
    assert found == {n for n, (op, value) in enumerate(drawn) if comparison(op, value)(text)}


@given(st.integers(0, 10_000), _texts)
def test_differential_has_value_and_string_value(seed: int, wanted: str) -> None:
    random = Random(seed)
    text = decorate(random, fragment(random, random.randint(1, 6)))
    tree = load(text)
    own = tree.string_value(tree.root)
    assert has_value(element(text), own)
    assert has_value(element(text), wanted) == (own == wanted)
    for longest in range(len(own) + 2):
        assert short_value(element(text), longest) == (own if len(own) <= longest else None)


def test_both_sides_of_the_benchmark_answer_the_same() -> None:
    assert same_answers(60, 10)
