"""Constants of every kind are parameters of one plan: members have what they have alone."""

import pytest

import axlog
from axlog.evaluate.joins import Bag
from axlog.live.internals import maintained
from axlog.views.family import FamilyCounting, Member
from lab.laws.shared_cases import SharedCase
from lab.laws.shared_law import check_shared

SHAPES = {
    "not equal": ('match //a[k != "{}"]/x/$x return $x', "$parameter~1 != a text"),
    "two comparisons": (
        "match //a[n != {}][n > {}]/x/$x return $x",
        "$parameter~1 != a number, $parameter~2 > a number",
    ),
    "a formula": ("match //a[n * 2 > {}]/x/$x return $x", "a condition on $parameter~1"),
    "having": (
        "match //a/x/$x return $x, count() as n having n > {}",
        "a constant in `having`",
    ),
    "having beside a text": (
        'match //a[k/"{}"]/x/$x return $x, count() as n having n > {}',
        "$parameter~1 = a text, a constant in `having`",
    ),
    "a computed condition": (
        "match //a[n/$n]/x/$x where $n + 1 > {} return $x",
        "a constant in `where`",
    ),
    "a limit": (
        'match //a[k/"{}"]/x/$x return $x order by $x limit {}',
        "$parameter~1 = a text, a `limit`",
    ),
    "the clock": (
        'match //a#t[k/"{}"]/x/$x where now - t >= {} return $x',
        "$parameter~1 = a text, a duration in a condition on `now`",
    ),
    "a date": ("match //a#t/x/$x where t >= {} return $x", "t >= a date"),
}


def message(k: int, n: int, x: int) -> str:
    return f"<a><k>{k}</k><n>{n}</n><x>{x}</x></a>"


def filled(query: str, number: int) -> str:
    return query.format(number % 3 + 5, number % 2 + 5)


@pytest.mark.parametrize("kind", SHAPES)
def test_views_that_differ_in_a_constant_share_a_plan(kind: str) -> None:
    query, parameters = SHAPES[kind]
    watches = [("watch", f"v{n}", filled(query, n)) for n in range(6)]
    feeds = [("feed", "p", message(n % 8, n % 8, n % 2), n) for n in range(14)]
    steps = (*watches[:4], *feeds[:7], *watches[4:], *feeds[7:], ("advance", 16), ("advance", 30))
    check_shared(SharedCase(steps, options=(("keep", "all"), ("never", "kept"))))
    doc = axlog.Document(streams=["p"])
    for number in range(8):
        doc.watch(filled(query, number), f"v{number}")
    shared = doc.view("v0").explain().shared
    assert shared is not None
    assert shared.startswith("one plan for 8 views: ")
    assert shared.endswith(f"parameters: {parameters}")
    assert len(maintained(doc).views) == 1


def test_time_alone_changes_rows_of_the_members_that_it_concerns() -> None:
    doc = axlog.Document(streams=["p"])
    for number in range(8):
        doc.watch(f"match //a#t/x/$x where now - t >= {number + 1} return $x", f"v{number}")
    doc.feed("p", message(1, 1, 7), at=0)
    told = [(change.view, change.op, change.microseconds) for change in doc.advance(2.5)]
    assert told == [("v0", "insert", 1_000_000), ("v1", "insert", 2_000_000)]
    doc.unwatch("v2")
    assert [change.view for change in doc.advance(5)] == ["v3", "v4"]


def test_a_member_about_the_clock_that_comes_later_meets_the_rows_that_wait() -> None:
    query = "match //a#t/x/$x where now - t >= {} return $x"
    doc = axlog.Document(streams=["p"])
    for number in range(8):
        doc.watch(query.format(number + 1), f"v{number}")
    doc.feed("p", message(1, 1, 7), at=0)
    doc.watch(query.format(2.5), "late")
    assert [change.view for change in doc.advance(2.7)] == ["v0", "v1", "late"]


def fail(doc: axlog.Document) -> None:
    with doc.batch():
        doc.feed("p", message(1, 1, 8), at=1)
        doc.update("rename node //z as 'y'")


def test_a_batch_that_is_rolled_back_leaves_the_moments_of_members() -> None:
    query = "match //a#t/x/$x where now - t >= {} return $x"
    doc = axlog.Document(streams=["p"])
    for number in range(8):
        doc.watch(query.format(number + 1), f"v{number}")
    doc.feed("p", message(1, 1, 7), at=0)
    with pytest.raises(axlog.AxlogError):
        fail(doc)
    assert [(c.view, c.row["x"]) for c in doc.advance(2)] == [("v0", "7"), ("v1", "7")]


def test_shapes_do_not_depend_on_places_in_the_text() -> None:
    doc = axlog.Document(streams=["p"])
    for number in range(8):
        text = "x" * number
        doc.watch(f'match //a[k/"{text}y"]/x/$x return $x, count() as n having n > 1', text)
    assert len(maintained(doc).views) == 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ('match //a[not(k/"1")]/x/$x return $x', "constants in `not` belong to the plan"),
        ('match //a[k/"1" or n > 2]/x/$x return $x', "constants in `or` belong to the plan"),
        ("match //a/x/$x return $x", None),
        ('match //a[k/"1"]/x/$x return $x', None),
    ],
)
def test_explain_says_which_constants_belong_to_the_plan(query: str, reason: str | None) -> None:
    explained = axlog.Document(streams=["p"]).watch(query).explain()
    assert explained.apart == reason
    assert (f"not shared  {reason}" in str(explained)) == (reason is not None)


def test_members_that_differ_in_having_share_groups_and_only_those_concerned_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handed: list[str] = []
    hand = FamilyCounting.hand

    def noted(self: FamilyCounting, member: Member, delta: Bag) -> None:
        handed.append(member.name)
        hand(self, member, delta)

    monkeypatch.setattr(FamilyCounting, "hand", noted)
    doc = axlog.Document(streams=["p"])
    for number in range(20):
        text = f"match //a[n/$n]/x/$x return $x, sum($n) as s having s > {number}"
        doc.watch(text, f"v{number}")
    doc.feed("p", message(1, 5, 1))
    assert handed == [f"v{number}" for number in range(5)]
    handed.clear()
    doc.feed("p", message(1, 2, 1))  # updates of five rows, two more rows
    assert handed == [f"v{number}" for number in range(7)]
    assert [row.values_ for row in doc.view("v6").rows()] == [("1", 7)]
    assert doc.view("v7").rows() == []
    assert "its groups are kept once" in str(doc.view("v1").explain().shared)
    doc.watch("match //a[n/$n]/x/$x return $x, sum($n) as s having s > 6.5", "late")
    assert [row.values_ for row in doc.view("late").rows()] == [("1", 7)]
