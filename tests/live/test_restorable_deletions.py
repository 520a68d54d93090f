"""Deletions of what a stream can bring again: no possible rows are computed, and none is missed.

Each case is run twice: as it is, and with the possible rows compared for every deletion.
"""

from unittest.mock import patch

import pytest

from axlog.future.restoration import can_bring_again
from axlog.future.scenario_tracker import ScenarioTracker
from axlog.live import streams
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Options
from axlog.query.truth import Truth

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}" {}/>'
LIMITED = CALL.format("c", 'most="1"')
A, B = CALL.format("a", 'deletes="yes"'), CALL.format("b", "")
SHOP = f"<r><x><e>0</e>{A}</x><y>{B}</y></r>"
CASES = {
    "a join": (SHOP, "match /r[x/e/$v][y/e/$v] return $v", (), False),
    "one stream": (SHOP, "match //e/$v return $v", (), False),
    "a time": (
        SHOP.replace("</r>", f"<z>{CALL.format('c', '')}</z></r>"),
        "match /r[x/e/$v#s][y/e/$v#t][z/e/$v] where t - s >= 0s return $v", (), True,
    ),
    "a time shown": (SHOP, "match /r[x/e#s/$v][y/e/$v] return $v, s.time", (), True),
    "an id": (SHOP, "match /r[x/e#n/$v][y/e/$v] return n.id, $v", (), True),
    "a key": (SHOP, "match /r[x/e[k/$k]/f/$v][y/e/$v] return $k, $v",
              ("key x/e by k trusted",), True),
    "a call inside": (
        f'<r><x><e>1<g>{CALL.format("c", "")}</g></e>{A}</x><y>{B}</y></r>',
        "match /r[x/e/g/h/$v][y/e/$v] return $v", (), False,
    ),
    "a call inside that feeds": (
        f'<r><x><e>1<g><h>0</h>{LIMITED}</g></e>{A}</x><y>{B}</y></r>',
        "match /r[x/e/g/h/$v][y/e/$v] return $v", (), True,
    ),
    "few trees": (
        SHOP.replace('deletes="yes"', 'deletes="yes" most="3"'),
        "match /r[x/e/$v][y/e/$v] return $v", (), True,
    ),
    "only deletes": (
        SHOP.replace('deletes="yes"', 'deletes="only"'),
        "match /r[x/e/$v][y/e/$v] return $v", (), True,
    ),
    "a value shown": (SHOP, "match /r[x/e#n/$v][y/e/$v] return n.val, $v", (), True),
    "a content shown": (SHOP, "match /r[x/e#n/$v][y/e/$v] return n.cont, $v", (), True),
    "a label shown": (SHOP, "match /r[x/*#n/$v][y/e/$v] return n.label, $v", (), False),
    "a last moment": (SHOP, "match /r[x/e#s/$v][y/e/$v] where s <= 2s return $v", (), True),
    "a value above": (SHOP, "match /r[x = $v][y/e/$v] return $v", (), True),
}  # fmt: skip


def run(name: str) -> tuple[list[object], int]:
    """The changes of a case, and how often all scenarios were computed."""
    text, query, facts, _ = CASES[name]
    made = 0
    begin = ScenarioTracker.__init__

    def counting(self: ScenarioTracker, *given: object) -> None:
        nonlocal made
        made += 1
        begin(self, *given)  # type: ignore[arg-type]

    doc = Document(text, views={"v": query}, facts=facts, options=Options(never="kept"))
    found: list[object] = []
    time = 0.0

    def note(changes: object) -> None:
        found.append([(c.op, dict(c.row), c.time, c.final) for c in changes])  # type: ignore[attr-defined]

    with patch.object(ScenarioTracker, "__init__", counting):
        for number in range(3):
            time += 1
            is_bringing = 'deletes="only"' not in text
            if is_bringing:
                note(doc.feed("a", f"<e>{number}</e>", at=time))
            if is_bringing and "most" not in text:
                note(doc.feed("a", f"<e><k>{number}</k><f>{number}</f></e>", at=time))
            if "<z>" in text:
                note(doc.feed("b", f"<e>{number}</e>", at=time))
            note(doc.delete("a", f'match /e/"{number}"', at=time))
            note(doc.delete("a", f'match /e[k/"{number}"]', at=time))
        note(doc.delete("a", "match /e", at=time + 1))
        note(doc.feed("b", "<e>1</e>", at=time + 2))
        during = made
        note(doc.end("a", at=time + 3))
        note(doc.end("b", at=time + 4))
    return found, during


def test_a_one_shot_call_brings_all_again_in_its_one_message() -> None:
    call = CALL.format("a", 'deletes="yes" mode="one-shot"')
    text = f"<r><x><e>1</e><e>2</e>{call}</x><y>{B}</y></r>"
    query = 'match /r[x/e/"1"][x/e/"2"][y/e/$v] return $v'
    doc = Document(text, views={"v": query}, options=Options(never="kept"))
    with patch.object(ScenarioTracker, "__init__", side_effect=AssertionError):
        assert doc.delete("a", 'match /e/"1"', at=1) == []
        assert doc.delete("a", 'match /e/"2"', at=2) == []
    assert doc.view("v").truth is Truth.POSSIBLE
    doc.feed("a", "<e>1</e><e>2</e>", at=3)
    assert [c.op for c in doc.feed("b", "<e>3</e>", at=4)] == ["insert"]


def test_references_and_calls_are_compared() -> None:
    tree = maintained(Document(SHOP)).tree
    call = tree.calls()["a"]
    (element,) = (n for n in tree.children(tree.parent(call)) if n != call)
    assert can_bring_again(tree, "a", [element])
    assert not can_bring_again(tree, "a", [element, call])
    fact = "every y/e by k refers x/e by k trusted"
    assert not can_bring_again(maintained(Document(SHOP, facts=(fact,))).tree, "a", [element])


@pytest.mark.parametrize("name", CASES)
def test_differential_deletions_with_and_without_comparison(name: str) -> None:
    found, made = run(name)
    with patch.object(streams, "can_bring_again", lambda *given: False):
        expected, made_always = run(name)
    assert found == expected
    assert made_always
    if not CASES[name][3]:
        assert made < 2
