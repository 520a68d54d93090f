"""Workloads: generated documents, patterns and update streams, fuzzing and benchmarks.

Part of the installed package, so that anyone can repeat a measurement. The generators give text
(XML, native patterns, updates as JSON-ready mappings), the same for one seed on every machine, and
stream: `auction` (XMark), `random_documents`, `random_patterns`, `active` (P3 section 5.4's
widgets) and `orders` (the order monitor).
"""
