"""Deletes of single nodes, straight to the views, against deletes as pending update lists."""

from random import Random
from re import findall
from typing import Any

import pytest

from axlog import Document, Options
from axlog.errors import AxlogError
from axlog.live import node_deletes
from axlog.live.internals import streams_of

TEXT = (
    '<r xmlns:ax="urn:axlog"><o><order><id>7</id><n>old</n></order>text<order><id>8</id></order>'
    '<ax:call stream="s" deletes="yes"/><ax:call stream="t" calls="3"/></o>'
    '<p><ax:call stream="u" deletes="yes"/></p></r>'
)
VIEWS = {
    "whole": "match /r/o/order#o[id/$x] return $x, o.id, o.cont",
    "strings": "match /r/o/order/id/$x return $x",
    "deep": "match //n#n/$x return n.id, $x, n.val",
    "join": "match /r[o/order#o/id/$x][p/order/id/$x] return o.id, $x",
    "absent": "match /r/o/order#o[id/$x][not(n)] return o.id, $x",
    "open": "match /r[o/order#o/id/$x][not(p/order/id/$x)] return o.id, $x",
    "either": "match /r/o/order#o[id/$x or n/$x] return o.id, $x",
    "groups": "match /r/o/order[id/$x]/n#n/$y return $x, n.val, count() as c",
    "top": "match /r/o/order#o/id/$x return $x, o.id order by $x limit 2",
    "pairs": "match /r/o/order#o[id/$x][n/$y] where $x != $y return o.val, $x, $y",
    "branches": "match /r[p/order/n/$y]//m#m/$x return m.id, $x, $y",
}
ABOVE = {
    "place": "match /r/o#o[order/id/$x] return $x, o.cont",
    "value": 'match /r/o#o[. = "text"] return o.id',
    "sibling": "match /r/o/order#o[id/$x] return o.time, $x",
}
PATTERNS = (
    'match /order[id/"{}"]', 'match /order[id/"{}"]', 'match /order[id/"{}"]',
    'match /order[id/"{}"]', 'match /order[id = "{}"]', "match /order[@k = '{}']",
    'match /order[id/"{}"][n/"{}"]', 'match //order[id/"{}"]', 'match //m/"{}"', "message {}",
    'match /other[id/"{}"]', "match /order", 'match /*[id/"{}"]', 'match //@k[. = "{}"]',
)  # fmt: skip
MESSAGES = (
    "<order><id>{}</id><n>{}</n></order>", "<order><id>{}</id><n>{}</n><n>{}</n></order>",
    '<order k="{}"><id>{}</id></order>',
    "<order><id>{}</id><n>t<m>{}</m></n><n>{}</n></order>", "<other><id>{}</id></other>",
    "<order><id>{}</id>" + "<n>{}</n>" * 80 + "</order>", "<!-- c --><order><id>{}</id></order>",
    '<order><id>{}</id><ax:call xmlns:ax="urn:axlog" stream="v{}"/></order>',
)  # fmt: skip
STATEMENTS = (
    "rename node /r/o/order[last()] as 'other'", "rename node /r/o/other[last()] as 'order'",
    "insert node 'text' before /r/o/order[1]", "rename node /r/o/order[1]/n[1] as 'm'",
    "insert node <n>{}</n> into /r/o/order[last()]", "delete nodes /r/o/order[id = '{}']",
    "replace value of node /r/o/order[1]/id[1] with '{}'", "delete nodes /r/o/text()",
)  # fmt: skip


def filled(random: Random, text: str, newest: int) -> str:
    """A text with numbers: mostly the newest or one of those before it."""
    while "{}" in text:
        number = max(0, newest - random.choice((0, 0, 0, 1, 1, 2, 5)))
        text = text.replace("{}", str(number), 1)
    return text


def outcome(doc: Document, action: str, *given: Any, **more: Any) -> object:
    """The changes of an update, or the code of its error."""
    try:
        changes = getattr(doc, action)(*given, **more)
    except AxlogError as error:
        return error.code
    return [
        (c.view, c.op, c.row, c.row.count, c.before, c.position, c.final, c.origin) for c in changes
    ]


def state(doc: Document, names: list[str]) -> object:
    rows = {name: [(row, row.count) for row in doc.view(name).rows()] for name in names}
    streams = {n: (s.messages, s.refused, s.microseconds) for n, s in doc.streams().items()}
    return rows, streams, doc.clock, doc.xml()


def long_way(doc: Document) -> None:
    """Let all deletes of nodes be pending update lists."""
    streams_of(doc)._node_deletes.apply = lambda *given: None  # type: ignore[method-assign]


