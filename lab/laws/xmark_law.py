"""Law 10 on XMark: all twenty queries are kept incrementally, and equal Saxon's answer.

The queries are the benchmark's own texts. The updates insert, delete, rename and change nodes of an
auction document: half of them at places that some query reads, the others anywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import axlog
from axlog.samples.auction import auction
from lab.reference.saxon import prepared, prepared_items, same_items, shown

FOLDER = "xmark-xpathmark"
_PARTS = (
    "person", "open_auction", "closed_auction", "item", "bidder", "interest", "initial", "profile",
    "description", "annotation", "keyword", "listitem", "personref", "buyer", "price", "watch",
)  # fmt: skip
_OPTIONAL = ("homepage", "reserve", "creditcard", "emailaddress", "address", "education", "age")
_TEXTS = {
    "increase": ("1.50", "7.50", "30.00", "3.00"),
    "initial": ("1.00", "12.5", "0.5", "19.99", "1000"),
    "price": ("39.99", "40", "41.5"),
    "location": ("United States", "Egypt", "Angola"),
    "reserve": ("100", "2.5"),
    "name": ("A", "B & C", "gold"),
    "keyword": ("gold", "a gold ring", "tin"),
    "gender": ("male", "female"),
    "homepage": ("", "http://here"),
}
_REFERENCES = ("buyer", "personref", "seller")
_NEW_NAMES = {
    "bidder": ("seller", "bidden"),
    "item": ("thing",),
    "thing": ("item",),
    "person": ("former",),
    "former": ("person",),
    "homepage": ("page",),
    "keyword": ("emph", "bold"),
    "emph": ("keyword",),
    "parlist": ("list",),
    "list": ("parlist",),
    "open_auction": ("closed_auction",),
    "closed_auction": ("open_auction",),
    "australia": ("europe",),
    "europe": ("australia",),
    "profile": ("portrait",),
    "portrait": ("profile",),
    "emailaddress": ("annotation",),
    "reserve": ("initial",),
}
_MOST_ERRORS = 5
"""Updates in a row after which a query is an error, until another document is taken."""
_DEEP = (
    "<parlist><listitem><parlist><listitem><text>some <emph>very <keyword>gold</keyword></emph>"
    "</text></listitem></parlist></listitem></parlist>"
)


def queries(data: Path) -> dict[str, str]:
    """XMark's queries by their names, Q1 to Q20."""
    folder = data / FOLDER / "xmark-queries"
    return {f"Q{n}": (folder / f"q{n:02}.xq").read_text(encoding="utf-8") for n in range(1, 21)}


def for_saxon(query: str) -> str:
    """A query with Saxon's context document in place of the benchmark's collection."""
    return re.sub(r'collection\("[^"]*"\)', "(/)", query)


def updates(random: Random) -> Iterator[str]:
    """Random statements over an auction document."""
    while True:
        at = random.randint(1, 12)
        match random.randrange(14):
            case 0 | 1:
                part = random.choice(_PARTS)
                place = random.choice(("before", "after"))
                yield f"for $x in (//{part})[{at}] return insert node $x {place} $x"
            case 2 | 3:
                yield f"delete node (//{random.choice((*_PARTS, *_OPTIONAL))})[{at}]"
            case 4 | 5:
                name = random.choice(list(_TEXTS))
                new = random.choice(_TEXTS[name]).replace("&", "&amp;")
                yield f'for $x in (//{name})[{at}] return replace value of node $x with "{new}"'
            case 6:
                yield _reference(random, at)
            case 7:
                yield _income(random, at)
            case 8:
                old = random.choice(list(_NEW_NAMES))
                new = random.choice(_NEW_NAMES[old])
                yield f"for $x in (//{old})[{at}] return rename node $x as '{new}'"
            case 9:
                yield from _bidders(random, at)
            case 10:
                where = random.choice(("closed_auction/annotation", "item"))
                yield (
                    f"for $x in (//{where}/description)[{at}] "
                    f"return replace node $x with <description>{_DEEP}</description>"
                )
            case 11:
                yield _optional(random, at)
            case _:
                yield _anywhere(random)


