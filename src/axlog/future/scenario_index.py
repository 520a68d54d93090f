"""Indexed scenarios: the inputs of an incremental join over generalised rows.

A `Part` holds the rows of one input of a join while data arrives (`scenario_tracker.py`). Rows are
found by some of their values, and by the streams that they depend on. Rows are only added, until a
stream that they depend on ends: then they are removed. Dominated needs of a row are dropped, as in
`generalized_rows.py`. That is safe: when a need becomes unsatisfiable, so do the needs that it
dominates.
"""

from __future__ import annotations

from collections.abc import Iterator

from axlog.future.generalized_rows import Need, Rows, Values, add_need, unify
from axlog.future.search_budget import spend

Found = dict[Values, None]
"""A set of rows in insertion order."""


class Part:
    """The rows of one input of a join, with indexes."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.rows: Rows = {}
        self._indexes: dict[tuple[int, ...], tuple[dict[Values, Found], Found]] = {}
        self._by_stream: dict[str, Found] = {}

    def take(self, rows: Rows) -> Rows:
        """Add rows, and return those that are new."""
        new: Rows = {}
        for values, needs in rows.items():
            kept = [need for need in needs if self.add(values, need)]
            if kept:
                new[values] = kept
        return new

    def add(self, values: Values, need: Need) -> bool:
        """Add an alternative need to a row; False if another dominates it."""
        known = self.rows.get(values)
        if known is not None and any(one is need for one in known):
            return False
        add_need(self.rows, values, need)
        if self.rows[values][-1] is not need:
            return False
        if known is None:
            for at, index in self._indexes.items():
                _index_row(index, at, values)
        for _, stream in need.brought:
            self._by_stream.setdefault(stream, {})[values] = None
        return True

    def depending_on(self, stream: str) -> list[tuple[Values, Need]]:
        """The needs that depend on a stream, with their rows."""
        return [
            (values, need)
            for values in self._by_stream.get(stream, ())
            for need in self.rows.get(values, ())
            if any(asked == stream for _, asked in need.brought)
        ]

    def remove(self, values: Values, need: Need) -> bool:
        """Remove a need of a row; whether it was present."""
        known = self.rows.get(values, [])
        left = [one for one in known if one is not need]
        if len(left) == len(known):
            return False
        if left:
            self.rows[values] = left
            return True
        del self.rows[values]
        for at, (exact, vague) in self._indexes.items():
            key = tuple(values[i] for i in at)
            group = vague if None in key else exact[key]
            del group[values]
            if not group and None not in key:
                del exact[key]
        return True

    def close(self, stream: str) -> None:
        """Remove the needs that depend on a stream, because the stream has ended."""
        for values, need in self.depending_on(stream):
            self.remove(values, need)
        self._by_stream.pop(stream, None)

    def agreeing(self, at: tuple[int, ...], key: Values) -> Iterator[Values]:
        """The rows whose values at these positions equal the key, or are unknown."""
        if not at:
            yield from self.rows
            return
        if at not in self._indexes:
            index: tuple[dict[Values, Found], Found] = ({}, {})
            for values in self.rows:
                _index_row(index, at, values)
            self._indexes[at] = index
        known, vague = self._indexes[at]
        yield from known.get(key, ())
        for values in vague:
            if all(values[i] is None or values[i] == k for i, k in zip(at, key, strict=True)):
                yield values

    def meet(self, rows: Rows, layout: list[str]) -> tuple[Rows, list[str]]:
        """A natural join with few rows, in which an unknown agrees with any value."""
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


def _index_row(
    index: tuple[dict[Values, Found], Found], at: tuple[int, ...], values: Values
) -> None:
    key = tuple(values[i] for i in at)
    known, vague = index
    if None in key:
        vague[values] = None
    else:
        known.setdefault(key, {})[values] = None
