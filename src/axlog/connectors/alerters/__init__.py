"""Alerters: outside systems that are watched, and what changes there as updates (P3 2.3)."""