@pytest.mark.parametrize("seed", range(30))
def test_differential_straight_deletes_of_nodes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr(node_deletes, "WORTH", random.choice((0, 2)))
    names = random.sample(sorted(VIEWS), random.randrange(1, 6))
    if random.random() < 0.4:
        names.append(random.choice(sorted(ABOVE)))
    views = {name: (VIEWS | ABOVE)[name] for name in names}
    options = Options(never=random.choice(("kept", "joins", "joins", "off", "off", "all")))
    short, long = (Document(TEXT, views=views, options=options) for _ in range(2))
    streams_of(short)
    long_way(long)
    has_statements = random.random() < 0.5
    plain, time, newest = random.random() < 0.7, 0.0, 0
    for step in range(60):
        time += random.choice((0, 1, 0.5) if plain else (0, 1, 0.5, -0.25))
        at, chance = random.choice((None, time)), random.random()
        if chance < 0.5:
            newest += random.random() < 0.8
            given = filled(random, random.choice(MESSAGES[:4] if plain else MESSAGES), newest)
            stream = random.choice("ssssssu" if plain else "sstu")
            found = [outcome(doc, "feed", stream, given, at=at) for doc in (short, long)]
        elif chance < 0.93 or (plain and not has_statements):
            pattern = random.choice(PATTERNS[:7] if plain else PATTERNS)
            if random.random() < 0.7:  # one that is there
                there = findall("<id>([0-9]+)</id>", short.xml())
                pattern = pattern.replace("{}", random.choice(there or ["0"]), 1)
            given = filled(random, pattern, newest)
            stream = random.choice("ssssssu" if plain else "ssut")
            found = [outcome(doc, "delete", stream, given, at=at) for doc in (short, long)]
        else:
            given = filled(random, random.choice(STATEMENTS), newest)
            found = [outcome(doc, "update", given) for doc in (short, long)]
        assert found[0] == found[1], (step, given)
        if random.random() < 0.1:
            assert state(short, names) == state(long, names), (step, given)
    assert state(short, names) == state(long, names)
    again = Document(short.xml(), views=views)  # the definition of rows: a new document
    for name in set(names) - {"sibling", "place", "value"}:
        assert len(again.view(name)) == len(short.view(name)), name


JOINS = Options(never="joins")


def straight(doc: Document, number: int) -> int:
    """The number of deletes that go straight to the views, among those of these orders."""
    deletes, found = streams_of(doc)._node_deletes, 0
    apply = deletes.apply

    def counted(*given: Any) -> Any:
        nonlocal found
        changes = apply(*given)
        found += changes is not None
        return changes

    deletes.apply = counted  # type: ignore[assignment, method-assign]
    for each in range(100, 100 + number):
        doc.feed("s", f"<order><id>{each}</id><n>{each}</n></order>")
        doc.delete("s", f'match /order[id/"{each}"]')
    return found


def test_only_the_first_deletes_at_a_place_take_the_long_way() -> None:
    doc = Document(TEXT, views={"whole": VIEWS["whole"], "join": VIEWS["join"]}, options=JOINS)
    assert straight(doc, 20) == 20 - node_deletes.WORTH
    assert [row["x"] for row in doc.view("whole").rows()] == ["7", "8"]
    assert "<id>10" not in doc.xml()


def test_ids_have_the_labels_of_nodes_that_were_renamed() -> None:
    doc = Document(TEXT, views={"deep": VIEWS["deep"]}, options=JOINS)
    assert straight(doc, 10) == 10 - node_deletes.WORTH
    doc.feed("s", "<order><id>1</id><n>2</n></order>")
    doc.update("rename node /r/o/order[id = '1'] as 'other'")
    (change,) = doc.delete("s", 'match /other[id/"1"]')
    assert change.row["n.id"].labels == ("r", "o", "other", "n")


def test_values_above_a_deleted_node_are_compared_again() -> None:
    doc = Document(
        TEXT,
        views={"value": 'match /r/o#o[. = "7oldtext8"] return o.id', "ids": VIEWS["strings"]},
        options=JOINS,
    )
    straight(doc, 10)
    doc.feed("s", "<order><id>1</id></order>")
    assert not doc.view("value").rows()
    changes = doc.delete("s", 'match /order[id/"1"]')
    assert [(c.view, c.op) for c in changes] == [("value", "insert"), ("ids", "delete")]
    assert len(doc.view("value").rows()) == 1


def test_indexed_values_above_a_deleted_node_are_found() -> None:
    """The value index of an element that contains the node follows."""
    doc = Document(TEXT, views={"whole": "match //id#i/$x return i.id, $x"}, options=JOINS)
    doc.update("delete nodes //box[. = 'none']")  # elements of this name are indexed from now on
    call = '<ax:call xmlns:ax="urn:axlog" stream="b" deletes="yes"/>'
    doc.feed("t", f"<box>a{call}</box>")
    for number in range(10):
        doc.feed("b", f"<id>{number}</id>")
        assert len(doc.delete("b", f'match /id/"{number}"')) == 1
    doc.update("insert node <seen/> into //box[. = 'a']")
    assert doc.xml().count("<seen") == 1
