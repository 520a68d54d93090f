"""Counting: rows with derivation counts, kept by delta joins.

In reading order:

- `sites`: the document nodes at which deltas are joined, and the operators there
- `engine`: one engine per document; carries the delta of an update from blocks through sites
- `maintainer`: the rows of one view, from the deltas of its root relation
- `routes`: the path of a message from its call to the root relations, as generated joins
- `stream_inputs`: the streams that feed each part of a join
- `waiting_rows`: joins of two parts that drop rows without a possible partner
- `prospects`: truth, possible rows and `never` changes, from such joins
- `facts`: a copy of the kept rows, for analyses
- `state_codec`: the state of the operators as tuples, for snapshots
- `operator_lines`: the operators as text, for `explain`

(Paper 3, sections 3.1 and 4; paper 4, section 4, is its Boolean case.)
"""
