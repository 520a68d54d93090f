"""Queries with `not` whose values also stand outside: ordered and not shipped, with every fact."""

from collections import Counter
from itertools import product
from random import Random

import pytest

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.future.deadline_keys import missing_keys
from axlog.future.finality import is_lasting, may_return
from axlog.future.grounding import Given, ground, ties_of
from axlog.future.keys import parse_fact
from axlog.future.reasons import why_not
from axlog.future.truth import Outlook
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.relevance import relevance
from axlog.query.native import parse_pattern
from axlog.query.truth import Truth
from axlog.query.values import compare_numbers
from lab.laws.absence_cases import AbsenceCase, make_absence_case, smaller_absences
from lab.laws.absence_law import check_absence, future_of
from lab.laws.ground_law import Branch, GroundCase, Message, check_ground, make_ground_case
from lab.laws.prospects_law import ProspectsCase
from tests.amounts import cases, chunks
from tests.papers import document, feed

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
OPEN = "match /r[p/a/k/$x][not(q/d/k/$x)] return $x"
KEYS = ("key p/a by k trusted", "key q/d by k trusted")


def shop(
    orders: str = "", shipped: str = "", f: str = "", g: str = "", facts: tuple[str, ...] = ()
) -> Tree:
    """Orders and shipments by their numbers, with a call each; `-` for no call."""
    inside = [
        "".join(f"<{label}><k>{number}</k></{label}>" for number in numbers)
        + ("" if fact == "-" else CALL.format(stream, fact))
        for label, numbers, stream, fact in (("a", orders, "f", f), ("d", shipped, "g", g))
    ]
    tree = load(f"<r><p>{inside[0]}</p><q>{inside[1]}</q></r>")
    tree.facts = tuple(map(parse_fact, facts))
    return tree


def status(tree: Tree, query: str, **row: object) -> Truth:
    return Outlook(tree, parse_pattern(query)).status(row)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (shop("1"), Truth.TRUE),
        (shop("2"), Truth.POSSIBLE),
        (shop("1", "1"), Truth.NEVER),
        (shop("1", "1", g=' deletes="yes"'), Truth.POSSIBLE),
        (shop("1", "1", f="-", g=' deletes="only"'), Truth.POSSIBLE),
        (shop("2", f="-"), Truth.NEVER),
        (shop("2", f=' most="0"'), Truth.NEVER),
        (shop("", f=' deletes="only"'), Truth.NEVER),
        (shop("2", f=' mode="one-shot"'), Truth.POSSIBLE),
    ],
)
def test_status_of_an_order(tree: Tree, expected: Truth) -> None:
    assert status(tree, OPEN, x="1") is expected


def test_a_key_uses_up_an_order_number() -> None:
    query = "match /r/p/a[k/$x][w][not(v)] return $x"
    assert status(shop("1"), query, x="1") is Truth.POSSIBLE
    assert status(shop("1", facts=KEYS), query, x="1") is Truth.NEVER
    assert status(shop("1", facts=KEYS), query, x="2") is Truth.POSSIBLE


def test_the_key_value_of_a_deleted_node_stays_used() -> None:
    query = "match /r/p/a[k/$x][w][not(v)] return $x"
    assert status(shop("1", f=' deletes="yes"', facts=KEYS), query, x="1") is Truth.NEVER


def test_a_limited_stream_must_fit_everything_into_its_trees() -> None:
    query = "match /r[p/a[k/$x]][p/a/w][not(p/a[k/$x]/w)] return $x"
    assert status(shop(f=' most="1"'), query, x="1") is Truth.NEVER
    assert status(shop(f=' most="2"'), query, x="1") is Truth.POSSIBLE


def test_deadlines_pass_beside_not() -> None:
    query = "match /r[p/a#t/k/$x][q/d#u/k/$x][not(q/e)] where u - t <= 2us return $x"
    tree = shop("1", f="-")
    outlook = Outlook(tree, parse_pattern(query))
    assert [one.deadline for one in outlook.possible()] == [2]
    tree.clock = 3
    assert status(tree, query, x="1") is Truth.NEVER


def test_a_time_inside_a_not_is_compared_with_one_outside() -> None:
    query = "match /r[p/a#t/k/$x][not(q/d#s/k/$x)] where s - t <= 2us return $x"
    tree = shop("1", "1", f="-")
    assert status(tree, query, x="1") is Truth.NEVER
    later = "match /r[p/a#t/k/$x][not(q/d#s/k/$x)] where s - t >= 2us return $x"
    assert status(tree, later, x="1") is Truth.TRUE


