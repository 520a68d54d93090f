"""Where the state of a document lives: on the executors or on the driver, and why.

On the executors each bucket's engine runs inside Spark's stateful operator. A cluster needs this;
it costs every batch a shuffle, the state store and more Python processes. On the driver all engines
run in one existing process (`driver_buckets.py`). This is faster on a machine with few cores,
by far with small batches.

By default the state is on the driver where that costs nothing: on a local master with few cores, or
if no view can be partitioned. Features that the driver lacks use the executors, and the plan says
so.
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.connect.locations import is_address
from axlog.errors import PipelineError
from axlog.runtime.definition import Definition
from axlog.runtime.plan import Lives, make_plan

AUTO, DRIVER, EXECUTORS = "auto", "driver", "executors"
FEW = 4
"""Up to this many cores, one process for all engines is not the bottleneck."""


@dataclass(frozen=True)
class Asked:
    """The inputs of the decision."""

    state: str = AUTO
    master: str = "local[2]"
    place: str = ""
    cores: int = 2
    buckets: int | None = None
    clock: str = "messages"
    documents: str | None = None


def placed(asked: Asked, definition: Definition, known: str | None = None) -> Lives:
    """Return where the state lives; `known`: the place of a resumed checkpoint."""
    if asked.state not in (AUTO, DRIVER, EXECUTORS):
        raise PipelineError(
            "AX855", f"state={asked.state!r}", expected=f"{AUTO}, {DRIVER} or {EXECUTORS}"
        )
    if asked.state == EXECUTORS:
        return Lives(EXECUTORS, "as configured")
    refusal = _why_not(asked)
    if refusal is not None:
        return Lives(EXECUTORS, refusal)
    if asked.state == DRIVER:
        return Lives(DRIVER, "as configured")
    if known is not None:
        return Lives(known, "as the checkpoint has it")
    return _chosen(asked, definition)


def _why_not(asked: Asked) -> str | None:
    """Return why state cannot be on the driver, if so."""
    if asked.clock == "wall":
        return "deadlines pass by the wall clock, and only Spark's timers fire without a message"
    if is_address(asked.place):
        return "the checkpoint is not a local path"
    return None


def _chosen(asked: Asked, definition: Definition) -> Lives:
    if not is_local(asked.master):
        return Lives(EXECUTORS, "on a cluster")
    if asked.documents is not None:
        return Lives(EXECUTORS, "there may be more documents than one process can hold")
    if asked.buckets is not None:
        return Lives(EXECUTORS, f"{asked.buckets} buckets are configured")
    if asked.cores <= FEW:
        return Lives(DRIVER, f"on one machine of up to {FEW} cores")
    if all(unit.buckets == 1 for unit in make_plan(definition).units):
        return Lives(DRIVER, "on one machine, and no view can be partitioned")
    return Lives(EXECUTORS, f"views are partitioned over {asked.cores} cores")


def is_local(master: str) -> bool:
    """Whether all of Spark is in one process and its workers."""
    return master.startswith("local") and not master.startswith("local-cluster")
