"""Checks of a pipeline on this machine: extras, engine, files and addresses that it needs.

A file may be meant for another machine, so every finding is a warning. Addresses are tried only
when the caller asks for it, by opening and closing a connection.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from axlog.connect.kinds import ChannelKind, Secret, SinkKind, SourceKind
from axlog.connect.locations import local_path
from axlog.errors import AxlogError, PipelineError, SetupError
from axlog.extras import is_installed, not_installed
from axlog.pipeline import kinds
from axlog.pipeline.checks import Problem
from axlog.pipeline.engines import choose
from axlog.pipeline.model import Connector, PipelineModel

AnyKind = SourceKind[Any] | SinkKind[Any] | ChannelKind[Any]
_PATIENCE = 3.0
_PORTS = {
    "http": 80,
    "https": 443,
    "redis": 6379,
    "rediss": 6379,
    "postgresql": 5432,
    "mysql": 3306,
}


def machine_problems(model: PipelineModel, *, connects: bool = False) -> list[Problem]:
    """Return what a run of the pipeline would miss on this machine."""
    found: list[AxlogError] = []
    chosen = choose(model.engine, None, model.embedded_for())
    if chosen.engine == "spark" and not is_installed("pyspark"):
        found.append(not_installed("pyspark", ", or run with --engine embedded"))
    for name, kind, written in _connectors(model):
        try:
            options = kind.options.model_validate(written.written)
        except ValidationError:
            continue  # reported by the checks of the file
        found += _extras(name, kind, options)
        if isinstance(kind, SourceKind):
            found += _files(name, options, model)
        if connects:
            found += _addresses(name, options)
    return [Problem(error, "warning") for error in found]


def _connectors(model: PipelineModel) -> Iterator[tuple[str, AnyKind, Connector]]:
    for document in model.documents.values():
        for stream, one in document.streams.items():
            if one.source is not None:
                yield f"the source of {stream}", kinds.source_kind(one.source.kind), one.source
        for source in document.sources:
            yield f"the source {source.kind}", kinds.source_kind(source.kind), source
        for view, shown in document.views.items():
            for sink in shown.sinks:
                if not isinstance(sink, str):
                    yield f"a sink of {view}", kinds.sink_kind(sink.kind), sink
    for name, sink in model.sinks.items():
        yield f"the sink {name}", kinds.sink_kind(sink.kind), sink
    for name, channel in model.channels.items():
        yield f"the channel {name}", kinds.channel_kind(channel.kind), channel
    if model.dead_letters is not None:
        yield "the sink dead_letters", kinds.sink_kind(model.dead_letters.kind), model.dead_letters


def _extras(name: str, kind: AnyKind, options: Any) -> Iterator[AxlogError]:
    url = getattr(options, "url", None)
    fetches = isinstance(url, str) and url.startswith(("http://", "https://"))
    for module in dict.fromkeys((*kind.needs, *(("httpx",) if fetches else ()))):
        if not is_installed(module):
            yield not_installed(module).within(name)


def _files(name: str, options: Any, model: PipelineModel) -> Iterator[AxlogError]:
    for key in ("path", "url"):
        written = getattr(options, key, None)
        if not isinstance(written, str) or written.startswith(("http://", "https://")):
            continue
        path = local_path(written)
        if path is not None and not (model.directory / path).exists():
            yield PipelineError(
                "AX858",
                f"{model.directory / path} does not exist",
                advice="create it, or correct the path; the run waits until it is there",
            ).within(name)


def _addresses(name: str, options: Any) -> Iterator[AxlogError]:
    for key in ("brokers", "url", "database", "host"):
        given = getattr(options, key, None)
        try:
            text = given.reveal() if isinstance(given, Secret) else given
        except SetupError as error:
            yield error.within(name)
            continue
        for host, port in _hosts(text, getattr(options, "port", None)):
            try:
                socket.create_connection((host, port), _PATIENCE).close()
            except OSError as error:
                yield PipelineError(
                    "AX858",
                    f"{host}:{port} is not reachable: {error.strerror or error}",
                    advice="start it, or correct the address",
                ).within(name)


def _hosts(given: Any, port: Any) -> Iterator[tuple[str, int]]:
    """Yield the hosts and ports of a list of brokers, an address, or a host with its port."""
    if not isinstance(given, str):
        return
    if "://" in given:
        scheme = urlsplit(given).scheme.partition("+")[0]
        try:
            host, found = urlsplit(given).hostname, urlsplit(given).port
        except ValueError:
            return  # an invalid port; opening the connector reports it
        number = found or _PORTS.get(scheme)
        if host and number:
            yield host, number
        return
    for one in given.split(","):
        name, _, digits = one.strip().rpartition(":")
        if name and digits.isdigit():
            yield name, int(digits)
        elif isinstance(port, int) and one.strip():
            yield one.strip(), port
