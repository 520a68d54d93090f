"""Auction documents after the XMark DTD, at any scale factor, generated as a stream.

Factor 1 has XMark's 25,500 persons, 12,000 open and 9,750 closed auctions, 21,750 items over six
regions and 1,000 categories, and about 115 MB. Entity counts are XMark's. The frequencies of
optional and repeated elements were measured on documents of the original generator. References are
consistent: every IDREF names an existing id, and every item is auctioned once.

The words, names and values are not those of XMark. A query result that depends on the name of one
person or on the bidders of one auction therefore differs from the original. Memory does not depend
on the factor: the generator builds one entity at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, log

from axlog.errors import WorkloadError
from axlog.samples.chance import Chance
from axlog.samples.prose import Prose
from axlog.samples.vocabulary import (
    CITIES,
    COUNTRIES,
    EDUCATIONS,
    FIRST_NAMES,
    HOME_COUNTRY,
    HOSTS,
    LAST_NAMES,
    PAYMENTS,
    PROVINCES,
    SHIPPINGS,
)

REGIONS = {
    "africa": 550,
    "asia": 2000,
    "australia": 2200,
    "europe": 6000,
    "namerica": 10000,
    "samerica": 1000,
}
PERSONS, OPEN_AUCTIONS, CATEGORIES = 25_500, 12_000, 1_000

_DATES = tuple(
    f"{month:02}/{day:02}/{year}"
    for year in range(1998, 2002)
    for month in range(1, 13)
    for day in range(1, 29)
)
_TWO_DIGITS = tuple(f"{number:02}" for number in range(60))


def _subsets(terms: tuple[str, ...]) -> tuple[str, ...]:
    """Every subset of the terms, the empty one included."""
    choices = range(1 << len(terms))
    return tuple(", ".join(t for i, t in enumerate(terms) if choice >> i & 1) for choice in choices)


_PAYMENT_CHOICES = _subsets(PAYMENTS)
_SHIPPING_CHOICES = _subsets(SHIPPINGS)


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of entities of each kind in a document."""

    regions: dict[str, int]
    persons: int
    open_auctions: int
    closed_auctions: int
    categories: int

    @property
    def items(self) -> int:
        """Items of all regions: one for each auction."""
        return sum(self.regions.values())


def counts(factor: float) -> Counts:
    """The entity counts at a scale factor, rounded down as in XMark, and at least one of each.

    >>> counts(0.01).persons, counts(0.01).items
    (255, 217)
    """
    if not (isfinite(factor) and factor > 0):
        raise WorkloadError(
            "AX601",
            f"an auction document cannot have the factor {factor}",
            expected="a factor above 0",
            advice="0.01 gives about 1 MB, 1 gives about 115 MB",
        )

    def scaled(count: int) -> int:
        return max(1, int(count * factor + 1e-9))

    regions = {name: scaled(count) for name, count in REGIONS.items()}
    items, opened = sum(regions.values()), scaled(OPEN_AUCTIONS)
    return Counts(regions, scaled(PERSONS), opened, items - opened, scaled(CATEGORIES))


def auction(factor: float, seed: int = 0) -> Iterator[str]:
    """An auction document, as consecutive pieces of text.

    >>> "".join(auction(0.001))[:38]
    '<?xml version="1.0"?>\\n<site>\\n<regions>'
    """
    return _Site(counts(factor), seed).document()


def auctioned(sizes: Counts, seed: int, opened: bool) -> Iterator[int]:
    """The items of the open (or of the closed) auctions, ascending.

    Selection sampling: both passes replay one random sequence. They split the items exactly without
    a table of items in memory.
    """
    random = Chance(seed, "auctioned").random
    wanted, left = sizes.open_auctions, sizes.items
    for item in range(sizes.items):
        taken = random() * left < wanted
        wanted -= taken
        left -= 1
        if taken == opened:
            yield item


