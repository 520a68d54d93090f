"""Records: maintenance of patterns with sibling and reverse axes.

In reading order:

- `question`: a pattern as a tree of steps, asked at one node
- `plan`: the choice of an algorithm for a question
- `maintainer`: the maintainer, which runs the chosen algorithm
- `downward`: records with counts, for Boolean downward patterns
- `sequences`: the children of every node as balanced trees
- `forest`: a document under an algebra of forests, kept through updates
- `strings`: matching triples for patterns on strings
- `forward`: the algebra of conjunctive forward patterns, built on `strings`
- `decision_diagrams`: Boolean functions as decision diagrams
- `automaton`: the algebra of full patterns, a lazily built automaton
- `selected_nodes`: the selected nodes of a path, kept
- `facts`: comparisons and attributes, kept by the counting engine
- `derivation_counts`: derivation counts, computed on request
- `sibling_order`: sibling axes in patterns with joins, kept with the counting engine

(Paper 4: incremental XPath with sibling and reverse axes.)
"""
