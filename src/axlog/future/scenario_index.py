"""Generalised rows that are kept: found by some of their values, and by the streams they ask.

What the parts of a join hold while data arrives (`scenario_tracker.py`). Rows only come, until a
stream that they ask ends: then they go. Of the needs of one row those that another dominates are
left out, as in `generalized_rows.py`; whoever falls takes all with it that asked for more.
"""

from __future__ import annotations

from collections.abc import Iterator

from axlog.future.generalized_rows import Need, Rows, Values, add_need, unify
from axlog.future.search_budget import spend

Found = dict[Values, None]
"""Values, in the order in which they came."""


class Part:
    """The rows of one part of a join."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.rows: Rows = {}
        self._indexes: dict[tuple[int, ...], tuple[dict[Values, Found], Found]] = {}
        self._asking: dict[str, Found] = {}

    def take(self, rows: Rows) -> Rows:
        """Add rows; those that are new here."""
        new: Rows = {}
        for values, needs in rows.items():
            kept = [need for need in needs if self.add(values, need)]
            if kept:
                new[values] = kept
        return new

    def add(self, values: Values, need: Need) -> bool:
        """Add a way to a row, unless one that asks no more is there."""
        known = self.rows.get(values)
        if known is not None and any(one is need for one in known):
            return False
        add_need(self.rows, values, need)
        if self.rows[values][-1] is not need:
            return False
        if known is None:
            for at, index in self._indexes.items():
                _file(index, at, values)
        for _, stream in need.brought:
            self._asking.setdefault(stream, {})[values] = None
        return True

    def asking(self, stream: str) -> list[tuple[Values, Need]]:
        """The ways that ask a stream for something."""
        return [
            (values, need)
            for values in self._asking.get(stream, ())
            for need in self.rows.get(values, ())
            if any(asked == stream for _, asked in need.brought)
        ]

    def remove(self, values: Values, need: Need) -> bool:
        """Take a way to a row away; whether it was there."""
        known = self.rows.get(values, [])
        left = [one for one in known if one is not need]
        if len(left) == len(known):
            return False
        if left:
            self.rows[values] = left
            return True
        del self.rows[values]
        for at, (known_, vague) in self._indexes.items():
            key = tuple(values[i] for i in at)
            group = vague if None in key else known_[key]
            del group[values]
            if not group and None not in key:
                del known_[key]
        return True

    def close(self, stream: str) -> None:
        """A stream brings nothing more: what asks it goes."""
        for values, need in self.asking(stream):
            self.remove(values, need)
        self._asking.pop(stream, None)

    def agreeing(self, at: tuple[int, ...], key: Values) -> Iterator[Values]:
        """The rows whose values at some positions are these, or unknown."""
        if not at:
            yield from self.rows
            return
        if at not in self._indexes:
            index: tuple[dict[Values, Found], Found] = ({}, {})
            for values in self.rows:
                _file(index, at, values)
            self._indexes[at] = index
        known, vague = self._indexes[at]
        yield from known.get(key, ())
        for values in vague:
            if all(values[i] is None or values[i] == k for i, k in zip(at, key, strict=True)):
                yield values

    def meet(self, rows: Rows, layout: list[str]) -> tuple[Rows, list[str]]:
        """A natural join with few rows, in which an unknown agrees with anything (`meet`)."""
        columns = self.columns
        shared = [(layout.index(c), i) for i, c in enumerate(columns) if c in layout]
        added = [i for i, c in enumerate(columns) if c not in layout]
        nodes = frozenset(i for i, _ in shared if layout[i].endswith(".node"))
        met: Rows = {}
        for left, needs in rows.items():
            known = [(i, j) for i, j in shared if left[i] is not None]
            at, key = tuple(j for _, j in known), tuple(left[i] for i, _ in known)
            for right in self.agreeing(at, key):
                unified = unify(left, right, shared, nodes)
                if unified is None:
                    continue
                values = unified + tuple(right[j] for j in added)
                more = self.rows[right]
                spend(len(needs) * len(more) * (1 + (len(values) + len(more[0].times)) // 8))
                for need in needs:
                    for other in more:
                        add_need(met, values, need.joined(other))
        return met, layout + [columns[i] for i in added]


def _file(index: tuple[dict[Values, Found], Found], at: tuple[int, ...], values: Values) -> None:
    key = tuple(values[i] for i in at)
    known, vague = index
    if None in key:
        vague[values] = None
    else:
        known.setdefault(key, {})[values] = None
