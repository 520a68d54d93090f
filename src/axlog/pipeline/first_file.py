"""The text of a first pipeline file, from guessed or given streams (`axlog init`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from axlog.pipeline.inference import Join, StreamGuess, joins, names_of

_MOST_COLUMNS = 4
_WORDS = ("yes", "no", "on", "off", "true", "false", "null", "y", "n")
"""Words that some YAML readers take for other values than strings."""


def write_pipeline(streams: Sequence[StreamGuess], name: str) -> str:
    """Return a pipeline file for some streams: their sources, and views to start from."""
    prefixes = names_of(streams)
    writer = _Writer({address: prefix for prefix, address in prefixes.items()})
    is_dated = any(stream.time for stream in streams)
    lines = [
        "# Check it: axlog check FILE      Run it: axlog run FILE",
        "# Every key is listed by: axlog check --reference",
        f"name: {_quoted(name)}",
    ]
    if prefixes:
        lines += ["namespaces:", *(f"  {p}: {_quoted(a)}" for p, a in prefixes.items())]
    lines += ["", "streams:"]
    for stream in streams:
        lines += writer.stream(stream)
    lines += ["", "views:"]
    pairs = joins(streams)
    for pair in pairs:
        lines += writer.pair(pair)
    paired = {stream.name for pair in pairs for stream in (pair.left, pair.right)}
    for stream in streams:
        if stream.name not in paired:
            lines += writer.listing(stream)
    keyed = [stream for stream in streams if stream.key is not None]
    if keyed:
        lines += ["", "# If each value comes once, say so: axlog can then decide what never comes,",
                  "# and drops what it no longer needs.", "# facts:"]  # fmt: skip
        lines += [f"#   - {_quoted(writer.fact(stream))}" for stream in keyed]
    lines += ["", "settings:", "  checkpoint: out/state   # remove it to start over"]
    if is_dated:
        lines.append("  times: dates")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a text as a YAML scalar; JSON strings are YAML."""
    is_plain = re.fullmatch(r"[A-Za-z_][\w./\-]*", text) and text.lower() not in _WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)


class _Writer:
    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = prefixes  # by address

    def path(self, path: str) -> str:
        """Return a path with prefixes instead of namespaces."""
        return re.sub(r"\{([^}]*)\}", lambda found: f"{self._prefixes[found[1]]}:", path)

    def stream(self, stream: StreamGuess) -> list[str]:
        is_file = stream.format == "jsonl"
        place = f"in/{stream.name}" + (".jsonl" if is_file else "")
        options = {"kind": "jsonl" if is_file else "directory", "path": place}
        if stream.format != "xml":
            options["format"] = "json"
            if not stream.is_named:
                options["element"] = stream.element
        if stream.record is not None:
            options["record"] = self.path(stream.record)
        if stream.time is not None:
            options["time"] = self.path(stream.time)
        written = ", ".join(f"{key}: {_quoted(value)}" for key, value in options.items())
        return [f"  {stream.name}:", f"    source: {{{written}}}"]

    def fact(self, stream: StreamGuess) -> str:
        return (
            f"key {stream.name}/{self.path(stream.element)} by {self.path(str(stream.key))} trusted"
        )

    def pair(self, pair: Join) -> list[str]:
        left, right = pair.left, pair.right
        variable = _variable(pair.left_path, set())
        ours = f"{left.name}/{self.path(left.element)}"
        theirs = f"{right.name}/{self.path(right.element)}"
        first = f"{ours}/{self.path(pair.left_path)}/${variable}"
        second = f"{theirs}/{self.path(pair.right_path)}/${variable}"
        timed = left.time is not None and right.time is not None
        marks = ("#sent", "#came") if timed else ("", "")
        shown = f"${variable}" + (", sent.time, came.time" if timed else "")
        return [
            f"  # {left.name} without {right.name}: inserted, and deleted when they come",
            f"  {left.name}_without_{right.name}:",
            f"    query: match /document[{first}][not({second})] return ${variable}",
            "    sinks: [{kind: console}]",
            f"  {left.name}_with_{right.name}:",
            f"    query: match /document[{first}{marks[0]}][{second}{marks[1]}] return {shown}",
            "    sinks: [{kind: jsonl, path: \"out/{view}.jsonl\"}]",
        ]  # fmt: skip

    def listing(self, stream: StreamGuess) -> list[str]:
        wanted = [stream.key] if stream.key is not None else []
        wanted += [path for path in stream.fields if path not in (stream.key, stream.time)]
        taken: set[str] = set()
        variables = [(path, _variable(path, taken)) for path in wanted[:_MOST_COLUMNS]]
        where = f"/document/{stream.name}/{self.path(stream.element)}"
        if not variables:
            query = f"match {where}#message return message.val"
        else:
            tests = "".join(f"[{self.path(path)}/${name}]" for path, name in variables)
            query = f"match {where}{tests} return {', '.join(f'${name}' for _, name in variables)}"
        return [f"  all_{stream.name}:", f"    query: {query}", "    sinks: [{kind: console}]"]


def _variable(path: str, taken: set[str]) -> str:
    base = re.sub(r"\W", "_", re.split(r"[/@}]", path)[-1]) or "value"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}{number}"
    taken.add(name)
    return name
