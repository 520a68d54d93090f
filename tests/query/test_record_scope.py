"""The steps of a pattern to its top, and the elements that they may reach."""

import pytest

from axlog.query.compile import compile_pattern
from axlog.query.query import parse_query
from axlog.query.record_scope import enters, reaches, steps_to_top

REGION = ("site", "regions", "africa")


@pytest.mark.parametrize(
    ("text", "does_reach", "does_enter"),
    [
        ("match /site/regions/africa/item#t return t.id", False, True),
        ("match /site/regions/*/item#t return t.id", False, True),
        ("match /site/people/person#t return t.id", False, False),
        ("match /site//person#t return t.id", False, True),
        ("match //africa//name/$x return $x", False, True),
        ("match /site/regions/asia//name/$x return $x", False, False),
        ("match //africa#t return t.id", True, True),
        ("match /site/*#t return t.id", True, False),
        ("match //*#t return t.id", True, True),
        ("match //regions[africa]//name/$x return $x", True, False),
        ("match //text()#t return t.id", False, True),
        ("match /site/regions/africa/text()#t return t.id", False, True),
    ],
)
def test_steps_and_elements_around_records(text: str, does_reach: bool, does_enter: bool) -> None:
    steps = steps_to_top(compile_pattern(parse_query(text).pattern))
    assert steps is not None
    assert reaches(steps, REGION) is does_reach
    if not does_reach:
        assert enters(steps, REGION) is does_enter


def test_patterns_that_begin_at_the_document_node() -> None:
    program = compile_pattern(parse_query("match (//a/$x or //b/$x) return $x").pattern)
    assert steps_to_top(program) is None
