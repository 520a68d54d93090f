"""The data paths of a message and of a statement, counted: functions, modules, hand-overs.

A hand-over is a call from one package into another. Calls of the shared vocabulary are not counted:
the columns of a tree, ids, times, bags of rows, meters and limits, patterns and their relations.
Generated code belongs to the package that generates it.

    python -m lab paths        the counts of one message and of one statement, with every hand-over
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import axlog

VOCABULARY = frozenset(
    (
        "document/tree.py", "document/ids.py", "document/times.py", "document/delta.py",
        "document/name_expansion.py", "evaluate/gathered.py", "evaluate/joins.py",
        "evaluate/work.py", "query/pattern.py", "query/compile.py",
    )
)  # fmt: skip
"""Modules of data structures that every layer reads."""
GENERATED = {"<sink>": "views", "<matcher>": "match"}
"""The file names of generated code, and the packages that generate it."""
_ROOT = str(Path(axlog.__file__).parent) + "/"

SHOP = """<shop xmlns:ax="urn:axlog">
<orders><ax:call stream="orders"/></orders><shipped><ax:call stream="shipped"/></shipped></shop>"""
LATE = "match /shop[orders/order/$x#s][shipped/order/$x#t] where t - s >= 5 return $x"


@dataclass(frozen=True, slots=True)
class DataPath:
    """The functions that one update passes, and its hand-overs between packages."""

    functions: int
    modules: int
    hand_overs: tuple[tuple[str, str, str], ...]  # from, to, the function called


def trace(run: Callable[[], object]) -> DataPath:
    """Run a function and record its calls inside axlog."""
    functions: set[tuple[str, str]] = set()
    hand_overs: list[tuple[str, str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        module = _module(frame)
        if module is None:
            return
        functions.add((module, frame.f_code.co_qualname))
        if module in VOCABULARY:
            return
        caller = frame.f_back
        while caller is not None and (_module(caller) or "") in {"", *VOCABULARY}:
            caller = caller.f_back
        above = None if caller is None else _module(caller)
        if above is not None and _package(above) not in ("cli", _package(module)):
            hand_overs.append((_package(above), _package(module), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return DataPath(len(functions), len({module for module, _ in functions}), tuple(hand_overs))


def _module(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    if name.startswith(_ROOT):
        return name[len(_ROOT) :]
    return f"{GENERATED[name]}/{name}" if name in GENERATED else None


def _package(module: str) -> str:
    return module.partition("/")[0]


def feed_path() -> DataPath:
    """The path of a message that completes a row of a join, to its subscriber."""
    doc = axlog.parse(SHOP)
    seen: list[axlog.Change] = []
    doc.watch(LATE).subscribe(seen.append)
    for number in range(3):
        doc.feed("orders", f"<order>{number}</order>", at=100 * number)
        doc.feed("shipped", f"<order>{number}</order>", at=100 * number + 50)
    doc.feed("orders", "<order>17</order>", at=1000)
    path = trace(lambda: doc.feed("shipped", "<order>17</order>", at=1050))
    assert seen[-1].row["x"] == "17"
    return path


def update_path() -> DataPath:
    """The path of a statement that inserts a row, to its subscriber."""
    doc = axlog.parse("<orders><order id='1'><item>a</item></order></orders>")
    seen: list[axlog.Change] = []
    doc.watch("//order[item]/@id").subscribe(seen.append)
    for number in (2, 3):
        doc.update(f"insert node <order id='{number}'><item>b</item></order> into /orders")
    statement = "insert node <order id='4'><item>b</item></order> into /orders"
    path = trace(lambda: doc.update(statement))
    assert len(seen) == 3
    return path
