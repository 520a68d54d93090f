"""The law of scalars: an expression has Saxon's value, and compiled it has the evaluator's.

An expression that is refused for the types of its operands has a value only if one is empty.

Values are compared with their types, doubles to 1e-12, and errors by their codes. The
recommendation leaves open which of two errors is raised, and whether an operand is evaluated that
does not decide. So an expression may differ if a part of it raises an error; then its parts are
compared in the same way, down to operations whose operands all have values. These must agree.
"""

from __future__ import annotations

import os
import re
from decimal import Decimal
from functools import cache, lru_cache
from math import isclose, isinf, isnan
from typing import Any

from axlog.document.loader import load
from axlog.document.tree import Tree
from axlog.errors import AxlogError, SetupError
from axlog.evaluate.atoms import Atom, Named, Untyped, text_of, type_of
from axlog.evaluate.expressions import DOCUMENT, Evaluator, Scope
from axlog.evaluate.items import Items, New, Node
from axlog.evaluate.scalars import compile_scalar
from axlog.evaluate.static_types import refuse_type_errors
from axlog.query.dates import Date, DateTime, Time, duration_of, time_value_of
from axlog.query.syntax_tree import Expression, Statement, references
from axlog.query.update_parser import UpdateParser
from lab.laws.scalars_cases import ScalarsCase

Outcome = tuple[str, ...]
"""`("error", code)`, or the items of a value, each as its type and its text."""

_ITEM, _PART, _CASE = "\ue000", "\ue001", "\ue002"
_HEAD = """
declare namespace map = "http://www.w3.org/2005/xpath-functions/map";
declare namespace err = "http://www.w3.org/2005/xqt-errors";
declare namespace output = "http://www.w3.org/2010/xslt-xquery-serialization";
declare option output:method "text";
declare function local:item($i) {
  concat(
    if ($i instance of node()) then "node"
    {types}
    else if ($i instance of xs:anyURI) then "xs:string"
    else "other", "&#xE001;", string($i))
};
declare function local:value($f as function() as item()*) {
  try { string-join($f() ! local:item(.), "&#xE000;") }
  catch * { concat("error&#xE001;", local-name-from-QName($err:code)) }
};
"""
_TYPE_TESTS = "\n    ".join(
    f'else if ($i instance of xs:{name}) then "xs:{name}"'
    for name in ("integer", "decimal", "double", "boolean", "string", "untypedAtomic", "date",
                 "dateTime", "time", "dayTimeDuration", "yearMonthDuration", "duration")
)  # fmt: skip


_FAILURES = (("error" + _PART + "?",), ("error" + _PART + "XXXX9999",))
"""Saxon fails, and gives no answer: `substring("a", 0.1)`, `xs:time(...) - xs:dateTime(...)`."""
_NAN = "xs:double" + _PART + "NaN"
_UNTYPED_NAN = "xs:untypedAtomic" + _PART + "NaN"
_OVERFLOW = ("error" + _PART + "FODT0002",)
_NO_MONTHS = "xs:yearMonthDuration" + _PART + "P0M"
_TRUTHS = ("xs:boolean" + _PART + "true", "xs:boolean" + _PART + "false")
_CODES = (
    ("FODT0002", "FOAR0001"),  # a duration divided by the double 0: F&O 3.1, 8.4.9
    ("FOCA0005", "FOAR0001"),  # a duration divided by NaN
    ("FORG0006", "XPTY0004"),  # sum() of durations of two types
    ("FORG0001", "FORG0006"),  # max() of values of two types, one of them untyped and no number
    ("FORG0001", "FODT0001"),  # digits alone are no date; Saxon reads them as a year
    ("XPTY0004", "FOAR0001"),  # an xs:duration, which has no operators, divided by 0
)
"""Codes of the recommendation for which Saxon has others."""


def check_scalars(case: ScalarsCase) -> None:
    """Evaluate each expression by Saxon, by the evaluator and compiled."""
    _Check(case).run()


