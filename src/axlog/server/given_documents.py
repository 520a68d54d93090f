"""Documents that clients give to the server to keep, with their streams and views.

    PUT    /documents/NAME     {"document": "<orders>...</orders>",
                                "streams": {"orders": {"channel": "orders"}},
                                "views": {"late": {"query": "match ...", "channel": "late"}}}
    DELETE /documents/NAME     end it and drop its views

A stream reads a channel of this server from its first retained entry, a view may be published on
one. The document runs as a pipeline of its own in this process: messages are ordered by their
times, late or invalid ones are rejected, and a view that exceeds its budget is set aside.

The principal needs `deploy` on the document, `subscribe` on the channels of its streams and
`publish` on those of its views, and owns the document. It ends as soon as the principal has lost
one of these rights. It is kept in memory: after a restart of the server, give it again; the
channels' journals have its input, as far as they retain it. The same request by its owner changes
nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from dataclasses import dataclass
from threading import Thread
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from axlog.connect.channels.channel import LocalChannel, LocalSubscription
from axlog.connect.channels.registry import Channels
from axlog.errors import AccessError, AxlogError, ChannelError
from axlog.live.document import Document
from axlog.pipeline.documents import is_xml
from axlog.pipeline.model import PipelineModel
from axlog.reporting import report
from axlog.runtime.embedded import Runner
from axlog.server.access import Access, used_up
from axlog.server.operations import Operation
from axlog.server.responses import answer, json_of, wrong
from axlog.server.roles import Principal, channel, document

_log = logging.getLogger("axlog.server")
_KEYS = {"document", "streams", "views", "facts"}
_STREAM = {"channel", "deletes", "mode", "most", "late", "replace"}
_VIEW = {"query", "language", "channel"}
_FORM = '{"document": "<a>...</a>", "streams": {NAME: {"channel": ...}}, "views": {NAME: "match"}}'


@dataclass
class Given:
    """A document that a client gave, and its run."""

    owner: str
    written: dict[str, Any]
    runner: Runner
    reads: tuple[str, ...]
    publishes: tuple[str, ...]
    thread: Thread | None = None

    def is_allowed(self, access: Access, name: str) -> bool:
        """Whether the owner still has all rights that the document needs."""
        owner = access.named(self.owner)
        return (
            owner is not None
            and owner.may("deploy", document(name))
            and all(owner.may("subscribe", channel(each)) for each in self.reads)
            and all(owner.may("publish", channel(each)) for each in self.publishes)
        )


class GivenDocuments:
    """The documents that clients gave."""

    def __init__(
        self, documents: MutableMapping[str, Document], channels: Channels, access: Access
    ) -> None:
        self._documents, self._channels, self._access = documents, channels, access
        self._given: dict[str, Given] = {}

    def operations(self) -> list[Operation]:
        """Return the table of operations."""
        json, path = ("application/json",), "/documents/{document}"
        return [
            Operation("PUT", path, "Give a document with its views", self._put, "deploy",
                      body=json, success="201"),
            Operation("DELETE", path, "End a document that was given", self._delete, "deploy",
                      success="204"),
        ]  # fmt: skip

    def close(self) -> None:
        """End all given documents."""
        for name in list(self._given):
            self._end(name)

    def owner_of(self, name: str) -> str | None:
        """Return the owner of a document; None: it was not given."""
        known = self._given.get(name)
        return None if known is None else known.owner

    async def _put(self, request: Request, caller: Principal) -> Response:
        name = request.path_params["document"]
        written = await json_of(request, caller.limits.size)
        reads, publishes = _named_channels(written)
        for each in reads:
            self._access.check(caller, "subscribe", channel(each))
        for each in publishes:
            self._access.check(caller, "publish", channel(each))
        self._drop_ended()
        known = self._given.get(name)
        if known is not None and known.owner == caller.name and known.written == written:
            return answer(self._described(name), 200)
        if name in self._documents:
            advice = "delete it first" if known is not None and known.owner == caller.name else None
            raise AccessError("AX817", f"there is a document {name!r} already", advice=advice)
        owned = sum(each.owner == caller.name for each in self._given.values())
        used_up(caller, "documents", owned)
        channels = {each: self._channels[each] for each in {*reads, *publishes}}
        model = _model(name, written, caller)
        runner = await asyncio.to_thread(_runner, model, channels)
        if name in self._documents:  # another request was faster
            runner.close()
            raise AccessError("AX817", f"there is a document {name!r} already")
        given = Given(caller.name, written, runner, reads, publishes)
        self._given[name] = given
        self._documents[name] = runner.instances[name].documents[""]
        given.thread = Thread(target=self._run, args=(name, given), daemon=True)
        given.thread.start()
        report(_log, logging.INFO, "document given", document=name, principal=caller.name)
        return answer(self._described(name), 201)

    def _described(self, name: str) -> dict[str, Any]:
        doc = self._documents[name]
        views = {view: list(one.columns) for view, one in doc.views.items()}
        return {"views": views, "streams": sorted(doc.streams())}

    async def _delete(self, request: Request, caller: Principal) -> Response:
        name = request.path_params["document"]
        self._drop_ended()
        known = self._given.get(name)
        if known is None:
            if name in self._documents:
                raise AccessError("AX814", f"the document {name!r} belongs to the pipeline")
            raise ChannelError("AX801", f"there is no document {name[:100]!r}")
        if known.owner != caller.name and not caller.may("administer", document(name)):
            raise AccessError("AX814", f"the document {name!r} belongs to another principal")
        await asyncio.to_thread(self._end, name)
        return Response(status_code=204)

    def _run(self, name: str, given: Given) -> None:
        """Run until it is ended, or its owner has lost a right that it needs."""
        checking = Thread(target=self._watch, args=(name, given), daemon=True)
        checking.start()
        try:
            given.runner.run()
        except AxlogError as error:
            report(_log, logging.WARNING, "document failed", document=name, error=error.message)

    def _watch(self, name: str, given: Given) -> None:
        while given.thread is not None and given.thread.is_alive():
            if not given.is_allowed(self._access, name):
                report(_log, logging.INFO, "document ended", document=name, principal=given.owner)
                self._end(name)
                return
            given.thread.join(0.5)

    def _drop_ended(self) -> None:
        """Drop documents whose run has ended."""
        for name, given in list(self._given.items()):
            if given.thread is not None and not given.thread.is_alive():
                self._end(name)

    def _end(self, name: str) -> None:
        given = self._given.pop(name, None)
        if given is None:
            return
        self._documents.pop(name, None)
        given.runner.stop()
        if given.thread is not None:
            given.thread.join()
        given.runner.close()


def _named_channels(written: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Check the form of a given document; return the channels that it reads and publishes."""
    streams, views = written.get("streams", {}), written.get("views", {})
    text, facts = written.get("document"), written.get("facts", [])
    if set(written) - _KEYS or not isinstance(streams, dict) or not isinstance(views, dict):
        raise wrong("this is not a document with streams and views", _FORM)
    if not isinstance(text, str) or not is_xml(text):
        raise wrong("the document is not XML", _FORM)
    if not isinstance(facts, list) or not views:
        raise wrong("a document needs views to keep", _FORM)
    reads, publishes = [], []
    for stream in streams.values():
        if not isinstance(stream, dict) or set(stream) - _STREAM:
            raise wrong("a stream reads a channel", '{"channel": "orders"}')
        if not isinstance(stream.get("channel"), str):
            raise wrong("a stream needs a channel", '{"channel": "orders"}')
        reads.append(stream["channel"])
    for view in views.values():
        if isinstance(view, dict) and set(view) <= _VIEW and isinstance(view.get("query"), str):
            publishes += [view["channel"]] if isinstance(view.get("channel"), str) else []
        elif not isinstance(view, str):
            raise wrong("a view needs a query", '{"query": "match ...", "channel": "late"}')
    return tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(publishes))


def _model(name: str, written: dict[str, Any], caller: Principal) -> PipelineModel:
    """Return the pipeline of a given document."""
    views = {
        view: {**({"query": one} if isinstance(one, str) else one), "work": caller.limits.work}
        for view, one in written["views"].items()
    }
    reads, publishes = _named_channels(written)
    content = {
        "name": name,
        "engine": "embedded",
        "documents": {name: {**written, "views": views}},
        "channels": {each: {"kind": "memory"} for each in {*reads, *publishes}},
    }
    try:
        return PipelineModel.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise wrong(f"{where}: {first['msg']}", _FORM) from None


def _runner(model: PipelineModel, channels: dict[str, LocalChannel]) -> Runner:
    return Runner(model, channels={name: Lent(each) for name, each in channels.items()})


class Lent:
    """A channel of the server that a run uses and does not close."""

    def __init__(self, lent: LocalChannel) -> None:
        self._lent = lent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lent, name)

    def subscribe(self, name: str | None = None, **options: Any) -> LocalSubscription:
        """Subscribe without a name: the channel retains nothing for it."""
        return self._lent.subscribe(None, **options)

    def close(self) -> None:
        """Do nothing: the server closes its channels."""
