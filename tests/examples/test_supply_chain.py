"""The supply chain: its views say what the simulated partners did, on both engines."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from axlog.cli.application import application
from axlog.connect.protocol import Refusal
from axlog.connect.sinks.jsonl import read_log
from axlog.pipeline.loader import load
from axlog.runtime.embedded import Runner
from axlog.samples import supply_chain as chain
from axlog.server.pipelines import observe_runner
from axlog.server.row_lists import Asked

main_app = application()
EXAMPLE = Path(__file__).parents[2] / "examples" / "supply-chain" / "supply-chain.yaml"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("chain")
    chain.write(made, seed=1, orders=60, faults=0.3)
    return made


@pytest.fixture(scope="module")
def runner(place: Path) -> Iterator[Runner]:
    made = Runner(load(str(place / "supply-chain.yaml")), once=True)
    made.on_refused = refused.append
    made.run()
    yield made
    made.close()


refused: list[Refusal] = []
SENT = list(chain.documents(1, faults=0.3, orders=60))


def times(stream: str) -> dict[str, float]:
    """When each order's document of a stream came."""
    return {
        d.order: d.at / 1e6
        for d in SENT
        if d.stream == stream and d.is_whole and "<TransportationStatus" not in d.text
    }


def rows(runner: Runner, view: str) -> set[str]:
    return {row["order"] for row in runner.instances["orders"].documents[""].view(view).rows()}


def test_oracle_statistics_are_those_of_the_partners(runner: Runner) -> None:
    steps = [times(s) for s in ("orders", "payments", "parts", "assembled", "despatches")]
    statistics = runner.instances["statistics"].documents[""]

    def figures(view: str) -> list[dict[str, Any]]:
        return [row.to_dict() for row in statistics.view(view).rows()]

    names = ("placed", "paid", "stocked", "built", "sent")
    for at, name in enumerate(names):
        beyond = steps[at + 1] if at + 1 < len(steps) else {}
        assert figures(f"orders_{name}") == [{"orders": len(steps[at].keys() - beyond.keys())}]
    for at, name in enumerate(("bank", "warehouse", "plant", "shipper", "total")):
        before, after = (steps[0], steps[4]) if name == "total" else (steps[at], steps[at + 1])
        taken = [(after[o] - before[o]) / 3600 for o in after if o in before]
        (found,) = figures(f"delay_{name}")
        assert found["orders"] == len(taken)
        assert float(found["mean_hours"]) == pytest.approx(sum(taken) / len(taken))
        assert float(found["longest_hours"]) == pytest.approx(max(taken))
    placed, gone = steps[0], steps[4]
    supplied = {d.order: ">supplier<" in d.text for d in SENT if d.stream == "parts" and d.is_whole}
    shares = {row["supplier"]: float(row["share_late"]) for row in figures("late_by_supplier")}
    for supplier, wanted in (("supplier", True), ("warehouse", False)):
        mine = [gone[o] - placed[o] > chain.PROMISE for o in gone if supplied[o] == wanted]
        assert shares[supplier] == pytest.approx(sum(mine) / len(mine))
    levels: dict[tuple[str, str], list[int]] = {}
    for report in (d for d in SENT if d.stream == "stock"):
        day = re.search(r"IssueDate>([^<]*)", report.text)
        level = re.search(r"Quantity>([^<]*)", report.text)
        assert day is not None
        assert level is not None
        levels.setdefault((report.order, day[1]), []).append(int(level[1]))
    found_levels = {
        (row["part"], row["day"]): [int(row[name]) for name in ("lowest", "highest", "last")]
        for row in figures("stock_by_day")
    }
    assert found_levels == {key: [min(each), max(each), each[-1]] for key, each in levels.items()}
    assert len(found_levels) > 20


