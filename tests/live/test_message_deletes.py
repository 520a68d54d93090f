"""Deletes of messages that are not nodes yet, against deletes in the document."""

from random import Random

import pytest

from axlog import Document, Options
from axlog.errors import AxlogError
from axlog.live.internals import streams_of

TEXT = (
    '<r xmlns:ax="urn:axlog"><o><order><id>7</id><n>old</n></order>'
    '<ax:call stream="s" deletes="yes"/><ax:call stream="t"/></o>'
    '<p><ax:call stream="u" deletes="yes"/></p></r>'
)
VIEWS = {
    "ids": "match /r/o/order/id/$x return $x",
    "deep": "match //n/$x return $x",
    "times": "match /r/o/order#o[id/$x] return $x, o.time",
    "attributes": "match /r//order[@k = $k]/n/$x return $k, $x",
}
PATTERNS = (
    'match /order[id/"{}"]', "match /order[@k = '{}']", 'match /order[id/"{}"][n/"{}"]',
    'match /order[id = "{}"]', 'match /order[n = "{}"]/id', 'match /other[id/"{}"]',
    'match /order[n/m/"{}"]', 'match /*[id/"{}"]', "match /order", 'match //id/"{}"',
    'match /order[id/"{}" or n/"{}"]', 'match /order[id/"{}"][not n]', "message {}",
    'match //order[id/"{}"]', 'match //n[m/"{}"]', 'match /order[//m/"{}"]', 'match //n//m/"{}"',
    'match /order[id/text() = "{}"]', 'match /order/@k[. = "{}"]', 'match /order#o[id/"{}"]',
)  # fmt: skip
PLAIN = (*PATTERNS[:4], *(each for each in PATTERNS if "//" in each))
MESSAGES = (
    "<order><id>{}</id><n>{}</n></order>", '<order k="{}"><id>{}</id></order>',
    "<order><id>{}</id><n><m>{}</m>t</n><n>{}</n></order>", "<order><id>{}<!-- c --></id></order>",
    "<other><id>{}</id></other>", "<order><id> {} </id><id>{}</id></order>",
    "<!-- c --><order><id>{}</id></order>", "<order><id>{}</id></order><order><id>{}</id></order>",
    '<?xml version="1.0"?><order><id>{}</id></order>', "<order><id>&#{};</id></order>",
)  # fmt: skip


def filled(random: Random, text: str) -> str:
    while "{}" in text:
        text = text.replace("{}", str(random.choice((*range(48, 60), random.choice((7, 48))))), 1)
    return text


def outcome(doc: Document, action: str, stream: str, given: str, at: float | None) -> object:
    """The changes of an update, or the code of its error."""
    try:
        changes = getattr(doc, action)(stream, given, at=at)
    except AxlogError as error:
        return error.code
    return [(c.view, c.op, c.row, c.row.count, c.position, c.final, c.origin) for c in changes]


def state(doc: Document) -> object:
    rows = {name: [(row, row.count) for row in doc.view(name).rows()] for name in VIEWS}
    streams = {n: (s.messages, s.refused, s.microseconds) for n, s in doc.streams().items()}
    return rows, streams, doc.clock


@pytest.mark.parametrize("seed", range(40))
def test_differential_deletes_of_messages_and_of_nodes(seed: int) -> None:
    """One document keeps its messages aside; the other makes nodes of each before a delete."""
    random = Random(seed)
    options = Options(never=random.choice(("kept", "joins", "off")))
    short, long = (Document(TEXT, views=VIEWS, options=options) for _ in range(2))
    plain = random.random() < 0.7
    time = 0.0
    for step in range(60):
        time += random.choice((0, 1, 0.5) if plain else (0, 1, 0.5, -0.25))
        stream, at = random.choice("sstu"), random.choice((None, time))
        if random.random() < 0.6:
            given = filled(random, random.choice(MESSAGES[:3] if plain else MESSAGES))
            action = "feed"
        else:
            given = filled(random, random.choice(PLAIN if plain else PATTERNS))
            action, stream = "delete", "s" if plain else stream
            long.xml()
        found = outcome(short, action, stream, given, at)
        assert found == outcome(long, action, stream, given, at), (step, stream, given)
        if random.random() < 0.02:
            assert short.xml() == long.xml(), step
        if random.random() < 0.1:
            assert state(short) == state(long), step
    assert state(short) == state(long)
    assert short.xml() == long.xml()


def test_messages_are_deleted_without_becoming_nodes() -> None:
    doc = Document(TEXT, views={"ids": VIEWS["ids"]})
    engine = streams_of(doc).engine
    for number in range(1000, 3000):
        doc.feed("s", f"<order><id>{number}</id></order>")
        if number % 2:
            (change,) = doc.delete("s", f'match /order[id/"{number - 1}"]')
            assert (change.op, change.row["x"]) == ("delete", str(number - 1))
    left = [each for each in engine.aside if each is not None]
    assert len(left) == 1000
    for number in range(1001, 3000, 2):
        assert len(doc.delete("s", f'match /order[id/"{number}"]')) == 1
    assert len(engine.aside) <= 2 * 64 + 1  # places are given back
    assert doc.xml().count("<order>") == 1
    assert [row["x"] for row in doc.view("ids").rows()] == ["7"]


def test_a_comment_beside_a_deleted_message_stays() -> None:
    doc = Document(TEXT, views={"ids": VIEWS["ids"]})
    doc.feed("s", "<order><id>8</id></order>")
    doc.feed("s", "<!-- c --><order><id>9</id></order>")
    assert len(doc.delete("s", 'match /order[id/"9"]')) == 1
    assert "<!-- c -->" in doc.xml()
    assert "<id>9</id>" not in doc.xml()


def test_messages_that_came_between_deletes_of_another_place_are_found() -> None:
    """The places of messages are given anew while an index has not followed the last ones."""
    doc = Document(TEXT, views=VIEWS)
    doc.feed("s", "<order><id>first</id></order>")
    assert len(doc.delete("s", 'match /order[id/"first"]')) > 0
    for number in range(100):
        doc.feed("u", f"<order><id>{number}</id></order>")
    doc.feed("s", "<order><id>last</id></order>")
    for number in range(100):
        doc.delete("u", f'match /order[id/"{number}"]')
    found = doc.delete("s", 'match /order[id/"last"]')
    assert [(c.op, c.row["x"]) for c in found if c.view == "ids"] == [("delete", "last")]
