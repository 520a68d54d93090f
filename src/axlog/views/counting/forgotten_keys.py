"""Key values that a join of two has not kept, and the questions that they make undecided.

A value rules out the rows of the other part that have it. Rows that wait when it arrives are
dropped then; a row that arrives after it waits as if it had not been, until its deadline. So a
waiting row proves that its value has not arrived only if no forgotten value can be its own:

    both parts have the key, and the partner with the value waited when it arrived
    the rows with the key refer by it to rows that arrive before them (`future/references.py`)

Other questions about waiting rows are refused. `never` changes do not depend on this.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from axlog.errors import UpdateError
from axlog.evaluate.joins import Value
from axlog.future.garbage import Pair


class ForgottenKeys:
    """Whether the parts of a join had key values that are not kept."""

    def __init__(
        self, pair: Pair, seen: Sequence[Collection[str]], is_kept: Sequence[bool]
    ) -> None:
        """`seen`: the values that have arrived before. `is_kept`: whether those of a part are."""
        self.is_some = any(seen)
        self.may_rule_out = [bool(each) for each in seen]
        """Whether those of a part may be values of rows of the other that wait or still arrive."""
        self._decides = [
            is_kept[part] or side.key is None or side.is_referring
            for part, side in enumerate(pair.sides)
        ]

    def lack_earlier(self) -> None:
        """Note that values may have arrived that are not known."""
        self.is_some, self.may_rule_out[:] = True, (True, True)

    def add(self, other: ForgottenKeys) -> None:
        """Note what another join of the same parts has forgotten."""
        self.is_some |= other.is_some
        pairs = zip(self.may_rule_out, other.may_rule_out, strict=True)
        self.may_rule_out[:] = [mine or its for mine, its in pairs]

    def is_unsure(self, part: int) -> bool:
        """Whether forgotten values may have ruled out waiting rows of a part."""
        return self.may_rule_out[1 - part] and not self._decides[1 - part]

    def refuse_unsure(self, *parts: int) -> None:
        """Refuse a question that depends on the waiting rows of parts, if these are unsure."""
        if any(map(self.is_unsure, parts)):
            raise _refusal("key values that may have arrived before rows that wait")

    def refusal(self, value: Value) -> UpdateError:
        """The refusal of a question that depends on whether a value has arrived."""
        return _refusal(
            f"whether {value!r} has arrived: both parts had it, or it waits for nothing"
        )


def _refusal(what: str) -> UpdateError:
    return UpdateError(
        "AX307",
        f"the join has forgotten {what}",
        advice='use Options(keep="all") or Options(never="all"), or declare the reference if rows'
        " refer by the key to rows that arrive before them",
    )


def forget_older(recent: dict[Value, int], clock: int) -> None:
    """Drop the key values of earlier times."""
    for value in [value for value, at in recent.items() if at != clock]:
        del recent[value]
