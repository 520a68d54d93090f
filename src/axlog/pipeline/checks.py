"""Checks of the names and embedded texts of a pipeline file: whether they resolve and parse.

Every part is checked even if others are invalid, so that one run reports all errors. A part with
the wrong shape was reported before (`loader.py`) and is skipped here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from axlog.connect.kinds import ChannelKind, Secret, SinkKind, SourceKind, ViewShape
from axlog.connect.locations import local_path, needed_path
from axlog.connect.message_paths import MessagePath
from axlog.connect.sinks.tables import check_columns, reserved
from axlog.document.message_key import KeyPath
from axlog.document.parser import Element
from axlog.document.schema_sources import read_types
from axlog.errors import AxlogError, PipelineError, Place
from axlog.future.keys import Key, check_path
from axlog.future.references import ends_of, parse_declared
from axlog.pipeline import kinds, yaml_reader
from axlog.pipeline.documents import (
    calls_of,
    declare,
    is_xml,
    read_document,
    read_skeleton,
    types_of,
)
from axlog.pipeline.engines import choose
from axlog.pipeline.families import FamilyView, view_query
from axlog.pipeline.model import DocumentModel, StreamModel, ViewModel
from axlog.pipeline.time_warnings import without_clock, without_key, without_times
from axlog.query.query import Query
from axlog.views.choose import choice_for

AnyKind = SourceKind[Any] | SinkKind[Any] | ChannelKind[Any]
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

_ROW_CHANGES = {"insert", "delete", "update"}
DEAD_LETTERS = "dead_letters"
"""The view of rejected messages (`runtime/connections.py`). The name is reserved."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a file, or (`warning`) a probable mistake."""

    error: AxlogError
    level: str = "error"

    @property
    def order(self) -> tuple[int, int]:
        place = self.error.place
        return (place.line, place.column) if place is not None else (0, 0)

    def plain(self) -> dict[str, Any]:
        """Return the problem for JSON."""
        error = self.error
        fields: dict[str, Any] = {"level": self.level, "code": error.code, "message": error.message}
        if error.place is not None:
            fields |= {"file": error.place.source, "line": error.place.line,
                     "column": error.place.column}  # fmt: skip
        fields |= {"expected": error.expected, "advice": error.advice, "context": error.context}
        return {key: value for key, value in fields.items() if value is not None}


class Content(Protocol):
    """A file's content in the long form, with positions."""

    content: Any

    def place(
        self, path: yaml_reader.Path, *, at_key: bool = False, shows_line: bool = True
    ) -> Place: ...

    def place_inside(self, path: yaml_reader.Path, inner: Place) -> Place: ...


def checked_parts(content: Content, directory: Path) -> list[Problem]:
    """Return all problems that the shape alone does not show."""
    return _Checks(content, directory).run()


def mapping(given: Any) -> dict[str, Any]:
    """Return a part that should be a mapping; an empty one if it is not."""
    return given if isinstance(given, dict) else {}


