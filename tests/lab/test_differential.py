"""The whole public API gives the same rows and changes (`lab/laws/differential_law.py`).

`python -m lab fuzz --law differential` runs more. Each failure it found has its own test here.
"""

from random import Random

import pytest

from axlog.evaluate.statements import operations_of
from axlog.live.document import Document, parse
from axlog.live.internals import maintained, maintained_view
from axlog.live.options import Options
from axlog.query.update_parser import parse_statements
from axlog.views.algebraic.selection import Selections
from axlog.views.change import Change
from lab.laws.differential_cases import (
    DifferentialCase,
    Face,
    make_differential_case,
    make_large_case,
)
from lab.laws.differential_law import check_differential
from lab.laws.fuzzing import run_case
from tests.amounts import chunks

CHUNK = 60


@pytest.mark.parametrize("start", chunks(60, CHUNK))
def test_differential_all_faces_agree_for_seeds(start: int) -> None:
    seeds = range(start, start + CHUNK)
    failures = [f for seed in seeds if (f := run_case(seed, "differential")) is not None]
    assert not failures, "\n".join([*map(str, failures), failures[0].text()])


@pytest.mark.parametrize(("padding", "seeds"), [(300, 6), (2_000, 2), (21_000, 1)])
def test_differential_all_faces_agree_on_larger_documents(padding: int, seeds: int) -> None:
    for seed in range(seeds):
        check_differential(make_large_case(Random(f"{padding}:{seed}"), padding))


def test_a_forgotten_condition_at_the_document_node_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it was once, where axlog chooses the maintainer of a large document."""
    case = DifferentialCase(
        "<a><b/></a>", ("//e[not(/a/b)]",), ({"update": "delete nodes //b"},), (Face(),), 300
    )
    check_differential(case)
    monkeypatch.setattr(Selections, "holds", lambda self, columns: True)
    with pytest.raises(AssertionError, match="document default memory: the rows of view1"):
        check_differential(case)


def test_cases_are_of_every_kind() -> None:
    made = [make_differential_case(Random(f"differential:{seed}")) for seed in range(400)]
    faces = {(face.kind, face.maintainer) for case in made for face in case.faces}
    assert len(faces) == 3 * 6
    assert {face.cache for case in made for face in case.faces} == {"memory", "disk"}
    steps = [step for case in made for step in case.steps]
    assert {key for step in steps for key in step} >= {"update", "stream", "batch", "reopen"}


# What it found ------------------------------------------------------------------------------------


def test_the_targets_of_statements_are_plain_handles() -> None:
    """A cache on disk writes rows of handles; a subclass of int it cannot write."""
    document = parse("<a><b/></a>")
    for statement in parse_statements('for $x in //b return rename node $x as "c"; delete node /a'):
        (operation,) = operations_of(maintained(document).nodes(), statement)
        assert type(operation.target) is int
    doc = Document("<a><b/></a>", options=Options(cache="disk", memory=0))
    view = doc.watch("match /c#t[b], not(/z) return t.id", maintainer="counting")
    assert len(doc.update('rename node /a as "c"')) == 1
    assert len(view) == 1


@pytest.mark.parametrize("maintainer", ["counting", "algebraic", "adaptive", "reevaluate"])
def test_a_deferred_view_of_a_stream_emits_when_it_is_read(maintainer: str) -> None:
    doc = Document(
        '<a><ax:call xmlns:ax="urn:axlog" stream="s"/></a>', options=Options(never="off")
    )
    view = doc.watch("match /a/b#t return t.label", maintainer=maintainer).defer()
    heard: list[Change] = []
    view.subscribe(heard.append)
    assert doc.feed("s", "<b/>") == []
    assert doc.feed("s", "<b/>") == []
    assert (heard, maintained_view(view).owed) == ([], 2)
    assert [(row["t.label"], row.count) for row in view.rows()] == [("b", 2)]
    assert [change.op for change in heard] == ["insert"]
