"""The settings of pipeline files: of a whole pipeline, and of one document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from axlog.connect.kinds import Options, Seconds
from axlog.live.options import CACHE


def as_word(given: Any) -> Any:
    """Accept `yes` and `no` also as the truth values that other YAML readers produce."""
    return {True: "yes", False: "no"}[given] if isinstance(given, bool) else given


class TuneModel(Options):
    """How often streams are tuned."""

    messages: int | None = Field(default=None, ge=1, description="Interval in messages.")
    seconds: Seconds | None = Field(default=None, gt=0, description="Interval in time.")
    exact: bool = Field(
        default=False,
        description="Decide by the definition where the document is whole and small (embedded);"
        " this costs more.",
    )


def _tune(given: Any) -> Any:
    return {True: "auto", False: "off"}[given] if isinstance(given, bool) else given


def _collect(given: Any) -> Any:
    return {True: "state", False: "off"}[given] if isinstance(given, bool) else given


class DocumentSettings(Options):
    """Settings of a document: the data it keeps and checks."""

    keep: Literal["all", "needed"] = Field(
        default="all",
        description="Keep all messages, or only the data that views and deleting streams need.",
    )
    validation: Literal["all", "wanted"] = Field(
        default="all",
        alias="validate",
        description="Parse every message, or only those that some view may need.",
    )
    tune: Annotated[
        Literal["auto", "off"] | TuneModel,
        BeforeValidator(_tune, json_schema_input_type=Literal["auto", "off"] | bool | TuneModel),
    ] = Field(
        default="auto",
        description="How often to compute what each stream is still needed for.",
    )
    collect: Annotated[
        Literal["state", "auto", "off"],
        BeforeValidator(_collect, json_schema_input_type=Literal["state", "auto", "off"] | bool),
    ] = Field(
        default="state",
        description="Drop rows of joins that can no longer match; `auto`: also finished streams"
        " and nodes of the document; `off`: nothing.",
    )
    cache: Literal["memory", "disk"] = Field(
        default="memory", description="Where the rows that joins look up are kept."
    )
    memory: int = Field(
        default=CACHE, ge=0, description="Bytes of these rows in memory, with `cache: disk`."
    )
    on_violation: Literal["refuse", "report"] = Field(
        default="refuse",
        description="An update that breaks the document's types: reject it, or apply it and log"
        " it.",
    )


class Settings(DocumentSettings):
    """Settings of the pipeline; those of `DocumentSettings` can also be set for one document."""

    batch: int = Field(
        default=1000,
        ge=1,
        description="Maximum number of messages in a batch. On Spark an estimate for files that are"
        " divided by bytes.",
    )
    trigger: Seconds = Field(default=0.2, ge=0, description="The polling interval of sources.")
    hold: Seconds = Field(
        default=2.0,
        ge=0,
        description="Seconds to wait for a slower stream before processing what has arrived.",
    )
    clock: Literal["messages", "wall"] = Field(
        default="messages",
        description="The clock: the times of messages only, or the machine's clock, `hold` "
        "behind it.",
    )
    times: Literal["seconds", "dates"] = Field(
        default="seconds",
        description="Format of times in rows, changes and tables: seconds since"
        " 1970, or dates. Dates may be before 1970.",
    )
    checkpoint: str | None = Field(
        default=None, description="Directory of the run's state; without it a restart starts over."
    )
    snapshot: int = Field(
        default=100_000,
        ge=1,
        description="Embedded: messages between two snapshots, from which a restart resumes.",
    )
    retain: Annotated[
        Literal["all", "no"],
        BeforeValidator(as_word, json_schema_input_type=Literal["all", "no"] | bool),
    ] = Field(
        default="no",
        description="Keep the input, so that views added later can be back-filled.",
    )
    on_error: Literal["dead-letter", "stop"] = Field(
        default="dead-letter", description="What to do with a rejected message."
    )
    rounds: int | None = Field(
        default=None,
        ge=1,
        description="Maximum rounds for documents that feed each other in a cycle.",
    )
    cores: int | None = Field(default=None, ge=1, description="Spark: cores of a local master.")
    buckets: int | None = Field(
        default=None,
        ge=1,
        description="Spark: buckets of keys, the most tasks that can share the state"
        " (default: 16; 1 with the state on the driver). Fixed for a checkpoint.",
    )
    partitions: int | None = Field(
        default=None,
        ge=1,
        description="Spark: state partitions, at most one per bucket (default: 4). `axlog rescale`"
        " changes those of a checkpoint.",
    )
    state: Literal["auto", "driver", "executors"] = Field(
        default="auto",
        description="Spark: where engines and their state live (on one machine: the driver).",
    )
    master: str | None = Field(
        default=None, description="Spark: the address of the master (default: local)."
    )
    spark: dict[str, str] = Field(default={}, description="Spark: additional settings.")
