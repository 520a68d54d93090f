"""Patterns as small non-recursive datalog programs, and what runs a program."""
