"""A maintained document as plain data, sent to the executors and stored in checkpoints.

Both sides of the shuffle build their part from the same definition, so that relations have the same
numbers on both: a matcher's bags on one side are a route's on the other. `Definition.document`
creates the document of the embedded engine, with all views or some.

Not handled: a document that messages have already changed. Its state beyond the tree cannot be
written down; start from the document and replay.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

from axlog.document.clock_bounds import Horizon, read_ahead
from axlog.document.parser import DEFAULT_LIMITS, Limits, read
from axlog.document.times import Times
from axlog.document.tree import DOCUMENT_NODE
from axlog.errors import PipelineError
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view, streams_of
from axlog.live.log_records import settings_of
from axlog.live.options import CACHE, Cache, Collect, Keep, OnError, Options
from axlog.pipeline.documents import calls_of
from axlog.query.query import Query
from axlog.views.step_chain import OnValueError
from axlog.views.view_query import parse_view


@dataclass(frozen=True)
class Definition:
    """A document with calls, its views and declared facts."""

    document: str
    views: Mapping[str, tuple[str, str | None]]  # the query's text and language, by name
    facts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    namespaces: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = DEFAULT_LIMITS
    keep_whitespace: bool = False
    times: Times = "seconds"
    start: int = 0  # the time of its nodes, in microseconds
    groups: tuple[tuple[str, ...], ...] = ()
    """The views by the start that added them, as in checkpoints; empty: all by the first."""
    work: Mapping[str, int] = field(default_factory=dict)
    """The views with their own work budget (`Document.watch`)."""
    rejecting: tuple[str, ...] = ()
    """The views that refuse a message with a value that they cannot compute."""
    collect: Collect = "state"
    cache: Cache = "memory"
    memory: int = CACHE
    on_violation: Literal["refuse", "report"] = "refuse"
    """As in `Options`."""
    final_steps: bool = True
    """Whether Spark's driver has a durable place for the final steps of views."""

    @classmethod
    def of(cls, document: Document) -> Definition:
        """Return the definition of a document that has received nothing yet."""
        inside = maintained(document)
        tree = inside.tree
        if tree.types is not None:
            raise PipelineError(
                "AX861", "the document has types", advice="pass maintain() a Definition with them"
            )
        start = tree.time(DOCUMENT_NODE)
        if tree.clock != start or tree.version or inside.forgotten or document.dead_letters:
            raise PipelineError(
                "AX861",
                "the document has been fed already",
                advice="pass maintain() a new document; sources bring the rest",
            )
        return cls(
            inside.xml(),
            {name: (view.query.text, view.query.language) for name, view in document.views.items()},
            tuple(str(fact) for fact in (*tree.facts, *tree.references)),
            (),
            dict(inside.namespaces),
            inside.limits,
            inside.keep_whitespace,
            inside.times,
            start,
            work={n: view.work for n, view in document.views.items() if view.work is not None},
            rejecting=tuple(n for n, v in document.views.items() if maintained_view(v).rejects),
        )

    def queries(self) -> dict[str, Query]:
        """The queries of the views."""
        spaces = tuple(sorted(self.namespaces.items()))
        return {
            name: _parsed(text, language, spaces) for name, (text, language) in self.views.items()
        }

    def make(
        self,
        views: Iterable[str] | None = None,
        keep: Keep = "all",
        on_error: OnError = "raise",
        *,
        cached: bool = False,
    ) -> Document:
        """Return a fresh document with these views.

        `cached`: it will be fed, and keeps its rows as `cache` says.
        """
        queries = self.queries()
        chosen = queries if views is None else {name: queries[name] for name in views}
        made = Document(
            self.document,
            facts=self.facts,
            types=list(self.types) or None,
            options=Options(
                limits=self.limits,
                keep_whitespace=self.keep_whitespace,
                namespaces=self.namespaces,
                keep=keep,
                never="joins",  # as emitted by all engines
                on_error=on_error,
                times=self.times,
                collect=self.collect,
                cache=self.cache if cached else "memory",
                memory=self.memory,
                on_violation=self.on_violation,
                at=timedelta(microseconds=self.start),
            ),
        )
        streams_of(made).now = None  # dates ahead were checked on reading
        maintained(made).families.share_from = None  # plans split views by their own relations
        for name, query in chosen.items():
            policy: OnValueError = "reject" if name in self.rejecting else "null"
            made.watch(query, name, work=self.work.get(name), on_value_error=policy)
        return made

    def horizon(self, is_dated: bool = False) -> Horizon:
        """Return how far ahead the streams may be; `is_dated`: numbers are dates, too."""
        declared_ahead = {
            n: call.get("ahead") for n, call in calls_of(read(self.document).root).items()
        }
        declared = {
            name: None if text is None else read_ahead(text)
            for name, text in declared_ahead.items()
        }
        return Horizon(declared, is_dated or self.times == "dates")

    def settings(self) -> dict[str, Any]:
        """Return the options that recreate a document that keeps all, as stored in snapshots."""
        options = {
            "keep_whitespace": self.keep_whitespace,
            "namespaces": dict(self.namespaces),
            "keep": "all",
            "facts": list(self.facts),
            "times": self.times,
            "collect": self.collect,
            "cache": self.cache,
            "memory": self.memory,
            "on_violation": self.on_violation,
        }
        return settings_of("", options, asdict(self.limits))

    def plain(self) -> dict[str, Any]:
        """Return the definition for JSON; `read` reads it back."""
        return {**asdict(self), "views": {n: list(v) for n, v in self.views.items()}}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Definition:
        """Return the definition that `plain` wrote."""
        given = dict(written)
        given["views"] = {
            name: (text, language) for name, (text, language) in given["views"].items()
        }
        given["facts"] = tuple(given["facts"])
        given["types"] = tuple(given["types"])
        given["groups"] = tuple(tuple(group) for group in given["groups"])
        given["rejecting"] = tuple(given.get("rejecting", ()))
        given["limits"] = Limits(**given["limits"])
        return cls(**given)

    @property
    def fingerprint(self) -> str:
        """A digest that identifies the definition."""
        written = json.dumps(self.plain(), sort_keys=True).encode()
        return blake2b(written, digest_size=12).hexdigest()


@lru_cache(maxsize=256)
def _parsed(text: str, language: str | None, namespaces: tuple[tuple[str, str], ...]) -> Query:
    """Parse queries once for all documents of a kind."""
    return parse_view(text, dict(namespaces), language)
