"""A call of a web service as a message: what was asked, and what was answered.

    <in-call><caller>127.0.0.1</caller><time>2026-03-02T09:00:00+00:00</time>
      <method>POST</method><path>/orders</path><query>dry=1</query><status>201</status>
      <duration>0.004</duration><header name="x-shop">north</header>
      <request type="application/json"><body><id>17</id></body></request>
      <response type="application/xml"><order><id>17</id></order></response></in-call>

The names are those of the source `access-log`. A call that the observed program receives is an
`in-call`; one that it makes is an `out-call`, with its `callee`.

Bodies. XML stays XML. JSON becomes elements below `body`: a member is an element of its name, a
member of a list one `item`; a name that XML does not allow is `member` with the attribute `name`. A
form becomes its fields. Texts stay texts. Of anything else, and of a body that is longer than the
limit, only the number of bytes is published. XML that holds calls of axlog becomes text: a client
must not be able to add a call to a document.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from lxml import etree

from axlog.connect.alerters.secrets import MASK, Masks
from axlog.connect.sources.poller import clean
from axlog.document.parser import DEFAULT_LIMITS, Limits, parse
from axlog.document.tree import CALL_NAMESPACE
from axlog.errors import AxlogError

Headers = Sequence[tuple[str, str]]
_NAME = re.compile(r"[A-Za-z_][\w.\-]*")


class Body:
    """The first bytes of a body, as they pass by."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._kept = 0
        self.size = 0

    def add(self, part: bytes) -> None:
        """Note the next bytes."""
        self.size += len(part)
        if self._kept <= self._limit:
            self._parts.append(part[: self._limit + 1 - self._kept])
            self._kept += len(self._parts[-1])

    @property
    def content(self) -> bytes | None:
        """The whole body; None if it is longer than the limit."""
        return None if self.size > self._limit else b"".join(self._parts)


@dataclass(slots=True)
class Call:
    """One observed call."""

    name: str  # in-call or out-call
    method: str
    path: str
    query: str
    caller: str | None
    callee: str | None
    time: float  # seconds since 1970
    asked: Headers
    request: Body
    response: Body
    status: int | None = None  # None: it was not answered
    answered: Headers = ()
    duration: float = 0.0


@dataclass(frozen=True)
class CallOptions:
    """The parts of a call to publish.

    `headers` names the headers to publish, `bodies` says whether to publish bodies, `size` is the
    largest size of a body in bytes. `masks` decides which values are secrets.
    """

    headers: Iterable[str] = ()
    bodies: bool = True
    size: int = 64 * 1024
    masks: Masks = field(default_factory=Masks)
    limits: Limits = DEFAULT_LIMITS


def call_xml(call: Call, options: CallOptions) -> str:
    """The message of a call."""
    masks = options.masks
    made = etree.Element(call.name)
    fields = {
        "caller": call.caller,
        "callee": call.callee,
        "time": datetime.fromtimestamp(call.time, UTC).isoformat(),
        "method": call.method,
        "path": call.path,
        "query": masks.query(call.query),
        "status": None if call.status is None else str(call.status),
        "duration": f"{call.duration:.6f}",
    }
    for name, value in fields.items():
        if value:
            etree.SubElement(made, name).text = clean(value)
    wanted = {name.lower() for name in options.headers}
    for side, headers in (("header", call.asked), ("answer-header", call.answered)):
        for name, value in headers:
            if name.lower() in wanted:
                part = etree.SubElement(made, side, name=name.lower())
                part.text = clean(masks.value(name, value))
    if options.bodies:
        _add_body(made, "request", call.request, call.asked, options)
        _add_body(made, "response", call.response, call.answered, options)
    return etree.tostring(made, encoding="unicode")


def _add_body(
    made: etree._Element, name: str, body: Body, headers: Headers, options: CallOptions
) -> None:
    if not body.size:
        return
    given = {key.lower(): value for key, value in headers}
    kind = given.get("content-type", "").partition(";")[0].strip().lower()
    part = etree.SubElement(made, name, bytes=str(body.size))
    if kind:
        part.set("type", clean(kind))
    content = _unpacked(body.content, given.get("content-encoding", ""), options.size)
    if content is None:
        return
    try:
        inner = _read(content, kind, options)
    except (AxlogError, ValueError, RecursionError):  # not what its type says
        inner = _as_text(content)
    if isinstance(inner, str):
        part.text = clean(inner)
    elif inner is not None:
        part.append(inner)


def _unpacked(content: bytes | None, encoding: str, limit: int) -> bytes | None:
    """The body without its compression; None if it is too long, or compressed in another way."""
    if content is None or encoding.strip().lower() in ("", "identity"):
        return content
    if encoding.strip().lower() not in ("gzip", "x-gzip"):
        return None
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = unpacking.decompress(content, limit + 1)
    except zlib.error:
        return None
    return found if len(found) <= limit else None


def _read(content: bytes, kind: str, options: CallOptions) -> etree._Element | str | None:
    masks = options.masks
    if kind in ("application/xml", "text/xml") or kind.endswith("+xml"):
        return _masked_xml(content, options)
    if kind == "application/json" or kind.endswith("+json"):
        made = etree.Element("body")
        _add_json(made, json.loads(content), masks)
        return made
    if kind == "application/x-www-form-urlencoded":
        made = etree.Element("body")
        for name, value in parse_qsl(content.decode(), keep_blank_values=True):
            _element(made, name).text = clean(masks.value(name, value))
        return made
    return _as_text(content) if kind.startswith("text/") else None


def _as_text(content: bytes) -> str:
    """A body as text, with values that look like those of secret names masked."""
    return _MEMBER.sub(lambda found: f"{found[1]}{MASK}", content.decode("utf-8", "replace"))


_MEMBER = re.compile(
    r"""((?:auth\w*|\w*token|\w*secret|passw\w*|pwd|api[-_]?key|session\w*|signature)["']?\s*[:=>]\s*)
    ["']?[^\s"'&<,;]+""",
    re.IGNORECASE | re.VERBOSE,
)


def _masked_xml(content: bytes, options: CallOptions) -> etree._Element | str:
    root = parse(content, options.limits).root
    for element in root.iter("*"):
        if element.tag.startswith(f"{{{CALL_NAMESPACE}}}"):
            return _as_text(content)
        for name in element.attrib:
            element.set(name, options.masks.value(str(name), str(element.attrib[name])))
    for element in [one for one in root.iter("*") if options.masks.hides(str(one.tag))]:
        tail = element.tail
        element[:] = []
        element.text, element.tail = MASK, tail
    return root


def _add_json(made: etree._Element, value: Any, masks: Masks) -> None:
    if isinstance(value, dict):
        for name, one in value.items():
            inner = _element(made, str(name))
            if masks.hides(str(name)):
                inner.text = MASK
            else:
                _add_json(inner, one, masks)
    elif isinstance(value, list):
        for one in value:
            _add_json(etree.SubElement(made, "item"), one, masks)
    elif value is not None:
        made.text = clean(value if isinstance(value, str) else json.dumps(value))


def _element(made: etree._Element, name: str) -> etree._Element:
    if _NAME.fullmatch(name):
        return etree.SubElement(made, name)
    return etree.SubElement(made, "member", name=clean(name))
