"""XML fragments as values: the content that a statement inserts, given by its caller."""

from __future__ import annotations

from axlog.document.loader import read_forest
from axlog.document.parser import DEFAULT_LIMITS, Element, Limits


class Fragment:
    """XML to pass to a statement as the value of a variable: one or more trees.

    A plain string is never parsed as XML: a statement inserts it as text. Give a string as a
    `Fragment` if it is XML and its nodes are meant.

    Parameters:
        xml: XML of one or more trees, as text or bytes.
        limits: Limits for the XML.

    >>> import axlog
    >>> doc = axlog.parse("<orders/>")
    >>> new = axlog.Fragment("<order id='1'/><order id='2'/>")
    >>> _ = doc.update("insert nodes $new into /orders", variables={"new": new})
    >>> print(doc)
    <orders><order id="1"/><order id="2"/></orders>
    >>> _ = doc.update("insert node $new into /orders", variables={"new": "<b/>"})
    >>> print(doc)
    <orders><order id="1"/><order id="2"/>&lt;b/&gt;</orders>
    """

    __slots__ = ("_trees", "_xml")

    def __init__(self, xml: str | bytes, limits: Limits = DEFAULT_LIMITS) -> None:
        self._trees = read_forest(xml, limits)
        self._xml = xml if isinstance(xml, str) else xml.decode("utf-8")

    @property
    def trees(self) -> list[Element]:
        """The trees as lxml elements, comments and instructions.

        >>> [tree.tag for tree in Fragment("<a/><b/>").trees]
        ['a', 'b']
        """
        return list(self._trees)

    def __str__(self) -> str:
        return self._xml

    def __repr__(self) -> str:
        return f"Fragment({self._xml!r})"
