"""`copy ... modify ... return`, `typeswitch`, `switch` and updating functions."""

from __future__ import annotations

import pytest

import axlog
from axlog.errors import AxlogError

DOCUMENT = "<r><a k='1'>one<b/>two</a><a k='2'>three</a><!--c--><?p q?></r>"


def item(query: str, xml: str = DOCUMENT) -> list[object]:
    """The items of a query on a document."""
    return axlog.parse(xml).watch(query, language="xquery", on_value_error="reject").items()


def after(statement: str, xml: str = DOCUMENT) -> str:
    document = axlog.parse(xml)
    document.update(statement)
    return document.xml()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("copy $c := /r/a[1] modify () return $c", ['<a k="1">one<b/>two</a>']),
        ("copy $c := /r/a[1] modify delete node $c/b return $c", ['<a k="1">onetwo</a>']),
        ("copy $c := /r/a[1] modify rename node $c as 'z' return name($c)", ["z"]),
        ("copy $c := /r/a[1]/@k modify replace value of node $c with '9' return data($c)", ["9"]),
        ("copy $c := /r/a[1] modify delete node $c/@k return count($c/@*)", [0]),
        ("copy $c := //comment() modify replace value of node $c with 'd' return $c", ["<!--d-->"]),
        ("copy $c := (//node())[last()] modify rename node $c as 'z' return $c", ["<?z q?>"]),
        ("copy $c := /r/a[2]/text() modify replace value of node $c with '' return $c", [""]),
        ("copy $c := (/) modify delete nodes $c/r/* return $c/r", ["<r><!--c--><?p q?></r>"]),
        ("copy $c := <n/> modify insert nodes /r/a into $c return count($c/a)", [2]),
        (
            "copy $c := /r/a[1], $d := $c modify (rename node $c as 'x', delete node $d/b)"
            " return ($c, $d)",
            ['<x k="1">one<b/>two</x>', '<a k="1">onetwo</a>'],
        ),
        ("copy $c := /r/a[1] modify insert node <n/> into $c/b return $c/b/n/.. is $c/b", [True]),
        ("let $x := /r/a[1] return (copy $c := $x modify () return $c) is $x", [False]),
        ("let $k := /r/a[2]/@k return copy $c := /r modify delete node $c/a[@k = $k]"
         " return $c/a/@k/string()", ["1"]),
        ("count((copy $c := /r modify () return $c)/a/..)", [1]),
        ("typeswitch (/r/a[1]) case xs:string return 1 case $e as element(a) return $e/@k/string()"
         " default return 2", ["1"]),
        ("typeswitch (3) case xs:string | xs:integer return 'yes' default return 'no'", ["yes"]),
        ("switch (/r/a[2]/@k) case '1' return 'x' case '2' case '3' return 'y' default return 'z'",
         ["y"]),
        ("switch (()) case 1 return 'x' case () return 'none' default return 'z'", ["none"]),
    ],
)  # fmt: skip
def test_a_query_with_copies_or_choices(query: str, expected: list[object]) -> None:
    assert item(query) == expected


def test_a_view_with_copies_follows_updates() -> None:
    document = axlog.parse("<r><a>1</a></r>")
    view = document.watch(
        "for $a in /r/a return copy $c := $a modify rename node $c as 'z' return $c"
    )
    document.update("insert node <a>2</a> into /r")
    assert view.items() == ["<z>1</z>", "<z>2</z>"]
    document.update("replace value of node /r/a[1] with '3'")
    assert view.items() == ["<z>3</z>", "<z>2</z>"]
    assert document.xml() == "<r><a>3</a><a>2</a></r>"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("copy $c := /r/a modify () return $c", "XUTY0013"),
        ("copy $c := 1 modify () return $c", "XUTY0013"),
        ("copy $c := /r modify delete node /r/a return $c", "XUDY0014"),
        (
            "let $n := <n><m/></n> return copy $c := /r modify delete node $n/m return $c",
            "XUDY0014",
        ),
        (
            "copy $c := /r modify (rename node $c as 'x', rename node $c as 'y') return $c",
            "XUDY0015",
        ),
        ("copy $c := /r modify replace node $c with <x/> return $c", "XUDY0009"),
        ("copy $c := /r modify insert node <x/> before $c return $c", "XUDY0029"),
        ("copy $c := /r modify insert node attribute k {1} into $c/a[1] return $c", "XUDY0021"),
        ("copy $c := /r modify delete node $c/a[/r] return $c", "XPDY0050"),
        ("copy $c := /r modify 1 return $c", "XUST0002"),
    ],
)
def test_copies_raise_the_errors_of_the_recommendation(text: str, code: str) -> None:
    for run in (item, lambda query: after(f"insert node <v>{{{query}}}</v> into /r")):
        with pytest.raises(AxlogError) as caught:
            run(text)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "insert node (copy $c := /r/a[2] modify rename node $c as 'z' return $c) into /r",
            "<r><a k='1'>one<b/>two</a><a k='2'>three</a><!--c--><?p q?><z k='2'>three</z></r>",
        ),
        (
            "declare updating function local:f($e as element(), $n) { rename node $e as $n };"
            " declare updating function local:g($e) { local:f($e, 'y'), delete node $e/@k };"
            " for $a in /r/a return local:g($a)",
            "<r><y>one<b/>two</y><y>three</y><!--c--><?p q?></r>",
        ),
        (
            "typeswitch (/r/a) case element() return () default return delete nodes /r/a",
            "<r><!--c--><?p q?></r>",
        ),
        (
            "for $a in /r/a return switch ($a/@k) case '1' return delete node $a default return ()",
            "<r><a k='2'>three</a><!--c--><?p q?></r>",
        ),
        ("declare revalidation skip; delete nodes /r/a", "<r><!--c--><?p q?></r>"),
    ],
)
def test_a_statement_with_copies_choices_and_functions(statement: str, expected: str) -> None:
    assert after(statement) == axlog.parse(expected).xml()


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("declare updating function local:f() as item() { () }; local:f()", "XUST0028"),
        ("declare updating function local:f() { 12 }; local:f()", "XUST0002"),
        ("declare function local:f() { delete node /r/a }; local:f()", "XUST0001"),
        ("copy $c := /r modify () return delete node $c/a", "XUST0001"),
        ("insert node <n/> into <m/>", "AX302"),
        ("let $m := <m><n/></m> return replace node $m/n with attribute x {1}", "XUTY0010"),
        ("let $m := <m/> return (rename node $m as 'x', rename node $m as 'y')", "XUDY0015"),
    ],
)
def test_statements_are_refused_by_code(statement: str, code: str) -> None:
    document = axlog.parse(DOCUMENT)
    with pytest.raises(AxlogError) as caught:
        document.update(statement)
    assert caught.value.code == code
    assert document.xml() == axlog.parse(DOCUMENT).xml()
