"""The truth of systems: documents whose views feed streams of other documents, and their own.

    TRUE   exactly if the view has a row before the first message
    NEVER  exactly if no run gives it a row

The oracle runs the system. Views without `not` only gain rows, so one run decides: every stream
from outside delivers the universal tree, which holds every tree of the depth of the queries over
their labels and strings and over a few others. Views with `not` are compared in one direction: a
view that is NEVER has no row at any moment of that run, given piece by piece.

Cases: one to three documents, cycles included, with patterns of variables, labels, strings,
comparisons, `or` and joins inside a delivered row and between rows. Half of them are chains and
rings in which producers show several rows, or unknown values under conditions, and consumers ask
for single values and for values under conditions of their own: there the verdict depends on what a
wire carries, not only on its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from axlog.document.stream_update import StreamUpdate
from axlog.errors import PipelineError
from axlog.pipeline.model import PipelineModel
from axlog.query.truth import Truth
from axlog.runtime.checkpoint import Input
from axlog.runtime.instances import Instances
from axlog.runtime.system_truth import SystemTruth
from axlog.runtime.systems import System

LABELS = ("row", "x", "y", "a", "z")
STRINGS = ("0", "1", "1.0", "1.5", "2", "2.0", "2.5", "3", "3.0", "8")
_NUMBERS = ("1", "2", "3", '"1"', '"2"')
"""Numbers and texts that conditions compare with; a number has several spellings."""
_CELLS = (*LABELS, *"uvw", "other")


@dataclass(frozen=True, slots=True)
class SystemsCase:
    """A system; `str` is enough to run it again."""

    documents: tuple[str, ...]  # each with its calls
    views: tuple[tuple[int, str, str], ...]  # document, name, query
    wires: tuple[tuple[int, str, str], ...]  # document, stream, full name of a view

    def model(self, **settings: Any) -> PipelineModel:
        """The pipeline of this case."""
        documents: dict[str, Any] = {
            f"d{number}": {"document": text, "views": {}, "streams": {}}
            for number, text in enumerate(self.documents)
        }
        for number, name, query in self.views:
            documents[f"d{number}"]["views"][name] = query
        for number, stream, view in self.wires:
            documents[f"d{number}"]["streams"][stream] = {"view": view}
        return PipelineModel.model_validate(
            {"engine": "embedded", "documents": documents, "settings": settings}
        )


# Cases --------------------------------------------------------------------------------------------


def make_systems_case(random: Random) -> SystemsCase:
    """A random system."""
    return _chain(random) if random.random() < 0.5 else _any_system(random)


def _any_system(random: Random) -> SystemsCase:
    count = random.randint(1, 3)
    views = [
        (number, f"v{at}", _query(random, number))
        for number in range(count)
        for at in range(random.randint(1, 2))
    ]
    wires, documents = [], []
    for number in range(count):
        calls = [_call("out")] if random.random() < 0.6 else []
        for at in range(random.randint(0 if calls else 1, 2)):
            other, name, _ = random.choice(views)
            wires.append((number, f"w{at}", f"d{other}.{name}"))
            calls.append(_call(f"w{at}"))
        random.shuffle(calls)
        inside = calls + [_static(random) for _ in range(random.randint(0, 2))]
        documents.append(f"<d{number}>{''.join(inside)}</d{number}>")
    return SystemsCase(tuple(documents), tuple(views), tuple(wires))


def _chain(random: Random) -> SystemsCase:
    """A producer, one or two consumers of its rows, and perhaps a wire back."""
    count = random.randint(2, 3)
    kept = "".join(_kept(random) for _ in range(random.randint(2, 4)))
    is_apart = random.random() < 0.5  # the stream brings nothing beside the kept data
    call = f"<s>{_call('out')}</s>" if is_apart else _call("out")
    documents = [f"<d0>{call}{kept}</d0>"]
    views, wires = [(0, "v0", _producer(random, "s/" if is_apart else ""))], []
    for number in range(1, count):
        source = f"d{number - 1}.v0"
        shown = next(_columns(q) for at, name, q in views if f"d{at}.{name}" == source)
        wires.append((number, "w0", source))
        views.append((number, "v0", _consumer(random, number, shown, passes=number < count - 1)))
        views += [(number, f"v{at}", _consumer(random, number, shown)) for at in range(1, 4)]
        documents.append(f"<d{number}>{_call('w0')}</d{number}>")
    if random.random() < 0.25:  # the last document feeds the first
        wires.append((0, "w0", f"d{count - 1}.v1"))
        documents[0] = f"<d0>{_call('w0')}{documents[0].removeprefix('<d0>')}"
    return SystemsCase(tuple(documents), tuple(views), tuple(wires))


def _kept(random: Random) -> str:
    x, y = random.choice("123"), random.choice("123")
    return f"<a><x>{x}</x><y>{y}</y></a>"


def _columns(query: str) -> list[str]:
    return query.partition(" return ")[2].replace("$", "").split(", ")


def _producer(random: Random, at: str) -> str:
    """Rows of kept data that wait for the stream, or rows of the stream under conditions."""
    kind = random.random()
    if kind < 0.45:
        gate = random.choice((f"[{at}z]", f"[{at}row/w]", f"[{at}row/x/$w]"))
        shown = random.choice(("$u", "$u, $v", "$u, $v"))
        where = random.choice(("", "", ' where $u != "1"', " where $u != $v", " where $u < 3"))
        return f"match /d0{gate}[a[x/$u]/y/$v]{where} return {shown}"
    if kind < 0.6:  # a kept value beside an unknown one
        return f"match /d0[{at}row/w/$v][a[x/$u][y/{_text(random)}]] return $u, $v"
    tests = [f"{name} {_condition(random)}" for name in ("$u", "$v") if random.random() < 0.6]
    tests += ["$u != $v"] if random.random() < 0.3 else []
    said = f" where {' and '.join(tests)}" if tests else ""
    return f"match /d0/{at}row[x = $u][y = $v]{said} return $u, $v"


def _condition(random: Random) -> str:
    return f"{random.choice(('=', '!=', '<', '>', '<=', '>='))} {random.choice(_NUMBERS)}"


def _text(random: Random) -> str:
    return f'"{random.choice("123")}"'


def _consumer(random: Random, number: int, shown: list[str], *, passes: bool = False) -> str:
    """Rows of a wire: with one value, under a condition, with equal values, or two of them."""
    cell, other = random.choice(shown), random.choice(shown)
    passed = "".join(f"[{each} = $p{each}]" for each in shown) if passes else ""
    returned = ", ".join(f"$p{each}" for each in shown) if passes else "$n"
    tests = random.choice(
        (
            f"[row{passed}[{cell}/{_text(random)}]",
            f"[row{passed}[{cell} {_condition(random)}]",
            f"[row{passed}[{cell}/{_text(random)}][{other}/{_text(random)}]",
            f"[row{passed}[{cell} = $q][{other} = $q]",
            f"[row{passed}[{cell} = $q]][row[{other} = $q][{cell} != {_text(random)}]",
            f"[row{passed}[{cell}/{_text(random)}]][row[{other}/{_text(random)}]",
        )
    )
    named = "" if passes else f"[{cell} = $n]"
    return f"match /d{number}{tests}{named}] return {returned}"


def _call(stream: str) -> str:
    return f'<ax:call xmlns:ax="urn:axlog" stream="{stream}"/>'


def _static(random: Random) -> str:
    label, inner = random.choice(LABELS[:4]), random.choice(("x", "y"))
    return f"<{label}><{inner}>{random.choice('12')}</{inner}></{label}>"


def _query(random: Random, number: int) -> str:
    bound: list[str] = []
    branches = [_branch(random, bound) for _ in range(random.randint(1, 2))]
    if random.random() < 0.15:
        branches.append(f"[not({_path(random, [])})]")
    if not bound:
        branches.append("[row/x/$v]")
        bound.append("$v")
    names = sorted(set(bound))
    shown = random.sample(names, random.randint(1, min(2, len(names))))
    where = ""
    if random.random() < 0.2:
        where = (
            f' where {random.choice(names)} {random.choice(("=", "!="))} "{random.choice("12")}"'
        )
    elif len(names) > 1 and random.random() < 0.15:
        where = f" where {names[0]} != {names[1]}"
    return f"match /d{number}{''.join(branches)}{where} return {', '.join(sorted(shown))}"


def _branch(random: Random, bound: list[str]) -> str:
    if random.random() < 0.15:
        name = f"${random.choice('uvw')}"
        bound.append(name)
        paths = [f"{_step(random)}/{random.choice(('x', 'y'))}/{name}" for _ in range(2)]
        return f"[{paths[0]} or {paths[1]}]"
    return f"[{_path(random, bound)}]"


def _step(random: Random) -> str:
    return random.choice(("row", "row", "row", "a", "*", "x", "other"))


def _path(random: Random, bound: list[str]) -> str:
    prefix = "//" if random.random() < 0.1 else ""
    cells = "".join(f"[{_cell(random, bound)}]" for _ in range(random.randint(1, 2)))
    return f"{prefix}{_step(random)}{cells}"


def _cell(random: Random, bound: list[str]) -> str:
    cell = random.choice(("x", "x", "y", "u", "v", "w", "*", "@key"))
    kind = random.random()
    if cell == "@key" or kind < 0.1:
        return cell
    if kind < 0.65:
        name = f"${random.choice('uvw')}"
        bound.append(name)
        return f"{cell}/{name}" if random.random() < 0.8 else f"{cell} = {name}"
    if kind < 0.85:
        return f'{cell}/"{random.choice("123")}"'
    return f'{cell} {random.choice(("=", "!=", "<", ">="))} "{random.choice("12")}"'


def smaller_systems(case: SystemsCase) -> Iterator[SystemsCase]:
    """Cases with a wire or a view less."""
    for at in range(len(case.wires)):
        number, stream, _ = case.wires[at]
        text = case.documents[number].replace(_call(stream), "")
        documents = (*case.documents[:number], text, *case.documents[number + 1 :])
        yield replace(case, documents=documents, wires=case.wires[:at] + case.wires[at + 1 :])
    used = {view for _, _, view in case.wires}
    for at, (number, name, _) in enumerate(case.views):
        if f"d{number}.{name}" not in used and sum(n == number for n, _, _ in case.views) > 1:
            yield replace(case, views=case.views[:at] + case.views[at + 1 :])


# The oracle ---------------------------------------------------------------------------------------


def universal(label: str) -> str:
    """An element that holds every tree of the depth of the queries, as they can tell them apart."""
    texts = "<z/>".join(STRINGS)
    cells = "".join(f"<{cell}>{inside}</{cell}>" for cell in _CELLS for inside in (*STRINGS, texts))
    return f'<{label} key="k">{cells}{texts}</{label}>'


class _Run:
    """A run in which every stream from outside delivers everything."""

    def __init__(self, case: SystemsCase) -> None:
        try:
            model = case.model()
            self.system = System(model)
        except PipelineError as error:
            if error.code != "AX841":  # a cycle that may not end
                raise
            model = case.model(rounds=4)
            self.system = System(model)
        self.instances = {name: Instances(model, name) for name in model.documents}
        self.system.begin(self.instances)
        self.at_once = self._with_rows()
        self.seen = set(self.at_once)
        for label in (*LABELS, "other"):
            inputs = {
                name: [Input("", StreamUpdate("out", "insert", universal(label)), 1)]
                for name in model.documents
                if 'stream="out"' in (model.documents[name].document or "")
            }
            self._feed(inputs)
        for _ in range(4):  # what a bounded cycle still carries
            self._feed({})

    def _feed(self, inputs: dict[str, list[Input]]) -> None:
        self.system.feed(self.instances, inputs)
        self.seen |= self._with_rows()

    def _with_rows(self) -> set[str]:
        return {str(row.view) for one in self.instances.values() for row in one.rows()}


def check_systems(case: SystemsCase) -> int:
    """Compare every verdict with the run; return how many were decided."""
    run = _Run(case)
    model = run.system.model
    verdicts = SystemTruth(model).verdicts()
    is_positive = not any("not(" in query for _, _, query in case.views)
    # what an undecided view delivers has unknown values, so that others are POSSIBLE too often
    is_positive = is_positive and all(each.truth is not None for each in verdicts.values())
    decided = 0
    for view, verdict in verdicts.items():
        if verdict.truth is None:
            continue
        decided += 1
        assert (verdict.truth is Truth.TRUE) == (view in run.at_once), (view, verdict)
        if verdict.truth is Truth.NEVER:
            assert view not in run.seen, (view, verdict, "has a row")
            assert verdict.reasons, (view, "no reason")
        elif is_positive:
            assert view in run.seen, (view, verdict, "has no row")
    return decided
