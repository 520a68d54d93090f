"""Rows of the short path as columns, and the runs of items that are made of them."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from axlog.document.times import exact_microseconds, microseconds
from axlog.runtime.order import Lane, Order, Packet, lane_of
from axlog.runtime.packets import pack, unpack
from axlog.runtime.plain_route import Shared
from axlog.runtime.row_columns import brief, read_rows, whole, write_rows

VALUES: list[Any] = ["o1", "", "é", "with \0 in it", 5, -(1 << 62), 1 << 70, True, 1.5, None]


def _bag(random: Random, width: int) -> dict[tuple[Any, ...], int]:
    if random.random() < 0.05:
        rows = [tuple(random.choices(VALUES, k=width)) for _ in range(3)]
        return {row: random.choice([1, 2]) for row in rows}
    values = random.choice([VALUES, ["a", "b"], ["a", "x\0y"], [7, 8]])
    return {tuple(random.choices(values, k=width)): 1} if random.random() < 0.7 else {}


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_read_as_they_were_written(seed: int) -> None:
    random = Random(seed)
    widths = [random.randrange(3) for _ in range(random.randrange(4))]
    rows, bags = [], []
    for number in range(random.randrange(1, 12)):
        bags.append(tuple(_bag(random, width) for width in widths))
        row = (
            number,
            random.choice(["a", "b"]),
            1 << 50,
            tuple(map(brief, bags[-1])),
            f"f@{number}",
        )
        rows.append((*row, number) if seed % 2 else row)
    written = write_rows(rows)
    found = list(read_rows(unpack(pack(written))))
    assert found == rows
    assert [list(map(type, row)) for row in found] == [list(map(type, row)) for row in rows]
    assert [whole(row[3]) for row in found] == bags
    assert list(read_rows(rows)) == rows  # the form of earlier versions


@pytest.mark.parametrize("seed", range(40))
def test_runs_are_ordered_as_items(seed: int) -> None:
    """Also those that begin before what their partition has brought: each item is judged."""
    random = Random(seed)
    late = {"a": "refuse", "b": random.choice(["refuse", "clock"])}
    by_items, by_runs = (Order(("a", "b"), late, 0) for _ in range(2))
    number = 0
    for _ in range(4):
        packets: list[tuple[Packet, Packet]] = []
        for source in range(2):
            runs, census = [], {}
            start = random.randrange(30)
            for stream in "ab":
                times = sorted(start + random.randrange(20) for _ in range(random.randrange(4)))
                if not times:
                    continue
                lane = lane_of(source, stream)
                rows = [(t, stream, number + at, (), "f") for at, t in enumerate(times)]
                census[lane] = Lane(number, times[-1], None, len(times), False, (times[-1], stream))
                runs.append(Shared(source, lane, stream, False).items(rows))
                number += len(times)
            each = [[list(item) for item in run] for run in runs]
            flat = [item for run in each for item in run]
            packets.append((Packet(flat, census), Packet([], census, runs=runs)))
        released, refused = by_items.take([one for one, _ in packets])
        assert by_runs.take([two for _, two in packets]) == (released, refused)
        assert by_runs.state() == by_items.state()


@pytest.mark.parametrize("seed", range(20))
def test_times_together_are_those_of_each(seed: int) -> None:
    random = Random(seed)
    many = [
        random.choice([1.5, -1e-6, 5e-7, 2.5e-6, random.random() * 1e9, 1.7e9 + random.random()])
        for _ in range(50)
    ]
    odd = [float("nan"), float("inf"), -float("inf"), 1e300, 4503599627.370497]
    found = exact_microseconds(np.array(many))
    assert found is not None
    assert found.tolist() == [microseconds(each) for each in many]
    assert exact_microseconds(np.array([*many, random.choice(odd)])) is None
