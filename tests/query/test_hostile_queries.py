"""Query bombs: patterns with exponential plans, huge unions, deep predicates, huge numbers.

Each is refused with a code and in words, or answered; none hangs. Every bomb runs in a process of
its own with a bound on the processor's time and on memory, so that a bomb that goes off is a failed
test and not a machine that stands still.
"""

import multiprocessing
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import axlog
from axlog.document.parser import Limits
from axlog.errors import AxlogError, QueryError, UndecidedError
from axlog.future.truth import Outlook
from axlog.live.internals import maintained
from axlog.query.query import parse_query
from axlog.views.counting.join_outlook import JoinOutlook
from axlog.views.operators.join_generator import MOST_PARTS

pytestmark = pytest.mark.system

CALL = "<ax:call xmlns:ax='urn:axlog' stream='{}' deletes='yes'/>"
DOCUMENT = (
    f"<a><s>{'<b><c>1</c><d>2</d></b>' * 30}{CALL.format('s')}</s><t>{CALL.format('t')}</t></a>"
)
GROWING = "<a><s><ax:call xmlns:ax='urn:axlog' stream='s'/></s></a>"
SECONDS, MEMORY = 60, 4 << 30


def numbered(form: str, count: int, between: str = "") -> str:
    return between.join(form.format(i=i) for i in range(count))


TOO_LARGE = {
    "a union": "|".join(f"//a{i}" for i in range(9000)),
    "a product of alternatives": "/".join(["(a|b)"] * 40),
    "a product of unions": "//a" + "[b or c]" * 2000,
    "steps": "/a" * 20_000,
    "predicates": "a[" * 1000 + "b" + "]" * 1000,
    "brackets": "(" * 5000 + "a" + ")" * 5000,
    "a conjunction": "//a[" + " and ".join(["b"] * 5000) + "]",
    "a disjunction": "//a[" + " or ".join(["b"] * 5000) + "]",
    "a number": "//a[b = " + "9" * 90_000 + "]",
    "an exponent": "match //a[b = 1e999999999] return 1",
    "comments": "(:" * 30_000 + ":)" * 30_000 + "//a",
    "native predicates": "match //a" + "[b]" * 5000,
    "native depth": "match //a" + "[b" * 5000 + "]" * 5000,
    "native negations": "match //a[" + "not(" * 5000 + "b" + ")" * 5000 + "]",
    "native unions": "match //a[" + numbered("b{i}", 8000, " or ") + "]",
    "native variables": "match //a" + numbered("[//$x{i}]", 300) + " return $x1",
    "native constraints": "match //a#t where " + numbered("t >= {i}", 4000, " and "),
    "a native number": "match //a#t where t >= " + "9" * 90_000,
    "a native exponent": "match //a#t where t >= 1e999999999",
    "a native factor": "match //a#t where 1e999999999 * t >= 1",
    "native outputs": "match //a#t return " + numbered("t.id as x{i}", 5000, ", "),
    "for after for": numbered("for $x{i} in //a ", 2000) + "return <r/>",
    "let after let": (
        "let $a0 := //a "
        + "".join(f"let $a{i + 1} := ($a{i}|$a{i}/b) " for i in range(40))
        + "for $x in $a40 return <r>{$x}</r>"
    ),
    "constructors": "for $x in //a return " + "<r>" * 3000 + "</r>" * 3000,
    "conditions": "for $x in //a where " + " and ".join(["$x/b = 1"] * 4000) + " return <r/>",
}
EXPLODING = {
    "a product of variables": (
        "match //a" + numbered("[//$x{i}]", 12) + " return " + numbered("$x{i}", 12, ", ")
    ),
    "a product of nodes": (
        "match " + numbered("//*#t{i}", 12, ", ") + " return " + numbered("t{i}.id", 12, ", ")
    ),
    "siblings that multiply": (
        "match //*" + numbered("[following-sibling::*//$x{i}]", 5) + " return $x0"
    ),
}
HARD = {
    "branches": "match /a" + numbered("[s/b/c{i}]", 14),
    "joins": (
        "match /a" + numbered("[s/b{i}/$x{i}][t/c{i}/$x{i}]", 8)
        + " return " + numbered("$x{i}", 8, ", ")
    ),
    "alternatives": "match /a[" + numbered("(s/b{i} or t/c{i})", 20, " and ") + "]",
    "alternatives in each other": "match /a" + "[s/b[c or d]" * 12 + "]" * 12,
    "negations": "match /a[" + numbered("not(s/b{i}[c])", 20, " and ") + "]",
    "times that differ": (
        "match /a" + numbered("[s//b#t{i}]", 10) + " where "
        + " and ".join(f"t{i} - t{j} != 1" for i in range(9) for j in range(i + 1, 10))
    ),
    "a long way down": "match " + "//*" * 60,
    "many branches": "match //a" + "[b]" * 60,
}  # fmt: skip


