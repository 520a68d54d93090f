"""One generated function a stream: from a message's bytes to the changes of the views.

The function is the short path of a stream (`stream_engine.py`) with everything written out that is
known before a message arrives: the checks of its bytes, its time, the parse, the matching
(`match/matcher_generator.py`), the sinks that its rows enter, and the counts of the stream. What
few messages need (answers of views, proofs that time passed, batches) is called. A message with a
known layout (`match/layout_reader.py`) is neither checked nor parsed: one regular expression does
both, and the matcher of its layout is called.

It returns None, and has changed nothing, for a message that it does not handle: one that the plan
declines, with an error, with a time in an unusual form or before the clock, or after views or calls
changed. `StreamEngine.feed` then takes it.

Law: a message has the same effect as by `StreamEngine.feed` alone.
"""

from __future__ import annotations

from collections.abc import Collection
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, cast

from lxml.etree import XMLSyntaxError, fromstring

from axlog.errors import QueryError
from axlog.live.check_writer import CheckWriter
from axlog.live.update_changes import together
from axlog.match.byte_generator import LONGEST, generate_reader
from axlog.match.layout_reader import LayoutReader
from axlog.match.matcher_generator import as_bag, sign_of
from axlog.match.quick_check import form_check, may_differ
from axlog.match.stream_plan import MessagePlan
from axlog.query.compile import Relation
from axlog.query.pattern import Name
from axlog.views.change import Change
from axlog.views.counting.join_prospects import Watch
from axlog.views.counting.routes import Route
from axlog.views.counting.waiting_rows import WaitingRows

if TYPE_CHECKING:
    from axlog.document.parser import Element
    from axlog.evaluate.joins import Bag
    from axlog.live.collector import Collector
    from axlog.live.maintained import MaintainedTree
    from axlog.live.short_way import ShortWay
    from axlog.live.stream_engine import StreamEngine
    from axlog.live.update_changes import ViewChanges


class Feed(Protocol):
    """Applies a message; None: it must take the general path.

    `message` is its content, `at` its time if it is a number or None, `root` its root if it was
    parsed with others, `time` its time in microseconds if it is known.
    """

    def __call__(
        self, message: object, at: object, root: Element | None, time: int | None = None, /
    ) -> list[Change] | None: ...


class Apply(Protocol):
    """Applies the bags of a message that was read elsewhere, and its time in microseconds.

    Returns the changes of each view; subscribers are not called.
    """

    def __call__(self, bags: tuple[Bag, ...], time: int, /) -> ViewChanges: ...


MOST_JOINS = 3
"""The most joins whose deadlines a function compares itself."""
LONGEST_SIGNED = 4096
"""The most bytes of a message that is searched for names: libxml2 is faster than long searches."""
MOST_SIGNS = 6
"""The most relations that are searched for in the bytes of a message."""


def generate_feed(
    engine: StreamEngine,
    document: MaintainedTree,
    collector: Collector,
    way: ShortWay,
    route: Route,
) -> tuple[Feed, str]:
    """The function of a stream, with its source."""
    writer = _FeedWriter(engine, document, collector, way, route)
    source = writer.feed()
    way.layouts = writer.layouts
    return cast("Feed", writer.compiled("feed", source)), source


def generate_apply(
    engine: StreamEngine,
    document: MaintainedTree,
    collector: Collector,
    way: ShortWay,
    route: Route,
) -> Apply | None:
    """The function of a stream for bags; None if the route has no sinks to write out.

    Law: the effect and the result are those of `StreamEngine.apply_all` for one message.
    """
    if not route.is_direct or way.rejects or way.delivered is not None or document.clocked:
        return None
    writer = _FeedWriter(engine, document, collector, way, route)
    return cast("Apply", writer.compiled("apply", writer.apply()))


