"""The functions and types that expressions know by name; `evaluate.functions` has their meaning."""

from __future__ import annotations

FUNCTIONS = frozenset(
    """abs adjust-date-to-timezone adjust-dateTime-to-timezone adjust-time-to-timezone avg boolean
    ceiling codepoint-equal codepoints-to-string compare concat contains count data dateTime
    day-from-date day-from-dateTime days-from-duration deep-equal distinct-values empty
    encode-for-uri ends-with error exactly-one exists false floor head hours-from-dateTime
    hours-from-duration hours-from-time index-of insert-before local-name lower-case matches max
    min minutes-from-dateTime minutes-from-duration minutes-from-time month-from-date
    month-from-dateTime months-from-duration name namespace-uri node-name normalize-space not
    number one-or-more QName remove replace reverse root round round-half-to-even
    seconds-from-dateTime seconds-from-duration seconds-from-time starts-with string string-join
    string-length string-to-codepoints subsequence substring substring-after substring-before sum
    tail timezone-from-date timezone-from-dateTime timezone-from-time tokenize translate true
    upper-case year-from-date year-from-dateTime years-from-duration zero-or-one""".split()
)
"""The functions of values."""
_OF_SEQUENCES = frozenset(
    """avg boolean codepoints-to-string count data deep-equal distinct-values empty error exists
    head index-of insert-before max min not one-or-more remove reverse string-join subsequence sum
    tail""".split()
)
CONTEXT_FUNCTIONS = frozenset("collection doc document id last position".split())
"""The functions of the context: where an expression is evaluated."""
TYPES = frozenset(
    """boolean date dateTime dayTimeDuration decimal double duration int integer QName string time
    untypedAtomic yearMonthDuration""".split()
)
"""The types that a value can be cast to: `xs:integer("7")`."""
CASTS = frozenset(f"xs:{name}" for name in TYPES)
"""The constructor functions of types: `xs:date(...)`."""
CLOCK = frozenset("current-date current-dateTime current-time implicit-timezone".split())
"""Refused by name: these are not functions of the document."""
OF_ONE_ITEM = (FUNCTIONS - _OF_SEQUENCES) | CASTS
"""The functions whose arguments have at most one item each: two are an error, as many as it takes.
"""