def test_oracle_views_say_what_the_partners_did(runner: Runner) -> None:
    placed, paid, stocked = times("orders"), times("payments"), times("parts")
    built, gone, invoiced = times("assembled"), times("despatches"), times("invoices")
    late = {o for o in gone if gone[o] - placed[o] > chain.PROMISE}
    supplied = {d.order for d in SENT if d.stream == "parts" and ">supplier<" in d.text}
    day = chain.SLOW
    assert len(placed) == 60
    assert rows(runner, "on_time") == set(gone) - late != set()
    assert rows(runner, "late") == late != set()
    waited = {
        "bank": {o for o in late if paid[o] - placed[o] > day},
        "supplier": {o for o in late & supplied if stocked[o] - paid[o] > day},
        "plant": {o for o in late if built[o] - stocked[o] > day},
        "shipper": {o for o in late if gone[o] - built[o] > day},
    }
    assert {name: rows(runner, f"waited_for_{name}") for name in waited} == waited
    assert all(waited.values())
    assert rows(runner, "invoiced_without_goods") == set(invoiced) - set(gone) != set()
    broken = [d for d in SENT if not d.is_whole]
    assert len(refused) == 2 * len(broken) > 0  # `orders` and `statistics` read all of them


def test_oracle_orders_that_never_will_be_on_time(runner: Runner, place: Path) -> None:
    placed, gone = times("orders"), times("despatches")
    end = max(d.at for d in SENT if d.stream != "stock") / 1e6
    log = read_log(place / "out" / "orders.jsonl")
    never = [c["row"]["order"] for c in log if c["view"] == "orders.on_time" and c["op"] == "never"]
    late = {o for o in placed if gone.get(o, end) - placed[o] > chain.PROMISE}
    assert sorted(never) == sorted(set(never))
    assert set(never) == late != set()
    still = {o for o in placed if o not in gone and end - placed[o] <= chain.PROMISE}
    shown = observe_runner(runner).shown(Asked("orders", "on_time", "possible"))
    assert shown is not None
    found = {line["row"]["order"] for line in shown["lines"]} - {None}
    assert found == still


def test_parts_below_a_level(runner: Runner, place: Path) -> None:
    stock = [d for d in SENT if d.stream == chain.STOCK]
    levels = {d.order: d.text.split("Quantity>")[1].split("<")[0] for d in stock}
    low = {part: level for part, level in levels.items() if float(level) < chain.LOW}
    view = runner.instances["stock"].documents[""].view("low_parts")
    assert {row["part"]: row["level"] for row in view.rows()} == low != {}


def test_why_reads_the_input_again(runner: Runner, place: Path) -> None:
    observer = observe_runner(runner)
    order = sorted(rows(runner, "late"))[0]
    shown = observer.shown(Asked("orders", "late", "true", order))
    assert shown is not None
    (found,) = observer.why("orders", "late", shown["lines"][0]["row"])["derivations"]
    placed = next(m for m in found if m["pattern"].startswith("$order#placed"))
    assert placed["time"] == chain.START.timestamp() + times("orders")[order]
    assert placed["origin"].startswith("orders/")
    name = placed["origin"].removeprefix("orders/")
    assert f"<cbc:ID>{order}<" in (place / "in" / "orders" / name).read_text(encoding="utf-8")


def test_documents_come_by_time_and_are_the_same_for_a_seed() -> None:
    drawn = list(islice(chain.documents(7), 500))
    assert drawn == list(islice(chain.documents(7), 500)) != list(islice(chain.documents(8), 500))
    assert [d.at for d in drawn] == sorted(d.at for d in drawn)
    assert {d.stream for d in drawn} == {*chain.STREAMS, chain.STOCK}


def test_the_example_is_the_package_s_file() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == chain.pipeline()


def test_generate_writes_what_can_be_checked_and_run(tmp_path: Path) -> None:
    into = tmp_path / "own"
    made = CliRunner().invoke(
        main_app, ["generate", "supply-chain", "--into", str(into), "--orders", "5"]
    )
    assert made.exit_code == 0
    assert "axlog run" in made.output
    checked = CliRunner().invoke(main_app, ["check", str(into / "supply-chain.yaml")])
    assert checked.exit_code == 0, checked.output


