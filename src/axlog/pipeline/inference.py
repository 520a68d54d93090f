"""The streams, keys and times of sample messages, for a first pipeline file (`axlog init`).

Messages with the same root element belong to one stream. A key is a field that differs in every
message of its stream, a time a field with a date. Two streams belong together where a field of one
has values of a field of the other. Each of these is a guess from few messages: the written file is
meant to be edited, and declares nothing that the samples alone cannot prove.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from lxml import etree

from axlog.document.json_messages import ITEM, read_json, to_xml
from axlog.document.parser import Element, parse, read
from axlog.document.times import microseconds
from axlog.errors import AxlogError, PipelineError

Format = Literal["xml", "json", "jsonl"]
_TIME_NAME = re.compile(r"(?i:(^|[/@}_-])(ts|time|timestamp|epoch|at|when)$|time$|_at$)|[a-z]At$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
_KEYS = ("id", "oid", "key", "number", "nr", "no", "code", "reference", "ref", "uuid")
_NUMBERED = re.compile(r"[\W_]*\d*$")
_DEEPEST = 4


@dataclass(frozen=True)
class Sample:
    """A file with messages of one stream."""

    path: Path
    format: Format
    messages: list[Element]
    record: str | None = None  # the element that is a message, where the root is only around them
    stream: str | None = None  # as the caller named it


@dataclass
class StreamGuess:
    """A stream, with the guessed paths below the root element of its messages."""

    name: str
    element: str  # expanded
    format: Format = "xml"
    record: str | None = None
    is_named: bool = False  # its JSON messages have their element's name as their only key
    samples: list[Sample] = field(default_factory=list)
    key: str | None = None
    time: str | None = None
    fields: dict[str, list[str]] = field(default_factory=dict)  # path: the value in each message

    @property
    def messages(self) -> list[Element]:
        return [message for sample in self.samples for message in sample.messages]


class Join(NamedTuple):
    """Two streams with a common value, and the paths to it."""

    left: StreamGuess
    right: StreamGuess
    left_path: str
    right_path: str


def read_sample(path: Path, stream: str | None = None) -> Sample:
    """Read the messages of a file: XML, JSON, or JSON lines."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PipelineError("AX102", f"{path}: {error.strerror or error}") from None
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if not start:
        raise PipelineError("AX102", f"{path} is empty", expected="a message, XML or JSON")
    if start == b"<":
        root = read(path).root
        record = _record_of(root)
        messages = [root] if record is None else list(root.iterchildren(record))
        return Sample(path, "xml", messages, record, stream)
    if start not in (b"{", b"["):
        raise PipelineError(
            "AX102",
            f"{path} is neither XML nor JSON",
            expected="a message that begins with <, { or [",
        )
    if path.suffix in (".jsonl", ".ndjson"):
        lines = [line for line in content.splitlines() if line.strip()]
        given = [read_json(line, f"{path.name}:{at}") for at, line in enumerate(lines, 1)]
        return Sample(path, "jsonl", [_element(one) for one in given], None, stream)
    whole = read_json(content, path.name)
    each = whole if isinstance(whole, list) else [whole]
    return Sample(path, "json", [_element(one) for one in each], None, stream)


def _element(given: object) -> Element:
    return parse(to_xml(given)).root


def _record_of(root: Element) -> str | None:
    """Return the element that is a message, where the root has several of it and nothing else."""
    children = list(root.iterchildren("*"))
    names = {str(child.tag) for child in children}
    inside = any(len(child) or child.attrib for child in children)
    return names.pop() if len(children) > 1 and len(names) == 1 and inside else None


def guess(samples: Sequence[Sample]) -> list[StreamGuess]:
    """Return the streams of some samples, in the order in which they first appear."""
    streams: dict[str, StreamGuess] = {}
    for sample in samples:
        if not sample.messages:
            continue
        root = str(sample.messages[0].tag)
        name = sample.stream or _stream_name(sample, root)
        is_named = root != ITEM
        if sample.format != "xml" and not is_named:
            root = _singular(name)
        made = streams.setdefault(
            name, StreamGuess(name, root, sample.format, sample.record, is_named)
        )
        if (made.format, made.record) != (sample.format, sample.record):
            raise PipelineError(
                "AX852",
                f"the samples of the stream {name!r} have different forms: {sample.path.name}",
                advice="give streams names: axlog init orders=a.xml shipments=b.json",
            )
        made.samples.append(sample)
    for stream in streams.values():
        stream.fields = _fields(stream.messages)
        stream.time = _time_of(stream.fields)
        stream.key = _key_of(stream.fields, stream.time, len(stream.messages))
    return list(streams.values())


