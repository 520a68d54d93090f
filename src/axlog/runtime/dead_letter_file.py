"""The dead letters of a pipeline in a file of JSON lines: listed, corrected and replayed.

A rejected message is replayed by putting it, corrected, back at its source: into the directory or
the file from which the stream's source reads. The run, also one that is running, then reads it like
any other message. PATH.replayed beside the dead letters lists those that were replayed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePath
from typing import Any

from axlog.connect.locations import needed_path
from axlog.connect.sinks.jsonl import read_log
from axlog.document.json_messages import json_of_xml
from axlog.errors import MalformedError, PipelineError
from axlog.pipeline import kinds
from axlog.pipeline.model import PipelineModel, SourceModel


@dataclass(frozen=True, slots=True)
class Letter:
    """A rejected message. Its number is its place in the file, from 1."""

    number: int
    stream: str
    origin: str
    error: str
    content: str
    is_replayed: bool = False

    def plain(self) -> dict[str, Any]:
        """Return the letter for JSON."""
        return {"number": self.number, "stream": self.stream, "origin": self.origin,
                "error": self.error, "content": self.content,
                "replayed": self.is_replayed}  # fmt: skip


class DeadLetterFile:
    """The dead letters of a pipeline whose sink for them is a file of JSON lines."""

    def __init__(self, model: PipelineModel) -> None:
        written = model.dead_letters
        if written is None or written.kind != "jsonl" or "path" not in written.written:
            raise PipelineError(
                "AX854",
                "the pipeline keeps no dead letters in a file",
                advice="dead_letters: {kind: jsonl, path: out/dead-letters.jsonl}",
            )
        self._model = model
        self.path = model.directory / needed_path(str(written.written["path"]))
        self._replayed = self.path.with_name(self.path.name + ".replayed")

    def letters(self) -> list[Letter]:
        """Return all dead letters, in order."""
        if not self.path.exists():
            return []
        done = set(self._replayed.read_text().split()) if self._replayed.exists() else set()
        found = (
            Letter(number, is_replayed=str(number) in done, **line["row"])
            for number, line in enumerate(read_log(self.path), start=1)
        )
        return [replace(letter, content=self._as_read(letter)) for letter in found]

    def _as_read(self, letter: Letter) -> str:
        """Return the content in the format of the source, which the letter may have as XML."""
        for _, options in self._targets(letter.stream):
            return _in_format(letter.content, options)
        return letter.content

    def letter(self, number: int) -> Letter:
        """Return one dead letter."""
        found = self.letters()
        if not 1 <= number <= len(found):
            raise PipelineError(
                "AX854", f"there is no dead letter {number}", expected=f"1 to {len(found)}"
            )
        return found[number - 1]

    def replay(self, number: int, content: str | None = None) -> Path:
        """Put a message back at its source, corrected; return the file that has it now."""
        letter = self.letter(number)
        path = self._put(letter, letter.content if content is None else content)
        with self._replayed.open("a", encoding="utf-8") as file:
            file.write(f"{number}\n")
        return path

    def _put(self, letter: Letter, content: str) -> Path:
        for kind, options in self._targets(letter.stream):
            put = self._put_file if kind == "directory" else self._put_line
            return put(letter, _in_format(content, options), options)
        raise PipelineError(
            "AX854",
            f"nothing can be put back at the source of {letter.stream!r}",
            expected="a stream with the source directory or jsonl",
            advice="print the message, and send it to its source again",
        )

    def _targets(self, stream: str) -> Iterator[tuple[str, Any]]:
        """The sources of a stream to which a message can be put back, with their options."""
        for source in self._sources(stream):
            if source.kind in ("directory", "jsonl"):
                yield (
                    source.kind,
                    kinds.source_kind(source.kind).options.model_validate(source.written),
                )

    def _sources(self, stream: str) -> Iterator[SourceModel]:
        for document in self._model.documents.values():
            if stream in document.streams and document.streams[stream].source is not None:
                yield document.streams[stream].source  # type: ignore[misc]  # it is not None
            yield from (one for one in document.sources if one.kind == "jsonl")

    def _put_file(self, letter: Letter, content: str, options: Any) -> Path:
        place: Path = self._model.directory / needed_path(options.path)
        if place.is_file():
            raise PipelineError("AX854", f"{place} is one file, which is read once",
                                advice="make the path of the source a directory")  # fmt: skip
        target = _new_file(place, letter.number, options)
        whole = content if options.record is None else f"<replayed>{content}</replayed>"
        under_way = target.with_name(target.name + ".tmp")  # ignored by the source
        under_way.write_text(whole, encoding="utf-8")
        under_way.rename(target)
        return target

    def _put_line(self, letter: Letter, content: str, options: Any) -> Path:
        target: Path = self._model.directory / needed_path(options.path)
        line = content.strip()
        if not line.startswith("{"):
            line = json.dumps({"stream": letter.stream, "insert": content}, ensure_ascii=False)
        with target.open("ab+") as file:
            file.seek(0, 2)
            if file.tell():
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(line.encode() + b"\n")
        return target


def _in_format(content: str, options: Any) -> str:
    """A message in the format of its source: an XML text as JSON, if the source reads JSON."""
    if options.format != "json" or not content.lstrip().startswith("<"):
        return content
    try:
        return json_of_xml(content, options.element)
    except MalformedError:
        return content  # to be corrected as it is


def _new_file(place: Path, number: int, options: Any) -> Path:
    """A file that the source has not read yet: its name is new, fits the pattern, and comes last if
    the source reads files in the order of their names.
    """
    pattern = options.pattern or f"*.{options.format}"
    last = max((path.name for path in place.glob(pattern)), default="")
    for again in count(1):
        mark = f"replayed-{number:06d}" + (f"-{again}" if again > 1 else "")
        names = [f"{last}.{mark}{Path(last).suffix}"] if last else []
        if options.order == "any":
            names = [f"{mark}.{options.format}", *names]
        fitting = [name for name in names if PurePath(name).match(pattern)]
        if not fitting:
            raise PipelineError("AX854", f"no new file in {place} fits the pattern {pattern}",
                                advice="print the message, and put it into a file")  # fmt: skip
        if not (place / fitting[0]).exists():
            return place / fitting[0]
    raise AssertionError
