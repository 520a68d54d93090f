"""Which joins give the `never` changes of members of families, and how.

    texts of one part, whose rows wait    those of the general view, with their texts
    durations; numbers of this part       judged for each member (`views/family_join.py`)
    values of parts whose rows wait       the same, if each part has a key that the view shows, or
                                          if the user asks for shared plans: what ends is judged for
                                          all members
    three and more parts, `not`           judged for each member (`views/family_watch.py`), also
                                          where time brings the rows ("overdue")

The join of a view alone then gives the same changes. Other views stay alone, and so do those that
give a declared key its value.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from axlog.future.clock_outlook import lower_bounds
from axlog.future.keys import Key, keyed_relations
from axlog.query.generalize import Duration, Parameter, StepParameter
from axlog.query.query import Query
from axlog.views.counting.join_prospects import AnyProspects, JoinProspects
from axlog.views.counting.prospects import Prospects
from axlog.views.family import FamilyCounting
from axlog.views.family_join import FamilyJoin, shows_each_once
from axlog.views.family_watch import FamilyWatch


def reports(prospects: AnyProspects, kept: FamilyCounting, is_requested: bool) -> bool:
    """Return whether a join gives the `never` changes of members.

    `is_requested`: whether the user asks for shared plans.
    """
    if kept.has_steps and (isinstance(prospects, Prospects) or not kept.awaits_time):
        return False
    if gives_keys(kept, prospects.waiting.tree.facts):
        return False
    if isinstance(prospects, Prospects):
        pays_off = is_requested or kept.is_settled or shows_each_once(kept, prospects.waiting.pair)
        is_judged = pays_off and _are_judged(prospects, kept)
        return is_judged or _reporting_part(prospects, kept) is not None
    return _are_values(kept, [part.columns for part in prospects.waiting.inputs.parts])


def gives_keys(kept: FamilyCounting, keys: Sequence[Key]) -> bool:
    """Return whether members give a declared key its value: a join does not decide them alone."""
    named = {f"${each.variable}" for each in kept.parameters if isinstance(each, Parameter)}
    found = keyed_relations(kept.root, keys).values() if keys else ()
    return any(column in named for pairs in found for column, _ in pairs)


def bounds_one_time(kept: FamilyCounting) -> bool:
    """Return whether members compare a single time with a constant: each is judged alone."""
    durations = [each for each in kept.parameters if isinstance(each, Duration)]
    return any(len({name for _, name in each.constraint.terms}) == 1 for each in durations)


def may_report(prospects: AnyProspects, query: Query) -> bool:
    """Return whether a join gives the `never` changes of a view alone, with this query.

    `prospects`: those of the pattern. With steps, only some joins give them (`ClockProspects`).
    """
    is_two = isinstance(prospects, Prospects)
    return not query.steps or (not is_two and lower_bounds(query) is not None)


def join_of_members(
    prospects: AnyProspects, kept: FamilyCounting, is_requested: bool
) -> FamilyJoin | FamilyWatch | None:
    """Return what judges rows for each member; None: nothing does, or it is not needed."""
    if not reports(prospects, kept, is_requested):
        return None
    known = kept.join
    if isinstance(known, FamilyJoin | FamilyWatch) and known.waiting is prospects.waiting:
        return known
    if isinstance(prospects, JoinProspects):
        return FamilyWatch(kept, prospects.waiting)
    part = _reporting_part(prospects, kept)
    if part is not None and all(parameter.is_text for parameter in kept.parameters):
        return None
    return FamilyJoin(kept, prospects.waiting, part)


def _are_values(
    kept: FamilyCounting, parts: Sequence[Sequence[str]], bounds: Container[object] = ()
) -> bool:
    """Return whether each parameter is compared with a value of one part, given their columns.

    Those of steps are not compared with rows of the join. `bounds`: durations may be among these.
    """
    return all(
        isinstance(each, StepParameter)
        or (isinstance(each, Duration) and each.constraint in bounds)
        or (isinstance(each, Parameter) and sum(f"${each.variable}" in p for p in parts) == 1)
        for each in kept.parameters
    )


def _are_judged(prospects: Prospects, kept: FamilyCounting) -> bool:
    """Return whether what ends at a two-way join can be judged for each member.

    The shared join must drop a row when the join of a member alone does. It does not, where key
    values are forgotten that rows of other members still show.
    """
    waiting = prospects.waiting
    sides = waiting.pair.sides
    is_keyed = any(side.key is not None for side in sides)
    bounds = () if is_keyed else [test.constraint for test in waiting.pair.relation.tests]
    parts = [side.columns for side in sides]
    if waiting.pair.both_until is not None or not _are_values(kept, parts, bounds):
        return False
    named = {f"${parameter.variable}" for parameter in kept.parameters}
    return not any(
        side.key is not None and waiting.seen[part] is None and not named.isdisjoint(side.columns)
        for part, side in enumerate(sides)
    )


def _reporting_part(prospects: Prospects, kept: FamilyCounting) -> int | None:
    """Return the part of a join whose rows give the `never` changes of members; None: none does.

    All parameters must be values of one part of a two-way join, or durations between both parts.
    The rows of the other part must not wait for later ones: what rules such a row out for one
    member does not rule it out for another. Rows that wait for their own instant only give none.
    """
    if prospects.waiting.pair.both_until is not None:
        return None
    pair, named = prospects.waiting.pair, set[str]()
    tested = {test.constraint for test in pair.relation.tests}
    for parameter in kept.parameters:
        if isinstance(parameter, Duration):
            if parameter.constraint not in tested:
                return None
        else:
            named.add(f"${parameter.variable}")
    for part, (side, other) in enumerate((pair.sides, pair.sides[::-1])):
        is_idle = other.is_brief or other.is_referring
        if named <= set(side.columns) and named.isdisjoint(other.columns) and is_idle:
            return part
    return None
