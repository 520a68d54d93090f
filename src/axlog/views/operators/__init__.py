"""Operators: incremental relational operators over deltas of bindings.

Each operator is one class with its law in the docstring. In reading order:

- `operator`: the contract: apply, look up, snapshot, size, partition key, lineage, cost
- `table`: a bag of rows, indexed by the keys that operators look up; the state of all operators
- `disk_table`: indexes in a key-value store instead of memory
- `join`: the n-ary join of the parts of a relation
- `distinct`: the distinct union of inputs (`or`)
- `semi_join`: the rows that agree with some right side (`or` over variables of other branches)
- `anti_join`: the rows that no right row blocks (`not`)
- `join_generator`: a join as generated Python code

Operators over the rows of a relation, for steps and plans:

- `feed`: the inputs of a plan, kept or not
- `filter`, `map`: rows that pass a test; computed columns. They have no state
- `clock_filter`: rows that hold at the document's clock, which appear and disappear as it advances
- `group`: aggregates of rows with equal keys
- `aggregates`, `exact_sum`, `measures`: what can be aggregated, and the states
- `group_generator`: the application of one row to a group as generated Python code
- `top`: a slice of the rows in an order, by partition
- `left_join`: outer rows with their inner rows, or with none
- `range_join`: outer rows with aggregates of the inner rows before or after them in an order
- `sets`: union, intersection and difference, by the operators above
- `lookups`: look-ups by columns, for these operators
- `order`, `ordered_index`: sort keys in reverse, and a bag in the order of its keys

Inside a relation there are no filters and maps: a join tests its rows as soon as their columns are
bound, and projects them at its end.
"""
