"""Records of messages with the same markup: learned from one, without parsing the others.

Messages of a stream mostly differ in their texts and attribute values alone. The records of such a
message are those of an earlier one with other strings: the same parents, kinds and names. The
template of a markup is one expression that takes the strings out of the bytes, and these records.
It is made when a markup is seen again, and the templates that were used last are tried first.

Law: `Recorder.add_template` leaves the records that `Recorder.walk` makes of the parsed message.
Only messages that the stream has accepted are given. Those with references, comments, instructions,
declarations, single quotes, or white space that the parser changes have no template.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from axlog.document.recorder import Recorder
from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, Tree

_STRINGS = re.compile(rb'>([^<]*)|"([^"]*)"')
_OTHER = re.compile(rb"[&'\r\0]|<[!?]|xml|\"[^\"]*[\t\n]")
"""What changes the meaning of strings or declares names; `xml` is `xmlns` or `xml:space`."""
_TEXT, _VALUE = rb"([^<&\r\s][^<&\r]*)", rb'([^"<&\r\n\t]*)'
MOST = 8
"""The most templates, which are tried one after the other."""
AGAIN = 3
"""The number of messages with the same markup at which its template is made."""
LONGEST = 4096
"""Bytes up to which a message may have a template."""
UNFIT = 256
"""Messages without a template after which no more are learned, unless others had one."""


@dataclass(frozen=True, slots=True)
class Template:
    """The records of a message, relative to its first record and its first text."""

    strings: re.Pattern[bytes]
    above: int  # elements above the root
    kinds: bytes
    parents: tuple[int, ...]  # without that of the root, which is the document node
    labels: tuple[int, ...]  # a name, or below zero: the number of a text, counted from -1 down


class RecordTemplates:
    """The templates of the messages of one document."""

    def __init__(self, tree: Tree) -> None:
        self._names = tree.names  # which the labels of templates count
        self._templates: list[Template] = []
        self._seen: dict[tuple[bytes, int], int] = {}  # markups, and how many messages had them
        self._hits = self._misses = 0

    def fits(self, tree: Tree) -> bool:
        """Whether the templates are those of a tree."""
        return self._names is tree.names

    def find(self, message: bytes, above: int) -> tuple[Template, tuple[bytes, ...]] | None:
        """The template of a message below some elements, and its strings; None: it has none."""
        templates = self._templates
        for at, template in enumerate(templates):
            found = template.strings.fullmatch(message)
            if found is not None and template.above == above:
                self._hits += 1
                if at:
                    templates.insert(at // 2, templates.pop(at))
                return template, found.groups()
        self._misses += 1
        return None

    def note(self, message: bytes, above: int) -> bool:
        """Count a message without a template; whether it shall be learned."""
        if len(message) > LONGEST or self._misses > UNFIT + self._hits:
            return False
        if _OTHER.search(message) is not None:
            return False
        key = _STRINGS.sub(b"\0", message), above
        count = self._seen[key] = self._seen.get(key, 0) + 1
        if len(self._seen) > UNFIT:
            self._seen.clear()
        return count == AGAIN

    def learn(self, message: bytes, recorder: Recorder, record: int, text: int) -> None:
        """Make the template of a message whose first record and first text these are."""
        written: list[bytes] = []
        strings: list[str] = []
        at = 0
        for found in _STRINGS.finditer(message):
            number = 2 if found[2] is not None else 1
            if number == 1 and (not found[1] or found[1][:1].isspace()):
                continue  # white space belongs to the markup
            start, end = found.span(number)
            written += [re.escape(message[at:start]), _VALUE if number == 2 else _TEXT]
            strings.append(message[start:end].decode(errors="replace"))
            at = end
        kinds, parents = bytes(recorder.kinds[record:]), recorder.parents[record:]
        is_plain = recorder.texts[text:] == strings and not recorder.calls
        if not is_plain or parents.count(DOCUMENT_NODE) != 1:
            return
        labels = zip(kinds, recorder.labels[record:], strict=True)
        made = Template(
            re.compile(b"".join(written) + re.escape(message[at:])),
            recorder.above,
            kinds,
            tuple(parent - record for parent in parents[1:]),
            tuple(label if k in (ELEMENT, ATTRIBUTE) else text - label - 1 for k, label in labels),
        )
        self._templates = [made, *self._templates[: MOST - 1]]
