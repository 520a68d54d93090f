"""Why a row does not hold, and what can still bring it or end it.

POSSIBLE: what streams must deliver, and until when. NEVER: the facts that rule the row out, found
by asking again without each of them: the clock, a key, a reference, the number of trees of a
stream, types, what must be absent, and the condition on a group. If the row is NEVER without any of
them, no open stream can bring it. TRUE: what can end it, or that nothing can.

A reason is given only if it alone makes the difference. If only several together do, all of
them are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol
from xml.sax.saxutils import escape, quoteattr

from axlog.document.times import Shown, Times, plain, shown
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import UndecidedError
from axlog.future.deletions import loses_by
from axlog.future.finality import may_return
from axlog.future.grounding import has_not
from axlog.future.group_outlook import GroupOutlook
from axlog.future.profile_trees import FutureTree
from axlog.future.profiles import Arrival, Event
from axlog.future.truth import Outlook, Possible
from axlog.query.normalize import normalise
from axlog.query.pattern import Branch, Not, Pattern, PatternNode
from axlog.query.row_key import RowKey
from axlog.query.truth import Truth

FINAL = "nothing that may still come ends it"
ReasonKind = Literal[
    "holds", "needs", "ends", "deadline", "key", "reference", "limit", "types", "absence",
    "condition", "streams", "wire",
]  # fmt: skip


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
    return _PatternQuestion(tree, pattern, row, times).answer()


def why_no_group(tree: Tree, key: RowKey, row: Mapping[str, Any], times: Times) -> WhyNot:
    """The same for a row of a view with steps: aggregates, conditions, computed values."""
    return _GroupQuestion(tree, key.pattern, row, times, key).answer()


class _Outlook(Protocol):
    """What both kinds of outlook answer."""

    def status(self, row: Mapping[str, Any]) -> Truth: ...

    def ways(self, row: Mapping[str, Any]) -> list[Possible]: ...


@dataclass(frozen=True, slots=True)
class _Question:
    tree: Tree
    pattern: Pattern
    row: Mapping[str, Any]
    times: Times

    def answer(self) -> WhyNot:
        outlook = self.outlook(self.tree, self.pattern)
        truth = outlook.status(self.row)
        if truth is Truth.NEVER:
            reasons = self.obstacles()
        else:
            reasons = self.ends() if truth is Truth.TRUE else self.needs(outlook)
        return WhyNot(truth, tuple(dict.fromkeys(reasons)))

    def outlook(self, tree: Tree, pattern: Pattern) -> _Outlook:
        raise NotImplementedError

    # A row that is possible or there

    def needs(self, outlook: Any) -> Iterator[Reason]:
        for one in outlook.ways(self.row):
            for wanted in one.needs:
                until = None if one.deadline is None else self._shown(int(one.deadline))
                limit = "" if until is None else f" until {plain(until)}"
                text = f"{wanted.stream} can still bring {wanted.pattern}{limit}"
                yield Reason("needs", text, wanted.stream, until)

    def ends(self) -> Iterator[Reason]:
        yield Reason("holds", "the row is there")

    def _shown(self, time: int) -> Shown:
        return shown(time, self.times)

    # A row that can never come

    def obstacles(self) -> Iterator[Reason]:
        found = [
            *self._deadline(), *self._keys(), *self._references(), *self._limits(),
            *self._types(), *self._absences(), *self._wires(),
        ]  # fmt: skip
        if not found and self.tree.calls():
            found = list(self._conditions())
        yield from found or [Reason("streams", self._streams())]

    def _streams(self) -> str:
        streams, ended = sorted(self.tree.calls()), sorted(self.tree.ended)
        said = (
            f"{', '.join(ended)} {'have' if len(ended) > 1 else 'has'} ended, and " if ended else ""
        )
        if streams:
            return f"{said}no open stream can bring it (open: {', '.join(streams)})"
        return (
            f"{said}no stream is open" if ended else "no stream is open, and the row is not there"
        )

    def _is_possible(self, tree: Tree, pattern: Pattern | None = None) -> bool:
        """Whether the row would be possible, or there, in another document or query."""
        try:
            outlook = self.outlook(tree, pattern or self.pattern)
            return outlook.status(self.row) is not Truth.NEVER
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
        ways = self.outlook(early, self.pattern).ways(self.row)
        deadlines = [int(one.deadline) for one in ways if one.deadline is not None]
        known = [each for each in deadlines if each < self.tree.clock]
        until = self._shown(max(known)) if known else None
        moment = "" if until is None else f" at {plain(until)}"
        yield Reason("deadline", f"its deadline passed{moment}", deadline=until)

    def _keys(self) -> Iterator[Reason]:
        for key in self._decisive("facts"):
            yield Reason("key", f"`{key}`: the value has come, and comes only once")

    def _references(self) -> Iterator[Reason]:
        for each in self._decisive("references"):
            yield Reason("reference", f"`{each}`: what it refers to can no longer come")

    def _decisive(self, name: str) -> list[Any]:
        """The declared facts without which the row would be possible; all, if together."""
        every = getattr(self.tree, name)
        alone = [
            fact
            for fact in every
            if self._is_possible(self._changed(**{name: tuple(f for f in every if f != fact)}))
        ]
        if not alone and len(every) > 1 and self._is_possible(self._changed(**{name: ()})):
            return list(every)
        return alone

    def _limits(self) -> Iterator[Reason]:
        limited = [
            stream for stream, node in self.tree.calls().items()
            if self.tree.call(node).most is not None
        ]  # fmt: skip
        if limited and self._is_possible(self._changed(brought={})):
            for stream in limited:
                most = self.tree.call(self.tree.calls()[stream]).most
                brought = self.tree.brought.get(stream, 0)
                text = f"{stream} may bring at most {most} trees, and has brought {brought}"
                yield Reason("limit", text, stream)

    def _types(self) -> Iterator[Reason]:
        if self.tree.types is not None and self._is_possible(self._changed(types=None)):
            yield Reason("types", "no valid messages can bring it")

    def _wires(self) -> Iterator[Reason]:
        """The views that feed streams, if they do not bring what other sources could."""
        every = self.tree.deliveries
        if not every or not self._is_possible(self._changed(deliveries={})):
            return
        alone = [
            stream
            for stream in every
            if self._is_possible(
                self._changed(deliveries={s: d for s, d in every.items() if s != stream})
            )
        ]
        for stream in alone or every:
            origin, trees = every[stream].origin, every[stream].trees
            why = "and none of them fits" if trees else "which cannot get any"
            text = f"the stream {stream!r} brings only rows of the view {origin}, {why}"
            yield Reason("wire", text, stream)

    def _absences(self) -> Iterator[Reason]:
        whole = normalise(self.pattern)
        nots = list(outer_nots(whole))
        alone = [
            each for each in nots
            if self._is_possible(self.tree, _without(whole, [each]))
        ]  # fmt: skip
        if not alone and len(nots) > 1 and self._is_possible(self.tree, _without(whole, nots)):
            alone = nots
        for each in alone:
            inner = ", ".join(str(branch) for branch in each.branches)
            yield Reason("absence", f"{inner} must be absent, and is there for good")

    def _conditions(self) -> Iterator[Reason]:
        return iter(())


@dataclass(frozen=True, slots=True)
class _PatternQuestion(_Question):
    """A row of a pattern."""

    def outlook(self, tree: Tree, pattern: Pattern) -> Outlook:
        return Outlook(tree, pattern, row=self.row)

    def needs(self, outlook: Any) -> Iterator[Reason]:
        if not has_not(self.pattern):
            yield from _Question.needs(self, outlook)
            return
        events = outlook.future(self.row)
        yield from map(self._event, events or ())

    def ends(self) -> Iterator[Reason]:
        yield from _Question.ends(self)
        if not has_not(self.pattern):
            yield from self._losses()
            return
        try:
            events = self.outlook(self.tree, self.pattern).end(self.row)
        except UndecidedError:
            return
        if events is None:
            yield Reason("ends", FINAL)
        for event in events or ():
            yield replace(self._event(event, "it stays until "), kind="ends")

    def _losses(self) -> Iterator[Reason]:
        """What can end a row of a pattern without `not`."""
        calls = self.tree.calls()
        if any(map(self.tree.may_bring_calls, calls)):
            return  # they may delete
        replacing = [s for s, node in calls.items() if self.tree.call(node).replace is not None]
        for stream in replacing:
            text = f"a later message of {stream} with the same key can end it"
            yield Reason("ends", text, stream)
        deleting = loses_by(self.tree, self.pattern)
        if deleting is not None:
            yield Reason("ends", f"a deletion of {deleting} can end it", deleting)
        elif not replacing and not may_return(self.tree, self.pattern):
            yield Reason("ends", FINAL)

    def _event(self, event: Event, before: str = "") -> Reason:
        if isinstance(event, Arrival):
            can = "brings" if before else "can still bring"
            text = f"{before}{event.stream} {can} {written(event.tree)}"
        else:
            can = "deletes" if before else "can still delete"
            text = f"{before}{event.stream} {can} {self.tree.path(event.node)}"
        return Reason("needs", text, event.stream)


@dataclass(frozen=True, slots=True)
class _GroupQuestion(_Question):
    """A row of a view with steps."""

    key: RowKey

    def outlook(self, tree: Tree, pattern: Pattern) -> GroupOutlook:
        return GroupOutlook(tree, replace(self.key, pattern=pattern))

    def needs(self, outlook: Any) -> Iterator[Reason]:
        found = list(_Question.needs(self, outlook))
        yield from found or [Reason("needs", "a deletion can bring it")]

    def _conditions(self) -> Iterator[Reason]:
        outlook = self.outlook(self.tree, self.pattern)
        try:
            is_possible = outlook.status_without_having(self.row) is not Truth.NEVER
        except UndecidedError:
            return
        if is_possible:
            yield Reason("condition", f"{outlook.condition} can no longer hold")


def outer_nots(pattern: Pattern) -> Iterator[Not]:
    """The `not`s of a pattern that no other one contains, outside `or`."""
    return _nots(pattern.branches)


def _nots(branches: Iterable[Branch]) -> Iterator[Not]:
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
