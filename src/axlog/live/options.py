"""`Options`: how a document is kept. One frozen value, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.document.times import Time, Times, checked_times
from axlog.errors import QueryError

if TYPE_CHECKING:
    from axlog.document.schema import OnViolation


OnError: TypeAlias = Literal["raise", "dead-letter"]
Keep: TypeAlias = Literal["all", "needed"]
Validate: TypeAlias = Literal["all", "wanted"]
Collect: TypeAlias = Literal["state", "auto", "off"]
Cache: TypeAlias = Literal["memory", "disk"]
Never: TypeAlias = Literal["kept", "all", "joins", "off"]
Share: TypeAlias = Literal["auto", "always", "off"]
Tune: TypeAlias = Literal["off", "auto"] | Mapping[str, float]

CACHE = 64 << 20
"""Default of `Options.memory`, in bytes."""


@dataclass(frozen=True, slots=True)
class Policy:
    """When to tune: after a number of messages, after some seconds, when a stream ends."""

    messages: int | None = None
    seconds: float | None = None
    on_end: bool = False
    exact: bool = False

    @classmethod
    def of(cls, given: Tune) -> Policy | None:
        """Return the policy of `Options.tune`. None: tune only when `tune()` is called."""
        if isinstance(given, str):
            if given not in ("off", "auto"):
                raise _wrong_tune(given)
            return cls(10_000, 60.0, True) if given == "auto" else None
        often = {name: each for name, each in given.items() if name != "exact"}
        exact = given.get("exact", False)
        if set(often) - {"messages", "seconds"} or not given or type(exact) is not bool:
            raise _wrong_tune(given)
        if any(type(n) not in (int, float) or n <= 0 for n in often.values()):
            raise _wrong_tune(given)
        if not often:
            return cls(10_000, 60.0, True, exact)
        messages, seconds = often.get("messages"), often.get("seconds")
        return cls(None if messages is None else int(messages), seconds, True, exact)


def _wrong_tune(given: object) -> QueryError:
    return QueryError(
        "AX211",
        f"tune={given!r}",
        expected='"off", "auto", or {"messages": N, "seconds": S, "exact": True} with one of'
        " them or more",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a document is kept. A value that is not allowed raises `QueryError` AX211.

    Parameters:
        on_error: `raise` an error for a message that is rejected, or keep the message in
            `Document.dead_letters` and go on.
        keep: Keep `all` messages in the document, or drop a message once the views have extracted
            what is `needed`. A document that drops messages has no text, `why` or new views.
        validate: Parse and check `all` messages, or only those that may be `wanted`: a message is
            skipped if its bytes show that no view can use it.
        collect: Drop rows of the joins' `state` that can no longer find a partner; with `auto` drop
            finished streams and nodes of the document too; `off` drops nothing.
        cache: Keep the rows that joins look up in `memory` or on `disk`.
        memory: Bytes of these rows that stay in memory with `cache="disk"`.
        cache_path: Directory of the cache on disk; None: a temporary directory.
        tune: When to compute again which messages of streams can still matter: `off`, `auto`, or
            after `{"messages": N, "seconds": S}`; with `"exact": True` by the exact definition,
            where the document is whole and small. `Document.tune` does so on request.
        never: Views that emit `never` changes: `kept`, where the possible rows are maintained as
            data arrives; `all`, also where they must be computed anew; `joins`, only where one join
            of streams makes all rows, by its state; `off`, none.
        times: Return times as `seconds` or as `dates`.
        at: Time at which the document starts; None: 0, or the first date.
        limits: Sizes that queries, messages and views must not exceed.
        keep_whitespace: Keep text nodes that are only whitespace.
        namespaces: Prefixes that queries, statements and facts may use, with their namespace names.
        on_violation: What to do with an update that breaks the document's types: `refuse` it, or
            apply it and `report` it (`Document.violations`). A function is asked: it gets the
            error, and True applies the update. Once such an update was applied, truth and the other
            analyses no longer use the types.
        retain_changes: Changes that each view retains, the newest, for subscribers that resume from
            a position.
        share: Let views that differ in constants share one plan, from eight of them on. The plan
            keeps the rows of all values that stand in place of the constants. `auto`: with
            `keep="all"`; `always`: also with `keep="needed"`; `off`: never.

    >>> import axlog
    >>> doc = axlog.parse("<orders/>", options=axlog.Options(times="dates"))
    >>> doc.clock
    datetime.datetime(1, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """

    on_error: OnError = "raise"
    keep: Keep = "all"
    validate: Validate = "all"
    collect: Collect = "state"
    cache: Cache = "memory"
    memory: int = CACHE
    cache_path: str | Path | None = None
    tune: Tune = "off"
    never: Never = "kept"
    times: Times = "seconds"
    at: Time | None = None
    limits: Limits = DEFAULT_LIMITS
    keep_whitespace: bool = False
    namespaces: Mapping[str, str] | None = field(default=None, hash=False)
    on_violation: OnViolation = "refuse"
    retain_changes: int = 0
    share: Share = "auto"

    def __post_init__(self) -> None:
        _check("on_error", self.on_error, OnError)
        _check("keep", self.keep, Keep)
        _check("validate", self.validate, Validate)
        _check("cache", self.cache, Cache)
        _check("collect", self.collect, Collect)
        _check("never", self.never, Never)
        _check("share", self.share, Share)
        if self.on_violation not in ("refuse", "report") and not callable(self.on_violation):
            raise QueryError(
                "AX211", f"on_violation={self.on_violation!r}",
                expected="refuse, report, or a function",
            )  # fmt: skip
        checked_times(self.times)
        Policy.of(self.tune)
        if type(self.memory) is not int or self.memory < 0:
            raise QueryError("AX211", f"memory={self.memory!r}", expected="a number of bytes")
        if type(self.retain_changes) is not int or self.retain_changes < 0:
            raise QueryError(
                "AX211", f"retain_changes={self.retain_changes!r}", expected="a number of changes"
            )
        if not isinstance(self.limits, Limits):
            raise QueryError("AX211", f"limits={self.limits!r}", expected="axlog.Limits(...)")


def _check(name: str, value: object, allowed: object) -> None:
    values = get_args(allowed)
    if value not in values:
        raise QueryError("AX211", f"{name}={value!r}", expected=" or ".join(values))


DEFAULT_OPTIONS = Options()
