"""The attributes of a call in a document: declarations about its stream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from axlog.document.clock_bounds import read_ahead
from axlog.document.message_key import KeyPath
from axlog.errors import InputError


@dataclass(frozen=True, slots=True)
class Call:
    """The declarations of a call about its stream."""

    stream: str
    mode: str = "stream"  # or one-shot
    most: int | None = None
    service: str | None = None
    deletes: str = "no"  # or yes, only
    late: str = "refuse"  # or clock
    ahead: int | None = None  # microseconds past the receiver's clock; None: a day for dates
    calls: int = 0  # the number of new calls its messages may insert
    replace: KeyPath | None = None  # the key of its messages, if they replace earlier ones
    attributes: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, attributes: Sequence[tuple[str, str]]) -> Call:
        """The call with these attributes; raises AX105 for unknown names and bad values."""
        given = dict(attributes)
        allowed = {
            "mode": ("stream", "one-shot"),
            "deletes": ("no", "yes", "only"),
            "late": ("refuse", "clock"),
        }
        unknown = set(given) - {
            "stream", "most", "service", "ahead", "calls", "replace", *allowed
        }  # fmt: skip
        if unknown or not given.get("stream"):
            what = f"has an unknown attribute {min(unknown)}" if unknown else "names no stream"
            raise InputError("AX105", f"a call {what}", expected='<ax:call stream="NAME"/>')
        for name, values in allowed.items():
            if given.get(name, values[0]) not in values:
                raise InputError(
                    "AX105",
                    f"the call of {given['stream']!r} has {name}={given[name]!r}",
                    expected=" or ".join(values),
                )
        most = given.get("most")
        if most is not None and not re.fullmatch("[0-9]{1,18}", most):
            raise InputError("AX105", f"the call has most={most!r}", expected="a whole number")
        ahead = given.get("ahead")
        if ahead is not None and read_ahead(ahead) is None:
            raise InputError(
                "AX105", f"the call has ahead={ahead!r}", expected="a duration such as 2h, or none"
            )
        calls = _read_calls(given.get("calls", "no"))
        replace = given.get("replace")
        if replace is not None and (calls or given.get("deletes") == "only"):
            other = "calls" if calls else 'deletes="only"'
            raise InputError(
                "AX105",
                f"the call of {given['stream']!r} has both replace and {other}",
                expected="one of the two",
            )
        return cls(
            stream=given["stream"],
            mode=given.get("mode", "stream"),
            most=None if most is None else int(most),
            service=given.get("service"),
            deletes=given.get("deletes", "no"),
            late=given.get("late", "refuse"),
            ahead=None if ahead is None else read_ahead(ahead),
            calls=calls,
            replace=None if replace is None else KeyPath.parse(replace),
            attributes=tuple(attributes),
        )


CALLS = 1000
"""New calls that the messages of a stream with `calls="yes"` may insert."""


def _read_calls(written: str) -> int:
    if written in ("no", "yes"):
        return CALLS if written == "yes" else 0
    if not re.fullmatch("[0-9]{1,9}", written):
        raise InputError(
            "AX105", f"the call has calls={written!r}", expected="yes, no, or a number"
        )
    return int(written)
