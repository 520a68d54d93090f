"""Truth as data arrives: the view's answer after every step equals a walk over the document.

    view.truth  =  Outlook(document, pattern).truth        after every update, end and clock change

Cases are those of law 4 (`outlook_cases.py`, including facts, keys, types and `not`), with further
steps: messages with and without calls, ends, the clock, deletions, statements. The walk uses a
second document, so that it does not disturb the first. If the walk is undecided, the view may know
more from earlier steps, and its answer is not compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

from axlog.errors import AxlogError, UndecidedError
from axlog.future.keys import is_broken
from axlog.future.truth import Outlook
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view
from axlog.live.options import Options
from axlog.query.query import Query
from axlog.query.truth import Truth
from axlog.views.change import Change
from lab.laws import small_cases
from lab.laws.edits import Edit, carry_out, edit_of
from lab.laws.fuzz_cases import Case
from lab.laws.outlook_cases import make_outlook_case
from lab.laws.outlook_declared import make_keyed_case, make_typed_case

_SMALL = ("<a><b>1</b></a>", "<a><b>2</b><c/></a>", "<a><c/></a>", "<d><b>1</b></d>", "<c/>")
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'


def check_truth(random: Random) -> Counter[str]:
    """Check one random case; return the number of comparisons by name."""
    run = _Run(random)
    run.compare("at the start")
    for _ in range(random.randint(2, 8)):
        step = run.step()
        if step is None or run.is_broken:
            break
        run.compare(step)
    run.seen["searches"] += maintained_view(run.view).truth_cache.searches
    return run.seen


def check_truth_of(case: Case, steps: Iterable[tuple[Edit, ...]], random: Random) -> Counter[str]:
    """Check one case with the given steps; `random` only decides how the document is kept."""
    run = _Run(random, case)
    run.compare("at the start")
    for edits in steps:
        run.both(edits)
        run.compare(str(edits))
    return run.seen


def _make(random: Random) -> Case:
    pick = random.random()
    make = make_keyed_case if pick < 0.15 else make_typed_case if pick < 0.2 else make_outlook_case
    return make(random)


class StreamedCase:
    """A case with further steps: a document with the view, and one without it for the walk."""

    def __init__(self, random: Random, case: Case | None = None, **options: Any) -> None:
        case = case or _make(random)
        self.case, self.random = case, random
        options = {"cache": random.choice(("memory", "memory", "disk")), **options}
        self.tested = Document(
            case.document, facts=case.facts, types=case.types, options=Options(**options)
        )
        self.plain = Document(case.document, facts=case.facts, types=case.types)
        (pattern,) = case.patterns
        self.pattern = pattern
        self.view = self.tested.watch(Query(pattern, str(pattern)), "v")
        self.seen: Counter[str] = Counter()
        self.said: list[str] = []
        for step in case.steps:
            self.both(step)

    def both(self, edits: tuple[Edit, ...]) -> list[Change]:
        """Apply an update on both sides, and return the view's changes."""
        try:
            carry_out(self.plain, edits)
        except AxlogError:
            return []  # both sides refuse it
        return carry_out(self.tested, edits)

    @property
    def is_broken(self) -> bool:
        """Whether the document violates a trusted key: the law does not cover such documents."""
        tree = maintained(self.plain).nodes()
        return any(is_broken(tree, key) for key in tree.facts)

    def statement(self) -> tuple[Edit, ...]:
        """A statement that a user could write."""
        tree = maintained(self.plain).nodes()
        made = small_cases.operations(self.random, tree, 1)
        return tuple(edit_of(tree, operation) for operation in made)

    def message(self) -> tuple[Edit, ...]:
        """The next message of a stream; empty if no stream is open."""
        random, tree = self.random, maintained(self.plain).nodes()
        if not tree.calls():
            return ()
        stream = random.choice(sorted(tree.calls()))
        edit: dict[str, object] = {"stream": stream}
        pick = random.random()
        if pick < 0.15:
            edit["end"] = True
        elif pick < 0.2:
            edit["delete"] = f"match /{random.choice(small_cases.LABELS)}"
        else:
            edit["insert"] = self._content()
        edit["at"] = (tree.clock + random.choice((0, 0, 1, 2))) / 1_000_000
        return (edit,)

    def _content(self) -> str:
        random = self.random
        if self.case.facts or self.case.types:
            text = random.choice(_SMALL)
        else:
            text = small_cases.fragment(random, random.randint(1, 3))
        if random.random() < 0.1:  # sometimes one that has ended, and is opened again
            return text.replace("</", _CALL.format(f"s{random.randrange(4)}") + "</", 1)
        return text

    def told(self) -> str:
        """The case with all its steps, for error messages."""
        how = f"cache {'disk' if maintained(self.tested).engine.shelf else 'memory'}"
        said = [str(self.case), str(self.pattern), how, *self.said, self.plain.xml()]
        return "\n".join(said)


class _Run(StreamedCase):
    """One case of the law."""

    def step(self) -> str | None:
        """Run a random step, and return it."""
        random, tree = self.random, maintained(self.plain).nodes()
        pick = random.random()
        if pick < 0.1:
            later = (tree.clock + random.choice((1, 2, 5))) / 1_000_000
            for doc in (self.plain, self.tested):
                doc.advance(later)
            return f"advance {later}"
        edits = self.statement() if pick < 0.18 else self.message()
        if not edits:
            return None
        self.both(edits)
        return str(edits)

    def compare(self, step: str) -> None:
        self.said.append(step)
        try:
            wanted = Outlook(maintained(self.plain).nodes(), self.pattern).truth
        except UndecidedError:
            wanted = None
        try:
            found = self.view.truth
        except UndecidedError as error:
            if wanted not in (None, Truth.TRUE):
                raise AssertionError(f"undecided, wanted {wanted}: {self.told()}") from error
            found = None
        if wanted is None:
            self.seen["undecided"] += 1
            return
        if found is not wanted:
            raise AssertionError(f"found {found}, wanted {wanted}: {self.told()}")
        self.seen[wanted.name] += 1