def _stream_name(sample: Sample, root: str) -> str:
    local = etree.QName(root).localname
    if sample.format != "xml" and local == ITEM:
        local = _NUMBERED.sub("", sample.path.stem) or "messages"
        local = re.sub(r"[^\w\-]", "_", local)
    return local if local.endswith("s") else f"{local}s"


def _singular(name: str) -> str:
    return name[:-1] if name.endswith("s") and len(name) > 1 else name


def _fields(messages: Sequence[Element]) -> dict[str, list[str]]:
    """Return the paths to values that every message has, with the first value in each."""
    found: list[dict[str, str]] = []
    for message in messages:
        values: dict[str, str] = {}
        _collect(message, "", values, 1)
        found.append(values)
    common = [path for path in found[0] if all(path in values for values in found)]
    return {path: [values[path] for values in found] for path in common}


def _collect(element: Element, path: str, values: dict[str, str], depth: int) -> None:
    for name, value in element.attrib.items():
        if str(name) not in ("type", "in", "key"):
            values.setdefault(f"{path}@{name!s}", str(value))
    children = list(element.iterchildren("*"))
    twice = {tag for tag, number in Counter(child.tag for child in children).items() if number > 1}
    for child in children:
        if child.tag in twice or depth > _DEEPEST:
            continue
        below = f"{path}{child.tag}"
        if not len(child) and (child.text or "").strip():
            values.setdefault(below, str(child.text).strip())
        _collect(child, f"{below}/", values, depth + 1)


def _last(path: str) -> str:
    """Return the name at the end of a path, without its namespace."""
    return re.split(r"[/@}]", path)[-1]


def _time_of(fields: dict[str, list[str]]) -> str | None:
    found = [path for path, values in fields.items() if all(map(_is_time, values))]
    found = found or [
        path
        for path, values in fields.items()
        if _TIME_NAME.search(path) and all(map(_is_since_1970, values))
    ]
    return min(found, key=lambda path: (any(len(v) < 16 for v in fields[path]),), default=None)


def _is_since_1970(value: str) -> bool:
    """Whether a value may be a time in seconds since 1970: a number that is one after 2001."""
    return re.fullmatch(r"[1-4]\d{9}(\.\d+)?", value) is not None


def _is_time(value: str) -> bool:
    if _DATE.fullmatch(value) is None:
        return False
    try:
        microseconds(value)
    except AxlogError:
        return False
    return True


def _key_of(fields: dict[str, list[str]], time: str | None, messages: int) -> str | None:
    found = [
        path
        for path, values in fields.items()
        if len(set(values)) == messages and path != time and not all(map(_is_time, values))
    ]
    ranked = [(_rank(path), at, path) for at, path in enumerate(found)]
    best = min(ranked, default=None)
    return best[2] if best is not None and (best[0] < len(_KEYS) + 1 or messages > 1) else None


def _rank(path: str) -> int:
    """Return how much a field looks like a key by its name; lower is more."""
    name = _last(path).lower()
    if name in _KEYS:
        return _KEYS.index(name)
    return len(_KEYS) if name.endswith(("id", "_no", "number", "key", "ref")) else len(_KEYS) + 1


def joins(streams: Sequence[StreamGuess]) -> list[Join]:
    """Return the pairs of streams that share values, in the order of the streams."""
    found = []
    for at, left in enumerate(streams):
        for right in streams[at + 1 :]:
            paths = [
                (
                    left_path != left.key,
                    _last(left_path) != _last(right_path),
                    left_path,
                    right_path,
                )
                for left_path, lefts in left.fields.items()
                for right_path, rights in right.fields.items()
                if {v for v in lefts if not _is_time(v)} & set(rights)
            ]
            if paths:
                found.append(Join(left, right, *min(paths)[2:]))
    return found


def names_of(streams: Iterable[StreamGuess]) -> dict[str, str]:
    """Return a prefix for each namespace of the samples: the one they use, otherwise ns1, ns2."""
    prefixes: dict[str, str] = {}
    for stream in streams:
        for message in stream.messages:
            for element in message.iter(etree.Element):
                for prefix, address in element.nsmap.items():
                    if address not in prefixes:
                        free = prefix if prefix and prefix not in prefixes.values() else None
                        prefixes[address] = free or f"ns{len(prefixes) + 1}"
    used = " ".join(
        [*(stream.element for stream in streams), *(p for s in streams for p in s.fields)]
    )
    return {prefix: address for address, prefix in prefixes.items() if f"{{{address}}}" in used}
