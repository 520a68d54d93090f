"""A maintained document as plain data, sent to the executors and stored in checkpoints.

Both sides of the shuffle build their part from the same definition, so that relations have the same
numbers on both: a matcher's bags on one side are a route's on the other. `Definition.document`
creates the document of the embedded engine, with all views or some.

A family is a view that is watched for each row of a table. Its definition has no rows: they are an
input like messages (`table_source.py`), because they come and go while a query runs. A *pilot*, a
member that no table has, stands for the family in every document that is made.

Not handled: a document that messages have already changed. Its state beyond the tree cannot be
written down; start from the document and replay.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

from axlog.connect.kinds import Column
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
from axlog.query.columns import ColumnType
from axlog.query.query import Query
from axlog.views.family_names import PILOT
from axlog.views.operators.join import Share
from axlog.views.step_chain import OnValueError
from axlog.views.view_query import parse_view


@dataclass(frozen=True)
class FamilyDefinition:
    """Views that differ in constants, as one view."""

    query: str  # of some member
    language: str | None = None
    columns: tuple[tuple[str, ColumnType], ...] = ()
    """The columns of the table, which rows show first; none: members are views of their own."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other parameters of `Document.watch`, for every member."""

    @property
    def watching(self) -> dict[str, Any]:
        """The parameters of `Document.watch` for a member."""
        return {"language": self.language, **self.options}

    @property
    def has_numbers(self) -> bool:
        """Whether members may differ in durations of any length: the plan is made before them."""
        return any(type_ != "text" for _, type_ in self.columns)

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> FamilyDefinition:
        columns = tuple((name, type_) for name, type_ in written["columns"])
        return cls(written["query"], written["language"], columns, dict(written["options"]))


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
    families: Mapping[str, FamilyDefinition] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all views, and of all families."""
        return *self.views, *self.families

    def watched_name(self, name: str) -> str:
        """The name under which a document that is made has a view, or the pilot of a family."""
        return f"{name}{PILOT}" if name in self.families else name

    def head(self, name: str) -> tuple[Column, ...]:
        """The columns that rows of a view have in front: those of the table of a family."""
        family = self.families.get(name)
        return () if family is None else tuple(Column(*one) for one in family.columns)

    def own_views(self, names: Iterable[str]) -> list[str]:
        """Those of these names that are views, and not families."""
        return [name for name in names if name not in self.families]

    @classmethod
    def of(cls, document: Document, names: Collection[str] | None = None) -> Definition:
        """Return the definition of a document that has received nothing yet, with some views."""
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
        chosen = document.views if names is None else {n: document.view(n) for n in names}
        return cls(
            inside.xml(),
            {name: (view.query.text, view.query.language) for name, view in chosen.items()},
            tuple(str(fact) for fact in (*tree.facts, *tree.references)),
            (),
            dict(inside.namespaces),
            inside.limits,
            inside.keep_whitespace,
            inside.times,
            start,
            work={n: view.work for n, view in chosen.items() if view.work is not None},
            rejecting=tuple(n for n, v in chosen.items() if maintained_view(v).rejects),
        )

    def queries(self) -> dict[str, Query]:
        """The queries of the views; of a family, that of some member."""
        spaces = tuple(sorted(self.namespaces.items()))
        texts = {**self.views, **{n: (f.query, f.language) for n, f in self.families.items()}}
        return {name: _parsed(text, language, spaces) for name, (text, language) in texts.items()}

    def make(
        self,
        views: Iterable[str] | None = None,
        keep: Keep = "all",
        on_error: OnError = "raise",
        *,
        cached: bool = False,
        shares: Iterable[Share] = (),
    ) -> Document:
        """Return a fresh document with these views, and the pilots of these families.

        `cached`: it will be fed, and keeps its rows as `cache` says. `shares`: the rows that views
        begin with, those that are in each of them.
        """
        queries = self.queries()
        chosen = self.names if views is None else tuple(views)
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
        maintained(made).engine.keep_shares(shares)
        families = maintained(made).families
        families.share_from = None  # plans split other views by their own relations
        families.is_requested = any(one.columns for one in self.families.values())
        families.must_share = families.is_requested  # tasks send rows for all members together
        families.is_wide = any(one.has_numbers for one in self.families.values())
        for name in chosen:
            family = self.families.get(name)
            if family is not None:
                with families.restoring(is_shared=True):
                    made.watch(family.query, self.watched_name(name), **family.watching)
                continue
            policy: OnValueError = "reject" if name in self.rejecting else "null"
            made.watch(queries[name], name, work=self.work.get(name), on_value_error=policy)
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

    def settings(self, keep: Keep) -> dict[str, Any]:
        """Return the options that recreate a document, as stored in snapshots."""
        options = {
            "keep_whitespace": self.keep_whitespace,
            "namespaces": dict(self.namespaces),
            "keep": keep,
            "never": "joins",  # as emitted by all engines
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
        families = given.get("families", {}).items()
        given["families"] = {name: FamilyDefinition.read(one) for name, one in families}
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
