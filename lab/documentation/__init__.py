"""The reference pages of the docs, made from what they describe: grammar, tables, error codes.

Every example on them is carried out when a page is made, and what it gives is what the page shows.
`python -m lab.cli.documentation docs` writes them; a test compares them with what is written.
"""
