"""The pipeline file as a model, the same for every engine.

    streams:
      orders:
        source: {kind: directory, path: in, record: order, time: "@at"}
    views:
      ids:
        query: match /document/orders/order/oid/$x return $x
        sinks: [{kind: console}]

Without `document:`, each stream has an element of its name below the root `document`. A file with
one document defines it at the top level, as here; a file with several defines each
under `documents: NAME:`. A model holds the content of the file and knows its directory; it opens
nothing. `checks.py` checks references (sinks, channels, views) and embedded texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    field_validator,
    model_validator,
)

from axlog.connect.kinds import Options
from axlog.connect.parameter_tables import ForEach
from axlog.document.clock_bounds import read_ahead
from axlog.document.message_key import KeyPath
from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import AxlogError
from axlog.pipeline.engines import Engine
from axlog.pipeline.settings import DocumentSettings, Settings, as_word

SHORT = "document"
"""The name of the only document of a file that defines it at the top level."""

DOCUMENT_KEYS = ("document", "document_key", "streams", "sources", "updates", "views", "facts",
                 "types")  # fmt: skip


def _as_truth(given: Any) -> Any:
    """Accept `true` also as the truth value that YAML readers produce."""
    return "true" if given is True else given


def _as_list(given: Any) -> Any:
    return given if isinstance(given, list) else [given]


Name = Annotated[str, Field(pattern=r"^[A-Za-z_][\w\-]*$", max_length=200)]


class Connector(Options):
    """A source or a sink: its `kind`, and the options of this kind."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str = Field(description="The connector; `axlog check --kinds` lists them.")

    @property
    def written(self) -> dict[str, Any]:
        """The options as written in the file."""
        return dict(self.model_extra or {})


_BARE = {"directory": "xml", "kafka": "xml", "jsonl": "jsonl"}
"""Sources of messages with times, and the format of each; those of jsonl have envelopes."""


class SourceModel(Connector):
    """A source of messages."""

    def timed(self) -> Self:
        """Return the source with the time of arrival for messages that have no other."""
        written = self.written
        is_bare = written.get("format", _BARE.get(self.kind, "jsonl")) != "jsonl"
        if (
            self.kind not in _BARE
            or not is_bare
            or "clock" in written
            or written.get("time") is not None
        ):
            return self
        return type(self).model_validate({"kind": self.kind, **written, "clock": "arrival"})


Op = Literal["insert", "delete", "update", "never"]


class SinkModel(Connector):
    """A sink for changes."""

    ops: list[Op] | None = Field(
        default=None,
        min_length=1,
        description="The changes that it receives (default: all; for a feed, insert and update)."
        " A sink that holds the rows of a view needs insert, delete and update.",
    )


class StreamModel(Options):
    """A stream of a document: the source of its messages, and its declarations."""

    source: SourceModel | None = Field(default=None, description="The source of its messages.")
    view: str | None = Field(
        default=None, description="A view of another document that feeds it: DOCUMENT.VIEW."
    )
    channel: str | None = Field(default=None, description="A channel of this file to subscribe to.")
    call: Literal["now", "later"] = Field(
        default="now",
        description="`later` if a message brings its call; otherwise the document has it.",
    )
    mode: Literal["stream", "one-shot"] | None = Field(
        default=None, description="Whether it brings one message or many."
    )
    most: int | None = Field(
        default=None, ge=0, description="Maximum number of trees that it ever brings."
    )
    deletes: Annotated[
        Literal["no", "yes", "only"] | None,
        BeforeValidator(as_word, json_schema_input_type=Literal["no", "yes", "only"] | bool | None),
    ] = Field(default=None, description="Whether it may delete the siblings of its call.")
    late: Literal["refuse", "clock"] | None = Field(
        default=None,
        description="What to do with a message older than the clock: reject it, or give it the "
        "clock's time.",
    )
    ahead: str | None = Field(
        default=None,
        description="How far ahead of this machine's clock messages may be dated: 2h, 1d, or "
        "none for"
        " no bound (default: one day, where times are dates).",
    )
    calls: Annotated[
        Literal["no", "yes"] | int | None,
        BeforeValidator(as_word, json_schema_input_type=Literal["no", "yes"] | bool | int | None),
    ] = Field(
        default=None,
        description="Whether its messages may contain calls: no, yes, or their maximum number.",
    )
    replace: str | None = Field(
        default=None,
        description="Path in its messages to their key: a message replaces the earlier message"
        " with the same key.",
    )
    service: str | None = Field(
        default=None, description="The service that defines the type of its trees."
    )

    @field_validator("ahead")
    @classmethod
    def _is_duration(cls, given: str | None) -> str | None:
        if given is not None and read_ahead(given) is None:
            raise ValueError("`ahead` is a duration such as 90s, 2h or 1d, or none")
        return given

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [way for way in (self.source, self.view, self.channel) if way is not None]
        if len(ways) > 1:
            raise ValueError("a stream has one of `source`, `view` and `channel`, not several")
        return self

    @property
    def declared(self) -> dict[str, str]:
        """Return the attributes that the stream's call should have."""
        given = (("mode", self.mode), ("most", self.most), ("deletes", self.deletes),
                 ("late", self.late), ("service", self.service), ("replace", self.replace),
                 ("ahead", self.ahead), ("calls", self.calls))  # fmt: skip
        return {name: str(value) for name, value in given if value is not None}


