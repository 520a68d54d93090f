"""Attacks by name: XML that hurts whoever reads it carelessly (the catalogue of defusedxml, and
more), as bytes in which `{address}` is something outside that must not be touched; JSON lines that
are no updates; and that outside: a server that counts who asks, and a pipe."""

import gzip
import io
import json
import os
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
LARGE = "x" * 10_000_001


def packed() -> bytes:
    """A megabyte of spaces and a bomb behind it, in a zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a.xml", b"<b>" + b" " * 1_000_000 + b"</b>")
    return file.getvalue()


def doctype(inside: str, content: str = "<b><c>&x;</c></b>") -> bytes:
    return f"<!DOCTYPE b {inside}>{content}".encode()


XML_ATTACKS: dict[str, bytes] = {
    "billion laughs": doctype(f'[<!ENTITY l0 "lol">{LAUGHS}]', "<b><c>&l9;</c></b>"),
    "billion laughs in an attribute": doctype(f'[<!ENTITY l0 "x">{LAUGHS}]', '<b k="&l9;"/>'),
    "quadratic blowup": doctype(
        f'[<!ENTITY x "{"x" * 50_000}">]', f"<b><c>{'&x;' * 50_000}</c></b>"
    ),
    "an entity loop": doctype('[<!ENTITY x "&y;"><!ENTITY y "&x;">]'),
    "an external entity": doctype('[<!ENTITY x SYSTEM "{address}">]'),
    "an external entity in an attribute": doctype(
        '[<!ENTITY x SYSTEM "{address}">]', '<b k="&x;"/>'
    ),
    "a public entity": doctype('[<!ENTITY x PUBLIC "-//x" "{address}">]'),
    "an external parameter entity": doctype('[<!ENTITY % p SYSTEM "{address}"> %p;]'),
    "an unparsed entity": doctype('[<!ENTITY x SYSTEM "{address}" NDATA n>]', "<b/>"),
    "the entity of an external DTD": doctype('SYSTEM "{address}"'),
    "very many declared attributes": doctype(
        f"[<!ATTLIST b {' '.join(f'k{i} CDATA #IMPLIED' for i in range(6000))}>]", "<b/>"
    ),
    "deep nesting": b"<b>" * 100_000 + b"</b>" * 100_000,
    "deep nesting that never ends": b"<b>" * 100_000,
    "a huge text": f"<b><c>{LARGE}</c></b>".encode(),
    "a huge attribute": f'<b k="{LARGE}"/>'.encode(),
    "a huge namespace on many names": b'<b xmlns="%b">%b</b>'
    % (b"u" * 1_000_000, b"".join(b"<n%d/>" % i for i in range(3000))),
    "a huge namespace on one name many times": b'<b xmlns:p="%b">%b</b>'
    % (b"u" * 100_000, b"<p:c/>" * 50_000),
    "a namespace on many names of a small message": b'<b xmlns="%b">%b</b>'
    % (b"u" * 2_000, b"<c/>" * 500),
    "a huge namespace of attributes": b'<b xmlns:p="%b">%b</b>'
    % (b"u" * 100_000, b'<c p:k="" />' * 3000),
    "a huge namespace by default": doctype(
        f'[<!ATTLIST b xmlns CDATA "{"u" * 100_000}">]', f"<b>{'<c/>' * 3000}</b>"
    ),
    "a huge name": f"<b{'x' * 60_000}/>".encode(),
    "very many attributes": b"<b " + b" ".join(b'k%d=""' % i for i in range(6000)) + b"/>",
    "a NUL": b"<b>\0</b>",
    "a NUL reference": b"<b>&#0;</b>",
    "bad UTF-8": b"<b>\xc0\xbc\xff</b>",
    "UTF-7": b'<?xml version="1.0" encoding="UTF-7"?>+ADw-b/+AD4-',
    "a lie about the encoding": b'<?xml version="1.0" encoding="utf-16"?><b/>',
    "half of UTF-16": "<b>x</b>".encode("utf-16")[:-1],
    "entities hidden in UTF-16": doctype('[<!ENTITY x "y">]').decode().encode("utf-16"),
    "EBCDIC": '<?xml version="1.0" encoding="cp037"?><b/>'.encode("cp037"),
    "a gzip bomb": gzip.compress(b"<b>" + b" " * 1_000_000 + b"</b>"),
    "a gzip bomb in a gzip file": gzip.compress(gzip.compress(b" " * 1_000_000)),
    "a zip bomb": packed(),
    "two roots of which one is cut": b"<b/><b>",
}
"""Refused wherever XML is read."""

XML_LURES: dict[str, bytes] = {
    "an external DTD": doctype('SYSTEM "{address}"', "<b/>"),
    "a public DTD": doctype('PUBLIC "-//x//y" "{address}"', "<b/>"),
    "an inclusion": (
        b'<b xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="{address}"/></b>'
    ),
    "a stylesheet": b'<?xml-stylesheet href="{address}" type="text/xsl"?><b/>',
    "a schema": (
        b'<b xmlns:i="http://www.w3.org/2001/XMLSchema-instance"'
        b' i:noNamespaceSchemaLocation="{address}" i:schemaLocation="u {address}"/>'
    ),
    "very many comments": b"<b>" + b"<!---->" * 20_000 + b"</b>",
}
"""May be read, as nothing of it is carried out."""


def aimed(attack: bytes, address: str) -> bytes:
    """The attack with what it asks for."""
    return attack.replace(b"{address}", address.encode())


LINE_ATTACKS: dict[str, str] = {
    "nothing": "null",
    "a list": "[1, 2]",
    "arrays without end": "[" * 100_000,
    "objects without end": '{"insert":' * 50_000,
    "a depth that is a time": '{"insert": "<b/>", "at": ' + "[" * 50_000 + "]" * 50_000 + "}",
    "half a character": '{"insert": "<b>\\ud800</b>", "at": 1}',
    "half a character in a time": '{"insert": "<b/>", "at": "\\ud800"}',
    "a NUL in the text": '{"insert": "<b>\\u0000</b>", "at": 1}',
    "a time that is none": '{"insert": "<b/>", "at": NaN}',
    "a time without end": '{"insert": "<b/>", "at": 1e300}',
    "a number of many digits": '{"insert": "<b/>", "at": ' + "9" * 10_000 + "}",
    "a large number": '{"insert": "<b/>", "at": ' + "9" * 4_000 + "}",
    "another stream": '{"stream": "elsewhere", "insert": "<b/>", "at": 1}',
    "a stream that is half a character": '{"stream": "\\ud800", "insert": "<b/>", "at": 1}',
    "a stream that is a list": '{"stream": [], "insert": "<b/>", "at": 1}',
    "two things": '{"insert": "<b/>", "end": true}',
    "a deletion that explodes": json.dumps({"delete": "match //a" + "[b]" * 5000}),
    "no deletion": '{"delete": "match ((("}',
    "no JSON": "<b/>",
}
"""Lines (or a broker's messages) that are no update of the stream they are for."""


def aims(attack: bytes, outside: "Outside") -> Iterator[bytes]:
    """The attack, once for each thing outside that it may ask for."""
    for address in outside.addresses if b"{address}" in attack else [""]:
        yield aimed(attack, address)


def is_text(content: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


class Outside:
    """A server and a pipe that nobody may ask."""

    def __init__(self, place: Path) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setblocking(False)
        self._pipe = place / "pipe.dtd"
        os.mkfifo(self._pipe)
        port = self._server.getsockname()[1]
        self.addresses = (f"http://127.0.0.1:{port}/x.dtd", self._pipe.as_uri())

    def was_asked(self) -> bool:
        try:
            self._server.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        self._server.close()
