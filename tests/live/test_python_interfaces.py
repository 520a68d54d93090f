"""What Python programs expect: context managers, async, Arrow, notebooks."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pytest

import axlog
from axlog.errors import SetupError

QUERY = "match //order/$x return $x"


def shop() -> axlog.Document:
    return axlog.Document(streams=["orders"], views={"orders": QUERY})


def test_context_managers() -> None:
    seen: list[str] = []
    with shop() as doc:
        with doc.view("orders").subscribe(lambda change: seen.append(change.row["x"])):
            doc.feed("orders", "<order>1</order>")
        doc.feed("orders", "<order>2</order>")
        with doc.changes("orders") as feed:
            doc.feed("orders", "<order>3</order>")
        doc.feed("orders", "<order>4</order>")
    assert seen == ["1"]
    assert [change.row["x"] for change in feed] == ["3"]


def test_feeding_and_following_in_one_event_loop() -> None:
    async def both() -> list[str]:
        doc = shop()
        found = []
        async with doc.changes("orders") as feed:

            async def send() -> None:
                for number in range(3):
                    await doc.afeed("orders", {"order": number})

            sending = asyncio.create_task(send())
            async for change in feed:
                found.append(change.row["x"])
                if len(found) == 3:
                    break
            await sending
        return found

    assert asyncio.run(both()) == ["0", "1", "2"]


def test_a_message_can_be_retracted(tmp_path: Path) -> None:
    with axlog.open(tmp_path / "store", axlog.Document(streams=["orders"]).xml()) as doc:
        view = doc.watch(QUERY, "orders")
        doc.feed("orders", "<order>1</order><order>2</order>")
        doc.feed("orders", "<order>3</order>")
        assert [change.op for change in doc.retract("orders", 1)] == ["delete", "delete"]
        assert [row["x"] for row in view] == ["3"]
        for stream, number in (("orders", 1), ("orders", 3), ("other", 1)):
            with pytest.raises(axlog.AxlogError) as caught:
                doc.retract(stream, number)
            assert caught.value.code == "AX422"
    with axlog.open(tmp_path / "store") as doc:
        assert [row["x"] for row in doc.view("orders")] == ["3"]
        doc.retract("orders", 2)
        assert doc.view("orders").rows() == []


def test_a_view_is_an_arrow_stream() -> None:
    doc = shop()
    doc.feed("orders", "<order>1</order><order>1</order>")
    table = pyarrow.table(doc.view("orders"))
    assert table.to_pylist() == [{"x": "1", "count": 2}]


def test_a_view_as_a_polars_frame() -> None:
    polars = pytest.importorskip("polars")
    query = "match //o[c/$c]/t/$t return $c, count() as n, sum($t) as total"
    doc = axlog.Document(
        streams=["s"], views={"totals": query, "times": "match //o#k return k.time"}
    )
    for client, total in (("A", "1.5"), ("ب", "7"), ("A", "2")):
        doc.feed("s", f"<o><c>{client}</c><t>{total}</t></o>", at=5)
    found = polars.DataFrame(doc.view("totals"))  # through the Arrow stream
    assert found.equals(doc.view("totals").to_polars())
    assert found.select("c", "n").rows() == [("A", 2), ("ب", 1)]
    assert [str(total) for total in found["total"]] == ["3.5", "7.0"]
    assert doc.view("times").to_polars().schema["k.time"] == polars.Float64


def test_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    doc = shop()
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(SetupError) as caught:
        doc.view("orders").to_polars()
    assert "pip install polars" in str(caught.value.advice)


def test_notebooks() -> None:
    doc = shop()
    (change,) = doc.feed("orders", "<order>&lt;b&gt;</order>")
    shown: Any = SimpleNamespace(
        document=doc._repr_html_(),
        view=doc.view("orders")._repr_html_(),
        change=change._repr_html_(),
        explain=doc.view("orders").explain()._repr_html_(),
    )
    for text in vars(shown).values():
        assert "<b></b>" not in text
        assert "<order" not in text
    assert "1 message" in shown.document
    assert "&lt;order&gt;&amp;lt;b&amp;gt;" in shown.document
    assert "<td>&lt;b&gt;</td>" in shown.view
    assert "<td>insert</td><td>&lt;b&gt;</td>" in shown.change
    assert shown.explain.startswith("<pre>query")
