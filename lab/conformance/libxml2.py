"""libxml2's regression lines of XPath 1.0, judged by dumps of libxml2's results.

A dump lists the nodes of a set by kind and name. Lines without a document (`expr`) do not depend on
one. libxml2 evaluates relative paths at the root element, not at the document node: those are
outside. XPointer (`xptr`) is another language and not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from axlog.errors import QueryError
from axlog.query.syntax_tree import Context
from axlog.query.template import Piece, PieceKind
from axlog.query.xpath_parser import XPathParser
from axlog.query.xpath_routes import PathExpander
from lab.conformance.answering import Answer
from lab.conformance.cases import Case
from lab.conformance.judging import Judge

FOLDER = Path("xpath-xquery-conformance") / "libxml2"
_NODE = re.compile(r"^\d+\s+(\S+)(?: (\S+))?", re.MULTILINE)
_TAG = re.compile(r"<(?:[\w.\-]+:)?([^\s/>]+)")
_ORDER_OF_STRINGS = re.compile(r"'[^']*' [<>]=? '[^']*'")
_KINDS = {"CDATA_SECTION": "TEXT"}


def cases(data: Path) -> Iterator[Case]:
    """One case for each line with a dump."""
    folder = data / FOLDER
    documents = folder / "test" / "XPath" / "docs"
    for part in ("tests", "expr"):
        for dump in sorted((folder / "result" / "XPath" / part).iterdir()):
            document = _document_of(dump.name, documents) if part == "tests" else "simple"
            for number, (text, expected) in enumerate(_blocks(dump), 1):
                yield Case(
                    suite="libxml2",
                    part=part,
                    name=f"{dump.name} {number}",
                    text=text,
                    document=documents / document,
                    judge=_judge(expected),
                    expects_error="empty (NULL)" in expected,
                    outside=_context(text),
                )


def _document_of(name: str, documents: Path) -> str:
    """Return the document of a file of lines: its name begins with the document's."""
    fitting = [each.name for each in documents.iterdir() if name.startswith(each.name)]
    return max(fitting, key=len)


def _blocks(dump: Path) -> Iterator[tuple[str, str]]:
    for block in dump.read_text(encoding="utf-8").split("========================\n")[1:]:
        head, _, expected = block.partition("\n")
        yield head.removeprefix("Expression: "), expected


def _context(text: str) -> str | None:
    if _ORDER_OF_STRINGS.fullmatch(text):
        return "an order of strings, which XPath 1.0 compares as numbers"
    try:
        trails = PathExpander(text, {}).trails(XPathParser(text, {}).parse())
    except QueryError:
        return None
    if any(isinstance(trail.start, Context) for trail in trails):
        return "a relative path, which libxml2 starts at the root element"
    return None


def _judge(expected: str) -> Judge:
    def judge(answer: Answer) -> bool | None:
        if "Object is a Boolean" in expected:
            return answer.truth == ("true" in expected)
        if "Object is a Node Set" not in expected:
            return None
        listed = [(_KINDS.get(kind, kind), name or "") for kind, name in _NODE.findall(expected)]
        return [_described(item) for item in answer.items] == listed

    return judge


def _described(item: Piece) -> tuple[str, str]:
    match item.kind:
        case PieceKind.XML if item.name == "/":
            return "/", ""
        case PieceKind.XML if item.text.startswith("<!--"):
            return "COMMENT", ""
        case PieceKind.XML if item.text.startswith("<?"):
            return "PI", item.text[2:-2].partition(" ")[0]
        case PieceKind.XML:
            tag = _TAG.match(item.text)
            return "ELEMENT", _dumped(tag[1]) if tag else ""
        case PieceKind.ATTRIBUTE:
            return "ATTRIBUTE", _dumped(item.name)
        case _:
            return "TEXT", ""


def _dumped(name: str) -> str:
    """Return a name as in the dumps: bytes beyond ASCII by their number."""
    return "".join(chr(byte) if byte < 0x80 else f"#{byte:X}" for byte in name.encode())
