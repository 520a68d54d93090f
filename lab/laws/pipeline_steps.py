"""Random pipelines whose views compute, group, order and choose (docs/design.md, section 4).

Two streams bring orders and invoices; the document has some of its own. Queries are put together
from patterns over one stream, over both, and over the part without streams, and from outputs that
compute, aggregate, choose the latest, and limit. Values are numbers, dates, texts that are neither,
and missing. Some streams replace their messages, and some views reject values.
"""

from __future__ import annotations

from random import Random

from axlog.document.stream_update import StreamUpdate

_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"{}/>'
_DOCUMENT = (
    "<shop><a>{}</a><b>{}</b><static><order><k>k1</k><s>s1</s><t>5</t></order>"
    "<order><k>k2</k><s>s9</s></order></static></shop>"
)
_DECLARED = ("", "", "", ' late="clock"', ' deletes="yes"', *[' replace="k"'] * 2, ' replace="s"')
_PATTERNS = (
    ("/shop/a/order[k/$k][s/$s]/t/$t", "kst"),
    ("/shop/a/order[s/$s]/t/$t", "st"),
    ("/shop/a/order/t/$t", "t"),
    ("//order[s/$s]/t/$t", "st"),
    ("//order[k/$k][s/$s]", "ks"),
    ("/shop/a/order", ""),
    ("/shop[a/order[k/$k][s/$s]/t/$t][b/order[k/$k]/s/$u]", "kstu"),
    ("/shop/a/order[k/$k][s/$s]/t/$t, /shop/b/order[k/$k]/t/$u", "kstu"),
    ("/shop[a/order[k/$k]/t/$t][b/order]", "kt"),
    ("/shop[a/order[k/$k]/t/$t][not(b/order/k/$k)]", "kt"),
    ("/shop[static/order[k/$k]/s/$s][b/order[k/$k]/t/$t]", "kst"),
    ("/shop[static/order/s/$s]/b/order/t/$t", "st"),
    ("/shop/a/order[not(s)]/t/$t", "t"),
    ("/shop/a/order[s/$s or k/$s]/t/$t", "st"),
    ("/shop[a/order/s/$s or b/order/s/$s]", "s"),
    ("/shop[a/order/s/$s][b/order/t/$t]", "st"),
    ("/shop[b/order/k/$k][a/order[k/$k]/s/$s][b/order/s/$s]", "ks"),
)
_CLOCKED = (
    ("/shop/a/order#n[k/$k][s/$s]/t/$t", "kst"),
    ("/shop/a/order#n[s/$s]", "s"),
    ("/shop/a/order#n", ""),
    ("//order[s/$s]/t/$t#n", "st"),
    ("/shop[a/order#m[k/$k][s/$s]/t/$t][b/order#n[k/$k]/s/$u]", "kstu"),
    ("/shop[a/order#n[k/$k]/t/$t][not(b/order/k/$k)]", "kt"),
    ("/shop[a/order[k/$k]/t/$t][not(b/order#n/k/$k)]", "kt"),
    ("/shop[a/order#m[k/$k]][not(b/order#n[k/$k])]", "k"),
    ("/shop[a/order[k/$k]/t/$t][not(b/order#n)]", "kt"),
    ("/shop[static/order[k/$k]/s/$s][not(b/order#n[k/$k]/t)]", "ks"),
    ("/shop/a/order[k/$k][not(s#n)]/t/$t", "kt"),
    ("/shop[b/order/k/$k][a/order#n[k/$k]/s/$s][b/order/s/$s]", "ks"),
)
_WORDS = ("1", "2", "10", "2.50", "-3", "0", "x", "1e3", "2024-02-28")


def make_steps(random: Random) -> tuple[str, list[str], list[StreamUpdate]]:
    """A document, the texts of views, and messages in order of time."""
    calls = [_CALL.format(stream, random.choice(_DECLARED)) for stream in "ab"]
    views = [_query(random) for _ in range(random.choice((1, 2, 3)))]
    sent: list[StreamUpdate] = []
    time = 0
    for _ in range(random.randrange(4, 30)):
        time += random.choice((0, 0, 1, 1, 2))
        stream = random.choice("aab")
        if random.random() < 0.05:
            text = f'match /order[k/"k{random.randrange(4)}"]'
            sent.append(StreamUpdate(stream, "delete", text, time / 1e6))
        else:
            sent.append(StreamUpdate(stream, "insert", _order(random), time / 1e6))
    return _DOCUMENT.format(*calls), views, sent