@pytest.mark.system
def test_the_demo_on_the_embedded_engine() -> None:
    told = CliRunner().invoke(
        main_app, ["demo", "--engine", "embedded", "--seconds", "1", "--port", "0"]
    )
    assert told.exit_code == 0, told.output
    assert "the live page is at http://127.0.0.1:" in told.output
    assert "orders left on time" in told.output
    assert "reported as never on time" in told.output


@pytest.mark.system
def test_run_serves_the_page(place: Path, tmp_path: Path) -> None:
    """`axlog run` in a process of its own: the page is there, and knows the run."""
    pipeline = tmp_path / "supply-chain.yaml"
    pipeline.write_text(chain.pipeline().replace("path: in", f"path: {place}/in"), encoding="utf-8")
    (tmp_path / "stock").mkdir()
    (tmp_path / "out").mkdir()
    asked = ["run", str(pipeline), "--engine", "embedded", "--seconds", "60", "--port", "0"]
    started = subprocess.Popen(
        [sys.executable, "-c", "from axlog.cli import main; main()", *asked],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert started.stderr is not None
        line = next(line for line in started.stderr if "live page" in line)
        address, _, token = line.split(" is at ")[1].strip().partition("/#token=")
        bearer = {"Authorization": f"Bearer {token}"}
        until = time.monotonic() + 60
        while time.monotonic() < until:
            query = "document=orders&view=late&truth=true"
            asking = Request(f"{address}/live/state?{query}", headers=bearer)
            with urlopen(asking, timeout=60) as answer:
                state = json.load(answer)
            if state["shown"]["counts"]["true"]:
                break
            time.sleep(0.05)
        assert state["shown"]["lines"][0]["truth"] == "true"
        assert state["engine"] == "embedded"
    finally:
        started.terminate()
        assert started.stderr is not None
        started.stderr.close()
        assert started.wait(60) == 0


def test_without_a_page(place: Path) -> None:
    asked = ["run", str(place / "supply-chain.yaml"), "--engine", "embedded", "--once"]
    assert "live page" not in CliRunner().invoke(main_app, asked).output


@pytest.mark.spark
@pytest.mark.system
def test_differential_spark_says_the_same(runner: Runner, tmp_path: Path) -> None:
    """Rows, nevers, possible rows, dead letters and counts by stream, as a page shows them."""
    from axlog.cli.live_page import reported
    from axlog.spark.pipeline import run

    chain.write(tmp_path, seed=1, orders=60, faults=0.3)
    model = load(str(tmp_path / "supply-chain.yaml"))
    shown, take = reported(model, "spark")
    run(model, once=True, on_report=take, outlook=50)
    here = observe_runner(runner)
    for view in ("on_time", "late", "waited_for_plant", "invoiced_without_goods"):
        asked = Asked("orders", view, show=1000)
        there, embedded = shown.shown(asked), here.shown(asked)
        assert there is not None
        assert embedded is not None
        true = [one["row"] for one in there["lines"] if one["truth"] == "true"]
        assert true == [one["row"] for one in embedded["lines"] if one["truth"] == "true"]
        possible = [one for one in there["lines"] if one["truth"] == "possible"]
        if view in ("on_time", "late"):  # what the other needs is not kept
            assert possible == [one for one in embedded["lines"] if one["truth"] == "possible"]
            assert there["counts"]["never"] > 0
    order = min(rows(runner, "waited_for_plant"))
    (found,) = shown.why("orders", "waited_for_plant", {"order": order})["derivations"]
    assert any(str(match["origin"]).startswith("assembled/") for match in found)
    state = shown.state(Asked())
    counted = {s["name"]: s["messages"] for s in state["documents"][0]["streams"]}
    wholes = {name: sum(d.stream == name for d in SENT) for name in chain.STREAMS}
    assert counted == wholes
    # A file that several documents read is counted once.
    assert state["refused"] == len({(each.origin, each.content) for each in refused})
    dropped = {s["name"]: s["dropped"] for s in state["documents"][0]["streams"]}
    status = sum("<TransportationStatus" in d.text and d.is_whole for d in SENT)
    assert dropped["despatches"] == status
