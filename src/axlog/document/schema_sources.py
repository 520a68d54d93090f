"""Types in the forms that users give them: unordered DTDs, DTDs and XML Schemas, as text or files.

The form follows from the beginning: `<!` (or a file name in `.dtd`) is a DTD, another `<` (or
`.xsd`) an XML Schema, anything else the text of `schema_parser`. Several sources are read in turn.
An unordered DTD adds to the sources before it, because DTDs and XML Schemas do not mention calls.

    axlog truth orders.xml QUERY --types orders.dtd --types calls.txt
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from axlog.document.schema import Schema
from axlog.document.schema_derivation import from_dtd, from_xsd
from axlog.document.schema_parser import parse_schema
from axlog.errors import InputError, SchemaError

Types = Schema | str | Path
"""A source of a type."""


def read_types(given: Types | Iterable[Types], root: str) -> Schema:
    """Read one or more sources; `root` is the document's root, which a DTD does not name.

    >>> sources = ("<!ELEMENT a (b*)><!ELEMENT b EMPTY>", "a -> |w| <= 1  call w root: b")
    >>> print(read_types(sources, "a"))
    root: a
    a -> |b| >= 0 & |w| <= 1
    b ->
    call w root: b
    """
    sources = [given] if isinstance(given, Schema | str | Path) else list(given)
    found: Schema | None = None
    for source in sources:
        found = _read(source, root, found)
    if found is None:
        raise SchemaError("AX703", "no type is given")
    return found


def _read(source: Types, root: str, base: Schema | None) -> Schema:
    if isinstance(source, Schema):
        made = source
    else:
        text = source if isinstance(source, str) else _content(source)
        ending = source.suffix.lower() if isinstance(source, Path) else ""
        start = text.lstrip()
        if ending == ".dtd" or start.startswith(("<!ELEMENT", "<!ATTLIST", "<!ENTITY", "<!--")):
            made = from_dtd(text, root)
        elif ending == ".xsd" or start.startswith("<"):
            made = from_xsd(str(source) if isinstance(source, Path) else text)
        else:
            return parse_schema(text, base)
    if base is not None:
        raise SchemaError(
            "AX703", "a second type replaces the first", expected="the text of an unordered DTD"
        )
    return made


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("AX102", f"{str(path)!r}: {error}") from None
