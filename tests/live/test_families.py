"""Views that differ in constants share a plan, and have what they have alone."""

from dataclasses import asdict
from random import Random

import pytest

import axlog
from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import QueryError
from axlog.live.internals import maintained
from axlog.live.log_records import settings_of
from axlog.live.recovery import load_parts, snapshot_parts
from lab.laws.shared_cases import SharedCase, make_shared_case
from lab.laws.shared_law import check_shared

QUERY = (
    'match /document[orders/order[client/"{}"]/oid/$x#o][shipped/order/oid/$x#s]'
    " where s - o > 0 and s - o <= 5 return $x"
)
ALERT = "match /document/orders/order[price > {}]/oid/$x return $x"


def order(client: str, oid: int, price: int = 1) -> str:
    return f"<order><client>{client}</client><oid>{oid}</oid><price>{price}</price></order>"


def watched(count: int, query: str = QUERY, **options: object) -> axlog.Document:
    doc = axlog.Document(streams=["orders", "shipped"], options=axlog.Options(**options))  # type: ignore[arg-type]
    for number in range(count):
        doc.watch(query.format(number), f"v{number}")
    return doc


def told(changes: list[axlog.Change]) -> list[tuple[str | None, str, tuple[object, ...]]]:
    return [(change.view, change.op, tuple(change.row.values())) for change in changes]


@pytest.mark.parametrize("seed", range(12))
def test_members_have_what_they_have_alone(seed: int) -> None:
    check_shared(make_shared_case(Random(seed)))


COUNTS = 'match //a[k/"{}"]/x/$x return $x, count() as n'
JOINED = 'match /r[p/a[k/"{}"]/x/$x][q/b/x/$x] return $x'
EITHER = 'match /r[p/a[k/"{}"]/x/$x][q/b/x/$x or q/b/k/$x] return $x'
NUMBERS = "match /r/p/a[n >= {}][n < {}]/x/$x return $x"
WITHIN = (
    'match /r[p/a[k/"{}"]/x/$x#t][q/b/x/$x#u] where u - t >= -5 and u - t <= 2 return $x, t.time'
)
B = "<b m='1'><k>2</k><n>2</n><x>1</x></b>"


def fed(k: int, x: int, at: int) -> tuple[str, str, str, int]:
    return "feed", "p", f"<a><k>{k}</k><x>{x}</x></a>", at


THREE = 'match /r[p/a[k/"{}"]/x/$x][q/b/x/$x][q/b/k/$x] return $x'