def test_a_possible_row_comes_with_a_future_that_brings_it() -> None:
    tree = shop("1", "1", g=' deletes="yes"')
    events = Outlook(tree, parse_pattern(OPEN)).future({"x": "1"})
    assert events is not None
    later = future_of(tree, events).applied_to(tree)
    assert status(later, OPEN, x="1") is Truth.TRUE


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("match /r[p/a][not(q/d[k/$y]/v/$y)]", "AX501"),
        ("match /r[p/a][not(q/d#s/k#u)] where s < u", "AX501"),
        ("match /r[p/a][not(q/d#s[not(k#u)])] where s < u", "AX503"),
        ('match /r[p/a/k/$x][not(q/d/k < "b")] return $x', "AX503"),
    ],
)
def test_joins_inside_a_not_are_refused(query: str, code: str) -> None:
    with pytest.raises(UndecidedError) as raised:
        status(shop("1", "1"), query.replace("p/a", "p/b"))
    assert raised.value.code == code


@pytest.mark.parametrize("query", ["match /r[p/a][not(q/d[k/$y]/v/$y)]"])
def test_where_the_theorem_does_not_reach(query: str) -> None:
    assert status(shop("1"), query) is Truth.TRUE
    assert status(shop("", f="-", g="-"), query) is Truth.NEVER
    assert status(shop("", f="-"), query) is Truth.NEVER  # without its `not` it is NEVER too
    with pytest.raises(UndecidedError):
        status(shop(""), query)


def test_values_of_elements_are_read_as_a_whole() -> None:
    query = 'match /r/p/a[k = "17"][not(k/"17")]'
    assert status(shop(), query) is Truth.POSSIBLE
    assert status(shop(), query + "[not(k//text())]") is Truth.NEVER
    assert status(shop(), 'match /r/p/a[k = "1"][not(k//"1")]') is Truth.NEVER


def test_a_view_answers_with_its_rows() -> None:
    doc = Document(
        streams=["orders", "shipped"],
        views={"open": "match /document[orders/order/$x][not(shipped/order/$x)] return $x"},
    )
    view = doc.view("open")
    truths = [view.truth]
    doc.feed("orders", "<order>17</order>")
    truths.append(view.truth)
    assert truths == [Truth.POSSIBLE, Truth.TRUE]
    doc.feed("shipped", "<order>17</order>")
    assert view.status({"x": "17"}) is Truth.NEVER
    assert [one.row for one in view.possible()] == [{"x": None}]
    doc.end("orders")
    truths.append(view.truth)
    assert truths[-1] is Truth.NEVER
    assert maintained(doc).views["open"].possible() == []


ORDERS = "match /document[orders/order/$x][not(shipped/order/$x)] return $x"


def orders() -> Document:
    return Document(streams=["orders", "shipped", "other"], views={"open": ORDERS})


def test_a_delete_for_good_is_final() -> None:
    doc = orders()
    doc.feed("orders", "<order>17</order>")
    (change,) = doc.feed("shipped", "<order>17</order>")
    assert (change.op, change.final) == ("delete", True)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (ORDERS, True),
        ("match /r[not(b)]/a/$x return $x", True),
        ("match /r[a#t/$x][not(b#s/$x)] where s - t <= 3us return $x, t.time", True),
        ("match /r[a#t/$x][not(b#s/$x)] where s - t <= 3us return $x", False),
        ("match /r[a/$x][not(b/$x)]", False),
        ("match /r/a[not(b)]/$x return $x", False),
        ("match /r[a/$x][not(b[not(c/$x)])] return $x", False),
        ("match /r/a/$x return $x", False),
    ],
)
def test_which_queries_lose_rows_for_good(query: str, expected: bool) -> None:
    assert is_lasting(parse_pattern(query)) is expected


def test_rows_may_return_where_streams_delete_or_change_values() -> None:
    pattern = parse_pattern(OPEN)
    assert not may_return(shop("1"), pattern)
    assert may_return(shop("1", g=' deletes="yes"'), pattern)
    compared = parse_pattern("match /r[p/a/k = $x][not(q/d/k = $x)] return $x")
    assert not may_return(shop("1"), compared)
    assert may_return(load(f"<r><k>{CALL.format('f', '')}</k></r>"), compared)


