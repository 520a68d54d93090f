"""The counting maintainer of a query with steps: deltas of the root relation through operators.

    signed bag of bindings -> values of the pattern's outputs -> operators -> rows of the view

The rows of the pattern are not kept, unless they show ids, values or contents: a change below a
node must find the rows that show it, and a deleted node has no id any more. Messages that become no
nodes take the same path.

A `not` about the clock has a root relation of its own, whose rows block rows of the view
(`SideRows`). The deltas of all roots pass the operators together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from axlog.document.delta import Delta
from axlog.document.tree import Tree
from axlog.errors import QueryError, StoreError
from axlog.evaluate.joins import Bag, add
from axlog.query.compile import Relation, compile_pattern
from axlog.query.pattern import Pattern
from axlog.views.change import Change, Row, Values
from axlog.views.counting.engine import CountingEngine
from axlog.views.counting.maintainer import Counting, Showing
from axlog.views.counting.shared_groups import join_arrangement, leave_arrangement, users_of
from axlog.views.operators.group_generator import Put, Shift, Shown
from axlog.views.step_bounds import bounded
from axlog.views.step_cut import FinalSteps, LocalSteps, Owns, StepCut
from axlog.views.step_rows import GroupRows, ShownGroups, Stepping, StepRows
from axlog.views.value_codec import restored_row, saved_row


class SteppedCounting(Counting):
    """Keeps the rows of a query with steps by derivation counts and operators."""

    _shift: Shift | None
    _put: Put | None  # `_shift` does the same as this one

    def __init__(
        self,
        tree: Tree,
        stepping: Stepping,
        engine: CountingEngine | None = None,
        work: int | None = None,
    ) -> None:
        self.stepping = stepping
        self._owns: Owns | None = None
        self._final: FinalSteps | None = None
        self._parts: tuple[Owns, ...] = ()
        self._start(tree.clock)
        self.sides: list[SideRows] = []
        pattern = stepping.key.pattern
        if not stepping.rejects:
            pattern = bounded(pattern, stepping.key.steps)
        super().__init__(tree, pattern, engine, work)
        self.sides = [SideRows(tree, pattern) for pattern in stepping.sides]
        for number, side in enumerate(self.sides):
            load = partial(self._load_side, number)
            side.root = self.engine.add(side.program, load, self)
        self._whole: dict[int, Bag] = {}

    # Groups that other views have, too ------------------------------------------------------------

    @property
    def group_key(self) -> tuple[Any, ...] | None:
        """What the first group of the steps depends on; None: it is this view's own."""
        engine, steps = self.engine, self.chain.steps_to_group()
        if steps is None or engine.arrangements is None or engine.shelf is not None:
            return None
        if self._final is not None or self._owns is not None or self._show.needs_nodes:
            return None
        return self.root, self.stepping.key.pattern.columns, steps

    def _share_group(self) -> None:
        """Use the group of other views, if it has the same state."""
        key, known = self.group_key, self.engine.arrangements
        if key is not None and known is not None:
            self.chain.replace_group(lambda own: join_arrangement(known, key, own, self))
            self._path = self.chain.group_path(self.stepping.key)
            if self._path is not None and isinstance(self._groups, ShownGroups):
                self._groups.group = self._path.group
        self._generate_shift()

    def _generate_shift(self) -> None:
        """Write one function from a binding to the changes, if the view shows its groups."""
        path, key, picked = self._path, self.stepping.key, self._show.picked
        is_shown = path is not None and isinstance(self._groups, ShownGroups)
        if path is None or not is_shown or picked is None or not path.group.keys or key.is_all:
            return
        if path.group.is_alone and key.positions == tuple(range(len(path.group.keys))):
            self._shift = path.group.shift(Shown(picked, path.before, key.columns))
            self._put = path.group.put

    def group_users(self) -> list[object]:
        """The maintainers that use the first group of the steps."""
        key, known = self.group_key, self.engine.arrangements
        return [] if key is None or known is None else users_of(known, key)

    def _leave_group(self) -> None:
        key, known = self.group_key, self.engine.arrangements
        if key is not None and known is not None:
            leave_arrangement(known, key, self)

    def _start(self, clock: int) -> None:
        self.chain = self.stepping.chain(self.stepping.key.pattern.columns, clock)
        key, first = self.stepping.key, self._first()
        self._path = self.chain.group_path(key)
        self._shift = self._put = None
        self._groups: GroupRows | None = None
        if self._path is not None:
            is_whole = self._path.after is None
            self._groups = ShownGroups(key, self._path.group) if is_whole else GroupRows(key, first)
        self.kept = StepRows(key, first) if self._groups is None else self._groups

    def _first(self) -> Bag:
        """The rows without any input."""
        return self.chain.first()

    def _load(self, first: Bag) -> None:
        values = self._values_of(first)
        if self._final is not None:
            self._final.load(values, self._parts)
        elif self._owns is not None:  # the final steps start with the rows of all parts
            self.chain.apply({row: count for row, count in values.items() if self._owns(row)})
        else:
            self.kept.take(self.chain.apply(values, [{} for _ in self.sides]))
            self._share_group()

    def _load_side(self, number: int, first: Bag) -> None:
        moved: list[Bag] = [{} for _ in self.sides]
        moved[number] = self.sides[number].values_of(first)
        self.kept.take(self.chain.apply({}, moved))

    @property
    def roots(self) -> tuple[Relation, ...]:
        return (self.root, *(side.root for side in self.sides))

    def reloads(self) -> list[tuple[Relation, Callable[[Bag], None]]]:
        return [(root, partial(self._reload, n)) for n, root in enumerate(self.roots)]

    def _reload(self, number: int, whole: Bag) -> None:
        self._whole[number] = whole
        if len(self._whole) == len(self.roots):
            every, self._whole = self._whole, {}
            self._recount([every[n] for n in range(len(every))])

    def expect_insertions(self) -> None:
        is_monotone = not any(relation.absences for relation in self.root.walk())
        if is_monotone and not self._show.needs_nodes:
            self.engine.build(self.root)
            self.chain.expect_insertions()

    # Parts ----------------------------------------------------------------------------------------

    def run_local(self, cut: StepCut, owns: Owns) -> LocalSteps:
        """Run the steps of one part only; `owns`: its rows of the initial document.

        To be called before the first rows are computed.
        """
        key, text = self.stepping.key, self.stepping.text
        local = LocalSteps(key, cut, text)
        self.chain, self.kept, self._path = cut.local_chain(key.pattern.columns, text), local, None
        self._owns = owns
        return local

    def run_final(self, cut: StepCut, parts: Iterable[Owns]) -> FinalSteps:
        """Run the steps over all parts only; what the parts give passes by `FinalSteps.merge`."""
        final = FinalSteps(self.stepping.key, cut, self.stepping.text)
        self.chain, self.kept, self._path = final.chain, final.rows, None
        self._final, self._parts = final, tuple(parts)
        return final

    def recount(self, whole: Bag) -> None:
        """Compute all rows again from the whole document. They must be the same."""
        self._recount([whole])

    def _recount(self, whole: Sequence[Bag]) -> None:
        before = self.kept.counts
        self._leave_group()
        self._start(self.chain.clock)
        self._counts.clear()
        self._values.clear()
        self._shown_by.clear()
        for side in self.sides:
            side.clear()
        self.take_all(whole)
        if self.kept.counts != before:
            raise AssertionError("filters have changed the rows of a view")  # law 5
        self._share_group()

    def rows(self) -> Iterable[Row]:
        self.engine.build(self.root)
        return self.kept.rows()

    def size(self) -> int:
        self.engine.build(self.root)
        return len(self.kept)

    @property
    def has_rows(self) -> bool:
        return self.size() > 0

    def after(self, delta: Delta) -> list[Change]:
        answers = self.engine.after(delta)
        if self.broken is not None:  # just now
            return []
        touched = self._touched.union(self._above(delta)) if self._show.reads else ()
        others = [side.values_of(answers.get(side.root, {})) for side in self.sides]
        return self._take_read(answers.get(self.root, {}), touched, others)

    def take_read(self, moved: Bag, touched: set[int]) -> list[Change]:
        return self._take_read(moved, touched, ())

    def _take_read(self, moved: Bag, touched: Iterable[int], others: Sequence[Bag]) -> list[Change]:
        values = self._values_of(moved)
        for node in touched:
            for binding in tuple(self._shown_by.get(node, ())):
                self._read_again(binding, values)
        return self.kept.take(self.chain.apply(values, others))

    def take(self, moved: Bag) -> list[Change]:
        path, groups, pick = self._path, self._groups, self._show.pick
        if path is not None and groups is not None and len(moved) == 1 and pick is not None:
            ((binding, count),) = moved.items()
            if self._shift is not None and path.group.put is self._put:
                return self._shift(binding, count)
            row: Any = pick(binding)
            if path.before is not None:
                row = path.before(row)
                if row is None:
                    return []
            old, new = path.group.put(row, count)
            if old is new:
                return []
            if path.after is not None:
                old = None if old is None else path.after(old)
                new = None if new is None else path.after(new)
                if old == new:
                    return []
            return groups.move(old, new)
        return self.kept.take(self.chain.apply(self._values_of(moved)))

    def take_all(self, moved: Sequence[Bag]) -> list[Change]:
        first, *others = moved
        values = [side.values_of(each) for side, each in zip(self.sides, others, strict=True)]
        return self.kept.take(self.chain.apply(self._values_of(first), values))

    def pass_time(self, clock: int) -> list[Change]:
        self.engine.build(self.root)
        return self.kept.pass_time(self.chain, clock)

    def next_moment(self) -> int | None:
        self.engine.build(self.root)
        return self.chain.next_moment()

    @property
    def broken(self) -> QueryError | None:
        refusals = (self.engine.refusal(side.root) for side in self.sides)
        return super().broken or next((each for each in refusals if each is not None), None)

    def close(self) -> None:
        self._leave_group()
        super().close()
        for side in self.sides:
            self.engine.drop(side.root, self)

    def _values_of(self, moved: Bag) -> Bag:
        """A delta of bindings as a delta of the values that the pattern shows."""
        show, found = self._show.values, dict[Any, int]()
        if not self._show.needs_nodes:
            for binding, count in moved.items():
                add(found, show(binding), count)
            return found
        counts = self._counts
        for binding, count in moved.items():
            old = counts.get(binding, 0)
            if not old:
                self._enter(binding)
            add(found, self._values[binding], count)
            if old + count:
                counts[binding] = old + count
            else:
                del counts[binding]
                self._leave(binding)
        return found

    def _read_again(self, binding: Any, found: Bag) -> None:
        """Add the difference that a changed value of a node makes."""
        before, after = self._values[binding], self._show.values(binding)
        if before != after:
            self._values[binding] = after
            add(found, before, -self._counts[binding])
            add(found, after, self._counts[binding])

    def operators(self) -> tuple[str, ...]:
        return (*super().operators(), *self.chain.lines())

    # State without the document -------------------------------------------------------------------

    def state(self) -> tuple[Any, ...]:
        """The state of the operators and the rows, for documents that keep no messages."""
        self.engine.build(self.root)
        tables = tuple(
            (form, tuple(tuple(map(saved_row, table)) for table in each))
            for form, each in self.chain.snapshot()
        )
        return tables, tuple(map(saved_row, self.kept.counts.items()))

    def restore(self, saved: Sequence[Any]) -> None:
        """Replace the state of the operators and the rows."""
        self.engine.build(self.root)
        if self.group_key is not None:
            self._leave_group()
            self._start(self.chain.clock)  # with a group of its own
        try:
            tables, rows = saved
            self.chain.restore(
                [
                    (form, tuple(tuple(map(restored_row, table)) for table in each))
                    for form, each in tables
                ]
            )
            self.kept.counts = dict(map(restored_row, rows))
        except ValueError:
            raise StoreError(
                "AX872",
                "the saved state is of another query",
                advice="run the version that wrote it, or start again without this state",
            ) from None
        self._share_group()


class SideRows:
    """The rows of a root relation that block rows of a view."""

    root: Relation

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        self.program = compile_pattern(pattern)
        self._show = Showing(tree, self.program)
        self._known: dict[
            Any, tuple[Values, int]
        ] = {}  # where rows show ids: deleted nodes have none

    def clear(self) -> None:
        """Forget the rows."""
        self._known.clear()

    def values_of(self, moved: Bag) -> Bag:
        """A delta of bindings as a delta of the values that the pattern shows."""
        found: dict[Any, int] = {}
        for binding, count in moved.items():
            if not self._show.needs_nodes:
                add(found, self._show.values(binding), count)
                continue
            values, old = self._known.get(binding) or (self._show.values(binding), 0)
            add(found, values, count)
            if old + count:
                self._known[binding] = values, old + count
            else:
                self._known.pop(binding, None)
        return found
