"""Where the state of a widget lives: with the executors, or on the driver; and why.

With the executors each bucket's engine runs where Spark's stateful operator runs, which a cluster
needs and which costs every batch a shuffle, the state store and further Python processes. On the
driver all engines run in one process that is there anyway (`buckets.DriverBuckets`): on a machine
with few cores that is the faster way, by far where batches are small.

Left to itself the state is on the driver where that costs nothing: a local master with few cores,
or views that cannot be spread. What the driver cannot do is left to the executors, and said.
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.connect.locations import is_address
from axlog.errors import PipelineError
from axlog.runtime.definition import Definition
from axlog.runtime.plan import Lives, make_plan

AUTO, DRIVER, EXECUTORS = "auto", "driver", "executors"
FEW = 4
"""Cores up to which one process for all engines does not hold up the others."""


@dataclass(frozen=True)
class Asked:
    """What decides where state can be."""

    state: str = AUTO
    master: str = "local[2]"
    place: str = ""
    cores: int = 2
    buckets: int | None = None
    clock: str = "messages"
    documents: str | None = None


def placed(asked: Asked, definition: Definition, known: str | None = None) -> Lives:
    """Where the state lives; `known`: where that of a checkpoint is which is taken up."""
    if asked.state not in (AUTO, DRIVER, EXECUTORS):
        raise PipelineError(
            "AX855", f"state={asked.state!r}", expected=f"{AUTO}, {DRIVER} or {EXECUTORS}"
        )
    if asked.state == EXECUTORS:
        return Lives(EXECUTORS, "as asked for")
    refusal = _why_not(asked)
    if refusal is not None:
        return Lives(EXECUTORS, refusal)
    if asked.state == DRIVER:
        return Lives(DRIVER, "as asked for")
    if known is not None:
        return Lives(known, "as the checkpoint has it")
    return _chosen(asked, definition)


def _why_not(asked: Asked) -> str | None:
    """Why state cannot be on the driver."""
    if asked.clock == "wall":
        return "deadlines pass by the wall clock, and only Spark's timers fire without a message"
    if is_address(asked.place):
        return "the checkpoint is no local path"
    return None


def _chosen(asked: Asked, definition: Definition) -> Lives:
    if not is_local(asked.master):
        return Lives(EXECUTORS, "on a cluster")
    if asked.documents is not None:
        return Lives(EXECUTORS, "there may be more documents than one process holds")
    if asked.buckets is not None:
        return Lives(EXECUTORS, f"{asked.buckets} buckets are asked for")
    if asked.cores <= FEW:
        return Lives(DRIVER, f"on one machine of up to {FEW} cores")
    if all(unit.buckets == 1 for unit in make_plan(definition, asked.cores).units):
        return Lives(DRIVER, "on one machine, and no view can be spread")
    return Lives(EXECUTORS, f"views are spread over {asked.cores} cores")


def is_local(master: str) -> bool:
    """Whether all of Spark is in one process and its workers."""
    return master.startswith("local") and not master.startswith("local-cluster")