def test_why_a_row_holds_is_possible_or_never() -> None:
    doc = orders()
    view = doc.view("open")
    doc.feed("orders", "<order>17</order>")
    holds = view.why_not({"x": "17"})
    assert (holds.truth, [r.kind for r in holds.reasons]) == (Truth.TRUE, ["holds", "ends"])
    assert holds.reasons[1].stream == "shipped"
    possible = view.why_not({"x": "18"})
    assert str(possible) == "possible\n  orders can still bring <order>18</order>"
    doc.feed("shipped", "<order>17</order>")
    gone = view.why_not({"x": "17"})
    assert gone.to_dict() == {
        "truth": "never",
        "reasons": [
            {
                "kind": "absence",
                "text": "shipped/order/$x must be absent, and is there for good",
            }
        ],
    }
    doc.end("orders")
    assert [r.kind for r in view.why_not({"x": "18"}).reasons] == ["streams"]


def test_why_says_what_ends_a_row_without_not() -> None:
    pattern = parse_pattern("match /r/p/a/k/$x return $x")

    def ends(attributes: str) -> list[str]:
        return [str(r) for r in why_not(shop("1", f=attributes), pattern, {"x": "1"}).reasons[1:]]

    assert ends("") == ["nothing that may still come ends it"]
    assert ends(' deletes="yes"') == ["a deletion of f can end it"]
    assert ends(' calls="5"') == []  # of streams that may delete


def test_why_names_the_deadline_the_key_and_the_limit() -> None:
    query = "match /r[p/a#t/k/$x][q/d#u/k/$x] where u - t <= 2us return $x"
    tree = shop("1", facts=KEYS)
    (needs,) = why_not(tree, parse_pattern(query), {"x": "1"}).reasons
    assert (needs.kind, needs.stream, needs.deadline) == ("needs", "g", 0.000002)
    tree.clock = 5
    found = why_not(tree, parse_pattern(query), {"x": "1"})
    assert [r.kind for r in found.reasons] == ["deadline", "key"]
    assert found.reasons[0].deadline == 0.000002
    limited = shop("1", f=' most="1"')
    limited.brought["f"] = 1
    (limit,) = why_not(limited, parse_pattern("match /r/p/b"), {}).reasons
    assert (limit.kind, limit.stream) == ("limit", "f")


def test_relevance_beside_not() -> None:
    found = relevance(orders(), ORDERS)
    assert {s: each.relevant for s, each in found.items()} == {
        "orders": True, "shipped": None, "other": False,
    }  # fmt: skip
    assert found["shipped"].wanted == ("order/$x",)
    calls = [CALL.format("f", ""), CALL.format("g", ' deletes="yes"')]
    doc = Document("<r><p>{}</p><q>{}</q></r>".format(*calls))
    assert all(each.lazy for each in relevance(doc, OPEN).values())


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("t2 - t1 <= 2h", ["key orders/order by oid trusted"]),
        ("t1 - t2 >= -2h", ["key orders/order by oid trusted"]),
        ("t2 - t1 >= 2h", []),
        ("t2 <= 2h", []),
    ],
)
def test_deadlines_that_need_a_key(where: str, expected: list[str]) -> None:
    match = "match /r[orders/order/oid/$x#t1][shipped/order#t2[@oid = $x]]"
    pattern = parse_pattern(f"{match} where {where} return $x")
    assert [str(key) for key in missing_keys(pattern, ())] == expected
    keys = [parse_fact("key orders/order by oid enforced")]
    assert missing_keys(pattern, keys) == []


def test_ties_are_values_that_two_places_use() -> None:
    ties = ties_of(parse_pattern("match /r[a/$x#t][b/$y][not(c/$x#s)] where s - t <= 1us"))
    assert ties.variables == ("x",)
    assert ties.open_times(()) == ["t"]
    assert ties.open_times(("t",)) == []
    assert ties_of(parse_pattern("match /r[a/$x or b/$x][not(c)] return $x")).variables == ()