def _reference(random: Random, at: int) -> str:
    person = f"person{random.choice((0, 20, 51, random.randint(0, 24)))}"
    name = random.choice(_REFERENCES)
    where = f"(//{name}/@person)[{at}]" if random.random() < 0.7 else f"(//person/@id)[{at}]"
    return f"for $x in {where} return replace value of node $x with '{person}'"


def _income(random: Random, at: int) -> str:
    if random.random() < 0.3:
        return f"delete node (//profile/@income)[{at}]"
    income = random.choice(("20000", "30000", "60000", "100000", "120000.5"))
    if random.random() < 0.3:
        made = f"insert node attribute income {{'{income}'}} into $x"
        return f"for $x in (//profile[not(@income)])[{at % 3 + 1}] return {made}"
    return f"for $x in (//profile/@income)[{at}] return replace value of node $x with '{income}'"


def _bidders(random: Random, at: int) -> Iterator[str]:
    for person in random.sample(("person20", "person51", "person1"), 2):
        bidder = (
            f"<bidder><personref person='{person}'/><increase>{random.choice((1.5, 9))}</increase>"
            "</bidder>"
        )
        yield f"for $x in (//open_auction/initial)[{at}] return insert node {bidder} after $x"


def _optional(random: Random, at: int) -> str:
    name = random.choice(("homepage", "creditcard", "reserve"))
    owner = "open_auction" if name == "reserve" else "person"
    made = f"<{name}>{random.randint(1, 99)}</{name}>"
    return f"for $x in (//{owner}[not({name})])[{at}] return insert node {made} as last into $x"


def _anywhere(random: Random) -> str:
    """A deletion, a copy, a new text or a new name at any element below the first two levels."""
    node = f"(/site/*/*//*)[{random.randint(1, 1500)}]"
    match random.randrange(4):
        case 0:
            return f"delete node {node}"
        case 1:
            return f"for $x in {node} return insert node $x after $x"
        case 2:
            return f"for $x in {node}/text() return replace value of node $x with 'gold'"
    return f"for $x in {node} return rename node $x as 'text'"


def check_xmark(data: Path, random: Random, count: int, factor: float = 0.001) -> Counter[str]:
    """Check each query after at least `count` updates; the numbers of its answers compared.

    An answer of which Saxon says that it is an error (two values for `zero-or-one`) is not
    compared. A document that gives some query only errors is replaced by another one.
    """
    asked = queries(data)
    compared: Counter[str] = Counter(dict.fromkeys(asked, 0))
    while min(compared.values()) < count:
        doc = axlog.parse("".join(auction(factor, random.randrange(1000))))
        views = {
            name: doc.watch(text, name, maintainer="incremental") for name, text in asked.items()
        }
        assert all(view.explain().is_incremental for view in views.values())
        failing: Counter[str] = Counter()
        _compare(doc, views, asked, "at first")
        for update in updates(random):
            doc.update(update)
            for name, is_compared in _compare(doc, views, asked, update).items():
                compared[name] += is_compared
                failing[name] = 0 if is_compared else failing[name] + 1
            if max(failing.values()) >= _MOST_ERRORS or min(compared.values()) >= count:
                break
    return compared


def _compare(
    doc: axlog.Document, views: dict[str, axlog.View], asked: dict[str, str], when: str
) -> dict[str, bool]:
    """Compare all views with Saxon; False: of a query whose answer is an error."""
    document = prepared(doc.xml())
    found = {}
    for name, text in asked.items():
        expected = prepared_items(for_saxon(text), document)
        found[name] = expected is not None
        items = views[name].items()
        assert expected is None or same_items(items, expected), (
            f"{name} after {when}: {shown(items)}; Saxon: {shown(expected)}"
        )
    return found
