"""Views: the rows of queries over a changing document, and the changes that they emit.

A maintainer is an algorithm that keeps the rows of one view exact: it turns the delta of an update
into changes. All maintainers give the same rows and changes, and differ in cost only. In reading
order:

- `change`: rows and changes
- `value_codec`: values of rows in JSON
- `change_buffer`: the changes that a view retains for its subscribers
- `view`: a query with its rows, its changes and its subscribers
- `maintainer`: the interface of a maintainer, and its law
- `choose`: the choice of a maintainer for a pattern
- `operators`: joins, `or` and `not` over deltas of bindings
- `counting`: rows with derivation counts, kept by delta joins; the default
- `algebraic`: terms over delta tables, for statements that touch thousands of nodes
- `records`: sibling and reverse axes
- `adaptive`: counting or algebraic, chosen again for each update
- `reevaluate`: evaluation before and after; accepts every pattern, and is the baseline
- `arrow_table`: the rows of a view as an Arrow table
- `outputs`: the values that outputs show of nodes
- `contents`: a cache of the contents that views show
- `net_changes`: the net effect of a sequence of changes
- `explanation`: the answer of `explain`
- `why`: the derivations of a row
"""
