"""The table of all kinds of sources, sinks and channels that a pipeline file can name.

Built-in kinds are listed here with their modules, which are imported on first use. Other packages
add kinds by an entry point of the group `axlog.sources`, `axlog.sinks` or `axlog.connect.channels`;
a program adds them with `register`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from axlog.connect.kinds import ChannelKind, SinkKind, SourceKind
from axlog.errors import PipelineError, did_you_mean

SOURCES = {
    "access-log": "axlog.connect.sources.access_logs:ACCESS_LOG",
    "delta": "axlog.connect.sources.delta:DELTA",
    "directory": "axlog.connect.sources.directory:DIRECTORY",
    "document": "axlog.connect.sources.documents:DOCUMENT",
    "feed": "axlog.connect.sources.feeds:FEED",
    "folder": "axlog.connect.sources.folders:FOLDER",
    "jsonl": "axlog.connect.sources.jsonl:JSONL",
    "kafka": "axlog.connect.sources.kafka:KAFKA",
    "memory": "axlog.connect.sources.memory:MEMORY",
    "parquet": "axlog.connect.sources.parquet:PARQUET",
    "table": "axlog.connect.sources.tables:TABLE",
}
SINKS = {
    "cloudevents": "axlog.connect.sinks.webhooks:CLOUDEVENTS",
    "console": "axlog.connect.sinks.console:CONSOLE",
    "delta": "axlog.connect.sinks.delta:DELTA",
    "feed": "axlog.connect.sinks.feeds:FEED",
    "http": "axlog.connect.sinks.http:HTTP",
    "jsonl": "axlog.connect.sinks.jsonl:JSONL",
    "mail": "axlog.connect.sinks.mail:MAIL",
    "memory": "axlog.connect.sinks.memory:MEMORY",
    "page": "axlog.connect.sinks.pages:PAGE",
    "parquet": "axlog.connect.sinks.parquet:PARQUET",
    "parquet-log": "axlog.connect.sinks.parquet_log:PARQUET_LOG",
    "sql": "axlog.connect.sinks.sql:SQL",
    "webhook": "axlog.connect.sinks.webhooks:WEBHOOK",
    "xml": "axlog.connect.sinks.pages:XML",
}
CHANNELS = {
    "http": "axlog.connect.channels.http:HTTP",
    "kafka": "axlog.connect.channels.kafka:KAFKA",
    "memory": "axlog.connect.channels.memory:MEMORY",
    "redis": "axlog.connect.channels.redis:REDIS",
}
_registered: dict[tuple[str, str], SourceKind[Any] | SinkKind[Any] | ChannelKind[Any]] = {}


def register(kind: SourceKind[Any] | SinkKind[Any] | ChannelKind[Any]) -> None:
    """Add or replace a kind."""
    _registered[kind.role, kind.name] = kind


@contextmanager
def lent(*added: SourceKind[Any] | SinkKind[Any] | ChannelKind[Any]) -> Iterator[None]:
    """Restore the table of kinds at the end of the block."""
    before = dict(_registered)
    for kind in added:
        register(kind)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)


def source_names() -> list[str]:
    """Return the names of all kinds of sources."""
    return _names("source", SOURCES)


def sink_names() -> list[str]:
    """Return the names of all kinds of sinks."""
    return _names("sink", SINKS)


def channel_names() -> list[str]:
    """Return the names of all kinds of channels."""
    return _names("channel", CHANNELS)


def channel_kind(name: str) -> ChannelKind[Any]:
    """Return a kind of channel, or raise an error that lists the known kinds."""
    found = _found("channel", name, CHANNELS)
    if not isinstance(found, ChannelKind):
        raise _unknown("channel", name, channel_names())
    return found


def source_kind(name: str) -> SourceKind[Any]:
    """Return a kind of source, or raise an error that lists the known kinds."""
    found = _found("source", name, SOURCES)
    if not isinstance(found, SourceKind):
        raise _unknown("source", name, source_names())
    return found


def sink_kind(name: str) -> SinkKind[Any]:
    """Return a kind of sink, or raise an error that lists the known kinds."""
    found = _found("sink", name, SINKS)
    if not isinstance(found, SinkKind):
        raise _unknown("sink", name, sink_names())
    return found


def _names(role: str, own: dict[str, str]) -> list[str]:
    registered = {name for of, name in _registered if of == role}
    return sorted({*own, *_entries(role), *registered})


def _found(role: str, name: str, own: dict[str, str]) -> object:
    if (role, name) in _registered:
        return _registered[role, name]
    if name in own:
        module, _, constant = own[name].partition(":")
        return getattr(import_module(module), constant)
    entry = _entries(role).get(name)
    return None if entry is None else entry.load()


@cache
def _entries(role: str) -> dict[str, Any]:
    return {entry.name: entry for entry in entry_points(group=f"axlog.{role}s")}


def _unknown(role: str, name: str, known: list[str]) -> PipelineError:
    return PipelineError(
        "AX853",
        f"there is no kind of {role} {name!r}",
        expected="one of " + ", ".join(known),
        advice=did_you_mean(name, known),
    )
