"""The algebra: rows kept by terms over delta tables, for statements that touch many nodes.

An update takes one path: delta tables -> surviving terms -> their tables, or counts where one node
identifies a row -> rows with signed counts. Whole views are evaluated by the same code.

In reading order:

- `shape`: a pattern as a tree of label tests and selections
- `tables`: tables of bindings with counts, and their joins
- `deltas`: the nodes that an update adds to and removes from each relation
- `labels`: the labels that an update moves, and the views that it cannot affect
- `terms`: union and difference terms, and the rules that prune them
- `selection`: selections and values of many nodes at once
- `evaluation`: the evaluation of terms and of whole views
- `direct`: insertions into views whose rows are identified by one node
- `propagation`: one update on its way to one view
- `relation`, `node_rows`: the kept rows of a view
- `lattice`, `snowcaps`: kept parts of views, and the choice of these
- `costs`: measured costs of maintaining and evaluating
- `reports`: options, reports of updates, and the lines of `explain`
- `engine`: the state that the algebraic views of a document share
- `maintainer`: the maintainer

(Paper 5.)
"""
