"""libxml2's regression lines of XPath 1.0, judged by dumps of libxml2's results.

A dump lists the nodes of a set by kind and name. Lines without a document (`expr`) do not depend on
one. libxml2 evaluates relative paths at the root element, not at the document node.
XPointer (`xptr`) is another language and not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isclose, isnan
from pathlib import Path

from axlog.errors import QueryError
from axlog.query.syntax_tree import Context
from axlog.query.template import PieceKind
from axlog.query.xpath_parser import XPathParser
from axlog.query.xpath_routes import PathExpander
from lab.conformance.answering import Answer
from lab.conformance.cases import Case
from lab.conformance.judging import Judge

FOLDER = Path("xpath-xquery-conformance") / "libxml2"
_NODE = re.compile(r"^\d+\s+(\S+)(?: (\S+))?", re.MULTILINE)
_TAG = re.compile(r"<(?:[\w.\-]+:)?([^\s/>]+)")
_NAMESPACES = re.compile(r"^\d+\s+namespace \S+ href=(\S+)", re.MULTILINE)
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
                    text=_in_context(text),
                    document=documents / document,
                    judge=_judge(expected),
                    expects_error="empty (NULL)" in expected,
                    is_older=True,
                )


def _document_of(name: str, documents: Path) -> str:
    """Return the document of a file of lines: its name begins with the document's."""
    fitting = [each.name for each in documents.iterdir() if name.startswith(each.name)]
    return max(fitting, key=len)


def _blocks(dump: Path) -> Iterator[tuple[str, str]]:
    for block in dump.read_text(encoding="utf-8").split("========================\n")[1:]:
        head, _, expected = block.partition("\n")
        yield head.removeprefix("Expression: "), expected


def _in_context(text: str) -> str:
    """A relative path from the root element, where libxml2 starts; other texts as they are."""
    try:
        trails = PathExpander(text, {}).trails(XPathParser(text, {}).parse())
    except QueryError:
        return text
    is_relative = any(isinstance(trail.start, Context) for trail in trails)
    return f"/*/({text})" if is_relative else text


def _judge(expected: str) -> Judge:
    def judge(answer: Answer) -> bool | None:
        values = answer.values()
        if "Object is a Boolean" in expected:
            return answer.truth == ("true" in expected)
        for kind, same in (("number", _is_number), ("string", str.__eq__)):
            _, found, text = expected.partition(f"Object is a {kind} : ")
            if found:
                return len(values) == 1 and same(values[0], text.rstrip("\n"))
        if "Object is a Node Set" not in expected:
            return None
        listed = [(_KINDS.get(kind, kind), name or "") for kind, name in _NODE.findall(expected)]
        if len(answer.ids) == len(answer.items):
            return _described(answer) == listed
        if _NAMESPACES.search(expected):
            uris = _NAMESPACES.findall(expected)
            return sorted(uris) == sorted(values)  # their order is up to the implementation
        names = [_tag_of(piece.text) for piece in answer.items]  # Saxon's nodes have no ids
        return names == [name for kind, name in listed if kind == "ELEMENT"] or None

    return judge


def _is_number(value: str, dumped: str) -> bool:
    """Whether a value is the number of a dump, which has fewer digits."""
    names = {"Infinity": "inf", "-Infinity": "-inf", "INF": "inf", "-INF": "-inf"}
    try:
        one, other = float(names.get(value, value)), float(names.get(dumped, dumped))
    except ValueError:
        return False
    return one == other or (isnan(one) and isnan(other)) or isclose(one, other, rel_tol=1e-5)


def _described(answer: Answer) -> list[tuple[str, str]]:
    """The nodes of an answer by kind and name."""
    found = []
    for piece, id_ in zip(answer.items, answer.ids, strict=True):
        label = (id_.labels or ("/",))[-1]
        if label == "/":
            found.append(("/", ""))
        elif label.startswith("@"):
            found.append(("ATTRIBUTE", _dumped(_local(label[1:]))))
        elif label == "#text":
            found.append(("TEXT", ""))
        elif piece.kind is PieceKind.XML and piece.text.startswith("<!--"):
            found.append(("COMMENT", ""))
        elif piece.kind is PieceKind.XML and piece.text.startswith("<?"):
            found.append(("PI", piece.text[2:-2].partition(" ")[0]))
        else:
            found.append(("ELEMENT", _dumped(_local(label))))
    return found


def _tag_of(xml: str) -> str:
    found = _TAG.match(xml)
    return found[1] if found else ""


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _dumped(name: str) -> str:
    """Return a name as in the dumps: bytes beyond ASCII by their number."""
    return "".join(chr(byte) if byte < 0x80 else f"#{byte:X}" for byte in name.encode())