class _FeedWriter(CheckWriter):
    """Writes the function."""

    def __init__(
        self,
        engine: StreamEngine,
        document: MaintainedTree,
        collector: Collector,
        way: ShortWay,
        route: Route,
    ) -> None:
        plan = way.plan
        super().__init__(plan.limits)
        self._plan, self._way, self._route, self._collector = plan, way, route, collector
        self._keeps = way.keeps
        self._profile = engine.profile
        self.constants |= {
            "own": engine, "document": document, "engine": document.engine, "tree": document.tree,
            "stream": way.status.stream,
            "status": way.status, "current": document.current, "families": document.families,
            "collector": collector, "acquire": document.lock.acquire,
            "release": document.lock.release, "fromstring": fromstring, "parser": plan.parser,
            "is_deep": plan.bounds.may_be_too_deep,
            "XMLSyntaxError": XMLSyntaxError, "QueryError": QueryError, "join": engine.join,
            "way": way, "noted": document.engine.noted, "meters": document.engine.meters,
            "profile": engine.profile, "clock": perf_counter, "is_overdue": collector.is_overdue,
            "pass_time": collector.pass_time, "may_differ": may_differ,
            "is_well_formed": form_check(),
        }  # fmt: skip
        self.layouts: LayoutReader | None = None
        if plan.shared is None:
            self.layouts = LayoutReader(plan.here, plan.everywhere, plan.limits)
            self.constants["layouts"] = self.layouts

    def feed(self) -> str:
        """The source of the function."""
        self.open("def feed(m, at, e, t=None):")
        if self._profile is not None:
            self.line("seconds = profile.seconds")
            self.line("then = clock()")
        self.line("acquire()")
        self.open("try:")
        if self._plan.wanted is not None:
            self.check_bytes(self._plan)
        self.check_time()
        if self._plan.wanted is not None:
            self._pass_unread(self._plan)
        self._end_stage("check")
        self.open("try:")
        found = self._read() if self.layouts is not None else self._parse()
        self._end_stage("match")
        self.close()
        self.open("except (XMLSyntaxError, QueryError):")
        self.line("return None  # the document reports the error")
        self.close()
        self._count()
        self._apply(found)
        self.close()
        self.open("finally:")
        self.line("release()")
        self.close(2)
        self.end()
        return "\n".join(self.lines) + "\n"

    def apply(self) -> str:
        """The source of the function for bags."""
        route = self._route
        bags = [f"bag{number}" for number in range(len(route.here) + len(route.everywhere))]
        self._profile = None
        self.open("def apply(bags, t):")
        self.line("tree.clock = t")
        self.line("status.messages = number = status.messages + 1")
        self.line("status.microseconds = t")
        self.line("current.origin = stream, number")
        if bags:
            self.line(f"{', '.join(bags)}, = bags")
        passes = self._pass_deadlines()
        self._deliver(bags)
        if passes:
            self.line("emitted = together(passed, emitted) if passed else emitted")
        self._call_after(bags)
        self.line("return emitted")
        self.close()
        return "\n".join(self.lines) + "\n"

    def _read(self) -> list[str] | None:
        """Read the message by its layout if it has a known one, else parse it; see `_parse`."""
        assert self.layouts is not None
        self.line("found = None")
        self.open("if e is None and layouts.match is not None:")
        self.open(f"if type(m) is bytes and len(m) <= {self.layouts.longest}:")
        self.open("try:")
        self.line("found = layouts.match(m.decode())")
        self.close()
        self.open("except UnicodeDecodeError:")
        self.line("pass")
        self.close(2)
        self.open(f"elif type(m) is str and len(m) <= {self.layouts.longest}:")
        self.line("found = layouts.match(m)")
        self.close(2)
        self.open("if found is None:")
        found = self._parse()
        self.close()
        assert found is not None
        self.open("else:")
        self._end_stage("parse")
        names = "".join(f"{_name_of(each)}, " for each in found)
        self.line(f"{names or 'found'} = layouts.leaves[found.lastindex](found, t, m)")
        self.close()
        return found

    def _parse(self) -> list[str] | None:
        """Check the bytes of the message, parse it and match it; see `_match`."""
        if self._plan.wanted is None:
            self.check_bytes(self._plan)
        signs = self._pass_unmatched()
        plan = self._plan
        reader = None
        if plan.shared is None:
            reader = generate_reader(plan.here, plan.everywhere, plan.limits, signs)
        if reader is None or self.layouts is None:
            return self._walk(signs)
        self.layouts.start_reading()
        self.constants["read"] = reader[0]
        self.open(f"if e is None and size <= {LONGEST} and layouts.reads:")
        self.line(f"found = read({', '.join(['m', 't', 'size', *dict.fromkeys(signs.values())])})")
        self._end_stage("match")
        self.open("if found is None or not is_well_formed(m):")
        self.line("found = None")
        self.line("layouts.decline(status.messages)")
        self.close()
        self._end_stage("parse")
        self.close()
        self.open("if found is None:")
        found = self._walk(signs)
        self.close()
        assert found is not None
        self.open("else:")
        self._sample("None")
        self.line(f"{''.join(f'{_name_of(each)}, ' for each in found) or 'found'} = found")
        self.close()
        return found

    def _walk(self, signs: dict[Relation, str]) -> list[str] | None:
        """Parse the message and match its tree; see `_match`."""
        self.open("if e is None:")
        self.line("e = fromstring(m, parser)")
        self.open(f"if size > {self._plan.bounds.safe} and is_deep(m, e):")
        self.line("return None")
        self.close()
        if self.layouts is not None:
            self._sample("e")
        self.close()
        self._end_stage("parse")
        return self._match(signs)

    def _sample(self, root: str) -> None:
        """Let the reader of layouts see one in so many messages."""
        self.line("layouts.left -= 1")
        self.line(f"if not layouts.left: layouts.note(m, {root}, status.messages)")

    def _pass_unmatched(self) -> dict[Relation, str]:
        """Count a message that matches nothing, by its bytes: only its form is checked.

        Variables that say whether a message that passed may have rows of relations anywhere in it.
        """
        plan = self._plan
        if plan.shared is not None:
            return {}  # an automaton finds the relations
        inside = {each: sign_of(each, is_inside=True) for each in plan.everywhere}
        tests = dict.fromkeys([*inside.values(), *(sign_of(r, is_inside=False) for r in plan.here)])
        if "" in tests or not tests or len(tests) > MOST_SIGNS:
            return {}
        names = {test: self.fresh("has") for test in inside.values()}
        for test, name in names.items():
            self.line(f"{name} = size > {LONGEST_SIGNED} or {test}")
        signs = [names.get(test, test) for test in tests]
        if plan.wanted is None:
            signs = [f"size > {LONGEST_SIGNED}", *signs]
            self.open(f"if e is None and not ({' or '.join(signs)}):")
            self.open("if not may_differ(m) and is_well_formed(m):")
            self._sample("None")
            self._count()
            self.line("status.unmatched += 1")
            self._end_stage("parse", "messages += 1")
            self.line("return join(way, (), t, pass_time(t)) if is_overdue(t) else []")
            self.close(2)
        return {each: names[test] for each, test in inside.items()}

    def _end_stage(self, stage: str, *counted: str) -> None:
        """Add the time since the last stage to this one, if a profile is taken."""
        if self._profile is None:
            return
        self.line("now = clock()")
        self.line(f"seconds[{stage!r}] += now - then")
        self.line("then = now")
        for each in counted:
            self.line(f"profile.{each}")

    def _pass_unread(self, plan: MessagePlan) -> None:
        """Count a message that no view wants by its bytes; it is not parsed."""
        assert plan.wanted is not None
        starts = [_start_of(relation) for relation in plan.here] + [b""] * len(plan.everywhere)
        for start, names in zip(starts, plan.wanted, strict=True):
            lacks = [f"not m.startswith({start!r})"] if start else []
            lacks += [f"m.find({name!r}) < 0" for name in names if name != start[1:]]
            self.open(f"if {' or '.join(lacks)}:")
        self.line("tree.clock = t")
        self.line("status.messages += 1")
        self.line("status.microseconds = t")
        self.line("status.unparsed += 1")
        self.line("document.forgotten += 1")
        self._end_stage("check", "messages += 1", "unread += 1")
        self.line("return join(way, (), t, pass_time(t)) if is_overdue(t) else []")
        self.close(len(plan.wanted))

    def _match(self, signs: dict[Relation, str]) -> list[str] | None:
        """The bags of the message; None: the variable `found` has those that are not empty."""
        plan = self._plan
        if plan.shared is not None:
            self.constants["find"] = plan.found
            self.line("found = find(e, t, m)")
            return None
        bags = self.bags(plan.here, plan.everywhere, signs)
        return [as_bag(relation, name) for relation, name in bags]

    def _count(self) -> None:
        """Move the clock, and count or keep the message."""
        self.line("tree.clock = t")
        self.line("status.messages = number = status.messages + 1")
        self.line("status.microseconds = t")
        if self._keeps:
            self.open("if type(m) is str:")
            self.line("m = m.encode()")
            self.close()
            self.line("own.aside.append((stream, m, t, number))")
        else:
            self.line("document.forgotten += 1")

    def _apply(self, found: list[str] | None) -> None:
        """Pass the rows to the sinks, and the answers to the views."""
        route, way = self._route, self._way
        if found is not None:
            self.open(f"if {' or '.join(map(_name_of, found)) or 'False'}:")
            self.line(f"bags = ({''.join(f'{each}, ' for each in found)})")
        else:
            self.open("if found:")
        self.line("current.origin = stream, number")
        passes = self._pass_deadlines()
        if way.arrive is not None:
            self.constants |= {"arrive": way.arrive, "found_bags": route.found_bags}
            self.line("arrive(found)" if found is None else "arrive(found_bags(bags))")
        self.constants |= {"carry": route.carry, "carry_found": route.carry_found}
        if found is None:
            self.line("emitted = carry_found(found, t)")
        elif route.is_direct:
            self._deliver(found)
        else:
            self.line("emitted = carry(bags, t)")
        if passes:
            self.line("emitted = together(passed, emitted) if passed else emitted")
        bags = "found.values()" if found is None else "bags"
        self._end_stage("group", "matched += 1", f"rows += sum(map(len, {bags}))")
        self.line("engine.climbed += 1")
        self._call_after(found)
        self.open("if emitted or families.emitted:")
        if self._profile is None:
            self.line("return document.announce(emitted)")
        else:
            self.line("changes = document.announce(emitted)")
            self._end_stage("emit", "changes += len(changes)", "messages += 1")
            self.line("return changes")
        self.close()
        self._end_stage("emit", "messages += 1")
        self.line("return []")
        self.close()
        self.line("status.unmatched += 1")
        self._end_stage("join", "messages += 1")
        self.line("return join(way, (), t, pass_time(t)) if is_overdue(t) else []")

    def _call_after(self, found: list[str] | None) -> None:
        """Drop rows that the message made useless, and find what can no longer come."""
        route = self._route
        if self._collector.is_many:
            touched = "None"
            if route.is_direct:
                touched = "touched(found)" if found is None else "joins"
                self.constants["touched"] = route.touched
                if found is not None:
                    every = {join: None for joins in route.watches.values() for join in joins}
                    self.constants["joins"] = tuple(every)
            self.line(f"emitted = collector.after(emitted, t, {touched})")
            return
        self.open(f"if {self._needs_after()}:")
        self.line("emitted = collector.after(emitted, t)")
        self.close()

    def _pass_deadlines(self) -> bool:
        """Let deadlines pass that must be examined before the message; return whether some may."""
        examined = self._collector.examined
        if not examined:
            return False
        passes = "is_overdue(t)"
        if not self._collector.is_many and len(examined) <= MOST_JOINS:
            self.constants |= {f"due{number}": heap for number, (_, heap, _) in enumerate(examined)}
            tests = [f"due{number} and due{number}[0][0] < t" for number in range(len(examined))]
            passes = " or ".join([*tests, "collector.until < t"])
        self.constants["together"] = together
        self.line(f"passed = pass_time(t) if {passes} else None")
        return True

    def _needs_after(self) -> str:
        """Whether the message may have dropped rows, or made some impossible."""
        timed = self._collector.timed
        if not timed:
            return "collector.is_busy or collector.until < t"
        if len(timed) > MOST_JOINS or self._collector.is_swept:
            return "collector.is_busy or is_overdue(t)"
        tests = []
        for number, (join, heap, _) in enumerate(timed):
            self.constants[f"heap{number}"] = heap
            tests.append(f"heap{number} and heap{number}[0][0] < t")
            for at, each in enumerate(_unexamined(join)):
                self.constants[f"left{number}_{at}"] = each
                tests.append(f"left{number}_{at}")
        self.constants["tracker"] = self._collector.tracker
        tests += ["collector.until < t", "tracker.is_busy", "emitted and collector.follows"]
        return " or ".join(tests)

    def _use_keys(self, found: list[str]) -> None:
        """Note the values of keys: mostly one, which all patterns of the key find."""
        for number, (use, at, end) in enumerate(self._route.uses):
            first, *others = [_name_of(found[i]) for i in range(at, end)]
            self.constants[f"use{number}"] = use
            self.open(f"for row in {first}:")
            self.line(f"use{number}(row)")
            self.close()
            for other in others:
                self.open(f"if {other} != {first}:")
                self.open(f"for row in {other}:")
                self.open(f"if row not in {first}:")
                self.line(f"use{number}(row)")
                self.close(3)

    def _deliver(self, found: list[str]) -> None:
        """The same as `Route.carry_found`, of a route with a sink for each relation."""
        route = self._route
        self.constants |= {"take": route.take}
        roots = [route.root_of(sink) for _, sink in route.into_rows]
        if len(roots) == 1 and roots[0] is not None and found is not None:
            ((at, _),) = route.into_rows
            if found[at] == _name_of(found[at]):  # the rows are the answers
                self.constants["take"] = route.taker(roots[0])
                self._end_stage("join")
                self.line(f"emitted = take({found[at]}, t) if {found[at]} else []")
                self._use_keys(found)
                return
        self.line("answers = {}")
        self.line("meters.bags = bags")
        for number, (at, sink) in enumerate(route.into_rows):
            name = f"sink{number}"
            self.constants[name] = sink
            bag = _name_of(found[at])
            if bag != found[at]:  # a number: the relation has no columns
                self.open(f"if {bag}:")
                self.line(f"{name}((), {bag}, answers)")
            else:
                self.open(f"for row, count in {bag}.items():")
                self.line(f"{name}(row, count, answers)")
            self.close()
        self.open("if meters.used or noted:")
        self.line("answers = engine.close_update(answers)")
        self.close()
        self._end_stage("join")
        self.line("emitted = take(answers, t) if answers else []")
        self._use_keys(found)


def _start_of(relation: Relation) -> bytes:
    """How a message with a row of a relation at its root starts; empty: unknown.

    A name outside of namespaces has no prefix.
    """
    test = relation.node.test if relation.node is not None else None
    if not isinstance(test, Name) or test.label.startswith("{"):
        return b""
    return b"<" + test.label.encode()


def _unexamined(join: Watch) -> tuple[Collection[object], ...]:
    """What an update leaves of a join to examine; always the same objects."""
    return (join.ended,) if isinstance(join, WaitingRows) else join.unexamined


def _name_of(bag: str) -> str:
    """The variable in the expression of a bag; see `as_bag`."""
    return bag.rpartition(" if ")[2].partition(" else ")[0] if " if " in bag else bag
