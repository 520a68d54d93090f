"""The table of laws for the fuzzer: how a case is drawn, and what must hold for it.

The numbers are those of docs/design.md; laws with a name are parts of them that have their own
cases. `share` is the number of this law's cases in ten thousand when all laws run together (`python
-m lab fuzz --law all`): cheap laws get more, so that a million cases can be run.

Not here: law 7 on Spark, which needs a Spark session (`spark_law.py`, `test_spark_kills`), and
Saxon's and BaseX's answers for law 3, which the conformance tests compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from lab.laws.absence_cases import (
    make_absence_case,
    make_reference_case,
    smaller_absences,
)
from lab.laws.absence_law import check_absence
from lab.laws.aggregates_cases import make_aggregates_case, smaller_aggregates
from lab.laws.aggregates_law import check_aggregates
from lab.laws.algebra_law import check_algebra, make_algebra_case, smaller_algebra
from lab.laws.bytes_law import check_bytes, make_bytes_case, smaller_bytes
from lab.laws.clock_cases import make_clock_case, smaller_clock
from lab.laws.clock_filter_law import (
    check_clock_filter,
    make_clock_filter_case,
    smaller_clock_filter,
)
from lab.laws.clock_law import check_clock
from lab.laws.clock_truth_law import (
    check_clock_truth,
    make_clock_truth_case,
    smaller_clock_truth,
)
from lab.laws.constraints_cases import make_constraints_case, smaller_constraints
from lab.laws.constraints_law import check_constraints
from lab.laws.containment_law import check_pair, make_pair
from lab.laws.damage_law import check_damage_case, make_damage_case
from lab.laws.differential_cases import make_differential_case
from lab.laws.differential_law import check_differential, smaller_differential
from lab.laws.envelope_law import check_envelope
from lab.laws.exact_law import check_batches, check_exact, check_idle
from lab.laws.fallen_law import check_fallen
from lab.laws.feeds_law import check_feed, make_feed_case, smaller_feeds
from lab.laws.filters_law import check_filter, make_filter_case
from lab.laws.finished_law import (
    check_finished,
    make_absent_case,
    make_finished_case,
    make_keyed_case,
)
from lab.laws.fuzz_cases import less_of, make_case, make_deaf_case
from lab.laws.ground_law import check_ground, make_ground_case, smaller_ground
from lab.laws.ids_law import check_ids, make_ids_case
from lab.laws.layouts_law import check_layouts, make_layouts_case, smaller_layouts
from lab.laws.lists_law import check_lists, make_lists_case
from lab.laws.native_scalars_law import check_native_scalars, make_native_scalars_case
from lab.laws.nested_cases import make_nested_case
from lab.laws.never_law import check_never, make_never_case
from lab.laws.operators_law import (
    OperatorsCase,
    check_operators,
    make_operators_case,
    smaller_operators,
)
from lab.laws.outlook_cases import smaller_cases
from lab.laws.outlook_law import check_outlook, make_small_case
from lab.laws.parsers_law import check_mangled, make_mangled, smaller_mangled
from lab.laws.promises_law import check_promises, make_promises_case, smaller_promises
from lab.laws.prospects_law import check_prospects, make_prospects_case, smaller_prospects
from lab.laws.records_law import check_records, make_records_case
from lab.laws.relational_law import check_relational, make_relational_case, smaller_relational
from lab.laws.replace_law import check_replace, make_replace_case, smaller_replace
from lab.laws.replace_truth_law import (
    check_replace_truth,
    make_replace_truth_case,
    smaller_replace_truth,
)
from lab.laws.replay_law import check_replay, make_replay_case, smaller_replays
from lab.laws.rows_law import check_rows, make_rows_case, smaller_rows
from lab.laws.saxon_cases import make_accepted_case, make_saxon_case
from lab.laws.saxon_law import check_saxon
from lab.laws.scalars_cases import make_scalars_case, smaller_scalars
from lab.laws.scalars_law import check_scalars
from lab.laws.shared_cases import make_shared_case, smaller_shared
from lab.laws.shared_law import check_shared
from lab.laws.statements_cases import make_statements_case, smaller_statements
from lab.laws.statements_law import check_statements
from lab.laws.swept_law import SweptCase, check_swept, make_swept_case, smaller_swept
from lab.laws.systems_law import check_systems, make_systems_case, smaller_systems
from lab.laws.threshold_never_law import (
    check_threshold_never,
    make_threshold_never_case,
    smaller_threshold_never,
)
from lab.laws.thresholds_cases import make_threshold_case, smaller_thresholds
from lab.laws.thresholds_law import check_thresholds
from lab.laws.truth_law import check_truth
from lab.laws.tuning_law import check_tuning, make_tuning_case
from lab.laws.values_law import check_values, make_values_case, smaller_values
from lab.laws.xpath_law import check_xpath, make_xpath_case, smaller_documents
from lab.laws.xquery_cases import make_xquery_case, smaller_xquery
from lab.laws.xquery_law import check_xquery


@dataclass(frozen=True, slots=True)
class Law:
    """One law: its statement, its cases, its check, and the reduction of a failing case."""

    says: str
    make: Callable[[Random], Any]
    check: Callable[[Any], object]
    share: int
    cuts: Callable[[Any], Iterator[Any]] | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A case that is drawn while it is checked; it consists of a seed only."""

    seed: int

    @staticmethod
    def make(random: Random) -> Drawn:
        return Drawn(random.getrandbits(48))


