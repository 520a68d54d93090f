"""The definitions of the documents of a pipeline file, and their plans for Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from axlog.document.loader import with_surroundings
from axlog.document.times import start_of
from axlog.pipeline.documents import document_of, types_of
from axlog.pipeline.families import FamilyView
from axlog.pipeline.model import PipelineModel
from axlog.runtime.definition import Definition, FamilyDefinition
from axlog.runtime.plan import SparkPlan, make_plan
from axlog.runtime.wires import Wiring


def definition_of(model: PipelineModel, document: str, wiring: Wiring | None = None) -> Definition:
    """Return the definition of a document of the file."""
    written = model.documents[document]
    types = [
        given if isinstance(given, str) else given.read_text(encoding="utf-8")
        for given in types_of(written, model.directory)
    ]
    own = {name: view for name, view in written.views.items() if view.for_each is None}
    views = {name: (view.query, view.language) for name, view in own.items()}
    root = document_of(written, model.directory)
    root = root if wiring is None else wiring.declared(document, root)
    around = with_surroundings(root)  # comments and instructions outside the root
    xml = "".join(etree.tostring(each, encoding="unicode", with_tail=False) for each in around)
    times, settings = model.settings.times, model.settings_of(document)
    budgets = {name: view.work for name, view in own.items() if view.work is not None}
    rejecting = [name for name, view in written.views.items() if view.on_value_error == "reject"]
    return Definition(
        xml,
        views,
        tuple(written.facts),
        tuple(types),
        dict(model.namespaces),
        times=times,
        start=start_of(None, times),
        work=budgets,
        rejecting=tuple(rejecting),
        collect=settings.collect,
        cache=settings.cache,
        memory=settings.memory,
        on_violation=settings.on_violation,
        families={family.name: _family(family) for family in families_of(model, document)},
    )


def families_of(model: PipelineModel, document: str) -> list[FamilyView]:
    """Return the families of a document of the file."""
    written = model.documents[document].views.items()
    return [FamilyView(n, v, model.directory) for n, v in written if v.for_each is not None]


def _family(family: FamilyView) -> FamilyDefinition:
    written = family.written
    options = {
        "maintainer": written.maintainer,
        "work": written.work,
        "on_value_error": written.on_value_error,
    }
    columns = tuple(family.typed_columns)
    return FamilyDefinition(family.sample_text(), written.language, columns, options)


def plans_of(model: PipelineModel) -> Iterator[tuple[str, SparkPlan]]:
    """Return the documents of a file with the plans by which Spark partitions their views."""
    settings, wiring = model.settings, Wiring(model, Path())
    for name, written in model.documents.items():
        definition = definition_of(model, name, wiring)
        documents = written.document_key is not None
        yield name, make_plan(definition, settings.buckets, documents)
