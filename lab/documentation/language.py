"""The language page: every construct of the query languages and of statements, carried out."""

from __future__ import annotations

from collections.abc import Iterator

from lab.documentation import patterns, xpath, xquery
from lab.documentation.examples import SHOP, paragraph

_HEAD = """# The query languages

Made by `make docs` from the grammar and the parsers' tables: every example was carried out to make
this page, and a test makes it again.

One pattern form, three texts for it, told apart by their first word: `match` begins a
[tree pattern](#tree-patterns), `for` or `let` (or a constructor, or a prolog) an
[XQuery view](#xquery-views), anything else is [XPath](#xpath). [Statements](#statements) change
documents. What lies outside is refused with its place and its name, never answered approximately.
Comparing rules are in [Meaning](meaning.md); what may be asked of the future in
[What may still happen](analysis.md).

Unless an example shows another document, it asks this one:
"""

_PARTS = (
    (
        "Tree patterns",
        "The native text. Rows are tuples of outputs with derivation counts. Words are keywords "
        "only where one can stand, so elements may have any name.",
        patterns.page,
    ),
    (
        "XPath",
        "A view's rows are the selected nodes, shown here by `id` and `val` "
        '(`axlog.xpath(text, show=("id", "val"))`; `cont`, `label` and `time` can be shown too). '
        "A condition is a Boolean view. In a predicate `//c` is absolute, as the recommendation "
        "says.",
        xpath.page,
    ),
    (
        "XQuery views",
        "`for`, `let`, `where`, `return`; the rows are the distinct tuples of what is returned, "
        "the constructor is their template: `view.xml(row)` writes a row, as shown here.",
        xquery.views,
    ),
    (
        "Statements",
        "XQuery Update, by `document.update(...)` and files of `axlog maintain`. Snapshot "
        "semantics: targets first, then the whole list; nothing is half applied. Statements are "
        "evaluated once, so they may calculate. Where nothing else is said, the document is "
        "`<a><b>1</b><c/></a>`. Without `node`, as in the papers, `insert` and `delete` take every "
        "target there is.",
        xquery.statements,
    ),
)


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield from ("```xml", SHOP.replace("><order", ">\n<order").replace("><shipped", ">\n<shipped"))
    yield "```"
    for title, words, part in _PARTS:
        yield from ("", f"## {title}", "", *paragraph(words))
        yield from part()
