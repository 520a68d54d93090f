"""The functions of strings (F&O 3.1, section 5). An argument of None is the empty sequence."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isinf, isnan
from urllib.parse import quote

from axlog.errors import ValueProblem
from axlog.evaluate.atoms import Atom, text_of
from axlog.evaluate.signatures import Function, function
from axlog.query.numbers import rounded
from axlog.query.regex_matcher import Regex, regex

_SPACES = " \t\r\n"
_XML_RANGES = ((0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF))


def _concat(*values: Atom | None) -> str:
    return "".join(text_of(value) for value in values if value is not None)


def _string_join(values: Sequence[Atom], separator: str = "") -> str:
    return separator.join([text_of(value) for value in values])


def _substring(whole: str | None, start: float, length: float | None = None) -> str:
    whole = whole or ""
    first = float(rounded(start))
    last = inf if length is None else first + float(rounded(length))
    if isnan(first) or isnan(last) or (isinf(first) and first > 0):
        return ""
    begin = 0 if isinf(first) else max(int(first) - 1, 0)
    end = len(whole) if isinf(last) and last > 0 else int(last) - 1 if not isinf(last) else 0
    return whole[begin : max(end, 0)]


def _before(whole: str | None, part: str | None) -> str:
    head, found, _ = (whole or "").partition(part) if part else ("", "", "")
    return head if found else ""


def _after(whole: str | None, part: str | None) -> str:
    if not part:
        return whole or ""
    return (whole or "").partition(part)[2]


def _normalized(whole: str | None) -> str:
    text = whole or ""
    for space in "\t\r\n":
        text = text.replace(space, " ")
    return " ".join(part for part in text.split(" ") if part)


def _translate(whole: str | None, old: str, new: str) -> str:
    table = {ord(c): new[at] if at < len(new) else None for at, c in reversed([*enumerate(old)])}
    return (whole or "").translate(table)


def _compare(one: str | None, other: str | None) -> int | None:
    if one is None or other is None:
        return None
    return (one > other) - (one < other)


def _codepoint_equal(one: str | None, other: str | None) -> bool | None:
    return None if one is None or other is None else one == other


def _to_codepoints(whole: str | None) -> list[int]:
    return [ord(c) for c in whole or ""]


def _from_codepoints(values: Sequence[int]) -> str:
    for value in values:
        is_character = value in (9, 10, 13) or any(a <= value <= b for a, b in _XML_RANGES)
        if not is_character:
            raise ValueProblem("FOCH0001", f"{value} is not the code point of a character of XML")
    return "".join(map(chr, values))


def _encoded(whole: str | None) -> str:
    return quote(whole or "", safe="-_.~")


def _upper(whole: str | None) -> str:
    return (whole or "").upper()


def _lower(whole: str | None) -> str:
    return (whole or "").lower()


# Regular expressions -----------------------------------------------------------------------------


def _matches(whole: str | None, pattern: str, flags: str = "") -> bool:
    return regex(pattern, flags).matches(whole or "")


def _not_empty(pattern: str, flags: str) -> Regex:
    found = regex(pattern, flags)
    if found.matches_empty:
        raise ValueProblem("FORX0003", f"{pattern[:100]!r} matches the empty string")
    return found


def _tokenize(whole: str | None, pattern: str | None = None, flags: str = "") -> list[str]:
    if pattern is None:
        return _normalized(whole).split()
    found = _not_empty(pattern, flags)
    if not whole:
        return []
    parts, at = [], 0
    for start, end, *_ in found.spans(whole):
        parts.append(whole[at:start])
        at = end
    return [*parts, whole[at:]]


def _replace(whole: str | None, pattern: str, replacement: str, flags: str = "") -> str:
    found = _not_empty(pattern, flags)
    pieces = [replacement] if "q" in flags else _pieces(replacement, found.groups)
    text = whole or ""
    parts, at = [], 0
    for spans in found.spans(text):
        parts.append(text[at : spans[0]])
        for piece in pieces:
            if isinstance(piece, str):
                parts.append(piece)
            elif spans[2 * piece] >= 0:
                parts.append(text[spans[2 * piece] : spans[2 * piece + 1]])
        at = spans[1]
    return "".join((*parts, text[at:]))


def _pieces(replacement: str, groups: int) -> list[str | int]:
    r"""A replacement as texts and numbers of groups: `$1` is a group, `\$` a dollar."""
    pieces: list[str | int] = []
    at = 0
    while at < len(replacement):
        symbol, following = replacement[at], replacement[at + 1 : at + 2]
        if symbol == "\\":
            if following not in ("\\", "$"):
                raise ValueProblem("FORX0004", r"in a replacement, `\` stands before `\` or `$`")
            pieces.append(following)
            at += 2
        elif symbol == "$":
            end = at + 1
            while end < len(replacement) and replacement[end] in "0123456789":
                end += 1
            if end == at + 1:
                raise ValueProblem("FORX0004", "in a replacement, `$` stands before a number")
            end = min(end, at + 10)
            while int(replacement[at + 1 : end]) > max(groups, 9):
                end -= 1
            number = int(replacement[at + 1 : end])
            pieces.append(number if number <= groups else "")
            at = end
        else:
            pieces.append(symbol)
            at += 1
    return pieces


STRING_FUNCTIONS: dict[str, Function] = {
    "concat": function("any? any? [any?]", _concat, is_open=True),
    "string-join": function("any* [string]", _string_join),
    "contains": function("string? string?", lambda whole, part: (part or "") in (whole or "")),
    "starts-with": function(
        "string? string?", lambda whole, part: (whole or "").startswith(part or "")
    ),
    "ends-with": function(
        "string? string?", lambda whole, part: (whole or "").endswith(part or "")
    ),
    "substring": function("string? double [double]", _substring),
    "substring-before": function("string? string?", _before),
    "substring-after": function("string? string?", _after),
    "string-length": function("[string?]", lambda whole: len(whole or ""), takes_context=True),
    "normalize-space": function("[string?]", _normalized, takes_context=True),
    "upper-case": function("string?", _upper),
    "lower-case": function("string?", _lower),
    "translate": function("string? string string", _translate),
    "compare": function("string? string?", _compare),
    "codepoint-equal": function("string? string?", _codepoint_equal),
    "string-to-codepoints": function("string?", _to_codepoints, is_many=True),
    "codepoints-to-string": function("integer*", _from_codepoints),
    "encode-for-uri": function("string?", _encoded),
    "matches": function("string? string [string]", _matches),
    "replace": function("string? string string [string]", _replace),
    "tokenize": function("string? [string] [string]", _tokenize, is_many=True),
}