class _Check:
    """One case: its document, its variables."""

    def __init__(self, case: ScalarsCase) -> None:
        self._case = case
        self._tree = load(case.document, keep_whitespace=True)
        self._variables: dict[str, Items] = {}
        for name, value in case.variables:
            expression = _parsed(value)
            evaluator = Evaluator(self._tree, Statement(expression, value, ()))
            self._variables[name] = evaluator.value(expression, Scope({}))

    def run(self) -> None:
        case = self._case
        self._check_refused()
        wanted = saxon_outcomes(case, case.expressions)
        for expression, expected in zip(case.expressions, wanted, strict=True):
            found = _evaluated(self._tree, expression, self._variables)
            self._check_compiled(expression, found)
            if not _alike(found, expected, expression):
                self._explain(expression, found, expected)

    def _check_refused(self) -> None:
        """A part that its types refuse, and none of its own parts, has no value."""
        kinds = {name: frozenset(map(type, items)) for name, items in self._variables.items()}
        refused: list[str] = []
        for part in sorted({*self._case.parts, *self._case.expressions}, key=len):
            try:
                refuse_type_errors(_parsed(part), part, kinds)
            except AxlogError as error:
                if not any(inside in part for inside in refused):
                    self._check_without_value(part, error)
                refused.append(part)

    def _check_without_value(self, part: str, error: AxlogError) -> None:
        found = _evaluated(self._tree, part, self._variables)
        names = references(_parsed(part)) - {"doc"}
        inside = [each for each in self._case.parts if each in part and each != part]
        has_empty = any(not self._variables[name] for name in names) or any(
            not _evaluated(self._tree, each, self._variables) for each in inside
        )
        if found and not _is_error(found) and not has_empty:
            raise AssertionError(
                f"{part}\nwith {_used(part, self._case)}: has {_shown(found)}, refused: {error}"
            )

    def _explain(self, expression: str, found: Outcome, expected: Outcome) -> None:
        """A difference is allowed if a part raises an error, and its parts agree."""
        parts = tuple(
            part for part in self._case.parts if part in expression and part != expression
        )
        outcomes = {
            part: (_evaluated(self._tree, part, self._variables), wanted)
            for part, wanted in zip(parts, saxon_outcomes(self._case, parts), strict=True)
        }
        outcomes[expression] = (found, expected)
        for each, (one, other) in outcomes.items():
            if _alike(one, other, each):
                continue
            inside = [part for part in parts if part in each and part != each]
            is_open = any(_is_error(side) for part in inside for side in outcomes[part])
            if is_open and (_is_error(one) or _is_error(other)):
                continue
            if not self._is_left_open(each, one, other, [outcomes[part] for part in inside]):
                raise AssertionError(
                    f"{each}\nwith {_used(each, self._case)}:\nfound {_shown(one)}, "
                    f"Saxon says {_shown(other)}"
                )

    def _is_left_open(
        self, text: str, one: Outcome, other: Outcome, parts: list[tuple[Outcome, Outcome]]
    ) -> bool:
        """Whether the outcomes differ because of an empty operand, or of one with several items.

        If an operand is empty, the other one need not be evaluated, but may be. Saxon gives () for
        `() = 1`. Of several items, each may raise its error. Beside NaN, Saxon does not look at the
        other values of a comparison, a minimum or a maximum. For Saxon an untyped NaN is greater
        than a number; by the recommendation it is cast to xs:double (XQuery 3.1, 3.7.2), and NaN
        is greater than nothing (F&O 3.1, 4.3.3). Saxon multiplies no months by infinity.
        """
        names = re.findall(r"\$(v\d+)", text)
        if one == _OVERFLOW and other[:1] == (_NO_MONTHS,):
            return True
        if _is_error(one) and _is_error(other):
            return any(len(self._variables[name]) > 1 for name in names) or any(
                len(side) > 1 for both in parts for side in both
            )
        values = [*parts, *((tuple(map(_nan, self._variables[name])), ()) for name in names)]
        is_false = one == (_TRUTHS[1],)
        has_nan = any(_NAN in side for both in values for side in both)
        if has_nan and _is_error(one) and len(other) == 1 and other[0] in (*_TRUTHS, _NAN):
            return True
        if is_false and other == (_TRUTHS[0],):
            given = [item for name in names for item in self._variables[name]]
            return any(isinstance(item, Untyped) and item.strip() == "NaN" for item in given) or (
                any(_UNTYPED_NAN in side for both in parts for side in both)
            )
        if not (
            (_is_error(one) and not other)
            or (_is_error(other) and (is_false or not one))
            or (is_false and not other)
        ):
            return False
        return (
            "v[5]" in text
            or any(not self._variables[name] for name in names)
            or any(not side for both in parts for side in both)
        )

    def _check_compiled(self, text: str, wanted: Outcome) -> None:
        """The compiled expression, where it reads no nodes and no sequences."""
        if "$doc" in text:
            return
        expression = _parsed(text)
        used = sorted(references(expression))
        values = [self._variables[name] for name in used]
        if any(len(each) > 1 for each in values):
            return
        row = tuple(each[0] if each else None for each in values)
        try:
            value = compile_scalar(expression, used, "xquery", text=text)(row)
        except AxlogError as error:
            found: Outcome = ("error" + _PART + error.code,)
        else:
            several = value if isinstance(value, tuple) else () if value is None else (value,)
            found = tuple(_atom(each) for each in several)
        if found != wanted:
            raise AssertionError(
                f"{text}\nwith {_used(text, self._case)}: compiled {_shown(found)}, "
                f"evaluated {_shown(wanted)}"
            )