class ViewModel(Options):
    """A query whose rows are maintained, and the sinks for its changes."""

    query: str = Field(description="match ..., XPath, or XQuery.")
    language: Literal["pattern", "xpath", "xquery"] | None = Field(
        default=None, description="The query's language (default: detected from the text)."
    )
    maintainer: str | None = Field(
        default=None, description="The maintainer (default: axlog chooses)."
    )
    work: int | None = Field(
        default=None,
        ge=1,
        description="Rows that the view may read for one message before it is set aside"
        f" (default {DEFAULT_LIMITS.work:,}).",
    )
    on_value_error: Literal["null", "reject"] = Field(
        default="null",
        description="A value that the query cannot compute, such as a sum with a text: `null`"
        " leaves it out, `reject` makes the message a dead letter.",
    )
    good: Annotated[
        Literal["true", "never"] | None,
        BeforeValidator(_as_truth, json_schema_input_type=Literal["true", "never", True] | None),
    ] = Field(
        default=None,
        description="For the live page: whether it is good that a row is there (`true`), or that"
        " it can never come (`never`).",
    )
    sinks: list[Name | SinkModel] = Field(
        default=[], description="Names of sinks of this file, or inline sinks."
    )
    channel: str | None = Field(
        default=None, description="A channel of this file to publish it on."
    )
    for_each: ForEach | None = Field(
        default=None,
        description="A table with a row for each member of a family of views: its columns are"
        " parameters of the query.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"query": given} if isinstance(given, str) else given


class DocumentModel(Options):
    """A document that streams change, and its views."""

    document: str | None = Field(
        default=None,
        description="The document before the first message: XML text, or the path of a file"
        " (default: <document>, with an element for the messages of each stream).",
    )
    document_key: str | None = Field(
        default=None,
        description="Create one such document for every value of this path in messages:"
        " order/@customer, header/id.",
    )

    streams: dict[str, StreamModel] = Field(
        default={}, description="The streams, by the names of their calls."
    )
    sources: Annotated[
        list[SourceModel],
        BeforeValidator(_as_list, json_schema_input_type=list[SourceModel] | SourceModel),
    ] = Field(default=[], description="Sources whose messages name their streams.")
    updates: Annotated[
        list[SourceModel],
        BeforeValidator(_as_list, json_schema_input_type=list[SourceModel] | SourceModel),
    ] = Field(
        default=[],
        description="Sources of lists of updates of the document itself, as `axlog diff` and"
        " `axlog reduce` write them; engine: embedded.",
    )
    views: dict[Name, ViewModel] = Field(min_length=1, description="The views, by name.")
    facts: list[str] = Field(
        default=[], description="Declared keys and references: `key PATH by PATH trusted`."
    )
    types: Annotated[
        list[str], BeforeValidator(_as_list, json_schema_input_type=list[str] | str)
    ] = Field(
        default=[],
        description="The types of document and streams: text, or paths of .dtd, .xsd, text files.",
    )
    settings: DocumentSettings | None = Field(
        default=None, description="Settings for this document only."
    )


class ViewName(NamedTuple):
    """A view of a document; `full` is its name for sinks and other documents."""

    document: str
    view: str
    full: str


def _expanded(path: str | None, namespaces: Mapping[str, str]) -> str | None:
    """Return a path with its prefixes resolved; a bad path as it is, for the checks to report."""
    try:
        return None if path is None else str(KeyPath.parse(path, namespaces))
    except AxlogError:
        return path


class PipelineModel(Options):
    """A pipeline file."""

    name: str | None = Field(default=None, description="The name of the pipeline, for display.")
    engine: Engine = Field(
        default="auto",
        description="spark, embedded (in this process), or auto: Spark where it is installed.",
    )
    namespaces: dict[str, str] = Field(
        default={}, description="Prefixes that queries and paths use."
    )
    documents: dict[Name, DocumentModel] = Field(
        min_length=1, description="The documents, by name."
    )
    channels: dict[Name, Connector] = Field(
        default={}, description="Named flows that views publish to and streams subscribe to."
    )
    sinks: dict[Name, SinkModel] = Field(
        default={}, description="Sinks that several views can name."
    )
    dead_letters: SinkModel | None = Field(
        default=None,
        description="Sinks for rejected messages (default: they are only counted and shown).",
    )
    settings: Settings = Field(default_factory=Settings, description="Settings of the run.")

    _directory: Path = PrivateAttr(default_factory=Path)
    _is_short: bool = PrivateAttr(default=False)

    @model_validator(mode="wrap")
    @classmethod
    def _from_short_form(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(long_form(given))
        made._is_short = is_short(given)
        return made._with_expanded_paths()._with_times_of_arrival()

    def _with_expanded_paths(self) -> Self:
        """Return the pipeline with the prefixes of `replace` resolved: calls know none."""
        documents: dict[str, DocumentModel] = {}
        for name, document in self.documents.items():
            streams = {
                stream: given.model_copy(
                    update={"replace": _expanded(given.replace, self.namespaces)}
                )
                for stream, given in document.streams.items()
            }
            documents[name] = document.model_copy(update={"streams": streams})
        if not any(s.replace for d in documents.values() for s in d.streams.values()):
            return self
        return self.model_copy(update={"documents": documents})

    def _with_times_of_arrival(self) -> Self:
        """Return the pipeline whose messages have the time of their arrival, if the clock is the
        machine's and they have no other.

        The clock of the document may be long past: with its time, their own deadlines would be.
        """
        if self.settings.clock != "wall":
            return self
        documents: dict[str, DocumentModel] = {}
        for name, document in self.documents.items():
            streams = {
                stream: given.model_copy(
                    update={"source": None if given.source is None else given.source.timed()}
                )
                for stream, given in document.streams.items()
            }
            sources = [source.timed() for source in document.sources]
            documents[name] = document.model_copy(update={"streams": streams, "sources": sources})
        return self.model_copy(update={"documents": documents})

    @property
    def directory(self) -> Path:
        """The directory of the file, to which its paths are relative."""
        return self._directory

    def located(self, directory: Path) -> Self:
        """Return the same pipeline with another base directory."""
        self._directory = directory
        return self

    def full_name(self, document: str, view: str) -> str:
        """Return the name of a view outside of its document."""
        return view if self._is_short else f"{document}.{view}"

    def view_names(self) -> Iterator[ViewName]:
        """Yield every view of the pipeline, in the order of the file."""
        for document, model in self.documents.items():
            for view in model.views:
                yield ViewName(document, view, self.full_name(document, view))

    def embedded_for(self) -> str | None:
        """Return the part of the file that only the embedded engine runs; None: there is none."""
        if any(document.updates for document in self.documents.values()):
            return "lists of updates"
        for name in self.view_names():
            document = self.documents[name.document]
            is_family = document.views[name.view].for_each is not None
            if is_family and document.document_key is not None:
                return f"the view {name.full} for each row of a table in each of many documents"
        return None

    def delivered_views(self) -> set[str]:
        """Return the full names of the views with sinks or channels."""
        return {
            name.full
            for name in self.view_names()
            for view in [self.documents[name.document].views[name.view]]
            if view.sinks or view.channel is not None
        }

    def own_names(self, document: str, full: Iterable[str]) -> list[str]:
        """Return those of a document's views that have one of these full names, by their own
        names.
        """
        wanted = set(full)
        return [v for v in self.documents[document].views if self.full_name(document, v) in wanted]

    def settings_of(self, document: str) -> DocumentSettings:
        """Return the settings of a document: its own, otherwise the pipeline's."""
        return self.documents[document].settings or self.settings


def is_short(given: Any) -> bool:
    """Whether a file's content defines its only document at the top level."""
    return (
        isinstance(given, Mapping)
        and "documents" not in given
        and any(key in given for key in DOCUMENT_KEYS)
    )


def long_form(given: Any) -> Any:
    """Return the content with its only document under `documents`."""
    if not is_short(given):
        return given
    rest = {key: value for key, value in given.items() if key not in DOCUMENT_KEYS}
    document = {key: given[key] for key in DOCUMENT_KEYS if key in given}
    return {**rest, "documents": {SHORT: document}}
