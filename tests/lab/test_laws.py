"""Laws 1, 2 and 8 (docs/design.md, section 12) on random cases.

Seeds give the bulk: the same cases on every machine, in chunks that the workers share;
`python -m lab fuzz` runs any number. Hypothesis draws the same kinds of cases and shrinks failures.
Law 8 is also tested on documents made for it: these assert what an update touched.
"""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axlog.document.loader import read_forest
from axlog.document.operations import Insert, Where
from axlog.live.document import Document, parse
from axlog.live.internals import maintained
from axlog.live.options import Options, Validate
from axlog.views.counting.engine import BLOCK
from axlog.views.counting.maintainer import Counting
from lab.laws.fixtures import fixture_of, play, read_fixture, write_fixture
from lab.laws.fuzz_cases import Case, less_of
from lab.laws.fuzzing import LAWS, run_case, shrink
from tests.amounts import cases, chunks

CHUNK = 25
CASES = {"1": 150, "2": 25, "8": 25}
CHUNKS = [(law, start) for law, count in CASES.items() for start in chunks(count, CHUNK)]


@pytest.mark.parametrize(("law", "start"), CHUNKS)
def test_differential_law_holds_for_seeds(law: str, start: int) -> None:
    failures = [f for seed in range(start, start + CHUNK) if (f := run_case(seed, law)) is not None]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


@pytest.mark.parametrize("law", ["1", "2", "4", "5", "8", "records"])
@settings(max_examples=cases(8))
@given(data=st.data())
def test_differential_law_holds_for_hypothesis(law: str, data: st.DataObject) -> None:
    random: Random = data.draw(st.randoms(use_true_random=False))
    LAWS[law].check(LAWS[law].make(random))


# Whether the fuzzer can see anything --------------------------------------------------------------


def broken_take(self: Counting, moved: dict[Any, int]) -> list[Any]:
    """A maintainer that forgets to tell about rows that leave."""
    return [change for change in _take(self, moved) if change.op != "delete"]


_take = Counting.take


def test_a_broken_maintainer_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "take", broken_take)
    found = [failure for seed in range(60) if (failure := run_case(seed, "1")) is not None]
    assert found
    failure = min(found, key=lambda f: len(f.case.steps))
    assert len(failure.case.patterns) == 1
    assert len(failure.case.steps) == 1
    assert "the changes of view1" in failure.what
    monkeypatch.undo()
    fixture = fixture_of(failure.case, str(failure))
    assert read_fixture(write_fixture(fixture)) == fixture
    assert play(fixture, "counting") == fixture


def test_a_miscounting_maintainer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def miscount(self: Counting, moved: dict[Any, int]) -> list[Any]:
        return _take(self, {row: 1 if count > 1 else count for row, count in moved.items()})

    monkeypatch.setattr(Counting, "take", miscount)
    assert any(run_case(seed, "1") for seed in range(100))


def test_shrinking_keeps_what_fails() -> None:
    make = LAWS["1"].make
    case = next(c for seed in range(100) if len((c := make(Random(seed))).steps) > 3)

    def fails(smaller: Case) -> bool:
        return case.steps[2] in smaller.steps

    assert shrink(case, fails, less_of).steps == (case.steps[2],)


def test_the_same_seed_makes_the_same_case() -> None:
    make = LAWS["1"].make
    assert make(Random(5)) == make(Random(5))
    assert make(Random(5)) != make(Random(6))


# Law 8: what an update touches --------------------------------------------------------------------

WIDE = "<r><quiet>" + "<q><w>1</w></q>" * 500 + "</quiet><loud/></r>"


def work(document: Document) -> tuple[int, int]:
    engine = maintained(document).engine
    engine.build()  # views are set up when first needed: that is not the update's work
    return engine.visited, engine.climbed


def spent(document: Document, before: tuple[int, int]) -> tuple[int, int]:
    visited, climbed = work(document)
    return visited - before[0], climbed - before[1]


def insert(document: Document, path: str, xml: str) -> list[Any]:
    tree = maintained(document).tree
    target = next(node for node in tree.subtree(tree.root) if tree.path(node) == path)
    return maintained(document).apply([Insert(Where.LAST, target, tuple(read_forest(xml)))])


