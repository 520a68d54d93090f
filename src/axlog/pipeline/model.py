"""The pipeline file as a model: one form for every engine (DESIGN sections 5 and 7).

    engine: embedded
    document: <orders><ax:call xmlns:ax="urn:axlog" stream="orders"/></orders>
    streams:
      orders:
        source: {kind: directory, path: in, record: order, time: "@at"}
    views:
      ids:
        query: match /orders/order/oid/$x return $x
        sinks: [{kind: console}]

A file with one widget writes it at the top, as here; with several, each under `widgets: NAME:`. A
model is what the file says and knows its directory; nothing is opened. Names that lead somewhere
(sinks, channels, views) and texts in other languages are checked by `checks.py`.
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

from axlog.connect.kinds import Options, Seconds
from axlog.document.clock_bounds import read_ahead
from axlog.document.parser import DEFAULT_LIMITS

SHORT = "widget"
"""The name of the only widget of a file that writes it at the top."""

WIDGET_KEYS = ("document", "documents", "streams", "sources", "views", "facts", "types")


def _as_word(given: Any) -> Any:
    """`yes` and `no` where other readers of YAML make them truth values."""
    return {True: "yes", False: "no"}[given] if isinstance(given, bool) else given


def _as_list(given: Any) -> Any:
    return given if isinstance(given, list) else [given]


Name = Annotated[str, Field(pattern=r"^[A-Za-z_][\w\-]*$", max_length=200)]


class Connector(Options):
    """A source or a sink: its `kind`, and the options that this kind has."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str = Field(description="Which connector; `axlog check --kinds` lists them.")

    @property
    def written(self) -> dict[str, Any]:
        """The options as the file gives them."""
        return dict(self.model_extra or {})


class SourceModel(Connector):
    """Where messages come from."""


class SinkModel(Connector):
    """Where changes go."""


class StreamModel(Options):
    """A stream of a widget: where its messages come from, and what is known of it for certain."""

    source: SourceModel | None = Field(default=None, description="What brings its messages.")
    view: str | None = Field(
        default=None, description="Another widget's view whose rows it brings: WIDGET.VIEW."
    )
    channel: str | None = Field(
        default=None, description="A channel of this file that it subscribes to."
    )
    call: Literal["now", "later"] = Field(
        default="now",
        description="Whether the document has its call at once, or a message brings it.",
    )
    mode: Literal["stream", "one-shot"] | None = Field(
        default=None, description="One message, or many."
    )
    most: int | None = Field(default=None, ge=0, description="At most so many trees ever come.")
    deletes: Annotated[Literal["no", "yes", "only"] | None, BeforeValidator(_as_word)] = Field(
        default=None, description="Whether it may delete what is beside its call."
    )
    late: Literal["refuse", "clock"] | None = Field(
        default=None,
        description="Messages from before the clock: refused, or given the clock's time.",
    )
    ahead: str | None = Field(
        default=None,
        description="How far past this machine's clock messages may be dated: 2h, 1d, or none for"
        " no bound. Without it one day, where times are dates.",
    )
    calls: Annotated[Literal["no", "yes"] | int | None, BeforeValidator(_as_word)] = Field(
        default=None,
        description="Whether its messages may hold new calls: no, yes, or at most how many in all.",
    )
    service: str | None = Field(default=None, description="The service whose type its trees have.")

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
        """The attributes that the stream's call is to have."""
        given = (("mode", self.mode), ("most", self.most), ("deletes", self.deletes),
                 ("late", self.late), ("service", self.service),
                 ("ahead", self.ahead), ("calls", self.calls))  # fmt: skip
        return {name: str(value) for name, value in given if value is not None}


