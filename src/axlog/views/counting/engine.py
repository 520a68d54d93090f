"""The counting engine: one per document, shared by its views.

The engine divides the nodes of a document into sites and blocks. Nodes with many nodes below them,
or with an open call below, are sites: they keep the bags that deltas are joined with. All other
nodes are in blocks, the small subtrees below sites. The engine keeps no state for blocks. It
evaluates a block before and after an update that touches it, and the difference rises through the
sites above it. An insertion therefore costs its own nodes, and an update inside a block at most
`BLOCK` nodes. Both also cost the sites on the path to the root times the rows that change, but
never the size of the document or of the view. Loading takes one pass.

A site is evaluated again, with all nodes below it, when it is renamed, or when the pattern compares
its string value and a node below it changed: its rows cannot be computed from deltas then.

A program whose joins exceed a limit is set aside alone. The relation is noted and has no rows from
then on, and every program that uses it is set aside. The other programs continue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from operator import lt
from typing import TYPE_CHECKING

from axlog.document.delta import Delta
from axlog.document.tree import CALL, DOCUMENT_NODE, ELEMENT, NONE, Tree
from axlog.errors import QueryError
from axlog.evaluate.gathered import Bags, Gathered, Rising, merge
from axlog.evaluate.interpreter import Interpreter
from axlog.evaluate.joins import MOST_ROWS, Bag, Row, add_all
from axlog.evaluate.relevant_nodes import LARGE, elements_above, large_elements
from axlog.evaluate.work import MOST_WORK, Member, Meters
from axlog.query.compile import Program, Relation, compile_pattern, share
from axlog.query.pattern import Pattern
from axlog.views.counting.seen_roots import seen_added, seen_removed
from axlog.views.counting.shared_groups import Arrangements
from axlog.views.counting.site_index import SiteIndex
from axlog.views.counting.sites import Site, SiteRelation
from axlog.views.operators.disk_table import Shelf
from axlog.views.operators.join import JoinRules, Share

if TYPE_CHECKING:
    from axlog.views.counting.maintainer import Showing

BLOCK = 64
"""The largest block, in nodes; a larger subtree has a site at its root."""
REFUSED = 16
"""How many programs that were set aside are remembered after their last view is dropped."""

Load = Callable[[Bag], None]


class CountingEngine:
    """Keeps the root relations of any number of programs over one tree."""

    def __init__(
        self,
        tree: Tree,
        block: int = BLOCK,
        shelf: Shelf | None = None,
        most_rows: int = MOST_ROWS,
        most_work: int = MOST_WORK,
    ) -> None:
        self.tree = tree
        self._most_rows = most_rows
        self._refused: dict[Relation, QueryError] = {}
        self._refused_by: dict[Relation, int] = {}  # number of views that use it
        self._left_refused: list[Relation] = []  # those without views, the oldest first
        self.noted: dict[Relation, QueryError] = {}
        """The relations that exceeded a limit during the current operation."""
        self.on_set_aside: Callable[[], None] = lambda: None
        """Called after programs were set aside."""
        self.block = self._most = block  # in nodes; the results do not depend on it
        self._programs: dict[Relation, list[tuple[int, Member | None]]] = {}
        """The users of each program, numbered as they came; in the order of the first ones."""
        self._users = count()
        self._known: dict[tuple[object, ...], Relation] = {}
        self.shelf = shelf  # the store of the rows; None: in memory
        self.show: Showing | None = None  # what shows the rows of all programs; None: each its own
        new_index = dict if shelf is None else shelf.new_index
        self.meters = Meters(most_work)
        self._rules = JoinRules(new_index, most_rows, self.meters, self.noted)
        self._sites: dict[int, Site] = {}
        self._roots: dict[Relation, SiteRelation] = {}
        self._initial_rows: dict[Relation, Bag] = {}
        self._interpreter = Interpreter(())
        self._before: dict[int, tuple[int, Rising]] = {}
        self._fresh: list[int] = []
        self.left: set[Relation] = set()  # relations of sites that were removed
        self.climbed = 0  # sites that processed deltas since the start
        self.version = 0
        """Changes when programs are added and when sites change."""
        self.rebuilt = 0
        """Changes with the version, except where new programs only added states."""
        self.grown: list[tuple[int, SiteRelation]] = []
        """The states that new programs added since `rebuilt` changed, each with its site."""
        self._waiting: list[tuple[Relation, Load]] = []
        self._is_stale = True  # whether all programs must be evaluated again
        self._delta: Delta | None = None
        self._answered: Delta | None = None
        self._answer: dict[Relation, Bag] = {}
        self.index = SiteIndex(self)
        self.arrangements: Arrangements | None = {}
        """The groups of steps that several views may use; None: they use none together."""

    def keep_shares(self, shares: Iterable[Share]) -> None:
        """Begin with a part of the rows of the document; streams bring no others.

        Called before programs are added.
        """
        self._rules.shares = tuple(shares)

    @property
    def visited(self) -> int:
        """Nodes evaluated since the start."""
        return self._interpreter.visited

    def states_at(self, node: int) -> list[SiteRelation]:
        """The states of a site; for the document node, of the root relations."""
        if node == DOCUMENT_NODE:
            return list(self._roots.values())
        site = self._sites.get(node)  # None if there are no programs
        return [] if site is None else site.states

    def sites(self) -> list[int]:
        """The nodes at which deltas are joined, the document node among them."""
        return list(self._sites)

    def has_sites_below(self, top: int) -> bool:
        """Whether a subtree has a site, so that only the engine may remove it."""
        return any(node in self._sites for node in self.tree.subtree(top))

    def is_descending(self, relation: Relation) -> bool:
        """Whether some edge reaches the relation at any depth."""
        return relation in self._interpreter.descending

    def is_value_sensitive(self, node: int) -> bool:
        """Whether a change below a node can change string values that a relation compares."""
        path = (self._sites.get(each) for each in (node, *self.tree.ancestors(node)))
        return any(site is not None and site.is_value_sensitive for site in path)

    # Programs ------------------------------------------------------------------------------------

    def compiled(self, pattern: Pattern) -> Program:
        """The program of a pattern."""
        return compile_pattern(pattern)

    def plan_of(self, root: Relation) -> tuple[CountingEngine, Relation]:
        """The engine and the root relation that keep the rows of a program."""
        return self, root

    def add(self, program: Program, load: Load, member: Member | None = None) -> Relation:
        """Add a program; `load` receives its first rows before the next update.

        Programs that are added in sequence are evaluated together, in one pass.
        """
        root = share(program.root, self._known)
        self._programs.setdefault(root, []).append((next(self._users), member))
        self.meters.enter(root, member)
        self._waiting.append((root, load))
        self.version += 1
        return root

    def reload(self, loads: Iterable[tuple[Relation, Load]]) -> None:
        """Evaluate all programs again from the document; each load gets the rows of its root."""
        self.build()
        self._waiting += loads
        self._is_stale = True
        self.build()

    def drop(self, root: Relation, member: Member | None = None) -> None:
        """Drop a program and the state that it alone uses."""
        self.build()
        self.meters.leave(root, member)
        if root in self._refused:
            self._refused_by[root] -= 1
            if not self._refused_by[root]:
                self._forget_refused(root)
            return
        users = self._programs[root]
        users.remove(next(user for user in users if user[1] is member))
        if not users:
            del self._programs[root], self._roots[root]
        elif self._is_in_order():
            return
        self._keep_used()

    def _is_in_order(self) -> bool:
        """Whether the programs are in the order of their first users."""
        firsts = [users[0][0] for users in self._programs.values()]
        return all(map(lt, firsts, firsts[1:]))

    def _forget_refused(self, root: Relation) -> None:
        """Forget a program without views, but later: its last reader still gets the error."""
        self._left_refused.append(root)
        if len(self._left_refused) > REFUSED:
            oldest = self._left_refused.pop(0)
            del self._refused[oldest], self._refused_by[oldest]

    def _keep_used(self) -> None:
        """Drop the relations and states that no program uses; put the others in order."""
        self._programs = dict(sorted(self._programs.items(), key=lambda each: each[1][0][0]))
        self._roots = {root: self._roots[root] for root in self._programs if root in self._roots}
        every = dict.fromkeys(r for kept in self._programs for r in kept.walk())
        order = {relation: number for number, relation in enumerate(every)}
        self._known = {key: r for key, r in self._known.items() if r in order}
        self._rules.keep_only(set(order))
        self.meters.keep_only(order)
        for site in self._sites.values():
            # In the order of an engine without the dropped users: snapshots rely on it.
            kept = [state for state in site.states if state.relation in order]
            site.states = sorted(kept, key=lambda state: order[state.relation])
        self._note_rebuilt()

    def refusal(self, root: Relation) -> QueryError | None:
        """The error for which a program was set aside; None if it is kept."""
        self.build()
        return self._refused.get(root)

    def _set_aside(self) -> None:
        """Set the programs aside that use a relation whose joins exceeded a limit."""
        if not self.noted:
            return
        for root in list(self._programs):
            errors = [self.noted[r] for r in root.walk() if r in self.noted]
            if errors:
                self._refused[root] = errors[0]
                self._refused_by[root] = len(self._programs.pop(root))
                self._roots.pop(root, None)
        self.noted.clear()
        self._keep_used()
        self._new_interpreter()  # without their relations
        self.on_set_aside()

    def leave(self, tops: Iterable[int]) -> None:
        """Drop the sites of subtrees that no delta will rise from; their rows above stay."""
        self.build()
        for top in tops:
            for node in self.tree.subtree(top):
                site = self._sites.pop(node, None)
                if site is not None:
                    self._note_rebuilt()
                    self.left.update(s.relation for s in site.states if not s.is_dead)

    def build(self, root: Relation | None = None) -> None:
        """Evaluate the waiting programs in one pass and create the sites.

        Raises the error of `root` if that program was set aside.
        """
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            if not self._extend([root for root, _ in waiting]):
                self._new_interpreter()
                self._sites = {}
                self._begin_work(self._most_rows)
                self._evaluate(DOCUMENT_NODE)
            self._is_stale = False
            first, self._initial_rows = self._initial_rows, {}
            self._end_work()
            self._set_aside()
            for each, load in waiting:
                if each in self._programs:
                    load(first[each])
        if root is not None and root in self._refused:
            raise self._refused[root]

    def _extend(self, roots: list[Relation]) -> bool:
        """Evaluate only the new programs and add their states to the sites.

        False if all programs must be evaluated again: at first, after a reload, and when nodes
        became sites while no program used them.
        """
        if self._is_stale or not self._programs.keys() - roots:
            return False
        chosen = self._choose_sites(DOCUMENT_NODE)
        if not chosen <= self._sites.keys():
            return False
        relations = [relation for root in roots for relation in root.walk()]
        alone = Interpreter(relations, self._most_rows)
        alone.exploded = self.noted
        alone.meters = self.meters
        self.meters.reset()
        self.meters.bags, self.meters.extra = (), self._most_rows
        self.meters.size = lambda: alone.visited
        grown: list[tuple[int, SiteRelation]] = []
        is_same = True  # whether values matter at the same sites as before

        def extend(node: int, below: Gathered, here: Bags) -> None:
            nonlocal is_same
            if node == DOCUMENT_NODE:
                for root in dict.fromkeys(roots):
                    for state in self._state(root, (), below, {}):
                        if root not in self._roots:
                            self._roots[root] = state
                            grown.append((node, state))
                        self._initial_rows[root] = self._first(state, below)
                return
            site = self._sites[node]
            known = {state.relation for state in site.states}
            for relation in alone.candidates(self.tree, node):
                if alone.depends_on_value(relation) and not site.is_value_sensitive:
                    site.is_value_sensitive, is_same = True, False
                if relation not in known:
                    own = alone.own_row(self.tree, node, relation)
                    made = self._state(relation, own, below, here)
                    site.states += made
                    grown.extend((node, state) for state in made)

        alone.evaluate(self.tree, DOCUMENT_NODE, self._sites.keys(), extend)
        self._interpreter.add(relations)
        self._interpreter.visited += alone.visited
        self.version += 1
        self.grown += grown
        if not is_same:
            self._note_rebuilt()
        return True

    def _note_rebuilt(self) -> None:
        """Sites or states have changed: what was derived from them must be derived again."""
        self.version += 1
        self.rebuilt += 1
        self.grown = []

    @property
    def is_built(self) -> bool:
        """Whether the programs have been evaluated, so that updates can be followed."""
        return not self._is_stale

    def _new_interpreter(self) -> None:
        relations = [relation for root in self._programs for relation in root.walk()]
        visited = self._interpreter.visited
        self._interpreter = Interpreter(relations, self._most_rows)
        self._interpreter.visited, self._interpreter.exploded = visited, self.noted

    # An update -----------------------------------------------------------------------------------

    def before(self, delta: Delta) -> None:
        """Evaluate the blocks that the update touches, once for all views."""
        if self._delta is delta:
            return
        self.build()
        self._delta = delta
        blocks, fresh = self._touched(delta)
        self._begin_work()
        parent = self.tree.parent_column
        evaluate = self._interpreter.evaluate
        self._before = {block: (parent[block], evaluate(self.tree, block)) for block in blocks}
        self._fresh = fresh

    def after(self, delta: Delta) -> dict[Relation, Bag]:
        """Evaluate the blocks again and propagate the differences; the deltas of the roots."""
        if self._answered is delta:
            return self._answer
        self._answered = delta
        gone = set(delta.removed)
        rising: dict[int, Gathered] = {}
        for block, (parent, old) in self._before.items():
            for node in self.tree.subtree(block) if block in self._sites else ():
                if self._sites.pop(node, None) is not None:
                    self._note_rebuilt()
            new = Rising() if block in gone else self._evaluate(block)
            self._rise(rising, parent, old, new)
        for block in self._fresh:
            self._rise(rising, self.tree.parent_column[block], Rising(), self._evaluate(block))
        self._before, self._fresh = {}, []
        self._answer = self.propagate(rising)
        if self._interpreter.meters is not None:
            self._end_work()
        return self._answer

    def propagate(self, rising: dict[int, Gathered]) -> dict[Relation, Bag]:
        """Carry deltas from sites to the document node, the deepest site first.

        A program that exceeds a limit on the way is set aside: the update is applied already, and
        the views of other programs must follow it.
        """
        answers = self._propagated(rising)
        return self.close_update(answers) if self.meters.used or self.noted else answers

    def close_update(self, answers: dict[Relation, Bag]) -> dict[Relation, Bag]:
        """Set the views aside that exceeded a limit during the update; the answers without them."""
        over = self.meters.over_budget()
        self._end_work()
        if self.noted:
            self._set_aside()
            answers = {root: bag for root, bag in answers.items() if root in self._programs}
        for member, error in over:
            member.refuse(error)
        if over:
            self.on_set_aside()
        return answers

    def _begin_work(self, extra: int = 0) -> None:
        """Start to count work; the allowance is proportional to the nodes evaluated."""
        visited, interpreter = self.visited, self._interpreter
        self.meters.reset()
        self.meters.extra = extra
        self.meters.bags = ()
        self.meters.size = lambda: interpreter.visited - visited
        interpreter.meters = self.meters

    def _end_work(self) -> None:
        self.meters.extra = 0
        self.meters.size = lambda: 0
        self._interpreter.meters = None
        self.meters.reset()

    def _propagated(self, rising: dict[int, Gathered]) -> dict[Relation, Bag]:
        parent = self.tree.parent_column
        descending = self._interpreter.descending
        while rising:
            node = max(rising, key=self._depth) if len(rising) > 1 else next(iter(rising))
            below = rising.pop(node)
            self.climbed += 1
            if node == DOCUMENT_NODE:
                return self._answers(below)
            here = self._sites[node].update(below, self.noted)
            everywhere = dict(below.descendants)
            for relation, bag in here.items():
                if relation in descending:
                    everywhere[relation] = dict(everywhere.get(relation, {}))
                    add_all(everywhere[relation], bag)
            if here or any(everywhere.values()):
                above = rising.setdefault(parent[node], Gathered())
                merge(above.children, here)
                merge(above.descendants, everywhere)
        return {}

    def _answers(self, below: Gathered) -> dict[Relation, Bag]:
        noted = self.noted
        found = {root: state.try_update(below, {}, noted) for root, state in self._roots.items()}
        return {root: bag for root, bag in found.items() if bag}

    # Blocks and sites ----------------------------------------------------------------------------

    def _touched(self, delta: Delta) -> tuple[list[int], list[int]]:
        """The existing blocks that change, and the new subtrees directly below sites."""
        blocks: dict[int, None] = {}
        fresh: list[int] = []
        for root in seen_removed(self._interpreter, self._sites, delta):
            if root in self._sites or self._interpreter.sees(self.tree, root, self._most):
                blocks[self._block(root) or root] = None
        for change in delta.changed:
            blocks[self._block(change.node, is_changed=True) or change.node] = None
        for root in seen_added(self._interpreter, self._most, delta):
            block = self._block(self.tree.parent_column[root])
            if block is None:
                fresh.append(root)
            elif self._interpreter.sees(self.tree, root, self._most):
                blocks[block] = None
        outermost = [b for b in blocks if not any(a in blocks for a in self.tree.ancestors(b))]
        kept = set(outermost)
        new = [r for r in fresh if not any(a in kept for a in self.tree.ancestors(r))]
        return outermost, new

    def _block(self, node: int, is_changed: bool = False) -> int | None:
        """The subtree to evaluate for a change at or below a node; None if it is a site."""
        sites, parent = self._sites, self.tree.parent_column
        block = node if is_changed and node in sites else None
        while node != DOCUMENT_NODE:
            above = parent[node]
            site = sites.get(node)
            if (site is None and above in sites) or (site is not None and site.is_value_sensitive):
                block = node
            node = above
        return block

    def _evaluate(self, top: int) -> Rising:
        """Evaluate a subtree and create the sites in it."""
        chosen = self._choose_sites(top)
        if not chosen:
            return self._interpreter.rising(self.tree, top)
        self._note_rebuilt()
        return self._interpreter.evaluate(self.tree, top, chosen, self._set_up)

    def _choose_sites(self, top: int) -> set[int]:
        """The nodes of a subtree with many nodes below them, or with an open call below."""
        tree = self.tree
        if top == DOCUMENT_NODE and len(tree) > LARGE:
            found = large_elements(tree, self._most)
            if found is not None:
                return {*found, *elements_above(tree, tree.calls().values()), DOCUMENT_NODE}
        kinds, parent = tree.kind_column, tree.parent_column
        nodes = list(tree.subtree(top))
        if len(nodes) <= self._most and not tree.calls_by_node and parent[top] > DOCUMENT_NODE:
            return set()
        sizes: dict[int, int] = {}
        with_call: set[int] = set()
        chosen: set[int] = set()
        for node in reversed(nodes):
            above = parent[node]
            size = sizes.pop(node, 0) + 1
            sizes[above] = sizes.get(above, 0) + size
            if kinds[node] == CALL or node in with_call:
                with_call.add(above)
            if kinds[node] == ELEMENT and (
                size > self._most or node in with_call or above == DOCUMENT_NODE
            ):
                chosen.add(node)
        if top == DOCUMENT_NODE:
            chosen.add(DOCUMENT_NODE)
        return chosen

    def _set_up(self, node: int, below: Gathered, here: Bags) -> None:
        if node == DOCUMENT_NODE:
            self._sites[node] = Site((), False)
            states = [state for r in self._programs for state in self._state(r, (), below, {})]
            self._roots = {state.relation: state for state in states}
            self._initial_rows = {r: self._first(s, below) for r, s in self._roots.items()}
        else:
            self._sites[node] = self._make_site(node, below, here)

    def _first(self, state: SiteRelation, below: Gathered) -> Bag:
        try:
            return self._rules.own_rows(state.relation.columns, state.all_rows(below, {}))
        except QueryError as error:
            self.noted[state.relation] = error.kept()
            return {}

    def _state(
        self, relation: Relation, own: Row, below: Gathered, here: Bags
    ) -> list[SiteRelation]:
        """The state of a relation at a site; none if its joins exceed a limit."""
        if relation in self.noted:
            return []
        try:
            return [SiteRelation(relation, self._rules, own, below, here)]
        except QueryError as error:
            self.noted[relation] = error.kept()
            return []

    def _make_site(self, node: int, below: Gathered, here: Bags) -> Site:
        interpreter = self._interpreter
        relations = interpreter.candidates(self.tree, node)
        sensitive = any(interpreter.depends_on_value(relation) for relation in relations)
        states: list[SiteRelation] = []
        for relation in relations:
            own = interpreter.own_row(self.tree, node, relation)
            states += self._state(relation, own, below, here)
        return Site(states, sensitive)

    def _rise(self, rising: dict[int, Gathered], parent: int, old: Rising, new: Rising) -> None:
        if parent == NONE:
            return
        at = rising.setdefault(parent, Gathered())
        for into, after, before in (
            (at.children, new.here, old.here),
            (at.descendants, new.everywhere, old.everywhere),
        ):
            merge(into, after)
            for relation, bag in before.items():
                add_all(into.setdefault(relation, {}), bag, -1)
        at.children = _without_empty(at.children)
        at.descendants = _without_empty(at.descendants)
        if not at.children and not at.descendants:
            del rising[parent]

    def _depth(self, node: int) -> int:
        return sum(1 for _ in self.tree.ancestors(node))


def _without_empty(bags: Bags) -> Bags:
    return {relation: bag for relation, bag in bags.items() if bag}