IN_TIME = 'match /r[p/a[k/"1"]/x/$x#t][q/b/x/$x#u]'
UNTIL = 'match /r[p/a[k/"1"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u <= {} return $x'
TOTAL = "match //a/x/$x return count() as n having n != {} order by n limit 1"
BOTH_WAIT = (
    'match /r[p/a[k/"2"]/x/$x#t][q/b[k/"2"]/x/$x#u] where u - t <= 2 and t - u <= 2 return $x'
)
FOUND = {
    "questions that a shared plan cannot decide without messages are refused": SharedCase(
        (
            ("watch", "v3", 'match /r[p/a/x/$x][q/b/x/$x][//a/k/"3"] return $x'),
            ("watch", "v4", 'match /r[p/a/x/$x][q/b/x/$x][//a/k/"1"] return $x'),
            ("feed", "p", "<a m='2'><k>2</k><n>3</n><x>2</x></a>", 4),
            ("end", "p", 6),
            ("ask",),
        ),
        facts=("key p/a by x trusted",),
        options=(("collect", "off"), ("keep", "needed"), ("never", "kept")),
    ),
    "views whose join of three gives never changes share a plan": SharedCase(
        (
            ("watch", "v1", THREE.format(1)),
            ("open", "q"),
            ("watch", "v3", THREE.format(2)),
            ("end", "p", 3),
        ),
        options=(("collect", "state"), ("keep", "all"), ("never", "joins")),
        open=("p",),
    ),
    "the status of a member with steps is that of its own constants": SharedCase(
        (
            ("watch", "v1", COUNTS.format(2)),
            ("watch", "v2", COUNTS.format(3)),
            ("watch", "v3", COUNTS.format(1)),
            fed(3, 3, 1),
            ("ask",),
        ),
    ),
    "without messages only the join of a view alone knows its truth": SharedCase(
        (
            ("watch", "v1", JOINED.format(1)),
            ("watch", "v2", JOINED.format(2)),
            ("feed", "q", B, 5),
            ("ask",),
            fed(1, 2, 6),
            ("ask",),
        ),
        ("key p/a by x trusted", "key q/b by x trusted"),
        (("collect", "off"), ("keep", "needed"), ("never", "off")),
    ),
    "a verdict lasts while messages do not concern it": SharedCase(
        (
            ("watch", "v1", EITHER.format(2)),
            ("watch", "v2", EITHER.format(2)),
            ("ask",),
            ("feed", "q", B, 2),
            ("ask",),
        ),
        options=(("collect", "state"), ("keep", "needed"), ("never", "all")),
    ),
    "a verdict lasts in a family of thresholds": SharedCase(
        (
            ("watch", "v1", NUMBERS.format(1, 2)),
            ("watch", "v2", NUMBERS.format(3, 3)),
            ("ask",),
            ("feed", "q", B, 2),
            ("ask",),
        ),
        options=(("collect", "state"), ("keep", "needed"), ("never", "all")),
    ),
    "a family whose members get changes of their own from a join is dissolved": SharedCase(
        (
            *(("watch", f"v{k}", WITHIN.format(k)) for k in (1, 2, 3)),
            ("open", "p"),
            ("open", "q"),
            fed(2, 1, 1),
            ("feed", "q", B, 2),
            ("ask",),
            fed(3, 1, 3),
            ("watch", "v4", WITHIN.format(3)),
            ("batch", False, (fed(1, 1, 4),)),
            ("advance", 9),
            ("ask",),
        ),
        open=(),
    ),
    "deadlines of members pass with a message that no view looks for": SharedCase(
        (
            ("watch", "v1", f"{IN_TIME} where u - t >= 1.5 and u - t <= 3 return $x, t.time"),
            ("watch", "v2", f"{IN_TIME} where u - t >= 2 and u - t <= 4 return $x, t.time"),
            ("feed", "p", "<a><k>1</k><x>3</x></a>", 4),
            ("feed", "o", "<c/>", 9),
        ),
        options=(("collect", "state"), ("keep", "all"), ("never", "joins")),
    ),
    "members share a plan that pays off no more since a stream ended": SharedCase(
        (
            ("watch", "v1", "match /r[p/a[n > 1]/x/$x][q/b[n <= 2]/x/$x] return $x"),
            ("watch", "v2", "match /r[p/a[n > 2]/x/$x][q/b[n <= 1]/x/$x] return $x"),
            ("end", "p", 4),
            ("feed", "q", B, 5),
            ("batch", False, (fed(2, 1, 5),)),
            ("ask",),
        ),
        ("key p/a by x trusted", "key q/b by x trusted"),
        (("collect", "off"), ("keep", "needed"), ("never", "all")),
    ),
    "a value comes again after the deadline of its row": SharedCase(
        (
            ("watch", "v1", BOTH_WAIT),
            ("watch", "v2", BOTH_WAIT),
            ("feed", "p", "<a><k>2</k><x>3</x></a>", 8),
            ("feed", "q", "<b><k>2</k><x>3</x></b>", 17),
            ("end", "p", 29),
        ),
        ("key p/a by x trusted", "key q/b by x trusted"),
        (("collect", "off"), ("keep", "needed"), ("never", "joins")),
        is_requested=True,
    ),
    "a plan that would not be chosen now is restored with its rows": SharedCase(
        (
            *(("watch", f"v{k}", UNTIL.format(k)) for k in (3, 1.5)),
            ("end", "q", 8),
            ("feed", "p", "<a><k>3</k><x>3</x></a>", 13),
            ("restart",),
            ("ask",),
        ),
        options=(("collect", "state"), ("keep", "needed"), ("never", "all")),
        open=("p", "q"),
    ),
    "a join that was not chosen gives no changes after a restart either": SharedCase(
        (
            *(("watch", f"v{k}", JOINED.format(k)) for k in (2, 3)),
            ("restart",),
            ("end", "p", 23),
        ),
        options=(("collect", "state"), ("keep", "all"), ("never", "kept")),
        open=("p", "q"),
    ),
    "a stream ends in the instant in which a view of the same join is added": SharedCase(
        (
            ("watch", "v1", f"{IN_TIME} where u - t >= 0 return $x"),
            ("end", "q", 13),
            ("watch", "v2", f"{IN_TIME} where u - t >= 0 return $x"),
            ("feed", "p", "<a><k>3</k><x>2</x></a>", 17),
        ),
        options=(("collect", "off"), ("keep", "all"), ("never", "all")),
        open=("p", "q"),
    ),
    "a stream ends in the instant of a snapshot": SharedCase(
        (
            ("watch", "v1", f"{IN_TIME} where u - t >= 0 and u - t < 2 return $x"),
            ("end", "q", 7),
            ("restart",),
            ("feed", "p", "<a><k>1</k><x>2</x></a>", 33),
        ),
        options=(("collect", "state"), ("keep", "all"), ("never", "kept")),
        open=("p", "q"),
    ),
    "another view reads a stream that replaces": SharedCase(
        (
            ("watch", "v1", THREE.format(2)),
            ("watch", "v2", 'match /r[p/a[k/"2"]/x/$x][q/b/x/$x][o/c/x/$x] return $x'),
            ("end", "q", 12),
        ),
        ("key q/b by x trusted",),
        (("collect", "state"), ("keep", "all"), ("never", "kept")),
        attributes=(("o", 'replace="x"'),),
    ),
    "the row of no input is not in an order behind groups that members share": SharedCase(
        (
            *(("watch", f"v{k}", TOTAL.format(k)) for k in (2, 3)),
            fed(1, 1, 7),
            fed(1, 2, 8),
            fed(1, 2, 9),
        ),
        options=(("collect", "state"), ("keep", "all"), ("never", "off")),
    ),
    "a snapshot counts the messages of a stream that has no call yet": SharedCase(
        (
            ("watch", "v1", JOINED.format(1)),
            ("feed", "q", B, 5),
            ("restart",),
            fed(1, 1, 7),
            ("open", "q"),
            ("feed", "q", B, 11),
        ),
        options=(("collect", "state"), ("keep", "all"), ("never", "kept")),
        open=("p",),
    ),
    "a family is dissolved in a batch that is rolled back": SharedCase(
        (
            *(("watch", f"v{k}", WITHIN.format(k)) for k in (1, 2, 3)),
            ("open", "p"),
            ("open", "q"),
            ("batch", False, (fed(2, 1, 1),)),
            fed(3, 1, 1),
            ("feed", "q", B, 2),
            ("ask",),
        ),
        open=(),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_cases_that_were_found(name: str) -> None:
    check_shared(FOUND[name])


@pytest.mark.parametrize(
    "query",
    [
        'match //a#t[k/"{}"] return t.val',
        'match //a#t[k/"{}"] return t.id',
        'match //a#t[k/"{}"] return t.val, count() as n having n >= 1',
        'match //a#t[k/"{}"] return t.cont, count() as n',
    ],
)
@pytest.mark.parametrize(
    "statements",
    [
        ("replace value of node (//x)[2] with '9'", "insert node <k>1</k> into (//a)[2]"),
        ("delete nodes (//a)[2]",),
        ("rename node (//a)[2] as 'b'",),
    ],
)
def test_rows_that_show_nodes_follow_them_though_nobody_subscribes(
    query: str, statements: tuple[str, ...]
) -> None:
    found: list[list[str]] = []
    items = "".join(f"<a><k>{n % 3}</k><x>{n}</x></a>" for n in range(6))
    for share_from in (2, None):
        doc = axlog.parse(f"<r>{items}</r>")
        maintained(doc).families.share_from = share_from
        for number in range(3):
            doc.watch(query.format(number), f"v{number}")
        changes = [change for each in statements for change in doc.update(each)]
        views = [doc.view(f"v{number}").rows() for number in range(3)]
        found.append([*sorted(map(repr, changes)), *map(repr, views)])
        assert bool(maintained(doc).families.members) == (share_from is not None)
    assert found[0] == found[1]


def test_members_of_a_dissolved_family_keep_their_constants() -> None:
    doc = axlog.Document("<r><p/><q/></r>")
    for number in range(9):
        doc.watch(WITHIN.format(number), f"v{number}")
    inside = maintained(doc)
    assert len(inside.views) == 1
    for stream in ("p", "q"):
        call = f'<ax:call xmlns:ax="urn:axlog" stream="{stream}"/>'
        doc.update(f"insert node {call} into /r/{stream}")
    doc.feed("p", "<a><k>7</k><x>1</x></a>", at=1)
    assert not inside.families.by_shape
    assert list(inside.views) == [f"v{number}" for number in range(9)]
    assert told(doc.feed("q", "<b><x>1</x></b>", at=2)) == [("v7", "insert", ("1", 1))]
    assert doc.view("v7").explain().shared is None
    assert [view.query.text for view in inside.views.values()] == [
        WITHIN.format(number) for number in range(9)
    ]
    assert [doc.view(f"v{number}").status({"x": "1"}).value for number in (6, 7)] == [
        "possible",
        "true",
    ]


def test_a_view_that_is_not_watched_any_more_still_has_its_query() -> None:
    doc = watched(10)
    late = doc.watch(QUERY.format(50), "late")
    doc.feed("orders", order("50", 17), at=1)
    doc.feed("shipped", "<order><oid>17</oid></order>", at=2)
    assert len(late) == 1
    doc.unwatch("late")
    assert late.explain().query == QUERY.format(50)
    assert late.explain().shared is None


def test_views_of_one_shape_are_one_program() -> None:
    doc = watched(40)
    assert len(maintained(doc).views) == 1
    assert list(doc.views) == [f"v{number}" for number in range(40)]
    doc.feed("orders", order("3", 17), at=1)
    assert told(doc.feed("shipped", "<order><oid>17</oid></order>", at=2)) == [
        ("v3", "insert", ("17",))
    ]
    assert [row["x"] for row in doc.view("v3")] == ["17"]
    assert len(doc.view("v4")) == 0


def test_few_views_stay_alone() -> None:
    assert len(maintained(watched(7)).views) == 7


def test_views_stay_alone_where_rows_that_nobody_watches_would_be_kept() -> None:
    assert len(maintained(watched(9, keep="needed")).views) == 9
    assert len(maintained(watched(9, share="off")).views) == 9


def test_explain_names_the_plan_its_parameters_and_its_views() -> None:
    shared = watched(9).view("v3").explain().shared
    assert shared is not None
    assert shared.startswith("one plan for 9 views: match /document[orders/order[client[text() = ")
    assert shared.endswith("parameters: $parameter~1 = a text, s - o <= a duration")


def test_a_threshold_concerns_the_views_below_the_value() -> None:
    doc = watched(40, ALERT)
    changes = doc.feed("orders", order("a", 17, price=3), at=1)
    assert told(changes) == [(f"v{number}", "insert", ("17",)) for number in range(3)]


def test_watching_one_more_evaluates_nothing_and_finds_its_rows() -> None:
    doc = watched(10)
    doc.feed("orders", order("77", 17), at=1)
    doc.feed("shipped", "<order><oid>17</oid></order>", at=2)
    engine = maintained(doc).engine
    before = engine.version, engine.visited
    late = doc.watch(QUERY.format(77), "late")
    assert [row["x"] for row in late] == ["17"]
    assert (engine.version, engine.visited) == before


def test_the_last_member_takes_the_plan_with_it() -> None:
    doc = watched(10)
    for number in range(10):
        doc.unwatch(f"v{number}")
    assert not maintained(doc).views
    assert not doc.views


def test_a_name_is_used_once() -> None:
    doc = watched(10)
    with pytest.raises(QueryError) as caught:
        doc.watch(QUERY.format(50), "v3")
    assert caught.value.code == "AX202"


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_snapshot_keeps_members_their_rows_and_positions(keep: str) -> None:
    doc = watched(12, keep=keep, share="always")
    doc.feed("orders", order("3", 17), at=1)
    doc.feed("orders", order("4", 18), at=1)
    doc.feed("shipped", "<order><oid>17</oid></order>", at=2)
    parts = snapshot_parts(
        doc, settings_of("", {"keep": keep, "share": "always"}, asdict(DEFAULT_LIMITS)), {}
    )
    again = load_parts(parts, 1).document
    assert len(maintained(again).views) == 1
    assert [row["x"] for row in again.view("v3")] == ["17"]
    assert again.view("v3").position == 1
    assert told(again.feed("shipped", "<order><oid>18</oid></order>", at=3)) == [
        ("v4", "insert", ("18",))
    ]


DURATION = QUERY.replace("<= 5", "<= {}")
KEYS = ("key orders/order by oid trusted", "key shipped/order by oid trusted")


def timed(keep: str) -> axlog.Document:
    """Twelve views of four clients with durations of 5, 6 and 7 seconds."""
    options = axlog.Options(keep=keep, share="always")  # type: ignore[arg-type]
    doc = axlog.Document(streams=["orders", "shipped"], facts=KEYS, options=options)
    for number in range(12):
        doc.watch(DURATION.format(number % 4, 5 + number // 4), f"v{number}")
    return doc


def test_views_with_different_durations_are_one_program() -> None:
    doc = timed("needed")
    assert len(maintained(doc).views) == 1
    assert doc.view("v3").explain().never == doc.view("v7").explain().never
    assert "reported by the join's tables" in str(doc.view("v3").explain())
    doc.feed("orders", order("3", 17), at=1)
    doc.feed("orders", order("2", 18), at=1)
    assert doc.view("v3").status({"x": "17"}) is axlog.Truth.POSSIBLE
    assert told(doc.advance(6.5)) == [("v2", "never", ("18",)), ("v3", "never", ("17",))]
    assert doc.view("v7").status({"x": "17"}) is axlog.Truth.POSSIBLE
    assert told(doc.feed("shipped", "<order><oid>17</oid></order>", at=7)) == [
        ("v7", "insert", ("17",)),
        ("v11", "insert", ("17",)),
    ]
    assert told(doc.advance(9)) == [("v6", "never", ("18",)), ("v10", "never", ("18",))]


@pytest.mark.parametrize("keep", ["all", "needed"])
def test_a_snapshot_keeps_the_deadlines_of_members(keep: str) -> None:
    doc = timed(keep)
    doc.feed("orders", order("3", 17), at=1)
    assert told(doc.advance(6.5)) == [("v3", "never", ("17",))]
    options = {"keep": keep, "share": "always", "facts": KEYS}
    parts = snapshot_parts(doc, settings_of("", options, asdict(DEFAULT_LIMITS)), {})
    again = load_parts(parts, 1).document
    assert len(maintained(again).views) == 1
    for each in (doc, again):
        assert told(each.advance(7.5)) == [("v7", "never", ("17",))]
        assert told(each.feed("shipped", "<order><oid>17</oid></order>", at=8)) == [
            ("v11", "insert", ("17",))
        ]


def test_a_member_with_another_duration_meets_the_rows_that_wait() -> None:
    doc = timed("needed")
    doc.feed("orders", order("3", 17), at=1)
    doc.watch(DURATION.format(3, 5.5), "late")
    doc.unwatch("v3")
    assert told(doc.advance(6.2)) == []
    assert told(doc.advance(6.7)) == [("late", "never", ("17",))]


def test_a_message_that_makes_views_leave_their_family_reaches_them() -> None:
    """A call that opens later ends the family just before the first message (seed 102678)."""
    case = SharedCase(
        (
            ("watch", "v2", 'match /r[p/a[k/"1"]/x/$x][not(q/b/x/$x)] return $x'),
            ("watch", "v3", 'match /r[p/a[k/"3"]/x/$x][not(q/b/x/$x)] return $x'),
            ("open", "p"),
            ("feed", "p", "<a m='2'><k>3</k><k>1</k><n>2</n><x>1</x></a>", 4),
        ),
        options=(("collect", "state"), ("keep", "all"), ("never", "kept")),
        open=("q",),
    )
    assert check_shared(case)["emitted insert"] == 2


def test_families_that_wait_in_one_join_have_their_own_deadlines() -> None:
    text = 'match /r[p/a[k/"{}"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t {} return $x, {}'
    steps = (
        ("watch", "v3", text.format("3", "<= 2", "t.time")),
        ("watch", "v5", text.format("3", "<= 2", "t.time")),
        ("watch", "v6", text.format("3", "< 2", "u.time")),
        ("watch", "v7", text.format("2", "< 1.5", "u.time")),
        ("feed", "p", "<a m='3'><k>3</k><k>1</k><n>1</n><x>3</x></a>", 27),
        ("feed", "p", "<a m='2'><k>1</k><n>2</n><x>2</x></a>", 31),
    )
    options = (("collect", "state"), ("keep", "all"), ("never", "all"))
    check_shared(SharedCase(steps=steps, facts=(), options=options, open=("p", "q"), is_many=False))


def test_deadlines_that_pass_before_one_message_are_reported_in_the_order_of_time() -> None:
    query = 'match /r[p/a[k/"{}"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= 2 return $x'
    steps = (
        ("watch", "v1", query.format(2)),
        ("watch", "v2", query.format(2)),
        fed(2, 3, 24),
        fed(2, 1, 25),
        ("end", "p", 26),
        ("feed", "q", B, 30),
    )
    options = (("collect", "state"), ("keep", "all"), ("never", "kept"))
    check_shared(SharedCase(steps, options=options))
    doc = axlog.Document(SharedCase(steps).document)
    doc.watch(query.format(2), "v")
    for x, at in ((3, 24), (1, 25)):
        doc.feed("p", f"<a><k>2</k><x>{x}</x></a>", at=at)
    doc.end("p", at=26)
    told = [(c.row["x"], c.position, c.microseconds) for c in doc.feed("q", B, at=30)]
    assert told == [("3", 1, 26_000_001), ("1", 2, 27_000_001)]


def test_members_whose_plan_was_asked_for_have_their_last_never_changes() -> None:
    doc = axlog.Document(
        SharedCase(()).document,
        options=axlog.Options(keep="needed", never="joins", share="always"),
    )
    for number in range(9):
        doc.watch(JOINED.format(number), f"v{number}")
    assert doc.view("v0").explain().shared is not None
    doc.feed("p", "<a><k>1</k><x>7</x></a>", at=1)
    doc.feed("q", "<b><x>8</x></b>", at=2)
    told = [(c.view, c.row["x"]) for c in doc.end("q", at=3)]
    assert told == [("v1", "7")]
    told = [(c.view, c.row["x"]) for c in doc.end("p", at=4)]
    assert told == [(f"v{number}", "8") for number in range(9)]


def test_a_row_that_waits_at_its_deadline_keeps_its_member_from_stopping() -> None:
    query = 'match /r[p/a[k/"{}"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= {} return $x'
    steps = (
        ("watch", "v1", query.format(1, 4)),
        ("watch", "v2", query.format(2, 3)),
        fed(1, 7, 1),
        ("end", "p", 5),
    )
    options = (("collect", "state"), ("keep", "all"), ("never", "kept"))
    assert check_shared(SharedCase(steps, options=options))["emitted never"] == 1
