"""`never` changes of members of families: those of each view alone, whatever the join."""

from __future__ import annotations

from typing import Any

import pytest

import axlog
from axlog.live.internals import maintained
from axlog.live.maintained import MaintainedTree
from lab.laws.shared_cases import SharedCase, Step
from lab.laws.shared_law import check_shared

WITHIN = 'match /r[p/a[k/"1"]/x/$x#t][q/b/x/$x#u] where u - t >= 0 and {} return $x'
END: tuple[
    Step, ...
] = (  # of the stream of a row whose order was no match of a member, at the row's own instant
    ("watch", "v5", WITHIN.format("u - t < 2")),
    ("watch", "v6", WITHIN.format("u - t < 1.5")),
    ("feed", "p", "<a m='1'><k>3</k><n>2</n><x>1</x></a>", 6),
    ("feed", "q", "<b m='2'><k>1</k><n>1</n><x>1</x></b>", 7),
)
OPTIONS = (("collect", "state"), ("keep", "all"), ("never", "joins"))
KEYS = ("key p/a by x trusted", "key q/b by x trusted", "key o/c by x trusted")
SHAPES = {
    "three parts": 'match /r[p/a[k/"{}"]/x/$x][q/b/x/$x][o/c/x/$x] return $x',
    "texts in two of three parts": (
        'match /r[p/a[k/"{}"]/x/$x][q/b[k/"1"]/x/$x][o/c/x/$x] return $x'
    ),
    "numbers in three parts": "match /r[p/a[n > {}]/x/$x][q/b/x/$x][o/c/x/$x] return $x",
    "an order of three parts": (
        'match /r[p/a[k/"{}"]/x/$x#t][q/b/x/$x#u][o/c/x/$x#w]'
        " where u - t > 0 and u - t <= 4 and w - u > 0 return $x"
    ),
    "a part and a not": 'match /r[p/a[k/"{}"]/x/$x][not(o/c/x/$x)] return $x',
    "two parts and a not": 'match /r[p/a[k/"{}"]/x/$x][q/b/x/$x][not(o/c/x/$x)] return $x',
    "a number beside a not": "match /r[p/a[n > {}]/x/$x][not(o/c/x/$x)] return $x",
    "overdue": ('match /r[p/a[k/"{}"]/x/$x#t][not(q/b/x/$x)] where now - t >= 2 return $x'),
    "overdue, by different times": (
        'match /r[p/a[k/"1"]/x/$x#t][not(q/b/x/$x)] where now - t >= {} return $x'
    ),
    "overdue, with two parts": (
        'match /r[p/a[k/"{}"]/x/$x#t][o/c/x/$x][not(q/b/x/$x)] where now - t >= 2 return $x'
    ),
    "texts in both parts": 'match /r[p/a[k/"{}"]/x/$x][q/b[k/"1"]/x/$x] return $x',
    "a number in a part": "match /r[p/a[n > {}]/x/$x][q/b/x/$x] return $x",
    "a number in the part that waits": (
        "match /r[p/a[n > {}]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= 4 return $x"
    ),
    "a time that both parts wait": (
        'match /r[p/a[k/"{}"]/x/$x#t][q/b/x/$x#u] where u - t <= 4 and t - u <= 4 return $x'
    ),
    "durations": "match /r[p/a/x/$x#t][q/b/x/$x#u] where u - t >= 0 and u - t <= {} return $x",
    "durations that one of two parts waits": (
        "match /r[p/a/x/$x#t][q/b/x/$x#u] where u - t <= {} return $x"
    ),
    "durations that both parts wait": (
        "match /r[p/a/x/$x#t][q/b/x/$x#u] where u - t <= {0} and t - u <= {0} return $x"
    ),
    "durations and numbers": (
        "match /r[p/a[n > {0}]/x/$x#t][q/b/x/$x#u] where u - t >= 0 and u - t <= {0} return $x"
    ),
}


def message(stream: str, x: int, k: int, time: float) -> Step:
    name = {"p": "a", "q": "b", "o": "c"}[stream]
    return "feed", stream, f"<{name}><k>{k}</k><n>{k}</n><x>{x}</x></{name}>", time


def story(shape: str) -> tuple[Step, ...]:
    """Values that arrive for one view, for another, too late or never, and ends of streams."""
    watches = [("watch", f"v{n}", SHAPES[shape].format(n)) for n in (1, 2, 1)]
    watches = [(what, f"{name}.{at}", query) for at, (what, name, query) in enumerate(watches)]
    return (
        *watches,
        message("q", 1, 1, 1),
        message("o", 2, 1, 2),
        message("p", 1, 2, 3),  # the value of `q`, with the constant of the other view
        message("p", 2, 1, 4),
        message("q", 2, 2, 5),
        message("p", 3, 2, 6),
        message("o", 3, 1, 7),
        ("unwatch", "v1.2"),
        ("watch", "late", SHAPES[shape].format(2)),
        ("advance", 20),
        message("q", 4, 1, 21),
        message("p", 4, 1, 22),
        message("p", 5, 2, 23),
        ("ask",),
        ("end", "p", 24),
        message("o", 4, 1, 25),
        ("end", "q", 26),
        ("end", "o", 27),
        ("ask",),
    )


