"""Law 10 on XMark: all twenty queries are kept, and equal Saxon's answer after every update.

Updates copy, delete and change nodes of an auction document at random places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import axlog
from lab.reference.saxon import same_items, saxon_items, shown

FOLDER = "xmark-xpathmark"
_PARTS = ("person", "open_auction", "closed_auction", "item", "bidder", "interest", "initial")
_TEXTS = {
    "increase": ("1.50", "7.50", "30.00", "3.00"),
    "initial": ("1.00", "12.5", "0.5"),
    "price": ("39.99", "40", "41.5"),
    "location": ("United States", "Egypt", "Angola"),
    "reserve": ("100", "2.5"),
    "name": ("A", "B & C"),
}
_REFERENCES = ("buyer", "personref", "seller")


def queries(data: Path) -> dict[str, str]:
    """XMark's queries by their names, Q1 to Q20."""
    folder = data / FOLDER / "xmark-queries"
    return {f"Q{n}": (folder / f"q{n:02}.xq").read_text(encoding="utf-8") for n in range(1, 21)}


def updates(random: Random) -> Iterator[str]:
    """Random statements over an auction document."""
    while True:
        at = random.randint(1, 12)
        part = random.choice(_PARTS)
        match random.randrange(6):
            case 0 | 1:
                yield f"for $x in (//{part})[{at}] return insert node $x after $x"
            case 2:
                yield f"delete nodes (//{random.choice((*_PARTS, 'homepage', 'reserve'))})[{at}]"
            case 3:
                name = random.choice(list(_TEXTS))
                new = random.choice(_TEXTS[name]).replace("&", "&amp;")
                yield f'for $x in (//{name})[{at}] return replace value of node $x with "{new}"'
            case 4:
                person = f"person{random.randint(0, 24)}"
                name = random.choice(_REFERENCES)
                yield (
                    f"for $x in (//{name}/@person)[{at}] "
                    f"return replace value of node $x with '{person}'"
                )
            case _:
                income = random.choice(("20000", "60000", "120000.5"))
                yield (
                    f"for $x in (//profile/@income)[{at}] "
                    f"return replace value of node $x with '{income}'"
                )


def check_xmark(data: Path, random: Random, count: int, factor: str = "0.001") -> None:
    """Check all queries after each of some updates."""
    doc = axlog.parse(data / FOLDER / "docs" / f"auction-{factor}.xml")
    asked = queries(data)
    views = {name: doc.watch(text, name, maintainer="incremental") for name, text in asked.items()}
    found = updates(random)
    for _ in range(count):
        update = next(found)
        doc.update(update)
        xml = doc.xml()
        for name, text in asked.items():
            expected = saxon_items(re.sub(r'collection\("[^"]*"\)', "(/)", text), xml)
            items = views[name].items()
            assert expected is None or same_items(items, expected), (
                f"{name} after {update}: {shown(items)}; Saxon: {shown(expected)}"
            )