class _Checks:
    def __init__(self, content: Content, directory: Path) -> None:
        self.file = content
        self.content = mapping(content.content)
        self.directory = directory
        self.problems: list[Problem] = []
        self.table_users: dict[str, list[yaml_reader.Path]] = {}
        given = mapping(self.content.get("namespaces"))
        self.namespaces = {k: v for k, v in given.items() if isinstance(v, str)}

    def run(self) -> list[Problem]:
        for name, sink in mapping(self.content.get("sinks")).items():
            self.connector(sink, ("sinks", name), kinds.sink_kind)
        for name, channel in mapping(self.content.get("channels")).items():
            self.connector(channel, ("channels", name), kinds.channel_kind)
            self.remembered(name, mapping(channel))
        if self.content.get("dead_letters") is not None:
            self.connector(self.content["dead_letters"], ("dead_letters",), kinds.sink_kind)
        for name, written in mapping(self.content.get("documents")).items():
            self.document(mapping(written), ("documents", name))
        for name, users in self.table_users.items():
            self.shared_table(name, users)
        self.checkpoint(self.settings.get("checkpoint"))
        return self.problems

    # Reporting ------------------------------------------------------------------------------------

    def report(
        self, error: AxlogError, path: yaml_reader.Path, level: str = "error", **how: bool
    ) -> None:
        """Report an error at its position in the file."""
        error.place = self.file.place(path, **how)
        error.args = (error.describe(),)
        self.problems.append(Problem(error, level))

    def report_inside(self, error: AxlogError, path: yaml_reader.Path) -> None:
        """Report an error in a text embedded in the file."""
        inner = error.place
        error.place = (
            self.file.place(path) if inner is None else self.file.place_inside(path, inner)
        )
        error.args = (error.describe(),)
        self.problems.append(Problem(error))

    def names_nothing(self, what: str, name: object, known: Mapping[str, Any]) -> PipelineError:
        listed = ", ".join(sorted(known)) or "none is declared"
        return PipelineError("AX854", f"there is no {what} {name!r}", expected=listed)

    # Connectors -----------------------------------------------------------------------------------

    def connector(
        self,
        given: Any,
        path: yaml_reader.Path,
        find: Callable[[str], AnyKind],
    ) -> AnyKind | None:
        """Check the kind and the options of a source or sink; errors do not quote lines with
        options.
        """
        if not isinstance(given, dict) or not isinstance(given.get("kind"), str):
            return None
        try:
            kind = find(given["kind"])
        except PipelineError as error:
            self.report(error, (*path, "kind"))
            return None
        shared = {"kind", "ops"} if isinstance(kind, SinkKind) else {"kind"}
        written = {key: value for key, value in given.items() if key not in shared}
        if isinstance(kind, SinkKind):
            self.ops(given.get("ops"), kind, (*path, "ops"))
        try:
            options = kind.options.model_validate(written)
        except ValidationError as error:
            for found in error.errors(include_input=False):
                self.option(found, kind, path)
        else:
            self.secrets(options, path)
        return kind

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the file, as they are written."""
        return mapping(self.content.get("settings"))

    def warn(self, error: PipelineError | None, path: yaml_reader.Path) -> None:
        """Report a warning, if there is one."""
        if error is not None:
            self.report(error, path, "warning")

    def ops(self, given: Any, kind: SinkKind[Any], path: yaml_reader.Path) -> None:
        """Report a filter that would leave rows in a table which no longer hold."""
        if kind.is_table and isinstance(given, list) and not set(map(str, given)) >= _ROW_CHANGES:
            error = PipelineError(
                "AX852",
                f"the sink {kind.name!r} holds the rows of a view, and needs all their changes",
                expected="insert, delete and update among its ops",
                advice="leave `ops` out, or use a sink that appends, such as jsonl",
            )
            self.report(error, path)

    def secrets(self, options: BaseModel, path: yaml_reader.Path) -> None:
        """Warn of unset environment variables: the file may be meant for another machine."""
        for name in type(options).model_fields:
            value = getattr(options, name)
            for secret in value.values() if isinstance(value, dict) else (value,):
                for variable in secret.variables if isinstance(secret, Secret) else ():
                    if variable not in os.environ:
                        error = PipelineError(
                            "AX856",
                            f"the environment variable {variable} is not set",
                            advice=f"set it before the pipeline starts: export {variable}=...",
                        )
                        self.report(error, (*path, name), "warning", shows_line=False)

    def remembered(self, name: str, channel: dict[str, Any]) -> None:
        """Report in-memory channels in a pipeline with a checkpoint: they cannot be resumed."""
        has_checkpoint = self.settings.get("checkpoint") is not None
        if has_checkpoint and channel.get("kind") == "memory" and not channel.get("journal"):
            error = PipelineError(
                "AX852",
                f"the channel {name!r} is lost when the process ends, but the pipeline has a "
                f"checkpoint",
                advice="give it a journal: {kind: memory, journal: orders.channel}",
            )
            self.report(error, ("channels", name))

    def checkpoint(self, written: Any) -> None:
        """Report an address as the checkpoint where files beside it are needed."""
        if not isinstance(written, str) or local_path(written) is not None:
            return
        path = ("settings", "checkpoint")
        if choose(self.content.get("engine", "auto")).engine != "spark":
            self.parsed(lambda: needed_path(written), path)
        elif len(mapping(self.content.get("documents"))) > 1:
            error = PipelineError(
                "AX865",
                f"the checkpoint {written!r} is an address, but several documents share"
                " files beside it",
                expected="a path, or file:///PATH",
                advice="use a directory that all machines can reach, or one pipeline per document",
            )
            self.report(error, path)

    def option(self, found: Any, kind: AnyKind, path: yaml_reader.Path) -> None:
        loc = found["loc"]
        last = loc[-1] if loc else ""
        connector = f"the {kind.role} {kind.name!r}"
        expected = None
        if found["type"] == "missing":
            what = f"{connector} needs {last!r}"
        elif found["type"] == "extra_forbidden":
            what = f"{connector} has no option {last!r}"
            expected = ", ".join(sorted(kind.options.model_fields)) or "no options"
        else:
            what = f"{connector}: {last}: {found['msg']}"
        elsewhere = found["type"] == "address"
        if elsewhere:
            expected = "a path, or file:///PATH"
        error = PipelineError("AX864" if elsewhere else "AX852", what, expected=expected)
        at_key = found["type"] in ("missing", "extra_forbidden")
        self.report(error, (*path, *loc[:1]), at_key=at_key, shows_line=False)

    # Documents ------------------------------------------------------------------------------------

    def document(self, written: dict[str, Any], path: yaml_reader.Path) -> None:
        streams = mapping(written.get("streams"))
        sources = written.get("sources", [])
        sources = sources if isinstance(sources, list) else [sources]
        for at, source in enumerate(sources):
            self.general_source(source, (*path, "sources", at))
        for name, stream in streams.items():
            self.stream(mapping(stream), (*path, "streams", name))
        self.lists(written, path)
        is_many = "document_key" in written
        keys = self.keys(written)
        for name, view in mapping(written.get("views")).items():
            self.view(view, (*path, "views", name), is_many, keys)
        key = written.get("document_key")
        if isinstance(key, str):
            self.parsed(lambda: MessagePath.parse(key, self.namespaces), (*path, "document_key"))
        root = (
            self.parsed(partial(read_skeleton, streams), (*path, "streams"))
            if written.get("document") is None
            else self.root(written["document"], (*path, "document"))
        )
        self.facts(written, root, (*path, "facts"))
        if root is not None:
            self.calls(root, streams, bool(sources), path)
            self.types(written, root, (*path, "types"))

    def facts(self, written: dict[str, Any], root: Element | None, path: yaml_reader.Path) -> None:
        for at, fact in enumerate(written.get("facts") or []):
            if not isinstance(fact, str):
                continue
            declared = self.parsed(partial(parse_declared, fact, self.namespaces), (*path, at))
            if declared is not None and root is not None:
                labels = [str(child.tag) for child in root]
                for key in [declared] if isinstance(declared, Key) else ends_of([declared]):
                    self.parsed(partial(check_path, key, str(root.tag), labels), (*path, at))

    def types(self, written: dict[str, Any], root: Element, path: yaml_reader.Path) -> None:
        model = _valid(DocumentModel, written)
        if model is not None and model.types:
            self.parsed(lambda: read_types(types_of(model, self.directory), str(root.tag)), path)

    def parsed(self, parse: Callable[[], T], path: yaml_reader.Path) -> T | None:
        try:
            return parse()
        except AxlogError as error:
            self.report_inside(error, path)
            return None

    def root(self, written: Any, path: yaml_reader.Path) -> Element | None:
        if not isinstance(written, str):
            return None
        try:
            return read_document(written, self.directory)
        except AxlogError as error:
            if is_xml(written):
                self.report_inside(error, path)
            else:
                inner = f" (its {error.place})" if error.place is not None else ""
                error.message += inner
                self.report(error, path)
            return None

    def calls(
        self, root: Element, streams: dict[str, Any], is_fed: bool, path: yaml_reader.Path
    ) -> None:
        """Compare the document's calls with the streams of the file."""
        calls = calls_of(root)
        for name, given in streams.items():
            stream = _valid(StreamModel, given)
            if stream is None:
                continue
            where = (*path, "streams", name)
            if name not in calls:
                if stream.call == "now":
                    error = self.names_nothing("call for the stream", name, calls)
                    error.advice = "set `call: later` if a message brings the call"
                    self.report(error, where, at_key=True)
                continue
            try:
                declare(root, {name: stream})
            except PipelineError as refused:
                self.report(refused, where, at_key=True)
        for name in calls:
            if name not in streams and not is_fed:
                unfed = PipelineError(
                    "AX854",
                    f"nothing feeds the stream {name!r} of the document",
                    advice=f"give it a source: streams: {{{name}: {{source: ...}}}}",
                )
                self.report(unfed, (*path, "document"), "warning", at_key=True)

    def general_source(self, source: Any, path: yaml_reader.Path) -> None:
        kind = self.connector(source, path, kinds.source_kind)
        if isinstance(kind, SourceKind) and not kind.names_streams:
            error = PipelineError(
                "AX852",
                f"messages of a {kind.name!r} do not name their stream",
                advice="write it as the source of one stream: streams: {NAME: {source: ...}}",
            )
            self.report(error, (*path, "kind"))

    def lists(self, written: dict[str, Any], path: yaml_reader.Path) -> None:
        """Check the sources of lists of updates, and that the document can take such lists."""
        given = written.get("updates", [])
        sources = given if isinstance(given, list) else [given]
        for at, source in enumerate(sources):
            inner = (*path, "updates", at) if isinstance(given, list) else (*path, "updates")
            self.connector(source, inner, kinds.source_kind)
        settings = {
            **self.settings,
            **mapping(written.get("settings")),
        }
        why = None
        if self.content.get("engine", "spark") != "embedded":
            why = "the engine spark splits the document, and a list names its nodes"
        elif "document_key" in written:
            why = "there is one document for every key, and a list does not name one"
        elif settings.get("keep", "all") != "all" or settings.get("collect") == "auto":
            why = "the document does not keep the nodes that lists name"
        if sources and why is not None:
            error = PipelineError(
                "AX852",
                f"the document takes no lists of updates: {why}",
                expected="engine: embedded, keep: all, and one document",
            )
            self.report(error, (*path, "updates"), at_key=True)

    def stream(self, stream: dict[str, Any], path: yaml_reader.Path) -> None:
        self.connector(stream.get("source"), (*path, "source"), kinds.source_kind)
        self.warn(without_times(mapping(stream.get("source")), self.settings), (*path, "source"))
        self.channel(stream.get("channel"), (*path, "channel"))
        replace = stream.get("replace")
        if isinstance(replace, str):
            self.parsed(lambda: KeyPath.parse(replace, self.namespaces), (*path, "replace"))
        view = stream.get("view")
        if isinstance(view, str):
            known = {
                f"{document}.{name}": 0
                for document, model in mapping(self.content.get("documents")).items()
                for name in mapping(mapping(model).get("views"))
            }
            if view not in known:
                self.report(self.names_nothing("view", view, known), (*path, "view"))

    def channel(self, name: Any, path: yaml_reader.Path) -> None:
        channels = mapping(self.content.get("channels"))
        if isinstance(name, str) and name not in channels:
            self.report(self.names_nothing("channel", name, channels), path)

    # Views ----------------------------------------------------------------------------------------

    def keys(self, written: dict[str, Any]) -> list[Key]:
        """Return the declared keys of a document that can be parsed; `facts` reports the others."""
        found = []
        for fact in written.get("facts") or []:
            try:
                found.append(parse_declared(str(fact), self.namespaces))
            except AxlogError:
                continue
        return [each for each in found if isinstance(each, Key)]

    def view(self, given: Any, path: yaml_reader.Path, is_many: bool, keys: list[Key]) -> None:
        """Check a view. `is_many`: there is one document per key, and rows have a column for the
        key.
        """
        name = str(path[-1])
        inner = path if isinstance(given, str) else (*path, "query")
        view = _valid(ViewModel, given)
        shape: ViewShape | None = None
        if view is not None:
            query = self.parsed(lambda: self.query(name, view), inner)
            shape = None if query is None else self.shape(name, view, query, is_many)
            if query is not None:
                self.warn(without_key(query, keys), inner)
                self.warn(without_clock(query, self.settings), inner)
            self.channel(view.channel, (*path, "channel"))
        if name == DEAD_LETTERS:
            self.report(reserved(f"the view {name!r}", (DEAD_LETTERS,)), path, at_key=True)
        if shape is not None and is_many:
            self.columns(shape, (), inner)
        for at, sink in self.sinks(given):
            where = (*path, "sinks", at)
            kind = (
                self.named_sink(sink, where)
                if isinstance(sink, str)
                else self.connector(sink, where, kinds.sink_kind)
            )
            if isinstance(kind, SinkKind) and kind.is_table and shape is not None:
                self.columns(shape, kind.reserved, where)

    def query(self, name: str, view: ViewModel) -> Query:
        query = view_query(name, view, self.namespaces, self.directory)
        choice_for(query, view.maintainer)
        return query

    def shape(self, name: str, view: ViewModel, query: Query, is_many: bool) -> ViewShape:
        family = () if view.for_each is None else FamilyView(name, view, self.directory).shown
        return ViewShape.of(name, query, is_many, parameters=family)

    def columns(self, shape: ViewShape, taken: Sequence[str], path: yaml_reader.Path) -> None:
        """Check that the names of a view's columns can be those of a table."""
        try:
            check_columns(shape, taken)
        except PipelineError as error:
            self.report(error, path)

    def sinks(self, view: Any) -> Iterator[tuple[int, Any]]:
        listed = mapping(view).get("sinks")
        return enumerate(listed if isinstance(listed, list) else [])

    def named_sink(self, name: str, path: yaml_reader.Path) -> SinkKind[Any] | None:
        declared = mapping(self.content.get("sinks"))
        if name not in declared:
            self.report(self.names_nothing("sink", name, declared), path)
            return None
        self.table_users.setdefault(name, []).append(path)
        return self.sink_kind(name)

    def sink_kind(self, name: str) -> SinkKind[Any] | None:
        """Return the kind of a declared sink; None if it is unknown, which is reported
        elsewhere.
        """
        try:
            return kinds.sink_kind(
                str(mapping(mapping(self.content.get("sinks"))[name]).get("kind"))
            )
        except PipelineError:
            return None

    def shared_table(self, name: str, users: list[yaml_reader.Path]) -> None:
        """Report a table sink that several views share; {view} in its name creates one for each."""
        sink = mapping(mapping(self.content.get("sinks"))[name])
        kind = self.sink_kind(name)
        if kind is None:
            return
        texts = [value for value in sink.values() if isinstance(value, str)]
        if kind.is_table and len(users) > 1 and not any("{view}" in text for text in texts):
            error = PipelineError(
                "AX852",
                f"the sink {name!r} is a table of one view, and {len(users)} views name it",
                advice="write {view} in its path or table, so that each gets its own",
            )
            self.report(error, users[1])


def _valid(model: type[M], given: Any) -> M | None:
    try:
        return model.model_validate(given)
    except ValidationError:
        return None