def _nan(value: object) -> str:
    is_nan = value == "NaN" if isinstance(value, str) else value != value
    return _NAN if is_nan else ""


def _is_error(outcome: Outcome) -> bool:
    return len(outcome) == 1 and outcome[0].startswith("error" + _PART)


def _used(expression: str, case: ScalarsCase) -> str:
    names = set(re.findall(r"\$(v\d+)", expression))
    used = [f"${name} := {value}" for name, value in case.variables if name in names]
    return ", ".join(used + ([f"nodes {case.nodes}"] if "$doc" in expression else []))


def _shown(outcome: Outcome) -> str:
    return " | ".join(part.replace(_PART, " ") for part in outcome) or "()"


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Expression:
    parser = UpdateParser(text, {})
    found = parser.expression()
    if not parser.is_at_end():
        raise AssertionError(f"{text} is not read to its end")
    return found


# axlog -------------------------------------------------------------------------------------------


def _evaluated(tree: Tree, text: str, variables: dict[str, Items]) -> Outcome:
    try:
        expression = _parsed(text)
        evaluator = Evaluator(tree, Statement(expression, text, ()))
        items = evaluator.value(expression, Scope({**variables, "doc": [DOCUMENT]}))
    except AxlogError as error:
        return ("error" + _PART + error.code,)
    return tuple(_item(tree, item) for item in items)


def _item(tree: Tree, item: Any) -> str:
    if isinstance(item, Node):
        return f"node{_PART}{tree.string_value(item)}"
    assert not isinstance(item, New | Named)
    return _atom(item)


def _atom(value: Atom) -> str:
    return f"{type_of(value)}{_PART}{text_of(value)}"


# Saxon -------------------------------------------------------------------------------------------


def saxon_outcomes(case: ScalarsCase, expressions: tuple[str, ...]) -> list[Outcome]:
    """The outcomes by Saxon, all in one query; one by one, if one has a static error."""
    if not expressions:
        return []
    found = _run(_query(case, expressions))
    if isinstance(found, str):
        return [_of_text(part) for part in found.split(_CASE)]
    outcomes = []
    for expression in expressions:
        alone = _run(_query(case, (expression,)))
        outcomes.append(_of_text(alone) if isinstance(alone, str) else alone)
    return outcomes


def _query(case: ScalarsCase, expressions: tuple[str, ...]) -> str:
    names = {name for each in expressions for name in re.findall(r"\$(v\d+)", each)}
    used = [(name, value) for name, value in case.variables if name in names]
    values = ", ".join(f"map {{ '{name}': {value} }}" for name, value in used)
    document = case.document.replace("'", "''").replace("&", "&amp;")
    declared = "".join(
        f"declare variable ${name} as item()* := $all('{name}');\n" for name, _ in used
    )
    calls = ",\n".join(f"local:value(function() {{ {_escaped(e)} }})" for e in expressions)
    head = _HEAD.replace("{types}", _TYPE_TESTS)
    return (
        f"{head}declare variable $doc as document-node() := parse-xml('{document}');\n"
        f"declare variable $all := map:merge(({values}));\n{declared}"
        f"string-join(({calls}), '{_CASE}')"
    )


