"""Writes the first part of the function of a stream: which messages it leaves to the document.

The function returns None for such a message, and has changed nothing: its form is unusual, a limit
may be exceeded, its time is not a usual number, or views or calls have changed.
"""

from __future__ import annotations

from axlog.match.matcher_generator import RowWriter
from axlog.match.message_limits import without_declaration
from axlog.match.message_values import may_have_markup
from axlog.match.stream_plan import ODD_START, SHORTEST, MessagePlan, may_need_tree

_LATEST = 1 << 63
_PRODUCT = 1 << 51  # see `document/times.py`


class CheckWriter(RowWriter):
    """Writes the checks of a message's bytes and time."""

    def check_bytes(self, plan: MessagePlan) -> None:
        """Decline what the plan declines (`MessagePlan.declines`)."""
        self.constants |= {
            "ODD": ODD_START, "may_need_tree": may_need_tree, "admits": plan.bounds.admits,
            "without_declaration": without_declaration, "may_have_markup": may_have_markup,
        }  # fmt: skip
        self.open("if type(m) is not bytes:")
        self.open("if type(m) is not str:")
        self.line("return None")
        self.close()
        self.open("try:")
        self.line("m = m.encode()")
        self.close()
        self.open("except UnicodeEncodeError:")
        self.line("return None")
        self.close(2)
        safe = plan.bounds.safe
        conditions = [
            f"not {SHORTEST - 1} < size <= {safe} and (size < {SHORTEST} or not admits(m))",
            f"m[0] != {ord('<')}",
            "m[1] in ODD",
            "m.find(b'=') > 0 and m.find(b'xml') > 0 and may_need_tree(m)",
        ]
        if plan.sees_markup:
            conditions.append("may_have_markup(m)")
        declined = f"if {' or '.join(conditions)}:"
        self.line("size = len(m)")
        self.open(declined)
        self.line("m = without_declaration(m)")
        self.line("size = len(m)")
        self.open(declined)
        self.line("return None")
        self.close(2)

    def check_time(self) -> None:
        """The time in microseconds, if it is a usual number and not before the clock."""
        self.open("if own.version != engine.version or stream not in tree.calls_by_stream:")
        self.line("return None  # views or calls changed")
        self.close()
        self.open("if t is None:")
        self.open("if type(at) is float:")
        self.line("t = at * 1000000")
        self.open(f"if not {-_PRODUCT} < t < {_PRODUCT}:")
        self.line("return None")
        self.close()
        self.line("exact = t")
        self.line("t = round(t)")
        self.open("if not -0.25 <= exact - t <= 0.25:")
        self.line("return None")
        self.close(2)
        self.open("elif at is None:")
        self.line("t = tree.clock")
        self.close()
        self.open("elif type(at) is int:")
        self.line("t = at * 1000000")
        self.close()
        self.open("else:")
        self.line("return None")
        self.close(2)
        self.open(f"if not tree.clock <= t < {_LATEST}:")
        self.line("return None")
        self.close()
