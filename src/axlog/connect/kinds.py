"""What a kind of source or sink is: its name in pipeline files, its options, and how one is made.

A connector's module has a constant of `SourceKind` or `SinkKind` (what it needs from outside it
imports only when one is made, so that its options can be described without). The table of all
kinds is `pipeline/kinds.py`; a package of somebody else joins by an entry point.

Options are pydantic models made from `Options`: unknown keys are refused. What must not be shown
is a `Secret`. Paths are relative to the pipeline file: `Origin.path` finds them.
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
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from axlog.connect.channels.protocol import Channel
from axlog.connect.locations import local_path, needed_path
from axlog.connect.protocol import Sink, Source
from axlog.document.times import Times
from axlog.errors import SetupError
from axlog.query.pattern import Kind
from axlog.query.query import Query

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)?\s*")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Options(BaseModel):
    """What every set of options has in common: nothing unknown, nothing changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


def _seconds(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    matched = _DURATION.fullmatch(given)
    if matched is None:
        raise ValueError("a number of seconds, or a duration like 500ms, 10s, 5min, 2h, 1d")
    return float(matched[1]) * _UNITS[matched[2] or "s"]


Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A duration: a number of seconds, or a text with a unit."""


def _is_local(written: str) -> str:
    if local_path(written) is None:
        raise PydanticCustomError(
            "address", "{written} is an address, and this is a path of this machine",
            {"written": repr(written)},
        )  # fmt: skip
    return written


def _is_fetched(written: str) -> str:
    return written if written.startswith(("http://", "https://")) else _is_local(written)


LocalPath = Annotated[str, AfterValidator(_is_local)]
"""The path of a file or directory of this machine, also as file:///PATH; no other address."""
PathOrWeb = Annotated[str, AfterValidator(_is_fetched)]
"""A path of this machine, or an http address."""


class Secret:
    """A text that is never shown; `${NAME}` in it stands for a variable of the environment.

    >>> Secret("postgresql://ann:${PASSWORD}@host/db")
    Secret(***)
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment that it takes."""
        return tuple(_VARIABLE.findall(self._text))

    def reveal(self, environment: Mapping[str, str] = os.environ) -> str:
        """The text itself, its variables filled in."""
        missing = [name for name in self.variables if name not in environment]
        if missing:
            raise SetupError(
                "AX856",
                f"the environment has no variable {missing[0]}",
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
    """One output of a view, as a sink that keeps tables needs to know it."""

    name: str
    type: str  # text, integer, truth, or a time: seconds or date


@dataclass(frozen=True, slots=True)
class ViewShape:
    """A view as its sinks know it: the name that its changes carry, and its columns."""

    name: str
    columns: tuple[Column, ...]

    @classmethod
    def of(
        cls, name: str, query: Query, document_column: bool = False, times: Times = "seconds"
    ) -> ViewShape:
        """The shape of a query's rows; with a first column for the document where asked for."""
        outputs = query.pattern.outputs
        columns = [
            Column(column, _type_of(output.kind, times))
            for column, output in zip(query.pattern.columns, outputs, strict=True)
        ]
        return cls(name, (*((DOCUMENT_COLUMN,) if document_column else ()), *columns))


DOCUMENT_COLUMN = Column("document", "text")
"""The first column of views over many documents: the key of the row's document."""


def _type_of(kind: Kind, times: Times) -> str:
    if kind is not Kind.TIME:
        return "text"
    return "date" if times == "dates" else "seconds"


@dataclass(frozen=True, slots=True)
class Origin:
    """What a connector is made for: the directory that paths start from, and its part in the run.

    `run` tells one run (a checkpoint, from its first batch to its last) from another: a sink that
    finds batches of another run starts its table anew. `views` are those that a sink is made for.
    """

    directory: Path = field(default_factory=Path)
    run: str = ""
    stream: str | None = None
    views: Sequence[ViewShape] = ()
    namespaces: Mapping[str, str] = field(default_factory=dict)

    def path(self, written: str) -> Path:
        """A path of the pipeline file; `{view}` in it is the view that the sink is made for."""
        if self.views:
            written = written.replace("{view}", self.views[0].name)
        return self.directory / needed_path(written)


Given = TypeVar("Given", bound=Options)


@dataclass(frozen=True)
class SourceKind(Generic[Given]):
    """A kind of source: `make` opens one for a stream, or for all streams that it names itself."""

    name: str
    options: type[Given]
    make: Callable[[Given, Origin], Source]
    says: str  # one line for the docs and for who mistyped a name
    names_streams: bool = False  # its messages say which stream they are for

    role: ClassVar[str] = "source"


@dataclass(frozen=True)
class SinkKind(Generic[Given]):
    """A kind of sink: `make` opens one for all its views, or one for each (`is_table`)."""

    name: str
    options: type[Given]
    make: Callable[[Given, Origin], Sink]
    says: str
    is_table: bool = False
    reserved: tuple[str, ...] = ()  # columns that its tables have beside the view's

    role: ClassVar[str] = "sink"


@dataclass(frozen=True)
class ChannelKind(Generic[Given]):
    """A kind of channel: `make` opens the channel that views publish to and streams read."""

    name: str
    options: type[Given]
    make: Callable[[Given, Origin], Channel]
    says: str

    role: ClassVar[str] = "channel"
