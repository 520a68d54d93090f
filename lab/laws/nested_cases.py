"""Queries with queries inside, each kept incrementally, with documents and updates for them.

The documents hold orders, invoices, despatches, clients and stock. Values are few, so that keys
match often. `nested_queries.txt` holds the queries, each after its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

from lab.laws.xquery_cases import HISTORIES, QUERIES, History, XQueryCase

_KEYS = ("1", "2", "3", "4")
_CLIENTS = ("a", "b", "c")
_AMOUNTS = ("5", "10", "10.25", "12", "100", "7.5")
_SKUS = ("p", "q", "r")
_NAMES = ("order", "invoice", "shipped")


@cache
def nested_queries() -> dict[str, str]:
    """The queries by name."""
    text = (Path(__file__).parent / "nested_queries.txt").read_text(encoding="utf-8")
    parts = re.split(r"^\(: (.+) :\)$", text, flags=re.MULTILINE)
    return {name: query.strip() for name, query in zip(parts[1::2], parts[2::2], strict=True)}


def make_nested_case(random: Random) -> XQueryCase:
    """A random case of random queries."""
    return nested_case(random, random.sample(list(nested_queries().values()), QUERIES))


def nested_case(random: Random, queries: Sequence[str], histories: int = HISTORIES) -> XQueryCase:
    """Random documents and updates for queries."""
    made = tuple(_history(random) for _ in range(histories))
    return XQueryCase(tuple(queries), made, "incremental")


def _history(random: Random) -> History:
    document = f"<s>{''.join(_part(random) for _ in range(random.randint(0, 9)))}</s>"
    return History(document, tuple(_update(random) for _ in range(random.randint(2, 8))))


def _part(random: Random) -> str:
    key = f"<oid>{random.choice(_KEYS)}</oid>" if random.random() < 0.95 else ""
    client = f"<client>{random.choice(_CLIENTS)}</client>" if random.random() < 0.9 else ""
    match random.randrange(8):
        case 0 | 1 | 2:
            return f"<order>{key}{client}{_amount(random, 'total')}{_items(random)}</order>"
        case 3 | 4:
            return f"<invoice>{key}{_amount(random, 'amount')}</invoice>"
        case 5:
            return f"<shipped>{key}{client}</shipped>"
        case 6:
            return f"<client><name>{random.choice(_CLIENTS)}</name></client>"
    return f"<stock><sku>{random.choice(_SKUS)}</sku></stock>"


def _amount(random: Random, name: str) -> str:
    return f"<{name}>{random.choice(_AMOUNTS)}</{name}>" if random.random() < 0.9 else ""


def _items(random: Random) -> str:
    items = "".join(
        f"<item><sku>{random.choice(_SKUS)}</sku><q>{random.randint(1, 3)}</q></item>"
        for _ in range(random.choice((0, 0, 1, 2)))
    )
    return items + random.choice(("", "", "<paid/>"))


def _update(random: Random) -> str:
    at = random.randint(1, 5)
    match random.randrange(10):
        case 0 | 1:
            place = random.choice(("as first into", "as last into"))
            return f"insert node {_part(random)} {place} /s"
        case 2:
            place = random.choice(("before", "after"))
            return f"for $x in (/s/*)[{at}] return insert node {_part(random)} {place} $x"
        case 3:
            return f"delete node (/s/*)[{at}]"
        case 4:
            return f"delete node (/s/*/*)[{at * 2 - at % 2}]"
        case 5:
            old, new = random.sample(_NAMES, 2)
            return f"for $x in (/s/{old})[{at}] return rename node $x as '{new}'"
        case 6:
            return f"for $x in (/s/order)[{at}] return insert node <paid/> as last into $x"
        case 7:
            name = random.choice(("oid", "oid", "client", "sku"))
            values = {"oid": _KEYS, "client": _CLIENTS, "sku": _SKUS}[name]
            where, new = f"(//{name}[not(*)])[{at}]", random.choice(values)
        case _:
            where, new = f"(//total | //amount)[{at}]", random.choice(_AMOUNTS)
    return f"for $x in {where} return replace value of node $x with '{new}'"
