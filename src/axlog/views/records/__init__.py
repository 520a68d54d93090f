"""P4: incremental XPath with sibling and reverse axes: records, matching triples, automata."""
