"""The names of the functions and casts that expressions know (`evaluate/functions.py` has them)."""

from __future__ import annotations

from axlog.query.values import READ

FUNCTIONS = frozenset(
    """abs boolean ceiling collection concat contains count data distinct-values doc document empty
    ends-with error exists false floor id last local-name lower-case max min name namespace-uri
    normalize-space not number position QName round starts-with string string-join string-length
    substring sum translate true upper-case""".split()
)
TYPES = frozenset("string integer int decimal double QName boolean date dateTime time".split())
"""The types that a value can be cast to: `xs:integer("7")`."""
CASTS = frozenset((*READ, *(f"xs:{name}" for name in TYPES)))
"""The constructor functions of types: `xs:date(...)`."""
