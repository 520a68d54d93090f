"""`axlog demo`: the supply chain, live in the terminal and on a page."""

from __future__ import annotations

from contextlib import ExitStack
from time import monotonic, sleep
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from axlog.channels.updates import StreamUpdate
from axlog.errors import SetupError
from axlog.views.change import Change
from axlog.widgets.widget import Widget
from axlog.workloads import supply_chain


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("demo", epilog="Example: axlog demo --seconds 30")(demo)


def demo(
    seconds: Annotated[float | None, typer.Option(help="End after this long; else Ctrl-C.")] = None,
    rate: Annotated[float, typer.Option(help="Orders an hour of the simulated clock.")] = 4.0,
    speed: Annotated[float, typer.Option(help="Simulated hours a second.")] = 2.0,
    faults: Annotated[float, typer.Option(help="Share of steps that go wrong.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 0,
    port: Annotated[int, typer.Option(help="Of the live page on this machine.")] = 8040,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the live page.")] = True,
) -> None:
    """Watch a supply chain: orders turn late, possible or never while you look.

    A web store, a bank, a plant, a warehouse and a shipper publish UBL documents; two widgets watch
    them. The page is on this machine only.
    """
    chain = Chain(seed, rate, faults)
    console = Console()
    with ExitStack() as stack:
        address = stack.enter_context(_page(chain, port)) if page else None
        live = stack.enter_context(Live(console=console, refresh_per_second=4, transient=True))
        start = monotonic()
        try:
            while seconds is None or monotonic() - start < seconds:
                chain.until((monotonic() - start) * speed * supply_chain.HOUR)
                live.update(chain.shown(address))
                sleep(0.1)
        except KeyboardInterrupt:
            pass
    console.print(chain.shown(None))
    console.print(chain.summary())


def _page(chain: Chain, port: int) -> Any:
    try:
        from axlog.server.application import Settings, make_application
        from axlog.server.observing import Observer
        from axlog.server.page import page_operations
        from axlog.server.running import running
    except ImportError:
        raise SetupError(
            "AX901",
            "the live page needs the server",
            advice="pip install 'axlog[server]', or --no-page",
        ) from None
    from axlog.channels.naming import Channels

    settings = Settings(port=port)
    observer = Observer(chain.widgets)
    app = make_application(Channels(), settings, page_operations(observer))
    return running(app, settings)


class Chain:
    """The simulated partners and the two widgets that watch them."""

    def __init__(self, seed: int, rate: float, faults: float) -> None:
        self.widgets = {
            "orders": Widget(
                supply_chain.ORDERS,
                supply_chain.ORDER_VIEWS,
                namespaces=supply_chain.NAMESPACES,
                facts=supply_chain.ORDER_FACTS,
                on_error="dead-letter",
            ),
            "stock": Widget(
                supply_chain.STOCK,
                supply_chain.STOCK_VIEWS,
                namespaces=supply_chain.NAMESPACES,
                on_error="dead-letter",
            ),
        }
        self.messages = 0
        self.never: dict[str, int] = {}
        self.newest: list[Change] = []
        for widget in self.widgets.values():
            for view in widget.views.values():
                view.listen(self._hear)
        self._drawn = supply_chain.messages(seed, rate, faults)
        self._next = next(self._drawn)

    def _hear(self, change: Change) -> None:
        self.newest = [change, *self.newest[:9]]
        if change.op == "never":
            self.never[str(change.view)] = self.never.get(str(change.view), 0) + 1

    def until(self, time: float) -> None:
        """Let everything up to a time of the simulated clock happen."""
        while float(str(self._next["at"])) <= time:
            update = StreamUpdate.of(self._next)
            self.widgets["stock" if update.stream == "levels" else "orders"].take(update)
            self.messages += 1
            self._next = next(self._drawn)
        for widget in self.widgets.values():
            if widget.clock < int(time * 1e6):
                widget.advance(time)

    def shown(self, address: str | None) -> Group:
        """Tables for a terminal."""
        views = Table("view", "rows", "never", title="Views", title_justify="left")
        for widget in self.widgets.values():
            for view in widget.views.values():
                views.add_row(view.name, str(len(view)), str(self.never.get(view.name, "")))
        changes = Table("", "view", "row", title="Newest changes", title_justify="left")
        for change in self.newest:
            said = ", ".join(f"{k} {v}" for k, v in change.row.plain().items())
            changes.add_row(change.op, str(change.view), said)
        clock = max(widget.clock for widget in self.widgets.values()) / 1e6 / 86400
        kept = sum(widget.state_sizes()["joins"] for widget in self.widgets.values())
        where = f"   page: {address}" if address else ""
        return Group(
            f"day {clock:.1f}, {self.messages} messages, {kept} rows kept{where}", views, changes
        )

    def summary(self) -> str:
        orders = self.widgets["orders"]
        late, on_time = len(orders.view("late")), len(orders.view("on_time"))
        waited = {
            name.removeprefix("waited_for_"): len(view)
            for name, view in orders.views.items()
            if name.startswith("waited_for_")
        }
        whom = ", ".join(f"{count} for the {name}" for name, count in waited.items())
        return (
            f"{on_time} orders left on time, {late} late (of these waited {whom}); "
            f"{self.never.get('on_time', 0)} were called as never on time while still under way; "
            f"{len(orders.view('invoiced_without_goods'))} invoices without goods"
        )