def test_an_unnoticed_insertion_is_not_evaluated_and_moves_nothing() -> None:
    document = parse(WIDE)
    document.watch("match /r#t[quiet/a/k][loud/b/k] return t.id")
    before = work(document)
    assert insert(document, "/r/quiet", "<z><y>2</y><y/></z>") == []
    assert spent(document, before) == (0, 0)


def test_a_noticed_insertion_climbs_its_ancestors_only() -> None:
    document = parse(WIDE)
    document.watch("match /r[quiet/a/$x][not(loud/b/$x)] return $x")
    before = work(document)
    assert len(insert(document, "/r/quiet", "<a>2</a>")) == 1
    visited, climbed = spent(document, before)
    assert visited == 2
    assert climbed == 3  # quiet, r and the document node


def test_the_size_of_the_document_does_not_matter() -> None:
    costs = []
    for size in (100, 2000):
        document = parse("<r><p>" + "<q>1</q>" * size + "</p><s>1</s></r>")
        document.watch("match /r[p/q/$x][s/$x] return $x")
        before = work(document)
        insert(document, "/r/p", "<q>3</q>")
        insert(document, "/r", "<s>3</s>")
        costs.append(spent(document, before))
    assert costs[0] == costs[1]


def test_an_update_below_is_not_seen_by_a_view_elsewhere() -> None:
    document = parse(WIDE)
    view = document.watch("match /r/loud//c#t return t.id")
    other = document.watch("match /r/quiet/a#t return t.id")
    before = work(document)
    assert [change.view for change in insert(document, "/r/loud", "<c/>")] == [view.name]
    assert spent(document, before)[0] <= 2 * BLOCK + 1
    assert other.rows() == []


MONITOR = (
    '<m xmlns:ax="urn:axlog"><o><ax:call stream="o" deletes="yes"/></o>'
    '<s><ax:call stream="s" deletes="yes"/></s></m>'
)


@pytest.mark.parametrize("validate", ["all", "wanted"])
def test_an_unnoticed_message_touches_no_site(validate: Validate) -> None:
    # A message that a deletion can reach becomes nodes at once where others are not parsed.
    document = MONITOR if validate == "all" else MONITOR.replace(' deletes="yes"', "")
    doc = Document(
        document,
        views={"pairs": "match /m[o/a/$x][s/b/$x] return $x"},
        options=Options(validate=validate),
    )
    doc.feed("o", "<a>1</a>")
    before = work(doc)
    assert doc.feed("o", "<z><y>1</y></z>") == []
    assert doc.feed("s", "<a>1</a>") == []  # wanted by the other stream, not by this one
    assert spent(doc, before) == (0, 0)
    assert len(doc.feed("s", "<b>1</b>")) == 1


def test_example_15_optimism_leaves_nothing_to_match_when_the_last_branch_comes() -> None:
    """P3 3.6: what came before y is matched already; y's message does no work per subtree."""
    costs = []
    for subtrees in (10, 500):
        doc = Document(
            '<a xmlns:ax="urn:axlog"><d><ax:call stream="f"/></d><b><ax:call stream="g"/></b></a>',
            views={"view": "match /a[d/y][b/c/$x] return $x"},
        )
        for number in range(subtrees):
            assert doc.feed("g", f"<c>{number}</c>") == []
        before = work(doc)
        assert len(doc.feed("f", "<y/>")) == subtrees
        costs.append(spent(doc, before))
    assert costs[0] == costs[1]


def test_cost_of_a_deletion_does_not_grow_with_the_view() -> None:
    costs = []
    for rows in (50, 1000):
        doc = Document(MONITOR, views={"pairs": "match /m[o/a/$x][s/b/$x] return $x"})
        for number in range(rows):
            doc.feed("o", f"<a>{number}</a>")
            doc.feed("s", f"<b>{number}</b>")
        doc.xml()  # what was put aside becomes nodes
        before = work(doc)
        assert len(doc.delete("o", 'match /a/"7"')) == 1
        costs.append(spent(doc, before))
    assert costs[0] == costs[1]
