"""Hardened parsing: bytes, texts, paths, files and elements to lxml elements.

Input is hostile. Entity declarations are refused, external entities and DTDs are never resolved or
fetched, and depth, size, text length and name length have limits that the user can raise. Each
attack has its own code. The parser is only ever given UTF-8. Other encodings are decoded first, so
that no encoding can hide an entity from the scan.

This module builds no document and does not know its depth and texts: `loader.py` does, and checks
those limits. Not handled: EBCDIC, UTF-7 and other encodings outside `ENCODINGS`. Attribute defaults
of a DTD are not added, except namespace declarations.
"""

from __future__ import annotations

import codecs
import os
import re
import xml.etree.ElementTree as StandardTree
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias
from xml.parsers import expat

from lxml import etree

from axlog.document.name_expansion import check_names
from axlog.errors import HostileError, InputError, LimitError, MalformedError, Place

Element: TypeAlias = etree._Element
Source: TypeAlias = (
    str
    | bytes
    | os.PathLike[str]
    | IO[bytes]
    | IO[str]
    | etree._Element
    | etree._ElementTree
    | StandardTree.Element
    | StandardTree.ElementTree
)
"""The sources a document can be read from."""

DEEPEST = 2048
"""Levels beyond which the parser stops, whatever the limits are."""

ENCODINGS = re.compile(
    r"utf-?8|(us-)?ascii|iso-?8859-?\d+|latin-?\d+|(windows-|cp)125\d|koi8-[ru]"
    r"|utf-?(16|32)(le|be|-le|-be)?|gb2312|gbk|gb18030|big5"
    r"|shift-?jis|windows-31j|cp932|euc-?(jp|kr)|iso-2022-jp"
)
"""The supported encodings, with `-` for `_`."""