def _mapped() -> int:
    """The address space that this process has already: other tests may have mapped much."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return 64 << 30


def outcome(work: Callable[[], object]) -> tuple[str, str]:
    """What came of some work in a process of its own: `done`, a code, or what broke."""
    context = multiprocessing.get_context("fork")
    answers: Any = context.SimpleQueue()

    def run() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        most = _mapped() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        try:
            work()
            answers.put(("done", ""))
        except AxlogError as error:
            answers.put((error.code, error.describe()))
        except BaseException as error:
            answers.put((type(error).__name__, str(error)))

    process = context.Process(target=run)
    process.start()
    process.join()
    return answers.get() if not answers.empty() else ("killed", str(process.exitcode))


@pytest.mark.parametrize("bomb", TOO_LARGE)
def test_queries_that_are_too_large(bomb):
    code, said = outcome(lambda: parse_query(TOO_LARGE[bomb]))
    assert code in ("AX207", "AX211", "AX213"), said
    if code == "AX213":
        assert "expected" in said or "try" in said


@pytest.mark.parametrize("bomb", EXPLODING)
def test_queries_whose_rows_explode(bomb):
    code, said = outcome(lambda: axlog.parse(DOCUMENT).watch(EXPLODING[bomb], "v").rows())
    assert code in ("AX215", "AX216"), said


@pytest.mark.parametrize("bomb", [*EXPLODING, *HARD])
def test_streams_and_analyses_of_hard_queries(bomb):
    query = {**EXPLODING, **HARD}[bomb]
    # The full budgets of exploding rows are spent once, in the test above.
    limits = Limits(rows=2_000, work=50_000) if bomb in EXPLODING else Limits()

    def work() -> None:
        doc = axlog.parse(DOCUMENT, views={"v": query}, options=axlog.Options(limits=limits))
        view = doc.view("v")
        for ask in (view.possible, lambda: view.truth, doc.tune, doc.collect):
            with suppress(UndecidedError, QueryError):
                ask()
        view.rows()
        doc.feed("s", "<b><c>7</c><d/></b>")
        doc.feed("t", "<b><c>7</c><d/></b>")
        doc.delete("t", "match /b")
        view.rows()

    code, said = outcome(work)
    assert code == ("done" if bomb in HARD else code), said
    assert code in ("done", "AX215", "AX216"), said


def test_limits_of_queries_can_be_raised():
    wide = "match //a" + "[b]" * 150
    with pytest.raises(QueryError) as raised:
        axlog.parse("<a><b/></a>").watch(wide)
    assert raised.value.code == "AX213"
    assert "branches" in str(raised.value)
    assert (
        len(
            axlog.parse("<a><b/></a>", options=axlog.Options(limits=Limits(branches=200)))
            .watch(wide)
            .rows()
        )
        == 1
    )
    document = axlog.parse("<a><b/><b/><b/></a>", options=axlog.Options(limits=Limits(rows=8)))
    product = "match //b#t1, //b#t2 return t1.id, t2.id"
    assert len(document.watch(product).rows()) == 9  # twenty times what is joined may come of it
    with pytest.raises(QueryError) as raised:
        axlog.parse(
            "<a>" + "<b/>" * 50 + "</a>", options=axlog.Options(limits=Limits(rows=8))
        ).watch(product).rows()
    assert raised.value.code == "AX215"


def test_a_view_that_explodes_is_refused_alone():
    document = axlog.parse(DOCUMENT)
    good = document.watch("match //b/c/$x return $x", "good")
    bad = document.watch(EXPLODING["a product of variables"], "bad")
    assert len(good.rows()) == 1
    with pytest.raises(QueryError) as raised:
        bad.rows()
    assert raised.value.code == "AX216"
    (change,) = document.update("insert node <b><c>new</c></b> into /a")
    assert change.view == "good"
    assert len(good.rows()) == 2
    document.unwatch("bad")
    assert len(good.rows()) == 2


def test_a_view_that_explodes_by_an_update_answers_no_more():
    doc = axlog.parse(
        GROWING,
        views={"v": EXPLODING["a product of variables"]},
        options=axlog.Options(limits=Limits(rows=500)),
    )
    assert len(doc.view("v").rows()) == 1
    doc.feed("s", "<b>" + "<c>x</c><d>y</d>" * 30 + "</b>")
    with pytest.raises(QueryError) as raised:
        doc.view("v").rows()
    assert raised.value.code == "AX215"


def test_the_possible_rows_of_a_product_are_refused():
    """The ways inside one message count, too."""
    doc = axlog.parse(GROWING)
    pattern = parse_query(EXPLODING["a product of variables"]).pattern
    with pytest.raises(UndecidedError) as raised:
        Outlook(maintained(doc).nodes(), pattern).possible()
    assert raised.value.code == "AX502"


def test_the_possible_rows_of_a_joined_product_are_refused_early(monkeypatch):
    """Ways that are read off a join cost their parts: 100,000 steps are far fewer ways."""
    names = [f"$v{i}" for i in range(12)]
    text = "match /a/s" + "".join(f"[b/{name}]" for name in names) + " return " + ", ".join(names)
    doc = axlog.parse(GROWING.replace("<s>", "<s><b>1</b><b>2</b>"), views={"v": text})
    looked = []
    latest = JoinOutlook.latest

    def counted(*given):
        looked.append(1)
        return latest(*given)

    monkeypatch.setattr(JoinOutlook, "latest", counted)
    with pytest.raises(UndecidedError) as raised:
        doc.view("v").possible()
    assert raised.value.code == "AX502"
    assert 5_000 < len(looked) < 20_000


def test_views_with_more_branches_than_python_nests_loops():
    """Beyond that the joins are not generated; the answers are the same."""
    for count in (MOST_PARTS - 1, MOST_PARTS, MOST_PARTS + 1, 2 * MOST_PARTS):
        text = "match /a" + "".join(f"[b{i}/$x]" for i in range(count)) + " return $x"
        inside = "".join(f"<b{i}>1</b{i}>" for i in range(count))
        document = axlog.parse(f"<a>{inside}</a>")
        view = document.watch(text, maintainer="counting")
        assert [row["x"] for row in view.rows()] == ["1"]
        assert document.update("delete node /a/b0") != []
        assert view.rows() == []
        document.update("insert node <b0>1</b0> into /a")
        assert [row["x"] for row in view.rows()] == ["1"]


def test_deep_patterns_on_streams():
    """Matchers whose blocks are deeper than Python nests are written as several functions."""
    for depth in (5, 15, 25, 100):
        path = "".join(f"/e{i}" for i in range(depth))
        doc = axlog.parse(GROWING, views={"v": f"match /a/s{path}/$x return $x"})
        message = "".join(f"<e{i}>" for i in range(depth)) + "v"
        message += "".join(f"</e{i}>" for i in reversed(range(depth)))
        doc.feed("s", message)
        doc.feed("s", message.replace("v<", "w<"))
        assert sorted(row["x"] for row in doc.view("v").rows()) == ["v", "w"]
