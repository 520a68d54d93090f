"""A kind of source or sink: its name in pipeline files, its options, and its factory.

A connector's module has a constant `SourceKind` or `SinkKind`. It imports optional dependencies
only when a connector is created, so that its options can be described without them.
`pipeline/kinds.py` is the table of all kinds; other packages add kinds by entry points.

Options are pydantic models derived from `Options`: unknown keys are refused. Values that must not
be shown are a `Secret`. Paths are relative to the pipeline file; `Origin.path` resolves them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    StringConstraints,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from axlog.connect.channels.protocol import Channel
from axlog.connect.locations import local_path, needed_path
from axlog.connect.protocol import PartWriter, Sink, Source
from axlog.document.times import Times
from axlog.errors import SetupError
from axlog.query.columns import ColumnType
from axlog.query.query import Query

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)?\s*")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Options(BaseModel):
    """Base class of options: no unknown keys, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


def _seconds(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    matched = _DURATION.fullmatch(given)
    if matched is None:
        raise ValueError("a number of seconds, or a duration like 500ms, 10s, 5min, 2h, 1d")
    return float(matched[1]) * _UNITS[matched[2] or "s"]


_Duration = Annotated[str, StringConstraints(pattern=f"^{_DURATION.pattern}$")]
Seconds = Annotated[float, BeforeValidator(_seconds, json_schema_input_type=float | _Duration)]
"""A duration: a number of seconds, or a text with a unit."""


def _is_local(written: str) -> str:
    if local_path(written) is None:
        raise PydanticCustomError(
            "address", "{written} is an address; a local path is needed here",
            {"written": repr(written)},
        )  # fmt: skip
    return written


def _is_fetched(written: str) -> str:
    return written if written.startswith(("http://", "https://")) else _is_local(written)


LocalPath = Annotated[str, AfterValidator(_is_local)]
"""A local path, also as file:///PATH; other addresses are refused."""
PathOrWeb = Annotated[str, AfterValidator(_is_fetched)]
"""A local path, or an http address."""


class Secret:
    """A text that is never shown. `${NAME}` in it refers to an environment variable.

    >>> Secret("postgresql://ann:${PASSWORD}@host/db")
    Secret(***)
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it refers to."""
        return tuple(_VARIABLE.findall(self._text))

    def reveal(self, environment: Mapping[str, str] = os.environ) -> str:
        """Return the text with its variables filled in."""
        missing = [name for name in self.variables if name not in environment]
        if missing:
            raise SetupError(
                "AX856",
                f"the environment variable is not set: {missing[0]}",
                advice=f"set it before the pipeline starts: export {missing[0]}=...",
            )
        return _VARIABLE.sub(lambda matched: environment[matched[1]], self._text)

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from_text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.union_schema(
                [core_schema.is_instance_schema(cls), from_text]
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda secret: "***", return_schema=core_schema.str_schema()
            ),
        )


@dataclass(frozen=True, slots=True)
class Column:
    """An output column of a view, as described to sinks that write tables."""

    name: str
    type: str  # text, integer, decimal, double, truth, day, or a time: seconds or date


@dataclass(frozen=True, slots=True)
class ViewShape:
    """A view as its sinks see it: the name on its changes, and its columns."""

    name: str
    columns: tuple[Column, ...]

    @classmethod
    def of(
        cls,
        name: str,
        query: Query,
        document_column: bool = False,
        times: Times = "seconds",
        parameters: Sequence[Column] = (),
    ) -> ViewShape:
        """Return the shape of a query's rows; optionally with a first column for the document.

        `parameters` are the columns of the table of a family of views, which come next.
        """
        columns = [
            Column(column, _type_of(type_, times))
            for column, type_ in zip(query.columns, query.columns.types, strict=True)
        ]
        head = (DOCUMENT_COLUMN,) if document_column else ()
        return cls(name, (*head, *parameters, *columns))


DOCUMENT_COLUMN = Column("document", "text")
"""The first column of views over many documents: the key of the row's document."""


def _type_of(type_: ColumnType, times: Times) -> str:
    if type_ == "time":
        return "date" if times == "dates" else "seconds"
    if type_ == "moment":
        return "date"
    return type_ if type_ in ("integer", "decimal", "double", "truth", "day") else "text"


@dataclass(frozen=True, slots=True)
class Origin:
    """The context of a connector: the base directory of paths, and its role in the run.

    `run` identifies a run (the lifetime of a checkpoint, from its first batch to its last). A sink
    that finds batches of another run rewrites its table. `views` are the views of a sink.
    """

    directory: Path = field(default_factory=Path)
    run: str = ""
    stream: str | None = None
    views: Sequence[ViewShape] = ()
    namespaces: Mapping[str, str] = field(default_factory=dict)
    brings_lists: bool = False  # a source of lists of updates, not of messages of a stream

    def path(self, written: str) -> Path:
        """Resolve a path of the pipeline file; `{view}` in it becomes the view's name."""
        if self.views:
            written = written.replace("{view}", self.views[0].name)
        return self.directory / needed_path(written)


Given = TypeVar("Given", bound=Options)


@dataclass(frozen=True)
class SourceKind(Generic[Given]):
    """A kind of source. `make` opens a source for one stream, or for the streams that its messages
    name.
    """

    name: str
    options: type[Given]
    make: Callable[[Given, Origin], Source]
    says: str  # one line for the docs and for error messages
    names_streams: bool = False  # its messages name their streams
    needs: tuple[str, ...] = ()  # modules of extras that it imports when it is opened

    role: ClassVar[str] = "source"


@dataclass(frozen=True)
class SinkKind(Generic[Given]):
    """A kind of sink. `make` opens one sink for all its views, or one for each (`is_table`)."""

    name: str
    options: type[Given]
    make: Callable[[Given, Origin], Sink]
    says: str
    is_table: bool = False
    reserved: tuple[str, ...] = ()  # additional columns of its tables
    ops: frozenset[str] | None = None  # the changes that it receives by default; None: all
    needs: tuple[str, ...] = ()
    parts: Callable[[Given, Origin], PartWriter] | None = None
    """Makes the writer of parts of a sink that is `Parted`. It may run in other processes than the
    sink. None: the sink has no parts.
    """
    has_parts: Callable[[Given], bool] = lambda options: True
    """Whether a sink with these options has parts, if the kind has them."""

    role: ClassVar[str] = "sink"


@dataclass(frozen=True)
class ChannelKind(Generic[Given]):
    """A kind of channel. `make` opens the channel that views publish to and streams read."""

    name: str
    options: type[Given]
    make: Callable[[Given, Origin], Channel]
    says: str
    needs: tuple[str, ...] = ()

    role: ClassVar[str] = "channel"
