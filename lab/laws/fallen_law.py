"""`never` changes of any view: random small cases, and `never` by its definition.

    never after an update  =  the rows that were possible before it, of which afterwards no
                              instance holds or is possible

The definition is computed by a walk over the whole document before and after (`future/truth.py`,
which law 4 compares with brute force over futures). Cases are those of law 4: joins of any number
of parts, `or`, `not`, times, ids, values and contents, calls with declared facts, keys and types.
Then messages arrive, with and without calls, streams end, delete and are deleted, and the clock
advances. Statements start over: rows that they make impossible emit no `never`. A fifth of the
cases are streams that delete what they can, or cannot, bring again (`future/restoration.py`). A
third of the joins and of the streams that delete have values in attributes.

If the state of a join reports, the clock passes before an update, deadline by deadline, and each is
an update of its own (`never_law.py`).

Views that use the tables of joins omit a row whose deadline was the clock at which its match began
(`never_law.py`): such views are compared there.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from axlog.document.times import microseconds
from axlog.errors import UndecidedError
from axlog.future.generalized_rows import Values
from axlog.future.truth import Outlook
from axlog.live.internals import maintained, maintained_view
from axlog.query.native import parse_pattern
from axlog.query.truth import Truth
from lab.laws.attributes import attributed, in_fact, in_query, in_tree
from lab.laws.edits import Edit
from lab.laws.fuzz_cases import Case
from lab.laws.never_law import next_moment
from lab.laws.small_cases import calling
from lab.laws.truth_law import StreamedCase

Shown = tuple[object, ...]


def check_fallen(random: Random) -> Counter[str]:
    """Check one random case; return the number of comparisons by name."""
    pick = random.random()
    never = "kept" if pick > 0.9 else "all"
    run = (
        _Joined(random) if pick < 0.3 else _Deleting(random) if pick < 0.5 else _Run(random, never)
    )
    for _ in range(9 if pick < 0.3 else random.randint(2, 8)):
        edits = run.next()
        if edits is None:
            break
        run.step(edits)
    run._compare_explained("at the end")
    return run.seen


class _Run(StreamedCase):
    """One case: a document with the view, and a document without it for the walk."""

    def __init__(self, random: Random, never: str, case: Case | None = None) -> None:
        super().__init__(random, case, never=never)
        self._option = never
        self.before = self._possible()
        self._compare_explained("at the start")

    def _possible(self) -> dict[Values, Shown] | None:
        try:
            outlook = Outlook(maintained(self.plain).nodes(), self.pattern)
            return {k: tuple(row.values()) for k, row in outlook.bindings().items()}
        except UndecidedError:
            return None

    def _compare_explained(self, when: str) -> None:
        """`explain` says that `never` is reported exactly where the possible rows are decided.

        At the end, possible rows may be decided that were undecided before: then none was reported
        since.
        """
        if not maintained(self.tested).tree.calls() or self.is_broken:
            return
        said = maintained_view(self.view).how_never()  # as `explain` says
        try:
            self.view.possible()
            is_decided = True
        except UndecidedError:
            is_decided = False
        is_reported = said.startswith("reported")
        if self._asks_for_all(said):
            is_reported = True  # with `never="all"`, says `explain`
        may_be_late = when == "at the end" and is_decided
        if is_reported != is_decided and not may_be_late:
            raise AssertionError(f"{said!r}, decided: {is_decided} {when}: {self.told()}")
        self.seen["explained"] += 1

    def _asks_for_all(self, said: str) -> bool:
        """Whether `explain` says that `never="all"` would report what this document does not."""
        if "never=" not in said:
            return False
        if self._option == "all":
            raise AssertionError(f"{said!r} of a document with never='all': {self.told()}")
        return True

    def next(self) -> tuple[Edit, ...] | None:
        """The next step; an empty one advances the clock."""
        pick = self.random.random()
        if pick < 0.15:
            return ()
        return (self.statement() if pick < 0.2 else self.message()) or None

    def step(self, edits: tuple[Edit, ...]) -> None:
        said = maintained_view(self.view).how_never()  # of the update that comes
        at = edits[0].get("at") if edits else None
        time = maintained(self.plain).tree.clock if at is None else microseconds(at)
        if not edits:
            time += self.random.choice((1, 2, 5))
        passed = self._passing(time) if "join's state" in said else []
        told = self._take(edits, time)
        if self.is_broken:
            self.before = None
            return
        if edits and "stream" not in edits[0]:  # a statement
            self.before = self._possible()
            return
        wanted = self._never()
        if passed:
            wanted = None if wanted is None else sorted([*passed, *wanted], key=str)
            self.seen["passed"] += len(passed)
        self.said.append(str(edits or "advance"))
        if self._asks_for_all(said):
            wanted = []
            self.seen["with never=all only"] += 1
        if wanted and said.startswith("not reported"):  # decided since, as `explain` did not say
            wanted = []
            self.seen["undecided before"] += 1
        if wanted is None or "tables" in said:  # joins report: see `never_law.py`
            self.seen["not compared"] += 1
            return
        if told != wanted:
            raise AssertionError(f"found {told}, wanted {wanted}: {self.told()}")
        self.seen["steps"] += 1
        self.seen["never"] += len(wanted)

    def _passing(self, time: int) -> list[Shown]:
        """The rows that become impossible while the clock passes, before an update."""
        found: list[Shown] = []
        while True:
            tree = maintained(self.plain).nodes()
            try:
                deadlines = [one.deadline for one in Outlook(tree, self.pattern).possible()]
            except UndecidedError:
                return found  # nothing is compared
            moment = next_moment(tree.clock, deadlines, time)
            if moment is None:
                return found
            self.plain.advance(moment / 1_000_000)
            found += self._never() or ()

    def _take(self, edits: tuple[Edit, ...], time: int) -> list[Shown]:
        if not edits:
            self.plain.advance(time / 1_000_000)
            changes = self.tested.advance(time / 1_000_000)
        else:
            changes = self.both(edits)
        return sorted((c.row.values_ for c in changes if c.op == "never"), key=str)

    def _never(self) -> list[Shown] | None:
        """The `never` rows by the definition; None where they are undecided."""
        before, self.before = self.before, self._possible()
        if before is None or self.before is None:
            return None
        outlook = Outlook(maintained(self.plain).nodes(), self.pattern)
        try:
            fallen = [
                shown for row, shown in before.items() if outlook.truth_of(row) is Truth.NEVER
            ]
        except UndecidedError:
            return None
        return sorted(fallen, key=str)


# Joins of three -----------------------------------------------------------------------------------

_PARTS = (
    "[p/a/k/$x#t1][q/d/k/$x#t2][e/z/k/$x#t3]",
    "[p/a[w]/k/$x#t1][q/d/k/$x#t2][e/z#t3]",
    '[p/a#t1[w or k/"1"]][q/d/k/$x#t2][e/z/k/$x#t3]',
    "[p/a#t1[w]][q/d/k/$x#t2][e/z#t3]",
    "[.//k/$x#t1][q/d/k/$x#t2][e//k#t3]",
)
_TIMES = (
    "", "t2 - t1 <= 2us", "t3 - t1 <= 3us and t2 - t1 >= 0us", "t3 - t2 <= 1us", "t3 + t1 <= 7us",
    "t3 - t2 <= 2us and t2 - t1 <= 2us", "t3 = t1", "t1 - t3 <= 1us and t3 - t1 <= 1us",
    "t1 + t2 + t3 <= 9us", "2*t3 - t1 - t2 <= 3us", "t3 - 2*t2 + t1 >= -1us", "2*t3 + t1 <= -1us",
    "3*t3 - 2*t1 = 1us", '$x = "1"', '$x = "1" and 2*t3 - t1 <= 4us',
)  # fmt: skip
_COLUMNS = ("$x", "t1.time", "t3.time", "t2.id")
_KEYS = ("key p/a by k trusted", "key e/z by k trusted")
_CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'


class _Joined(_Run):
    """Three streams, each of which feeds a part of a join with times, and keys in some cases."""

    def __init__(self, random: Random) -> None:
        where, parts = random.choice(_TIMES), random.choice(_PARTS)
        shown = [c for c in _COLUMNS if random.random() < 0.3 and ("$x" in parts or c != "$x")]
        query = f"match /r{parts.replace('[.//', '[//')}" + (f" where {where}" if where else "")
        query += f" return {', '.join(shown)}" if shown else ""
        f, g, h = (_CALL.format(stream) for stream in "fgh")
        document = f"<r><p>{f}</p><q>{g}</q><e>{h}</e></r>"
        document = calling(document) if len(query) % 2 else document
        self._labels = attributed(random, "k")
        keys = [key for key in _KEYS if random.random() < 0.2]
        facts = tuple(in_fact(key, self._labels) for key in keys)
        case = Case(document, (parse_pattern(in_query(query, self._labels)),), facts=facts)
        super().__init__(random, "kept", case)

    def message(self) -> tuple[Edit, ...]:
        random, tree = self.random, maintained(self.plain).nodes()
        streams = [stream for stream in "fgh" if stream in tree.calls()]
        if not streams:
            return ()
        stream = random.choice(streams)
        at = (tree.clock + random.choice((0, 0, 1, 1, 2))) / 1_000_000
        if random.random() < 0.12:
            return ({"stream": stream, "end": True, "at": at},)
        label = {"f": "a", "g": "d", "h": "z"}[stream]
        wanted = "<w/>" if random.random() < 0.6 else ""
        content = f"<{label}>{wanted}<k>{random.choice('12')}</k></{label}>"
        return ({"stream": stream, "insert": in_tree(content, self._labels), "at": at},)


# Deletions ----------------------------------------------------------------------------------------

_DELETED = (
    "[x/e/k/$v][y/e/k/$v]", "[x/e#n/k/$v][y/e/k/$v]", "[x/e#n[w]/k/$v]", "//e#n/k/$v",
    "[x/e[k/$v]/g/h/$u][y/e/k/$v]", "[x/e/g/h/$v][y/e/k/$v]", "[x/e#n/k[parent::e[w]]/$v]",
    "[x#n][y/e/k/$v]", "[x = $v][y/e/k/$v]",
)  # fmt: skip
_SHOWN = ("$v", "$u", "n.id", "n.time", "n.val", "n.label")
_BESIDE = ("", "", " where n <= 3us", " where n - m <= 1us")
_KINDS = ("", "", "", "", "", "", ' most="4"', ' mode="one-shot"', ' calls="9"')


class _Deleting(_Run):
    """Two streams, one of which deletes what it brought, or what was there at the beginning."""

    def __init__(self, random: Random) -> None:
        parts, where = random.choice(_DELETED), random.choice(_BESIDE)
        if "#n" not in parts or (" m " in where and "[y/e/k/$v]" not in parts):
            where = ""
        if " m " in where:
            parts = parts.replace("[y/e/k/$v]", "[y/e#m/k/$v]")
        names = [c for c in _SHOWN if (c if c[0] == "$" else "#n") in parts]
        shown = [c for c in names if random.random() < (0.7 if c[0] == "$" else 0.3)]
        query = f"match {'' if parts[0] == '/' else '/r'}{parts}{where}"
        query += f" return {', '.join(shown)}" if shown else ""
        kind = ' deletes="yes"' + random.choice(_KINDS)
        own = _CALL.format("f").replace("/>", f"{kind}/>")
        calls = random.sample(range(4), random.choice((0, 1, 2, 2)))
        self._labels = attributed(random, "kh")
        inside = "".join(self._tree(random, call) for call in calls)
        document = f"<r><x>{inside}{own}</x><y>{_CALL.format('g')}</y></r>"
        key = in_fact("key x/e by k trusted", self._labels)
        facts = (key,) if random.random() < 0.1 else ()
        case = Case(document, (parse_pattern(in_query(query, self._labels)),), facts=facts)
        super().__init__(random, random.choice(("kept", "kept", "all")), case)

    def _tree(self, random: Random, call: int) -> str:
        wanted = "<w/>" if random.random() < 0.5 else ""
        inside = random.random()
        if inside < 0.25:
            below = f"<g><h>{random.choice('12')}</h></g>"
        elif inside < 0.4:
            below = f"<g>{_CALL.format(f'c{call}')}</g>"
        else:
            below = ""
        made = f"<e>{wanted}<k>{random.choice('12')}</k>{below}</e>"
        return in_tree(made, self._labels)

    def message(self) -> tuple[Edit, ...]:
        random, tree = self.random, maintained(self.plain).nodes()
        streams = sorted(tree.calls())
        if not streams:
            return ()
        at = (tree.clock + random.choice((0, 0, 1, 1, 2))) / 1_000_000
        pick = random.random()
        if "f" in streams and pick < 0.4:
            what = random.choice(("/e", '/e/k/"1"', '/e/k/"2"', "/e[w]", "/e[g]"))
            what = in_query(what, self._labels)
            return ({"stream": "f", "delete": f"match {what}", "at": at},)
        stream = random.choice(streams)
        if pick < 0.5:
            return ({"stream": stream, "end": True, "at": at},)
        content = (
            f"<h>{random.choice('12')}</h>"
            if stream[0] == "c"
            else self._tree(random, random.randrange(4))
        )
        return ({"stream": stream, "insert": content, "at": at},)
