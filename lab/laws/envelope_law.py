"""Keys and envelopes: a table that merges changes by key is the view, from any start.

    keys       two rows of a view with equal keys do not hold at the same time, and all maintainers
               give a row the same key
    merging    rows at a position, and the changes after it merged by key, are the rows now
    resuming   the retained changes after a position are the changes that were emitted after it
    envelope   positions grow, every change has the cause of its update, and a final change is a
               `never`, or a deletion after which no stream is open

The cases are those of law 1. Some of their updates are joined in batches.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from axlog.errors import AxlogError
from axlog.live.view import View
from axlog.views.change import Change
from lab.laws.edits import carry_out
from lab.laws.exact_law import Bench, Broken
from lab.laws.fuzz_cases import Case

Table = dict[str, tuple[Any, ...]]


def check_envelope(case: Case) -> None:
    """Check the law for every view of a case, with a subscriber that starts before each step."""
    random = Random(len(case.document) + len(case.steps))
    bench = Bench(replace(case, since=(), until=()))
    bench.watch(0)
    readers: dict[str, list[_Reader]] = {name: [] for name in bench.patterns}
    at = 0
    while at < len(case.steps):
        for name, mine in readers.items():
            mine.append(_Reader(bench.tested.view(name).retain(1000)))
        size = random.choice((1, 1, 2, 3))
        _take(bench, case.steps[at : at + size])
        at += size
        for name, mine in readers.items():
            view = bench.tested.view(name)
            rows = _table(view)
            _same_keys(view, bench.plain.view(name))
            for reader in mine:
                reader.check(view, rows)


def _take(bench: Bench, steps: tuple[Any, ...]) -> None:
    if len(steps) == 1:
        bench.take(steps[0])
        return
    for document in (bench.tested, bench.plain):
        with document.batch():
            for step in steps:
                try:
                    carry_out(document, step)
                except AxlogError:
                    continue


class _Reader:
    """A subscriber that starts with a snapshot and merges changes by key."""

    def __init__(self, view: View) -> None:
        self.table: Table = {}
        self.position = view.position
        self.heard: list[Change] = []
        self.is_late = False
        view.subscribe(self._merge, snapshot=True)
        self.is_late = True

    def _merge(self, change: Change) -> None:
        if self.is_late:
            self.heard.append(change)
            if change.position <= self.position:
                raise Broken(f"position {change.position} after {self.position}: {change}")
            self.position = change.position
        if change.op == "never":
            return
        key, values = change.key_text, change.row.values_
        if (change.op == "insert") == (key in self.table):
            raise Broken(f"{change.op} of the key {key}, and the table is {self.table}")
        if change.before is not None and self.table[key] != change.before.values_:
            raise Broken(f"before is {change.before}, and the table has {self.table[key]}")
        if change.op == "delete":
            del self.table[key]
        else:
            self.table[key] = values

    def check(self, view: View, rows: Table) -> None:
        if self.table != rows:
            raise Broken(f"{view.name} merged by key is {self.table}, and has the rows {rows}")
        if not self.heard:
            return
        start = self.heard[0].position - 1
        if view.changes_since(start) != self.heard:
            raise Broken(f"{view.name} retains other changes after {start} than it emitted")
        for change in self.heard:
            _check_envelope(view, change)


def _check_envelope(view: View, change: Change) -> None:
    said = change.to_dict()
    if json.loads(json.dumps(said)) != said or len(said["key"]) != len(view.key):
        raise Broken(f"the envelope of {change} is {said}")
    if said["view"] != view.name or said["cause"] is None:
        raise Broken(f"{change} has no view or no cause: {said}")
    if change.final and change.op not in ("never", "delete"):
        raise Broken(f"{change} cannot be final")
    if change.op == "never" and not change.final:
        raise Broken(f"{change} is not final")


def _table(view: View) -> Table:
    rows = view.rows()
    found = {row.key_text: row.values_ for row in rows}
    if len(found) < len(rows):
        raise Broken(f"{view.name} has rows with equal keys: {[row.key_text for row in rows]}")
    return found


def _same_keys(tested: View, plain: View) -> None:
    keys = [Counter(row.key_text for row in view.rows()) for view in (tested, plain)]
    if keys[0] != keys[1]:
        raise Broken(f"{tested.name} has the keys {keys[0]}, and by definition {keys[1]}")
