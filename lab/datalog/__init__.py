"""Patterns as small non-recursive datalog programs, and their evaluation."""
