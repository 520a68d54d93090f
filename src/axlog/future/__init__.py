"""Verdicts that change nothing: truth, satisfiability, relevance, containment, types, garbage."""
