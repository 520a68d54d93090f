"""Benchmarks: one module per subject, each printing both sides of its ratio (docs/performance.md).

To repeat a measurement in a checkout: `python -m lab bench`.
"""
