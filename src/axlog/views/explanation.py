"""The answer of `explain`: query, program, terms, maintainer and the reason for it, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from axlog.document.tree import Tree
from axlog.errors import AxlogError
from axlog.query.compile import compile_pattern
from axlog.query.query import Query
from axlog.query.rules import explain_program
from axlog.query.truth import Truth
from axlog.views.algebraic.reports import term_lines
from axlog.views.choose import Chosen
from axlog.views.maintainer import Maintainer

MOST_TERMS = 20
"""Most lines of terms that `explain` prints."""
_BY_TERMS = ("algebraic", "adaptive")
"""The maintainers that evaluate terms."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a view is kept; `str` gives the text that `explain` prints.

    The text has the terms only if the maintainer evaluates them, and not more than some; `terms`
    has all of them.
    """

    query: str
    language: str
    pattern: str
    columns: tuple[str, ...]
    relations: tuple[tuple[str, tuple[str, ...]], ...]  # each with the columns of its rows
    program: tuple[str, ...]
    maintainer: str
    reason: str
    terms: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()  # those that keep rows, with their costs
    is_incremental: bool = True  # False: an update evaluates the whole query again
    never: str | None = None  # how `never` changes are found, or why they are not
    truth: str | None = None  # decided, or why not; None: no stream is open
    shared: str | None = None  # the plan that the view shares with others
    apart: str | None = None  # why views with other constants do not share its plan
    shared_parts: tuple[str, ...] = ()  # the parts that other views have, too

    def _repr_html_(self) -> str:
        """The explanation in a notebook, as its text."""
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        lines = [f"query       {self.query}"]
        if self.pattern != self.query:
            lines.append(f"pattern     {self.pattern}")
        if self.truth is not None:
            lines.append(f"truth       {self.truth}")
        if self.never is not None:
            lines.append(f"never       {self.never}")
        how = f"{self.maintainer}, incremental" if self.is_incremental else self.maintainer
        lines.append(f"maintainer  {how}: {self.reason}")
        if self.shared is not None:
            lines.append(f"shared      {self.shared}")
        if self.apart is not None:
            lines.append(f"not shared  {self.apart}")
        if self.shared_parts:
            lines.append("shared parts")
            lines += [f"  {line}" for line in self.shared_parts]
        if self.operators:
            lines.append("operators")
            lines += [f"  {line}" for line in self.operators]
        if self.program:
            lines.append("program")
            lines += [f"  {line}".rstrip() for line in self.program]
        if self.terms and self.maintainer in _BY_TERMS:
            lines.append("terms")
            lines += [f"  {line}" for line in self.terms[:MOST_TERMS]]
            if len(self.terms) > MOST_TERMS:
                lines.append(f"  ... {len(self.terms) - MOST_TERMS} more in `explain().terms`")
        return "\n".join(lines)


def how_decided(tree: Tree, ask: Callable[[], Truth]) -> str | None:
    """Whether truth is decided for the document as it is now; None: no stream is open."""
    if not tree.calls_by_stream:
        return None
    try:
        return f"decided: {ask().value}"
    except AxlogError as error:
        return f"not decided ({error.code}): {error.message}"


def explain(
    query: Query,
    chosen: Chosen,
    maintainer: Maintainer | None = None,
    never: str | None = None,
    truth: str | None = None,
) -> Explanation:
    """Explain how a query is kept; a maintainer adds a report of its last update."""
    if query.has_items:
        return Explanation(
            query=query.text,
            language=query.language,
            pattern=query.text,
            columns=query.columns,
            relations=(),
            program=(),
            maintainer=chosen.name,
            reason=chosen.reason,
            operators=maintainer.operators() if maintainer else (),
            is_incremental=chosen.is_incremental,
            never=never,
            truth=truth,
        )
    program = compile_pattern(query.pattern)
    rules = explain_program(query.pattern)
    return Explanation(
        query=query.text,
        language=query.language,
        pattern=str(query),
        columns=query.columns,
        relations=tuple((relation.name, relation.columns) for relation in program.relations),
        program=tuple(rules.splitlines()),
        maintainer=chosen.name,
        reason=chosen.reason,
        terms=(*(maintainer.details() if maintainer else ()), *term_lines(query.pattern)),
        operators=maintainer.operators() if maintainer else (),
        is_incremental=chosen.is_incremental,
        never=never,
        truth=truth,
    )
