"""Evaluation of patterns and statements on a document, without state.

In reading order:

- `definition`, `definition_axes`: the rows of a pattern by definition; the oracle of all others
- `interpreter`, with `joins` and `work`: the relations of a program, bottom-up over small subtrees;
  `answers` gives the rows of a pattern on a document by it
- `select`, with `columns`, `node_sets`, `node_tests` and `anchors`: the columnar evaluator,
  which finds the nodes that a pattern selects; it switches between climbing from an indexed value,
  walking from few nodes, and scanning
- `collected_paths`: the nodes of a collected path
- `expressions`, with `items`, `functions` and `constructors`: the evaluator of
  expressions; scalar operations are added in `functions`
- `statements`, with `prefixes`, and `patches`: statements and patches to pending update lists

Law: every evaluator that accepts a pattern gives the rows of the definition
(`lab fuzz --law rows`).
"""