def test_given_values_may_contradict_the_constraints() -> None:
    pattern = parse_pattern("match /r[a/$x#t][not(b)] where t >= 5us and $x > 3 return $x, t.time")
    assert ground(pattern, Given.of({"$x": "4", "t.time": 5})) is not None
    assert ground(pattern, Given.of({"$x": "3", "t.time": 5})) is None
    assert ground(pattern, Given.of({"$x": "4", "t.time": 4})) is None


@pytest.mark.parametrize("start", chunks(15, 15))
def test_random_absences_equal_brute_force(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + 15):
        seen.update(check_absence(make_absence_case(Random(f"absence:{seed}"))))
    assert min(seen["row never"], seen["row possible"], seen["row true"]) > 5
    assert seen["possible"] > 5


def test_a_wrong_verdict_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    document = f"<r><p>{CALL.format('f', '')}</p><q>{CALL.format('g', '')}</q></r>"
    case = AbsenceCase(document, OPEN, steps=(("f", "<a><k>1</k></a>", 1),))
    assert check_absence(case)["row possible"] > 0
    assert "match /r[p/a/k/$x] return $x" in [each.query for each in smaller_absences(case)]
    monkeypatch.setattr(Outlook, "status", lambda *_: Truth.NEVER)
    with pytest.raises(AssertionError, match="the status of"):
        check_absence(case)


_TYPED = """root: shop  shop -> |orders| = 1 & |shipped| = 1  orders -> |order| >= 0 & |o| >= 0
shipped -> |order| <= 1 & |s| >= 0  order -> |oid| = 1 & |client| = 1  oid -> |text()| = 1
client -> |text()| <= 1  call o root: order  call s root: order"""


def test_absence_under_types() -> None:
    """POSSIBLE is shown by valid messages; what no future brings, no valid one does."""
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
    shop = "<shop><orders>{}</orders><shipped>{}</shipped></shop>"
    doc = Document(shop.format(call.format("o"), call.format("s")), types=_TYPED)
    view = doc.watch("match /shop[orders/order/oid/$x][not(shipped/order/oid/$x)] return $x")
    order = "<order><oid>17</oid><client/></order>"
    assert str(view.why_not({"x": "17"})) == f"possible\n  o can still bring {order}"
    assert [one.row for one in view.possible()] == [{"x": None}]
    doc.feed("o", order)
    assert view.status({"x": "17"}) is Truth.TRUE
    doc.feed("s", order)
    assert view.status({"x": "17"}) is Truth.NEVER
    assert view.truth is Truth.POSSIBLE


# Any coefficients, any number of times ------------------------------------------------------------


def linear(terms: dict[str, int], operator: str, bound: int) -> str:
    """A constraint as it is written; `terms` may hold zeros."""
    left = " + ".join(f"{factor}*{name}" for name, factor in terms.items() if factor > 0) or "0us"
    right = " + ".join(f"{-factor}*{name}" for name, factor in terms.items() if factor < 0)
    sign, size = ("+", bound) if bound >= 0 else ("-", -bound)
    return f"{left} {operator} {right or '0us'} {sign} {size}us"


def is_met(terms: dict[str, int], operator: str, bound: int, times: dict[str, int]) -> bool:
    total = sum(factor * times[name] for name, factor in terms.items() if factor)
    return compare_numbers(total, operator, bound)


def can_come(
    there: dict[str, list[int]], clock: int, where: list[tuple[dict[str, int], str, int]]
) -> bool:
    """Whether times for t and v are such that no c that is there fits; more c would not help."""
    later = range(clock, clock + 60)
    inside = [each for each in where if each[0]["u"]]
    for t, v in product([*there["a"], *later], [*there["b"], *later]):
        if all(is_met(*each, {"t": t, "v": v, "u": 0}) for each in where if not each[0]["u"]):
            found = ({"t": t, "v": v, "u": u} for u in there["c"])
            if not any(all(is_met(*each, times) for each in inside) for times in found):
                return True
    return False


