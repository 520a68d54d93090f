"""Lists of updates on documents with views: reduced or not, durable, and what breaks a type."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import axlog
from axlog import Options
from axlog.document.ids import Id
from axlog.document.list_codec import to_json
from axlog.document.loader import load
from axlog.document.schema import TypeViolation
from axlog.document.serializer import serialise
from axlog.document.update_lists import Edit, EditKind, Markup, UpdateList
from axlog.errors import AxlogError, QueryError, UpdateError
from axlog.live.internals import maintained
from axlog.query.query import Query
from lab.laws import small_cases
from lab.laws.lists_law import recorded
from tests.document.test_update_lists import SHOWN, answer

TYPES = "root: r  r -> |a| >= 0 & |b| = 1 & |s| <= 1  a -> |text()| >= 0  b ->  call s root: a"
TYPED = '<r><b/><ax:call xmlns:ax="urn:axlog" stream="s"/></r>'


def test_oracle_reduced_lists_in_sequence_name_the_same_nodes() -> None:
    """A list that was reduced gives its nodes other ids; later lists find them all the same."""
    translated = 0
    for seed in range(80):
        random = Random(seed)
        xml = small_cases.document(random, random.choice((6, 14)))
        tree = load(xml)
        lists = [made for _ in range(4) if (made := recorded(random, tree, 12)) is not None]
        patterns = [small_cases.pattern(random, SHOWN) for _ in range(2)]
        reduced, plain = axlog.parse(xml), axlog.parse(xml)
        for document in (reduced, plain):
            for pattern in patterns:
                document.watch(Query(pattern, str(pattern)))
        for one in lists:
            reduced.apply(to_json(one))
            plain.apply(to_json(one), reduce=False)
        translated += bool(maintained(reduced).tree.recorded_ids)
        assert plain.xml() == reduced.xml() == serialise(tree), seed
        assert answer(plain) == answer(reduced), seed
    assert translated > 0


def test_lists_are_in_the_log_of_a_durable_document(tmp_path: Path) -> None:
    def insert(number: int, given: str) -> Edit:
        content = (Markup(f"<a>{number}</a>"),)
        return Edit(EditKind.INSERT_FIRST, Id.parse("1"), content, roots=(Id.parse(given),))

    value = Edit(EditKind.REPLACE_VALUE, Id.parse("1.0"), text="7")
    lists = [
        to_json(UpdateList((insert(1, "1.0"), insert(2, "1.-1")))),
        to_json(UpdateList((value,))),
    ]
    with axlog.open(tmp_path / "d", "<r><b/></r>", views={"v": "match //a/$x return $x"}) as doc:
        doc.apply(lists[0])
        doc.snapshot()
        doc.apply(lists[1])
        wanted = doc.xml()
    assert ">7<" in wanted
    with axlog.open(tmp_path / "d") as doc:
        assert doc.xml() == wanted
        assert sorted(row["x"] for row in doc.view("v").rows()) == ["2", "7"]


def test_a_list_is_applied_as_a_whole_or_not_at_all() -> None:
    doc = axlog.parse("<r><a>1</a></r>", views={"v": "match //a/$x return $x"})
    there, gone = (Edit(EditKind.DELETE, Id.parse(text)) for text in ("1.1", "1.9"))
    both = to_json(UpdateList((there, gone)))
    with pytest.raises(UpdateError) as caught:
        doc.apply(both)
    assert caught.value.code == "AX301"
    assert doc.xml() == "<r><a>1</a></r>"
    (change,) = doc.apply(to_json(UpdateList((there,))))
    assert (change.op, change.row["x"]) == ("delete", "1")


# Types --------------------------------------------------------------------------------------------


def typed(policy: object) -> axlog.Document:
    options = Options(on_violation=policy)  # type: ignore[arg-type]
    return axlog.parse(TYPED, types=TYPES, views={"c": "match /r/c"}, options=options)


def test_a_violation_is_refused_by_default() -> None:
    doc = typed("refuse")
    with pytest.raises(UpdateError) as caught:
        doc.update("insert node <c/> into /r")
    assert caught.value.code == "AX705"
    assert doc.violations == []


def test_a_violation_is_applied_and_reported() -> None:
    doc = typed("report")
    assert doc.view("c").truth is axlog.Truth.NEVER  # the type does not allow it
    doc.update("insert node <c/> into /r")
    doc.feed("s", "<x/>")
    assert [each.code for each in doc.violations] == ["AX705", "AX706"]
    assert doc.view("c").truth is axlog.Truth.TRUE
    # The analyses no longer rely on the type, and updates are still checked.
    assert doc.watch("match /r/d").truth is axlog.Truth.POSSIBLE
    doc.feed("s", "<a>1</a>")
    assert len(doc.violations) == 2


def test_a_rolled_back_violation_leaves_the_types_in_force() -> None:
    doc = typed("report")

    def fail() -> None:
        with doc.batch():
            doc.update("insert node <c/> into /r")
            raise ValueError("again")

    with pytest.raises(ValueError, match="again"):
        fail()
    assert doc.watch("match /r/d").truth is axlog.Truth.NEVER


def test_a_violation_is_asked_about() -> None:
    asked: list[AxlogError] = []

    def answer(violation: TypeViolation) -> bool:
        asked.append(violation)
        return len(asked) > 1

    doc = typed(answer)
    with pytest.raises(UpdateError):
        doc.update("insert node <c/> into /r")
    doc.update("insert node <c/> into /r")
    assert len(asked) == 2
    assert len(doc.violations) == 1


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(QueryError) as caught:
        Options(on_violation="maybe")  # type: ignore[arg-type]
    assert caught.value.code == "AX211"
