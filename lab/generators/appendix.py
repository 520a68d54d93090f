"""The updates of paper 5, appendix A.1 to A.5: insertions as printed, and target deletions.

Names are the paper's. The paper prints two updates as B3_L; the second, which spells out the whole
path, is called X2_L here after its XPathMark query. E6_L, X17_L and B5_L are printed with
`regions/*/*item` for `regions/*/item`. B1_A and B1_O are printed with `regions[...]/item`, which
selects nothing on XMark documents; `meant` has the intended path there (`regions[...]/*/item`).
"""

from __future__ import annotations

from dataclasses import dataclass

_NAMES = """<{0}> {1}
  <{0}> and </{0}>
  <{0}> some </{0}>
  <{0}> test </{0}>
  <{0}> nodes </{0}>
</{0}>"""
_ITEM = """<item>
  <location> {0}</location>
  <quantity> 1</quantity>
  <name> {1} Item </name>
  <payment>
    Creditcard, Personal Check, Cash
  </payment>{2}
</item>"""
_DESCRIPTION = """
  <description>
    Test description
  </description>"""


@dataclass(frozen=True, slots=True)
class AppendixUpdate:
    """One update: its target path and the tree it inserts."""

    name: str
    variable: str
    printed: str
    content: str
    meant: str

    @property
    def insertion(self) -> str:
        """The statement as printed."""
        return self._statement(self.printed)

    @property
    def meant_insertion(self) -> str:
        """The statement with the intended path."""
        return self._statement(self.meant)

    @property
    def deletion(self) -> str:
        """The deletion of the targets, in the form of the paper's section 2.3."""
        return f"delete {self.meant}"

    def _statement(self, path: str) -> str:
        return (
            f'let $c:= doc ("auction.xml")\nfor ${self.variable} in $c{path}\ninsert {self.content}'
        )


def _update(
    name: str, variable: str, path: str, content: str, meant: str | None = None
) -> AppendixUpdate:
    return AppendixUpdate(name, variable, path, content, meant or path)


def _names(label: str, text: str) -> str:
    return _NAMES.format(label, text)


def _item(location: str, name: str, more: str = "") -> str:
    return _ITEM.format(location, name, more)


UPDATES: dict[str, AppendixUpdate] = {
    one.name: one
    for one in (
        # A.1 linear paths
        _update("X1_L", "person", "/site/people/person", _names("name", "Martin")),
        _update("B3_L", "bidder", "//open_auction/bidder", _names("increase", "inserted 100.00")),
        _update(
            "X2_L",
            "increase",
            "/site/open_auctions/open_auction/bidder",
            _names("increase", "inserted 300.00"),
        ),
        _update(
            "E6_L",
            "item",
            "/site/regions/*/*item",
            _item("Unknown", "E6.L"),
            "/site/regions/*/item",
        ),
        _update(
            "X17_L",
            "item",
            "/site/regions/*/*item",
            _item("Unknown", "X17_L", _DESCRIPTION),
            "/site/regions/*/item",
        ),
        _update(
            "B5_L",
            "item",
            "/site/regions/*/*item/name",
            _item("Unknown", "B5_LB"),
            "/site/regions/*/item/name",
        ),
        # A.2 with a condition
        _update("B7_LB", "name", "//person[profile/@income]", _names("name", "Jim")),
        _update(
            "B3_LB",
            "increase",
            "/site/open_auctions\n  /open_auction[reserve]/bidder",
            _names("increase", "inserted 4.50"),
        ),
        _update("B5_LB", "item", "/site/regions/*/item[name]", _item("Unknown", "B5.LB")),
        # A.3 and
        _update(
            "A6_A",
            "name",
            "/site/people\n  /person[phone and homepage]",
            _names("name", "Mimma"),
        ),
        _update(
            "X3_A",
            "increase",
            "/site/open_auctions\n  /open_auction[privacy and bidder]/bidder",
            _names("increase", "inserted 150.00"),
        ),
        _update(
            "B1_A",
            "item",
            "/site\n  /regions[namerica or samerica]/item",
            _item("Canada", "B1_A"),
            "/site/regions[namerica or samerica]/*/item",
        ),
        _update(
            "E6_A",
            "item",
            "/site/regions/*\n  /item[description][name]",
            _item("Unknown", "E6_L"),
        ),
        _update(
            "X20_A",
            "item",
            "/site/regions//\n  item[description][name]",
            _item("Unknown", "X20_A", _DESCRIPTION),
        ),
        # A.4 or
        _update(
            "A7_O",
            "name",
            "/site/people\n  /person[phone or homepage]",
            _names("name", "loana"),
        ),
        _update(
            "X4_O",
            "increase",
            "/site/open_auctions\n  /open_auction[bidder or privacy]/bidder",
            _names("increase", "inserted 200.00"),
        ),
        _update(
            "X7_O",
            "item",
            "/site/regions\n  //item[description or name]",
            _item("Unknown", "X7.O"),
        ),
        _update(
            "B1_O",
            "item",
            "/site\n  /regions[namerica or samerica]/item",
            _item("Canada ", "B1.O", _DESCRIPTION),
            "/site/regions[namerica or samerica]/*/item",
        ),
        # A.5 and, or
        _update(
            "A8_AO",
            "name",
            "/site/people\n  /person[address and (phone or homepage)\n"
            "    and (creditcard or profile)]",
            _names("name", "Angela"),
        ),
        _update(
            "X5_AO",
            "increase",
            "/site/open_auctions\n  /open_auction[current and\n    (bidder or reserve)]/bidder",
            _names("increase", "inserted 250.00"),
        ),
        _update(
            "X8_AO",
            "item",
            "/site/regions\n  //item[description and (name or mailbox)]",
            _item("New Zealand", "X8.O"),
        ),
    )
}
"""Every update by its name, in the order of the appendix."""
