"""Benchmarks: one module a subject, each printing both sides of its ratio (PERFORMANCE.md's goals).

Anyone with a checkout can repeat a measurement: `python -m lab bench`.
"""
