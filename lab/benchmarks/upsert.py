"""The latest position of each vehicle, by a stream that replaces: flat in the number of messages.

Two documents get the same further messages: one is empty, the other has already had `before`
messages. Views show the position of every vehicle and join it with the vehicles' names. Three ways
to keep them are measured: as rows only (`keep="needed"`), with the messages set aside, and as
nodes, for a view that shows contents. Work is counted as well, because it does not depend on the
load of the machine: sites that processed deltas, and nodes evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.options import Keep, Options
from lab.benchmarks.measuring import Result, Side, interleave

_STREAMS: dict[str, dict[str, str]] = {"positions": {"replace": "@vehicle"}, "vehicles": {}}
_VIEWS = {
    "latest": "match //positions/p[@vehicle = $v][@lat = $a][@lon = $o] return $v, $a, $o",
    "named": "match /document[vehicles/c[@id = $v]/name/$n]/positions/p[@vehicle = $v]"
    "[@lat = $a] return $n, $a",
}
_CONTENTS = {"whole": "match //positions/p#p[@vehicle = $v] return $v, p.cont"}
CHUNK = 500


def upsert(
    before: int = 100_000, count: int = 2000, vehicles: int = 1000, rounds: int = 3
) -> Result:
    """Compare a document that has had `before` messages with an empty one."""
    result = Result("upsert", "latest per key by replacement, against the messages before")
    result.sizes = {"before": before, "messages": count, "vehicles": vehicles}
    _measure(result, "rows only", "needed", _VIEWS, rounds)
    _measure(result, "messages kept", "all", _VIEWS, rounds)
    _measure(result, "as nodes", "all", _CONTENTS, rounds)
    return result


def positions(count: int, vehicles: int, seed: int = 1) -> list[str]:
    """Messages with the position of one vehicle each."""
    random = Random(seed)
    return [
        f'<p vehicle="v{random.randrange(vehicles)}" lat="{random.random():.6f}"'
        f' lon="{random.random():.6f}"/>'
        for _ in range(count)
    ]


def made(keep: Keep, views: dict[str, str], vehicles: int) -> Document:
    """A document that knows the names of all vehicles, and one position of each."""
    doc = Document(streams=_STREAMS, views=views, options=Options(keep=keep))
    for number in range(vehicles):
        doc.feed("vehicles", f'<c id="v{number}"><name>n{number}</name></c>')
        doc.feed("positions", f'<p vehicle="v{number}" lat="0" lon="0"/>')
    return doc


def work_of(doc: Document, messages: Sequence[str]) -> tuple[int, int]:
    """The sites that processed deltas and the nodes evaluated while messages are fed."""
    engine = maintained(doc).engine
    climbed, visited = engine.climbed, engine.visited
    for message in messages:
        doc.feed("positions", message)
    return engine.climbed - climbed, engine.visited - visited


def _measure(result: Result, what: str, keep: Keep, views: dict[str, str], rounds: int) -> None:
    before, count = int(result.sizes["before"]), int(result.sizes["messages"])
    vehicles = int(result.sizes["vehicles"])
    earlier, sent = positions(before, vehicles, 2), positions(count, vehicles)
    late = made(keep, views, vehicles)
    for message in earlier:
        late.feed("positions", message)

    def feeding(make: Callable[[], Document]) -> Callable[[], Side[str]]:
        def side() -> Side[str]:
            doc = make()

            def work(chunk: Sequence[str]) -> None:
                for message in chunk:
                    doc.feed("positions", message)

            return work

        return side

    first, after = "first messages", f"after {before:,}"
    sides = {after: feeding(lambda: late), first: feeding(lambda: made(keep, views, vehicles))}
    costs = interleave(sides, sent, min(CHUNK, max(1, count // 2)), rounds)
    result.compare(what, costs, after, first, "1.2 or less")
    for name, doc in ((after, late), (first, made(keep, views, vehicles))):
        climbed, visited = work_of(doc, sent)
        result.figures[f"{what}: {name}, sites for a message"] = climbed / count
        result.figures[f"{what}: {name}, nodes for a message"] = visited / count
