"""Deletes that are final: rows that a shipment removed, beside streams that delete."""

import pytest

import axlog
from axlog import Truth

_OPEN = "match /document[orders/order/$x][not(shipped/order/$x)] return $x"


def _shop(**deletes: str) -> axlog.Document:
    declared = {name: {"deletes": deletes.get(name, "no")} for name in ("orders", "shipped", "log")}
    return axlog.Document(streams=declared, views={"open": _OPEN})


@pytest.mark.parametrize(
    ("deleting", "is_final"),
    [("orders", True), ("log", True), ("shipped", False)],
)
def test_what_a_deletion_cannot_reach_is_gone_for_good(deleting: str, is_final: bool) -> None:
    doc = _shop(**{deleting: "yes"})
    doc.feed("orders", "<order>17</order>")
    (gone,) = doc.feed("shipped", "<order>17</order>")
    assert (gone.op, gone.final) == ("delete", is_final)
    found = doc.view("open").status({"x": "17"})
    assert found is (Truth.NEVER if is_final else Truth.POSSIBLE)


def test_a_row_whose_own_data_is_deleted_may_come_again() -> None:
    doc = _shop(orders="yes")
    doc.feed("orders", "<order>17</order>")
    (gone,) = doc.delete("orders", 'match /order[text() = "17"]')
    assert (gone.op, gone.final) == ("delete", False)
    (back,) = doc.feed("orders", "<order>17</order>")
    assert back.op == "insert"


def test_a_stream_that_deletes_once_does_not_make_its_deletions_final() -> None:
    doc = axlog.Document(
        "<document><orders><order>17</order>"
        '<ax:call xmlns:ax="urn:axlog" stream="orders"/>'
        '<ax:call xmlns:ax="urn:axlog" stream="clean" mode="one-shot" deletes="only"/></orders>'
        '<shipped><ax:call xmlns:ax="urn:axlog" stream="shipped"/></shipped></document>',
        views={"open": _OPEN},
    )
    (gone,) = doc.delete("clean", "match /order")
    assert (gone.op, gone.final) == ("delete", False)
    assert [c.op for c in doc.feed("orders", "<order>17</order>")] == ["insert"]


@pytest.mark.parametrize("where", ["", " where now - t >= 2h"])
def test_what_ends_a_row_is_known_without_messages(where: str) -> None:
    query = f"match /document[orders/order/$x#t][not(shipped/order/$x)]{where} return $x"
    doc = axlog.Document(
        streams=["orders", "shipped", "log"], views={"v": query},
        options=axlog.Options(keep="needed"),
    )  # fmt: skip

    def ends() -> list[str]:
        return [r.text for r in doc.view("v").why_not({"x": "17"}).reasons if r.kind == "ends"]

    doc.feed("orders", "<order>17</order>", at=0)
    doc.advance(7300)
    assert ends() == ["it stays until shipped brings shipped/order/$x"]
    doc.end("orders")
    assert ends() == ["it stays until shipped brings shipped/order/$x"]
    doc.end("shipped")
    assert ends() == ["nothing that may still come ends it"]
