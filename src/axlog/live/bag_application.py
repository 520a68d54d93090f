"""Apply the bags of messages that were read elsewhere (on Spark: by a task before the shuffle).

Most streams have a generated function for it, the second half of that for messages
(`feed_writer.py`). The others take the general path.

Law: the effect is that of the messages themselves, except that they are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from axlog.document.operations import checked_time
from axlog.live.feed_writer import Apply, generate_apply
from axlog.live.update_changes import ViewChanges, together

if TYPE_CHECKING:
    from axlog.live.collector import Collector
    from axlog.live.maintained import MaintainedTree
    from axlog.live.short_way import Read, ShortWay
    from axlog.live.stream_engine import StreamEngine
    from axlog.views.change import Change


def apply_bags(
    engine: StreamEngine, document: MaintainedTree, collector: Collector, found: Iterable[Read]
) -> list[Change]:
    """Apply bags in order of time; call the subscribers at the end, and return the changes."""
    tree = document.tree
    emitted: ViewChanges = []
    count = 0
    with document.lock:
        ways: dict[str, tuple[ShortWay, Apply | None]] = {}
        try:
            for stream, bags, time, *keys in found:
                known = ways.get(stream)
                if known is None:
                    way = engine.way_of_plan(stream)
                    known = ways[stream] = way, _function_of(engine, document, collector, way)
                way, apply = known
                if time < tree.clock:
                    checked_time(tree, time)  # raises
                if apply is not None:
                    emitted += apply(bags, time)
                    count += 1
                    continue
                passed = document.pass_time(time)
                tree.clock = time
                way.status.messages += 1
                way.status.microseconds = time
                document.current.origin = stream, way.status.messages
                if keys and keys[0] is not None:
                    assert way.delivered is not None
                    bags = way.delivered.replacement(keys[0], bags).enter()
                each = together(passed, way.route.carry(bags, time))
                if collector.is_busy or collector.is_many or collector.is_overdue(time):
                    each = collector.after(each, time)
                emitted += document.families.distributed(each) if document.families else each
                count += 1
        finally:
            document.forgotten += count
            document.engine.climbed += count
            changes = document.announce(emitted) if emitted else []
    return changes


def _function_of(
    engine: StreamEngine, document: MaintainedTree, collector: Collector, way: ShortWay
) -> Apply | None:
    """The generated function of a stream, if it has one; changes of families are distributed."""
    if document.families:
        return None
    if not way.has_apply:
        way.apply = generate_apply(engine, document, collector, way, way.route)
        way.has_apply = True
    return way.apply
