"""All pairs of view and update as a page: sums, the pairs where lxml is faster, every pair.

`lab bench tods --table FILE` writes it from the pairs of one run; `docs/algebraic-pairs.md` is such
a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Plain = dict[str, Any]
"""One pair as it is written in JSON (`tods_pairs.plain`)."""

_INTRODUCTION = """\
# All pairs of view and update (P5 section 6)

Made by `python -m lab bench tods --full --resume PARTS --table FILE`, all sizes in one run; see
[algebraic.md](algebraic.md) for what is measured and what the two comparisons are. Processor time;
up to 10 MB the least of three, above that every side once; the machine was busy with other work, so
compare sides, not sizes. `ratio` is lxml over ours; `own` is our own evaluation of the whole view;
`way` says what was done for the view. `nothing`: the labels of the update do not meet the view's
(rows may be shown otherwise all the same). `recomputed`: a label that the view needs has no node
left, so all its rows go."""


def page(found: Sequence[Plain]) -> str:
    """The whole page, in Markdown."""
    sizes = sorted({one["size"] for one in found})
    parts = [_INTRODUCTION, "## Sums", _sums(found, sizes)]
    parts += ["## Pairs where lxml takes less", _lost(found, sizes)]
    for size in sizes:
        parts += [f"## {size:g} MB", table([one for one in found if one["size"] == size])]
    return "\n\n".join(parts)


def table(found: Iterable[Plain]) -> str:
    """Pairs as a table: incremental, recomputation, ratio."""
    lines = [
        "| update | kind | view | targets | incremental, ms | lxml nodes, ms | ratio "
        "| told, ms | lxml rows, ms | ratio | own, ms | way |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one['update']} | {one['kind']} | {one['view']} | {one['targets']} "
        f"| {one['incremental']:.3f} | {one['recomputed']['lxml']:.3f} | {one['ratio']:.1f} "
        f"| {one['told']:.3f} | {one['recomputed']['lxml rows']:.3f} | {one['ratio_told']:.1f} "
        f"| {one['recomputed']['own']:.3f} | {one['way']} |"
        for one in found
    ]
    return "\n".join(lines)


def _sums(found: Sequence[Plain], sizes: Sequence[float]) -> str:
    lines = [
        "| MB | pairs | incremental, ms | lxml nodes, ms | lxml less in | told, ms "
        "| lxml rows, ms | lxml less in | own, ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        here = [one for one in found if one["size"] == size]
        lines.append(
            f"| {size:g} | {len(here)} | {sum(one['incremental'] for one in here):.0f} "
            f"| {_asked(here, 'lxml'):.0f} | {sum(one['ratio'] < 1 for one in here)} "
            f"| {sum(one['told'] for one in here):.0f} | {_asked(here, 'lxml rows'):.0f} "
            f"| {sum(one['ratio_told'] < 1 for one in here)} | {_asked(here, 'own'):.0f} |"
        )
    return "\n".join(lines)


def _asked(here: Iterable[Plain], what: str) -> float:
    return float(sum(one["recomputed"][what] for one in here))


def _lost(found: Sequence[Plain], sizes: Sequence[float]) -> str:
    """For each size, view and kind: the slower updates, and their largest extra cost."""
    lines = [
        "| MB | against | view | kind | way | updates | more by at most, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        for against, ratio, ours in (("lxml", "ratio", "incremental"),
                                     ("lxml rows", "ratio_told", "told")):  # fmt: skip
            groups: dict[tuple[str, str, str], list[Plain]] = {}
            for one in found:
                if one["size"] == size and one[ratio] < 1:
                    groups.setdefault((one["view"], one["kind"], one["way"]), []).append(one)
            for (view, kind, way), here in groups.items():
                most = max(one[ours] - one["recomputed"][against] for one in here)
                names = " ".join(one["update"] for one in here)
                what = "nodes" if against == "lxml" else "rows"
                lines.append(
                    f"| {size:g} | {what} | {view} | {kind} | {way} | {names} | {most:.3f} |"
                )
    return "\n".join(lines)