def _make_buckets(random: Random) -> Any:
    from lab.laws.buckets_law import make_buckets_case  # needs the extra `spark`

    return make_buckets_case(random)


def _check_buckets(case: Any) -> None:
    from lab.laws.buckets_law import check_buckets

    check_buckets(case)


def _smaller_buckets(case: Any) -> Iterator[Any]:
    from lab.laws.buckets_law import smaller_buckets

    return smaller_buckets(case)


def _make_collected(random: Random) -> Any:
    pick = random.random()
    if pick < 0.15:
        return make_absent_case(random)
    if pick < 0.4:
        return make_keyed_case(random)
    return make_finished_case(random) if pick < 0.7 else make_swept_case(random)


def _check_collected(case: Any) -> Any:
    return check_swept(case) if isinstance(case, SweptCase) else check_finished(case)


def _smaller_collected(case: Any) -> Iterator[Any]:
    return smaller_swept(case) if isinstance(case, SweptCase) else iter(())


def _make_operators(random: Random) -> Any:
    return make_operators_case(random) if random.random() < 0.3 else make_relational_case(random)


def _check_operators(case: Any) -> None:
    (check_operators if isinstance(case, OperatorsCase) else check_relational)(case)


def _smaller_operators(case: Any) -> Iterator[Any]:
    smaller = smaller_operators if isinstance(case, OperatorsCase) else smaller_relational
    return smaller(case)