_DECLARED = re.compile(rb"""^<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_POSITION = re.compile(r"\s*, line \d+, column \d+$")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a document and of the queries over it. Pass your own to change them.

    Parameters:
        depth: Elements on a path.
        size: Bytes of a document or message.
        text: Characters of a text, comment or attribute value.
        name: Characters of a name.
        attributes: Attributes of one element, or declared by its DTD.
        expansion: Characters of all names with their namespaces, as a multiple of the input's size.
        parts: Steps, connectives, comparisons, constraints and outputs of a query.
        branches: Branches of a query side by side below one step.
        rows: Rows of a join whose result is more than twenty times its input.
        work: Rows that a view may read during one update.

    >>> import axlog
    >>> axlog.parse("<a><b/></a>", options=axlog.Options(limits=axlog.Limits(depth=1)))
    Traceback (most recent call last):
    ...
    axlog.errors.LimitError: AX121: nested deeper than 1 levels ...
    """

    depth: int = 256
    size: int = 512 * 1024 * 1024
    text: int = 10_000_000
    name: int = 50_000
    attributes: int = 5_000
    expansion: int = 100
    parts: int = 2_000
    branches: int = 100
    rows: int = 1_000_000
    work: int = 200_000


DEFAULT_LIMITS = Limits()


class Parsed(NamedTuple):
    """A root element, and whether its source text may declare namespaces."""

    root: Element
    may_declare: bool


def read(source: Source, limits: Limits = DEFAULT_LIMITS, *, drops_blanks: bool = False) -> Parsed:
    """The root element of a source: XML as str or bytes, a path, a file, or an element.

    A `str` that starts with `<` is XML, any other `str` is a path. See `parse` for blanks.
    """
    if isinstance(source, etree._Element | etree._ElementTree):
        return Parsed(_root_of(source), True)
    content, name = _content_of(source, limits)
    return parse(content, limits, name, drops_blanks=drops_blanks)


def _content_of(source: Source, limits: Limits) -> tuple[str | bytes, str | None]:
    """The XML of a source and, if it has one, the source's name."""
    if isinstance(source, StandardTree.Element | StandardTree.ElementTree):
        return _write_standard(source), None
    if isinstance(source, bytes):
        return source, None
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source, None
    if isinstance(source, str | os.PathLike):
        return _read_path(source, limits), str(source)
    if callable(getattr(source, "read", None)):
        name = getattr(source, "name", None)
        return _read_file(source, limits), name if isinstance(name, str) else None
    raise _not_xml(type(source).__name__)


def _not_xml(what: str) -> InputError:
    return InputError(
        "AX103",
        f"a value of type {what} cannot be read as XML",
        expected="XML as str or bytes, a path, a file object, or an lxml or ElementTree element",
    )


def _root_of(source: etree._Element | etree._ElementTree) -> Element:
    root: Any = source.getroot() if isinstance(source, etree._ElementTree) else source
    if root is None:
        raise _not_xml("tree without a root")
    if not isinstance(root.tag, str):
        raise _not_xml(type(root).__name__.strip("_").lower())
    return root  # type: ignore[no-any-return]  # lxml-stubs: getroot is Any


def _write_standard(source: StandardTree.Element | StandardTree.ElementTree) -> bytes:
    root = source.getroot() if isinstance(source, StandardTree.ElementTree) else source
    if root is None or not isinstance(root.tag, str):
        raise _not_xml("tree without a root")
    tail, root.tail = root.tail, None  # the tail is not part of the element but would be written
    try:
        return StandardTree.tostring(root)
    except (TypeError, ValueError) as error:
        raise MalformedError("AX101", f"the element cannot be written as XML: {error}") from error
    finally:
        root.tail = tail


def _read_path(path: str | os.PathLike[str], limits: Limits) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(limits.size + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            "AX102",
            f"{str(path)[:200]!r}: {reason}",
            advice="give the path of a readable file, or XML text that starts with '<'",
        ) from error


def _read_file(file: Any, limits: Limits) -> str | bytes:
    """Read in pieces: a pipe or a socket returns less than requested."""
    pieces: list[Any] = []
    size = 0
    try:
        while size <= limits.size and (piece := file.read(limits.size + 1 - size)):
            pieces.append(piece)
            size += len(piece)
        content: Any = (pieces[0][:0] if pieces else b"").join(pieces)
    except OSError as error:
        raise InputError("AX102", f"the file cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        advice = "open the file in binary mode; XML declares its own encoding"
        raise MalformedError("AX113", str(error), advice=advice) from error
    except (TypeError, AttributeError):  # neither str nor bytes
        content = None
    if not isinstance(content, str | bytes):
        raise _not_xml("file that gives neither str nor bytes")
    return content


class _Nothing(etree.Resolver):
    """Resolves every external reference to nothing: the disk is never read."""

    def resolve(self, *request: Any) -> Any:
        untyped: Any = self  # lxml-stubs do not know resolve_empty
        return untyped.resolve_empty(request[-1])


_HARDENED: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "huge_tree": True,
    "encoding": "utf-8",
}
"""`huge_tree` removes the parser's own limits, which differ by version and do not name the cause.
Ours are checked on the result, which is bounded because no entity expands. `collect_ids` must not
be False: that makes libxml2 load external DTDs, whatever `load_dtd` says."""


def make_parser(drops_blanks: bool = False) -> etree.XMLParser:
    """Make the only kind of parser in axlog; it reads UTF-8, whatever the XML declares."""
    parser = etree.XMLParser(remove_blank_text=drops_blanks, **_HARDENED)
    parser.resolvers.add(_Nothing())
    return parser


def make_pull_parser() -> Any:
    """Make the same parser for input in pieces (`record_reader.py`)."""
    parser: Any = etree.XMLPullParser(events=("start", "end"), **_HARDENED)
    parser.resolvers.add(_Nothing())
    return parser


_shared_parser = lru_cache(maxsize=2)(make_parser)


def parse(
    content: str | bytes,
    limits: Limits = DEFAULT_LIMITS,
    name: str | None = None,
    *,
    drops_blanks: bool = False,
) -> Parsed:
    """Parse one document, or raise with the place.

    `drops_blanks` makes the parser omit white space between elements where that is certain: part
    of the white space that `recorder` drops, earlier. It errs beside CDATA and below a DTD.
    """
    if len(content) > limits.size:
        raise LimitError(
            "AX122",
            f"{name or 'the document'} is larger than {limits.size} bytes",
            advice="raise it with limits=Limits(size=...)",
        )
    encoded = _in_utf8(content, name)
    has_sections = b"!" in encoded and b"<!" in encoded
    has_doctype = has_sections and b"<!DOCTYPE" in encoded
    default = refuse_entities(encoded, name, limits) if has_doctype else 0
    may_declare = b"xmlns" in encoded
    if may_declare or default:
        check_names(encoded, limits, default)
    parser = make_parser() if has_doctype else _shared_parser(drops_blanks and not has_sections)
    try:
        root = etree.fromstring(encoded, parser)
    except etree.XMLSyntaxError as error:
        raise syntax_error(error, encoded, name, limits) from None
    if has_doctype:
        _check_doctype(root, parser, name)
    if len(encoded) > 4 * limits.attributes:
        _check_attributes(root, encoded, limits)
    return Parsed(root, may_declare)


def _check_attributes(root: Element, encoded: bytes, limits: Limits) -> None:
    """Refuse an element with too many attributes: reading them takes quadratic time.

    An attribute has at least four bytes, so such a tag fills one of the pieces of half its size.
    """
    size = max(1, 2 * limits.attributes)
    pieces = range(0, len(encoded) - size + 1, size)
    if all(encoded.find(b"<", start, start + size) >= 0 for start in pieces):
        return
    too_many: Any = root.xpath(f"boolean(//*[@*[{limits.attributes + 1}]])")
    if too_many:
        raise too_many_attributes(limits)


def too_many_attributes(limits: Limits) -> LimitError:
    return LimitError(
        "AX124",
        f"an element has more than {limits.attributes} attributes",
        advice="raise it with limits=Limits(attributes=...)",
    )


def _in_utf8(content: str | bytes, name: str | None) -> bytes:
    """The content in UTF-8, as the parser needs it."""
    try:
        if isinstance(content, str):
            return content.encode()
        encoding = encoding_of(content)
        return content if encoding == "utf-8" else content.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise MalformedError(
            "AX113",
            f"{name or 'the document'} is not in {error.encoding}: byte {error.start + 1} is wrong",
            advice="check the declared encoding",
        ) from None
    except UnicodeEncodeError:  # lone surrogates
        raise MalformedError("AX101", "the text holds characters that XML does not allow") from None


def encoding_of(content: bytes) -> str:
    """The encoding by the first bytes, else the declared one, else UTF-8."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    declared = _DECLARED.match(content[:1024])
    if declared is None:
        if content.startswith(b"\x4c\x6f\xa7\x94"):
            raise _unknown_encoding("EBCDIC")
        return "utf-8"
    encoding = declared[1].decode().lower().replace("_", "-")
    if not ENCODINGS.fullmatch(encoding) or re.match("utf-?(16|32)", encoding):
        # A declaration written in single bytes cannot truly declare wide characters.
        raise _unknown_encoding(encoding)
    try:
        encoding = codecs.lookup(encoding).name
    except LookupError:  # iso-8859-99
        raise _unknown_encoding(encoding) from None
    return "utf-8" if encoding == "ascii" and content.isascii() else encoding


def _unknown_encoding(encoding: str) -> MalformedError:
    return MalformedError(
        "AX113",
        f"the encoding {encoding} is not supported, or the bytes are not in it",
        advice="convert the document to UTF-8",
    )


def refuse_entities(
    content: bytes, name: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> int:
    """Raise if the prolog declares an entity, before the parser that would expand it runs.

    Also raise if the prolog declares very many attributes: the parser scans all of them for each.
    Returns the length of the longest namespace that the prolog gives to elements by default.
    """
    attributes = count(1)
    longest = 0

    scanner = expat.ParserCreate("utf-8")

    def declared(*_: Any) -> None:
        raise declares_entities(name)

    def declared_attribute(_: str, attribute: str, __: str, default: str | None, ___: Any) -> None:
        nonlocal longest
        if next(attributes) > limits.attributes:
            raise too_many_attributes(limits)
        if default and attribute.startswith("xmlns"):
            longest = max(longest, len(default))

    def started(*_: Any) -> None:
        raise _PrologEnded

    scanner.EntityDeclHandler = declared
    scanner.AttlistDeclHandler = declared_attribute
    scanner.StartElementHandler = started
    with suppress(_PrologEnded, expat.ExpatError):  # lxml reports syntax errors with their place
        scanner.Parse(content, True)
    return longest


def refuse_external(dtd: str) -> None:
    """Raise if a DTD declares external content, before the parser that would read it runs.

    Its own parameter entities may be used; the scanner itself bounds their growth.
    """
    outer = expat.ParserCreate("utf-8")
    outer.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    subset: list[Any] = []

    def declared(name: str, is_parameter: int, value: str | None, *_: Any) -> None:
        if value is None:
            raise HostileError(
                "AX111",
                f"the DTD declares the external entity {name[:50]!r}",
                advice="copy its content into the DTD; axlog never reads it",
            )

    def asked(context: str, *_: Any) -> int:
        if subset:
            raise HostileError("AX111", "the DTD refers to external content")
        subset.append(outer.ExternalEntityParserCreate(context, "utf-8"))
        subset[0].Parse(dtd.encode(), True)
        return 1

    outer.EntityDeclHandler = declared
    outer.ExternalEntityRefHandler = asked
    try:
        outer.Parse(b'<!DOCTYPE a SYSTEM "a"><a/>', True)
    except expat.ExpatError as error:
        if subset and "amplification" in str(error):
            raise HostileError("AX111", "the DTD's declarations expand without bound") from None
        return  # lxml reports the error


def is_encodable(text: str) -> bool:
    """Whether a text can be encoded: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _PrologEnded(Exception):
    """The scan has reached the root element."""


def declares_entities(name: str | None) -> HostileError:
    return HostileError(
        "AX111",
        f"{name or 'the document'} declares entities",
        advice="expand them first with a tool you trust; axlog never does",
    )


def _check_doctype(root: Element, parser: etree.XMLParser, name: str | None) -> None:
    """Check the parser's result: declarations that the scan missed, lost references."""
    dtd: Any = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise declares_entities(name)
    for entry in parser.error_log:
        # Below an external DTD an undeclared entity is no error, and vanishes from attributes.
        if entry.type == etree.ErrorTypes.WAR_UNDECLARED_ENTITY:
            raise _unresolved(entry.message, Place(max(entry.line, 1), max(entry.column, 1)))


def _unresolved(message: str, place: Place) -> HostileError:
    return HostileError("AX112", message, place=place, advice="replace it with its content")


def syntax_error(
    error: etree.XMLSyntaxError, content: bytes, name: str | None, limits: Limits
) -> InputError:
    """The error for a syntax error, by the parser's code: its message quotes the input."""
    message = _POSITION.sub("", str(error.msg or "not well-formed")).strip()
    line, column = error.position
    code = getattr(error, "code", None)
    text = content.decode(errors="replace") if len(content) < 1_000_000 else None
    place = Place(max(line or 1, 1), max(column or 1, 1), text, name)
    kinds = etree.ErrorTypes
    if code == kinds.ERR_UNDECLARED_ENTITY:
        return _unresolved(message, place)
    if code in (kinds.ERR_ENTITY_LOOP, kinds.ERR_ENTITY_PROCESSING):
        return HostileError("AX111", message, place=place)
    if code in (kinds.ERR_INVALID_ENCODING, kinds.ERR_UNSUPPORTED_ENCODING):
        return MalformedError("AX113", message, place=place, advice="check the declared encoding")
    if code == kinds.ERR_NAME_TOO_LONG:
        return LimitError("AX124", message, place=place)
    if code == kinds.ERR_RESOURCE_LIMIT:
        return _resource_error(message, place, limits)
    return MalformedError("AX101", message, place=place)


def _resource_error(message: str, place: Place, limits: Limits) -> InputError:
    """The error for one parser code that covers several limits; the message quotes no input."""
    if "amplification" in message:
        return LimitError(
            "AX122", "the declarations of its DTD would make the document grow", place=place
        )
    if "depth" in message:
        return too_deep(min(limits.depth, DEEPEST), place)
    return LimitError("AX123", message, place=place)


def too_deep(deepest: int, place: Place | None = None) -> LimitError:
    """The error for a document with more levels than it may have."""
    return LimitError(
        "AX121",
        f"nested deeper than {deepest} levels",
        place=place,
        advice=None if deepest >= DEEPEST else "raise it with limits=Limits(depth=...)",
    )