def _escaped(expression: str) -> str:
    return expression.replace("&", "&amp;")


def _run(query: str) -> str | Outcome:
    """The text that a query gives, or the error."""
    processor = _processor(os.getpid()).new_xquery_processor()
    processor.set_query_content(query)
    try:
        found = processor.run_query_to_string()
    except Exception as error:
        words = str(error).split()
        code = next((word for word in words if re.fullmatch(r"(?!SXWN)[A-Z]{4}\d{4}", word)), "?")
        return ("error" + _PART + code,)
    return str(found or "").removeprefix('<?xml version="1.0" encoding="UTF-8"?>')


def _of_text(text: str) -> Outcome:
    return tuple(text.split(_ITEM)) if text else ()


@cache
def _processor(process: int) -> Any:
    try:
        import saxonche
    except ImportError:
        raise SetupError(
            "AX901", "scalars are compared with Saxon", advice="pip install saxonche"
        ) from None
    return saxonche.PySaxonProcessor(license=False)


# Comparing ---------------------------------------------------------------------------------------


def _alike(found: Outcome, wanted: Outcome, text: str) -> bool:
    if found == wanted:
        return True
    if wanted[:1] in _FAILURES:
        return True
    if _is_error(found) and _is_error(wanted):
        return (found[0].split(_PART)[1], wanted[0].split(_PART)[1]) in _CODES
    if len(found) != len(wanted):
        return False
    pairs = zip(found, wanted, strict=True)
    return all(_items_alike(one, other, text) for one, other in pairs)


_GARBLED = re.compile(r"-\d{4,}-\d\d-\d\dT(\D|[^Z+]*\.([Z+-]|$))")
"""Saxon writes some times before the year 1 in no form of xs:dateTime: `-7976-04-04T/.:-0:00.Z`."""
_NO_TIME = re.compile(r"[^\d:]{2}:\S\S:\S\S")
"""Saxon writes some times after long negative durations in no form: `..:00:00`, `.-:+':+(.`."""
_BEFORE_YEAR_ONE = re.compile(r"-\d{4,}-\d\d-\d\dT")
_FORMS = {kind.type: kind for kind in (Date, DateTime, Time)}


def _items_alike(one: str, other: str, text: str) -> bool:
    (kind, left), (other_kind, right) = one.split(_PART, 1), other.split(_PART, 1)
    if (kind, other_kind) == ("xs:decimal", "xs:integer"):
        return Decimal(left) == int(right)  # of avg() and casts, if they are whole
    if kind != other_kind:
        return False
    if kind == "xs:double":
        a, b = (float(text.replace("INF", "inf")) for text in (left, right))
        if isnan(a) or isnan(b) or isinf(a) or isinf(b):
            return left == right
        return isclose(a, b, rel_tol=1e-12, abs_tol=0.0)
    if kind == "xs:decimal":
        return Decimal(left) == Decimal(right)
    if kind == "xs:dayTimeDuration" and (" div " in text or " * " in text):
        # Saxon multiplies by a rounded reciprocal; by the recommendation (F&O 3.1, 8.4.9) the
        # length is that of the quotient.
        lengths = [float(duration_of(text).nanoseconds) for text in (left, right)]  # type: ignore[union-attr]
        return isclose(*lengths, rel_tol=1e-12, abs_tol=0.0)
    if kind in _FORMS:
        a_time, b_time = (time_value_of(text, _FORMS[kind]) for text in (left, right))
        if b_time is None and kind == "xs:time":
            return _NO_TIME.match(right) is not None
        if b_time is None:
            return bool(_GARBLED.search(right)) and _is_before_year_one(left)
        assert a_time is not None  # Saxon cuts times after nine decimals
        return a_time.zone == b_time.zone and abs(float(a_time.local - b_time.local)) <= 1
    if _GARBLED.search(right) and _is_before_year_one(left):
        return True
    if kind == "xs:string" and _NO_TIME.search(right) and not _NO_TIME.search(left):
        return True
    # Saxon writes P0M for an xs:duration made of no months; its canonical form is PT0S.
    return left == right or (
        "P0M" in right and left.replace("P0M", "PT0S") == right.replace("P0M", "PT0S")
    )


def _is_before_year_one(text: str) -> bool:
    return _BEFORE_YEAR_ONE.search(text) is not None