LAWS: dict[str, Law] = {
    "1": Law("rows, counts and changes are exact", make_case, check_exact, 600, less_of),
    "2": Law("batches tell the net difference", make_case, check_batches, 80, less_of),
    "3": Law("XPath selects the nodes of lxml", make_xpath_case, check_xpath, 1643,
             smaller_documents),
    "4": Law("truth and relevance by brute force", make_small_case, check_outlook, 40,
             smaller_cases),
    "5": Law("tuning changes nothing", make_tuning_case, check_tuning, 80, less_of),
    "6": Law("ids never change and say what the tree says", make_ids_case, check_ids, 1400),
    "7": Law("killed and restarted is undisturbed", make_replay_case, check_replay, 80,
             smaller_replays),
    "8": Law("idle updates cost nothing", make_deaf_case, check_idle, 120, less_of),
    "11": Law("an operator's delta is the difference of its outputs", _make_operators,
              _check_operators, 200, _smaller_operators),
    "aggregates": Law("computed, grouped and ordered rows are those of the definition and SQLite",
                      make_aggregates_case, check_aggregates, 40, smaller_aggregates),
    "clock": Law("rows about the clock are those of the definition at every moment",
                 make_clock_case, check_clock, 100, smaller_clock),
    "clock-filter": Law("the output of the clock filter is its definition at every moment",
                        make_clock_filter_case, check_clock_filter, 300, smaller_clock_filter),
    "clock-truth": Law("truth and possible rows about the clock by brute force",
                       make_clock_truth_case, check_clock_truth, 10, smaller_clock_truth),
    "xquery": Law("items equal Saxon's answer after every update", make_xquery_case, check_xquery,
                  4, smaller_xquery),
    "nested": Law("queries with queries inside are kept incrementally, and equal Saxon's answer",
                  make_nested_case, check_xquery, 2, smaller_xquery),
    "statements": Law("statements do what BaseX does, and so do copies", make_statements_case,
                      check_statements, 40, smaller_statements),
    "saxon": Law("views by Saxon are Saxon's answer after every update", make_saxon_case,
                 check_saxon, 4, smaller_xquery),
    "accepted": Law("queries of the law saxon that axlog keeps itself equal Saxon's answer",
                    make_accepted_case, check_xquery, 2, smaller_xquery),
    "algebra": Law("laws 1 and 2 for the algebra, on trees", make_algebra_case, check_algebra, 100,
                   smaller_algebra),
    "differential": Law("the whole API gives the same rows and changes", make_differential_case,
                        check_differential, 30, smaller_differential),
    "envelope": Law("changes merged by key are the rows", make_case, check_envelope, 40, less_of),
    "records": Law("laws 1 and 2 for sibling and reverse axes", make_records_case, check_records,
                   200, less_of),
    "replace": Law("messages that replace others are as trees replaced", make_replace_case,
                   check_replace, 60, smaller_replace),
    "replace-truth": Law("truth by brute force where messages replace others",
                         make_replace_truth_case, check_replace_truth, 40, smaller_replace_truth),
    "shared": Law("a view that shares a plan has what it has alone", make_shared_case,
                  check_shared, 40, smaller_shared),
    "parsers": Law("mangled input is read or refused", make_mangled, check_mangled, 400,
                   smaller_mangled),
    "rows": Law("all evaluators find what the definitions find", make_rows_case, check_rows, 1540,
                smaller_rows),
    "lists": Law("reduced, aggregated, integrated lists", make_lists_case, check_lists, 1420),
    "filters": Law("filters find what evaluation finds", make_filter_case, check_filter, 200),
    "bytes": Law("messages matched on their bytes are as parsed", make_bytes_case,
                 check_bytes, 200, smaller_bytes),
    "layouts": Law("messages read by their layout are as parsed", make_layouts_case,
                   check_layouts, 200, smaller_layouts),
    "feeds": Law("a feed's changes are told, all and only", make_feed_case, check_feed, 60,
                 smaller_feeds),
    "containment": Law("containment on all small documents", make_pair, check_pair, 60),
    "truth": Law("truth as data arrives", Drawn.make, lambda case: check_truth(Random(case.seed)),
                 25),
    "never": Law("never of joins is what its definition says", make_never_case, check_never, 10),
    "fallen": Law("never of any view is what its definition says", Drawn.make,
                  lambda case: check_fallen(Random(case.seed)), 25),
    "prospects": Law("the future of joins, read off their tables, is what its definition says",
                     make_prospects_case, check_prospects, 10, smaller_prospects),
    "systems": Law("a view of a system is NEVER exactly if no run gives it a row",
                   make_systems_case, check_systems, 20, smaller_systems),
    "promises": Law("explain promises only what happens", make_promises_case, check_promises, 20,
                    smaller_promises),
    "constraints": Law("truth under constraints over times and values", make_constraints_case,
                       check_constraints, 40, smaller_constraints),
    "absence": Law("truth and rows of queries with `not` by brute force", make_absence_case,
                   check_absence, 20, smaller_absences),
    "ground": Law("rows of joins with `not`, by brute force over messages", make_ground_case,
                  check_ground, 40, smaller_ground),
    "references": Law("truth and rows beside declared references by brute force",
                      make_reference_case, check_absence, 20, smaller_absences),
    "thresholds": Law("truth and rows of views with aggregates by brute force",
                      make_threshold_case, check_thresholds, 10, smaller_thresholds),
    "threshold-never": Law("`never` of groups is that of its definition",
                           make_threshold_never_case, check_threshold_never, 10,
                           smaller_threshold_never),
    "collect": Law("collection changes nothing", _make_collected, _check_collected, 5,
                   _smaller_collected),
    "values": Law("values are ordered by their kind", make_values_case, check_values, 90,
                  smaller_values),
    "scalars": Law("expressions have Saxon's values", make_scalars_case, check_scalars, 50,
                   smaller_scalars),
    "native-scalars": Law("native calculations are exact", make_native_scalars_case,
                          check_native_scalars, 150),
    "pipelines": Law("pipelines on both engines do what the definition says", _make_buckets,
                     _check_buckets, 20, _smaller_buckets),
    "damage": Law("damaged stores are whole or refused", make_damage_case, check_damage_case, 100),
}  # fmt: skip
"""Every law by its name; the shares add up to ten thousand."""

PARTS = {
    "4": (
        "4",
        "truth",
        "never",
        "fallen",
        "prospects",
        "promises",
        "constraints",
        "absence",
        "ground",
        "references",
        "thresholds",
        "threshold-never",
        "collect",
        "replace-truth",
        "clock-truth",
    )
}
"""Laws that are checked in several ways: as of now, as data arrives, and with garbage collected."""
