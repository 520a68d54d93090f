"""A YAML reader that records the line and column of every value and treats its input as hostile.

The file is scanned as events first: its size, depth and number of values are limited. Aliases
(which can expand a few lines to gigabytes), tags (which would create objects) and several documents
in one file are refused. Plain values are those of YAML 1.2: `true` and `false` are truth values;
`no`, `on` and `12:30` are texts. A duplicate key is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from axlog.errors import PipelineError, Place

LARGEST = 4_000_000
DEEPEST = 40
MOST = 200_000
"""Maximum bytes, levels and events of a file."""

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUTH = re.compile(r"true|True|TRUE|false|False|FALSE")
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(\.[0-9]{1,18}|[0-9]{1,18}(\.[0-9]{0,18})?)([eE][-+]?[0-9]{1,3})?")

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Located:
    """A file's content as plain data, with the position of each part."""

    content: Any
    text: str
    source: str | None
    nodes: dict[Path, yaml.Node]
    keys: dict[Path, yaml.Node]
    problems: list[PipelineError]  # duplicate keys, keys that are not texts

    def place(self, path: Path, *, at_key: bool = False, shows_line: bool = True) -> Place:
        """Return the position of a value (or its key); of a missing one, that of its parent."""
        while path and path not in self.nodes:
            path = path[:-1]
            at_key = True
        found = (self.keys.get(path) if at_key else None) or self.nodes.get(path)
        mark = found.start_mark if found is not None else None
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        return Place(line, column, self.text if shows_line else None, self.source)

    def place_inside(self, path: Path, inner: Place) -> Place:
        """Map a line and column of an embedded text to the file, if the text is verbatim in it."""
        node = self.nodes.get(path)
        if not isinstance(node, yaml.ScalarNode):
            return self.place(path)
        start = node.start_mark
        lines = self.text.splitlines()
        wanted = (str(node.value).splitlines() or [""])[inner.line - 1 : inner.line]
        # A literal block begins on the line after its mark; a one-line text begins where it is.
        at = start.line + inner.line if node.style == "|" else start.line
        is_as_written = node.style == "|" or "\n" not in str(node.value)
        column = lines[at].find(wanted[0]) if wanted and at < len(lines) and is_as_written else -1
        if column < 0:
            return self.place(path)
        return Place(at + 1, column + inner.column, self.text, self.source)


def locate(text: str, source: str | None = None) -> Located:
    """Read a file's text, or raise an error with the position."""
    _check_events(text, source)
    try:
        node = yaml.compose(text, Loader)
    except yaml.YAMLError as error:
        raise _not_yaml(error, source, text) from None
    located = Located(None, text, source, {}, {}, [])
    if node is not None:
        located.content = _plain(node, (), located)
    return located


def _check_events(text: str, source: str | None) -> None:
    if len(text) > LARGEST:
        raise _hostile(f"it has more than {LARGEST:,} characters", Place(1, 1, None, source))
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise PipelineError("AX851", "the file is not YAML: it contains an unpaired surrogate")
    depth = documents = 0
    try:
        for number, event in enumerate(_events(text)):
            if number > MOST:
                raise _hostile(f"it has more than {MOST:,} parts", _at(event, source))
            if isinstance(event, yaml.AliasEvent):
                raise _hostile(
                    "it uses an alias (*name)", _at(event, source), "write the value out"
                )
            if getattr(event, "tag", None) is not None:
                raise _hostile("it uses a tag (!name)", _at(event, source), "leave the tag out")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST:
                    raise _hostile(f"it is nested over {DEEPEST} levels", _at(event, source))
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _hostile("it contains a second document (---)", _at(event, source))
    except yaml.YAMLError as error:
        raise _not_yaml(error, source, text) from None


def _events(text: str) -> Iterator[Any]:
    yield from yaml.parse(text, Loader)


def _at(event: Any, source: str | None) -> Place:
    mark = event.start_mark
    return Place(mark.line + 1, mark.column + 1, None, source)


def _hostile(what: str, place: Place, advice: str | None = None) -> PipelineError:
    return PipelineError("AX857", f"the file is refused: {what}", place=place, advice=advice)


def _not_yaml(error: yaml.YAMLError, source: str | None, text: str) -> PipelineError:
    """The parser's own message is not shown, because it quotes the line, which may contain a
    secret.
    """
    mark = getattr(error, "problem_mark", None)
    place = Place(mark.line + 1, mark.column + 1, None, source) if mark is not None else None
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    lines = text.splitlines()
    is_tab = (
        mark is not None
        and lines[mark.line : mark.line + 1]
        and (lines[mark.line].startswith("\t", mark.column))
    )
    advice = "indent with spaces, not with a tab" if is_tab else "check indentation and quotes"
    return PipelineError("AX851", f"the file is not YAML: {what}", place=place, advice=advice)


def _plain(node: yaml.Node, path: Path, located: Located) -> Any:
    located.nodes[path] = node
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, located)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each, (*path, at), located) for at, each in enumerate(node.value)]
    return _scalar(node)


def _mapping(node: yaml.MappingNode, path: Path, located: Located) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            located.problems.append(_key_problem("a key is not a text", key, located))
            continue
        name = str(key.value)
        if name in made:
            located.problems.append(_key_problem(f"{name!r} is written twice", key, located))
            continue
        located.keys[*path, name] = key
        made[name] = _plain(value, (*path, name), located)
    return made


def _key_problem(what: str, key: yaml.Node, located: Located) -> PipelineError:
    mark = key.start_mark
    place = Place(mark.line + 1, mark.column + 1, located.text, located.source)
    return PipelineError("AX852", what, place=place)


def _scalar(node: yaml.Node) -> Any:
    text = str(node.value)
    if getattr(node, "style", None):
        return text
    if _NULL.fullmatch(text):
        return None
    if _TRUTH.fullmatch(text):
        return text.lower() == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