class _Site:
    """Generates one document: holds its sizes, its random sequence and its prose."""

    def __init__(self, sizes: Counts, seed: int) -> None:
        self._sizes = sizes
        self._seed = seed
        self._random = Chance(seed, "auction").random
        self._prose = Prose(self._random)

    def document(self) -> Iterator[str]:
        yield '<?xml version="1.0"?>\n<site>\n'
        yield from self._regions()
        yield from self._categories()
        yield from self._people()
        yield from self._open_auctions()
        yield from self._closed_auctions()
        yield "</site>\n"

    # -- draws

    def _repeats(self, mean: float) -> int:
        return int(0.5 - mean * log(1.0 - self._random()))

    def _bell(self) -> float:
        """Approximately normal with mean 0 and deviation 1, from three draws."""
        random = self._random
        return 2.0 * (random() + random() + random() - 1.5)

    def _date(self) -> str:
        return _DATES[int(self._random() * len(_DATES))]

    def _person(self) -> int:
        return int(self._random() * self._sizes.persons)

    def _trader(self) -> int:
        """A seller or buyer; most trades involve a few persons, as in XMark."""
        persons = self._sizes.persons
        return min(persons - 1, max(0, int(persons * (0.5 + 0.1 * self._bell()))))

    def _category(self) -> int:
        return int(self._random() * self._sizes.categories)

    def _country(self) -> str:
        random = self._random
        return HOME_COUNTRY if random() < 0.75 else COUNTRIES[int(random() * len(COUNTRIES))]

    def _quantity(self) -> int:
        return 1 + int(-0.42 * log(1.0 - self._random()))

    def _named(self) -> tuple[str, str, str]:
        random = self._random
        return (
            FIRST_NAMES[int(random() * len(FIRST_NAMES))],
            LAST_NAMES[int(random() * len(LAST_NAMES))],
            HOSTS[int(random() * len(HOSTS))],
        )

    def _title(self) -> str:
        return self._prose.words(1 + int(self._random() * 4))[:-1]

    # -- items

    def _regions(self) -> Iterator[str]:
        first = 0
        yield "<regions>\n"
        for region, size in self._sizes.regions.items():
            yield f"<{region}>\n"
            for number in range(first, first + size):
                yield self._item(number)
            first += size
            yield f"</{region}>\n"
        yield "</regions>\n"

    def _item(self, number: int) -> str:
        random = self._random
        featured = ' featured="yes"' if random() < 0.1 else ""
        parts = [
            f'<item id="item{number}"{featured}>\n<location>{self._country()}</location>\n'
            f"<quantity>{self._quantity()}</quantity>\n<name>{self._title()}</name>\n"
            f"<payment>{_PAYMENT_CHOICES[int(random() * 16)]}</payment>\n",
            self._prose.description(),
            f"<shipping>{_SHIPPING_CHOICES[int(random() * 16)]}</shipping>\n",
        ]
        parts.extend(
            f'<incategory category="category{self._category()}"/>\n'
            for _ in range(1 + min(9, self._repeats(3.0)))
        )
        parts.append("<mailbox>\n")
        parts.extend(self._mail() for _ in range(self._repeats(1.0)))
        parts.append("</mailbox>\n</item>\n")
        return "".join(parts)

    def _mail(self) -> str:
        first, last, host = self._named()
        to_first, to_last, to_host = self._named()
        return (
            f"<mail>\n<from>{first} {last} mailto:{last}@{host}</from>\n"
            f"<to>{to_first} {to_last} mailto:{to_last}@{to_host}</to>\n"
            f"<date>{self._date()}</date>\n{self._prose.text()}</mail>\n"
        )

    # -- categories

    def _categories(self) -> Iterator[str]:
        yield "<categories>\n"
        for number in range(self._sizes.categories):
            yield (
                f'<category id="category{number}">\n<name>{self._title()}</name>\n'
                f"{self._prose.description()}</category>\n"
            )
        yield "</categories>\n<catgraph>\n"
        for _ in range(self._sizes.categories):
            yield f'<edge from="category{self._category()}" to="category{self._category()}"/>\n'
        yield "</catgraph>\n"

    # -- persons

    def _people(self) -> Iterator[str]:
        yield "<people>\n"
        for number in range(self._sizes.persons):
            yield self._account(number)
        yield "</people>\n"

    def _account(self, number: int) -> str:
        random = self._random
        first, last, host = self._named()
        parts = [
            f'<person id="person{number}">\n<name>{first} {last}</name>\n'
            f"<emailaddress>mailto:{last}@{host}</emailaddress>\n"
        ]
        if random() < 0.5:
            abroad = 0 if random() < 0.85 else 1 + int(random() * 230)
            number_called = 1_000_000 + int(random() * 98_000_000)
            parts.append(
                f"<phone>+{abroad} ({100 + int(random() * 900)}) {number_called}</phone>\n"
            )
        if random() < 0.5:
            parts.append(self._address())
        if random() < 0.5:
            parts.append(f"<homepage>http://www.{host}/~{last}</homepage>\n")
        if random() < 0.5:
            digits = [str(1000 + int(random() * 9000)) for _ in range(4)]
            parts.append(f"<creditcard>{' '.join(digits)}</creditcard>\n")
        if random() < 0.5:
            parts.append(self._profile())
        if random() < 0.5:
            parts.append(self._watches())
        parts.append("</person>\n")
        return "".join(parts)

    def _address(self) -> str:
        random = self._random
        street = LAST_NAMES[int(random() * len(LAST_NAMES))]
        province = ""
        if random() < 0.55:
            province = f"<province>{PROVINCES[int(random() * len(PROVINCES))]}</province>\n"
        return (
            f"<address>\n<street>{1 + int(random() * 99)} {street} St</street>\n"
            f"<city>{CITIES[int(random() * len(CITIES))]}</city>\n"
            f"<country>{self._country()}</country>\n{province}"
            f"<zipcode>{3 + int(random() * 37)}</zipcode>\n</address>\n"
        )

    def _profile(self) -> str:
        random = self._random
        parts = [f'<profile income="{max(9876.0, 40_000 + 30_000 * self._bell()):.2f}">\n']
        parts.extend(
            f'<interest category="category{self._category()}"/>\n'
            for _ in range(self._repeats(3.0))
        )
        if random() < 0.53:
            parts.append(f"<education>{EDUCATIONS[int(random() * 4)]}</education>\n")
        if random() < 0.5:
            parts.append(f"<gender>{'male' if random() < 0.5 else 'female'}</gender>\n")
        parts.append(f"<business>{'Yes' if random() < 0.5 else 'No'}</business>\n")
        if random() < 0.53:
            parts.append(f"<age>{max(18, int(30 + 13 * self._bell()))}</age>\n")
        parts.append("</profile>\n")
        return "".join(parts)

    def _watches(self) -> str:
        random, auctions = self._random, self._sizes.open_auctions
        watched = [
            f'<watch open_auction="open_auction{int(random() * auctions)}"/>\n'
            for _ in range(self._repeats(4.0))
        ]
        return f"<watches>\n{''.join(watched)}</watches>\n"

    # -- auctions

    def _open_auctions(self) -> Iterator[str]:
        yield "<open_auctions>\n"
        for number, item in enumerate(auctioned(self._sizes, self._seed, opened=True)):
            yield self._open_auction(number, item)
        yield "</open_auctions>\n"

    def _open_auction(self, number: int, item: int) -> str:
        random = self._random
        initial = -100.0 * log(1.0 - random())
        parts = [f'<open_auction id="open_auction{number}">\n<initial>{initial:.2f}</initial>\n']
        if random() < 0.5:
            reserve = initial * (1.2 - 2.5 * log(1.0 - random()))
            parts.append(f"<reserve>{reserve:.2f}</reserve>\n")
        current = initial
        for _ in range(self._repeats(5.2)):
            increase = 1.5 * (1 + int(-9.7 * log(1.0 - random())))
            current += increase
            parts.append(self._bidder(increase))
        privacy = ""
        if random() < 0.46:
            privacy = f"<privacy>{'Yes' if random() < 0.5 else 'No'}</privacy>\n"
        parts.append(
            f'<current>{current:.2f}</current>\n{privacy}<itemref item="item{item}"/>\n'
            f'<seller person="person{self._trader()}"/>\n{self._annotation()}{self._terms()}'
            f"<interval>\n<start>{self._date()}</start>\n<end>{self._date()}</end>\n</interval>\n"
            "</open_auction>\n"
        )
        return "".join(parts)

    def _bidder(self, increase: float) -> str:
        random = self._random
        hour, minute, second = int(random() * 24), int(random() * 60), int(random() * 60)
        return (
            f"<bidder>\n<date>{self._date()}</date>\n"
            f"<time>{_TWO_DIGITS[hour]}:{_TWO_DIGITS[minute]}:{_TWO_DIGITS[second]}</time>\n"
            f'<personref person="person{self._person()}"/>\n'
            f"<increase>{increase:.2f}</increase>\n</bidder>\n"
        )

    def _annotation(self) -> str:
        return (
            f'<annotation>\n<author person="person{self._person()}"/>\n{self._prose.description()}'
            f"<happiness>{1 + int(self._random() * 10)}</happiness>\n</annotation>\n"
        )

    def _terms(self) -> str:
        """Quantity and type; lots of several pieces are often Dutch auctions."""
        quantity = self._quantity()
        kind = "Regular" if self._random() < 0.5 else "Featured"
        if quantity > 1 and self._random() < 0.6:
            kind += ", Dutch"
        return f"<quantity>{quantity}</quantity>\n<type>{kind}</type>\n"

    def _closed_auctions(self) -> Iterator[str]:
        yield "<closed_auctions>\n"
        for item in auctioned(self._sizes, self._seed, opened=False):
            price = -100.0 * log(1.0 - self._random())
            yield (
                f'<closed_auction>\n<seller person="person{self._trader()}"/>\n'
                f'<buyer person="person{self._trader()}"/>\n<itemref item="item{item}"/>\n'
                f"<price>{price:.2f}</price>\n<date>{self._date()}</date>\n"
                f"{self._terms()}{self._annotation()}</closed_auction>\n"
            )
        yield "</closed_auctions>\n"
