"""Single updates of an auction document that concern XMark's queries, at random places.

Each query has a list of updates: an insertion, changes of values, and a deletion of what was
inserted. Targets are named by the value of an attribute or of a child.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from axlog.samples.auction import Counts

Update = tuple[str, str]
"""Its kind (insert, delete, change) and its statement."""

_DEEP = (
    "<parlist><listitem><parlist><listitem><text>a <emph>very <keyword>{word}</keyword></emph>"
    "</text></listitem></parlist></listitem></parlist>"
)


class AuctionUpdates:
    """Makes updates; every insertion is deleted again by a later update of the same list."""

    def __init__(self, random: Random, sizes: Counts, xml: str) -> None:
        self._random = random
        self._sizes = sizes
        found = re.findall(r'<buyer person="[^"]*"/>\s*<itemref item="([^"]*)"/>', xml)
        self._closed = found or re.findall(r'<itemref item="([^"]*)"/>', xml)
        self._number = 0

    def of(self, query: str) -> list[Update]:
        """One insertion, its changes and its deletion, for a query."""
        self._number += 1
        return [update for make in _OF_QUERY[query] for update in make(self)]

    @property
    def _name(self) -> str:
        return f"bench{self._number}"

    def _any(self, kind: str, count: int) -> str:
        return f"//{kind}[@id='{kind}{self._random.randrange(count)}']"

    def _any_person(self) -> str:
        return self._any("person", self._sizes.persons)

    def _any_auction(self) -> str:
        return self._any("open_auction", self._sizes.open_auctions)

    def _any_closed(self) -> str:
        return f"//closed_auction[itemref/@item='{self._random.choice(self._closed)}']"

    # Lists ----------------------------------------------------------------------------------------

    def first_person(self) -> list[Update]:
        """The person of Q1, a second time."""
        made = (
            f"<person id='person0'><name>{self._name}</name><emailaddress>{self._name}"
            "</emailaddress></person>"
        )
        mine = f"//person[emailaddress='{self._name}']"
        return [
            ("insert", f"insert node {made} before {self._any_person()}"),
            ("change", f"replace value of node {mine}/name with 'Ada'"),
            ("delete", f"delete node {mine}"),
        ]

    def person(self) -> list[Update]:
        """A person with an interest and an income; names and incomes of this one and of others."""
        category = f"category{self._random.randrange(self._sizes.categories)}"
        made = (
            f"<person id='{self._name}'><name>Ada</name><emailaddress>a</emailaddress>"
            f"<profile income='40000'><interest category='{category}'/></profile></person>"
        )
        mine, other = f"//person[@id='{self._name}']", self._any_person()
        return [
            ("insert", f"insert node {made} before {self._any_person()}"),
            ("change", f"replace value of node {mine}/name with 'Bob'"),
            ("change", f"replace value of node {mine}/profile/@income with '120000'"),
            ("change", f"replace value of node {other}/name with '{self._name}'"),
            ("delete", f"delete node {mine}"),
        ]

    def auction(self) -> list[Update]:
        """An open auction with two bidders."""
        made = (
            f"<open_auction id='{self._name}'><initial>500</initial><reserve>12.5</reserve>"
            "<bidder><personref person='person20'/><increase>1.5</increase></bidder>"
            "<bidder><personref person='person51'/><increase>4.5</increase></bidder>"
            "</open_auction>"
        )
        mine = f"//open_auction[@id='{self._name}']"
        return [
            ("insert", f"insert node {made} before {self._any_auction()}"),
            ("change", f"replace value of node {mine}/bidder[1]/increase with '3'"),
            ("change", f"replace value of node {mine}/reserve with '17.25'"),
            ("delete", f"delete node {mine}"),
        ]

    def initial(self) -> list[Update]:
        """The initial price of an auction, a little above or below what some people earn."""
        made = f"<open_auction id='{self._name}'><initial>30</initial></open_auction>"
        mine = f"//open_auction[@id='{self._name}']"
        prices = [f"{self._random.uniform(4, 19.9):.4f}" for _ in range(2)]
        near = [prices[0], f"{float(prices[0]) + 0.001:.4f}", prices[1], "30"]
        changes = [
            ("change", f"replace value of node {mine}/initial with '{price}'") for price in near
        ]
        return [
            ("insert", f"insert node {made} before {self._any_auction()}"),
            *changes,
            ("delete", f"delete node {mine}"),
        ]

    def closed(self) -> list[Update]:
        """A closed auction: its price, its buyer, and a keyword deep in its annotation."""
        random, sizes = self._random, self._sizes
        description = f"<description>{_DEEP.format(word='tin')}</description>"
        made = (
            f"<closed_auction><seller person='person1'/>"
            f"<buyer person='person{random.randrange(sizes.persons)}'/>"
            f"<itemref item='item{random.randrange(sizes.items)}'/><price>50</price>"
            f"<type>{self._name}</type><annotation>{description}</annotation></closed_auction>"
        )
        mine = f"//closed_auction[type='{self._name}']"
        buyer = f"person{random.randrange(sizes.persons)}"
        return [
            ("insert", f"insert node {made} before {self._any_closed()}"),
            ("change", f"replace value of node {mine}/price with '20'"),
            ("change", f"replace value of node {mine}/buyer/@person with '{buyer}'"),
            ("change", f"replace value of node {mine}//keyword with 'brass'"),
            ("delete", f"delete node {mine}"),
        ]

    def item(self) -> list[Update]:
        """An item in Europe or Australia: its name, its location, its description."""
        made = (
            f"<item id='{self._name}'><location>Egypt</location><name>ring</name>"
            "<description><text>of gold</text></description></item>"
        )
        mine = f"//item[@id='{self._name}']"
        region = self._random.choice(("europe", "australia"))
        return [
            ("insert", f"insert node {made} as first into /site/regions/{region}"),
            ("change", f"replace value of node {mine}/name with 'cup'"),
            ("change", f"replace value of node {mine}/location with 'Kenya'"),
            ("change", f"replace value of node {mine}/description with 'of tin'"),
            ("delete", f"delete node {mine}"),
        ]


_Lists = tuple[Callable[[AuctionUpdates], list[Update]], ...]
_PERSON: _Lists = (AuctionUpdates.person,)
_AUCTION: _Lists = (AuctionUpdates.auction,)
_CLOSED: _Lists = (AuctionUpdates.closed,)
_ITEM: _Lists = (AuctionUpdates.item,)
_OF_QUERY: dict[str, _Lists] = {
    "Q1": (AuctionUpdates.first_person,),
    "Q2": _AUCTION,
    "Q3": _AUCTION,
    "Q4": _AUCTION,
    "Q5": _CLOSED,
    "Q6": _ITEM,
    "Q7": (*_ITEM, *_PERSON, *_CLOSED),
    "Q8": (*_PERSON, *_CLOSED),
    "Q9": (*_PERSON, *_CLOSED),
    "Q10": _PERSON,
    "Q11": (*_PERSON, AuctionUpdates.initial),
    "Q12": (*_PERSON, AuctionUpdates.initial),
    "Q13": _ITEM,
    "Q14": _ITEM,
    "Q15": _CLOSED,
    "Q16": _CLOSED,
    "Q17": _PERSON,
    "Q18": _AUCTION,
    "Q19": _ITEM,
    "Q20": _PERSON,
}
