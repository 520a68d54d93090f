"""The engine of a run, and the reason for it: what the caller or the file says, or (`auto`) Spark
where it is installed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from axlog.extras import PARTS, is_installed

Engine = Literal["auto", "spark", "embedded"]


class Chosen(NamedTuple):
    """An engine, and why it was chosen."""

    engine: Literal["spark", "embedded"]
    reason: str

    def plain(self) -> dict[str, str]:
        """Return the choice for JSON."""
        return {"engine": self.engine, "reason": self.reason}

    def __str__(self) -> str:
        return f"engine {self.engine}: {self.reason}"


def choose(written: Engine, asked: str | None = None, embedded_for: str | None = None) -> Chosen:
    """Return the engine: as asked for by the caller, otherwise as written in the file.

    `embedded_for`: the part of the file that only the embedded engine runs.

    >>> str(choose("auto", "embedded"))
    'engine embedded: chosen by --engine'
    """
    if asked in ("spark", "embedded"):
        engine: Literal["spark", "embedded"] = "spark" if asked == "spark" else "embedded"
        return Chosen(engine, "chosen by --engine")
    if asked is None and written != "auto":
        return Chosen(written, "named in the pipeline file")
    if embedded_for is not None:
        return Chosen("embedded", f"Spark does not run {embedded_for}")
    missing = [module for module in PARTS["spark"] if not is_installed(module)]
    if missing:
        return Chosen("embedded", "in this process; Spark is not installed"
                      " (pip install 'axlog[spark]' adds it)")  # fmt: skip
    return Chosen("spark", "Spark is installed (`engine: embedded` runs in this process)")
