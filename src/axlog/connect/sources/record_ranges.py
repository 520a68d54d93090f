"""The records of a byte range of a large XML file, found without parsing the rest of the file.

A range has the records that start in it; the last one may end after it. A task looks for the first
start tag of a record after the beginning of its range, as if that were outside of all comments,
CDATA sections, instructions and records. It cannot know this, so it also reports the start of its
first record, and of the first record after its range. The ranges of a file fit together if these
are equal for every two neighbours: the first range starts at the beginning of the file, so by
induction every range started outside. `fit_together` checks it.

Namespaces are those that the root element declares. A declaration between the root and a record is
an error, because other ranges would not see it. So is a DOCTYPE, and an encoding in which a byte
below 128 need not be that character.

Law: if the ranges of a file fit together, their records are those of `record_reader.split`.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

from lxml import etree

from axlog.document.parser import parse
from axlog.document.splitter import can_split, encoding_name
from axlog.errors import AxlogError, ConnectorError

_HEAD = 1 << 16
_SKIPPED = rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
_TAG_END = re.compile(rb"""(?:[^'"<>]|'[^'<]*'|"[^"<]*")*?(/?)>""")
_ROOT = re.compile(_SKIPPED + rb"|<([^\s/>!?]+)(?=[\s/>])", re.DOTALL)
_XMLNS = re.compile(rb"""\sxmlns(?::([^\s=]+))?\s*=\s*(?:'([^']*)'|"([^"]*)")""")
Joint: TypeAlias = tuple[str, int, int, int]
"""The file of a range, its beginning, the start of its first record, and that of the first record
after it; the size of the file if there is none."""


class Head(NamedTuple):
    """What all ranges of a file share."""

    encoding: str
    declarations: bytes  # the namespaces of the root, as they are written
    start: re.Pattern[bytes]  # finds tags of records, and what is skipped
    after: int  # the end of the root's start tag


def ranges_of(size: int, step: int) -> list[tuple[int, int]]:
    """Divide a file into ranges of bytes."""
    starts = range(0, max(1, size), max(1, step))
    return [(start, min(size, start + step)) for start in starts]


def read_head(path: Path, label: str) -> Head:
    """Return what is known from the beginning of a file whose records have this (expanded) name."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not can_split(head):
        raise _indivisible(path, "it has a DOCTYPE, or is not in UTF-8 or a similar encoding")
    found = next((match for match in _ROOT.finditer(head) if match[1]), None)
    end = None if found is None else _TAG_END.match(head, found.end())
    if found is None or end is None:
        raise _indivisible(path, f"its root element does not start in the first {_HEAD} bytes")
    declared = list(_XMLNS.finditer(head, found.end(), end.end()))
    spaces = {match[1] or b"": match[2] or match[3] or b"" for match in declared}
    name = etree.QName(label)
    wanted = (name.namespace or "").encode()
    prefixes = [prefix for prefix, space in spaces.items() if space == wanted]
    if not wanted and b"" not in spaces:
        prefixes.append(b"")
    local = name.localname.encode()
    names = [prefix + b":" + local if prefix else local for prefix in prefixes]
    if not names or found[1] in names:
        why = "the root is a record" if names else f"the root declares no prefix for {wanted!r}"
        raise _indivisible(path, why)
    written = b"|".join(re.escape(each) for each in names)
    start = re.compile(_SKIPPED + rb"|<(/?)(?:" + written + rb")(?=[\s/>])", re.DOTALL)
    return Head(encoding_name(head), b"".join(match[0] for match in declared), start, end.end())


def read_range(path: Path, label: str, start: int, end: int) -> tuple[list[bytes], Joint]:
    """Return the records that start in a range, and how it fits to its neighbours."""
    head = read_head(path, label)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        spans: list[tuple[int, int]] = []
        after = len(data)
        done = max(start, head.after)
        for at, stop in _records(path, data, head.start, start):
            _check_between(path, data, done, at)
            if at >= end:
                after = at
                break
            spans.append((at, stop))
            done = stop
        else:
            _check_between(path, data, done, len(data))
        first = spans[0][0] if spans else after
        records = [_message(data[at:stop], head) for at, stop in spans]
    return records, (path.name, start, first, after)


def fit_together(joints: Iterable[Joint]) -> None:
    """Raise an error if ranges of files do not fit together."""
    by_file: dict[str, list[Joint]] = {}
    for joint in joints:
        by_file.setdefault(joint[0], []).append(joint)
    for name, ranges in by_file.items():
        for (_, _, _, after), (_, start, first, _) in pairwise(sorted(ranges, key=_beginning)):
            if after != first:
                raise _indivisible(
                    Path(name),
                    f"byte {start} is inside of a record, a comment, a CDATA section or an"
                    f" instruction that contains the tag of a record",
                )


def _beginning(joint: Joint) -> int:
    return joint[1]


def _records(
    path: Path, data: mmap.mmap, tags: re.Pattern[bytes], start: int
) -> Iterator[tuple[int, int]]:
    """Yield the offsets of outermost records from a beginning that is outside of all."""
    depth, opened, position = 0, 0, start
    while (match := tags.search(data, position)) is not None:
        position = match.end()
        if match[1] is None:  # a comment, or the like
            continue
        tag = _TAG_END.match(data, position)
        if tag is None:
            raise ConnectorError("AX858", f"{path}: a tag at byte {match.start()} does not end")
        position = tag.end()
        if match[1]:
            depth -= 1
            if depth == 0:
                yield opened, position
            depth = max(0, depth)
        elif tag[1]:
            if depth == 0:
                yield match.start(), position
        else:
            if depth == 0:
                opened = match.start()
            depth += 1
    if depth:
        raise ConnectorError("AX858", f"{path}: the record at byte {opened} does not end")


def _check_between(path: Path, data: mmap.mmap, start: int, end: int) -> None:
    """Refuse declarations of namespaces outside of records, other than those of the root."""
    if _XMLNS.search(data, start, max(start, end)):
        raise _indivisible(path, f"it declares a namespace after byte {start}, outside of records")


def _message(record: bytes, head: Head) -> bytes:
    """Return a record as a message in UTF-8, with the namespaces in its scope."""
    if head.encoding != "utf-8":
        record = record.decode(head.encoding, "replace").encode()
    if not head.declarations:
        return record
    around = b"<_" + head.declarations + b">" + record + b"</_>"
    try:
        return etree.tostring(parse(around).root[0], with_tail=False)
    except (AxlogError, IndexError):
        return record  # rejected where it is parsed


def _indivisible(path: Path, why: str) -> ConnectorError:
    return ConnectorError(
        "AX858",
        f"{path.name} cannot be divided at its records: {why}",
        advice="leave out `divide`: one task reads the file then",
    )
