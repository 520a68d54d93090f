"""Random pipelines whose views join relations that share no column: chains, triangles, products.

Four streams bring items with three values each. The document has some items of its own. Spark
splits such views over a grid of buckets (`runtime/grid.py`).
"""

from __future__ import annotations

from random import Random

from axlog.document.stream_update import StreamUpdate

_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
_DECLARED = ("", "", "", "", ' late="clock"', ' replace="p"', ' replace="k"')
_PATTERNS = (
    ("[a/i/p/$p#s][b/i[p/$p]/k/$k#t][c/i/k/$k]", "pk"),
    ("[a/i/p/$p#s][b/i[p/$p]/k/$k][c/i/k/$k#t]", "pk"),
    ("[a/i/p/$p#s][b/i[p/$p]/k/$k][c/i[k/$k]/m/$m][d/i/m/$m#t]", "pkm"),
    ("[a/i[p/$p]/k/$k#s][b/i[k/$k]/m/$m#t][c/i[m/$m]/p/$p]", "pkm"),
    ("[a/i/p/$p#s][b/i/k/$k#t]", "pk"),
    ("[a/i/p/$p#s][b/i[p/$p]/k/$k#t][not(c/i/k/$k)]", "pk"),
    ("[a/i/p/$p#s][b/i[p/$p]/k/$k#t][c/i/k/$k][not(d/i/p/$p)]", "pk"),
    ("[a/i/p/$p#s][b/i[p/$p]/k/$k#t][c/i/k/$k or d/i/k/$k]", "pk"),
    ("[own/i/p/$p][b/i[p/$p]/k/$k#s][c/i/k/$k#t]", "pk"),
    ("[a/i[p/$p]/m/$m#s][b/i[p/$p]/k/$k#t][c/i/k/$k][d/i]", "pkm"),
)
_TIMES = ("", "", "", "t - s <= 3us", "t >= s and t - s <= 2us", "s = t")


def make_chains(random: Random) -> tuple[str, list[str], list[StreamUpdate], str]:
    """A document, the texts of views, messages in order of time, and a fact, which may be empty."""
    keyed = random.choice(("", "", "a", "b", "c"))
    inside = {s: "".join(_item(random) for _ in range(random.choice((0, 0, 1, 2)))) for s in "abcd"}
    calls = {s: _CALL.format(s, "" if keyed else random.choice(_DECLARED)) for s in "abcd"}
    used: set[str] = set()
    if keyed:
        inside[keyed] = ""
    parts = "".join(f"<{s}>{inside[s]}{calls[s]}</{s}>" for s in "abcd")
    document = f"<r>{parts}<own>{_item(random)}{_item(random)}</own></r>"
    views = [_query(random) for _ in range(random.choice((1, 1, 2)))]
    sent: list[StreamUpdate] = []
    time = 0
    for _ in range(random.randrange(5, 28)):
        time += random.choice((0, 0, 1, 1, 2))
        stream = random.choice("abbcd")
        value = f"v{random.randrange(9)}"
        if stream == keyed:
            if value in used:
                continue
            used.add(value)
        made = _item(random, value if stream == keyed else None)
        sent.append(StreamUpdate(stream, "insert", made, time / 1e6))
    return document, views, sent, f"key {keyed}/i by k trusted" if keyed else ""


def _item(random: Random, key: str | None = None) -> str:
    values = {name: f"v{random.randrange(3)}" for name in "pkm" if random.random() < 0.9}
    if key is not None:
        values["k"] = key
    return f"<i>{''.join(f'<{name}>{value}</{name}>' for name, value in values.items())}</i>"


def _query(random: Random) -> str:
    pattern, names = random.choice(_PATTERNS)
    where = random.choice(_TIMES)
    text = f"match /r{pattern}" + (f" where {where}" if where else "")
    shown = [f"${name}" for name in names]
    if random.random() < 0.25:
        grouped = [column for column in shown if random.random() < 0.4]
        return f"{text} return {', '.join([*grouped, 'count() as n'])}"
    if random.random() < 0.15:
        shown = shown[:-1]
    if random.random() < 0.2:
        shown.append("s.time")
    return f"{text} return {', '.join(shown)}"
