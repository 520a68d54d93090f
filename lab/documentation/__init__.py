"""Generators of the reference pages: grammar, tables, error codes.

Every example is run when a page is generated, and the page shows its output. `python -m
lab.cli.documentation docs` writes the pages; a test compares them.
"""
