"""A pipeline on the live page: the graph of its system, and the embedded runner.

Of the documents of one `document_key` only the first ones are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from axlog.errors import PipelineError
from axlog.live.document import Document
from axlog.pipeline.model import PipelineModel, SourceModel
from axlog.runtime.connections import sink_plans
from axlog.runtime.dead_letter_file import DeadLetterFile
from axlog.runtime.embedded import Runner
from axlog.runtime.replay import Replay
from axlog.runtime.system_truth import LiveTruth, ViewOutlook
from axlog.runtime.systems import wires_of
from axlog.server.family_routes import PublishedFamily, published_family
from axlog.server.summaries import Observer

DOCUMENTS = 20
"""Number of documents of one `document_key` that are shown."""


def observe_runner(runner: Runner) -> Observer:
    """Return an observer of a pipeline that runs in this process."""
    observer = Observer(lambda: documents_of(runner))
    observer.system = system_of(runner.model)
    observer.lagging = lambda: [
        {"name": one.name, "error": one.error, "seconds": one.seconds, "tries": one.tries}
        for one in list(runner.progress.lagging)
    ]
    observer.pressure = lambda: pressure_of(runner)
    observer.sinks = lambda: [
        {"name": one.name, "changes": one.written, "seconds": one.seconds} for one in runner.sinks
    ]
    observer.good = good_of(runner.model)
    observer.letters = letters_of(runner.model)
    tables = {name: one.members for name, one in runner.instances.items() if one.members}
    observer.families = lambda document: tables.get(document.partition(" ")[0])
    runner.on_refused = observer.history.refuse
    observer.replay = Replay(runner.model)
    if runner.system.wires:
        observer.outlook = _outlook_in(runner)
    return observer


def pressure_of(runner: Runner) -> list[dict[str, Any]]:
    """Return the sources whose updates wait: for a slower source, or because a lane is full."""
    most = runner.model.settings.batch
    found = []
    for feed in runner.feeds:
        waiting = len(feed.waiting())
        if waiting:
            slow = [
                other.plan.name
                for other in runner.feeds
                if other is not feed
                and other.plan.document == feed.plan.document  # each document has its own order
                and other.is_silent
            ]
            full = not feed.has_room(most)
            found.append({"source": feed.plan.name, "waiting": waiting, "full": full, "for": slow})
    return found


def good_of(model: PipelineModel) -> dict[tuple[str, str], str]:
    """Return the truth value that is good, for the views that name one."""
    return {
        (document, view): one.good
        for document, written in model.documents.items()
        for view, one in written.views.items()
        if one.good is not None
    }


def letters_of(model: PipelineModel) -> DeadLetterFile | None:
    """Return the dead letters of a pipeline; None if it keeps none in a file."""
    try:
        return DeadLetterFile(model)
    except PipelineError:
        return None


def _outlook_in(runner: Runner) -> Callable[[str, str], ViewOutlook | None]:
    """Return a function that gives the outlook of a shown view, with its wires."""
    truth = LiveTruth(runner.model, runner.instances, runner.system)

    def outlook(shown: str, view: str) -> ViewOutlook | None:
        for name, instances in runner.instances.items():
            for key, document in list(instances.documents.items()):
                if shown == (name if instances.is_single else f"{name} {key}"):
                    return truth.get()[0].outlook(name, document, view)
        return None

    return outlook


def documents_of(runner: Runner) -> dict[str, Document]:
    """Return the documents of a runner by their names on the page."""
    found: dict[str, Document] = {}
    for name, instances in runner.instances.items():
        for key, document in islice(list(instances.documents.items()), DOCUMENTS):
            found[name if instances.is_single else f"{name} {key}"] = document
    return found


def single_documents(runner: Runner) -> dict[str, Document]:
    """Return the documents that are not one per key, by name."""
    found = runner.instances.items()
    return {name: one.documents[""] for name, one in found if one.is_single}


def published_families(runner: Runner) -> dict[str, dict[str, PublishedFamily]]:
    """Return the families of the pipeline that subscribers may add members to."""
    return {
        name: {
            view: published_family(family.written.query, family.written.language, family.columns)
            for view, family in one.members.families.items()
        }
        for name, one in runner.instances.items()
        if one.is_single
    }


def system_of(model: PipelineModel) -> dict[str, Any]:
    """Return everything outside the documents: sources, wires, sinks."""
    sources: list[dict[str, str | None]] = []
    for document, written in model.documents.items():
        for stream, one in written.streams.items():
            label = f"channel {one.channel}" if one.channel else _source(one.source)
            if label is not None:
                sources.append({"document": document, "stream": stream, "says": label})
        sources += [
            {"document": document, "stream": None, "says": _source(s)} for s in written.sources
        ]
    wires = [
        {"from": wire.origin, "view": wire.view.removeprefix(f"{wire.origin}."),
         "to": wire.document, "stream": wire.stream}
        for wire in wires_of(model)
    ]  # fmt: skip
    names = {name.full: name for name in model.view_names()}
    sinks = []
    for plan in sink_plans(model):
        views = [[names[v].document, names[v].view] for v in plan.views if v in names]
        sinks.append({"says": _sink(plan.name, plan.written.kind), "views": views})
    for name, written in model.documents.items():
        for view, shown in written.views.items():
            if shown.channel is not None:
                sinks.append({"says": f"channel {shown.channel}", "views": [[name, view]]})
    return {"sources": sources, "wires": wires, "sinks": sinks}


def _source(written: SourceModel | None) -> str | None:
    """Describe a source briefly, without options that may be secret."""
    if written is None:
        return None
    given = written.written
    where = next((given[key] for key in ("path", "topic") if isinstance(given.get(key), str)), "")
    return f"{written.kind} {where}".strip()


def _sink(name: str, kind: str) -> str:
    return kind if "/" in name or name == kind else f"{name} ({kind})"
