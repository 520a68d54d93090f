"""Judges: whether an answer meets the expectation of a suite.

QT3 writes expectations as XML: `assert-true`, `assert-eq`, `assert-xml`, ... alone or inside
`all-of` and `any-of`. An expression over `$result`, or a type, is not judged; an `all-of` is then
judged by its other members. A Boolean view has no row for false nor for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lxml import etree

from axlog.query.template import Piece, PieceKind
from lab.conformance.answering import Answer

_LITERAL = re.compile(
    r"\s*(?:\"([^\"]*)\"|'([^']*)'|(-?[\d.]+(?:[eE][+-]?\d+)?)|(true|false)\(\))\s*"
)
Judge = Callable[[Answer], bool | None]
"""Whether an answer is as expected; None if it cannot be judged here."""
Files = Callable[[str], Path | None]
_TEXT_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def judge_of(assertion: str, files: Files) -> Judge:
    """Return the judge of a QT3 result; `files` resolves its references."""
    element = etree.fromstring(assertion)
    return lambda answer: _judge(element, answer, files)


def assertion_of(assertion: str) -> str | None:
    """The condition on `$result` that an expectation is; None if it is more."""
    return _assertion(etree.fromstring(assertion))


def _assertion(element: Any) -> str | None:
    text = element.text or ""
    match etree.QName(element).localname:
        case "assert":
            return text
        case "assert-type":
            return f"$result instance of {text}"
        case "assert-eq":
            return f"$result eq ({text})"
        case "assert-deep-eq":
            return f"deep-equal($result, ({text}))"
        case "all-of":
            below = [_assertion(each) for each in element if isinstance(each.tag, str)]
            known = [f"boolean({each})" for each in below if each is not None]
            return " and ".join(known) if len(known) == len(below) else None
    return None


def _judge(element: Any, answer: Answer, files: Files) -> bool | None:
    kind = etree.QName(element).localname
    below = [_judge(each, answer, files) for each in element if isinstance(each.tag, str)]
    match kind:
        case "any-of":
            return True if True in below else None if None in below else False
        case "all-of":
            return False if False in below else True if True in below else None
        case "error":
            return False
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple(answer, element.text or "")
    if kind == "assert-string-value":
        is_normal = element.get("normalize-space") == "true"
        return _string_value(answer, element.text or "", is_normal)
    if kind == "assert-xml":
        file = element.get("file")
        path = files(file) if file else None
        if file and path is None:
            return None
        return same_xml(answer, path.read_text(encoding="utf-8") if path else element.text or "")
    return None


def _is_true(answer: Answer, text: str) -> bool | None:
    return answer.truth is True


def _is_false(answer: Answer, text: str) -> bool | None:
    return answer.truth is False


def _is_empty(answer: Answer, text: str) -> bool | None:
    if answer.truth is not None:
        return not answer.truth
    return answer.number is None and not answer.items


def _counts(answer: Answer, text: str) -> bool | None:
    return len(answer.values()) == int(text)


def _equals(answer: Answer, text: str) -> bool | None:
    values = answer.values()
    literal = literals(text)
    if literal is None or len(literal) != 1:
        return None
    return len(values) == 1 and _same(values[0], literal[0])


def _deeply_equals(answer: Answer, text: str) -> bool | None:
    literal = literals(text)
    if literal is None:
        return None
    values = answer.values()
    return len(values) == len(literal) and all(map(_same, values, literal))


_SIMPLE: dict[str, Callable[[Answer, str], bool | None]] = {
    "assert-true": _is_true,
    "assert-false": _is_false,
    "assert-empty": _is_empty,
    "assert-count": _counts,
    "assert-eq": _equals,
    "assert-deep-eq": _deeply_equals,
}


def literals(text: str) -> list[str | float] | None:
    """Return the constants of `"a", 1`; None if the text is anything else."""
    found: list[str | float] = []
    for part in re.findall(r"(?:\"[^\"]*\"|'[^']*'|[^,])+", text):
        literal = _LITERAL.fullmatch(part)
        if literal is None:
            return None
        double, single, number, truth = literal.groups()
        if number is not None:
            found.append(float(number))
        else:
            found.append(double if double is not None else single if single is not None else truth)
    return found


def _same(value: str, literal: str | float) -> bool:
    if isinstance(literal, str):
        return value == literal
    try:
        return float(value) == literal
    except ValueError:
        return False


def _string_value(answer: Answer, expected: str, is_normal: bool) -> bool:
    found = " ".join(answer.values())
    if is_normal:
        return found.split() == expected.split()
    return found == expected


# XML ----------------------------------------------------------------------------------------------


def same_xml(answer: Answer, expected: str) -> bool | None:
    """Whether the result is this XML, prefixes aside."""
    if any(item.kind is PieceKind.ATTRIBUTE for item in answer.items):
        return None
    before, after = answer.around
    declaration = re.compile(r"\s*<\?xml[^>]*\?>\s*")
    wanted = _wrapped(declaration.sub("", expected, count=1))
    written = [_serialised(answer, space) for space in (" ", "")]  # between values, texts
    if len(answer.items) == 1:
        written.append(answer.items[0].text)  # a document node may begin with text
    return any(_is_tree(before + each + after, wanted) for each in written)


def _is_tree(xml: str, wanted: Any) -> bool:
    try:
        return _same_tree(_wrapped(xml), wanted)
    except etree.XMLSyntaxError:
        return False


def _serialised(answer: Answer, space: str) -> str:
    written: list[str] = []
    last: Piece | None = None
    for item in answer.items:
        if last is not None and last.kind is item.kind is PieceKind.VALUE:
            written.append(space)
        is_xml = item.kind is PieceKind.XML
        written.append(item.text if is_xml else item.text.translate(_TEXT_ESCAPES))
        last = item
    return "".join(written)


def _wrapped(xml: str) -> Any:
    return etree.fromstring(f"<result>{xml}</result>")


def _same_tree(left: Any, right: Any) -> bool:
    return (
        left.tag == right.tag
        and dict(left.attrib) == dict(right.attrib)
        and (left.text or "") == (right.text or "")
        and (left.tail or "") == (right.tail or "")
        and len(left) == len(right)
        and all(map(_same_tree, left, right))
    )
