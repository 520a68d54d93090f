"""Why a row does not hold, and what can still bring it or end it.

POSSIBLE: what streams must deliver, and until when. NEVER: the facts that rule the row out, found
by asking again without each of them: the clock, a key, the number of trees of a stream, types, and
what must be absent. If the row is NEVER without any of them, no open stream can bring it. TRUE, of
a query with `not`: what can end it.

A reason is given only if it alone makes the difference. If only several together do, all of
them are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from xml.sax.saxutils import escape, quoteattr

from axlog.document.times import Shown, Times, plain, shown
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.future.grounding import has_not
from axlog.future.profile_trees import FutureTree
from axlog.future.profiles import Arrival, Event
from axlog.future.truth import Outlook
from axlog.query.normalize import normalise
from axlog.query.pattern import Branch, Not, Pattern, PatternNode
from axlog.query.truth import Truth

ReasonKind = Literal[
    "holds", "needs", "ends", "deadline", "key", "limit", "types", "absence", "streams"
]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for the truth of a row; `str` gives it as a sentence."""

    kind: ReasonKind
    text: str
    stream: str | None = None
    deadline: Shown | None = None

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """This reason as JSON values."""
        fields: dict[str, Any] = {"kind": self.kind, "text": self.text}
        if self.stream is not None:
            fields["stream"] = self.stream
        return fields if self.deadline is None else {**fields, "deadline": plain(self.deadline)}


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The truth of a row, and the reasons for it."""

    truth: Truth
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        return "\n".join([self.truth.value, *(f"  {reason}" for reason in self.reasons)])

    def to_dict(self) -> dict[str, Any]:
        """This answer as JSON values."""
        return {"truth": self.truth.value, "reasons": [each.to_dict() for each in self.reasons]}


def why_not(
    tree: Tree, pattern: Pattern, row: Mapping[str, Any], times: Times = "seconds"
) -> WhyNot:
    """The truth of a row, with times in microseconds, and the reasons for it."""
    question = _Question(tree, pattern, row, times)
    truth = question.status(tree, pattern)
    ask = {
        Truth.TRUE: question.ends, Truth.POSSIBLE: question.needs, Truth.NEVER: question.obstacles,
    }[truth]  # fmt: skip
    return WhyNot(truth, tuple(dict.fromkeys(ask())))


@dataclass(frozen=True, slots=True)
class _Question:
    tree: Tree
    pattern: Pattern
    row: Mapping[str, Any]
    times: Times

    def status(self, tree: Tree, pattern: Pattern) -> Truth:
        return Outlook(tree, pattern).status(self.row)

    # A row that is possible or there

    def needs(self) -> Iterator[Reason]:
        outlook = Outlook(self.tree, self.pattern)
        if has_not(self.pattern):
            yield from map(self._event, outlook.future(self.row) or ())
            return
        for one in outlook.ways(self.row):
            for wanted in one.needs:
                until = None if one.deadline is None else self._shown(int(one.deadline))
                limit = "" if until is None else f" until {plain(until)}"
                text = f"{wanted.stream} can still bring {wanted.pattern}{limit}"
                yield Reason("needs", text, wanted.stream, until)

    def ends(self) -> Iterator[Reason]:
        yield Reason("holds", "the row is there")
        if has_not(self.pattern):
            try:
                events = Outlook(self.tree, self.pattern).end(self.row)
            except UndecidedError:
                return
            for event in events or ():
                yield replace(self._event(event, "it stays until "), kind="ends")

    def _event(self, event: Event, before: str = "") -> Reason:
        if isinstance(event, Arrival):
            can = "brings" if before else "can still bring"
            text = f"{before}{event.stream} {can} {written(event.tree)}"
        else:
            can = "deletes" if before else "can still delete"
            text = f"{before}{event.stream} {can} {self.tree.path(event.node)}"
        return Reason("needs", text, event.stream)

    def _shown(self, time: int) -> Shown:
        return shown(time, self.times)

    # A row that can never come

    def obstacles(self) -> Iterator[Reason]:
        found = [
            *self._deadline(), *self._keys(), *self._limits(), *self._types(), *self._absences()
        ]  # fmt: skip
        if not found:
            streams = ", ".join(sorted(self.tree.calls()))
            text = f"no open stream can bring it (open: {streams})" if streams else (
                "no stream is open, and the row is not there"
            )  # fmt: skip
            found = [Reason("streams", text)]
        yield from found

    def _is_possible(self, tree: Tree, pattern: Pattern | None = None) -> bool:
        """Whether the row would be possible, or there, in another document or query."""
        try:
            return self.status(tree, pattern or self.pattern) is not Truth.NEVER
        except UndecidedError:
            return False

    def _changed(self, **values: Any) -> Tree:
        """A copy of the document with other facts, another clock, ..."""
        tree = self.tree.copied()
        for name, value in values.items():
            setattr(tree, name, value)
        return tree

    def _deadline(self) -> Iterator[Reason]:
        start = min(self.tree.time(node) for node in self.tree.subtree(DOCUMENT_NODE))
        early = self._changed(clock=min(start, self.tree.clock))
        if early.clock == self.tree.clock or not self._is_possible(early):
            return
        ways = Outlook(early, self.pattern).ways(self.row)
        deadlines = [int(one.deadline) for one in ways if one.deadline is not None]
        known = [each for each in deadlines if each < self.tree.clock]
        until = self._shown(max(known)) if known else None
        moment = "" if until is None else f" at {plain(until)}"
        yield Reason("deadline", f"its deadline passed{moment}", deadline=until)

    def _keys(self) -> Iterator[Reason]:
        keys = self.tree.facts
        alone = [
            key
            for key in keys
            if self._is_possible(self._changed(facts=tuple(k for k in keys if k != key)))
        ]
        if not alone and len(keys) > 1:
            every = self._changed(facts=())
            alone = list(keys) if self._is_possible(every) else []
        for key in alone:
            yield Reason("key", f"the value of `{key}` is used up")

    def _limits(self) -> Iterator[Reason]:
        limited = [
            stream for stream, node in self.tree.calls().items()
            if self.tree.call(node).most is not None
        ]  # fmt: skip
        if limited and self._is_possible(self._changed(brought={})):
            for stream in limited:
                most = self.tree.call(self.tree.calls()[stream]).most
                text = f"{stream} may bring at most {most} trees, and has brought too many"
                yield Reason("limit", text, stream)

    def _types(self) -> Iterator[Reason]:
        if self.tree.types is not None and self._is_possible(self._changed(types=None)):
            yield Reason("types", "no valid messages can bring it")

    def _absences(self) -> Iterator[Reason]:
        whole = normalise(self.pattern)
        nots = list(_nots(whole.branches))
        alone = [
            each for each in nots
            if self._is_possible(self.tree, _without(whole, [each]))
        ]  # fmt: skip
        if not alone and len(nots) > 1 and self._is_possible(self.tree, _without(whole, nots)):
            alone = nots
        for each in alone:
            inner = ", ".join(str(branch) for branch in each.branches)
            yield Reason("absence", f"{inner} must be absent, and is there for good")


def _nots(branches: Iterable[Branch]) -> Iterator[Not]:
    """The `not`s that no other one contains, outside `or`."""
    for branch in branches:
        if isinstance(branch, Not):
            yield branch
        elif isinstance(branch, PatternNode):
            yield from _nots(branch.branches)


def _without(pattern: Pattern, nots: list[Not]) -> Pattern:
    return replace(pattern, branches=_kept(pattern.branches, nots))


def _kept(branches: tuple[Branch, ...], nots: list[Not]) -> tuple[Branch, ...]:
    return tuple(
        replace(b, branches=_kept(b.branches, nots)) if isinstance(b, PatternNode) else b
        for b in branches
        if not any(b is each for each in nots)
    )


def written(tree: FutureTree) -> str:
    """A future tree as XML."""
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in tree.attributes)
    inside = "".join(
        escape(child) if isinstance(child, str) else written(child) for child in tree.children
    )
    end = f">{inside}</{tree.label}>" if inside else "/>"
    return f"<{tree.label}{attributes}{end}"
