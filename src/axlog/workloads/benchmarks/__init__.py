"""Benchmarks: one module a subject, each printing both sides of its ratio (PERFORMANCE.md's goals).

They are part of the installed package, so that anyone can repeat a measurement: `axlog bench`.
"""
