"""The parser of updating expressions, in the syntax of the XQuery Update recommendation.

    insert node <phone>1</phone> as last into /site/people/person[@id = "person0"]
    copy $p := /site/people/person[1] modify delete nodes $p/phone return $p

A query accepts updates inside `modify` only; a statement (`update_parser.py`) accepts them
everywhere, also in a shorter syntax.
"""

from __future__ import annotations

import re

from axlog.query.constructor_parser import ConstructorParser
from axlog.query.expression_categories import Category, classify
from axlog.query.syntax_tree import Expression, Let, Transform, Update

UPDATES = r"(insert|delete)(?![\w.\-:])|(replace)\s+(?:value\s+of\s+)?node\b|(rename)\s+node\b"
_NODE = r"\s+nodes?(?![\w.\-:(])(?!\s+(?:into|as\s+(?:first|last)\s+into|before|after)\b)"
_TRANSFORM = r"copy\s+\$"
PLACES = {
    "as first into": "insert-first",
    "as last into": "insert-last",
    "into": "insert-into",
    "before": "insert-before",
    "after": "insert-after",
}


class UpdateExpressionParser(ConstructorParser):
    """XPath with constructors, updates where they are allowed, and `copy ... modify ... return`."""

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self.allows_updates = False
        self.has_updates = False

    def single(self) -> Expression:
        at = self.skip()
        if self.match_at(_TRANSFORM, at):
            return self._transform(at)
        if not self.allows_updates:
            return super().single()
        found = self.match_at(UPDATES, at)
        if found is None or not self.is_update(found):
            return super().single()
        self.has_updates = True
        self.offset = found.end(found.lastindex or 0)
        match found.group(found.lastindex or 0):
            case "insert":
                return self.insertion(at)
            case "delete":
                return self.deletion(at)
            case "replace":
                return self._replace(at)
            case _:
                return self._rename(at)

    def checked(self, found: Expression) -> Expression:
        """An expression of a query; refuses updates where a value is expected."""
        if self.has_updates and classify(found, self.text) is Category.UPDATING:
            raise self.unsupported("an update in a query", found.at, advice="Document.update")
        return found

    def is_update(self, found: re.Match[str]) -> bool:
        """Whether `insert` or `delete` is a keyword here, and not the name of an element."""
        return found.group(1) is None or self.match_at(_NODE, found.end()) is not None

    def takes_node(self) -> bool:
        """Read the word `node` or `nodes`, if it follows."""
        found = self.match_at(_NODE, self.offset)
        if found is None:
            return False
        self.offset = found.end()
        return True

    def insertion(self, at: int) -> Update:
        """`insert node ... into ...`, after the word `insert`."""
        self.takes_node()
        source = self.single()
        place = self.take_word(*PLACES)
        if place is None:
            raise self.unexpected("`into`, `as first into`, `as last into`, `before`, `after`")
        return Update(PLACES[place], (source, self.single()), at)

    def deletion(self, at: int) -> Update:
        """`delete nodes ...`, after the word `delete`."""
        self.takes_node()
        return Update("delete", (self.single(),), at, is_each=True)

    def _replace(self, at: int) -> Update:
        is_value = self.take_word("value of") is not None
        self.need_word("node")
        target = self.single()
        self.need_word("with")
        name = "replace-value" if is_value else "replace-node"
        return Update(name, (self.single(), target), at)

    def _rename(self, at: int) -> Update:
        self.need_word("node")
        target = self.single()
        self.need_word("as")
        return Update("rename", (self.single(), target), at)

    def _transform(self, at: int) -> Transform:
        self.take_word("copy")
        self.has_updates = True
        copies: list[Let] = []
        with self.nested():
            while True:
                start = self.skip()
                variable = self.need_variable()
                self.need(":=")
                copies.append(Let(variable, self.single(), start))
                if not self.take(","):
                    break
            self.need_word("modify")
            outside, self.allows_updates = self.allows_updates, True
            modified = self.single()
            self.allows_updates = outside
            self.need_word("return")
            return Transform(tuple(copies), modified, self.single(), at)