def _order(random: Random) -> str:
    inside = f"<k>k{random.randrange(5)}</k>" if random.random() < 0.9 else ""
    inside += f"<s>s{random.randrange(3)}</s>" if random.random() < 0.85 else ""
    for _ in range(random.choice((0, 1, 1, 1, 1, 2))):
        inside += f"<t>{random.choice(_WORDS)}</t>"
    return f"<order>{inside}</order>"


def _query(random: Random) -> str:
    is_clocked = random.random() < 0.35
    pattern, names = random.choice(_CLOCKED if is_clocked else _PATTERNS)
    columns = [f"${name}" for name in names]
    values = [column for column in columns if column in ("$t", "$u")] or columns
    text = f"match {pattern}"
    where: list[str] = []
    if is_clocked:
        compared = random.choice(("<=", "<=", ">=", ">=", "<", ">", "=", "!="))
        where.append(f"now - n {compared} {random.choice((0, 1, 2, 5))}us")
        where += ["now - m > 2us"] if "#m" in pattern and random.random() < 0.3 else []
    if values and random.random() < 0.3:
        value = random.choice(values)
        conditions = (f"{value} * 2 > 3", f"contains({value}, '1')", f"{value} != 'x'")
        where.append(random.choice(conditions))
    text += f" where {', '.join(where)}" if where else ""
    if is_clocked and columns and random.random() < 0.4:
        return f"{text} return {', '.join(random.sample(columns, random.randint(1, len(columns))))}"
    if not columns or random.random() < 0.65:
        return text + _grouped(random, columns, values)
    return text + _computed(random, columns, values)


def _grouped(random: Random, columns: list[str], values: list[str]) -> str:
    outputs = random.sample(columns, random.randrange(0, min(2, len(columns)) + 1))
    names = [column[1:] for column in outputs]
    if values and random.random() < 0.15:
        outputs.append(f"upper-case({random.choice(columns)}) as key")
        names.append("key")
    for number in range(random.choice((1, 1, 2, 3))):
        outputs.append(f"{_aggregate(random, columns, values)} as g{number}")
        names.append(f"g{number}")
    text = f" return {', '.join(outputs)}"
    if random.random() < 0.3:
        text += f" having {random.choice((names[-1], 'count()'))} > {random.choice('012')}"
    return text + _limited(random, names)


def _aggregate(random: Random, columns: list[str], values: list[str]) -> str:
    if not values:
        return "count()"
    value, column = random.choice(values), random.choice(columns)
    made = (
        "count()", f"count({value})", f"count(distinct {column})", f"sum({value})", f"sum({value})",
        f"avg({value})", f"min({value})", f"max({value})", f"string-join({column}, ',')",
        f"collect({value})", f"latest({value} by {column})", f"earliest({column} by {value})",
    )  # fmt: skip
    return random.choice(made)


def _computed(random: Random, columns: list[str], values: list[str]) -> str:
    outputs = random.sample(columns, random.randrange(0, len(columns) + 1))
    names = [column[1:] for column in outputs]
    value = random.choice(values)
    made = (f"{value} * 1.5", f"1 div {value}", f"concat({value}, '!')", f"{value} > 1")
    if not outputs or random.random() < 0.6:
        outputs.append(f"{random.choice(made)} as c")
        names.append("c")
    return f" return {', '.join(outputs)}" + _limited(random, names)


def _limited(random: Random, names: list[str]) -> str:
    if random.random() < 0.55:
        return ""
    keys = random.sample(names, random.randint(1, min(2, len(names))))
    written = [key + random.choice(("", " descending")) for key in keys]
    limit = "" if random.random() < 0.15 else f" limit {random.choice((0, 1, 2, 3))}"
    return f" order by {', '.join(written)}{limit}"
