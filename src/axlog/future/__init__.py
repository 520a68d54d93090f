"""Analyses of a query over a document whose streams are still open. They change nothing.

While streams are open, more data may arrive. These modules decide questions about every possible
future:

- Truth: does the query have a row now, can some future give it one, or can none?
- Possible rows: which rows can still appear, what do they need from which stream, until when?
- Relevance: can the data of a stream still change the rows?
- Containment: is every row of one query a row of another, on every document?
- Garbage: which stored rows, streams and subtrees can no longer contribute to a row?

Every answer is exact. Where an analysis cannot decide, it raises `UndecidedError`: AX501 the
question is undecidable, AX502 the search exceeded its limit, AX503 the query or document has a
feature that the analysis does not cover. Exact relevance and containment return an undecided
verdict with its reason instead. `garbage` may return a sound but incomplete answer, and says so
(`Pair.is_exact`).

Words used throughout. A future node or tree is one that has not arrived yet. An unknown is a string
or time of a future node. A scenario is one way in which a row can come about: the values known so
far, and a `Need`: the sub-patterns that streams must still deliver, with the conditions on the
unknowns. One scenario dominates another if it needs no more.

Reading order:

Requirements: which conditions a pattern places on future nodes.

    comments            rejects tests for comments and processing instructions
    search_budget       counts the steps of an analysis and stops it at a limit
    linear              integer solutions of linear inequalities (the omega test)
    time_constraints    satisfiability and latest values of time constraints
    unknowns            satisfiability of conditions on unknown strings
    value_classes       sample values that stand for all others under comparisons
    keys                declared keys and the values that they exclude from the future
    references          declared references, and the patterns with what their nodes refer to
    generalized_rows    rows with unknowns and needs, and their joins

Arrivals: what messages can deliver.

    arrivals            rows of sub-patterns in future trees
    capacity            sub-patterns that must share the few trees a stream may deliver

Scenarios: the possible rows.

    scenarios           all scenarios of a pattern over a document
    scenario_tracker    scenarios maintained as data arrives
    message_effects     what a single message can make impossible
    sat                 satisfiability of clauses: the solver
    scenario_clauses    the scenarios of a pattern as clauses
    scenario_search     one scenario, or one row after the other, where there are too many to list

Truth:

    collected_paths     patterns without the paths that constructors collect
    evidence            a scenario as evidence of a verdict
    truth               truth, possible rows and the status of one row: `Outlook`
    verdict_cache       truth of a view between updates, reused while its evidence holds
    reasons             why a row is possible or never: `why_not`
    finality            whether a row that a message removed can return
    deadline_keys       keys without which a deadline makes no row impossible
    coverage            the table of supported features shown in docs/analysis.md

Negation: queries with `not`.

    time_turns          times that tell all cases of linear constraints apart
    tied_values         the values to try for what ties places of such a query
    grounding           joins of a pattern with `not` replaced by constants
    profile_trees       profiles of nodes and of future trees
    profiles            satisfiability of a ground pattern with `not` in a document
    typed_absence       the same under types, shown by carrying out an example
    negation            possible rows of such a pattern

Groups: views with aggregates, conditions on values and computed columns.

    group_steps         the steps of a view, split at its group
    group_growth        how many tuples a scenario can still bring
    group_members       the members of groups: sums of those there, and those to come
    group_conditions    which values aggregates can reach, and whether a condition can come to hold
    group_outlook       truth, possible rows and statuses of such a view
    group_tracker       the groups of a view that can still come, kept as data arrives

Types: futures restricted to a schema.

    requirements        conditions on one future node, and their distribution over children
    type_steps          which numbers of children valid messages can reach
    type_trees          whether a type has a tree that matches given conditions
    type_messages       writes the messages of a solution
    typed_document      whether valid messages make a pattern hold in a document
    typed_values        values of elements, rewritten to values of texts
    typed_truth         truth under types
    typed_scenarios     which scenarios the types allow

Relevance: streams that still matter.

    instance_values     candidate strings for the unknowns of a scenario
    timed_loss          whether a future loses a row at some times of its trees
    instances           the most general futures of a scenario
    scratch_document    a copy of the document on which futures are tried
    relevance_search    the same, where there are too many scenarios to list
    relevance           lazy, axlog and exact relevance of each stream

Containment of queries.

    disjuncts           a pattern as a union of trees without `or`
    canonical_models    the canonical documents of such a tree
    homomorphism        matches a pattern with a canonical document
    witness             counterexample documents, verified before they are returned
    containment         `contains(q1, q2)`

Collection: state that can be dropped.

    garbage             rows of joins, streams and subtrees that no future row can use, with proofs
"""
