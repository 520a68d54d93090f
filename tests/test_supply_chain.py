"""The supply chain: its views say what the simulated partners did."""

from collections import Counter
from itertools import islice

from axlog.channels.updates import StreamUpdate
from axlog.errors import AxlogError
from axlog.widgets.widget import Widget
from axlog.workloads import supply_chain as chain


def run(seed: int = 1, orders: int = 60, faults: float = 0.3):
    order_widget = Widget(
        chain.ORDERS, chain.ORDER_VIEWS, namespaces=chain.NAMESPACES, facts=chain.ORDER_FACTS
    )
    stock_widget = Widget(chain.STOCK, chain.STOCK_VIEWS, namespaces=chain.NAMESPACES)
    sent = list(chain.messages(seed, faults=faults, orders=orders))
    refused = 0
    for update in sent:
        widget = stock_widget if update["stream"] == "levels" else order_widget
        try:
            widget.take(StreamUpdate.of(update))
        except AxlogError:
            refused += 1
    return order_widget, stock_widget, sent, refused


def first_times(sent, stream: str, marker: str) -> dict[str, float]:
    """When each order's document of a stream came, read from the text alone."""
    found: dict[str, float] = {}
    for update in sent:
        text = str(update.get("insert", ""))
        if update["stream"] == stream and text.endswith(">") and marker in text:
            order = "O" + text.split(marker, 1)[1].split("<", 1)[0]
            found[order] = float(update["at"])
    return found


def test_oracle_views_say_what_the_partners_did() -> None:
    orders, stock, sent, refused = run()
    placed = first_times(sent, "orders", "</cbc:UBLVersionID><cbc:ID>O")
    paid = first_times(sent, "payments", "Reference>O")
    built = first_times(sent, "assembled", "Reference><cbc:ID>O")
    gone = first_times(sent, "despatches", "Reference><cbc:ID>O")
    late = {o for o in gone if gone[o] - placed[o] > chain.PROMISE}
    day = 24 * chain.HOUR

    def rows(view: str) -> set[str]:
        return {row["order"] for row in orders.view(view).rows()}

    assert len(placed) == 60
    assert rows("on_time") == set(gone) - late != set()
    assert rows("late") == late != set()
    assert rows("waited_for_bank") == {o for o in late if paid[o] - placed[o] > day} != set()
    assert rows("waited_for_plant") == {o for o in late if built[o] - paid[o] > day} != set()
    assert rows("waited_for_shipper") == {o for o in late if gone[o] - built[o] > day} != set()
    invoiced = first_times(sent, "invoices", "Reference><cbc:ID>O")
    assert rows("invoiced_without_goods") == set(invoiced) - set(gone) != set()
    broken = [u for u in sent if "insert" in u and not str(u["insert"]).endswith(">")]
    assert refused >= len(broken) > 0
    levels = Counter(row["part"] for row in stock.view("low_parts").rows())
    assert all(count == 1 for count in levels.values())


def test_messages_come_by_time_and_are_the_same_for_a_seed() -> None:
    drawn = list(islice(chain.messages(7), 500))
    assert drawn == list(islice(chain.messages(7), 500)) != list(islice(chain.messages(8), 500))
    times = [float(update["at"]) for update in drawn]  # type: ignore[arg-type]
    assert times == sorted(times)
    assert {update["stream"] for update in drawn} == {
        "orders", "payments", "assembled", "despatches", "invoices", "levels",
    }  # fmt: skip
