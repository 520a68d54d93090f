"""The short way for plain paths gives what the parser proper gives, or nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from axlog.query.xpath_compiler import SELECTED, _outputs, parse_any
from axlog.query.xpath_fast_path import plain
from tests.amounts import cases

OUTPUTS = _outputs(("id",))
LABELS = st.sampled_from(["a", "b", "and", "div", "text", "x-y", "x.z", "_1", "*", "é", "p:a"])
LITERALS = st.sampled_from(["'v'", "''", "5", "007", "'5'", "'a]b'", '"v"', "1.5", "$x"])
TESTS = st.sampled_from(["", "=", " = ", "!=", " <= ", ">", " eq "])
PLACES = st.sampled_from(["", "@", ".//", "./", "//", "."])


@st.composite
def paths(draw: st.DrawFn) -> str:
    text = ""
    for _ in range(draw(st.integers(1, 4))):
        text += draw(st.sampled_from(["/", "//", "/", ""])) + draw(LABELS)
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            test = draw(TESTS)
            text += f"[{draw(PLACES)}{draw(LABELS)}{test}{draw(LITERALS) if test else ''}]"
    return text


@settings(max_examples=cases(250))
@given(paths())
def test_differential_plain_paths_are_what_the_parser_makes_of_them(text: str) -> None:
    short = plain(text, OUTPUTS, SELECTED)
    if short is not None:
        wanted = parse_any(text, (), OUTPUTS)
        assert short == wanted
        assert repr(short) == repr(wanted)  # 5 and 5.0 are equal


def test_most_filters_are_plain() -> None:
    for text in ("/a/b//c", "//*", "/a[@k = '1']/b", "/a[b][.//c]", "//a[b >= 10]"):
        assert plain(text, OUTPUTS, SELECTED) is not None
    assert plain("/a" * 151, OUTPUTS, SELECTED) is None