def test_oracle_not_with_any_coefficients() -> None:
    """P2 theorem 6 beside `not`: truth and deadlines, against all times up to a horizon."""
    random = Random(8)
    seen: Counter[object] = Counter()
    for _ in range(cases(40)):
        there = {name: sorted(random.sample(range(6), random.randint(0, 2))) for name in "abc"}
        tree = document("r[?f]")
        arrivals = sorted((time, name) for name, times in there.items() for time in times)
        for time, name in arrivals:
            feed(tree, "f", name, time / 1_000_000)
        where = []
        for names in random.choice((("tvu",), ("tv", "tvu"), ("tv", "vu"), ("t", "tu"))):
            terms = {n: random.choice((-3, -2, 2, 3, 1)) if n in names else 0 for n in "tvu"}
            where.append((terms, random.choice(("<=", ">=", "=")), random.randint(-6, 12)))
        written = ", ".join(linear(*each) for each in where)
        pattern = parse_pattern(f"match /r[a#t][b#v][not(c#u)] where {written}")
        outlook = Outlook(tree, pattern)
        clock = tree.clock
        possible = can_come(there, clock, where)
        seen[outlook.truth] += 1
        assert (outlook.truth is not Truth.NEVER) is possible, (written, there)
        if outlook.truth is Truth.POSSIBLE:
            until = [one.deadline for one in outlook.possible()]
            known = [int(each) for each in until if each is not None]
            if len(known) == len(until):
                last = max(known)
                assert can_come(there, last, where), (written, there, last)
                assert not can_come(there, last + 1, where), (written, there, last)
                seen["deadlines"] += 1
    assert min(seen[truth] for truth in Truth) > 1, seen
    assert seen["deadlines"], seen


def test_a_possible_row_whose_times_all_hold_already_is_not_listed() -> None:
    doc = Document("<r>" + "".join(f"<{s}>{CALL.format(s, '')}</{s}>" for s in "fgn") + "</r>")
    doc.feed("f", "<a><k>1</k></a>", at=3)
    doc.feed("g", "<a><k>1</k></a>", at=3)
    query = "match /r[not(n/a/k/$x)][f/a/k/$x#t][g/a/k/$x#u] where t = u return $x, u.time"
    found = Outlook(maintained(doc).nodes(), parse_pattern(query)).possible()
    assert [tuple(one.row.values()) for one in found] == [(None, None)]


def test_rows_of_joins_with_not_by_brute_force_over_messages() -> None:
    """Law 4; more cases by `python -m lab fuzz --law ground`."""
    seen: Counter[str] = Counter()
    for seed in range(cases(24)):
        seen += check_ground(make_ground_case(Random(seed)))
    kinds = ("row true", "row possible", "row never", "never", "dropped")
    assert min(seen[kind] for kind in kinds) > 1, seen
    assert seen["questions"] > 1500


def test_a_row_that_missed_its_deadline_is_not_never_again_when_a_message_blocks_it() -> None:
    parts = (Branch("f", "x", name="t1"), Branch("g", "z", "x", name="t2"))
    steps = (Message("f", "1", "1", False, 2), Message("n", "1", "3", True, 5))
    case = GroundCase(parts, (Branch("n", "x"),), ("x",), (), steps, within=2)
    assert check_ground(case)["row never"]


def test_a_final_row_that_shows_a_time_never_returns() -> None:
    document = f"<r><p>{CALL.format('f', '')}</p><q>{CALL.format('g', '')}</q></r>"
    query = "match /r[p/a[k/$x#t]][not(q/d#s[k/$x])] where t - s <= 1us return $x, t.time"
    steps = (("f", "<a><k>1</k></a>", 1), ("g", "<d><k>1</k></d>", 2))
    assert check_absence(AbsenceCase(document, query, steps))["delete True, never"] == 1


def test_a_way_that_a_hidden_value_blocks_is_not_listed() -> None:
    # Law `prospects`, seed 5560095: $x = 1 is blocked, and with $x = 2 the key of g is used.
    case = ProspectsCase(
        parts=3,
        query="match /r[not(n/a/k/$x)][f/a/y/$x][g/a[k/$x]/y/$y][h/a/k/$y] return $y",
        facts=("key g/a by k trusted",),
        inside=(),
        steps=(
            ("g", "<a><k>2</k><y>2</y></a>", 2),
            ("f", "<a><y>2</y></a>", 3),
            ("f", "<a><y>1</y></a>", 4),
            ("n", "<a><k>1</k></a>", 5),
        ),
    )
    doc = Document(case.document, facts=case.facts)
    for stream, content, time in case.steps:
        doc.feed(stream, content, at=time)
    found = Outlook(maintained(doc).nodes(), parse_pattern(case.query)).possible()
    listed = {(one.row["y"], "".join(need.stream for need in one.needs)) for one in found}
    assert listed == {(None, "fgh"), ("2", "h")}