@pytest.mark.parametrize("facts", [(), KEYS, KEYS[:1], KEYS[1:]], ids=["", "keys", "p", "q, o"])
@pytest.mark.parametrize("shape", SHAPES)
def test_members_have_the_never_changes_that_they_have_alone(
    shape: str, facts: tuple[str, ...]
) -> None:
    case = SharedCase(story(shape), facts, OPTIONS, is_requested=True)
    seen = check_shared(case)
    assert seen["emitted never"] or "not" in shape
    check_shared(SharedCase(story(shape), facts, OPTIONS))


@pytest.mark.parametrize("shape", SHAPES)
def test_members_share_a_plan_although_they_have_never_changes(shape: str) -> None:
    case = SharedCase(story(shape)[:3], (), OPTIONS, is_requested=True)
    assert check_shared(case)["family join"] == 1


def test_a_value_that_arrives_for_another_member_is_used_up() -> None:
    options = axlog.Options(never="joins", share="always")
    doc = axlog.Document(SharedCase(()).document, facts=KEYS, options=options)
    shape = SHAPES["numbers in three parts"]
    views = [doc.watch(shape.format(n % 2 + 1), f"v{n}") for n in range(8)]
    doc.feed("q", "<b><n>1</n><x>7</x></b>")
    doc.feed("o", "<c><n>1</n><x>7</x></c>")
    changes = doc.feed("p", "<a><n>2</n><x>7</x></a>")
    told = [(change.view, change.op, change.row.values_) for change in changes]
    expected = [(f"v{n}", "never" if n % 2 else "insert", ("7",)) for n in range(len(views))]
    assert sorted(told) == expected
    assert "one plan for 8 views" in str(views[0].explain().shared)


@pytest.mark.parametrize("stream", ["p", "q"])
def test_a_member_whose_durations_exclude_each_other_never_could_have_a_row(stream: str) -> None:
    pattern = 'match /r[p/a[k/"1"]/x/$x#t][q/b/x/$x#u]'
    query = f"{pattern} where u - t >= {{}} and u - t <= {{}} return $x, t.time"
    bounds = [(1, 2), (2, 1.5), (1.5, 2), (2, 1)]
    watches = [("watch", f"v{n}", query.format(*each)) for n, each in enumerate(bounds)]
    steps = (*watches, message("p", 1, 2, 1), ("ask",), ("end", stream, 2), ("ask",))
    assert check_shared(SharedCase(steps, (), OPTIONS))["emitted never"] == 2


@pytest.mark.parametrize("facts", [(), KEYS, KEYS[:1], KEYS[1:2]], ids=["", "keys", "p", "q"])
@pytest.mark.parametrize("ends", [("q",), ("p",), ("q", "p")], ids=str)
def test_members_have_the_last_never_of_each_alone_when_a_stream_ends_at_a_row(
    facts: tuple[str, ...], ends: tuple[str, ...]
) -> None:
    steps = (*END, *(("end", stream, 7) for stream in ends), ("advance", 9))
    seen = check_shared(SharedCase(steps, facts, OPTIONS, is_requested=True))
    assert seen["emitted never"] == 2


ORDERED = 'match /r[p/a[k/"{}"]/x/$x#t][q/b/x/$x#u] where u - t > 0 and u - t <= {} return $x'


@pytest.mark.parametrize("longest", ["2d", "2"])
def test_texts_with_an_order_in_time_are_parsed_once(
    longest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[object] = []
    parse = MaintainedTree.parse

    def counted(*given: Any, **named: Any) -> Any:
        parsed.append(given)
        return parse(*given, **named)

    monkeypatch.setattr(MaintainedTree, "parse", counted)
    doc = axlog.Document(SharedCase(()).document)
    for number in range(40):
        doc.watch(ORDERED.format(number, longest), f"v{number}")
    assert len(maintained(doc).families.members) == 40
    assert len(parsed) < 16
    doc.watch('match /r[p/a[k/"7"]/x/$x#t][q/b/x/$x#u] where u - t > 1 return $x', "other")
    doc.feed("p", "<a><k>7</k><x>1</x></a>", at=1)
    changes = doc.feed("q", "<b><x>1</x></b>", at=2)
    assert [change.view for change in changes if change.op == "insert"] == ["v7"]


def test_members_with_a_bound_of_one_time_are_decided_after_the_end_as_alone() -> None:
    # Law `shared`, seed 240003932.
    query = "match /r[p/a[k/{}]/x/$x#t][q/b/x/$x#u] where u - t <= {} and t >= 7 return $x"
    steps: tuple[Step, ...] = (
        ("watch", "v1", query.format('"1"', 1.5)),
        ("watch", "v2", query.format('"2"', 2)),
        ("feed", "p", "<a m='2'><k>1</k><n>2</n><x>2</x></a>", 5),
        ("end", "p", 5),
        ("ask",),
    )
    options = (("keep", "needed"), ("never", "kept"))
    check_shared(SharedCase(steps, (), options, open=("p", "q")))