class ViewModel(Options):
    """A query whose rows are kept, and where their changes go."""

    query: str = Field(description="match ..., XPath, or XQuery.")
    language: Literal["pattern", "xpath", "xquery"] | None = Field(
        default=None, description="The query's language; by its first word without it."
    )
    maintainer: str | None = Field(
        default=None, description="Which maintainer keeps it; chosen without."
    )
    work: int | None = Field(
        default=None,
        ge=1,
        description="Rows that one message may make the view look at before it is set aside"
        f" (default {DEFAULT_LIMITS.work:,}).",
    )
    sinks: list[Name | SinkModel] = Field(
        default=[], description="Names of sinks of this file, or sinks written here."
    )
    channel: str | None = Field(
        default=None, description="A channel of this file that publishes it."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"query": given} if isinstance(given, str) else given


class DocumentsModel(Options):
    """Many documents of one kind: the key in a message says which of them it is for."""

    key: str = Field(description="A path in the message to the key: order/@customer, header/id.")


class TuneModel(Options):
    """How often streams are tuned again."""

    messages: int | None = Field(default=None, ge=1, description="After so many messages.")
    seconds: Seconds | None = Field(default=None, gt=0, description="After so long.")


def _tune(given: Any) -> Any:
    return {True: "auto", False: "off"}[given] if isinstance(given, bool) else given


def _collect(given: Any) -> Any:
    return {True: "state", False: "off"}[given] if isinstance(given, bool) else given


class WidgetSettings(Options):
    """What a widget keeps and checks."""

    keep: Literal["all", "needed"] = Field(
        default="all",
        description="Store what arrives, or only what views and streams that may delete need.",
    )
    validation: Literal["all", "wanted"] = Field(
        default="all",
        alias="validate",
        description="Parse every message, or only those that some view may want.",
    )
    tune: Annotated[Literal["auto", "off"] | TuneModel, BeforeValidator(_tune)] = Field(
        default="auto",
        description="How often it is worked out anew what streams are still wanted for.",
    )
    collect: Annotated[Literal["state", "off"], BeforeValidator(_collect)] = Field(
        default="state", description="Whether joins let go of what waits in vain."
    )


class Settings(WidgetSettings):
    """How the pipeline runs; the first four can also be said of one widget."""

    batch: int = Field(default=1000, ge=1, description="At most so many messages are one batch.")
    trigger: Seconds = Field(default=0.2, ge=0, description="How often sources are looked at.")
    hold: Seconds = Field(
        default=2.0, ge=0, description="At most so long are messages held back for a slower stream."
    )
    clock: Literal["messages", "wall"] = Field(
        default="messages",
        description="Whose time it is: that of messages alone, or the machine's, `hold` behind it.",
    )
    times: Literal["seconds", "dates"] = Field(
        default="seconds",
        description="How times are written in rows, changes and tables: numbers of seconds since"
        " 1970, or dates. Dates may be before 1970.",
    )
    checkpoint: str | None = Field(
        default=None, description="Directory of the run's state; without it a restart starts anew."
    )
    snapshot: int = Field(
        default=100_000,
        ge=1,
        description="Embedded: messages between two snapshots, from which a restart goes on.",
    )
    retain: Annotated[Literal["all", "no"], BeforeValidator(_as_word)] = Field(
        default="no",
        description="Keep the input so that views that are added later can be filled from it.",
    )
    on_error: Literal["dead-letter", "stop"] = Field(
        default="dead-letter", description="What a message that cannot be taken does."
    )
    rounds: int | None = Field(
        default=None, ge=1, description="Bound on rounds where widgets feed each other in a cycle."
    )
    cores: int | None = Field(default=None, ge=1, description="Spark: cores of a local master.")
    buckets: int | None = Field(default=None, ge=1, description="Spark: buckets of keys.")
    state: Literal["auto", "driver", "executors"] = Field(
        default="auto",
        description="Spark: where engines and their state live; on one machine the driver.",
    )
    master: str | None = Field(
        default=None, description="Spark: the master's address; local without it."
    )
    spark: dict[str, str] = Field(default={}, description="Spark: further settings.")


