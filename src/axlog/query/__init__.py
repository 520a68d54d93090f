"""Texts to patterns: the one intermediate form of every query, and the languages that write it."""