class WidgetModel(Options):
    """A document with calls, its streams and its views."""

    document: str = Field(description="The document: XML text, or the path of a file.")
    documents: DocumentsModel | None = Field(
        default=None, description="Make one such document for every key that messages bring."
    )
    streams: dict[str, StreamModel] = Field(
        default={}, description="The streams, by the calls' names."
    )
    sources: Annotated[list[SourceModel], BeforeValidator(_as_list)] = Field(
        default=[], description="Sources whose messages say themselves which stream they are for."
    )
    views: dict[Name, ViewModel] = Field(min_length=1, description="The views, by name.")
    facts: list[str] = Field(default=[], description="Declared keys: `key PATH by PATH trusted`.")
    types: Annotated[list[str], BeforeValidator(_as_list)] = Field(
        default=[],
        description="The types of document and streams: text, or paths of .dtd, .xsd, text files.",
    )
    settings: WidgetSettings | None = Field(
        default=None, description="Settings for this widget alone."
    )


class ViewName(NamedTuple):
    """Which view of which widget; `full` is what sinks and other widgets call it."""

    widget: str
    view: str
    full: str


class PipelineModel(Options):
    """A pipeline file."""

    name: str | None = Field(
        default=None, description="What the pipeline is called where it is shown."
    )
    engine: Literal["spark", "embedded"] = Field(default="spark", description="What runs it.")
    namespaces: dict[str, str] = Field(
        default={}, description="Prefixes that queries and paths use."
    )
    widgets: dict[Name, WidgetModel] = Field(min_length=1, description="The widgets, by name.")
    channels: dict[Name, Connector] = Field(
        default={}, description="Named flows that views publish to and streams subscribe to."
    )
    sinks: dict[Name, SinkModel] = Field(
        default={}, description="Sinks that several views can name."
    )
    dead_letters: SinkModel | None = Field(
        default=None,
        description="Where messages go that cannot be taken; counted and shown without.",
    )
    settings: Settings = Field(default_factory=Settings, description="How it runs.")

    _directory: Path = PrivateAttr(default_factory=Path)
    _is_short: bool = PrivateAttr(default=False)

    @model_validator(mode="wrap")
    @classmethod
    def _from_short_form(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(long_form(given))
        made._is_short = is_short(given)
        return made

    @property
    def directory(self) -> Path:
        """Where its relative paths start: the directory of the file."""
        return self._directory

    def located(self, directory: Path) -> Self:
        """The same pipeline, with its paths starting there."""
        self._directory = directory
        return self

    def full_name(self, widget: str, view: str) -> str:
        """What a view is called outside of its widget."""
        return view if self._is_short else f"{widget}.{view}"

    def view_names(self) -> Iterator[ViewName]:
        """Every view of the pipeline, in the order of the file."""
        for widget, model in self.widgets.items():
            for view in model.views:
                yield ViewName(widget, view, self.full_name(widget, view))

    def told_views(self) -> set[str]:
        """The full names of the views that the file sends somewhere."""
        return {
            name.full
            for name in self.view_names()
            for view in [self.widgets[name.widget].views[name.view]]
            if view.sinks or view.channel is not None
        }

    def own_names(self, widget: str, full: Iterable[str]) -> list[str]:
        """Those of a widget's views that have one of these full names, by their own."""
        wanted = set(full)
        return [v for v in self.widgets[widget].views if self.full_name(widget, v) in wanted]

    def settings_of(self, widget: str) -> WidgetSettings:
        """What holds for a widget: its own settings, else the pipeline's."""
        return self.widgets[widget].settings or self.settings


def is_short(given: Any) -> bool:
    """Whether a file's content writes its only widget at the top."""
    return (
        isinstance(given, Mapping)
        and "widgets" not in given
        and any(key in given for key in WIDGET_KEYS)
    )


def long_form(given: Any) -> Any:
    """The content with its only widget under `widgets`."""
    if not is_short(given):
        return given
    rest = {key: value for key, value in given.items() if key not in WIDGET_KEYS}
    widget = {key: given[key] for key in WIDGET_KEYS if key in given}
    return {**rest, "widgets": {SHORT: widget}}
